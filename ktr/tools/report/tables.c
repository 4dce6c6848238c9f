/* tables.c - what each report shows: its tables, of which samples, and in which columns. */
#include "ktr/tools/report/report.h"

#define OF(kind)               (1u << SAMPLE_##kind)
#define TABLE(of, named, says) .report = of, .name = named, .title = says

#define COLUMN(title, json, format, cell)          \
	(struct report_column)                     \
	{                                          \
		title, json, COLUMN_##format, cell \
	}
/* Columns of several tables. Of those with one name, titles of times have the unit, too. */
#define TEXT(title, json, n)  COLUMN(title, json, TEXT, n)
#define PLACE(title, json, n) COLUMN(title, json, PLACE, n)
#define THREAD                COLUMN("thread", "thread", THREAD, 0)
#define CPU                   COLUMN("cpu", "cpu", NUMBER, 0)
#define COUNT(title)          COLUMN(title, "count", COUNT, CELL_COUNT)
#define NUMBER(name, cell)    COLUMN(name, name, COUNT, cell)
#define MS(name, cell)        COLUMN(name " ms", name, MS, cell)
#define US(name, cell)        COLUMN(name " us", name, US, cell)
#define TOTAL                 MS("total", CELL_TOTAL)
#define MEAN                  US("mean", CELL_MEAN)
#define P50                   US("p50", CELL_P50)
#define P99                   US("p99", CELL_P99)
#define LONGEST               US("longest", CELL_MAX)
#define WHEN(title)           COLUMN(title, "when", SECONDS, CELL_WHEN)
#define BEGAN                 WHEN("which began at s")
#define SHARE(cell)           COLUMN("%", NULL, SHARE, cell)

/* ---- cpu ---- */

enum { CPU_BUSY = CELL_MORE, CPU_IDLE, CPU_UNKNOWN, CPU_SWITCHES, CPU_PREEMPTED, CPU_MIGRATED };

/* A thread that leaves its CPU without waiting counts as preempted, even if it yields. */
static void
cpus_add(struct report_row *row, const struct report_sample *s)
{
	if (s->kind == SAMPLE_CPU) {
		row->cells[s->thread == NULL ? CPU_UNKNOWN
			   : s->thread->idle ? CPU_IDLE
					     : CPU_BUSY] += s->to_ns - s->from_ns;
		return;
	}
	row->cells[CPU_SWITCHES]++;
	row->cells[CPU_MIGRATED] += s->moved;
	row->cells[CPU_PREEMPTED] += s->preempted;
}

static struct report_table cpus = {
    TABLE("cpu", "cpus", "what each CPU did"),
    .of = OF(CPU) | OF(SWITCH),
    .key = KEY_CPU,
    .add = cpus_add,
    .columns = {CPU, MS("busy", CPU_BUSY), MS("idle", CPU_IDLE), MS("unknown", CPU_UNKNOWN),
		NUMBER("switches", CPU_SWITCHES), NUMBER("preempted", CPU_PREEMPTED),
		COLUMN("came from another CPU", "migrated", COUNT, CPU_MIGRATED)},
    .weight = CPU_BUSY,
};

static struct report_table runs = {
    TABLE("cpu", "runs", "which thread ran where"),
    .of = OF(RUN),
    .key = KEY_THREAD | KEY_CPU,
    .columns = {THREAD, CPU, MS("ran", CELL_TOTAL), SHARE(CELL_TOTAL), COUNT("times"),
		MS("longest", CELL_MAX), BEGAN},
    .weight = CELL_TOTAL,
};

/* ---- thread ---- */

/* A cell for each state, and what rows are sorted by. */
enum { THREAD_STATE = CELL_MORE, THREAD_WEIGHT = CELL_MORE + ACTIVITY_DEAD };

static void
threads_add(struct report_row *row, const struct report_sample *s)
{
	uint64_t ns = s->to_ns - s->from_ns;
	row->cells[THREAD_STATE + s->state] += ns;
	if (s->state != ACTIVITY_UNKNOWN && s->state != ACTIVITY_SLEEPING)
		row->cells[THREAD_WEIGHT] += ns;
}

