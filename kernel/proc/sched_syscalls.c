/*
 * sched_syscalls.c - system calls on CPUs and priorities of threads. Locking: proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/resource.h"
#include "kernel/abi/sched.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"

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
	struct lwp *l = tid == 0 ? curlwp() : lwp_find(tid);

	*owner = l != NULL ? l->thread->proc : NULL;
	return l;
}

static bool
sched_may_change(const struct proc *p)
{
	uint32_t uid = curproc()->uid;

	return capable(CAP_SYS_NICE) || uid == p->uid || uid == p->ruid;
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
	else if (!sched_may_change(p))
		error = -EPERM;
	else if ((mask & online_cpus()) == 0)
		error = -EINVAL;
	else
		sched_set_cpus(l->thread, mask);
	spin_unlock(&proc_lock);
	sched_preempt(); /* if this thread has to move */
	return error;
}

/* Does a process belong to `who`? */
static bool
sched_is_of(const struct proc *p, int which, uint32_t who)
{
	if (which == PRIO_PGRP)
		return p->pgid == (who != 0 ? who : curproc()->pgid);
	return p->ruid == (who != 0 ? who : curproc()->ruid);
}

/* Calls f for each thread that `which` and `who` mean. Its last error; -ESRCH: there is none. */
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
			if (!sched_is_of(q, which, who))
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
	if (t->sched.nice < *best)
		*best = t->sched.nice;
	return 0;
}

/* May p's threads be as nice as that, without CAP_SYS_NICE? */
static bool
nice_allowed(const struct proc *p, int nice)
{
	return (uint64_t)(20 - nice) <= p->limits[RLIMIT_NICE].rlim_cur;
}

static int
set_nice(const struct proc *p, struct thread *t, int *nice)
{
	struct sched_params params;

	if (!sched_may_change(p))
		return -EPERM;
	if (*nice < t->sched.nice && !nice_allowed(p, *nice) && !capable(CAP_SYS_NICE))
		return -EACCES;
	params = t->sched;
	params.nice = (int8_t)*nice;
	sched_set_params(t, &params);
	return 0;
}

int64_t
sys_getpriority(const uint64_t a[6])
{
	int best = NICE_MAX, r;

	if ((uint32_t)a[0] > PRIO_OF_USER)
		return -EINVAL;
	r = each_of((int)a[0], (uint32_t)a[1], find_best, &best);
	return r != 0 ? r : 20 - best; /* positive, as Linux returns it */
}

int64_t
sys_setpriority(const uint64_t a[6])
{
	int nice = (int)a[2] < NICE_MIN ? NICE_MIN : (int)a[2] > NICE_MAX ? NICE_MAX : (int)a[2];
	int r;

	if ((uint32_t)a[0] > PRIO_OF_USER)
		return -EINVAL;
	r = each_of((int)a[0], (uint32_t)a[1], set_nice, &nice);
	sched_preempt();
	return r;
}

/* ---- policies ---- */

#define SAME_POLICY (-1)

/* What a call asks of a thread. */
struct wish {
	int policy; /* SAME_POLICY: reset_on_fork stays, too */
	unsigned rt_prio;
	int nice;
	bool keep_nice, keep_params, reset_on_fork;
};

/* Does the policy have real-time priorities? -EINVAL: there is no such policy. */
static int
has_priorities(int policy)
{
	switch (policy) {
	case SCHED_FIFO:
	case SCHED_RR:
		return 1;
	case SCHED_OTHER:
	case SCHED_BATCH:
	case SCHED_IDLE:
		return 0;
	default:
		return -EINVAL;
	}
}

/* May a thread of p be changed so without CAP_SYS_NICE? sched(7), "Privileges and …". */
static bool
change_allowed(const struct proc *p, const struct sched_params *old, const struct sched_params *new)
{
	uint64_t limit = p->limits[RLIMIT_RTPRIO].rlim_cur;

	if (new->rt_prio == 0 && new->nice < old->nice && !nice_allowed(p, new->nice))
		return false;
	if (new->rt_prio != 0 && ((new->policy != old->policy &&limit == 0) ||
				  (new->rt_prio > old->rt_prio &&new->rt_prio > limit)))
		return false;
	if (old->policy == SCHED_IDLE && new->policy != SCHED_IDLE && !nice_allowed(p, old->nice))
		return false;
	return sched_may_change(p) && (!old->reset_on_fork || new->reset_on_fork);
}

