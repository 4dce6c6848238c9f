/*
 * signal.c - the stack of a signal handler: AAPCS64, Linux's rt_sigframe.
 */
#include "arch/signal.h"

#include "arch/aarch64/a64.h"
#include "kernel/lib/string.h"

const bool arch_sigreturn_in_vdso = true;

void
arch_fault_note(struct arch_fault *f, const struct arch_trapframe *tf, uintptr_t va)
{
	unsigned ec = tf->esr >> 26 & 0x3f;

	/*
	 * FAR_EL1 is of the last abort, whoever made it; only this one is the program's. va is the
	 * same without a tag.
	 */
	f->va = ec == EC_IABORT_EL0 || ec == EC_DABORT_EL0 ? va : 0;
}

uintptr_t
arch_sigframe_place(uintptr_t sp)
{
	return (sp - AARCH64_SIGFRAME_SIZE) & ~15ul;
}

void
arch_sigframe_fill(struct arch_sigframe *f, uintptr_t at, const struct arch_trapframe *tf,
		   const struct arch_signal *s)
{
	*f = (struct arch_sigframe){.info = s->info,
				    .uc_stack = s->stack,
				    .uc_sigmask = s->mask,
				    .fault_address = s->fault.va,
				    .sp = tf->sp,
				    .pc = tf->pc,
				    .pstate = tf->pstate,
				    .record = {tf->x[29], tf->x[30]}};
	memcpy(f->x, tf->x, sizeof(f->x));
	if (s->has_fpu) {
		f->fpsimd = (struct aarch64_fpsimd){.magic = AARCH64_FPSIMD_MAGIC,
						    .size = sizeof(f->fpsimd),
						    .fpsr = (uint32_t)s->fpu.fpsr,
						    .fpcr = (uint32_t)s->fpu.fpcr};
		memcpy(f->fpsimd.v, s->fpu.v, sizeof(f->fpsimd.v));
	}
}

void
arch_sigframe_call(struct arch_trapframe *tf, uintptr_t at, const struct arch_signal *s)
{
	tf->pc = s->handler;
	tf->sp = at;
	tf->x[0] = (uint64_t)s->sig;
	tf->x[1] = at + offsetof(struct arch_sigframe, info);
	tf->x[2] = at + offsetof(struct arch_sigframe, uc_flags);
	tf->x[29] = at + offsetof(struct arch_sigframe, record);
	tf->x[30] = s->restorer;
	tf->pstate &= PSTATE_NZCV;
	tf->esr = 0; /* the frame is no system call's any more */
}

uintptr_t
arch_sigframe_find(const struct arch_trapframe *tf)
{
	return tf->sp;
}

bool
arch_sigframe_restore(const struct arch_sigframe *f, struct arch_trapframe *tf,
		      struct arch_signal *s)
{
	memcpy(tf->x, f->x, sizeof(tf->x));
	tf->sp = f->sp;
	tf->pc = f->pc;
	tf->pstate = f->pstate & PSTATE_NZCV; /* EL0t, nothing masked */
	tf->esr = 0;
	s->stack = f->uc_stack;
	s->mask = f->uc_sigmask;
	s->has_fpu = f->fpsimd.magic == AARCH64_FPSIMD_MAGIC && f->fpsimd.size == sizeof(f->fpsimd);
	s->fpu.fpsr = f->fpsimd.fpsr;
	s->fpu.fpcr = f->fpsimd.fpcr;
	memcpy(s->fpu.v, f->fpsimd.v, sizeof(s->fpu.v));
	return true;
}
