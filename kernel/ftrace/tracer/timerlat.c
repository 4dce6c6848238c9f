/*
 * timerlat.c - the tracer `timerlat`: how late a timer's interrupt comes, and the thread that it
 * wakes (Documentation/trace/timerlat-tracer.rst). Each CPU has a real-time thread, which waits for
 * its timer once a period. osnoise.c starts and ends the threads, and says where they record.
 *
 * Locking: none. Thread and timer run on that CPU, one after the other.
 */
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/unwind.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

#define FRAMES 24u

TRACER_SITE(timerlat_site, 3, "ftrace timerlat: number %lu thread %lu latency %lu");

static struct wait {
	struct tracer_thread *thread;
	struct callout callout;
	uint64_t number, due_ns;
	unsigned nframes;
	uint64_t frames[FRAMES]; /* return addresses of what the timer interrupted, if wanted */
} waits[MAX_CPUS];

static void
timerlat_tell_stack(struct instance *i, const void *arg)
{
	const struct wait *w = arg;

	record_frames(i, w->frames, w->nframes);
}

/* Records how late it is. */
static void
timerlat_tell(const struct wait *w, bool by_thread)
{
	uint64_t ns = clock_ns() - w->due_ns;

	bool too_late = osnoise_exceeds(by_thread ? OSNOISE_STOP_TOTAL : OSNOISE_STOP, ns);

	osnoise_record(&timerlat_site, (uint64_t[KTR_MAXARGS]){w->number, by_thread, ns}, false);
	if (by_thread && w->nframes > 0 && osnoise_exceeds(OSNOISE_PRINT_STACK, ns))
		osnoise_each(timerlat_tell_stack, w);
	if (too_late)
		osnoise_record(NULL, NULL, true);
}

static void
timerlat_keep_stack(struct wait *w)
{
	struct unwind_frame at = {.pc = (uintptr_t)timerlat_keep_stack,
				  .fp = (uintptr_t)__builtin_frame_address(0)};

	w->nframes = unwind_list(at, (uintptr_t)curthread()->kstack, KSTACK_SIZE, dtrace_load_words,
				 w->frames, FRAMES);
}

static void
timerlat_fire(void *arg)
{
	struct wait *w = arg;

	timerlat_tell(w, false);
	w->nframes = 0;
	if (osnoise_setting_ns(OSNOISE_PRINT_STACK) != 0)
		timerlat_keep_stack(w);
	tracer_thread_wake(w->thread);
}

void
timerlat_run(struct tracer_thread *me)
{
	struct wait *w = &waits[me->cpu];

	*w = (struct wait){.thread = me, .due_ns = clock_ns()};
	callout_init(&w->callout, timerlat_fire, w);
	do {
		uint64_t period_ns = osnoise_setting_ns(OSNOISE_TIMERLAT_PERIOD);
		uint64_t now = clock_ns();

		/* Periods that have passed are left out. */
		w->due_ns += period_ns;
		if (w->due_ns <= now)
			w->due_ns += ((now - w->due_ns) / period_ns + 1) * period_ns;
		w->number++;
		callout_set(&w->callout, w->due_ns);
		if (tracer_thread_sleep(me, DEADLINE_NEVER))
			timerlat_tell(w, true);
	} while (tracer_thread_runs(me));
	callout_stop(&w->callout);
}

void
timerlat_print_head(struct sbuf *out)
{
	sbuf_puts(out, "#                                _-----=> irqs-off\n"
		       "#                               / _----=> need-resched\n"
		       "#                              | / _---=> hardirq/softirq\n"
		       "#                              || / _--=> preempt-depth\n"
		       "#                              || /\n"
		       "#                              ||||             ACTIVATION\n"
		       "#           TASK-PID      CPU# ||||   TIMESTAMP    ID            CONTEXT"
		       "                LATENCY\n"
		       "#              | |         |   ||||      |         |                  |"
		       "                       |\n");
}

bool
timerlat_print(struct sbuf *out, const struct ktr_entry *e)
{
	if (ktr_site_get(e->site) != &timerlat_site)
		return false;
	sbuf_printf(out, "#%-5lu context %6s timer_latency %9lu ns", e->args[0],
		    e->args[1] != 0 ? "thread" : "irq", e->args[2]);
	return true;
}
