/* md/trap.h - x86_64: the frame that trap.S pushes. */
#pragma once

#include <stddef.h>

#include "arch/x86_64/asm.h"

#define ARCH_CALL_REWOUND 0

struct arch_trapframe {
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8;
	uint64_t rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss; /* pushed by the CPU (SDM vol. 3A, 6.14.2) */
};

_Static_assert(offsetof(struct arch_trapframe, vector) == 120, "trap.S");
_Static_assert(sizeof(struct arch_trapframe) == 176, "trap.S; a multiple of 16");

ARCH_TF_IS(uintptr_t, pc, tf->rip)
ARCH_TF_SET(pc, tf->rip)
ARCH_TF_IS(uintptr_t, sp, tf->rsp)
ARCH_TF_SET(sp, tf->rsp)

static inline void
arch_tf_set_tls(struct arch_trapframe *tf, uint64_t tls)
{
	(void)tf, (void)tls; /* FS base */
}

ARCH_TF_IS(uint64_t, tls, 0)
ARCH_TF_IS(uintptr_t, fp, tf->rbp)
ARCH_TF_IS(uintptr_t, link, 0)

static inline void
arch_tf_set_link(struct arch_trapframe *tf, uintptr_t link)
{
	(void)tf, (void)link;
}

ARCH_TF_IS(bool, user, tf->cs & 3)
ARCH_TF_IS(bool, irq_on, tf->rflags &(1ul << 9))
ARCH_TF_IS(uint64_t, syscall, tf->error) /* trap.S keeps it there, since rax gets the result */
ARCH_TF_IS(uint64_t, return, tf->rax)
ARCH_TF_IS(bool, in_syscall, tf->vector == VEC_SYSCALL)

static inline void
arch_tf_syscall_again(struct arch_trapframe *tf)
{
	tf->rax = tf->error;
	tf->rip -= 2; /* SYSCALL's bytes */
}

ARCH_TF_SET(next_call, tf->rax)

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

ARCH_TF_SET(return, tf->rax)
