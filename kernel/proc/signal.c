/*
 * signal.c - signals: sending, and what happens before a return to user mode.
 *
 * A signal is pending for the process, or for the thread for which it is meant. Of a standard
 * signal that is sent again meanwhile, only the first counts. A thread that does not block it acts
 * on it when it returns to user mode. thread.signalled says that there is something to act on.
 */
#include "kernel/abi/signal.h"

#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/syscall.h"
#include "kernel/abi/wait.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"
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

struct poll_source proc_signal_news;
uint32_t proc_signal_files;

bool
proc_signal_ignored(const struct proc *p, int sig)
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

/* Signals that the thread has to act on. proc_lock held. */
static uint64_t
signal_deliverable(const struct proc *p, const struct lwp *l)
{
	return (p->pending.set | l->pending.set) & (~l->sig_blocked | UNSTOPPABLE);
}

/* Has the thread to stop with its process? Not if its tracer let it go on. proc_lock held. */
static bool
is_stopped(const struct proc *p, const struct lwp *l)
{
	return p->state == PROC_STOPPED && !(l->ptrace != NULL && l->ptrace->passed);
}

void
proc_signals_update_thread(struct proc *p, struct lwp *l)
{
	bool stops = is_stopped(p, l) || (l->ptrace != NULL && l->ptrace->interrupt);
	bool must = signal_deliverable(p, l) != 0 || p->exiting || l->dying || stops;

	/* seq_cst: a thread that goes to sleep looks at it afterwards */
	if (!__atomic_exchange_n(&l->thread->signalled, must, __ATOMIC_SEQ_CST) && must)
		sched_kick(l->thread); /* its program may be running */
	if (must && l->vfork_child != NULL)
		wakeup(&l->vfork_child);
}

void
proc_signals_update(struct proc *p)
{
	for_each_lwp(l, p) proc_signals_update_thread(p, l);
}

void
proc_signal_child(struct proc *p, int sig, int code, int status)
{
	proc_signal_send(p->parent, NULL,
			 &(struct siginfo){sig, .si_code = code, .si_pid = p->pid,
					   .si_uid = p->ruid, .si_status = status},
			 NULL);
}

bool
proc_hears_stops(const struct proc *p)
{
	return !(p->sig_ignored & BIT(SIGCHLD)) &&
	       !(p->sig_action[SIGCHLD - 1].sa_flags & SA_NOCLDSTOP);
}

/* The child p has stopped or goes on. proc_lock held. */
static void
tell_parent(struct proc *p, int wait_status)
{
	bool stopped = WIFSTOPPED(wait_status);

	p->wait_status = wait_status;
	p->status_new = true;
	if (proc_hears_stops(p->parent))
		proc_signal_child(p, SIGCHLD, stopped ? CLD_STOPPED : CLD_CONTINUED,
				  stopped ? WSTOPSIG(wait_status) : SIGCONT);
	wakeup(p->parent);
}

/*
 * Do the threads that may get sig, l or all, block it or await it, so that it has to wait? Also if
 * it is ignored: until somebody takes it, it may get a handler.
 */
static bool
signal_is_wanted(const struct proc *p, const struct lwp *l, int sig)
{
	bool blocked = true;

	if (l != NULL)
		return ((l->sig_blocked | l->sig_awaited) & BIT(sig)) != 0;
	for_each_lwp(any, p)
	{
		if (any->sig_awaited & BIT(sig))
			return true;
		blocked &= (any->sig_blocked & BIT(sig)) != 0;
	}
	return blocked;
}

/* A tracer learns of signals that are ignored, too. */
static bool
is_traced(const struct proc *p, const struct lwp *to, int sig)
{
	if (to != NULL)
		return ptrace_traced(to) && sig != SIGKILL;
	for_each_lwp(l, p) if (ptrace_traced(l) && sig != SIGKILL) return true;
	return false;
}

