/*
 * ptrace.c - debuggers: where a traced thread stops, and who traces whom. The requests are in
 * ptrace_syscall.c. Locking: ptrace.h.
 */
#include "kernel/proc/ptrace.h"

#include "arch/context.h"
#include "arch/regset.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/ptrace.h"
#include "kernel/abi/wait.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

#define BIT(sig)               (1ul << ((sig)-1))
#define STOP_STATUS(sig)       ((sig) << 8 | 0x7f)
#define STOP_EVENT(sig, event) ((event) << 16 | STOP_STATUS(sig))

bool
ptrace_traced(const struct lwp *l)
{
	return l->ptrace != NULL && l->ptrace->tracer != NULL;
}

struct ptrace *
ptrace_alloc(void)
{
	struct uidinfo *ui = proc_uidinfo();
	struct ptrace *pt = uidinfo_alloc(ui, sizeof(*pt));

	if (pt != NULL) {
		pt->ui = ui;
		list_init(&pt->link);
	}
	return pt;
}

void
ptrace_free(struct ptrace *pt)
{
	if (pt != NULL)
		uidinfo_free(pt->ui, pt);
}

void
ptrace_attach(struct ptrace *pt, struct proc *tracer, struct lwp *l)
{
	struct proc *p = l->thread->proc;

	proc_timers_resume(p, ~0ul); /* a tracer hears all signals */
	pt->tracer = tracer;
	pt->lwp = l;
	pt->tid = l->thread->tid;
	pt->pid = p->pid;
	l->ptrace = pt;
	list_append(&tracer->tracees, &pt->link);
	CTR3(KTR_PROC, "ptrace attach: tid %u by %u seized %d", pt->tid, tracer->pid, pt->seized);
}

bool
ptrace_lets_gain(const struct lwp *l)
{
	return !ptrace_traced(l) || l->ptrace->capable;
}

struct proc *
ptrace_process(const struct ptrace *pt)
{
	return pt->lwp != NULL ? pt->lwp->thread->proc : proc_find(pt->pid);
}

/* Nobody traces the thread any more. Frees the record, unless the thread is in its stop. */
void
ptrace_detach(struct ptrace *pt)
{
	struct proc *p = ptrace_process(pt);
	struct lwp *l = pt->lwp;

	CTR2(KTR_PROC, "ptrace detach: tid %u state %d", pt->tid, pt->state);
	list_remove(&pt->link);
	pt->tracer = NULL;
	pt->interrupt = pt->passed = false;
	if (pt->inside) {
		pt->state = PTRACE_RUNS;
		wakeup(&l->ptrace);
		return;
	}
	if (l != NULL) {
		l->ptrace = NULL;
		proc_signals_update(p);
	} else if (pt->tid == pt->pid && p != NULL) {
		p->first.ptrace = NULL;
	}
	/* The parent may know of the end now. */
	if (pt->state == PTRACE_ENDED && pt->tid == pt->pid && p != NULL)
		proc_tell_end(p, false);
	ptrace_free(pt);
}

void
ptrace_tracer_ends(struct proc *p)
{
	list_for_each_entry_safe (struct ptrace, pt, &p->tracees, link) {
		if ((pt->options & PTRACE_O_EXITKILL) && pt->lwp != NULL)
			proc_signal_locked(pt->lwp->thread->proc, SIGKILL);
		ptrace_detach(pt);
	}
}

/* ---- stops ---- */

/* Does the thread l have to end? told: it does so already, and something new is looked for. */
static bool
is_killed(const struct lwp *l, bool told)
{
	const struct proc *p = curproc();

	return (!told && (p->exiting || l->dying)) || p->doomed_ns != 0 ||
	       ((p->pending.set | l->pending.set) & BIT(SIGKILL));
}

/* Ends the wait of the tracer, and sends it SIGCHLD. */
static void
tell_tracer(struct ptrace *pt, int code, int status)
{
	struct proc *tracer = pt->tracer;
	pt->news = true;
	if (code != CLD_TRAPPED || proc_hears_stops(tracer))
		proc_signal_send(tracer, NULL,
				 &(struct siginfo){SIGCHLD, .si_code = code, .si_pid = pt->tid,
						   .si_uid = pt->uid, .si_status = status},
				 NULL);
	wakeup(tracer);
}

