/*
 * output.c - prints records: the row's beginning, and what each action does.
 */
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/options.h"
#include "userland/lib/array.h"

/* For flowindent: how deep the calls of each CPU are, and its last record. */
static struct {
	unsigned depth;
	struct dif_record last;
} flow[MAX_CPUS];

bool output_failed;

static struct {
	FILE *first;     /* standard output, or that of -o */
	char name[1024]; /* of freopen(); "": it is the first */
	bool said;       /* that something was not written */
} out;

static struct known {
	struct known *next;
	struct dif_probe p;
} * probes[256];

static const struct dif_probe *
find_probe(uint32_t id)
{
	struct known **bucket = &probes[id % 256], *k;

	for (k = *bucket; k != NULL; k = k->next)
		if (k->p.id == id)
			return &k->p;
	k = dt_alloc(sizeof(*k));
	k->p.id = id;
	if (!consume_describe(&k->p) || k->p.id != id)
		memset(&k->p, 0, sizeof(k->p));
	k->p.id = id;
	k->next = *bucket;
	*bucket = k;
	return &k->p;
}

/* ---- where it goes ---- */

/* Says so once, until freopen() goes elsewhere. */
static void
say_not_written(void)
{
	if (!out.said)
		warn("%s", out.name[0] != '\0' ? out.name : "output");
	out.said = output_failed = true;
}

void
output_flush(void)
{
	bool failed = ferror(print_out) != 0;

	if (fflush(print_out) == 0 && !failed)
		return;
	say_not_written();
	clearerr(print_out);
}

/* ---- the beginning of a row ---- */

static void
print_flow(uint32_t cpu, const struct dif_probe *p, bool again, bool goes_on)
{
	const char *arrow = "| ";
	char text[256];
	bool call = strcmp(p->provider, "syscall") == 0;
	bool entry = strcmp(p->name, "entry") == 0, ret = strcmp(p->name, "return") == 0;
	unsigned indent;

	cpu %= MAX_CPUS;
	/* Of several clauses at one probe, the first is the call, and the last the return. */
	entry = entry && !again;
	ret = ret && !goes_on;
	if (entry)
		arrow = call ? " => " : " -> ";
	if (ret) {
		arrow = call ? " <= " : " <- ";
		flow[cpu].depth -= flow[cpu].depth >= 2 ? 2 : 0;
	}
	indent = flow[cpu].depth;
	if (entry || ret)
		snprintf(text, sizeof(text), "%*s%s%s", (int)indent, "", arrow, p->function);
	else
		snprintf(text, sizeof(text), "%*s%s%s:%s", (int)indent, "", arrow, p->function,
			 p->name);
	if (entry)
		flow[cpu].depth += 2;
	fprintf(print_out, "%3u %-41s ", cpu, text);
}

/* Are these records of two clauses at one probe? */
static bool
is_same_firing(const struct dif_record *a, const struct dif_record *b)
{
	return a->probe == b->probe && a->layout != b->layout;
}

static void
print_row_start(uint32_t cpu, const struct dif_probe *p, const struct dif_record *r,
		const struct dif_record *next)
{
	static bool started;
	char name[256];

	if (dt_options.flowindent) {
		if (!started)
			fprintf(print_out, "%3s %-41s\n", "CPU", "FUNCTION");
		print_flow(cpu, p, is_same_firing(&flow[cpu % MAX_CPUS].last, r),
			   next != NULL && is_same_firing(r, next));
		flow[cpu % MAX_CPUS].last = *r;
	} else if (!dt_options.quiet) {
		if (!started)
			fprintf(print_out, "%3s %6s %32s\n", "CPU", "ID", "FUNCTION:NAME");
		snprintf(name, sizeof(name), "%s:%s", p->function, p->name);
		fprintf(print_out, "%3u %6u %32s ", cpu, p->id, name);
	}
	started = true;
}

/* ---- actions ---- */

/* What the compiler's clause of ERROR has recorded: arg1 to arg5. */
static void
say_error(const struct rec_field *f, const uint8_t *data)
{
	static const char *const faults[] = {"unknown fault",         "invalid address",
					     "invalid alignment",     "illegal operation",
					     "divide-by-zero",        "out of scratch space",
					     "invalid kernel access", "invalid user access",
					     "tuple stack overflow",  "bad stack"};
	uint64_t v[5];
	const struct dif_probe *p;
	char address[32] = "", place[32] = "predicate";

	for (unsigned i = 0; i < 5; i++)
		v[i] = print_integer(&f[i], data + f[i].offset);
	p = find_probe(consume_probe_of((uint32_t)v[0]));
	if (v[3] == DIF_FAULT_BADADDR || v[3] == DIF_FAULT_UPRIV)
		snprintf(address, sizeof(address), " (0x%lx)", (unsigned long)v[4]);
	if (v[1] != 0)
		snprintf(place, sizeof(place), "action #%lu", (unsigned long)v[1]);
	output_flush();
	warnx("error on enabled probe ID %lu (ID %u: %s:%s:%s:%s): %s%s in %s at DIF offset %lu",
	      (unsigned long)v[0], p->id, p->provider, p->module, p->function, p->name,
	      faults[v[3] < sizeof(faults) / sizeof(faults[0]) ? v[3] : 0], address, place,
	      (unsigned long)v[2]);
}

