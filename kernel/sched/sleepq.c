/*
 * sleepq.c - hashed sleep queues.
 *
 * The threads that sleep on one channel are a ring, and the first of them is in the queue's list of
 * channels. So a wakeup looks at the channels of its queue, and not at who else sleeps there.
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

#define QUEUES 512
#define BATCH  16u /* threads that are woken with interrupts off */

static struct sleepq {
	struct spinlock lock;
	struct list channels; /* the first thread of each */
	uint64_t next;        /* the number of the next sleep */
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
		list_init(&queues[i].channels);
		queues[i].next = 1;
	}
}

/* Fibonacci hashing. Channels in the same 8 bytes have the same queue, which mutex.c needs. */
static struct sleepq *
queue_of(const void *chan)
{
	return &queues[((uint64_t)chan >> 3) * 0x9e3779b97f4a7c15ul >> 55];
}

/* The first thread that sleeps on chan. NULL: none does. Queue lock held, as for all of these. */
static struct thread *
first_sleeper(const struct sleepq *q, const void *chan)
{
	list_for_each_entry (struct thread, t, &q->channels, channel)
		if (t->chan == chan)
			return t;
	return NULL;
}

/* The thread that becomes the first when that one goes. NULL: none. */
static struct thread *
second_sleeper(const struct thread *first)
{
	return list_empty(&first->sleepq) ? NULL
					  : list_entry(first->sleepq.next, struct thread, sleepq);
}

static void
sleepq_enqueue(struct sleepq *q, struct thread *t)
{
	struct thread *first = first_sleeper(q, t->chan);

	if (first == NULL)
		list_append(&q->channels, &t->channel);
	else
		list_append(&first->sleepq, &t->sleepq);
}

/* Takes t off its queue. */
static void
sleepq_dequeue(struct thread *t, int result)
{
	if (!list_empty(&t->channel) && second_sleeper(t) != NULL)
		list_append(&t->channel, &second_sleeper(t)->channel);
	list_remove(&t->channel);
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

bool
sleepq_interrupt(struct thread *t)
{
	const void *chan = __atomic_load_n(&t->chan, __ATOMIC_SEQ_CST);

	return chan == NULL || abort_sleep(t, chan, SLEEP_INTR, -EINTR);
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
	t->sleep_number = q->next++;
	/* seq_cst: a sender sets the signal, then reads chan; here it is the other way. */
	__atomic_store_n(&t->chan, r->chan, __ATOMIC_SEQ_CST);
	sleepq_enqueue(q, t);
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

/* Wakes at most max of the threads that sleep on chan and began before sleep number *before. If
 * that is 0, it becomes the number of the next sleep. Returns how many. */
static unsigned
wake_batch(const void *chan, unsigned max, uint64_t *before)
{
	struct sleepq *q = queue_of(chan);
	struct thread *t, *second;
	unsigned n = 0;

	spin_lock(&q->lock);
	if (*before == 0)
		*before = q->next;
	for (t = first_sleeper(q, chan); t != NULL && n < max && t->sleep_number < *before;
	     t = second) {
		second = second_sleeper(t);
		sleepq_dequeue(t, 0);
		wake_up_process(t);
		n++;
	}
	spin_unlock(&q->lock);
	return n;
}

/* Lets interrupts come between batches, if they are on. A thread that sleeps again is not woken
 * twice. */
static unsigned
sleepq_wake(const void *chan, unsigned max)
{
	unsigned n = 0, woken, batch;
	uint64_t before = 0;

	do {
		batch = max - n < BATCH ? max - n : BATCH;
		woken = wake_batch(chan, batch, &before);
		n += woken;
	} while (woken == BATCH && n < max);
	return n;
}

bool
sleepq_hand_over(const void *chan, struct thread **owner, bool *more)
{
	struct sleepq *q = queue_of(chan);
	struct thread *t;

	spin_lock(&q->lock);
	t = first_sleeper(q, chan);
	__atomic_store_n(more, t != NULL && second_sleeper(t) != NULL, __ATOMIC_RELAXED);
	if (t != NULL) {
		__atomic_store_n(owner, t, __ATOMIC_SEQ_CST);
		sleepq_dequeue(t, 0);
		wake_up_process(t);
	}
	spin_unlock(&q->lock);
	return t != NULL;
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
