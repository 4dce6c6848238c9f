/*
 * sleepq.c - hashed sleep queues.
 *
 * A thread that goes to sleep puts itself on the queue under the queue's lock. Before it releases
 * that lock it takes its CPU's run-queue lock, which it holds until it is switched out. So
 * wake_up_process(), which takes the run-queue lock first, always finds it switched out. Only one
 * waker can take a sleeper off its queue.
 *
 * Locking: the queue lock is taken after the caller's lock and before run-queue locks. thread.chan
 * is written under the queue lock. sleepq_interrupt() reads it without the lock, and reads it again
 * under the lock.
 */
#include "kernel/sched/sleepq.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/list.h"
#include "kernel/lib/panic.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/stop.h"
#include "ktr/ktr.h"

#define QUEUES 64
#define BATCH  16u /* threads that are woken with interrupts off */

static struct sleepq {
	struct spinlock lock;
	struct list threads;
} queues[QUEUES];

static bool
no_signals(void)
{
	return false;
}

static bool (*signal_pending)(void) = no_signals;

void
sleepq_register_signals(bool (*pending)(void))
{
	signal_pending = pending;
}

bool
sleepq_signal_pending(void)
{
	return signal_pending();
}

void
sleepq_init(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		spin_init(&queues[i].lock, "sleepq");
		list_init(&queues[i].threads);
	}
}

static struct sleepq *
queue_of(const void *chan)
{
	uint64_t h = (uint64_t)chan * 0x9e3779b97f4a7c15ul; /* Fibonacci hashing */
	return &queues[h >> 58];
}

/* Takes t off its queue. Queue lock held. */
static void
sleepq_dequeue(struct thread *t, int result)
{
	list_remove(&t->sleepq);
	t->sleep_result = result;
	__atomic_store_n(&t->chan, NULL, __ATOMIC_SEQ_CST);
}

/* Ends the sleep of t if t still sleeps on chan and its sleep has all of `flags`. */
static bool
abort_sleep(struct thread *t, const void *chan, int flags, int result)
{
	struct sleepq *q = queue_of(chan);
	bool ours;

	spin_lock(&q->lock);
	ours = t->chan == chan && (t->sleep_flags & flags) == flags;
	if (ours)
		sleepq_dequeue(t, result);
	spin_unlock(&q->lock);
	if (ours)
		wake_up_process(t);
	return ours;
}

static void
timed_out(void *arg)
{
	struct thread *t = arg;
	const void *chan = __atomic_load_n(&t->chan, __ATOMIC_SEQ_CST);

	if (chan != NULL)
		abort_sleep(t, chan, 0, -ETIMEDOUT);
}

void
sleepq_interrupt(struct thread *t)
{
	const void *chan = __atomic_load_n(&t->chan, __ATOMIC_SEQ_CST);

	if (chan != NULL)
		abort_sleep(t, chan, SLEEP_INTR, -EINTR);
}

int
sleepq_wait(const struct sleep_request *r)
{
	struct sleepq *q = queue_of(r->chan);
	struct thread *t = curthread();
	int early = 1;

	if (stop_must_not_wait())
		panic("%s: nobody sleeps in the debugger", r->wmesg);
	callout_init(&t->sleep_timer, timed_out, t);
	spin_lock(&q->lock);
	t->wmesg = r->wmesg;
	t->lockname = r->lockname;
	t->sleep_flags = r->flags;
	t->sleep_result = 0;
	list_insert_after(r->first ? &q->threads : q->threads.prev, &t->sleepq);
	/* seq_cst: a sender sets the signal, then reads chan; here it is the other way. */
	__atomic_store_n(&t->chan, r->chan, __ATOMIC_SEQ_CST);
	if ((r->flags & SLEEP_INTR) && signal_pending())
		early = -EINTR;
	else if (r->still != NULL && !r->still(r->arg))
		early = 0;
	if (early != 1) {
		sleepq_dequeue(t, early);
		spin_unlock(&q->lock);
		if (early == -EINTR)
			t->interrupted_ns = r->deadline_ns;
		return early;
	}
	if (r->lk != NULL)
		spin_unlock(r->lk);
	if (r->deadline_ns != DEADLINE_NEVER)
		callout_set(&t->sleep_timer, r->deadline_ns);
	schedule(&q->lock); /* unlocks it */
	if (r->deadline_ns != DEADLINE_NEVER)
		callout_stop(&t->sleep_timer);
	if (r->lk != NULL)
		spin_lock(r->lk);
	if (t->sleep_result == -EINTR)
		t->interrupted_ns = r->deadline_ns;
	return t->sleep_result;
}

int
sleep_on(const void *chan, struct spinlock *lk, const char *wmesg, int flags, uint64_t deadline_ns)
{
	return sleepq_wait(&(struct sleep_request){
	    .chan = chan, .lk = lk, .wmesg = wmesg, .flags = flags, .deadline_ns = deadline_ns});
}

/* Wakes up to max of those who sleep on chan. Returns how many; *left, if not NULL: how many sleep
 * on, for which it looks at all who sleep in the queue. */
static unsigned
wake_batch(const void *chan, unsigned max, unsigned *left)
{
	struct sleepq *q = queue_of(chan);
	unsigned n = 0;

	spin_lock(&q->lock);
	list_for_each_safe (l, &q->threads) {
		struct thread *t = list_entry(l, struct thread, sleepq);

		if (n == max && left == NULL)
			break;
		if (t->chan != chan)
			continue;
		if (n < max) {
			sleepq_dequeue(t, 0);
			wake_up_process(t);
			n++;
		} else {
			++*left;
		}
	}
	spin_unlock(&q->lock);
	return n;
}

/* Wakes with interrupts on between batches. Who sleeps again meanwhile is not woken twice. */
static unsigned
sleepq_wake(const void *chan, unsigned max)
{
	unsigned left = 0, more, n;

	if (max <= BATCH)
		return wake_batch(chan, max, NULL);
	n = wake_batch(chan, BATCH, &left);
	left = left < max - n ? left : max - n;
	for (; left > 0; left -= more) {
		more = wake_batch(chan, left < BATCH ? left : BATCH, NULL);
		if (more == 0)
			break;
		n += more;
	}
	return n;
}

void
sleepq_hand_over(const void *chan, struct thread **owner)
{
	struct sleepq *q = queue_of(chan);
	struct thread *next = NULL;

	spin_lock(&q->lock);
	list_for_each_entry (struct thread, t, &q->threads, sleepq)
		if (t->chan == chan) {
			next = t;
			break;
		}
	__atomic_store_n(owner, next, __ATOMIC_SEQ_CST);
	if (next != NULL) {
		sleepq_dequeue(next, 0);
		wake_up_process(next);
	}
	spin_unlock(&q->lock);
}

unsigned
wakeup(const void *chan)
{
	return sleepq_wake(chan, UINT32_MAX);
}

unsigned
wakeup_one(const void *chan)
{
	return sleepq_wake(chan, 1);
}
