/*
 * signal.c - signals: default actions and ignoring.
 *
 * A pending signal is a bit in sig_pending, set under proc_lock. The process acts on it when it
 * returns to user mode. sig_pending is also read without the lock, as a hint.
 */
#include "kernel/abi/signal.h"

#include "kernel/abi/errno.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sleepq_private.h"
#include "kernel/sched/thread.h"
#include "ktr/sdt.h"

#define BIT(sig)     (1ul << ((sig)-1))
#define STOP_SIGNALS (BIT(SIGSTOP) | BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU))
#define NO_ACTION    (BIT(SIGCHLD) | BIT(SIGURG) | BIT(SIGWINCH) | BIT(SIGCONT))
#define UNSTOPPABLE  (BIT(SIGKILL) | BIT(SIGSTOP))

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE_TEXT(proc, , , signal_send, "signal-send", ": thread %p proc %p sig %d pid %u", 4,
		      "struct thread *", "struct proc *", "int", "pid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , signal_discard, "signal-discard",
		      ": thread %p proc %p sig %d pid %u", 4, "struct thread *", "struct proc *",
		      "int", "pid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , signal_handle, "signal-handle", ": sig %d code %#x", 2, "int",
		      "int");

/* Would sig have no effect on p? proc_lock held, or p is the current process. */
static bool
is_ignored(const struct proc *p, int sig)
{
	/* Nothing may kill process 1, so it has no default actions. */
	if (p->pid == 1)
		return true;
	if (BIT(sig) & UNSTOPPABLE)
		return false;
	return ((p->sig_ignored | NO_ACTION) & BIT(sig)) != 0;
}

void
proc_signal_locked(struct proc *p, int sig)
{
	SDT_CTR2(proc, , , signal_send, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
		 "signal post: pid %u sig %d", p->pid, sig);
	if (p->state == PROC_ZOMBIE)
		return;
	p->sig_user &= ~BIT(sig);
	if (sig == SIGKILL)
		wakeup(&p->vforking);
	if (sig == SIGCONT || sig == SIGKILL) {
		p->sig_pending &= ~STOP_SIGNALS;
		if (p->state == PROC_STOPPED) {
			p->state = PROC_ALIVE;
			p->wait_status = 0xffff;
			p->status_new = sig == SIGCONT;
			wakeup(&p->state);
			wakeup(p->parent);
		}
	}
	if (is_ignored(p, sig)) {
		SDT_CTR2(proc, , , signal_discard, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
			 "signal ignored: pid %u sig %d", p->pid, sig);
		return;
	}
	__atomic_store_n(&p->sig_pending, p->sig_pending | BIT(sig), __ATOMIC_SEQ_CST);
	sleepq_interrupt(p->thread);
}

unsigned
proc_signal_group(uint32_t pgid, int sig)
{
	unsigned n = 0;

	spin_lock(&proc_lock);
	for_each_proc (p) {
		if (p->pgid == pgid && p->state != PROC_ZOMBIE) {
			if (sig != 0)
				proc_signal_locked(p, sig);
			n++;
		}
	}
	spin_unlock(&proc_lock);
	return n;
}

void
proc_signal_self(int sig)
{
	spin_lock(&proc_lock);
	proc_signal_locked(curproc(), sig);
	spin_unlock(&proc_lock);
}

static uint64_t
deliverable(const struct proc *p)
{
	return __atomic_load_n(&p->sig_pending, __ATOMIC_SEQ_CST) & (~p->sig_blocked | UNSTOPPABLE);
}

bool
proc_signal_pending(void)
{
	struct proc *p = curproc();

	return p != NULL && deliverable(p) != 0;
}

/* Stops the current process until it is continued. Called and returns with proc_lock held. */
static void
stop_here(struct proc *p, int sig)
{
	p->state = PROC_STOPPED;
	p->wait_status = sig << 8 | 0x7f;
	p->status_new = true;
	wakeup(p->parent);
	while (p->state == PROC_STOPPED)
		sleep_on(&p->state, &proc_lock, "stopped", 0, DEADLINE_NEVER);
}

