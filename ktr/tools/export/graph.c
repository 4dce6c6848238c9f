/*
 * graph.c - the calls of functions as an indented graph with durations, in the columns of
 * Linux's function_graph tracer (Documentation/trace/ftrace.rst): CPU, time in the function, call.
 *
 * It is made of functions' entries and returns. A function that calls nothing that is traced is one
 * line; to know that, its line waits for the next event of its thread, and all lines after it wait
 * with it. Other events are comments at their place. A return from a function that was entered
 * before the trace began, or before events were lost, closes a brace that was never opened, and
 * tells the function's name.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/glob.h"
#include "ktr/tools/export/export.h"
#include "ktr/tools/out.h"

#define LINES      1024u /* lines that may wait; when there are more, the first is written */
#define TEXT_BYTES 1024u
#define DEPTH_MAX  100u /* deeper calls are not indented more */

enum line_kind {
	LINE_CALL, /* waits: the thread's next event makes it LEAF or OPEN */
	LINE_LEAF,
	LINE_OPEN,
	LINE_CLOSE,
	LINE_TEXT
};

struct line {
	enum line_kind kind;
	uint32_t cpu, tid;
	char thread[ACTIVITY_NAME];
	unsigned depth;
	bool timed; /* ns is how long the function took */
	uint64_t ns;
	const char *name; /* of the function; NULL: only a brace is shown */
	char *text;       /* LINE_TEXT's */
};

struct graph {
	struct out *out;
	const char *function;  /* a glob: only its calls, and calls in them, are shown; NULL: all */
	unsigned depth;        /* calls deeper than this are not shown; 0: all are */
	bool seen;             /* a call of `function`, whether it passed the filter or not */
	bool any;              /* there was a line of a function */
	const char **no_calls; /* see export_options */
	uint32_t tid[KTR_DECODE_CPUS]; /* of the CPU's last line, plus 1; 0: no line yet */
	char thread[KTR_DECODE_CPUS][ACTIVITY_NAME];
	uint64_t first, end; /* numbers of the lines that wait */
	struct line lines[LINES];
};

/* A call's mark: its line's number plus one, times 2; plus 1 if it is a call of g->function. */
#define MARK(line, root) (((line) + 1) << 1 | (root))
#define MARK_HIDDEN      0u

static bool
mark_is_root(uint64_t mark)
{
	return (mark & 1) != 0;
}

/* The line of a call. NULL: the line does not wait any more. */
static struct line *
line_waiting(struct graph *g, const struct activity_call *call)
{
	uint64_t number = (call->mark >> 1) - 1;
	if (call->mark >> 1 == 0 || number < g->first || number >= g->end)
		return NULL;
	struct line *l = &g->lines[number % LINES];
	return l->kind == LINE_CALL ? l : NULL;
}

/* Linux's marks for more than 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s. */
static char
mark_of(uint64_t ns)
{
	static const char marks[] = " +!#*@$";
	unsigned n = 0;
	for (uint64_t limit = 10000; n < sizeof(marks) - 2 && ns > limit; limit *= 10)
		n++;
	return marks[n];
}

/*
 * Writes the duration in us, with at most three decimals, and fewer where it would have more than
 * seven digits. Writes blanks if the line is not timed.
 */
static void
put_duration(struct out *o, const struct line *l)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64, l->ns / 1000);
	if (n < 7)
		snprintf(text + n, n < 5 ? 5 : 9 - (size_t)n, ".%03u", (unsigned)(l->ns % 1000));
	n = (int)strlen(text);
	if (l->timed)
		out_printf(o, "%c %s us %*s", mark_of(l->ns), text, n < 8 ? 8 - n : 0, "");
	else
		out_blanks(o, 14);
	out_text(o, "|  ");
}