void
proc_signals_retarget(struct proc *p, uint64_t set)
{
	set &= p->pending.set;
	if (curproc() == p && curlwp()->vfork_child == NULL)
		set &= curlwp()->sig_blocked; /* it runs: it takes what it does not block */
	if (set == 0)
		return;
	for_each_lwp(l, p)
	{
		/* Who sleeps on, also in vfork(), or stands in a tracer's stop takes none soon. */
		if ((set & ~l->sig_blocked) == 0 || l->vfork_child != NULL ||
		    (l->ptrace != NULL && l->ptrace->inside) || !sleepq_interrupt(l->thread))
			continue;
		set &= l->sig_blocked;
		if (set == 0)
			break;
	}
}

/* Takes sig, which is pending for l or for p. */
static void
signal_take(struct proc *p, struct lwp *l, int sig, struct siginfo *info)
{
	struct sigpending *from = l->pending.set & BIT(sig) ? &l->pending : &p->pending;

	proc_timers_take(p, info, sigqueue_take(from, sig, info), false);
}

int
proc_signal_send(struct proc *p, struct lwp *l, const struct siginfo *info, struct sigqueue *own)
{
	struct sigpending *to = l != NULL ? &l->pending : &p->pending;
	int sig = info->si_signo;

	SDT_CTR2(proc, , , signal_send, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
		 "signal post: pid %u sig %d", p->pid, sig);
	SDT_PROBE5(signal, , , signal_generate, sig, 0, info->si_code,
		   ktr_intern(l != NULL ? l->thread->name : p->name),
		   l != NULL ? l->thread->tid : p->pid);
	if (p->state == PROC_ZOMBIE)
		return 0;
	if (sig == SIGKILL)
		ptrace_wake(p);
	if (BIT(sig) & STOP_SIGNALS)
		proc_signals_drop(p, BIT(SIGCONT));
	if (sig == SIGCONT || sig == SIGKILL) {
		proc_signals_drop(p, STOP_SIGNALS);
		for_each_lwp(any, p) any->sig_stops = any->stops = false;
		if (p->state == PROC_STOPPED) {
			p->state = PROC_ALIVE;
			p->stopping = 0;
			wakeup(&p->state);
			p->status_new = false;
			ptrace_group_goes_on(p);
			if (sig == SIGCONT)
				tell_parent(p, WAIT_CONTINUED);
		}
	}
	if (proc_signal_ignored(p, sig) && !signal_is_wanted(p, l, sig) && !is_traced(p, l, sig)) {
		SDT_CTR2(proc, , , signal_discard, SDT_ARGS4(p->thread, p, sig, p->pid), KTR_SIG,
			 "signal ignored: pid %u sig %d", p->pid, sig);
		proc_signals_update(p);
		return 0;
	}
	if (own == NULL && (sig >= SIGRTMIN || !(to->set & BIT(sig)))) {
		own = sigqueue_alloc(p, sig >= SIGRTMIN || info->si_code < 0);
		if (own == NULL && sig >= SIGRTMIN && info->si_code != SI_USER &&
		    info->si_code != SI_KERNEL)
			return -EAGAIN;
	}
	if (own != NULL && !own->queued) {
		own->info = *info;
		sigqueue_add(to, own);
	}
	to->set |= BIT(sig);
	if (__atomic_load_n(&proc_signal_files, __ATOMIC_SEQ_CST) != 0)
		poll_notify(&proc_signal_news, POLLIN);
	proc_signals_update(p);
	if (l != NULL)
		sleepq_interrupt(l->thread);
	else if (BIT(sig) & UNSTOPPABLE)
		for_each_lwp(any, p) sleepq_interrupt(any->thread);
	else
		proc_signals_retarget(p, BIT(sig));
	return 0;
}

void
proc_signal_locked(struct proc *p, int sig)
{
	proc_signal_send(p, NULL, &(struct siginfo){sig, .si_code = SI_KERNEL}, NULL);
}