/* The thread goes on as its tracer has said. Returns the signal that the thread is to have. */
static int
go_on(struct lwp *l, struct ptrace *pt, struct arch_trapframe *tf)
{
	struct thread *t = curthread();
	int sig = pt->sig;

	pt->state = PTRACE_RUNS;
	pt->inside = false;
	pt->call = PTRACE_NO_CALL;
	pt->news = false;
	if (pt->fpu_set)
		thread_fpu_load(&pt->fpu);
	pt->fpu_set = false;
	irq_push();
	arch_context_prepare((uintptr_t)(tf + 1), t->tls); /* the tracer may have changed it */
	irq_pop();
	t->traced = pt->tracer != NULL && pt->mode != PTRACE_CONT;
	t->holds = true; /* ptrace_return() is to be called */
	if (pt->tracer == NULL) {
		l->ptrace = NULL;
		ptrace_free(pt);
	}
	proc_signals_update(curproc());
	return sig;
}

/*
 * The current thread stops with a wait status. sig: the signal that it gets if its tracer ends
 * meanwhile. dying: it is about to end. If it was told to, only SIGKILL, or a need of its memory,
 * lets it go on before. Returns the signal that the tracer lets it have; 0 if it is killed.
 */
static int
ptrace_stop(int status, int sig, bool dying)
{
	struct lwp *l = curlwp();
	struct ptrace *pt = l->ptrace;
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);
	bool told = dying && (curproc()->exiting || l->dying);

	if (is_killed(l, told))
		return 0;
	irq_push();
	if (curthread()->stepped) /* else the program steps itself */
		arch_user_step(tf, false);
	curthread()->stepped = false;
	irq_pop();
	pt->has_fpu = thread_fpu_save(&pt->fpu);
	pt->uid = curproc()->ruid;
	pt->pgid = curproc()->pgid;
	pt->status = status;
	pt->sig = sig;
	pt->mode = PTRACE_CONT;
	pt->state = PTRACE_STOPPED;
	pt->inside = true;
	CTR2(KTR_PROC, "ptrace stop: tid %u status %#x", pt->tid, status);
	tell_tracer(pt, CLD_TRAPPED, status >> 8);
	while (!is_killed(l, told) &&
	       (pt->state == PTRACE_STOPPED || (pt->state == PTRACE_LISTENS && !pt->interrupt)))
		sleep_on(&l->ptrace, &proc_lock, "ptrace", 0, DEADLINE_NEVER);
	sig = go_on(l, pt, tf);
	return is_killed(l, told) ? 0 : sig;
}

/* What siginfo tells of a stop that no signal has caused. */
static void
set_trap_info(struct ptrace *pt, int code)
{
	pt->has_info = true;
	pt->info = (struct siginfo){SIGTRAP, .si_code = code, .si_pid = pt->tid,
				    .si_uid = curproc()->ruid};
}

int
ptrace_signal(int sig, struct siginfo *info)
{
	struct ptrace *pt = curlwp()->ptrace;
	int now;

	pt->has_info = true;
	pt->info = *info;
	now = ptrace_stop(STOP_STATUS(sig), sig, false);
	if (curlwp()->ptrace != NULL)
		*info = pt->info; /* the tracer may have changed it */
	if (now != info->si_signo)
		*info = (struct siginfo){now, .si_code = SI_USER};
	return now;
}

void
ptrace_group_stop(int sig)
{
	struct ptrace *pt = curlwp()->ptrace;
	int status = pt->seized ? STOP_EVENT(sig, PTRACE_EVENT_STOP) : STOP_STATUS(sig);

	pt->passed = true;
	set_trap_info(pt, status >> 8);
	pt->has_info = pt->seized;
	ptrace_stop(status, 0, false);
}

void
ptrace_interrupted(void)
{
	struct ptrace *pt = curlwp()->ptrace;
	const struct proc *p = curproc();
	bool group = p->state == PROC_STOPPED;
	int status = STOP_EVENT(group ? p->stop_sig : SIGTRAP, PTRACE_EVENT_STOP);

	pt->interrupt = false;
	pt->passed = group;
	set_trap_info(pt, status >> 8);
	ptrace_stop(status, 0, false);
}

