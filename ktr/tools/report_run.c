/* report_run.c - the reports cpu, thread and irq: where time went, from the spans (span.h). */
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report.h"

enum {
	CPU_BUSY = CELL_MORE,
	CPU_IDLE,
	CPU_UNKNOWN,
	CPU_SWITCHES,
	CPU_PREEMPTED,
	CPU_MIGRATED,
};

static struct report_table cpus = {
    .report = "cpu",
    .name = "cpus",
    .title = "what each CPU did",
    .needs = "SCHED",
    .columns = {{"cpu", "cpu", COLUMN_NUMBER, 0},
		{"busy ms", "busy", COLUMN_MS, CPU_BUSY},
		{"idle ms", "idle", COLUMN_MS, CPU_IDLE},
		{"unknown ms", "unknown", COLUMN_MS, CPU_UNKNOWN},
		{"switches", "switches", COLUMN_COUNT, CPU_SWITCHES},
		{"preempted", "preempted", COLUMN_COUNT, CPU_PREEMPTED},
		{"came from another CPU", "migrated", COLUMN_COUNT, CPU_MIGRATED}},
    .weight = CPU_BUSY,
};

static struct report_table runs = {
    .report = "cpu",
    .name = "runs",
    .title = "which thread ran where",
    .needs = "SCHED",
    .columns = {{"thread", "thread", COLUMN_THREAD, 0},
		{"cpu", "cpu", COLUMN_NUMBER, 0},
		{"ran ms", "ran", COLUMN_MS, CELL_TOTAL},
		{"%", NULL, COLUMN_SHARE, CELL_TOTAL},
		{"times", "count", COLUMN_COUNT, CELL_COUNT},
		{"longest ms", "longest", COLUMN_MS, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_TOTAL,
};

static struct report_row *
cpu_row(struct report *r, uint32_t cpu)
{
	struct report_row *row = report_row(r, &cpus, report_key(cpu, 0, NULL, NULL), NULL, NULL);
	row->number = cpu;
	return row;
}

static void
run_cpu(struct report *r, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns,
	uint64_t to_ns)
{
	if (!dump_match_cpu(r->filter, cpu))
		return;
	struct report_row *row = cpu_row(r, cpu);
	if (t == NULL)
		row->cells[CPU_UNKNOWN] += to_ns - from_ns;
	if (t == NULL || !report_wants(r, t, cpu))
		return;
	row->cells[t->idle ? CPU_IDLE : CPU_BUSY] += to_ns - from_ns;
	if (!t->idle)
		report_sample(r, &runs, report_thread_row(r, &runs, t, cpu, NULL, NULL), from_ns,
			      to_ns);
}

/* A thread that leaves its CPU without waiting counts as preempted, even if it yields. */
static void
run_switch(struct report *r, const struct activity *a)
{
	struct report_thread *in = report_thread_of(r, a->thread);
	bool moved = in->ran && in->last_cpu != a->cpu;
	in->ran = true;
	in->last_cpu = a->cpu;
	if (a->ns < r->since_ns || a->ns > r->until_ns || !report_wants(r, a->thread, a->cpu))
		return;
	struct report_row *row = cpu_row(r, a->cpu);
	row->cells[CPU_SWITCHES]++;
	row->cells[CPU_MIGRATED] += moved;
	row->cells[CPU_PREEMPTED] +=
	    a->other != NULL && !a->other->idle && a->other->state == ACTIVITY_RUNNABLE;
}

enum {
	THREAD_RUNNING = CELL_MORE,
	THREAD_RUNNABLE,
	THREAD_SLEEPING,
	THREAD_BLOCKED,
	THREAD_SPINNING,
	THREAD_UNKNOWN,
};

static struct report_table threads = {
    .report = "thread",
    .name = "threads",
    .title = "what each thread did",
    .needs = "SCHED",
    .columns = {{"thread", "thread", COLUMN_THREAD, 0},
		{"running ms", "running", COLUMN_MS, THREAD_RUNNING},
		{"runnable ms", "runnable", COLUMN_MS, THREAD_RUNNABLE},
		{"blocked ms", "blocked", COLUMN_MS, THREAD_BLOCKED},
		{"spinning ms", "spinning", COLUMN_MS, THREAD_SPINNING},
		{"sleeping ms", "sleeping", COLUMN_MS, THREAD_SLEEPING},
		{"unknown ms", "unknown", COLUMN_MS, THREAD_UNKNOWN}},
    .weight = CELLS,
    .own_known = true,
};

static struct report_table states = {
    .report = "thread",
    .name = "states",
    .title = "what threads waited for: a CPU, a lock, something else",
    .needs = "SCHED",
    .columns = {{"thread", "thread", COLUMN_THREAD, 0},
		{"state", "state", COLUMN_TEXT, 0},
		{"for", "why", COLUMN_TEXT, 1},
		{"ms", "total", COLUMN_MS, CELL_TOTAL},
		{"times", "count", COLUMN_COUNT, CELL_COUNT},
		{"mean ms", "mean", COLUMN_MEAN_MS, 0},
		{"longest ms", "longest", COLUMN_MS, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELLS,
    .own_known = true,
};

/* Rows of sleep come last, because a thread sleeps by its own wish. Others weigh this much more. */
#define WAIT_WEIGHT (1ull << 63)

static void
run_thread(struct report *r, const struct span *span)
{
	static const unsigned cells[] = {
	    [ACTIVITY_UNKNOWN] = THREAD_UNKNOWN,   [ACTIVITY_RUNNING] = THREAD_RUNNING,
	    [ACTIVITY_SPINNING] = THREAD_SPINNING, [ACTIVITY_RUNNABLE] = THREAD_RUNNABLE,
	    [ACTIVITY_SLEEPING] = THREAD_SLEEPING, [ACTIVITY_BLOCKED] = THREAD_BLOCKED,
	};
	const struct activity_thread *t = span->thread;
	uint64_t ns = span->to_ns - span->from_ns;
	bool runs_there = span->state == ACTIVITY_RUNNING || span->state == ACTIVITY_SPINNING;
	if (span->state == ACTIVITY_DEAD || t->idle ||
	    (r->filter->thread != NULL && !dump_match_thread(r->filter, t->tid, t->name)) ||
	    (r->filter->cpus != ~(uint64_t)0 &&
	     !(runs_there && dump_match_cpu(r->filter, span->cpu))))
		return;
	struct report_row *row = report_thread_row(r, &threads, t, 0, NULL, NULL);
	row->cells[cells[span->state]] += ns;
	if (span->state != ACTIVITY_UNKNOWN && span->state != ACTIVITY_SLEEPING)
		row->weight += ns;
	threads.all_ns += ns;
	threads.known_ns += span->state != ACTIVITY_UNKNOWN ? ns : 0;
	if (span->state == ACTIVITY_UNKNOWN || span->state == ACTIVITY_RUNNING)
		return;
	row = report_thread_row(r, &states, t, 0, activity_state_name(span->state), span->why);
	if (row->weight == 0 && span->state != ACTIVITY_SLEEPING)
		row->weight = WAIT_WEIGHT;
	row->weight += ns;
	report_sample(r, &states, row, span->from_ns, span->to_ns);
}

static struct report_table irqs = {
    .report = "irq",
    .name = "interrupts",
    .title = "interrupts by kind and CPU",
    .needs = "INTR",
    .columns = {{"interrupt", "name", COLUMN_TEXT, 0},
		{"cpu", "cpu", COLUMN_NUMBER, 0},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"total ms", "total", COLUMN_MS, CELL_TOTAL},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"p99 us", "p99", COLUMN_P99, 0},
		{"longest us", "longest", COLUMN_US, CELL_MAX},
		{"which began at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_TOTAL,
    .histogram = true,
};

static struct report_table timers = {
    .report = "irq",
    .name = "timer",
    .title = "how late timers ran",
    .needs = "INTR, and CALLOUT and SCHED for the timer",
    .columns = {{"cpu", "cpu", COLUMN_NUMBER, 0},
		{"count", "count", COLUMN_COUNT, CELL_COUNT},
		{"mean us", "mean", COLUMN_MEAN, 0},
		{"p50 us", "p50", COLUMN_P50, 0},
		{"p99 us", "p99", COLUMN_P99, 0},
		{"latest us", "longest", COLUMN_US, CELL_MAX},
		{"was due at s", "when", COLUMN_SECONDS, CELL_WHEN}},
    .weight = CELL_MAX,
    .histogram = true,
};

static void
run_irq(struct report *r, uint32_t cpu, const struct activity_thread *t, uint32_t number,
	const char *name, uint64_t from_ns, uint64_t to_ns)
{
	(void)number;
	if (!report_wants(r, t, cpu))
		return;
	struct report_row *row = report_row(r, &irqs, report_key(cpu, 0, name, NULL), name, NULL);
	row->number = cpu;
	report_sample(r, &irqs, row, from_ns, to_ns);
}

#define TIMERS_MAX 4096u

/* The timers that are set: when each is due, plus one, by its address. */
static struct ktr_map due;

static void
run_timer(struct report *r, const struct activity *a)
{
	uintptr_t was = (uintptr_t)ktr_map_get(&due, a->address);
	if (a->kind == ACTIVITY_TIMER_SET) {
		if (due.realloc == NULL)
			due = memory_map();
		if (due.used >= TIMERS_MAX)
			ktr_map_clear(&due);
		if (!ktr_map_put(&due, a->address, (void *)((uintptr_t)a->value + 1)))
			report_no_memory(r);
		return;
	}
	if (was == 0)
		return;
	ktr_map_remove(&due, a->address);
	uint64_t from = was - 1 < a->ns ? was - 1 : a->ns;
	if (a->kind != ACTIVITY_TIMER_RUN || !dump_match_cpu(r->filter, a->cpu) ||
	    !report_cut(r, &from, a->ns))
		return;
	struct report_row *row =
	    report_row(r, &timers, report_key(a->cpu, 0, NULL, NULL), NULL, NULL);
	row->number = a->cpu;
	report_sample(r, &timers, row, from, a->ns);
}

static void
run_activity(struct report *r, const struct export_event *ev, const struct activity *a)
{
	(void)ev;
	if (a->kind == ACTIVITY_SWITCH)
		run_switch(r, a);
	else if (a->kind == ACTIVITY_TIMER_SET || a->kind == ACTIVITY_TIMER_STOP ||
		 a->kind == ACTIVITY_TIMER_RUN)
		run_timer(r, a);
}

static void
run_gap(struct report *r, const struct export_gap *gap)
{
	(void)r, (void)gap;
	ktr_map_clear(&due); /* the lost events may have stopped timers, or set them again */
}

static void
run_end(struct report *r)
{
	(void)r;
	states.known_ns = threads.known_ns;
	states.all_ns = threads.all_ns;
	ktr_map_free(&due);
}

static struct report_table *const tables[] = {&cpus, &runs,   &threads, &states,
					      &irqs, &timers, NULL};

const struct report_part report_part_run = {
    .tables = tables,
    .activity = run_activity,
    .gap = run_gap,
    .thread = run_thread,
    .cpu = run_cpu,
    .irq = run_irq,
    .end = run_end,
};
