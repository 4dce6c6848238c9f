/*
 * osnoise.c - the tracer `osnoise`: what takes time from a program that never waits
 * (Documentation/trace/osnoise-tracer.rst). Each CPU has a thread, as important as a program, that
 * reads the clock for `runtime` of each `period`. A time between two readings above tracing_thresh,
 * or 5 us, is noise; it is the host's (`hw`) if no interrupt and no other thread came in between.
 * An NMI counts as the host's. There are no softirqs.
 *
 * Several instances may have the tracer; the threads are the same, and record in each. Locking:
 * ftrace_lock for start, stop and the files; threads and the hook read single words. A CPU's hook
 * runs with interrupts off and counts for the thread of that CPU.
 */
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/sched.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/decimal.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "ktr/port.h"
#include "ktr/sdt.h"

#define THRESH_NS   5000u /* if tracing_thresh is 0, as in Linux */
#define INSTANCES   8u
#define US_MAX      60000000u
#define TIMERLAT_RT 95 /* as in Linux */

SDT_PROVIDER_DEFINE(osnoise);
SDT_PROBE_DEFINE_TEXT(osnoise, , , sample_threshold, "sample_threshold",
		      ": start %{start}lu duration %{duration}lu ns interference %{interference}lu",
		      3, "uint64_t", "uint64_t", "uint64_t");

TRACER_SITE(osnoise_site, 6,
	    "ftrace osnoise: runtime %lu noise %lu max %lu hw %lu irq %lu thread %lu");

/* In microseconds; atomic. */
static uint64_t settings[OSNOISE_SETTINGS] = {
    [OSNOISE_PERIOD] = 1000000, [OSNOISE_RUNTIME] = 1000000, [OSNOISE_TIMERLAT_PERIOD] = 1000};
static uint64_t cpus_wanted = UINT64_MAX;

static struct instance *recording[INSTANCES]; /* atomic; who records */
static unsigned users;                        /* … how many */
static enum tracer current;                   /* of them */
static struct tracer_threads threads;
static unsigned owner;
static const struct ktr_site *handler_entry, *handler_exit, *switched;

/* What took time from a CPU's thread. */
static struct noise {
	uint32_t tid;          /* atomic: the thread that reads the clock, while it does; 0: none */
	unsigned handlers;     /* interrupt handlers that run, within one another */
	uint64_t irqs, others; /* atomic: how many came while it read */
} noises[MAX_CPUS];

/* ---- the hook ---- */

static void
osnoise_fire(const struct ktr_firing *f)
{
	struct noise *n = &noises[arch_cpu()];
	uint32_t tid = __atomic_load_n(&n->tid, __ATOMIC_RELAXED);

	if (f->site == handler_entry) {
		n->handlers++;
	} else if (f->site == handler_exit) {
		if (n->handlers > 0 && --n->handlers == 0 && tid != 0)
			__atomic_store_n(&n->irqs, n->irqs + 1, __ATOMIC_RELAXED);
	} else if (tid != 0 && f->args[1] != tid && f->args[1] != 0) {
		/* another thread goes; not the idle one */
		__atomic_store_n(&n->others, n->others + 1, __ATOMIC_RELAXED);
	}
}

static bool
osnoise_site_wanted(const struct ktr_site *site, void *arg)
{
	return site == handler_entry || site == handler_exit || site == switched;
}

/* ---- the threads ---- */

void
osnoise_each(void (*fn)(struct instance *i, const void *arg), const void *arg)
{
	uint64_t irq = arch_irq_save(); /* an instance may go: see osnoise_stop() */

	for (unsigned k = 0; k < INSTANCES; k++) {
		struct instance *i = __atomic_load_n(&recording[k], __ATOMIC_ACQUIRE);

		if (i != NULL)
			fn(i, arg);
	}
	arch_irq_restore(irq);
}

struct told {
	const struct ktr_site *site;
	const uint64_t *args;
	bool stop;
};

static void
osnoise_tell(struct instance *i, const void *arg)
{
	const struct told *t = arg;

	if (t->site != NULL)
		instance_record(i, t->site, t->args);
	if (t->stop)
		instance_switch(i, false);
}

void
osnoise_record(const struct ktr_site *site, const uint64_t args[KTR_MAXARGS], bool stop)
{
	osnoise_each(osnoise_tell, &(struct told){site, args, stop});
}

uint64_t
osnoise_setting_ns(enum osnoise_setting setting)
{
	return __atomic_load_n(&settings[setting], __ATOMIC_RELAXED) * 1000;
}