/* Stops with SIGTRAP. */
static void
ptrace_trap(int status, int code, bool dying)
{
	set_trap_info(curlwp()->ptrace, code);
	ptrace_stop(status, 0, dying);
}

void
ptrace_handler(void)
{
	if (ptrace_traced(curlwp()) && curlwp()->ptrace->mode == PTRACE_SINGLESTEP)
		ptrace_trap(STOP_STATUS(SIGTRAP), SIGTRAP, false);
}

/* Does the tracer want that event? proc_lock held. */
static bool
ptrace_wants(int event)
{
	return ptrace_traced(curlwp()) && (curlwp()->ptrace->options & 1u << event);
}

void
ptrace_event(int event, uint64_t message)
{
	int status = STOP_EVENT(SIGTRAP, event);

	if (curlwp()->ptrace == NULL)
		return;
	spin_lock(&proc_lock);
	if (ptrace_wants(event)) {
		curlwp()->ptrace->message = message;
		ptrace_trap(status, status >> 8, event == PTRACE_EVENT_EXIT);
	}
	spin_unlock(&proc_lock);
}

void
ptrace_executed(uint32_t old_tid)
{
	bool by_signal;

	spin_lock(&proc_lock); /* before the event, at which the tracer may change its options */
	by_signal = ptrace_traced(curlwp()) && !ptrace_wants(PTRACE_EVENT_EXEC) &&
		    !curlwp()->ptrace->seized;
	spin_unlock(&proc_lock);
	ptrace_event(PTRACE_EVENT_EXEC, old_tid);
	if (by_signal)
		proc_signal_self(SIGTRAP);
}

/* Stops at a system call, if the tracer wants that. proc_lock held. */
static void
call_stop(enum ptrace_call call)
{
	struct ptrace *pt = curlwp()->ptrace;
	int sig = SIGTRAP;

	if (pt->options & PTRACE_O_TRACESYSGOOD)
		sig |= 0x80;
	pt->call = call;
	set_trap_info(pt, sig);
	sig = ptrace_stop(STOP_STATUS(sig), 0, false);
	if (sig != 0)
		proc_signal_send(curproc(), curlwp(), &(struct siginfo){.si_signo = sig}, NULL);
}

bool
ptrace_call_enter(struct arch_trapframe *tf)
{
	uint64_t call = arch_tf_syscall(tf);
	bool go = true;

	spin_lock(&proc_lock);
	if (ptrace_traced(curlwp()) && curlwp()->ptrace->mode == PTRACE_SYSCALL) {
		arch_tf_syscall_enter(tf);
		call_stop(PTRACE_CALL_ENTRY);
		if (arch_tf_syscall(tf) != call)
			curlwp()->again_ns = 0; /* not the call that begins again */

		go = !is_killed(curlwp(), false); /* its tracer may have killed it for that call */
	}
	spin_unlock(&proc_lock);
	return go && (int32_t)arch_tf_syscall(tf) != -1;
}

void
ptrace_call_leave(struct arch_trapframe *tf)
{
	struct lwp *l = curlwp();

	spin_lock(&proc_lock);
	if (!ptrace_traced(l))
		curthread()->traced = false;
	else if (l->ptrace->mode == PTRACE_SYSCALL)
		call_stop(PTRACE_CALL_EXIT);
	else if (l->ptrace->mode == PTRACE_SINGLESTEP)
		proc_signal_send(l->thread->proc, l,
				 &(struct siginfo){SIGTRAP, .si_code = TRAP_TRACE,
						   .si_addr = arch_tf_pc(tf)},
				 NULL);
	spin_unlock(&proc_lock);
}

void
ptrace_return(struct arch_trapframe *tf)
{
	const struct ptrace *pt;

	spin_lock(&proc_lock);
	pt = curlwp()->ptrace;
	if (pt != NULL && pt->tracer != NULL && pt->mode == PTRACE_SINGLESTEP) {
		if (arch_user_step(tf, true))
			curthread()->stepped = true;
	}
	spin_unlock(&proc_lock);
}

/* ---- beginnings and ends ---- */