/* proc_lock held. */
static int
change_params(const struct proc *p, struct thread *t, const struct wish *w)
{
	const struct sched_params old = t->sched;
	struct sched_params new = old;
	int rt;

	if (w->policy != SAME_POLICY) {
		rt = has_priorities(w->policy);
		if (rt < 0)
			return rt;
		new.policy = (uint8_t)w->policy;
		new.reset_on_fork = w->reset_on_fork;
	}
	rt = has_priorities(new.policy);
	if (!w->keep_params) {
		if (w->rt_prio > RT_PRIO_MAX || (rt != 0) != (w->rt_prio != 0))
			return -EINVAL;
		new.rt_prio = (uint8_t)w->rt_prio;
		if (rt == 0 && !w->keep_nice)
			new.nice = (int8_t)w->nice;
	} else if ((rt != 0) != (new.rt_prio != 0)) {
		return -EINVAL;
	}
	if (!capable(CAP_SYS_NICE) && !change_allowed(p, &old, &new))
		return -EPERM;
	sched_set_params(t, &new);
	return 0;
}

static int
sched_change(uint32_t tid, const struct wish *w)
{
	struct proc *p;
	struct lwp *l;
	int error;

	spin_lock(&proc_lock);
	l = find_thread(tid, &p);
	error = l != NULL ? change_params(p, l->thread, w) : -ESRCH;
	spin_unlock(&proc_lock);
	sched_preempt();
	return error;
}

static int
change_priority(int tid, int policy, uint64_t param)
{
	struct wish w = {.policy = policy, .keep_nice = true};
	int prio;

	if (param == 0 || tid < 0)
		return -EINVAL;
	if (copy_in(&prio, param, sizeof(prio)) != 0)
		return -EFAULT;
	w.rt_prio = (unsigned)prio;
	if (policy != SAME_POLICY) {
		w.reset_on_fork = policy & SCHED_RESET_ON_FORK;
		w.policy = policy & ~SCHED_RESET_ON_FORK;
	}
	return sched_change((uint32_t)tid, &w);
}

SYSCALL_IS(sched_setscheduler,
	   (int)a[1] < 0 ? -EINVAL : change_priority((int)a[0], (int)a[1], a[2]))
SYSCALL_IS(sched_setparam, change_priority((int)a[0], SAME_POLICY, a[1]))

/* What a thread has now; slice_ns: its slice, or NULL. */
static int
find_params(int tid, struct sched_params *params, uint64_t *slice_ns)
{
	struct lwp *l;
	struct proc *p;

	if (tid < 0)
		return -EINVAL;
	spin_lock(&proc_lock);
	l = find_thread((uint32_t)tid, &p);
	if (l != NULL) {
		*params = l->thread->sched;
		if (slice_ns != NULL)
			*slice_ns = sched_slice_ns(l->thread);
	}
	spin_unlock(&proc_lock);
	return l != NULL ? 0 : -ESRCH;
}

int64_t
sys_sched_getscheduler(const uint64_t a[6])
{
	struct sched_params params;
	int error = find_params((int)a[0], &params, NULL);

	return error != 0 ? error
			  : params.policy | (params.reset_on_fork ? SCHED_RESET_ON_FORK : 0);
}

int64_t
sys_sched_getparam(const uint64_t a[6])
{
	struct sched_params params;
	int error = a[1] != 0 ? find_params((int)a[0], &params, NULL) : -EINVAL, prio;

	if (error != 0)
		return error;
	prio = params.rt_prio;
	return copy_out(a[1], &prio, sizeof(prio)) != 0 ? -EFAULT : 0;
}

int64_t
sys_sched_get_priority_max(const uint64_t a[6])
{
	int rt = a[0] == SCHED_DEADLINE ? 0 : has_priorities((int)a[0]);

	return rt > 0 ? RT_PRIO_MAX : rt;
}

int64_t
sys_sched_get_priority_min(const uint64_t a[6])
{
	int rt = a[0] == SCHED_DEADLINE ? 0 : has_priorities((int)a[0]);

	return rt > 0 ? RT_PRIO_MIN : rt;
}

int64_t
sys_sched_rr_get_interval(const uint64_t a[6])
{
	struct sched_params params;
	uint64_t slice_ns;
	struct timespec slice = {0};
	int error = find_params((int)a[0], &params, &slice_ns);

	if (error != 0)
		return error;
	slice.tv_nsec = (long)slice_ns; /* less than a second */
	return copy_out(a[1], &slice, sizeof(slice)) != 0 ? -EFAULT : 0;
}