void
proc_signal_fault_locked(struct proc *p, const struct siginfo *info)
{
	struct lwp *l = curlwp();
	int sig = info->si_signo;

	if ((l->sig_blocked | p->sig_ignored) & BIT(sig)) {
		l->sig_blocked &= ~BIT(sig);
		p->sig_ignored &= ~BIT(sig);
		p->sig_caught &= ~BIT(sig);
		p->sig_action[sig - 1] = (struct kernel_sigaction){SIG_DFL};
	}
	sigpending_drop(p, &l->pending, BIT(sig)); /* this reason counts */
	l->fault.kept = true;
	proc_signal_send(p, l, info, l->fault.queued ? NULL : &l->fault);
}

static void
reset_handlers(struct proc *p)
{
	for (unsigned i = 0; i < NSIG; i++)
		p->sig_action[i] = (struct kernel_sigaction){
		    .sa_handler = p->sig_caught & 1ul << i ? SIG_DFL : p->sig_action[i].sa_handler};
	p->sig_caught = 0;
}

void
proc_signals_exec(struct proc *p)
{
	reset_handlers(p);
	curlwp()->sig_stack = curlwp()->left_stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
	curlwp()->fault_regs = (struct arch_fault){0};
}

void
proc_signals_fork(struct proc *p, const struct proc *parent, bool clear)
{
	p->sig_ignored = parent->sig_ignored;
	p->sig_caught = parent->sig_caught;
	p->first.sig_blocked = curlwp()->sig_blocked;
	p->first.sig_stack = curlwp()->sig_stack;
	p->first.left_stack = curlwp()->left_stack;
	memcpy(p->sig_action, parent->sig_action, sizeof(p->sig_action));
	if (clear)
		reset_handlers(p);
}

void
proc_signal_self(int sig)
{
	if (curproc() == NULL)
		return;
	spin_lock(&proc_lock);
	proc_signal_send(curproc(), curlwp(), &(struct siginfo){sig, .si_code = SI_KERNEL}, NULL);
	spin_unlock(&proc_lock);
}

bool
proc_signal_pending(void)
{
	return __atomic_load_n(&curthread()->signalled, __ATOMIC_SEQ_CST);
}

/* The signals that kill the current process, whatever else is pending. proc_lock held. */
static uint64_t
fatal_signals(const struct proc *p, const struct lwp *l)
{
	uint64_t set = signal_deliverable(p, l) & ~p->sig_caught;

	if (p->pid == 1)
		return 0; /* it has no default actions */
	return set &
	       (ptrace_traced(l) ? BIT(SIGKILL) : ~(STOP_SIGNALS | p->sig_ignored | NO_ACTION));
}

bool
proc_signal_ends(bool or_stops)
{
	const struct proc *p = curproc();
	const struct lwp *l = curlwp();
	uint64_t set = or_stops ? signal_deliverable(p, l) & ~p->sig_caught : fatal_signals(p, l);

	return p->exiting || l->dying || (or_stops && is_stopped(p, l)) || set != 0;
}

/* Stops the threads of the current process until it is continued. proc_lock held. */
static void
stop_all(struct proc *p, int sig)
{
	bool anew = p->state != PROC_STOPPED; /* otherwise a tracer let this thread go on */

	CTR2(KTR_SIG, "signal stop: pid %u sig %d", p->pid, sig);
	p->state = PROC_STOPPED;
	p->stop_sig = sig;
	for_each_lwp(l, p)
	{
		l->stops |= anew;
		p->stopping += anew;
		if (l->ptrace != NULL)
			l->ptrace->passed = false;
		proc_signals_update_thread(p, l);
		sleepq_interrupt(l->thread);
	}
}

void
proc_thread_stops(struct proc *p, struct lwp *l)
{
	if (!l->stops)
		return;
	l->stops = false;
	if (--p->stopping == 0)
		tell_parent(p, p->stop_sig << 8 | 0x7f);
}