struct ptrace *
ptrace_child(int event, int *error)
{
	struct ptrace *pt;
	bool wanted;

	spin_lock(&proc_lock);
	wanted = ptrace_wants(event);
	spin_unlock(&proc_lock);
	pt = wanted ? ptrace_alloc() : NULL;
	*error = wanted && pt == NULL ? -ENOMEM : 0;
	return pt;
}

void
ptrace_child_attach(struct ptrace *pt, struct lwp *l)
{
	const struct ptrace *own = curlwp()->ptrace;

	if (pt == NULL)
		return;
	if (own == NULL || own->tracer == NULL) {
		ptrace_free(pt);
		return;
	}
	pt->options = own->options;
	pt->capable = own->capable;
	pt->seized = pt->interrupt = own->seized;
	ptrace_attach(pt, own->tracer, l);
	if (!pt->seized)
		l->pending.set |= BIT(SIGSTOP);
	proc_signals_update(l->thread->proc);
}

static void
ptrace_note_end(struct ptrace *pt, const struct proc *p, int wait_status)
{
	pt->state = PTRACE_ENDED;
	pt->lwp = NULL;
	pt->status = wait_status;
	pt->pgid = p->pgid;
	pt->uid = p->ruid;
	tell_tracer(pt, (wait_status & 0x7f) == 0 ? CLD_EXITED : CLD_KILLED,
		    (wait_status & 0x7f) == 0 ? wait_status >> 8 & 0xff : wait_status & 0x7f);
}

void
ptrace_thread_ends(struct lwp *l, int wait_status)
{
	struct ptrace *pt = l->ptrace;

	/* The first thread counts as the process, which ends later. */
	if (pt == NULL || pt->tid == pt->pid) {
		if (pt != NULL)
			pt->lwp = NULL;
		return;
	}
	l->ptrace = NULL;
	ptrace_note_end(pt, curproc(), wait_status);
}

bool
ptrace_process_ends(struct proc *p, int wait_status)
{
	struct ptrace *pt = p->first.ptrace;

	if (pt == NULL || ptrace_forget_own(p))
		return false;
	ptrace_note_end(pt, p, wait_status);
	return true;
}

bool
ptrace_forget_own(struct proc *p)
{
	struct ptrace *pt = p->first.ptrace;

	if (!ptrace_is_own(p))
		return false;
	p->first.ptrace = NULL;
	list_remove(&pt->link);
	ptrace_free(pt);
	return true;
}

void
ptrace_become_first(struct lwp *first, struct lwp *l)
{
	struct ptrace *old = first->ptrace;

	if (old != NULL) {
		list_remove(&old->link);
		wakeup(old->tracer); /* it may wait for this one */
		ptrace_free(old);
	}
	first->ptrace = l->ptrace;
	l->ptrace = NULL;
	if (first->ptrace != NULL) {
		first->ptrace->lwp = first;
		first->ptrace->tid = first->ptrace->pid;
	}
}

void
ptrace_wake(struct proc *p)
{
	for_each_lwp(l, p) wakeup(&l->ptrace);
}

void
ptrace_group_goes_on(struct proc *p)
{
	for_each_lwp(l, p)
	{
		if (l->ptrace == NULL)
			continue;
		l->ptrace->passed = false;
		l->ptrace->interrupt |= l->ptrace->seized;
	}
	ptrace_wake(p);
}

/* ---- waiting ---- */

struct ptrace *
ptrace_news(bool (*wanted)(int64_t want, uint32_t tid, uint32_t pgid), int64_t want, int options,
	    bool *any)
{
	list_for_each_entry (struct ptrace, pt, &curproc()->tracees, link) {
		if (!wanted(want, pt->tid,
			    pt->lwp != NULL ? pt->lwp->thread->proc->pgid : pt->pgid))
			continue;
		*any = true;
		if (pt->news && (pt->state != PTRACE_ENDED || (options & WEXITED)))
			return pt;
	}
	return NULL;
}

void
ptrace_waited(struct ptrace *pt)
{
	pt->news = false;
	if (pt->state == PTRACE_ENDED)
		ptrace_detach(pt);
}

bool
ptrace_holds(const struct proc *p)
{
	return p->first.ptrace != NULL && p->first.ptrace->state == PTRACE_ENDED;
}

bool
ptrace_is_own(const struct proc *p)
{
	return p->first.ptrace != NULL && p->first.ptrace->tracer == p->parent;
}
