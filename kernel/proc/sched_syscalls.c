/*
 * sched_syscalls.c - system calls on CPUs and priorities of threads. Locking: proc_lock.
 */
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"

int64_t
sys_sched_yield(const uint64_t a[6])
{
	sched_yield();
	return 0;
}

static uint64_t
online_cpus(void)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < ncpus; i++)
		mask |= pcpus[i] != NULL && pcpus[i]->online ? 1ul << i : 0;
	return mask;
}

/* The thread with this number; 0: the current one. NULL: there is none. proc_lock held. */
static struct lwp *
find_thread(uint32_t tid, struct proc **owner)
{
	*owner = curproc();
	if (tid == 0 || tid == curthread()->tid)
		return curlwp();
	for_each_proc (p) {
		*owner = p;
		for_each_lwp(l, p) if (l->thread->tid == tid) return l;
	}
	return NULL;
}

static bool
may_change(const struct proc *p)
{
	return curproc()->uid == 0 || curproc()->uid == p->uid;
}

int64_t
sys_sched_getaffinity(const uint64_t a[6])
{
	uint64_t mask = 0;
	const struct lwp *l;
	struct proc *p;

	if (a[1] < sizeof(mask) || a[1] % sizeof(mask) != 0)
		return -EINVAL;
	spin_lock(&proc_lock);
	l = find_thread((uint32_t)a[0], &p);
	if (l != NULL)
		mask = l->thread->cpus & online_cpus();
	spin_unlock(&proc_lock);
	if (l == NULL)
		return -ESRCH;
	return copy_out(a[2], &mask, sizeof(mask)) != 0 ? -EFAULT : (int64_t)sizeof(mask);
}

int64_t
sys_sched_setaffinity(const uint64_t a[6])
{
	uint64_t mask = 0;
	struct lwp *l;
	struct proc *p;
	int error = 0;

	if (copy_in(&mask, a[2], (uint32_t)a[1] < sizeof(mask) ? (uint32_t)a[1] : sizeof(mask)) !=
	    0)
		return -EFAULT;
	spin_lock(&proc_lock);
	l = find_thread((uint32_t)a[0], &p);
	if (l == NULL)
		error = -ESRCH;
	else if (!may_change(p))
		error = -EPERM;
	else if ((mask & online_cpus()) == 0)
		error = -EINVAL;
	else
		sched_set_cpus(l->thread, mask);
	spin_unlock(&proc_lock);
	sched_preempt(); /* if it is this thread that has to move */
	return error;
}

/* Does a process belong to `who`? */
static bool
is_of(const struct proc *p, int which, uint32_t who)
{
	if (which == PRIO_PGRP)
		return p->pgid == (who != 0 ? who : curproc()->pgid);
	return p->ruid == (who != 0 ? who : curproc()->ruid);
}

/* Calls f for each thread that `which` and `who` mean. Its last error, or -ESRCH: there is none. */
static int
each_of(int which, uint32_t who, int (*f)(const struct proc *p, struct thread *t, int *arg),
	int *arg)
{
	struct lwp *l;
	struct proc *p;
	int result = -ESRCH, r;

	spin_lock(&proc_lock);
	if (which == PRIO_PROCESS) {
		l = find_thread(who, &p);
		if (l != NULL)
			result = f(p, l->thread, arg);
	} else {
		for_each_proc (q) {
			if (!is_of(q, which, who))
				continue;
			for_each_lwp(m, q)
			{
				r = f(q, m->thread, arg);
				result = result == -ESRCH || r != 0 ? r : result;
			}
		}
	}
	spin_unlock(&proc_lock);
	return result;
}

static int
find_best(const struct proc *p, struct thread *t, int *best)
{
	int nice = t->base_prio - PRIO_USER;

	(void)p;
	if (nice < *best)
		*best = nice;
	return 0;
}

static int
set_nice(const struct proc *p, struct thread *t, int *nice)
{
	if (!may_change(p))
		return -EPERM;
	if (*nice < t->base_prio - PRIO_USER && curproc()->uid != 0)
		return -EACCES;
	sched_set_nice(t, *nice);
	return 0;
}

int64_t
sys_getpriority(const uint64_t a[6])
{
	int best = NICE_MAX, r;

	if (a[0] > PRIO_OF_USER)
		return -EINVAL;
	r = each_of((int)a[0], (uint32_t)a[1], find_best, &best);
	return r != 0 ? r : 20 - best; /* positive, as Linux returns it */
}

int64_t
sys_setpriority(const uint64_t a[6])
{
	int nice = (int)a[2] < NICE_MIN ? NICE_MIN : (int)a[2] > NICE_MAX ? NICE_MAX : (int)a[2];
	int r;

	if (a[0] > PRIO_OF_USER)
		return -EINVAL;
	r = each_of((int)a[0], (uint32_t)a[1], set_nice, &nice);
	sched_preempt();
	return r;
}
