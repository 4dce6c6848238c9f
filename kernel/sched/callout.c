/*
 * callout.c - per-CPU heaps of callouts, by deadline, run from the timer interrupt.
 *
 * Locking: the lock of the CPU's queue. `running` is the callout whose function the CPU is calling;
 * the lock is not held meanwhile.
 */
#include "kernel/sched/callout.h"

#include "arch/irq.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/list.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "ktr/intern.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(callout_execute);
SDT_PROVIDER_DECLARE(timer);
SDT_PROBE_DEFINE_TEXT(timer, , , timer_start, "timer_start",
		      ": timer=%p function=%p expires=%lu timeout=%ld", 4, "struct callout *",
		      "void *", "uint64_t", "int64_t");
SDT_PROBE_DEFINE_TEXT(timer, , , timer_cancel, "timer_cancel", ": timer=%p", 1, "struct callout *");
SDT_PROBE_DEFINE_TEXT(timer, , , timer_expire_entry, "timer_expire_entry",
		      ": timer=%p function=%p now=%lu", 3, "struct callout *", "void *",
		      "uint64_t");
SDT_PROBE_DEFINE_TEXT(timer, , , timer_expire_exit, "timer_expire_exit", ": timer=%p", 1,
		      "struct callout *");
SDT_PROBE_DEFINE_TEXT(callout_execute, , , callout_start, "callout-start", ": callout %p func %p",
		      2, "struct callout *", "void (*)(void *)");
SDT_PROBE_DEFINE_TEXT(callout_execute, , , callout_end, "callout-end", ": callout %p func %p", 2,
		      "struct callout *", "void (*)(void *)");

#define AT_ONCE 64 /* callouts that one interrupt runs; other interrupts come before the rest */

static struct queue {
	struct spinlock lock;
	struct leftist *first;   /* NULL: none is pending */
	struct callout *running; /* atomic; cleared with release after the function returned */
	const char *ident;       /* handle of "callwheel cpu n" */
} queues[MAX_CPUS];

void
callout_init_cpu(unsigned cpu)
{
	char name[24];

	snprintf(name, sizeof(name), "callwheel cpu %u", cpu);
	queues[cpu].ident = ktr_intern_keep(name);
	spin_init(&queues[cpu].lock, "callout");
}

void
callout_init(struct callout *c, void (*fn)(void *), void *arg)
{
	c->fn = fn;
	c->arg = arg;
	c->deadline_ns = 0;
	c->cpu = -1;
}

/* Takes c off its queue if it is pending. */
static bool
callout_remove(struct callout *c)
{
	for (;;) {
		int cpu = __atomic_load_n(&c->cpu, __ATOMIC_ACQUIRE);
		bool pending;

		if (cpu < 0)
			return false;
		spin_lock(&queues[cpu].lock);
		pending = c->cpu == cpu;
		if (pending) {
			leftist_remove(&queues[cpu].first, &c->node);
			__atomic_store_n(&c->cpu, -1, __ATOMIC_RELEASE);
		}
		spin_unlock(&queues[cpu].lock);
		if (pending)
			return true;
	}
}

void
callout_set(struct callout *c, uint64_t deadline_ns)
{
	struct queue *q;

	callout_remove(c);
	irq_push();
	q = &queues[arch_cpu()];
	spin_lock(&q->lock);
	c->deadline_ns = deadline_ns;
	c->node.at = deadline_ns < INT64_MAX ? deadline_ns : INT64_MAX;
	leftist_insert(&q->first, &c->node);
	__atomic_store_n(&c->cpu, (int)arch_cpu(), __ATOMIC_RELEASE);
	SDT_CTR3(timer, , , timer_start,
		 SDT_ARGS4(c, c->fn, deadline_ns, (int64_t)(deadline_ns - clock_ns())), KTR_CALLOUT,
		 "callout set: func %p arg %p deadline %lu", c->fn, c->arg, deadline_ns);
	if (q->first == &c->node)
		timer_arm(deadline_ns);
	spin_unlock(&q->lock);
	irq_pop();
}

bool
callout_stop(struct callout *c)
{
	bool stopped = callout_remove(c);

	SDT_CTR3(timer, , , timer_cancel, SDT_ARGS1(c), KTR_CALLOUT,
		 "callout stop: func %p arg %p pending %d", c->fn, c->arg, stopped);
	do { /* what runs may have set it again */
		for (unsigned i = 0; i < ncpus; i++)
			while (__atomic_load_n(&queues[i].running, __ATOMIC_ACQUIRE) == c)
				arch_relax();
	} while (callout_remove(c));
	return stopped;
}

uint64_t
callout_run(uint64_t now_ns)
{
	struct queue *q = &queues[arch_cpu()];
	uint64_t next = UINT64_MAX;
	unsigned left = AT_ONCE;

	spin_lock(&q->lock);
	while (q->first != NULL) {
		struct callout *c = container_of(q->first, struct callout, node);
		void (*fn)(void *) = c->fn;
		void *arg = c->arg;

		if (c->deadline_ns > now_ns || left-- == 0) {
			next = c->deadline_ns;
			break;
		}
		leftist_remove(&q->first, &c->node);
		__atomic_store_n(&q->running, c, __ATOMIC_RELAXED);
		__atomic_store_n(&c->cpu, -1, __ATOMIC_RELEASE);
		SDT_CTR5(callout_execute, , , callout_start, SDT_ARGS2(c, fn), KTR_SCHED,
			 KTR_STATE_FORMAT("callout", "func:%p, arg:%p, direct:%d"), q->ident,
			 "running", fn, arg, 1);
		spin_unlock(&q->lock);
		SDT_PROBE3(timer, , , timer_expire_entry, c, fn, now_ns);
		fn(arg);
		SDT_PROBE1(timer, , , timer_expire_exit, c);
		spin_lock(&q->lock);
		SDT_CTR2(callout_execute, , , callout_end, SDT_ARGS2(c, fn), KTR_SCHED,
			 KTR_STATE_FORMAT("callout", "none"), q->ident, "idle");
		/* release: pairs with the acquire in callout_stop() */
		__atomic_store_n(&q->running, NULL, __ATOMIC_RELEASE);
	}
	spin_unlock(&q->lock);
	return next;
}

/* A CPU that was stopped while it changed the heap may have left a circle. */
#define CALLOUT_LOOKS 65536

static bool
callout_precedes(const struct callout *a, const struct callout *b)
{
	return a->node.at != b->node.at ? a->node.at < b->node.at : a < b;
}

const struct callout *
callout_next_unlocked(unsigned cpu, const struct callout *c)
{
	const struct callout *next = NULL;
	unsigned looks = CALLOUT_LOOKS;

	for (struct leftist *l = queues[cpu].first; l != NULL && looks > 0; l = leftist_next(l)) {
		const struct callout *other = container_of(l, struct callout, node);

		looks--;
		if ((c == NULL || callout_precedes(c, other)) &&
		    (next == NULL || callout_precedes(other, next)))
			next = other;
	}
	return next;
}
