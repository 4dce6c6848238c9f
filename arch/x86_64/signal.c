/*
 * signal.c - the stack of a signal handler: System V ABI x86-64, Linux's rt_sigframe.
 */
#include "arch/signal.h"

#include "arch/mmu.h"
#include "arch/x86_64/x86.h"
#include "kernel/lib/string.h"

#define RED_ZONE 128

#define FLAGS_TF_RF 0x10100ul
#define FLAGS_DF    0x400ul

#define ERROR_PRESENT 1ul /* of a page fault: the page is there */

const bool arch_sigreturn_in_vdso = false;

void
arch_fault_note(struct arch_fault *f, const struct arch_trapframe *tf, uintptr_t va)
{
	f->vector = tf->vector;
	f->error = tf->error;
	if (tf->vector != VEC_PF)
		return;
	f->va = va;
	if (va >= ARCH_USER_END) /* a program is not told where the kernel has pages */
		f->error |= ERROR_PRESENT;
}

uintptr_t
arch_sigframe_place(uintptr_t sp)
{
	/* As after a call: the stack is aligned to 16 above the return address. */
	return ((sp - RED_ZONE - sizeof(struct arch_sigframe)) & ~15ul) - 8;
}

void
arch_sigframe_fill(struct arch_sigframe *f, uintptr_t at, const struct arch_trapframe *tf,
		   const struct arch_signal *s)
{
	*f = (struct arch_sigframe){.restorer = s->restorer,
				    .uc_stack = s->stack,
				    .uc_sigmask = s->mask,
				    .info = s->info};
	f->regs = (struct x86_sigcontext){.r8 = tf->r8,
					  .r9 = tf->r9,
					  .r10 = tf->r10,
					  .r11 = tf->r11,
					  .r12 = tf->r12,
					  .r13 = tf->r13,
					  .r14 = tf->r14,
					  .r15 = tf->r15,
					  .rdi = tf->rdi,
					  .rsi = tf->rsi,
					  .rbp = tf->rbp,
					  .rbx = tf->rbx,
					  .rdx = tf->rdx,
					  .rax = tf->rax,
					  .rcx = tf->rcx,
					  .rsp = tf->rsp,
					  .rip = tf->rip,
					  .rflags = tf->rflags,
					  .cs = (uint16_t)tf->cs,
					  .ss = (uint16_t)tf->ss,
					  .error = s->fault.error,
					  .vector = s->fault.vector,
					  .mask = s->mask,
					  .cr2 = s->fault.va};
	if (s->has_fpu) {
		f->regs.fpu = at + offsetof(struct arch_sigframe, fpu);
		memcpy(f->fpu, &s->fpu, sizeof(f->fpu));
	}
}

void
arch_sigframe_call(struct arch_trapframe *tf, uintptr_t at, const struct arch_signal *s)
{
	tf->rip = s->handler;
	tf->rsp = at;
	tf->rax = 0; /* no vector registers hold arguments */
	tf->rdi = (uint64_t)s->sig;
	tf->rsi = at + offsetof(struct arch_sigframe, info);
	tf->rdx = at + offsetof(struct arch_sigframe, uc_flags);
	tf->rflags &= ~(FLAGS_TF_RF | FLAGS_DF);
	tf->vector = 0; /* the frame is no system call's any more */
}

uintptr_t
arch_sigframe_find(const struct arch_trapframe *tf)
{
	return tf->rsp - 8; /* the handler has returned */
}

bool
arch_sigframe_restore(const struct arch_sigframe *f, struct arch_trapframe *tf,
		      struct arch_signal *s)
{
	const struct x86_sigcontext *r = &f->regs;

	/* IRET would fault in the kernel (SDM vol. 2A, IRET). */
	if (r->rip >= ARCH_USER_END)
		return false;
	*tf = (struct arch_trapframe){.r8 = r->r8,
				      .r9 = r->r9,
				      .r10 = r->r10,
				      .r11 = r->r11,
				      .r12 = r->r12,
				      .r13 = r->r13,
				      .r14 = r->r14,
				      .r15 = r->r15,
				      .rdi = r->rdi,
				      .rsi = r->rsi,
				      .rbp = r->rbp,
				      .rbx = r->rbx,
				      .rdx = r->rdx,
				      .rax = r->rax,
				      .rcx = r->rcx,
				      .rsp = r->rsp,
				      .rip = r->rip,
				      .rflags = (r->rflags & FLAGS_USER) | FLAGS_ALWAYS,
				      .cs = SEL_UCODE,
				      .ss = SEL_UDATA};
	s->stack = f->uc_stack;
	s->mask = f->uc_sigmask;
	s->has_fpu = r->fpu != 0;
	memcpy(&s->fpu, f->fpu, sizeof(s->fpu));
	s->fpu.mxcsr &= 0xffff; /* FXRSTOR faults on others */
	return true;
}
