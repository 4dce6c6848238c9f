/*
 * oom.c - a page fault finds no memory: a process is killed.
 *
 * Memory is promised before it is there (mmap, fork), so the want of it shows at a fault, in
 * whatever process comes first: that is seldom the one to blame, and must never be process 1.
 *
 * Locking: proc_lock, under which a process's vm changes, so that others may ask for its size.
 */
#include "kernel/abi/signal.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/page.h"
#include "kernel/mm/vm.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

#define WAIT_NS     10000000ul
#define LARGE_SHARE 16 /* of memory: a process that has more is large */

/*
 * Who dies: one that is dying already; else the largest; but where many small ones hold the memory
 * (a fork bomb), it is one of them: the current. NULL: there is only process 1.
 */
static struct proc *
choose_victim(void)
{
	struct proc *largest = NULL;

	list_for_each (l, &procs) {
		struct proc *p = list_entry(l, struct proc, all);

		if (p->doomed && p->state != PROC_ZOMBIE)
			return p;
		if (p->pid != 1 && p->vm != NULL &&
		    (largest == NULL || vm_resident(p->vm) > vm_resident(largest->vm)))
			largest = p;
	}
	if (curproc()->pid != 1 && vm_resident(largest->vm) < page_count_total() / LARGE_SHARE)
		return curproc();
	return largest;
}

bool
proc_out_of_memory(void)
{
	struct proc *p;

	spin_lock(&proc_lock);
	p = choose_victim();
	if (p != NULL && !p->doomed) {
		p->doomed = true;
		CTR3(KTR_PROC, "out of memory: kill pid %u name %s pages %lu", p->pid,
		     ktr_intern(p->name), vm_resident(p->vm));
		printk("out of memory: %s[%u], which has %lu pages, is killed\n", p->name, p->pid,
		       vm_resident(p->vm));
		proc_signal_locked(p, SIGKILL);
	}
	spin_unlock(&proc_lock);
	return p != NULL && thread_sleep_ns(WAIT_NS, SLEEP_INTR, "nomem") == 0;
}
