/*
 * signal_syscalls.c - system calls on signals, with the semantics of Linux. Locking: proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/clock.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define BIT(sig)    (1ul << ((sig)-1))
#define UNSTOPPABLE (BIT(SIGKILL) | BIT(SIGSTOP))

/* May who has these ids, effective and real, signal p? */
static bool
ids_may_signal(uint32_t user, uint32_t real_user, const struct proc *p)
{
	return user == p->ruid || user == p->suid || real_user == p->ruid || real_user == p->suid;
}

/* May the caller send p this signal? A shell continues all of its session. */
static bool
signal_is_allowed(const struct proc *p, int sig)
{
	const struct proc *self = curproc();

	return (sig == SIGCONT && self->sid == p->sid) || capable(CAP_KILL) ||
	       ids_may_signal(self->uid, self->ruid, p);
}

/* Sends the signal of `info`, if it is not 0, to p or its thread l. proc_lock held. */
static int
kill_send(struct proc *p, struct lwp *l, const struct siginfo *info)
{
	if (!signal_is_allowed(p, info->si_signo))
		return -EPERM;
	return info->si_signo != 0 ? proc_signal_send(p, l, info, NULL) : 0;
}

/*
 * As in Linux, pid -1 means all processes that the caller may signal; if there are none, that is no
 * error. proc_lock held.
 */
static int64_t
kill_all(const struct siginfo *info)
{
	int64_t r = -ESRCH;

	for_each_proc (p) {
		if (p->pid == 1 || p == curproc())
			continue;
		kill_send(p, NULL, info);
		r = 0;
	}
	return r;
}

/* Signals a group. 0 if one of its processes got it. proc_lock held. */
static int64_t
kill_group(uint32_t pgid, const struct siginfo *info)
{
	struct proc *first = proc_find_group(pgid);
	int64_t r = -ESRCH;

	for_each_member(p, first)
	{
		int error = kill_send(p, NULL, info);

		if (r != 0)
			r = error;
	}
	return r;
}

static int64_t
kill_processes(int32_t pid, const struct siginfo *info)
{
	int64_t r = -ESRCH;
	struct proc *p;

	if (info->si_signo < 0 || info->si_signo > NSIG)
		return -EINVAL;
	spin_lock(&proc_lock);
	p = pid > 0 ? proc_find_any((uint32_t)pid) : NULL;
	if (pid == -1)
		r = kill_all(info);
	else if (pid <= 0)
		r = kill_group(pid == 0 ? curproc()->pgid : -(uint32_t)pid, info);
	else if (p != NULL)
		r = kill_send(p, NULL, info);
	spin_unlock(&proc_lock);
	return r;
}

/* Signals a thread; tgid 0: of whatever process. */
static int64_t
kill_thread(int32_t tgid, int32_t tid, const struct siginfo *info)
{
	int64_t r = -ESRCH;
	struct lwp *l;

	if (info->si_signo < 0 || info->si_signo > NSIG || tid <= 0 || tgid < 0)
		return -EINVAL;
	spin_lock(&proc_lock);
	l = lwp_find((uint32_t)tid);
	if (l != NULL && (tgid == 0 || l->thread->proc->pid == (uint32_t)tgid))
		r = kill_send(l->thread->proc, l, info);
	spin_unlock(&proc_lock);
	return r;
}

/* The first process that `o` means, and the thread, if it means a thread. NULL: there is none. */
static struct proc *
owner_find(const struct task_owner *o, struct lwp **l)
{
	*l = o->kind == F_OWNER_TID ? lwp_find(o->pid) : NULL;
	if (o->kind == F_OWNER_TID)
		return *l != NULL ? (*l)->thread->proc : NULL;
	return o->kind == F_OWNER_PID ? proc_find(o->pid) : proc_find_group(o->pid);
}

/* The process after p that `o` means. NULL: there are no more. */
static struct proc *
owner_next(const struct task_owner *o, const struct proc *first, const struct proc *p)
{
	struct proc *next = list_entry(p->group.next, struct proc, group);

	return o->kind == F_OWNER_PGRP && next != first ? next : NULL;
}

/* As Linux's sigio_perm(). */
static bool
owner_may(const struct task_owner *o, const struct proc *p)
{
	return o->user == 0 || ids_may_signal(o->user, o->real_user, p);
}

bool
task_owner_set(struct task_owner *o)
{
	struct proc *first;
	struct lwp *l;
	bool found = false;

	o->user = curproc()->uid;
	o->real_user = curproc()->ruid;
	spin_lock(&proc_lock);
	first = owner_find(o, &l);
	for (struct proc *p = first; p != NULL && !found; p = owner_next(o, first, p))
		found = p->state != PROC_ZOMBIE;
	spin_unlock(&proc_lock);
	return found;
}

