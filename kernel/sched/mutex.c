/*
 * mutex.c - sleep mutexes: a free one is taken with one compare-and-swap. Condition variables.
 */
#include "kernel/sched/mutex.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/sched/sched_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/stop.h"
#include "ktr/sdt.h"

#define LCB_F_MUTEX 32u /* as in Linux */

SDT_PROVIDER_DECLARE(lockstat);
SDT_PROBE_DECLARE(lock, , , contention_begin);
SDT_PROBE_DECLARE(lock, , , contention_end);
SDT_PROBE_DEFINE_TEXT(lockstat, , , adaptive_acquire, "adaptive-acquire", ": mutex %p name %s", 2,
		      "struct mutex *", "char *");
SDT_PROBE_DEFINE_TEXT(lockstat, , , adaptive_block, "adaptive-block", ": mutex %p ns %lu name %s",
		      3, "struct mutex *", "uint64_t", "char *");
SDT_PROBE_DEFINE_TEXT(lockstat, , , adaptive_release, "adaptive-release", ": mutex %p name %s", 2,
		      "struct mutex *", "char *");

void
mutex_init(struct mutex *m, const char *name)
{
	*m = (struct mutex)MUTEX_INIT(name);
}

bool
mutex_held(const struct mutex *m)
{
	return __atomic_load_n(&m->owner, __ATOMIC_RELAXED) == curthread();
}

/* The current thread is its owner now. */
static inline __attribute__((always_inline)) void
mutex_note(struct mutex *m)
{
	struct thread *t = curthread();

	if (t->held != NULL && t->held->innermost && !m->below)
		panic("mutex %s is taken while %s is held", m->name, t->held->name);
	m->next_held = t->held;
	t->held = m;
	t->mutexes++;
}

