/* report_call.c - the reports syscall and fault. */
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report.h"
#include "ktr/tools/symbols.h"

enum { CALL_ERRORS = CELL_MORE };

static struct report_table calls = {
    .report = "syscall",
    .name = "calls",
    .title = "system calls, and the functions of C that make them",
    .needs = "SYSC",
    .columns = {{"call", "call", COLUMN_TEXT, 0},
		{"known as", "known_as", COLUMN_TEXT, 1},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"errors", "errors", COLUMN_COUNT, CALL_ERRORS},
		{"total ms", "total", COLUMN_MS, CELL_TOTAL},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"p50 us", "p50", COLUMN_P50, 0},
		{"p99 us", "p99", COLUMN_P99, 0},
		{"longest us", "longest", COLUMN_US, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_TOTAL,
    .histogram = true,
};

static struct report_table callers = {
    .report = "syscall",
    .name = "callers",
    .title = "system calls by thread",
    .needs = "SYSC",
    .columns = {{"thread", "thread", COLUMN_THREAD, 0},
		{"call", "call", COLUMN_TEXT, 0},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"errors", "errors", COLUMN_COUNT, CALL_ERRORS},
		{"total ms", "total", COLUMN_MS, CELL_TOTAL},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"longest us", "longest", COLUMN_US, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_TOTAL,
};

/* The C function that makes a system call, if its name differs; else NULL. */
static const char *
known_as(const char *call)
{
	static const char *const names[][2] = {
	    {"clone", "fork"},          {"wait4", "waitpid"},
	    {"exit_group", "exit"},     {"exit", "_exit"},
	    {"newfstatat", "stat"},     {"openat", "open"},
	    {"dup3", "dup2"},           {"pipe2", "pipe"},
	    {"getdents64", "readdir"},  {"mkdirat", "mkdir"},
	    {"mknodat", "mknod"},       {"unlinkat", "unlink"},
	    {"renameat", "rename"},     {"brk", "malloc"},
	    {"rt_sigaction", "signal"}, {"rt_sigprocmask", "sigprocmask"},
	    {"nanosleep", "sleep"},     {"shutdown", "poweroff"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(call, names[i][0]) == 0)
			return names[i][1];
	}
	return NULL;
}

static void
call_ends(struct report *r, const struct activity *a, struct report_thread *is)
{
	uint64_t from = is->call_ns;
	bool error = a->value < 0 && a->value > -4096;
	if (is->call == NULL || strcmp(is->call, a->text) != 0) {
		is->call = NULL; /* its begin was lost */
		return;
	}
	is->call = NULL;
	if (!report_wants(r, a->thread, a->cpu) || !report_cut(r, &from, a->ns))
		return;
	const char *as = known_as(a->text);
	struct report_row *row =
	    report_row(r, &calls, report_key(0, 0, a->text, NULL), a->text, as);
	row->cells[CALL_ERRORS] += error;
	report_sample(r, &calls, row, from, a->ns);
	row = report_thread_row(r, &callers, a->thread, 0, a->text, NULL);
	row->cells[CALL_ERRORS] += error;
	report_sample(r, &callers, row, from, a->ns);
}

static struct report_table faults = {
    .report = "fault",
    .name = "faults",
    .title = "page faults by what served them, thread, and place in the kernel",
    .needs = "TRAP, and VM for what served them",
    .columns = {{"served by", "kind", COLUMN_TEXT, 0},
		{"thread", "thread", COLUMN_THREAD, 0},
		{"in", "function", COLUMN_TEXT, 1},
		{"at", "place", COLUMN_TEXT, 2},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"total ms", "total", COLUMN_MS, CELL_TOTAL},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"longest us", "longest", COLUMN_US, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_TOTAL,
};

static struct report_table traps = {
    .report = "fault",
    .name = "traps",
    .title = "exceptions that ended in a signal or a panic",
    .needs = "TRAP",
    .columns = {{"exception", "kind", COLUMN_TEXT, 0},
		{"thread", "thread", COLUMN_THREAD, 0},
		{"in", "function", COLUMN_TEXT, 1},
		{"at", "place", COLUMN_TEXT, 2},
		{"count", "count", COLUMN_COUNT, CELL_COUNT}},
    .weight = CELL_COUNT,
};

/* The row of a thread and a place in the kernel. All places in a program share one row. */
static struct report_row *
place_row(struct report *r, struct report_table *t, const struct activity *at, const char *kind)
{
	struct report_row *row =
	    report_thread_row(r, t, at->thread, at->user ? 0 : at->pc, kind, NULL);
	if (at->user && row != &t->others)
		row->texts[1] = "(the program)";
	return row;
}

static void
fault_ends(struct report *r, const struct activity *a, struct report_thread *is)
{
	static const char *const accesses[] = {[1] = "read", [2] = "write", [4] = "execute"};
	const struct activity *begin = &is->fault;
	uint64_t from = begin->ns;
	const char *kind = a->value == 0           ? "nothing"
			   : is->fault_how != NULL ? is->fault_how
			   : begin->number < 5     ? accesses[begin->number]
						   : NULL;
	if (!is->faults)
		return;
	is->faults = false;
	if (!report_wants(r, a->thread, a->cpu) || !report_cut(r, &from, a->ns))
		return;
	struct report_row *row = place_row(r, &faults, begin, kind != NULL ? kind : "other");
	report_sample(r, &faults, row, from, a->ns);
}

static void
call_activity(struct report *r, const struct export_event *ev, const struct activity *a)
{
	struct report_thread *is = report_thread_of(r, a->thread);
	(void)ev;
	switch (a->kind) {
	case ACTIVITY_SYS_ENTER:
		is->call = a->text;
		is->call_ns = a->ns;
		break;
	case ACTIVITY_SYS_EXIT:
		call_ends(r, a, is);
		break;
	case ACTIVITY_FAULT:
		is->faults = true;
		is->fault = *a;
		is->fault_how = NULL;
		break;
	case ACTIVITY_FAULT_HOW:
		is->fault_how = a->text;
		break;
	case ACTIVITY_FAULT_END:
		fault_ends(r, a, is);
		break;
	case ACTIVITY_TRAP:
		if (report_wants(r, a->thread, a->cpu) && a->ns >= r->since_ns &&
		    a->ns <= r->until_ns)
			place_row(r, &traps, a, a->text)->cells[CELL_COUNT]++;
		break;
	default:
		break;
	}
}

static void
call_end(struct report *r)
{
	report_table_symbols(r, &faults, 0);
	report_table_symbols(r, &traps, 0);
}

static struct report_table *const tables[] = {&calls, &callers, &faults, &traps, NULL};

const struct report_part report_part_call = {
    .tables = tables,
    .activity = call_activity,
    .end = call_end,
};
