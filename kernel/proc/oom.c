/*
 * oom.c - kills a process when memory is out, or a user's share of it.
 *
 * mmap and fork promise memory before it exists. So the shortage appears at a page fault, in any
 * process; usually not in the one that caused it, and perhaps in process 1. The code first finds
 * the user who holds too much, then a process whose memory is counted to that user, who may be no
 * longer its user. So no process whose memory is counted to user 0 ends because of another user.
 *
 * Locking: proc_lock. A process's vm changes only under it, so its size may be read under it.
 */
#include "kernel/abi/signal.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

#define WAIT_NS             10000000ul
#define LATE_NS             500000000ul /* a fault waits twice as long */
#define LARGE_USER_SHARE    16          /* of memory: a user with 1/16 or more is large */
#define LARGE_PROCESS_SHARE 64          /* a process with half of what files leave free is large */

/* May p die, so that the user holds less? */
static bool
has_memory_of(const struct proc *p, uint32_t uid)
{
	return p->pid != 1 && p->vm != NULL && vm_user(p->vm)->uid == uid;
}

/*
 * Chooses the process with the user's memory that is to die: one that is dying already, but not for
 * long; otherwise the largest. One that was killed long ago waits for something, and is the last
 * choice. If many small ones hold the memory (a fork bomb), it is the current process, if it has
 * some of it. NULL if there is none, or only process 1. proc_lock held.
 */
static struct proc *
choose_victim(uint32_t uid)
{
	struct proc *largest = NULL, *late = NULL;
	uint64_t now = clock_ns();

	for_each_proc (p) {
		if (!has_memory_of(p, uid))
			continue;
		if (p->doomed_ns != 0 && now - p->doomed_ns < LATE_NS)
			return p;
		if (p->doomed_ns != 0)
			late = p;
		else if (largest == NULL || vm_resident(p->vm) > vm_resident(largest->vm))
			largest = p;
	}
	if (largest != NULL && has_memory_of(curproc(), uid) &&
	    vm_resident(largest->vm) < page_count_total() / LARGE_PROCESS_SHARE)
		return curproc();
	return largest != NULL ? largest : late;
}

/*
 * Kills a process of the user, and waits a short time for its end. False if there is none, or the
 * current process has to die; a signal with a handler does not end the wait.
 */
static bool
kill_one(uint32_t uid)
{
	static struct proc_told told;
	char name[KTR_THREAD_NAME];
	uint32_t pid = 0; /* of one that was chosen now */
	uint64_t pages = 0;
	struct proc *p;

	spin_lock(&proc_lock);
	p = choose_victim(uid);
	if (p != NULL && p->doomed_ns == 0) {
		p->doomed_ns = clock_ns();
		pid = p->pid;
		pages = vm_resident(p->vm);
		strlcpy(name, p->name, sizeof(name));
		CTR3(KTR_PROC, "out of memory: kill pid %u name %s pages %lu", pid,
		     ktr_intern(name), pages);
		proc_signal_locked(p, SIGKILL); /* once: it looks at all threads */
	}
	spin_unlock(&proc_lock);
	if (pid != 0 && proc_may_tell(&told, "processes that were killed for memory"))
		pr_warn("out of memory: %s[%u], which has %lu pages, is killed\n",
			printk_hide_controls(name), pid, pages);
	if (p == NULL || proc_signal_kills())
		return false; /* at once: others wait for its memory */
	thread_sleep_ns(WAIT_NS, 0, "nomem");
	return !proc_signal_kills();
}

bool
proc_out_of_memory(void)
{
	const struct uidinfo *ui = vm_user(curproc()->vm);
	uint32_t greediest;

	if (uidinfo_is_full(ui))
		return kill_one(ui->uid);
	if (vfs_give_up_pages() || writeback_reclaim())
		return true;
	greediest = uidinfo_greediest(LARGE_USER_SHARE);
	return kill_one(greediest != 0 ? greediest : ui->uid);
}

bool
proc_reclaim(void)
{
	uint32_t greediest;

	if (!uidinfo_memory_short())
		return false;
	if (vfs_give_up_pages())
		return true;
	if (curproc()->uid != 0)
		return false;
	greediest = uidinfo_greediest(LARGE_USER_SHARE);
	return greediest != 0 && kill_one(greediest);
}
