/*
 * deaths.c - deaths on request, under FreeBSD's names: what a kernel must be seen to survive long
 * enough to tell of.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

static void
zero_get(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, "0");
}

static bool
asked(const char *val, char *err, size_t errlen, int *error)
{
	bool ok = strcmp(val, "0") == 0 || strcmp(val, "1") == 0;

	if (!ok)
		snprintf(err, errlen, "\"%s\": expected 1 to do it", val);
	*error = ok ? 0 : -EINVAL;
	return ok && val[0] == '1';
}

static int
trap_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	volatile uint32_t *volatile nowhere = (volatile uint32_t *)16;
	int error;

	(void)s;
	if (asked(val, err, errlen, &error))
		*nowhere = 1;
	return error;
}

static __attribute__((noinline)) uint64_t
recurse(volatile uint64_t *from)
{
	volatile uint64_t here[16];

	here[0] = *from + 1;
	return here[0] != 0 ? recurse(here) + here[0] : 0;
}

static int
stack_overflow_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	volatile uint64_t start = 0;
	int error;

	(void)s;
	if (asked(val, err, errlen, &error))
		recurse(&start);
	return error;
}

/* As long as it is true they hang: an operator at db> can write it. */
static volatile bool kdb_hanging;

static void
hang(void *arg)
{
	(void)arg;
	irq_push();
	while (kdb_hanging)
		arch_relax();
	irq_pop();
}

static void
hang_interrupt(void *arg)
{
	static struct callout c;

	(void)arg;
	callout_init(&c, hang, NULL);
	callout_set(&c, clock_ns());
	while (kdb_hanging)
		arch_relax();
}

/* A thread of the CPU that val names runs fn. */
static int
hang_on(const char *val, void (*fn)(void *), char *err, size_t errlen)
{
	unsigned cpu = MAX_CPUS;
	struct thread *t;

	if (val[0] >= '0' && val[0] <= '9' && val[1] == '\0')
		cpu = (unsigned)(val[0] - '0');
	if (cpu >= ncpus) {
		snprintf(err, errlen, "\"%s\": expected a CPU, 0 to %u", val,
			 ncpus < 10 ? ncpus - 1 : 9);
		return -EINVAL;
	}
	t = thread_alloc("hang", PRIO_KERN, fn, NULL);
	if (t == NULL)
		return -ENOMEM;
	t->cpu = cpu;
	t->pinned = true;
	kdb_hanging = true;
	sched_start(t);
	return 0;
}

static int
hang_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	(void)s;
	return hang_on(val, hang, err, errlen);
}

static int
hang_interrupt_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	(void)s;
	return hang_on(val, hang_interrupt, err, errlen);
}

static struct spinlock deadlock_a = SPINLOCK_INIT("deadlock a");
static struct spinlock deadlock_b = SPINLOCK_INIT("deadlock b");

/* Takes its own lock, and when both are held, the other's. */
static void
embrace(struct spinlock *mine, struct spinlock *other)
{
	spin_lock(mine);
	while (__atomic_load_n(&other->owner, __ATOMIC_ACQUIRE) < 0)
		arch_relax();
	spin_lock(other);
}

static void
deadlock_thread(void *arg)
{
	(void)arg;
	embrace(&deadlock_b, &deadlock_a);
}

static int
deadlock_set(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	int error;

	(void)s;
	if (!asked(val, err, errlen, &error))
		return error;
	if (ncpus < 2) {
		snprintf(err, errlen, "takes 2 CPUs, and there is %u", ncpus);
		return -EINVAL;
	}
	if (thread_create("deadlock", PRIO_KERN, deadlock_thread, NULL) == NULL)
		return -ENOMEM;
	embrace(&deadlock_a, &deadlock_b);
	return 0;
}

SYSCTL_PROC(debug_kdb_hang, "debug.kdb.hang", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get, hang_set,
	    "write a CPU's number to hang it with interrupts off");
SYSCTL_PROC(debug_kdb_hang_interrupt, "debug.kdb.hang_interrupt", SYSCTL_TYPE_INT, SYSCTL_WR,
	    zero_get, hang_interrupt_set,
	    "write a CPU's number to hang it in an interrupt handler");
SYSCTL_PROC(debug_kdb_deadlock, "debug.kdb.deadlock", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get,
	    deadlock_set, "write 1 to have two CPUs wait for each other's spin lock");
SYSCTL_PROC(debug_kdb_trap, "debug.kdb.trap", SYSCTL_TYPE_INT, SYSCTL_WR, zero_get, trap_set,
	    "write 1 to write through a bad pointer in the kernel");
SYSCTL_PROC(debug_kdb_stack_overflow, "debug.kdb.stack_overflow", SYSCTL_TYPE_INT, SYSCTL_WR,
	    zero_get, stack_overflow_set, "write 1 to run out of kernel stack");