/* Says that the CPU runs another thread than at its last line. */
static void
put_switch(struct graph *g, const struct line *l)
{
	static const char rule[] = " ------------------------------------------\n";
	struct out *o = g->out;
	if (g->tid[l->cpu] != 0 && g->tid[l->cpu] != l->tid + 1) {
		out_printf(o, "%s %2" PRIu32 ")  ", rule, l->cpu);
		out_printable(o, g->thread[l->cpu], strlen(g->thread[l->cpu]));
		out_printf(o, "-%" PRIu32 "  =>  ", g->tid[l->cpu] - 1);
		out_printable(o, l->thread, strlen(l->thread));
		out_printf(o, "-%" PRIu32 "\n%s", l->tid, rule);
	}
	g->tid[l->cpu] = l->tid + 1;
	memcpy(g->thread[l->cpu], l->thread, sizeof(l->thread));
}

static void
put_line(struct graph *g, const struct line *l)
{
	struct out *o = g->out;
	out_begin(o);
	put_switch(g, l);
	out_char(o, ' ');
	out_number(o, l->cpu, 2);
	out_text(o, ") ");
	put_duration(o, l);
	out_blanks(o, 2 * (size_t)(l->depth < DEPTH_MAX ? l->depth : DEPTH_MAX));
	if (l->kind == LINE_TEXT) {
		out_text(o, "/* ");
		out_printable(o, l->text, strlen(l->text));
		out_text(o, " */\n");
		free(l->text);
	} else if (l->kind == LINE_CLOSE) {
		out_text(o, l->name != NULL ? "} /* " : "}");
		out_text(o, l->name != NULL ? l->name : "");
		out_text(o, l->name != NULL ? " */\n" : "\n");
	} else {
		out_text(o, l->name);
		out_text(o, l->kind == LINE_LEAF ? "();\n" : "() {\n");
	}
}

/* Writes lines up to the first that must wait. */
static void
put_lines(struct graph *g)
{
	while (g->first < g->end && g->lines[g->first % LINES].kind != LINE_CALL)
		put_line(g, &g->lines[g->first++ % LINES]);
}

static void
put_all_lines(struct graph *g)
{
	while (g->first < g->end)
		put_line(g, &g->lines[g->first++ % LINES]);
}

static struct line *
line_add(struct graph *g, const struct export_event *ev, enum line_kind kind, unsigned depth)
{
	if (g->end - g->first == LINES)
		put_line(g, &g->lines[g->first++ % LINES]);
	struct line *l = &g->lines[g->end++ % LINES];
	*l = (struct line){.kind = kind,
			   .cpu = ev->e->cpu % KTR_DECODE_CPUS,
			   .tid = ev->e->tid,
			   .depth = depth};
	memcpy(l->thread, ev->thread->name, sizeof(l->thread));
	return l;
}

/* How deep in the graph the thread's call number `depth` is; -1: it is not shown. */
static int
depth_shown(const struct graph *g, const struct activity_thread *t, unsigned depth)
{
	unsigned root = 0;
	if (g->function == NULL)
		return (int)depth;
	while (root < t->depth && !mark_is_root(t->calls[root].mark))
		root++;
	return root < t->depth && root <= depth ? (int)(depth - root) : -1;
}

/* Is this, of depth_shown(), deeper than is wanted? */
static bool
is_too_deep(const struct graph *g, int depth)
{
	return g->depth != 0 && depth >= (int)g->depth;
}

/* The thread does something: the function that it is in is not a leaf. */
static void
open_innermost(struct graph *g, const struct activity_thread *t, unsigned depth)
{
	struct line *l = depth > 0 ? line_waiting(g, &t->calls[depth - 1]) : NULL;
	if (l != NULL)
		l->kind = LINE_OPEN;
}

static void
on_call(struct graph *g, const struct export_event *ev, const struct activity *a)
{
	const struct activity_thread *t = ev->thread;
	struct activity_call *call = &t->calls[t->depth - 1];
	call->mark = g->function != NULL && ktr_glob(g->function, a->text);
	g->seen |= call->mark != 0;
	int depth = depth_shown(g, t, t->depth - 1);
	if (is_too_deep(g, depth))
		return;
	open_innermost(g, t, t->depth - 1);
	if (depth < 0 || !ev->passes)
		return;
	g->any = true;
	line_add(g, ev, LINE_CALL, (unsigned)depth)->name = a->text;
	call->mark = MARK(g->end - 1, mark_is_root(call->mark));
}