/* The first signal among the thread's, then among its process's. 0: none. */
static int
first_signal(uint64_t own, uint64_t shared)
{
	uint64_t set = own != 0 ? own : shared;

	return set != 0 ? __builtin_ctzl(set) + 1 : 0;
}

int
proc_signal_take(uint64_t set, struct siginfo *info)
{
	struct proc *p = curproc();
	struct lwp *l = curlwp();
	int sig = first_signal(set & l->pending.set, set & p->pending.set);

	if (sig != 0) {
		signal_take(p, l, sig, info);
		proc_signals_update(p);
	}
	return sig;
}

int
proc_signal_take_fatal(struct siginfo *info)
{
	const struct proc *p = curproc();
	uint64_t set = fatal_signals(p, curlwp());

	if (p->exiting || curlwp()->dying) /* proc_deliver_signals() ends it first of all */
		return 0;
	return proc_signal_take(set & BIT(SIGKILL) ? BIT(SIGKILL) : set, info);
}

void
proc_signal_die(int sig, int code)
{
	int status = proc_exit_begin(sig);

	spin_unlock(&proc_lock);
	SDT_CTR3(proc, , , signal_handle, SDT_ARGS3(sig, code, (uint64_t)SIG_DFL), KTR_SIG,
		 "signal deliver: pid %u sig %d name %s", curproc()->pid, sig,
		 ktr_intern(curproc()->name));
	SDT_PROBE5(signal, , , signal_deliver, sig, 0, code, (uint64_t)SIG_DFL, 0);
	do_exit(status);
}

/* Takes the next signal that the thread has to act on. 0: none. proc_lock held. */
static int
take_signal(struct proc *p, struct lwp *l, struct siginfo *info)
{
	uint64_t set = signal_deliverable(p, l);

	/* First what must not wait, and faults, whose handlers see the registers of the fault. */
	if (set & (BIT(SIGKILL) | FAULTS))
		set &= set & BIT(SIGKILL) ? BIT(SIGKILL) : FAULTS;
	return set != 0 ? proc_signal_take(set, info) : 0;
}

/*
 * Prepares the run of a handler. Called and returns with proc_lock held. False: there is no stack
 * for it.
 */
static bool
run_handler(struct proc *p, struct arch_trapframe *tf, int sig, const struct siginfo *info)
{
	struct lwp *l = curlwp();
	struct kernel_sigaction act = p->sig_action[sig - 1];
	uint64_t mask = l->sig_restore ? l->sig_saved : l->sig_blocked, old = l->sig_blocked;
	bool good;

	/* A call that is about to begin again, until its old deadline, fails, as on Linux. */
	if (l->again_ns != 0 && arch_tf_pc(tf) == l->again_pc)
		arch_tf_set_next_call(tf, NR_restart_syscall);
	l->again_ns = 0; /* the handler's own calls come first */
	l->sig_restore = false;
	l->sig_blocked |= (act.sa_mask | (act.sa_flags & SA_NODEFER ? 0 : BIT(sig))) & ~UNSTOPPABLE;
	proc_signals_retarget(p, ~old); /* another thread may take what this thread blocks now */
	if (act.sa_flags & SA_RESETHAND) {
		p->sig_caught &= ~BIT(sig);
		p->sig_action[sig - 1].sa_handler = SIG_DFL;
	}
	spin_unlock(&proc_lock);
	SDT_CTR4(proc, , , signal_handle, SDT_ARGS3(sig, info->si_code, act.sa_handler), KTR_SIG,
		 "signal handle: pid %u sig %d code %d handler %#lx", p->pid, sig, info->si_code,
		 act.sa_handler);
	SDT_PROBE5(signal, , , signal_deliver, sig, 0, info->si_code, act.sa_handler, act.sa_flags);
	good = sigframe_enter(p, tf, sig, &act, info, mask);
	spin_lock(&proc_lock);
	if (!good)
		l->sig_blocked = mask;
	return good;
}

