/*
 * signal.c - signals: sending, and what happens before a return to user mode.
 *
 * A pending signal is a bit in sig_pending, set under proc_lock, with the reason in sig_info: of a
 * signal that is sent again meanwhile, only the first counts. The process acts on it when it
 * returns to user mode. sig_pending is also read without the lock, as a hint.
 */
#include "kernel/abi/signal.h"

#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/wait.h"
#include "kernel/lib/string.h"
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
#define FAULTS       (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP))

SDT_PROVIDER_DECLARE(proc);
SDT_PROVIDER_DECLARE(signal);
SDT_PROBE_DEFINE_TEXT(signal, , , signal_generate, "signal_generate",
		      ": sig=%d errno=%d code=%d comm=%s pid=%u", 5, "int", "int", "int", "char *",
		      "pid_t");
SDT_PROBE_DEFINE_TEXT(signal, , , signal_deliver, "signal_deliver",
		      ": sig=%d errno=%d code=%d sa_handler=%lx sa_flags=%lx", 5, "int", "int",
		      "int", "uintptr_t", "unsigned long");
SDT_PROBE_DEFINE_TEXT(proc, , , signal_send, "signal-send", ": thread %p proc %p sig %d pid %u", 4,
		      "struct thread *", "struct proc *", "int", "pid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , signal_discard, "signal-discard",
		      ": thread %p proc %p sig %d pid %u", 4, "struct thread *", "struct proc *",
		      "int", "pid_t");
SDT_PROBE_DEFINE_TEXT(proc, , , signal_handle, "signal-handle", ": sig %d code %#x handler %p", 3,
		      "int", "int", "void (*)(void)");

/* Would sig have no effect on p? proc_lock held, or p is the current process. */
static bool
is_ignored(const struct proc *p, int sig)
{
	if (p->sig_caught & BIT(sig))
		return false;
	/* Nothing may kill process 1, so it has no default actions. */
	if (p->pid == 1)
		return true;
	if (BIT(sig) & UNSTOPPABLE)
		return false;
	return ((p->sig_ignored | NO_ACTION) & BIT(sig)) != 0;
}

/* The child p has stopped or goes on. proc_lock held. */
static void
tell_parent(struct proc *p, int wait_status)
{
	bool stopped = WIFSTOPPED(wait_status);

	p->wait_status = wait_status;
	p->status_new = true;
	if (!(p->parent->sig_action[SIGCHLD - 1].sa_flags & SA_NOCLDSTOP))
		proc_signal_info_locked(
		    p->parent, SIGCHLD,
		    &(struct proc_siginfo){stopped ? CLD_STOPPED : CLD_CONTINUED, p->pid,
					   .uid = p->uid,
					   .status = stopped ? WSTOPSIG(wait_status) : SIGCONT});
	wakeup(p->parent);
}

void
proc_signal_info_locked(struct proc *p, int sig, const struct proc_siginfo *info)
{
	SDT_CTR2(proc, , , signal_send, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
		 "signal post: pid %u sig %d", p->pid, sig);
	SDT_PROBE5(signal, , , signal_generate, sig, 0, info->code, ktr_intern(p->name), p->pid);
	if (p->state == PROC_ZOMBIE)
		return;
	if (sig == SIGKILL)
		wakeup(&p->vforking);
	if (BIT(sig) & STOP_SIGNALS)
		p->sig_pending &= ~BIT(SIGCONT);
	if (sig == SIGCONT || sig == SIGKILL) {
		p->sig_pending &= ~STOP_SIGNALS;
		if (p->state == PROC_STOPPED) {
			p->state = PROC_ALIVE;
			wakeup(&p->state);
			p->status_new = false;
			if (sig == SIGCONT)
				tell_parent(p, 0xffff);
		}
	}
	if (is_ignored(p, sig) &&
	    !((p->sig_blocked | p->sig_awaited) & BIT(sig) & ~p->sig_ignored)) {
		SDT_CTR2(proc, , , signal_discard, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
			 "signal ignored: pid %u sig %d", p->pid, sig);
		return;
	}
	if (!(p->sig_pending & BIT(sig)))
		p->sig_info[sig - 1] = *info;
	__atomic_store_n(&p->sig_pending, p->sig_pending | BIT(sig), __ATOMIC_SEQ_CST);
	sleepq_interrupt(p->thread);
}

void
proc_signal_locked(struct proc *p, int sig)
{
	proc_signal_info_locked(p, sig, &(struct proc_siginfo){.code = SI_KERNEL});
}

void
proc_signal_fault_locked(struct proc *p, int sig, const struct proc_siginfo *info)
{
	if ((p->sig_blocked | p->sig_ignored) & BIT(sig)) {
		p->sig_blocked &= ~BIT(sig);
		p->sig_ignored &= ~BIT(sig);
		p->sig_caught &= ~BIT(sig);
		p->sig_action[sig - 1] = (struct kernel_sigaction){SIG_DFL};
	}
	p->sig_pending &= ~BIT(sig); /* this reason counts */
	proc_signal_info_locked(p, sig, info);
}

void
proc_signals_exec(struct proc *p)
{
	for (unsigned i = 0; i < NSIG; i++)
		if (p->sig_caught & 1ul << i)
			p->sig_action[i] = (struct kernel_sigaction){SIG_DFL};
	p->sig_caught = 0;
	p->sig_stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
}