static void
on_return(struct graph *g, const struct export_event *ev, const struct activity *a)
{
	const struct activity_thread *t = ev->thread;
	struct line *own = a->call.name != NULL ? line_waiting(g, &a->call) : NULL;
	int depth = depth_shown(g, t, t->depth);
	if (is_too_deep(g, depth))
		return;
	/* A call of this thread that still waits did not return, so it is not a leaf. */
	for (uint64_t n = g->first; own == NULL && n < g->end; n++) {
		struct line *l = &g->lines[n % LINES];
		if (l->kind == LINE_CALL && l->tid == ev->e->tid)
			l->kind = LINE_OPEN;
	}
	if (own != NULL) {
		own->kind = LINE_LEAF;
	} else if (!ev->passes || (a->call.name != NULL && a->call.mark >> 1 == 0) ||
		   (a->call.name == NULL && g->function != NULL)) {
		return;
	} else {
		if (depth < 0)
			depth = 0; /* it is g->function */
		g->any = true;
		own = line_add(g, ev, LINE_CLOSE, (unsigned)depth);
		own->name = a->call.name == NULL ? a->text : NULL;
	}
	own->timed = a->call.name != NULL;
	own->ns = ev->ns - a->call.ns;
}

static bool
on_other(struct graph *g, const struct export_event *ev)
{
	const struct activity_thread *t = ev->thread;
	char text[TEXT_BYTES];
	int depth = depth_shown(g, t, t->depth);
	if (is_too_deep(g, depth - 1))
		return true;
	open_innermost(g, t, t->depth);
	if (depth < 0 || !ev->passes)
		return true;
	ktr_decode_text(text, sizeof(text), ev->e);
	struct line *l = line_add(g, ev, LINE_TEXT, (unsigned)depth);
	l->text = strdup(text);
	if (l->text == NULL)
		g->end--;
	return l->text != NULL;
}

static void *
graph_open(const struct export_options *o, char *err, size_t errlen)
{
	struct graph *g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->out = o->out;
	g->function = o->function;
	g->depth = o->depth;
	g->no_calls = o->no_calls;
	return g;
}

static bool
graph_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct graph *g = arg;
	out_text(g->out, "# CPU  DURATION                  FUNCTION CALLS\n"
			 "# |     |   |                     |   |   |   |\n");
	return true;
}

static bool
graph_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct graph *g = arg;
	bool call = false, done = true;
	for (unsigned i = 0; i < ev->count; i++) {
		const struct activity *a = &ev->activities[i];
		if (a->kind == ACTIVITY_CALL)
			on_call(g, ev, a);
		else if (a->kind == ACTIVITY_RETURN)
			on_return(g, ev, a);
		call |= a->kind == ACTIVITY_CALL || a->kind == ACTIVITY_RETURN;
	}
	if (!call)
		done = on_other(g, ev);
	put_lines(g);
	return done;
}

static bool
graph_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct graph *g = arg;
	put_all_lines(g);
	out_begin(g->out);
	out_printf(g->out, " %2" PRIu32 ")               |  /* %" PRIu64 " events lost */\n",
		   gap->g->cpu, gap->g->count);
	return true;
}

static bool
graph_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct graph *g = arg;
	put_all_lines(g);
	out_flush(g->out);
	if (complete && g->function != NULL && !g->any)
		*g->no_calls = g->seen ? "is what was asked for" : "was recorded";
	free(g);
	return true;
}

const struct export_format export_graph = {
    EXPORT_FORMAT(graph),
    .what = "calls of functions with durations, in the columns of Linux's function_graph",
    .sees_all = true,
    .lines = true,
};