void
task_signal_owner(const struct task_owner *o, const struct siginfo *info)
{
	static const struct siginfo lost = {.si_signo = SIGIO, .si_code = SI_KERNEL};
	struct proc *first;
	struct lwp *l;

	spin_lock(&proc_lock);
	first = owner_find(o, &l);
	for (struct proc *p = first; p != NULL; p = owner_next(o, first, p))
		if (owner_may(o, p) && proc_signal_send(p, l, info, NULL) != 0)
			proc_signal_send(p, l, &lost, NULL);
	spin_unlock(&proc_lock);
}

unsigned
proc_signal_group(uint32_t sid, uint32_t pgid, int sig)
{
	struct proc *first;
	unsigned n = 0;

	spin_lock(&proc_lock);
	first = proc_find_group(pgid);
	for_each_member(p, first)
	{
		if (p->state != PROC_ZOMBIE && p->sid == sid) {
			proc_signal_locked(p, sig);
			n++;
		}
	}
	spin_unlock(&proc_lock);
	return n;
}

void
proc_signal_one(uint32_t pid, int sig)
{
	struct proc *p;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	if (p != NULL)
		proc_signal_locked(p, sig);
	spin_unlock(&proc_lock);
}

static struct siginfo
from_self(uint64_t sig, int code)
{
	return (struct siginfo){(int)sig, .si_code = code, .si_pid = curproc()->pid,
				.si_uid = curproc()->ruid};
}

int64_t
sys_kill(const uint64_t a[6])
{
	struct siginfo info = from_self(a[1], SI_USER);

	return kill_processes((int32_t)a[0], &info);
}

int64_t
sys_tkill(const uint64_t a[6])
{
	struct siginfo info = from_self(a[1], SI_TKILL);

	return kill_thread(0, (int32_t)a[0], &info);
}

int64_t
sys_tgkill(const uint64_t a[6])
{
	struct siginfo info = from_self(a[2], SI_TKILL);

	return (int32_t)a[0] > 0 ? kill_thread((int32_t)a[0], (int32_t)a[1], &info) : -EINVAL;
}

/* What the caller says of a signal. -EPERM: only to itself that the kernel, or kill(), sent it. */
static int
take_siginfo(uint64_t from, uint64_t sig, uint32_t to, struct siginfo *info)
{
	if (copy_in(info, from, sizeof(*info)) != 0)
		return -EFAULT;
	info->si_signo = (int)sig;
	return (info->si_code >= 0 || info->si_code == SI_TKILL) && curthread()->tid != to ? -EPERM
											   : 0;
}

int64_t
sys_rt_sigqueueinfo(const uint64_t a[6])
{
	struct siginfo info;
	int error = take_siginfo(a[2], a[1], (uint32_t)a[0], &info);

	if (error == 0 && (int32_t)a[0] <= 0)
		error = -ESRCH; /* a reason is given to one process */
	return error != 0 ? error : kill_processes((int32_t)a[0], &info);
}

int64_t
sys_rt_tgsigqueueinfo(const uint64_t a[6])
{
	struct siginfo info;
	int error = take_siginfo(a[3], a[2], (uint32_t)a[1], &info);

	if (error == 0 && (int32_t)a[0] <= 0)
		error = -EINVAL;
	return error != 0 ? error : kill_thread((int32_t)a[0], (int32_t)a[1], &info);
}

int64_t
sys_pidfd_send_signal(const uint64_t a[6])
{
	const struct file *f = pidfd_get_or_dir(a[0]);
	struct siginfo info = from_self(a[1], SI_USER);
	int64_t r = -ESRCH;
	struct proc *p;

	if (a[3] != 0 || (int)a[1] < 0 || (int)a[1] > NSIG)
		return -EINVAL;
	if (f == NULL)
		return -EBADF;
	if (a[2] != 0 && copy_in(&info, a[2], sizeof(info)) != 0)
		return -EFAULT;
	if (info.si_signo != (int)a[1])
		return -EINVAL;
	spin_lock(&proc_lock);
	p = pidfd_proc(f);
	if (p != NULL && p->pid != curthread()->tid && a[2] != 0 &&
	    (info.si_code >= 0 || info.si_code == SI_TKILL))
		r = -EPERM;
	else if (p != NULL)
		r = kill_send(p, NULL, &info);
	spin_unlock(&proc_lock);
	return r;
}

int64_t
sys_rt_sigaction(const uint64_t a[6])
{
	int sig = (int)a[0];
	struct proc *p = curproc();
	struct kernel_sigaction old, act;

	if (sig < 1 || sig > NSIG || a[3] != 8)
		return -EINVAL;
	if (a[1] != 0 && copy_in(&act, a[1], sizeof(act)) != 0)
		return -EFAULT;
	if (a[1] != 0 && (BIT(sig) & UNSTOPPABLE))
		return -EINVAL;
	spin_lock(&proc_lock);
	old = p->sig_action[sig - 1];
	if (a[1] != 0) {
		act.sa_mask &= ~UNSTOPPABLE;
		p->sig_action[sig - 1] = act;
		p->sig_ignored &= ~BIT(sig);
		p->sig_caught &= ~BIT(sig);
		if (act.sa_handler == SIG_IGN)
			p->sig_ignored |= BIT(sig);
		else if (act.sa_handler != SIG_DFL)
			p->sig_caught |= BIT(sig);
		/* What has no effect does not stay pending either, blocked or not (POSIX). */
		if (proc_signal_ignored(p, sig)) {
			proc_signals_drop(p, BIT(sig));
			proc_signals_update(p);
		} else {
			proc_timers_resume(p, BIT(sig));
		}
	}
	spin_unlock(&proc_lock);
	return a[2] != 0 && copy_out(a[2], &old, sizeof(old)) != 0 ? -EFAULT : 0;
}