void
proc_signals_fork(struct proc *p, const struct proc *parent)
{
	p->sig_ignored = parent->sig_ignored;
	p->sig_caught = parent->sig_caught;
	p->sig_blocked = parent->sig_blocked;
	p->sig_stack = parent->sig_stack;
	memcpy(p->sig_action, parent->sig_action, sizeof(p->sig_action));
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
	CTR2(KTR_SIG, "signal stop: pid %u sig %d", p->pid, sig);
	p->state = PROC_STOPPED;
	tell_parent(p, sig << 8 | 0x7f);
	while (p->state == PROC_STOPPED)
		sleep_on(&p->state, &proc_lock, "stopped", 0, DEADLINE_NEVER);
}

/* What a system call does that a signal has interrupted. */
enum interrupted {
	NOT,    /* no such call */
	FINAL,  /* it ends with EINTR */
	WAITED, /* for a handler: it begins again if there was none */
	AGAIN   /* it begins again, unless a handler without SA_RESTART ran */
};

static enum interrupted
interrupted_call(const struct arch_trapframe *tf)
{
	static const struct {
		const char *name;
		enum interrupted how;
	} special[] = {{"clock_nanosleep", FINAL}, {"nanosleep", FINAL},
		       {"pause", WAITED},          {"poll", FINAL},
		       {"ppoll", FINAL},           {"pselect6", FINAL},
		       {"select", FINAL},          {"rt_sigsuspend", WAITED},
		       {"rt_sigtimedwait", FINAL}};
	const char *name;

	if (!arch_tf_in_syscall(tf) || arch_tf_return(tf) != (uint64_t)-EINTR)
		return NOT;
	name = syscall_name(arch_tf_syscall(tf));
	for (unsigned i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (strcmp(special[i].name, name) == 0)
			return special[i].how;
	return AGAIN;
}

/* Takes the next signal to act on. 0: none. proc_lock held. */
static int
take_signal(struct proc *p, struct proc_siginfo *info)
{
	uint64_t set = deliverable(p);
	int sig;

	if (set == 0)
		return 0;
	/* First what must not wait, and faults, whose handlers see the registers of the fault. */
	sig = (set & BIT(SIGKILL))  ? SIGKILL
	      : (set & FAULTS) != 0 ? __builtin_ctzl(set & FAULTS) + 1
				    : __builtin_ctzl(set) + 1;
	p->sig_pending &= ~BIT(sig);
	*info = p->sig_info[sig - 1];
	return sig;
}

/*
 * Prepares the run of a handler. Called and returns with proc_lock held. False: the process must
 * die.
 */
static bool
run_handler(struct proc *p, struct arch_trapframe *tf, int sig, const struct proc_siginfo *info)
{
	struct kernel_sigaction act = p->sig_action[sig - 1];
	uint64_t mask = p->sig_restore ? p->sig_saved : p->sig_blocked;
	bool good;

	p->sig_restore = false;
	p->sig_blocked |= (act.sa_mask | (act.sa_flags & SA_NODEFER ? 0 : BIT(sig))) & ~UNSTOPPABLE;
	if (act.sa_flags & SA_RESETHAND) {
		p->sig_caught &= ~BIT(sig);
		p->sig_action[sig - 1].sa_handler = SIG_DFL;
	}
	spin_unlock(&proc_lock);
	SDT_CTR4(proc, , , signal_handle, SDT_ARGS3(sig, info->code, act.sa_handler), KTR_SIG,
		 "signal handle: pid %u sig %d code %d handler %#lx", p->pid, sig, info->code,
		 act.sa_handler);
	SDT_PROBE5(signal, , , signal_deliver, sig, 0, info->code, act.sa_handler, act.sa_flags);
	good = sigframe_enter(p, tf, sig, &act, info, mask);
	spin_lock(&proc_lock);
	return good;
}

void
proc_deliver_signals(struct arch_trapframe *tf)
{
	struct proc *p = curproc();
	enum interrupted call;
	struct proc_siginfo info;
	int sig;

	if (deliverable(p) == 0)
		return;
	call = interrupted_call(tf);
	spin_lock(&proc_lock);
	while ((sig = take_signal(p, &info)) != 0) {
		if (is_ignored(p, sig))
			continue;
		if (p->sig_caught & BIT(sig)) {
			if (call == AGAIN && (p->sig_action[sig - 1].sa_flags & SA_RESTART))
				arch_tf_syscall_again(tf);
			call = NOT;
			if (run_handler(p, tf, sig, &info))
				continue;
			sig = SIGSEGV;
		} else if (BIT(sig) & STOP_SIGNALS) {
			stop_here(p, sig);
			continue;
		}
		spin_unlock(&proc_lock);
		SDT_CTR3(proc, , , signal_handle, SDT_ARGS3(sig, info.code, (uint64_t)SIG_DFL),
			 KTR_SIG, "signal deliver: pid %u sig %d name %s", p->pid, sig,
			 ktr_intern(p->name));
		SDT_PROBE5(signal, , , signal_deliver, sig, 0, info.code, (uint64_t)SIG_DFL, 0);
		proc_exit(sig);
	}
	if (call == AGAIN || call == WAITED)
		arch_tf_syscall_again(tf);
	if (p->sig_restore)
		p->sig_blocked = p->sig_saved;
	p->sig_restore = false;
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
	return -EINTR;
}
