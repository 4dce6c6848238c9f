/*
 * deaths.c - deaths on request: sysctls debug.kdb.*, to try the debugger, the watchdog, and the log
 * after a reset. Names that FreeBSD has mean what they mean there.
 *
 * Only root may write them: 1, or the number of a CPU. Deaths that only tests need are in
 * tests/kernel/death_test.c. Locking: none.
 */
#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

static void
death_panic(void)
{
	panic("requested by debug.kdb.panic");
}

static void
death_trap(void)
{
	volatile uint32_t *volatile nowhere = (volatile uint32_t *)16;

	*nowhere = 1;
}

static __attribute__((noinline)) uint64_t
death_recurse(volatile uint64_t *from)
{
	volatile uint64_t here[16];

	here[0] = *from + 1;
	return here[0] != 0 ? death_recurse(here) + here[0] : 0;
}

static void
death_stack_overflow(void)
{
	volatile uint64_t start = 0;

	death_recurse(&start);
}

/* The hangs last while this is true. An operator at db> can clear it. */
static volatile bool kdb_hanging;

static void
death_hang(void *arg)
{
	irq_push();
	while (kdb_hanging)
		arch_relax();
	irq_pop();
}

static void
hang_interrupt(void *arg)
{
	static struct callout c;

	callout_init(&c, death_hang, NULL);
	callout_set(&c, clock_ns());
	while (kdb_hanging)
		arch_relax();
}

/* Makes a thread on that CPU that runs fn. */
static int
hang_on(unsigned cpu, void (*fn)(void *), char *err, size_t errlen)
{
	struct thread *t;

	if (cpu >= ncpus) {
		snprintf(err, errlen, "%u: expected a CPU, 0 to %u", cpu, ncpus - 1);
		return -ERANGE;
	}
	t = thread_alloc("hang", PRIO_KERN, fn, NULL);
	if (t == NULL)
		return -ENOMEM;
	t->cpu = cpu;
	t->cpus = 1ul << t->cpu;
	kdb_hanging = true;
	wake_up_new_task(t);
	return 0;
}

static int
hang_set(int64_t v, char *err, size_t errlen)
{
	return hang_on((unsigned)v, death_hang, err, errlen);
}

static int
hang_interrupt_set(int64_t v, char *err, size_t errlen)
{
	return hang_on((unsigned)v, hang_interrupt, err, errlen);
}

static struct spinlock deadlock_a = SPINLOCK_INIT("deadlock a");
static struct spinlock deadlock_b = SPINLOCK_INIT("deadlock b");

/* Takes one's own lock, waits until the other is held too, then takes the other. */
static void
deadlock_embrace(struct spinlock *mine, struct spinlock *other)
{
	spin_lock(mine);
	while (__atomic_load_n(&other->owner, __ATOMIC_ACQUIRE) < 0)
		arch_relax();
	spin_lock(other);
}

static void
deadlock_thread(void *arg)
{
	deadlock_embrace(&deadlock_b, &deadlock_a);
}

static int
deadlock_set(int64_t v, char *err, size_t errlen)
{
	if (v == 0)
		return 0;
	if (ncpus < 2) {
		snprintf(err, errlen, "needs 2 CPUs, but there is %u", ncpus);
		return -EINVAL;
	}
	if (thread_create("deadlock", PRIO_KERN, deadlock_thread, NULL) == NULL)
		return -ENOMEM;
	deadlock_embrace(&deadlock_a, &deadlock_b);
	return 0;
}

SYSCTL_COMMAND(debug_kdb_panic, "debug.kdb.panic", death_panic, "write 1 to panic");
SYSCTL_COMMAND(debug_kdb_trap, "debug.kdb.trap", death_trap,
	       "write 1 to write through a bad pointer in the kernel");
SYSCTL_COMMAND(debug_kdb_stack_overflow, "debug.kdb.stack_overflow", death_stack_overflow,
	       "write 1 to run out of kernel stack");
SYSCTL_INT_CALL(debug_kdb_hang, "debug.kdb.hang", SYSCTL_WR, NULL, hang_set, 0, MAX_CPUS - 1,
		"write a CPU's number to hang it with interrupts off");
SYSCTL_INT_CALL(debug_kdb_hang_interrupt, "debug.kdb.hang_interrupt", SYSCTL_WR, NULL,
		hang_interrupt_set, 0, MAX_CPUS - 1,
		"write a CPU's number to hang it in an interrupt handler");
SYSCTL_INT_CALL(debug_kdb_deadlock, "debug.kdb.deadlock", SYSCTL_WR, NULL, deadlock_set, 0, 1,
		"write 1 to have two CPUs wait for each other's spin lock");