void
proc_signals_block(uint64_t mask)
{
	struct proc *p = curproc();
	struct lwp *self = curlwp();
	uint64_t old = self->sig_blocked;

	spin_lock(&proc_lock);
	self->sig_blocked = mask & ~UNSTOPPABLE;
	proc_timers_resume(p, self->sig_blocked & ~old);
	proc_signals_update_thread(p, self);
	proc_signals_retarget(p, ~old); /* other threads may take what this one now blocks */
	spin_unlock(&proc_lock);
}

int64_t
sys_rt_sigprocmask(const uint64_t a[6])
{
	uint64_t old = curlwp()->sig_blocked, set;
	uint32_t how = (uint32_t)a[0];

	if (a[3] != 8)
		return -EINVAL;
	if (a[1] != 0) {
		if (copy_in(&set, a[1], sizeof(set)) != 0)
			return -EFAULT;
		if (how > SIG_SETMASK)
			return -EINVAL;
		proc_signals_block(how == SIG_BLOCK     ? old | set
				   : how == SIG_UNBLOCK ? old & ~set
							: set);
	}
	return a[2] != 0 && copy_out(a[2], &old, sizeof(old)) != 0 ? -EFAULT : 0;
}

int64_t
sys_rt_sigpending(const uint64_t a[6])
{
	const struct lwp *l = curlwp();
	uint64_t set = __atomic_load_n(&curproc()->pending.set, __ATOMIC_RELAXED);

	set = (set | __atomic_load_n(&l->pending.set, __ATOMIC_RELAXED)) & l->sig_blocked;

	if (a[1] > sizeof(set))
		return -EINVAL;
	return copy_out(a[0], &set, a[1]);
}

/* Sleeps until there is a signal to act on. -EINTR. */
static int64_t
wait_for_signal(void)
{
	spin_lock(&proc_lock);
	while (sleep_on(&curlwp()->pending.set, &proc_lock, "pause", SLEEP_INTR, DEADLINE_NEVER) ==
	       0)
		;
	spin_unlock(&proc_lock);
	return -EINTR;
}

SYSCALL_IS(pause, wait_for_signal())

int64_t
sys_rt_sigsuspend(const uint64_t a[6])
{
	uint64_t set;

	if (a[1] != sizeof(set))
		return -EINVAL;
	if (copy_in(&set, a[0], sizeof(set)) != 0)
		return -EFAULT;
	proc_signals_mask(set);
	return wait_for_signal();
}

void
proc_signals_mask(uint64_t mask)
{
	struct lwp *l = curlwp();

	l->sig_saved = l->sig_blocked;
	l->sig_restore = true;
	proc_signals_block(mask);
}

void
proc_signals_unmask(void)
{
	struct lwp *l = curlwp();

	if (l->sig_restore)
		proc_signals_block(l->sig_saved);
	l->sig_restore = false;
}

int64_t
sys_rt_sigtimedwait(const uint64_t a[6])
{
	struct proc *p = curproc();
	struct lwp *l = curlwp();
	struct siginfo info;
	uint64_t set, mask = l->sig_blocked, deadline;
	int64_t r = 0, sig;
	int error;

	if (a[3] != sizeof(set))
		return -EINVAL;
	error = poll_take_deadline(a[2], &deadline);
	if (copy_in(&set, a[0], sizeof(set)) != 0)
		return -EFAULT;
	if (error != 0)
		return error;
	set &= ~UNSTOPPABLE;
	spin_lock(&proc_lock);
	proc_timers_resume(p, set);
	while ((sig = proc_signal_take(set, &info)) == 0 && r == 0) {
		l->sig_blocked = mask & ~set; /* so that a signal of the set ends the sleep */
		l->sig_awaited = set;
		proc_signals_update(p);
		r = sleep_on(&l->pending.set, &proc_lock, "sigwait", SLEEP_INTR, deadline);
		l->sig_blocked = mask;
		l->sig_awaited = 0;
	}
	proc_signals_update(p);
	proc_signals_retarget(p, set); /* others who wait may not have been woken for these */
	spin_unlock(&proc_lock);
	if (sig == 0)
		return r == -ETIMEDOUT ? -EAGAIN : r;
	CTR2(KTR_SIG, "signal taken: pid %u sig %d", p->pid, (int)sig);
	return a[1] != 0 && copy_out(a[1], &info, sizeof(info)) != 0 ? -EFAULT : sig;
}

/* What has become of a call that was to begin again, but that a handler ran before. */
int64_t
sys_restart_syscall(const uint64_t a[6])
{
	return -EINTR;
}
