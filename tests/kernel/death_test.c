/*
 * death_test.c - errors of the kernel itself, each of which must end in a panic that names it.
 * tests/system/test_deaths.py boots each one separately.
 */
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/debug/kdb.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "tests/kernel/ktest.h"

KTEST(death_sleep_with_interrupts_off)
{
	static char chan;

	irq_push();
	sleep_on(&chan, NULL, "death", 0, 0);
}

KTEST(death_yield_with_a_spin_lock)
{
	static struct spinlock lock = SPINLOCK_INIT("death");

	spin_lock(&lock);
	sched_yield();
}

/* A kernel address where nothing is mapped. */
#define NOWHERE (ARCH_VMALLOC_END - 2 * PAGE_SIZE)

KTEST(death_user_copy_from_a_bad_kernel_address)
{
	copy_out(0x10000, (const void *)NOWHERE, 8);
}

KTEST(death_user_copy_to_null)
{
	copy_in(NULL, 0x10000, 8);
}

/* With debug.mm.poison. It is allocated again after others. */
KTEST(death_write_to_a_free_page)
{
	char *page = page_alloc(0, PAGE_OTHER);

	page_free(page, 0);
	page[0x123] = 7;
	for (;;)
		page_alloc(0, PAGE_OTHER);
}

KTEST(death_write_to_a_free_object)
{
	char *object = kmalloc(64);

	kfree(object);
	object[0x23] = 7;
	for (;;)
		kmalloc(64);
}

static struct arch_trapframe waiter;
static bool runs, claimed; /* atomic */

static void
panic_second(void *arg)
{
	irq_push();
	__atomic_store_n(&runs, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&claimed, __ATOMIC_ACQUIRE))
		arch_relax();
	panic_trap(&waiter, "the one that waits");
}

static bool
waiter_stopped(void)
{
	for (unsigned n = 0; n < ncpus; n++)
		if (__atomic_load_n(&pcpus[n]->stopped, __ATOMIC_ACQUIRE) == &waiter)
			return true;
	return false;
}

/* Outside of a command. */
KTEST(death_inside_while_another_waits)
{
	thread_create("waiter", PRIO_KERN, panic_second, NULL);
	while (!__atomic_load_n(&runs, __ATOMIC_ACQUIRE))
		sched_yield();
	irq_push();
	stop_claim(NULL);
	__atomic_store_n(&claimed, true, __ATOMIC_RELEASE);
	while (stop_others() == 0 || !waiter_stopped())
		stop_resume_others();
	panic("the one that has the machine");
}