static void
do_printa(const struct rec_action *a)
{
	uint32_t *aggs = NULL;
	unsigned count = 0;

	for (uint32_t i = 0; i < a->count; i++)
		ARRAY_ADD(aggs, count, view.fields[a->first + i].offset);
	if (a->format == 0)
		fprintf(print_out, "\n");
	agg_print(a->format != 0 ? view.strings + a->format : NULL, aggs, count);
	free(aggs);
}

/* Waits for a command. The kernel takes the probes of who gives no sign of life meanwhile. */
static bool
wait_command(pid_t pid, const sigset_t *child)
{
	const struct timespec step = {0, 100000000};
	pid_t ended;

	while ((ended = waitpid(pid, NULL, WNOHANG)) == 0) {
		sigtimedwait(child, NULL, &step);
		consume_live();
	}
	return ended == pid;
}

static char *
text_of(const struct rec_action *a, const uint8_t *data)
{
	return print_to_text(view.strings + a->format, &view.fields[a->first], a->count, data);
}

static void
do_system(const struct rec_action *a, const uint8_t *data)
{
	char *command = text_of(a, data);
	sigset_t child;
	pid_t pid;

	output_flush();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	pid = fork();
	if (pid == 0) {
		char *argv[] = {"sh", "-c", command, NULL};
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv("/bin/sh", argv);
		_exit(127);
	}
	if (pid < 0 || !wait_command(pid, &child))
		warn("system(\"%s\")", command);
	free(command);
}

/* Appends to a file; "": to that of -o, or standard output, as before. */
static void
do_reopen(const char *path)
{
	FILE *f = out.first;

	if (f == NULL)
		f = out.first = print_out;
	output_flush(); /* what others write to the files comes after what is in the buffer */
	if (*path != '\0' && (f = fopen(path, "a")) == NULL) {
		warn("%s", path);
		return;
	}
	if (print_out != out.first && fclose(print_out) != 0)
		say_not_written();
	print_out = f;
	out.said = false;
	snprintf(out.name, sizeof(out.name), "%s", path);
}

static void
do_ftruncate(void)
{
	output_flush();
	if (ftruncate(fileno(print_out), 0) == 0) /* a terminal keeps what it shows */
		rewind(print_out);
}

static void
do_freopen(const struct rec_action *a, const uint8_t *data)
{
	char *path = text_of(a, data);

	do_reopen(path);
	free(path);
}

static void
do_setopt(const struct rec_action *a, const uint8_t *data)
{
	const struct rec_field *f = &view.fields[a->first];
	const char *why = option_change((const char *)data + f[0].offset,
					a->count > 1 ? (const char *)data + f[1].offset : NULL);

	if (why != NULL)
		warnx("setopt: %s", why);
}

static void
do_action(const struct rec_action *a, const uint8_t *data)
{
	const struct rec_field *f = &view.fields[a->first];
	int64_t value = a->count > 1 && f[1].show != SHOW_AGG
			    ? (int64_t)print_integer(&f[1], data + f[1].offset)
			    : 0;

	switch (a->action) {
	case ACT_TRACE:
	case ACT_STACK:
	case ACT_USTACK:
		print_trace(f, data);
		break;
	case ACT_TRACEMEM:
		print_bytes(data + f->offset,
			    a->count > 1 && (uint64_t)value < f->size ? (size_t)value : f->size);
		break;
	case ACT_PRINT:
		print_fields(f, data);
		break;
	case ACT_PRINTF:
		print_printf(view.strings + a->format, f, a->count, data);
		break;
	case ACT_PRINTA:
		do_printa(a);
		break;
	case ACT_TRUNC:
		agg_trunc(f->offset, value);
		break;
	case ACT_CLEAR:
		agg_clear(f->offset);
		break;
	case ACT_NORMALIZE:
		if (value != 0)
			agg_normalize(f->offset, (uint64_t)value);
		else
			warnx("normalize: found 0, expected another number");
		break;
	case ACT_DENORMALIZE:
		agg_normalize(f->offset, 1);
		break;
	case ACT_FREOPEN:
		do_freopen(a, data);
		break;
	case ACT_FTRUNCATE:
		do_ftruncate();
		break;
	case ACT_SYSTEM:
		do_system(a, data);
		break;
	case ACT_SETOPT:
		do_setopt(a, data);
		break;
	default: /* exit() and the empty clause have only their row */
		break;
	}
}

static bool
is_done(const struct rec_action *a, const uint8_t *data)
{
	return a->flag == 0 || data[a->flag - 1] != 0;
}

void
output_record(uint32_t cpu, const struct dif_record *r, const struct dif_record *next)
{
	const uint8_t *data = (const uint8_t *)(r + 1);
	const struct rec_layout *l;
	bool any = false;

	if (r->layout >= view.layout_count)
		return;
	l = &view.layouts[r->layout];
	if (l->count == 1 && view.actions[l->first].action == ACT_ERROR) {
		say_error(&view.fields[view.actions[l->first].first], data);
		return;
	}
	for (uint32_t i = 0; i < l->count; i++)
		any |= is_done(&view.actions[l->first + i], data);
	if (!any)
		return; /* each action stood in an `if` whose condition did not hold */
	print_row_start(cpu, find_probe(r->probe), r, next);
	for (uint32_t i = 0; i < l->count; i++) {
		const struct rec_action *a = &view.actions[l->first + i];

		if (is_done(a, data))
			do_action(a, data);
	}
	if (!dt_options.quiet || dt_options.flowindent)
		fprintf(print_out, "\n");
}