static struct report_table threads = {
    TABLE("thread", "threads", "what each thread did"),
    .of = OF(STATE),
    .key = KEY_THREAD,
    .add = threads_add,
    .columns = {THREAD, MS("running", THREAD_STATE + ACTIVITY_RUNNING),
		COLUMN("in calls ms", "in_calls", MS, CELL_VALUE),
		MS("runnable", THREAD_STATE + ACTIVITY_RUNNABLE),
		MS("blocked", THREAD_STATE + ACTIVITY_BLOCKED),
		MS("spinning", THREAD_STATE + ACTIVITY_SPINNING),
		MS("sleeping", THREAD_STATE + ACTIVITY_SLEEPING),
		MS("unknown", THREAD_STATE + ACTIVITY_UNKNOWN)},
    .weight = THREAD_WEIGHT,
    .of_threads = true,
};

/* Rows of sleep come last, because a thread sleeps by its own wish. Others weigh this much more. */
#define WAIT_WEIGHT (1ull << 52)

static void
states_add(struct report_row *row, const struct report_sample *s)
{
	if (row->cells[THREAD_WEIGHT] == 0 && s->state != ACTIVITY_SLEEPING)
		row->cells[THREAD_WEIGHT] = WAIT_WEIGHT;
	row->cells[THREAD_WEIGHT] += s->to_ns - s->from_ns;
}

static struct report_table states = {
    TABLE("thread", "states", "what threads waited for: a CPU, a lock, something else"),
    .of = OF(WAIT),
    .key = KEY_THREAD | KEY_TEXT | KEY_MORE,
    .add = states_add,
    .columns = {THREAD, TEXT("state", "state", 0), TEXT("for", "why", 1),
		COLUMN("ms", "total", MS, CELL_TOTAL), COUNT("times"), MS("mean", CELL_MEAN),
		MS("longest", CELL_MAX), BEGAN},
    .weight = THREAD_WEIGHT,
    .of_threads = true,
};

/* ---- syscall ---- */

static struct report_table calls = {
    TABLE("syscall", "calls", "system calls, and the functions of C that make them"),
    .of = OF(CALL),
    .key = KEY_TEXT | KEY_MORE,
    .columns = {TEXT("call", "call", 0), TEXT("known as", "known_as", 1), COUNT("count"),
		NUMBER("errors", CELL_VALUE), TOTAL, MEAN, P50, P99, LONGEST, BEGAN},
    .weight = CELL_TOTAL,
    .histogram = true,
};

static struct report_table callers = {
    TABLE("syscall", "callers", "system calls by thread"),
    .of = OF(CALL),
    .key = KEY_THREAD | KEY_TEXT,
    .columns = {THREAD, TEXT("call", "call", 0), COUNT("count"), NUMBER("errors", CELL_VALUE),
		TOTAL, MEAN, LONGEST, BEGAN},
    .weight = CELL_TOTAL,
};

/* ---- fault ---- */

/* All places in a program share one row. */
static void
place_add(struct report_row *row, const struct report_sample *s)
{
	if (s->user)
		row->texts[1] = "(the program)";
}

static struct report_table faults = {
    TABLE("fault", "faults", "page faults by what served them, thread, and place in the kernel"),
    .of = OF(FAULT),
    .key = KEY_THREAD | KEY_PC | KEY_TEXT,
    .add = place_add,
    .place = PLACE_PC,
    .columns = {TEXT("served by", "kind", 0), THREAD, TEXT("in", "function", 1),
		PLACE("at", "place", 2), COUNT("count"), TOTAL, MEAN, LONGEST, BEGAN},
    .weight = CELL_TOTAL,
};

static struct report_table traps = {
    TABLE("fault", "traps", "exceptions that ended in a signal or a panic"),
    .of = OF(TRAP),
    .key = KEY_THREAD | KEY_PC | KEY_TEXT,
    .add = place_add,
    .place = PLACE_PC,
    .columns = {TEXT("exception", "kind", 0), THREAD, TEXT("in", "function", 1),
		PLACE("at", "place", 2), COUNT("count")},
    .weight = CELL_COUNT,
};

/* ---- irq ---- */

static struct report_table irqs = {
    TABLE("irq", "interrupts", "interrupts by kind and CPU"),
    .of = OF(IRQ),
    .key = KEY_CPU | KEY_TEXT,
    .columns = {TEXT("interrupt", "name", 0), CPU, COUNT("count"), TOTAL, MEAN, P99, LONGEST,
		BEGAN},
    .weight = CELL_TOTAL,
    .histogram = true,
};

static struct report_table timers = {
    TABLE("irq", "timer", "how late timers ran"),
    .of = OF(TIMER),
    .key = KEY_CPU,
    .columns = {CPU, COUNT("count"), MEAN, P50, P99, COLUMN("latest us", "longest", US, CELL_MAX),
		WHEN("was due at s")},
    .weight = CELL_MAX,
    .histogram = true,
};

/* ---- lock ---- */

