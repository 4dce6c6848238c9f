/*
 * regset.c - registers for debuggers, and single steps of programs (Arm ARM D2.11).
 */
#include "arch/regset.h"

#include "arch/aarch64/a64.h"
#include "kernel/lib/string.h"

void
arch_regs_get(struct arch_regs *r, const struct arch_trapframe *tf, uint64_t tls)
{
	memcpy(r->x, tf->x, sizeof(r->x));
	r->sp = tf->sp;
	r->pc = tf->pc;
	r->pstate = tf->pstate;
}

bool
arch_regs_set(const struct arch_regs *r, struct arch_trapframe *tf, uint64_t *tls)
{
	memcpy(tf->x, r->x, sizeof(tf->x));
	tf->sp = r->sp;
	tf->pc = r->pc;
	tf->pstate = r->pstate & PSTATE_NZCV; /* EL0t, nothing masked */
	return true;
}

void
arch_fpregs_get(struct arch_fpregs *r, const struct arch_fpu *fpu)
{
	_Static_assert(sizeof(r->v) == sizeof(fpu->v), "32 registers of 16 bytes");
	*r = (struct arch_fpregs){.fpsr = (uint32_t)fpu->fpsr, .fpcr = (uint32_t)fpu->fpcr};
	memcpy(r->v, fpu->v, sizeof(r->v));
}

void
arch_fpregs_set(const struct arch_fpregs *r, struct arch_fpu *fpu)
{
	fpu->fpsr = r->fpsr;
	fpu->fpcr = r->fpcr;
	memcpy(fpu->v, r->v, sizeof(r->v));
}

void
arch_tf_syscall_enter(struct arch_trapframe *tf)
{
	(void)tf; /* x0 still has the first argument */
}

void
arch_tf_set_syscall(struct arch_trapframe *tf, uint64_t nr)
{
	tf->x[8] = nr;
}

void
arch_user_step_switch(bool on)
{
	uint64_t mdscr = READ_SYSREG(mdscr_el1);

	/*
	 * The kernel would step, too, while the debugger's breakpoints are set: then nothing steps.
	 * And while the debugger steps the kernel, the bit is its own.
	 */
	if (!(mdscr & MDSCR_KDE) && (mdscr & MDSCR_SS) != on) {
		WRITE_SYSREG(mdscr_el1, mdscr ^ MDSCR_SS);
		ISB();
	}
}

bool
arch_user_step(struct arch_trapframe *tf, bool on)
{
	tf->pstate = on ? tf->pstate | PSTATE_SS : tf->pstate & ~PSTATE_SS;
	arch_user_step_switch(on);
	return true;
}
