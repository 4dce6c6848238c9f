/*
 * rlimit.c - limits of a process: prlimit64, and its older forms.
 *
 * A child inherits them, and exec keeps them. NOFILE, FSIZE, NPROC, AS, MEMLOCK, NICE, RTPRIO and
 * SIGPENDING are checked where their resource is taken; DATA limits the heap of brk(); STACK is the
 * size of the stack from the next exec on. All of it counts for AS, so a stack of more than
 * VM_STACK_SIZE takes at most a quarter of that limit. An area that grows down has STACK and AS as
 * they were when it was mapped. cpu_timers.c has CPU. RTTIME cannot be changed. The others take any
 * value: here are no core files and message queues, and LOCKS and RSS limit nothing on Linux
 * either.
 *
 * Locking: proc_lock; a process reads its own limits without it.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/fs/file.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"

#define NOFILE_CUR 1024       /* as Linux: a C library's fd_set holds no more */
#define MEMLOCK    (8u << 20) /* as Linux */

void
rlimit_init(struct rlimit limits[RLIMIT_NLIMITS])
{
	for (unsigned i = 0; i < RLIMIT_NLIMITS; i++)
		limits[i] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	limits[RLIMIT_NOFILE] = (struct rlimit){NOFILE_CUR, FILES_MAX};
	limits[RLIMIT_STACK].rlim_cur = VM_STACK_SIZE;
	limits[RLIMIT_NICE] = limits[RLIMIT_RTPRIO] = (struct rlimit){0, 0};
	limits[RLIMIT_SIGPENDING].rlim_cur = page_count_total() / 64; /* as Linux */
	limits[RLIMIT_SIGPENDING].rlim_max = page_count_total() / 64;
	limits[RLIMIT_MEMLOCK] = (struct rlimit){MEMLOCK, MEMLOCK};
	limits[RLIMIT_CORE] = (struct rlimit){0, RLIM_INFINITY};
}

uint64_t
proc_limit(unsigned resource)
{
	const struct proc *p = curproc();

	return p != NULL ? __atomic_load_n(&p->limits[resource].rlim_cur, __ATOMIC_RELAXED)
			 : RLIM_INFINITY;
}

/* May the current process change its limit to that? */
static int
rlimit_check(unsigned resource, const struct rlimit *old, const struct rlimit *new)
{
	if (new->rlim_cur > new->rlim_max)
		return -EINVAL;
	if (new->rlim_max > old->rlim_max && !capable(CAP_SYS_RESOURCE))
		return -EPERM;
	if (resource == RLIMIT_NOFILE && new->rlim_max > FILES_MAX)
		return -EPERM;
	if (resource == RLIMIT_RTTIME &&
	    (new->rlim_cur != old->rlim_cur || new->rlim_max != old->rlim_max))
		return -EINVAL;
	return 0;
}

/* Reads and sets a limit of process pid; 0: of the current one. new, old: NULL, or a place. */
static int
rlimit_change(uint32_t pid, uint64_t resource, const struct rlimit *new, struct rlimit *old)
{
	struct proc *self = curproc(), *target = pid == 0 || pid == self->pid ? self : NULL;
	int error = 0;

	if (resource >= RLIMIT_NLIMITS)
		return -EINVAL;
	spin_lock(&proc_lock);
	if (target == NULL)
		target = proc_find_any(pid);
	if (target == NULL || target->state == PROC_ZOMBIE) {
		error = -ESRCH;
	} else if (!capable(CAP_SYS_RESOURCE) && target != self &&
		   (self->ruid != target->ruid || self->ruid != target->uid ||
		    self->ruid != target->suid || self->rgid != target->rgid ||
		    self->rgid != target->gid || self->rgid != target->sgid)) {
		error = -EPERM;
	} else {
		struct rlimit *limit = &target->limits[resource];

		*old = *limit;
		if (new != NULL)
			error = rlimit_check((unsigned)resource, old, new);
		if (new != NULL && error == 0) {
			limit->rlim_max = new->rlim_max;
			__atomic_store_n(&limit->rlim_cur, new->rlim_cur, __ATOMIC_RELAXED);
			cpu_timers_update(target);
		}
	}
	spin_unlock(&proc_lock);
	return error;
}

static int64_t
rlimit_call(uint32_t pid, uint64_t resource, uint64_t unew, uint64_t uold)
{
	struct rlimit new, old;
	int error = 0;

	if (unew != 0)
		error = copy_in(&new, unew, sizeof(new));
	if (error == 0)
		error = rlimit_change(pid, resource, unew != 0 ? &new : NULL, &old);
	if (error == 0 && uold != 0)
		error = copy_out(uold, &old, sizeof(old));
	return error;
}

SYSCALL_IS(prlimit64, rlimit_call((uint32_t)a[0], (uint32_t)a[1], a[2], a[3]))
SYSCALL_IS(getrlimit, a[1] != 0 ? rlimit_call(0, (uint32_t)a[0], 0, a[1]) : -EFAULT)
SYSCALL_IS(setrlimit, a[1] != 0 ? rlimit_call(0, (uint32_t)a[0], a[1], 0) : -EFAULT)