void
proc_deliver_signals(struct arch_trapframe *tf)
{
	struct proc *p = curproc();
	struct lwp *l = curlwp();
	struct interrupted call = interrupted_find(tf);
	struct siginfo info;
	bool any = false;
	int sig;

	if (call.how == RESTART_NOT && !proc_signal_pending()) {
		curthread()->interrupted_ns = 0;
		l->call_final = false;
		return;
	}
	spin_lock(&proc_lock);
	for (;;) {
		if (p->exiting || l->dying) {
			sig = proc_exit_begin(0); /* the process has its status */
			spin_unlock(&proc_lock);
			do_exit(sig);
		}
		if (p->state == PROC_STOPPED)
			proc_thread_stops(p, l);
		if (ptrace_traced(l))
			interrupted_show(&call, tf);
		if (ptrace_traced(l) && l->ptrace->interrupt) {
			ptrace_interrupted();
			interrupted_look(&call, tf);
			continue;
		}
		if (p->state == PROC_STOPPED && ptrace_traced(l)) {
			if (!l->ptrace->passed) {
				any = true;
				ptrace_group_stop(p->stop_sig);
				interrupted_look(&call, tf);
				continue;
			}
		} else if (p->state == PROC_STOPPED) {
			any = true;
			sleep_on(&p->state, &proc_lock, "stopped", 0, DEADLINE_NEVER);
			continue;
		}
		sig = take_signal(p, l, &info);
		if (sig == 0)
			break;
		any = true;
		l->sig_stops = true;
		if (ptrace_traced(l) && sig != SIGKILL) {
			sig = ptrace_signal(sig, &info);
			interrupted_look(&call, tf);
			if (sig == 0 || p->exiting || l->dying)
				continue;
			/* The tracer may have chosen another signal, or another mask. */
			if (l->sig_blocked & BIT(sig) & ~UNSTOPPABLE) {
				proc_signal_send(p, l, &info, NULL);
				continue;
			}
		}
		if (proc_signal_ignored(p, sig))
			continue;
		if (p->sig_caught & BIT(sig)) {
			interrupted_handler(&call, tf,
					    p->sig_action[sig - 1].sa_flags & SA_RESTART);
			if (run_handler(p, tf, sig, &info)) {
				ptrace_handler();
				continue;
			}
			if (p->exiting || l->dying)
				continue;
			if (sig != SIGSEGV) { /* SIGSEGV may have a handler with another stack */
				proc_signal_fault_locked(p,
							 &(struct siginfo){SIGSEGV,
									   .si_code = SI_KERNEL});
				continue;
			}
		} else if (BIT(sig) & STOP_SIGNALS) {
			/* Nobody would continue an orphaned group that the terminal stops. */
			if (l->sig_stops && (sig == SIGSTOP || !proc_orphaned(p, NULL)))
				stop_all(p, sig);
			continue;
		}
		proc_signal_die(sig, info.si_code);
	}
	interrupted_end(&call, tf, any);
	l->thread->interrupted_ns = 0;
	if (l->sig_restore)
		l->sig_blocked = l->sig_saved;
	l->sig_restore = l->call_final = false;
	proc_signals_update(p);
	spin_unlock(&proc_lock);
}

void
proc_call_final(uint64_t deadline)
{
	if (curlwp() == NULL)
		return;
	curlwp()->call_final = true;
	curthread()->interrupted_ns = deadline;
}

int
proc_stop_group(int sig)
{
	struct proc *p = curproc();
	int r = 0;

	spin_lock(&proc_lock);
	if (proc_signal_ignored(p, sig) || (curlwp()->sig_blocked & BIT(sig)))
		r = 1;
	else if (proc_orphaned(p, NULL))
		r = -EIO;
	spin_unlock(&proc_lock);
	if (r != 0)
		return r;
	proc_signal_group(p->sid, p->pgid, sig);
	return -EINTR;
}