bool
osnoise_exceeds(enum osnoise_setting setting, uint64_t ns)
{
	uint64_t limit = osnoise_setting_ns(setting);

	return limit != 0 && ns > limit;
}

/* The time, and what had come until then. */
static uint64_t
osnoise_read(const struct noise *n, uint64_t *irqs, uint64_t *others)
{
	uint64_t now;

	do {
		*irqs = __atomic_load_n(&n->irqs, __ATOMIC_RELAXED);
		*others = __atomic_load_n(&n->others, __ATOMIC_RELAXED);
		now = clock_ns();
	} while (*irqs != __atomic_load_n(&n->irqs, __ATOMIC_RELAXED) ||
		 *others != __atomic_load_n(&n->others, __ATOMIC_RELAXED));
	return now;
}

/* Reads the clock for that long, and records what it found. */
static void
osnoise_sample(const struct tracer_thread *me, struct noise *n, uint64_t runtime_ns)
{
	uint64_t thresh = __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED);
	uint64_t first_irqs, first_others, irqs, others, noise = 0, max = 0, hw = 0;

	thresh = thresh != 0 ? thresh : THRESH_NS;
	__atomic_store_n(&n->tid, curthread()->tid, __ATOMIC_RELAXED);
	uint64_t begin = osnoise_read(n, &first_irqs, &first_others), last = begin;
	uint64_t seen = first_irqs + first_others;

	do {
		uint64_t now = osnoise_read(n, &irqs, &others), gap = now - last;

		if (gap > thresh) {
			uint64_t interference = irqs + others - seen;

			noise += gap;
			max = gap > max ? gap : max;
			hw += interference == 0;
			SDT_PROBE3(osnoise, , , sample_threshold, last, gap, interference);
			if (osnoise_exceeds(OSNOISE_STOP, gap))
				osnoise_record(NULL, NULL, true);
			now = osnoise_read(n, &irqs, &others); /* telling it is no noise */
		}
		seen = irqs + others;
		last = now;
	} while (last - begin < runtime_ns && tracer_thread_runs(me));
	__atomic_store_n(&n->tid, 0, __ATOMIC_RELAXED);
	osnoise_record(&osnoise_site,
		       (uint64_t[KTR_MAXARGS]){(last - begin) / 1000, noise / 1000, max / 1000, hw,
					       irqs - first_irqs, others - first_others},
		       osnoise_exceeds(OSNOISE_STOP_TOTAL, noise));
}

static void
osnoise_run(struct tracer_thread *me)
{
	while (tracer_thread_runs(me)) {
		uint64_t begin = clock_ns();

		osnoise_sample(me, &noises[me->cpu], osnoise_setting_ns(OSNOISE_RUNTIME));
		tracer_thread_sleep(me, begin + osnoise_setting_ns(OSNOISE_PERIOD));
	}
}

/* ---- the tracers ---- */

static void
osnoise_end(void)
{
	tracer_threads_stop(&threads);
	instance_disown(&owner);
}

static int
osnoise_begin(void)
{
	bool noise = current == TRACER_OSNOISE;
	int error, number = noise ? instance_owner(&instance_top, "osnoise", osnoise_fire) : 0;

	if (number < 0)
		return -EBUSY;
	owner = (unsigned)number;
	for (unsigned cpu = 0; cpu < ncpus; cpu++)
		noises[cpu].handlers = 0;
	handler_entry = event_find("irq", "irq_handler_entry");
	handler_exit = event_find("irq", "irq_handler_exit");
	switched = event_find("sched", "sched_switch");
	if (noise)
		ktr_select_all(owner, osnoise_site_wanted, NULL);
	threads.name = noise ? "osnoise" : "timerlat";
	threads.names = noise ? "osnoise/%u" : "timerlat/%u";
	threads.prio = noise ? PRIO_USER : PRIO_RT - TIMERLAT_RT;
	threads.run = noise ? osnoise_run : timerlat_run;
	error = tracer_threads_start(&threads, cpus_wanted);
	if (error != 0)
		osnoise_end();
	return error;
}

int
osnoise_start(struct instance *i, enum tracer t)
{
	if (users > 0 && t != current)
		return -EBUSY;
	current = t;
	for (unsigned k = 0; k < INSTANCES; k++) {
		int error;

		if (recording[k] != NULL)
			continue;
		error = users == 0 ? osnoise_begin() : 0;
		if (error == 0) {
			users++;
			__atomic_store_n(&recording[k], i, __ATOMIC_RELEASE);
		}
		return error;
	}
	return -EBUSY;
}