/* Copies as much of the structure as the kernel knows. What is beyond must be 0: -E2BIG. */
static int
copy_attr_in(struct sched_attr *attr, uint64_t from)
{
	uint32_t size, known = sizeof(*attr);
	int r;

	*attr = (struct sched_attr){0};
	if (copy_in(&size, from, sizeof(size)) != 0)
		return -EFAULT;
	r = copy_in_versioned(attr, known, from, size != 0 ? size : SCHED_ATTR_SIZE_0,
			      SCHED_ATTR_SIZE_0);
	if (r != -E2BIG && r != -EINVAL)
		return r;
	copy_out(from, &known, sizeof(known)); /* it says E2BIG even where that fails */
	return -E2BIG;
}

int64_t
sys_sched_setattr(const uint64_t a[6])
{
	const uint64_t known =
	    SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_KEEP_POLICY | SCHED_FLAG_KEEP_PARAMS;
	struct sched_attr attr;
	struct wish w;
	int error;

	if (a[1] == 0 || (int)a[0] < 0 || (uint32_t)a[2] != 0)
		return -EINVAL;
	error = copy_attr_in(&attr, a[1]);
	if (error != 0)
		return error;
	if ((int)attr.sched_policy < 0 || (attr.sched_flags & ~known) != 0)
		return -EINVAL;
	w = (struct wish){
	    .policy =
		attr.sched_flags & SCHED_FLAG_KEEP_POLICY ? SAME_POLICY : (int)attr.sched_policy,
	    .rt_prio = attr.sched_priority,
	    .nice = attr.sched_nice < NICE_MIN   ? NICE_MIN
		    : attr.sched_nice > NICE_MAX ? NICE_MAX
						 : attr.sched_nice,
	    .keep_params = attr.sched_flags & SCHED_FLAG_KEEP_PARAMS,
	    .reset_on_fork = attr.sched_flags & SCHED_FLAG_RESET_ON_FORK,
	};
	return sched_change((uint32_t)a[0], &w);
}

int64_t
sys_sched_getattr(const uint64_t a[6])
{
	uint32_t size = (uint32_t)a[2];
	struct sched_params params;
	struct sched_attr attr = {0};
	int error;

	if (a[1] == 0 || size < SCHED_ATTR_SIZE_0 || size > PAGE_SIZE || (uint32_t)a[3] != 0)
		return -EINVAL;
	error = find_params((int)a[0], &params, NULL);
	if (error != 0)
		return error;
	attr.size = size < sizeof(attr) ? size : (uint32_t)sizeof(attr);
	attr.sched_policy = params.policy;
	attr.sched_flags = params.reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0;
	attr.sched_priority = params.rt_prio;
	attr.sched_nice = params.rt_prio != 0 ? 0 : params.nice;
	return copy_out(a[1], &attr, attr.size) != 0 ? -EFAULT : 0;
}

static int
set_ioprio(const struct proc *p, struct thread *t, int *prio)
{
	if (!sched_may_change(p))
		return -EPERM;
	t->lwp->ioprio = (uint16_t)*prio;
	return 0;
}

/* As on Linux, a thread for which none was set has the level that its niceness gives. */
static int
best_ioprio(const struct proc *p, struct thread *t, int *best)
{
	int prio =
	    t->lwp->ioprio != 0 ? t->lwp->ioprio : IOPRIO_CLASS_BE << 13 | (t->sched.nice + 20) / 5;

	if (prio < *best)
		*best = prio;
	return 0;
}

/* What was set, 0 if nothing was. */
static int
own_ioprio(const struct proc *p, struct thread *t, int *prio)
{
	*prio = t->lwp->ioprio;
	return 0;
}

int64_t
sys_ioprio_set(const uint64_t a[6])
{
	int prio = (int)a[2], which = (int)a[0] - 1;

	switch (IOPRIO_CLASS(prio)) {
	case IOPRIO_CLASS_RT:
		if (!capable(CAP_SYS_NICE) && !capable(CAP_SYS_ADMIN))
			return -EPERM;
		/* fall through */
	case IOPRIO_CLASS_BE:
		if (IOPRIO_LEVEL(prio) > 7)
			return -EINVAL;
		break;
	case IOPRIO_CLASS_IDLE:
		break;
	default:
		if (prio != 0)
			return -EINVAL;
	}
	return which < PRIO_PROCESS || which > PRIO_OF_USER
		   ? -EINVAL
		   : each_of(which, (uint32_t)a[1], set_ioprio, &prio);
}

int64_t
sys_ioprio_get(const uint64_t a[6])
{
	int best = INT32_MAX, which = (int)a[0] - 1;
	int r = which < PRIO_PROCESS || which > PRIO_OF_USER
		    ? -EINVAL
		    : each_of(which, (uint32_t)a[1],
			      which == PRIO_PROCESS ? own_ioprio : best_ioprio, &best);

	return r != 0 ? r : best;
}
