/*
 * regset.c - registers for debuggers.
 */
#include "arch/regset.h"

#include "arch/mmu.h"
#include "arch/x86_64/x86.h"

#define FLAGS_TF 0x100ul

/* Linux's selectors of 64-bit programs, by which debuggers know them. */
#define LINUX_CS 0x33
#define LINUX_SS 0x2b

void
arch_regs_get(struct arch_regs *r, const struct arch_trapframe *tf, uint64_t tls)
{
	*r = (struct arch_regs){.r15 = tf->r15,
				.r14 = tf->r14,
				.r13 = tf->r13,
				.r12 = tf->r12,
				.rbp = tf->rbp,
				.rbx = tf->rbx,
				.r11 = tf->r11,
				.r10 = tf->r10,
				.r9 = tf->r9,
				.r8 = tf->r8,
				.rax = tf->rax,
				.rcx = tf->rcx,
				.rdx = tf->rdx,
				.rsi = tf->rsi,
				.rdi = tf->rdi,
				.orig_rax = arch_tf_in_syscall(tf) ? tf->error : UINT64_MAX,
				.rip = tf->rip,
				.cs = LINUX_CS,
				.eflags = tf->rflags,
				.rsp = tf->rsp,
				.ss = LINUX_SS,
				.fs_base = tls};
}

bool
arch_regs_set(const struct arch_regs *r, struct arch_trapframe *tf, uint64_t *tls)
{
	uint64_t vector = tf->vector;

	/* The debugger says whether the frame is a call's, which may begin again, as on Linux. */
	if ((int64_t)r->orig_rax >= 0)
		vector = VEC_SYSCALL;
	else if (vector == VEC_SYSCALL)
		vector = 0;
	if (r->rip >= ARCH_USER_END || r->fs_base >= ARCH_USER_END)
		return false;
	*tf = (struct arch_trapframe){.r15 = r->r15,
				      .r14 = r->r14,
				      .r13 = r->r13,
				      .r12 = r->r12,
				      .rbp = r->rbp,
				      .rbx = r->rbx,
				      .r11 = r->r11,
				      .r10 = r->r10,
				      .r9 = r->r9,
				      .r8 = r->r8,
				      .rax = r->rax,
				      .rcx = r->rcx,
				      .rdx = r->rdx,
				      .rsi = r->rsi,
				      .rdi = r->rdi,
				      .vector = vector,
				      .error = r->orig_rax,
				      .rip = r->rip,
				      .cs = SEL_UCODE,
				      .rflags = (r->eflags & FLAGS_USER) | FLAGS_ALWAYS,
				      .rsp = r->rsp,
				      .ss = SEL_UDATA};
	*tls = r->fs_base;
	return true;
}

void
arch_fpregs_get(struct arch_fpregs *r, const struct arch_fpu *fpu)
{
	r->fpu = *fpu;
}

void
arch_fpregs_set(const struct arch_fpregs *r, struct arch_fpu *fpu)
{
	*fpu = r->fpu;
	fpu->mxcsr &= 0xffff; /* FXRSTOR faults on others */
}

void
arch_tf_syscall_enter(struct arch_trapframe *tf)
{
	tf->rax = (uint64_t)-38; /* -ENOSYS, as on Linux: the number is in orig_rax */
}

void
arch_tf_set_syscall(struct arch_trapframe *tf, uint64_t nr)
{
	tf->error = nr;
}

bool
arch_user_step(struct arch_trapframe *tf, bool on)
{
	bool other = !(tf->rflags & FLAGS_TF) == on;

	tf->rflags = on ? tf->rflags | FLAGS_TF : tf->rflags & ~FLAGS_TF;
	return other;
}

void
arch_user_step_switch(bool on)
{
	(void)on; /* the flag is the thread's */
}
