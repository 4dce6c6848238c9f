/*
 * sigframe.c - starts a signal handler, and ends it. Locking: none; the process's own thread.
 *
 * Everything that lies on the program's stack can be changed by the program. So what comes back
 * from there is checked (arch_sigframe_restore()), and gives it nothing that it could not do
 * itself.
 */
#include "arch/mmu.h"
#include "arch/signal.h"
#include "kernel/abi/errno.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/vdso.h"
#include "kernel/proc/vdso/data.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

/* Is sp in the memory of a stack? */
static bool
stack_has(const struct sigaltstack *s, uint64_t sp)
{
	return !(s->ss_flags & SS_DISABLE) && sp - s->ss_sp <= s->ss_size && sp != s->ss_sp;
}

bool
sigframe_on_stack(const struct sigaltstack *s, uint64_t sp)
{
	return !(s->ss_flags & SS_AUTODISARM) && stack_has(s, sp);
}

bool
sigframe_of_handler(const struct lwp *l, uint64_t sp)
{
	return sigframe_on_stack(&l->sig_stack, sp) || stack_has(&l->left_stack, sp);
}

bool
sigframe_enter(struct proc *p, struct arch_trapframe *tf, int sig,
	       const struct kernel_sigaction *act, const struct siginfo *info, uint64_t mask)
{
	struct arch_signal s = {.sig = sig,
				.handler = act->sa_handler,
				.restorer = act->sa_restorer,
				.mask = mask,
				.info = *info,
				.stack = curlwp()->sig_stack,
				.fault = curlwp()->fault_regs};
	struct arch_sigframe frame;
	struct sigaltstack *stack = &curlwp()->sig_stack;
	uintptr_t sp = arch_tf_sp(tf), at;
	bool on_it = sigframe_on_stack(stack, sp);

	if (s.handler >= ARCH_USER_END)
		return false;
	if (!(act->sa_flags & SA_RESTORER)) {
		if (!arch_sigreturn_in_vdso)
			return false;
		s.restorer = VDSO_AT + VDSO_SIGRETURN_AT;
	}
	if ((act->sa_flags & SA_ONSTACK) && !on_it && !(stack->ss_flags & SS_DISABLE)) {
		sp = stack->ss_sp + stack->ss_size;
		on_it = true;
	}
	at = arch_sigframe_place(sp);
	/* Below a stack for signals lies memory of another kind. */
	if (on_it && !stack_has(stack, at))
		return false;
	s.has_fpu = thread_fpu_save(&s.fpu);
	arch_sigframe_fill(&frame, at, tf, &s);
	if (copy_out(at, &frame, sizeof(frame)) != 0)
		return false;
	arch_sigframe_call(tf, at, &s);
	if (stack->ss_flags & SS_AUTODISARM) { /* the frame gives it back */
		curlwp()->left_stack = *stack;
		*stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
	}
	thread_fpu_end();
	return true;
}

/* Gives the current thread, whose stack pointer is sp, a stack for handlers. 0 or -errno. */
static int
set_stack(const struct sigaltstack *new, uint64_t sp)
{
	struct sigaltstack *own = &curlwp()->sig_stack;
	uint32_t flags = (uint32_t) new->ss_flags;
	uint32_t disarm = flags & SS_AUTODISARM, mode = flags & ~SS_AUTODISARM;

	if (sigframe_on_stack(own, sp))
		return -EPERM;
	if (mode != 0 && mode != SS_DISABLE && mode != SS_ONSTACK)
		return -EINVAL;
	if (mode == SS_DISABLE)
		*own = (struct sigaltstack){.ss_flags = new->ss_flags};
	else if (new->ss_size < ARCH_MINSIGSTKSZ)
		return -ENOMEM;
	else
		*own = (struct sigaltstack){new->ss_sp, disarm, .ss_size = new->ss_size};
	return 0;
}

int64_t
sys_rt_sigreturn(const uint64_t a[6])
{
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);
	struct proc *p = curproc();
	uint64_t at = arch_sigframe_find(tf);
	struct arch_sigframe frame;
	struct arch_signal s;

	if (copy_in(&frame, at, sizeof(frame)) != 0 || !arch_sigframe_restore(&frame, tf, &s)) {
		CTR2(KTR_SIG, "signal frame refused: pid %u frame %#lx", p->pid, at);
		spin_lock(&proc_lock);
		proc_signal_fault_locked(p, &(struct siginfo){SIGSEGV, .si_code = SI_KERNEL,
							      .si_addr = at});
		spin_unlock(&proc_lock);
		return -EFAULT;
	}
	curlwp()->left_stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
	set_stack(&s.stack, arch_tf_sp(tf)); /* like Linux, without a check */
	proc_signals_block(s.mask);
	if (s.has_fpu)
		thread_fpu_load(&s.fpu);
	else
		thread_fpu_end();
	return (int64_t)arch_tf_return(tf);
}

int64_t
sys_sigaltstack(const uint64_t a[6])
{
	const struct arch_trapframe *tf =
	    arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);
	struct sigaltstack old = curlwp()->sig_stack, new;
	uint64_t sp = arch_tf_sp(tf);
	int error;

	if (a[0] != 0) {
		if (copy_in(&new, a[0], sizeof(new)) != 0)
			return -EFAULT;
		error = set_stack(&new, sp);
		if (error != 0)
			return error;
	}
	old.ss_flags |= sigframe_on_stack(&old, sp) ? SS_ONSTACK : 0;
	return a[1] != 0 && copy_out(a[1], &old, sizeof(old)) != 0 ? -EFAULT : 0;
}