void
proc_deliver_signals(void)
{
	struct proc *p = curproc();
	uint64_t set;

	if (deliverable(p) == 0)
		return;
	spin_lock(&proc_lock);
	while ((set = deliverable(p)) != 0) {
		int sig = (set & BIT(SIGKILL)) ? SIGKILL : __builtin_ctzl(set) + 1, code;

		p->sig_pending &= ~BIT(sig);
		if (is_ignored(p, sig))
			continue;
		if (BIT(sig) & STOP_SIGNALS) {
			CTR2(KTR_SIG, "signal stop: pid %u sig %d", p->pid, sig);
			stop_here(p, sig);
			continue;
		}
		code = p->sig_user & BIT(sig) ? SI_USER : SI_KERNEL;
		spin_unlock(&proc_lock);
		SDT_CTR3(proc, , , signal_handle, SDT_ARGS2(sig, code), KTR_SIG,
			 "signal deliver: pid %u sig %d name %s", p->pid, sig, ktr_intern(p->name));
		proc_exit(sig);
	}
	spin_unlock(&proc_lock);
}

/*
 * Is the group orphaned? It is if no member has a parent, other than process 1, in another group.
 * Such a parent could continue it. proc_lock held.
 */
static bool
is_orphaned(uint32_t pgid)
{
	for_each_proc (p) {
		if (p->pgid == pgid && p->parent->pid != 1 && p->parent->pgid != pgid)
			return false;
	}
	return true;
}

int
proc_stop_group(int sig)
{
	struct proc *p = curproc();
	int r = 0;

	spin_lock(&proc_lock);
	if (is_ignored(p, sig) || (p->sig_blocked & BIT(sig)))
		r = 1;
	else if (is_orphaned(p->pgid))
		r = -EIO;
	spin_unlock(&proc_lock);
	if (r != 0)
		return r;
	proc_signal_group(p->pgid, sig);
	proc_deliver_signals();
	return 0;
}

/* May the caller signal p? */
static bool
allowed(const struct proc *p)
{
	return curproc()->uid == 0 || curproc()->uid == p->uid;
}

int64_t
sys_kill(const uint64_t a[6])
{
	int64_t pid = (int32_t)a[0], r = -ESRCH;
	int sig = (int)a[1];
	uint32_t group = pid == 0 ? curproc()->pgid : pid < -1 ? (uint32_t)-pid : 0;

	if (sig < 0 || sig > NSIG)
		return -EINVAL;
	spin_lock(&proc_lock);
	for_each_proc (p) {
		bool match = pid > 0     ? p->pid == (uint32_t)pid
			     : pid == -1 ? p->pid != 1 && p != curproc()
					 : p->pgid == group;
		if (!match)
			continue;
		if (!allowed(p)) {
			if (r != 0)
				r = -EPERM;
			continue;
		}
		r = 0;
		if (sig != 0) {
			proc_signal_locked(p, sig);
			p->sig_user |= BIT(sig);
		}
	}
	spin_unlock(&proc_lock);
	return r;
}

int64_t
sys_rt_sigaction(const uint64_t a[6])
{
	int sig = (int)a[0];
	struct proc *p = curproc();
	struct kernel_sigaction old = {0}, act;

	if (sig < 1 || sig > NSIG || a[3] != 8)
		return -EINVAL;
	old.sa_handler = p->sig_ignored & BIT(sig) ? SIG_IGN : SIG_DFL;
	if (a[1] != 0) {
		if (copy_in(&act, a[1], sizeof(act)) != 0)
			return -EFAULT;
		if ((BIT(sig) & UNSTOPPABLE) ||
		    (act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN))
			return -EINVAL;
		spin_lock(&proc_lock);
		if (act.sa_handler == SIG_IGN)
			p->sig_ignored |= BIT(sig);
		else
			p->sig_ignored &= ~BIT(sig);
		spin_unlock(&proc_lock);
	}
	if (a[2] != 0 && copy_out(a[2], &old, sizeof(old)) != 0)
		return -EFAULT;
	return 0;
}

int64_t
sys_rt_sigprocmask(const uint64_t a[6])
{
	struct proc *p = curproc();
	uint64_t old = p->sig_blocked, set;

	if (a[3] != 8)
		return -EINVAL;
	if (a[1] != 0) {
		if (copy_in(&set, a[1], sizeof(set)) != 0)
			return -EFAULT;
		if (a[0] > 2) /* SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK */
			return -EINVAL;
		spin_lock(&proc_lock);
		p->sig_blocked = a[0] == 0 ? old | set : a[0] == 1 ? old & ~set : set;
		spin_unlock(&proc_lock);
	}
	if (a[2] != 0 && copy_out(a[2], &old, sizeof(old)) != 0)
		return -EFAULT;
	return 0;
}