static struct report_table locks = {
    TABLE("lock", "locks", "waits for each lock"),
    .of = OF(LOCK),
    .key = KEY_TEXT | KEY_MORE,
    .columns = {TEXT("lock", "lock", 0), TEXT("kind", "kind", 1), COUNT("waits"), TOTAL, MEAN, P99,
		LONGEST, BEGAN},
    .weight = CELL_TOTAL,
    .histogram = true,
};

/* The table counts how many waited, and for how long, all together. */
static void
holders_add(struct report_row *row, const struct report_sample *s)
{
	row->cells[CELL_COUNT]--;
	if (s->kind == SAMPLE_TAKEN)
		row->cells[CELL_COUNT] += s->value;
	else
		row->cells[CELL_TOTAL] += s->value * (s->to_ns - s->from_ns);
}

struct report_table report_holders = {
    TABLE("lock", "holders", "who had the lock while others waited, and where it was taken"),
    .of = OF(HELD) | OF(TAKEN),
    .key = KEY_THREAD | KEY_PC | KEY_TEXT,
    .add = holders_add,
    .place = PLACE_CALL,
    .columns = {TEXT("lock", "lock", 0), THREAD, TEXT("in", "function", 1), PLACE("at", "place", 2),
		COUNT("times"), COLUMN("waited ms", "total", MS, CELL_TOTAL), SHARE(CELL_TOTAL)},
    .weight = CELL_TOTAL,
};

/* ---- wakeup ---- */

static struct report_table wakeups = {
    TABLE("wakeup", "threads", "from the wakeup until the thread ran"),
    .of = OF(WAKEUP),
    .key = KEY_THREAD,
    .columns = {THREAD, COUNT("wakeups"), TOTAL, MEAN, P50, P99, LONGEST, WHEN("woken at s")},
    .weight = CELL_MAX,
    .histogram = true,
};

static struct report_table worst = {
    TABLE("wakeup", "worst",
	  "the wakeups that took longest, and the number of the event that ended each"),
    .of = OF(WAKEUP),
    .key = KEY_EACH | KEY_THREAD | KEY_CPU | KEY_TEXT | KEY_MORE | KEY_COPY,
    .columns = {US("took", CELL_MAX), THREAD, WHEN("woken at s"), TEXT("woken by", "waker", 0),
		COLUMN("ran on cpu", "cpu", NUMBER, 0), TEXT("after", "before", 1),
		COLUMN("event", "index", COUNT, CELL_VALUE)},
    .weight = CELL_MAX,
    .worst = true,
};

/* ---- net ---- */

enum { NET_SENT = CELL_MORE, NET_SEGMENTS, NET_AGAIN, NET_RECEIVED, NET_SEGMENTS_IN };

/* Counts only samples that are round trips. */
static void
connections_add(struct report_row *row, const struct report_sample *s)
{
	if (s->kind == SAMPLE_ROUND_TRIP)
		return;
	row->cells[CELL_COUNT]--;
	row->cells[s->kind == SAMPLE_SENT ? NET_SENT : NET_RECEIVED] += s->value;
	row->cells[s->kind == SAMPLE_SENT ? NET_SEGMENTS : NET_SEGMENTS_IN]++;
	row->cells[NET_AGAIN] += s->moved;
}

struct report_table report_connections = {
    TABLE("net", "connections", "connections of TCP, one row for each end on this machine"),
    .of = OF(SENT) | OF(RECEIVED) | OF(ROUND_TRIP),
    .key = KEY_TEXT | KEY_MORE | KEY_COPY,
    .add = connections_add,
    .columns = {TEXT("local", "local", 0), TEXT("remote", "remote", 1),
		COLUMN("bytes sent", "sent", COUNT, NET_SENT),
		COLUMN("in segments", "segments", COUNT, NET_SEGMENTS),
		COLUMN("sent again", "again", COUNT, NET_AGAIN),
		COLUMN("bytes received", "received", COUNT, NET_RECEIVED),
		COLUMN("in segments", "segments_received", COUNT, NET_SEGMENTS_IN),
		COLUMN("round trips", "round_trips", COUNT, CELL_COUNT), MEAN, LONGEST},
    .weight = NET_SENT,
};

/* ---- io ---- */

enum { IO_QUEUED = CELL_MORE };

static void
bios_add(struct report_row *row, const struct report_sample *s)
{
	row->cells[IO_QUEUED] += s->queued_ns;
}

