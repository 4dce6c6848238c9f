/*
 * spinlock.h - spin locks that know their owner: the lock word is the owner's number.
 *
 * Not fair on purpose: a lock that is handed over in the order of arrival stands still whenever a
 * virtual CPU in the queue is not running, and virtual CPUs are where this kernel lives.
 *
 * A holder runs with interrupts off on its CPU, so it is neither preempted nor migrated, and must
 * not sleep. Locks nest; interrupts come back on with the last unlock, if they were on before the
 * first. Taking a lock that this CPU holds already is a panic. Trace: class LOCK: acquire, spinning
 * (contended), release, with the lock's name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spinlock {
	int32_t owner;    /* CPU that holds it, -1 none; atomic */
	const char *name; /* read-only data: traced by %s */
};

#define SPINLOCK_INIT(n)                 \
	{                                \
		.owner = -1, .name = (n) \
	}

void spin_init(struct spinlock *l, const char *name);
void spin_lock(struct spinlock *l);
/* True when taken. Never waits. */
bool spin_trylock(struct spinlock *l);
void spin_unlock(struct spinlock *l);
/* Does this CPU hold it? */
bool spin_held(const struct spinlock *l);

/*
 * Lets go of all locks that this CPU took after the first `keep`: for the debugger, when a command
 * is left in the middle. Interrupts off.
 */
void spin_abandon(unsigned keep);

/* The same nesting without a lock: interrupts are off from the first push to the last pop. */
void irq_push(void);
void irq_pop(void);