static inline __attribute__((always_inline)) bool
mutex_take(struct mutex *m)
{
	struct thread *none = NULL;

	/* acquire: pairs with the release in mutex_unlock() */
	if (!__atomic_compare_exchange_n(&m->owner, &none, curthread(), false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	mutex_note(m);
	return true;
}

/* Removes m from the thread's list of held mutexes. Most are released in the reverse order. */
static void
mutex_forget(struct thread *t, const struct mutex *m)
{
	struct mutex **at = &t->held;

	while (*at != m)
		at = &(*at)->next_held;
	*at = m->next_held;
	t->mutexes--;
}

void
mutex_abandon(unsigned keep)
{
	struct thread *t = curthread();

	while (t != NULL && t->mutexes > keep) {
		struct mutex *m = t->held;

		mutex_forget(t, m);
		__atomic_store_n(&m->owner, NULL, __ATOMIC_SEQ_CST);
	}
}

struct wait {
	struct mutex *m;
	bool slept;
};

/*
 * Is the mutex still owned? Then its owner goes first, since it may have been preempted, and its
 * share may be small. The owner cannot go away while the queue's lock is held: to let go of the
 * mutex, it wakes one on this queue, and this thread has been counted as a waiter. A thread that
 * has slept already was woken too late: so next time the mutex is handed over.
 */
static bool
mutex_is_owned(void *arg)
{
	struct wait *w = arg;
	struct thread *owner = __atomic_load_n(&w->m->owner, __ATOMIC_SEQ_CST);

	if (owner == NULL)
		return false;
	sched_hurry(owner);
	if (w->slept)
		__atomic_store_n(&w->m->handoff, true, __ATOMIC_RELAXED);
	w->slept = true;
	return true;
}

/* A thread that was woken too late sleeps on this channel, in the queue of m; it is woken first. */
static const void *
late_channel(const struct mutex *m)
{
	return (const char *)m + 1;
}

static __attribute__((noinline)) void
mutex_contended(struct mutex *m)
{
	bool timed = SDT_PROBE_ENABLED(lockstat, , , adaptive_block);
	uint64_t start = timed ? clock_ns() : 0;
	struct wait w = {.m = m};

	if (stop_must_not_wait())
		panic("mutex %s: held by another thread, and all are stopped", m->name);
	SDT_CTR2(lock, , , contention_begin, SDT_ARGS2(m, LCB_F_MUTEX), KTR_LOCK,
		 "mutex contended: lock %s addr %p", m->name, m);
	/* seq_cst: mutex_unlock() clears owner, then reads waiters; here it is the other way. */
	__atomic_fetch_add(&m->waiters, 1, __ATOMIC_SEQ_CST);
	curthread()->contends = true;
	while (!mutex_take(m)) {
		sleepq_wait(&(struct sleep_request){.chan = w.slept ? late_channel(m) : m,
						    .still = mutex_is_owned,
						    .arg = &w,
						    .wmesg = "mutex",
						    .lockname = m->name,
						    .deadline_ns = DEADLINE_NEVER});
		if (mutex_held(m)) { /* it was handed over */
			mutex_note(m);
			break;
		}
	}
	curthread()->contends = false;
	__atomic_fetch_sub(&m->waiters, 1, __ATOMIC_RELAXED);
	SDT_PROBE2(lock, , , contention_end, m, 0);
	if (timed)
		SDT_PROBE3(lockstat, , , adaptive_block, m, clock_ns() - start, m->name);
}

void
mutex_lock(struct mutex *m)
{
	if (mutex_held(m))
		panic("mutex %s: thread %u holds it already", m->name, curthread()->tid);
	if (!mutex_take(m))
		mutex_contended(m);
	SDT_CTR3(lockstat, , , adaptive_acquire, SDT_ARGS2(m, m->name), KTR_LOCK,
		 "mutex acquire: lock %s addr %p caller %p", m->name, m,
		 __builtin_return_address(0));
}

bool
mutex_trylock(struct mutex *m)
{
	if (!mutex_take(m))
		return false;
	SDT_CTR3(lockstat, , , adaptive_acquire, SDT_ARGS2(m, m->name), KTR_LOCK,
		 "mutex acquire: lock %s addr %p caller %p", m->name, m,
		 __builtin_return_address(0));
	return true;
}

void
mutex_unlock(struct mutex *m)
{
	if (!mutex_held(m))
		panic("mutex %s: unlocked by thread %u, which does not hold it", m->name,
		      curthread()->tid);
	SDT_CTR2(lockstat, , , adaptive_release, SDT_ARGS2(m, m->name), KTR_LOCK,
		 "mutex release: lock %s addr %p", m->name, m);
	mutex_forget(curthread(), m);
	if (__atomic_load_n(&m->handoff, __ATOMIC_RELAXED) &&
	    sleepq_hand_over(late_channel(m), &m->owner, &m->handoff))
		return;
	__atomic_store_n(&m->owner, NULL, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->waiters, __ATOMIC_SEQ_CST) != 0 && wakeup_one(late_channel(m)) == 0)
		wakeup_one(m);
}

struct cond_arg {
	struct cond *c;
	uint32_t seq;
};

static bool
not_signalled(void *arg)
{
	struct cond_arg *a = arg;

	return __atomic_load_n(&a->c->seq, __ATOMIC_ACQUIRE) == a->seq;
}

int
cond_wait(struct cond *c, struct mutex *m, const char *wmesg, int flags, uint64_t deadline_ns)
{
	struct cond_arg a = {c, __atomic_load_n(&c->seq, __ATOMIC_RELAXED)};
	/* With a signal that is there already, the caller has looked what came, with m held. */
	bool pending = (flags & SLEEP_INTR) && sleepq_signal_pending();
	int r;

	mutex_unlock(m);
	r = sleepq_wait(&(struct sleep_request){.chan = c,
						.still = not_signalled,
						.arg = &a,
						.wmesg = wmesg,
						.flags = flags,
						.deadline_ns = deadline_ns});
	mutex_lock(m);
	/* What has come meanwhile counts before the signal, which ends the next wait. */
	return r == -EINTR && !pending && !not_signalled(&a) ? 0 : r;
}

void
cond_signal(struct cond *c)
{
	__atomic_fetch_add(&c->seq, 1, __ATOMIC_RELEASE);
	wakeup_one(c);
}

void
cond_broadcast(struct cond *c)
{
	__atomic_fetch_add(&c->seq, 1, __ATOMIC_RELEASE);
	wakeup(c);
}