void
osnoise_stop(struct instance *i)
{
	for (unsigned k = 0; k < INSTANCES; k++)
		if (recording[k] == i)
			__atomic_store_n(&recording[k], NULL, __ATOMIC_RELEASE);
	ktr_port_sync(); /* threads record with interrupts off */
	if (--users == 0)
		osnoise_end();
}

void
osnoise_print_head(struct sbuf *out)
{
	sbuf_puts(
	    out,
	    "#                                _-----=> irqs-off\n"
	    "#                               / _----=> need-resched\n"
	    "#                              | / _---=> hardirq/softirq\n"
	    "#                              || / _--=> preempt-depth                            MAX\n"
	    "#                              || /                                             SINGLE   "
	    "   Interference counters:\n"
	    "#                              ||||               RUNTIME      NOISE  %% OF CPU  NOISE   "
	    " +-----------------------------+\n"
	    "#           TASK-PID      CPU# ||||   TIMESTAMP    IN US       IN US  AVAILABLE  IN US   "
	    "  HW    NMI    IRQ   SIRQ THREAD\n"
	    "#              | |         |   ||||      |           |             |    |            |   "
	    "   |      |      |      |      |\n");
}

bool
osnoise_print(struct sbuf *out, const struct ktr_entry *e)
{
	uint64_t runtime = e->args[0], noise = e->args[1], share;

	if (ktr_site_get(e->site) != &osnoise_site)
		return false;
	/* what is left, in thousandths of a percent */
	share = runtime > noise ? (runtime - noise) * 10000000 / runtime : 0;
	sbuf_printf(out, "%lu %10lu %3lu.%05lu %7lu %6lu %6u %6lu %6u %6lu", runtime, noise,
		    share / 100000, share % 100000, e->args[2], e->args[3], 0u, e->args[4], 0u,
		    e->args[5]);
	return true;
}

/* ---- osnoise/ ---- */

/* As Linux's cpulist: 0-2,5. */
static void
cpus_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_bits(out, cpus_wanted, ncpus);
	sbuf_putc(out, '\n');
}

/* Takes a number from the text. */
static bool
cpu_number(char **text, unsigned *cpu)
{
	uint64_t n;
	bool found = take_decimal((const char **)text, ncpus - 1, &n);

	*cpu = (unsigned)n;
	return found;
}

/* The threads are made when the tracer starts. */
static int
cpus_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t wanted = 0;
	char *p = tracefs_word(&text);

	if (p == NULL)
		return -EINVAL;
	if (users > 0)
		return -EBUSY;
	do {
		unsigned first, last;

		if (!cpu_number(&p, &first))
			return -EINVAL;
		last = first;
		if ((*p == '-' && (p++, !cpu_number(&p, &last))) || last < first)
			return -EINVAL;
		for (; first <= last; first++)
			wanted |= 1ul << first;
	} while (*p == ',' && *++p != '\0');
	if (*p != '\0' || wanted == 0)
		return -EINVAL;
	cpus_wanted = wanted;
	return 0;
}

static void
osnoise_fill(struct vnode *dir)
{
	static const struct tracefs_file cpus =
	    TRACEFS_TEXT(NULL, 0640, cpus_show, cpus_store, NULL);
	static const struct tracefs_number numbers[] = {
	    TRACEFS_NUMBER("period_us", &settings[OSNOISE_PERIOD], 1, 1, US_MAX,
			   .above = &settings[OSNOISE_RUNTIME]),
	    TRACEFS_NUMBER("runtime_us", &settings[OSNOISE_RUNTIME], 1, 1, US_MAX,
			   .below = &settings[OSNOISE_PERIOD]),
	    TRACEFS_NUMBER("timerlat_period_us", &settings[OSNOISE_TIMERLAT_PERIOD], 1, 100,
			   1000000),
	    TRACEFS_NUMBER("print_stack", &settings[OSNOISE_PRINT_STACK], 1, 0, UINT64_MAX / 1000),
	    TRACEFS_NUMBER("stop_tracing_us", &settings[OSNOISE_STOP], 1, 0, UINT64_MAX / 1000),
	    TRACEFS_NUMBER("stop_tracing_total_us", &settings[OSNOISE_STOP_TOTAL], 1, 0,
			   UINT64_MAX / 1000),
	};

	tracefs_add_numbers(dir, numbers, sizeof(numbers) / sizeof(numbers[0]));
	tracefs_add(dir, &cpus, "cpus", 0);
}

const struct tracefs_file osnoise_dir = {.name = "osnoise", .mode = 0750, .fill = osnoise_fill};
