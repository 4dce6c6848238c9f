/*
 * spinlock.h - spin locks that know their owner: the lock word is the number of the owner's CPU.
 *
 * They are unfair on purpose. A fair lock is handed over in order of arrival, so it stops whenever
 * the next virtual CPU in line is not running; and this kernel runs on virtual CPUs.
 *
 * A holder runs with interrupts off, so it is neither preempted nor moved to another CPU, and it
 * must not sleep. Locks nest. The last unlock turns interrupts back on if they were on before the
 * first lock. Taking a lock twice on a CPU panics. Trace: class LOCK: acquire, spinning
 * (contended), release, with the lock's name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/irq.h"

struct spinlock {
	int32_t owner;    /* CPU that holds it, -1 none; atomic */
	const char *name; /* read-only data, recorded by %s */
};

#define SPINLOCK_INIT(n)                 \
	{                                \
		.owner = -1, .name = (n) \
	}

void spin_init(struct spinlock *l, const char *name);
void spin_lock(struct spinlock *l);
/* Never waits. True: taken. */
bool spin_trylock(struct spinlock *l);
void spin_unlock(struct spinlock *l);

/*
 * Releases all locks that this CPU took after the first `keep`. For the debugger, when it abandons
 * a command. Interrupts off.
 */
void spin_abandon(unsigned keep);

/*
 * A lock that hooks take (ktr/hook.h), which may run while this CPU has any spin lock: a word that
 * is 0 at first, and no trace point. Interrupts are off, and its holder meets no hook that takes
 * it.
 */
static inline __attribute__((always_inline)) void
hook_lock(uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
		arch_relax();
}

static inline __attribute__((always_inline)) void
hook_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Turn interrupts off, and on: nested like locks, off from the first push to the last pop. */
void irq_push(void);
void irq_pop(void);
