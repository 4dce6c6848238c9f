/*
 * folded.c - folded stacks, a line `frame;frame COUNT` each, for flamegraph.pl, inferno and
 * speedscope. COUNT is nanoseconds.
 *
 * A stack is `THREAD;STATE[;SYSCALL][;FUNCTION…][;WHY]`. Threads of the same name are added up. The
 * functions are those of the kernel that the thread is in, as far as they are traced, outermost
 * first. WHY is what the thread sleeps on, or the lock that it waits for. A CPU that idles is
 * `idle;cpuN`. Time in which a thread's state is unknown is left out. An interrupt counts for the
 * thread that it interrupted.
 *
 * A reader takes a number at the end of the last frame for another count, so there is none. A
 * reader refuses an empty file, so a trace without any known time becomes a nanosecond of
 * `trace;unknown`.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/model/span.h"
#include "ktr/tools/utf8.h"

#define STACK_BYTES 2048u

struct stack {
	uint64_t ns;
	char text[];
};

struct folded {
	struct export_file file;
	const struct dump_filter *filter;
	void *stacks; /* by their texts */
	char scratch[sizeof(struct stack) + STACK_BYTES];
};

static int
stack_compare(const void *a, const void *b)
{
	const struct stack *l = a, *r = b;
	return strcmp(l->text, r->text);
}

static bool
stack_add(struct folded *x, const struct stack *stack, uint64_t ns)
{
	struct stack **found = tfind(stack, &x->stacks, stack_compare);
	if (found == NULL) {
		size_t size = sizeof(*stack) + strlen(stack->text) + 1;
		struct stack *copy = malloc(size);
		if (copy == NULL)
			return false;
		memcpy(copy, stack, size);
		copy->ns = 0;
		found = tsearch(copy, &x->stacks, stack_compare);
		if (found == NULL) {
			free(copy);
			return false;
		}
	}
	(*found)->ns += ns;
	return true;
}

/*
 * Writes a frame, cut to the room. A ';' becomes ':', and bytes that are no text become '?'.
 * Returns its end.
 */
static char *
frame_put(char *p, const char *end, const char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	while (*from != '\0') {
		size_t n = utf8_length(from);
		bool text_byte = n > 0 && *from >= ' ' && *from != 0x7f;
		if (p + n + 1 >= end)
			break;
		if (text_byte && *from != ';')
			memcpy(p, from, n);
		else
			*p = text_byte ? ':' : '?';
		p += text_byte ? n : 1;
		from += n > 0 ? n : 1;
	}
	*p = '\0';
	return p;
}

/* Adds a frame after what there is, if there is room and the frame has a name. */
static char *
frame_add(char *p, const char *end, const char *text)
{
	if (text == NULL || text[0] == '\0' || end - p < 3)
		return p;
	*p++ = ';';
	return frame_put(p, end, text);
}

static bool
folded_span(void *arg, const struct span *span)
{
	struct folded *x = arg;
	bool runs = span->state == ACTIVITY_RUNNING || span->state == ACTIVITY_SPINNING;
	struct stack *stack = (struct stack *)(void *)x->scratch;
	char *p = stack->text, *end = x->scratch + sizeof(x->scratch);
	uint64_t ns = span->to_ns - span->from_ns;
	if (span->state == ACTIVITY_UNKNOWN || span->state == ACTIVITY_DEAD ||
	    (span->thread->idle && !runs) ||
	    !dump_match_thread(x->filter, span->thread->tid, span->name) ||
	    (x->filter->cpus != ~(uint64_t)0 && !(runs && dump_match_cpu(x->filter, span->cpu))))
		return true;
	if (span->thread->idle) {
		snprintf(p, STACK_BYTES, "idle;cpu%" PRIu32, span->cpu);
		return stack_add(x, stack, ns);
	}
	if (span->name[0] != '\0')
		p = frame_put(p, end, span->name);
	else
		p += snprintf(p, STACK_BYTES, "tid %" PRIu32, span->thread->tid);
	p = frame_add(p, end, activity_state_name(span->state));
	p = frame_add(p, end, span->call);
	for (unsigned i = 0; i < span->depth; i++)
		p = frame_add(p, end, span->functions[i]);
	p = frame_add(p, end, span->why);
	p = strrchr(stack->text, ' ');
	size_t digits = p != NULL ? strspn(p + 1, "0123456789") : 0;
	if (digits > 0 && (p[1 + digits] == '\0' || p[1 + digits] == '.'))
		*p = '_';
	return stack_add(x, stack, ns);
}

static void
stack_print(const void *node, VISIT visit, void *out)
{
	const struct stack *stack = *(const struct stack *const *)node;
	if (visit == postorder || visit == leaf)
		fprintf(out, "%s %" PRIu64 "\n", stack->text, stack->ns);
}

static bool
folded_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct folded *x = arg;
	if (complete && x->stacks == NULL)
		fputs("trace;unknown 1\n", x->file.f);
	else if (complete)
		twalk_r(x->stacks, stack_print, x->file.f);
	bool good = export_file_close(&x->file, complete, err, errlen);
	tdestroy(x->stacks, free);
	free(x);
	return good;
}

static void *
folded_open(const struct export_options *o, char *err, size_t errlen)
{
	struct folded *x = export_create(sizeof(*x), o, err, errlen);
	if (x != NULL)
		x->filter = o->filter;
	return x;
}

static const struct span_ops folded_spans = {.thread = folded_span, .functions = true};

const struct export_format export_folded = {
    .name = "folded",
    .what =
	"folded stacks: nanoseconds by thread, state, system call and functions, for flame graphs",
    .sees_all = true,
    .spans = &folded_spans,
    .open = folded_open,
    .close = folded_close,
};
