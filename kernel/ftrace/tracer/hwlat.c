/*
 * hwlat.c - the tracer `hwlat`: looks for moments in which a CPU stands still although its
 * interrupts are off (Documentation/trace/hwlat_detector.rst). A host takes such time.
 *
 * Each CPU has a thread, which reads the clock for `width` in each window of time, with interrupts
 * off. With round-robin only one does, in turn; with the mode `none`, always the first. Locking:
 * ftrace_lock; the threads read single words.
 */
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "ktr/ring.h"

#define REST_NS 10000000u  /* others have the CPU for at least so long */
#define TELL_NS 100000000u /* how often the thread says that it has not hung */
#define US_MAX  60000000u

TRACER_SITE(hwlat_site, 5, "ftrace hwlat: number %lu inner %lu outer %lu time %lu count %lu");

/* Atomic: files of hwlat_detector/. */
static uint64_t window_us = 1000000, width_us = 500000;
enum mode { NONE, ROUND_ROBIN, PER_CPU };
static const char *const modes[] = {"none", "round-robin", "per-cpu"};
static unsigned mode = ROUND_ROBIN; /* atomic */

static uint64_t sequence; /* atomic */
static uint64_t begun_ns;
static uint64_t thresh_before;       /* tracing_thresh, to which it returns */
static uint64_t thresh_last = 10000; /* … what it was meanwhile, if it was 0; as in Linux */

/* Looks for holes for so long, or until another CPU ends the tracer. Interrupts off. */
static void
hwlat_sample(const struct tracer_thread *me, uint64_t width_ns, uint64_t thresh_ns)
{
	uint64_t begin = clock_ns(), last = begin, told = begin, inner = 0, outer = 0;
	uint64_t found_ns = 0, count = 0;

	while (last - begin < width_ns && tracer_thread_runs(me)) {
		if (last - told >= TELL_NS) { /* for the watchdog, which looks for ticks */
			__atomic_add_fetch(&this_pcpu()->late, 1, __ATOMIC_RELAXED);
			told = last = clock_ns();
		}
		uint64_t a = clock_ns(), b = clock_ns();

		if (a - last > thresh_ns || b - a > thresh_ns) {
			found_ns = count++ == 0 ? a : found_ns;
			outer = a - last > outer ? a - last : outer;
			inner = b - a > inner ? b - a : inner;
		}
		last = b;
	}
	if (count == 0)
		return;
	uint64_t n = __atomic_add_fetch(&sequence, 1, __ATOMIC_RELAXED);

	instance_record(&instance_top, &hwlat_site,
			(uint64_t[KTR_MAXARGS]){n, inner / 1000, outer / 1000,
						clock_real_ns(found_ns), count});
}

static void
hwlat_run(struct tracer_thread *me)
{
	for (uint64_t turn = 0; tracer_thread_runs(me);) {
		uint64_t window = __atomic_load_n(&window_us, __ATOMIC_RELAXED) * 1000;
		uint64_t width = __atomic_load_n(&width_us, __ATOMIC_RELAXED) * 1000, now, next;
		uint64_t thresh = __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED);
		unsigned how = __atomic_load_n(&mode, __ATOMIC_RELAXED);

		if (how == PER_CPU || (how == ROUND_ROBIN ? turn % ncpus : 0) == me->cpu) {
			uint64_t irq = arch_irq_save();

			hwlat_sample(me, width, thresh);
			arch_irq_restore(irq);
		}
		/* Windows that have passed meanwhile are left out, so that others have the CPU. */
		now = clock_ns();
		turn = (now - begun_ns) / window + 1;
		next = begun_ns + turn * window;
		tracer_thread_sleep(me, next > now + REST_NS ? next : now + REST_NS);
	}
}

static struct tracer_threads threads = {.name = "hwlat",
					.names = "hwlat",
					.prio = PRIO_KERN,
					.run = hwlat_run};

int
hwlat_start(void)
{
	int error;

	begun_ns = clock_ns();
	thresh_before = tracer_thresh_ns;
	if (thresh_before == 0)
		__atomic_store_n(&tracer_thresh_ns, thresh_last, __ATOMIC_RELAXED);
	sequence = 0;
	error = tracer_threads_start(&threads, UINT64_MAX);
	if (error != 0)
		hwlat_stop();
	return error;
}

void
hwlat_stop(void)
{
	tracer_threads_stop(&threads);
	thresh_last = tracer_thresh_ns;
	__atomic_store_n(&tracer_thresh_ns, thresh_before, __ATOMIC_RELAXED);
}

bool
hwlat_print(struct sbuf *out, const struct ktr_entry *e)
{
	if (ktr_site_get(e->site) != &hwlat_site)
		return false;
	sbuf_printf(out, "#%-5lu inner/outer(us): %4lu/%-5lu ts:%lu.%09lu count:%lu", e->args[0],
		    e->args[1], e->args[2], e->args[3] / 1000000000, e->args[3] % 1000000000,
		    e->args[4]);
	return true;
}

/* ---- hwlat_detector/ ---- */

static void
mode_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = 0; n < sizeof(modes) / sizeof(modes[0]); n++)
		sbuf_printf(out, mode == n ? "%s[%s]" : "%s%s", n > 0 ? " " : "", modes[n]);
	sbuf_putc(out, '\n');
}

static int
mode_store(struct instance *i, uintptr_t arg, char *text)
{
	const char *word = tracefs_word(&text);

	for (unsigned n = 0; n < sizeof(modes) / sizeof(modes[0]); n++)
		if (word != NULL && strcmp(word, modes[n]) == 0) {
			__atomic_store_n(&mode, n, __ATOMIC_RELAXED);
			return 0;
		}
	return -EINVAL;
}

static void
hwlat_fill(struct vnode *dir)
{
	static const struct tracefs_number numbers[] = {
	    TRACEFS_NUMBER("window", &window_us, 1, 1, US_MAX, .above = &width_us, .apart = 1),
	    TRACEFS_NUMBER("width", &width_us, 1, 1, US_MAX, .below = &window_us, .apart = 1),
	};
	static const struct tracefs_file how =
	    TRACEFS_TEXT(NULL, 0640, mode_show, mode_store, NULL);

	tracefs_add_numbers(dir, numbers, sizeof(numbers) / sizeof(numbers[0]));
	tracefs_add(dir, &how, "mode", 0);
}

const struct tracefs_file hwlat_dir = {.name = "hwlat_detector", .mode = 0750, .fill = hwlat_fill};