/* Columns about bios that all three tables show. */
#define BIO_COLUMNS                                                          \
	COUNT("pieces"), COLUMN("bytes", "bytes", COUNT, CELL_VALUE), TOTAL, \
	    MS("queued", IO_QUEUED), MEAN, P50, P99, LONGEST, BEGAN

struct report_table report_devices = {
    TABLE("io", "devices",
	  "what disks read and wrote, in pieces of files; queued until the driver had them"),
    .of = OF(BIO),
    .key = KEY_TEXT | KEY_MORE | KEY_COPY,
    .add = bios_add,
    .columns = {TEXT("device", "device", 0), TEXT("what", "rwbs", 1), BIO_COLUMNS},
    .weight = CELL_TOTAL,
    .histogram = true,
    .overlaps = true,
};

static struct report_table io_files = {
    TABLE("io", "files", "the same by file; <unknown> is what file systems keep of themselves"),
    .of = OF(BIO_FILE),
    .key = KEY_TEXT | KEY_MORE | KEY_COPY,
    .add = bios_add,
    .columns = {TEXT("file", "file", 0), TEXT("device", "device", 1), BIO_COLUMNS},
    .weight = CELL_TOTAL,
    .histogram = true,
    .overlaps = true,
};

static struct report_table io_threads = {
    TABLE("io", "threads", "the same by the thread that asked for it"),
    .of = OF(BIO),
    .key = KEY_THREAD,
    .add = bios_add,
    .columns = {THREAD, BIO_COLUMNS},
    .weight = CELL_TOTAL,
    .histogram = true,
    .overlaps = true,
};

/* ---- profile ---- */

static struct report_table samples = {
    TABLE("profile", "functions",
	  "functions of the kernel, and programs, that timer interrupts found running"),
    .of = OF(TIMED),
    .key = KEY_TEXT | KEY_COPY,
    .columns = {TEXT("function", "function", 0), COUNT("samples"), SHARE(CELL_COUNT)},
    .weight = CELL_COUNT,
};

static struct report_table places = {
    TABLE("profile", "places", "the same by line of the kernel"),
    .of = OF(TIMED_AT),
    .key = KEY_TEXT | KEY_MORE | KEY_COPY,
    .columns = {TEXT("function", "function", 0), PLACE("line", "place", 1), COUNT("samples"),
		SHARE(CELL_COUNT)},
    .weight = CELL_COUNT,
};

/* ---- function ---- */

static struct report_table functions = {
    TABLE("function", "functions",
	  "functions of the kernel; self leaves out the traced functions that they call"),
    .of = OF(FUNCTION),
    .key = KEY_TEXT,
    .columns = {TEXT("function", "function", 0), COUNT("count"), TOTAL, MS("self", CELL_VALUE),
		MEAN, P50, P99, LONGEST, BEGAN},
    .weight = CELL_VALUE,
    .histogram = true,
    .overlaps = true,
};

/* ---- events ---- */

struct report_table report_classes = {
    TABLE("events", "classes", "events by class; an event of several classes counts in each"),
    .columns = {TEXT("class", "class", 0), COUNT("events")},
    .weight = CELL_COUNT,
    .overlaps = true,
};

struct report_table report_sites = {
    TABLE("events", "sites", "events by trace point"),
    .columns = {COUNT("events"), SHARE(CELL_COUNT), PLACE("file and line", "place", 0),
		TEXT("function", "function", 1), TEXT("format", "fmt", 2)},
    .weight = CELL_COUNT,
};

struct report_table report_event_cpus = {
    TABLE("events", "cpus", "events by CPU, and what was lost"),
    .columns = {CPU, COUNT("events"), NUMBER("overwritten", CELL_LOST + KTR_GAP_OVERWRITTEN),
		NUMBER("corrupt", CELL_LOST + KTR_GAP_CORRUPT),
		NUMBER("cleared", CELL_LOST + KTR_GAP_CLEARED),
		NUMBER("damaged", CELL_LOST + KTR_GAP_DAMAGED),
		NUMBER("left", CELL_LOST + KTR_GAP_LEFT)},
    .weight = CELL_COUNT,
};

struct report_table *const report_tables[] = {&cpus,
					      &runs,
					      &threads,
					      &states,
					      &calls,
					      &callers,
					      &faults,
					      &traps,
					      &irqs,
					      &timers,
					      &locks,
					      &report_holders,
					      &wakeups,
					      &worst,
					      &report_connections,
					      &report_devices,
					      &io_files,
					      &io_threads,
					      &samples,
					      &places,
					      &functions,
					      &report_classes,
					      &report_sites,
					      &report_event_cpus,
					      NULL};
