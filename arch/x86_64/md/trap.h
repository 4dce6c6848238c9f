/* md/trap.h - x86_64: the frame that trap.S pushes. */
#pragma once

#include <stddef.h>

#include "arch/x86_64/asm.h"

struct arch_trapframe {
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8;
	uint64_t rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss; /* pushed by the CPU (SDM vol. 3A, 6.14.2) */
};

_Static_assert(offsetof(struct arch_trapframe, vector) == 120, "trap.S");
_Static_assert(sizeof(struct arch_trapframe) == 176, "trap.S; a multiple of 16");

static inline uintptr_t
arch_tf_pc(const struct arch_trapframe *tf)
{
	return tf->rip;
}

static inline void
arch_tf_set_pc(struct arch_trapframe *tf, uintptr_t pc)
{
	tf->rip = pc;
}

static inline uintptr_t
arch_tf_sp(const struct arch_trapframe *tf)
{
	return tf->rsp;
}

static inline void
arch_tf_set_sp(struct arch_trapframe *tf, uintptr_t sp)
{
	tf->rsp = sp;
}

static inline void
arch_tf_set_tls(struct arch_trapframe *tf, uint64_t tls)
{
	(void)tf, (void)tls; /* FS base */
}

static inline uint64_t
arch_tf_tls(const struct arch_trapframe *tf)
{
	return 0;
}

static inline uintptr_t
arch_tf_fp(const struct arch_trapframe *tf)
{
	return tf->rbp;
}

static inline uintptr_t
arch_tf_link(const struct arch_trapframe *tf)
{
	return 0;
}

static inline void
arch_tf_set_link(struct arch_trapframe *tf, uintptr_t link)
{
	(void)tf, (void)link;
}

static inline bool
arch_tf_user(const struct arch_trapframe *tf)
{
	return tf->cs & 3;
}

static inline bool
arch_tf_irq_on(const struct arch_trapframe *tf)
{
	return tf->rflags & (1ul << 9);
}

static inline uint64_t
arch_tf_syscall(const struct arch_trapframe *tf)
{
	return tf->error; /* trap.S keeps it there, since rax gets the result */
}

static inline uint64_t
arch_tf_return(const struct arch_trapframe *tf)
{
	return tf->rax;
}

static inline bool
arch_tf_in_syscall(const struct arch_trapframe *tf)
{
	return tf->vector == VEC_SYSCALL;
}

static inline void
arch_tf_syscall_again(struct arch_trapframe *tf)
{
	tf->rax = tf->error;
	tf->rip -= 2; /* SYSCALL's bytes */
}

static inline uint64_t
arch_tf_arg(const struct arch_trapframe *tf, unsigned n)
{
	/* Linux's convention: rdi rsi rdx r10 r8 r9. */
	switch (n) {
	case 0:
		return tf->rdi;
	case 1:
		return tf->rsi;
	case 2:
		return tf->rdx;
	case 3:
		return tf->r10;
	case 4:
		return tf->r8;
	default:
		return tf->r9;
	}
}

static inline void
arch_tf_set_return(struct arch_trapframe *tf, uint64_t v)
{
	tf->rax = v;
}
