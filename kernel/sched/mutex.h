/*
 * mutex.h - sleep mutexes and condition variables. Thread context only.
 * Not recursive: locking twice is a panic. Trace: class LOCK, and SCHED's "blocked" with lockname.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct thread;

struct mutex {
	struct thread *owner; /* atomic; NULL free */
	uint32_t waiters;     /* atomic; threads in the slow path */
	bool handoff;         /* atomic: its release gives it to a thread that was woken too late */
	bool innermost;       /* constant: who holds it takes no other, but one that is `below` */
	bool below;           /* constant of those that are held to read pages of files; also that
			       * of a space which is being copied (vm_fork()) */
	/* The owner's: the mutex that it took before this one, of those that it holds. */
	struct mutex *next_held;
	const char *name; /* read-only data */
};

#define MUTEX_INIT(n)       \
	{                   \
		.name = (n) \
	}

void mutex_init(struct mutex *m, const char *name);
void mutex_lock(struct mutex *m);
/* Takes it, if nobody has it. */
bool mutex_trylock(struct mutex *m);
void mutex_unlock(struct mutex *m);
/* Does the current thread hold it? */
bool mutex_held(const struct mutex *m);
/*
 * Releases all mutexes that the current thread took after the first `keep`, and wakes nobody. For
 * the debugger, when it abandons a command.
 */
void mutex_abandon(unsigned keep);

struct cond {
	uint32_t seq; /* atomic; counts signals, so that none is missed before the sleep begins */
};

/*
 * Releases m, sleeps until signalled, takes m again. flags, deadline and results as in sleep_on().
 * Wakeups can be spurious. 0 also if c was signalled and a signal to the thread came: the caller
 * looks again, and its next wait gives -EINTR. So each signal costs one look at most.
 */
int cond_wait(struct cond *c, struct mutex *m, const char *wmesg, int flags, uint64_t deadline_ns);
/* Wake one / all waiters. The caller holds the mutex of the waiters. */
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);
