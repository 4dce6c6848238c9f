/* md/trap.h - aarch64: the frame that trap.S saves. */
#pragma once

#include <stddef.h>

#define ARCH_CALL_REWOUND 1

struct arch_trapframe {
	uint64_t x[31];
	uint64_t sp; /* of the interrupted context; from user mode, SP_EL0 */
	uint64_t pc, pstate;
	uint64_t esr, far; /* of the exception */
	uint64_t tls;      /* TPIDR_EL0, from user mode */
	uint64_t x0;       /* of the exception: a system call's first argument */
};

_Static_assert(offsetof(struct arch_trapframe, sp) == 31 * 8, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, pc) == 32 * 8, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, esr) == 34 * 8, "asm.h");
_Static_assert(offsetof(struct arch_trapframe, tls) == 36 * 8, "asm.h");
_Static_assert(sizeof(struct arch_trapframe) == 38 * 8, "asm.h; a multiple of 16");

ARCH_TF_IS(uintptr_t, pc, tf->pc)
ARCH_TF_SET(pc, tf->pc)
ARCH_TF_IS(uintptr_t, sp, tf->sp)
ARCH_TF_SET(sp, tf->sp)
ARCH_TF_SET(tls, tf->tls)
ARCH_TF_IS(uint64_t, tls, tf->tls)
ARCH_TF_IS(uintptr_t, fp, tf->x[29])
ARCH_TF_IS(uintptr_t, link, tf->x[30])
ARCH_TF_SET(link, tf->x[30])
ARCH_TF_IS(bool, user, (tf->pstate & 0xf) == 0) /* EL0t */
ARCH_TF_IS(bool, irq_on, !(tf->pstate & (1ul << 7)))
ARCH_TF_IS(uint64_t, return, tf->x[0])
ARCH_TF_IS(bool, in_syscall, tf->esr >> 26 == 0x15) /* SVC in A64 */

static inline void
arch_tf_syscall_again(struct arch_trapframe *tf)
{
	tf->x[0] = tf->x0;
	tf->pc -= 4;
	tf->esr = 0; /* not twice */
}

ARCH_TF_IS(uint64_t, syscall, tf->x[8])
ARCH_TF_SET(next_call, tf->x[8])

static inline uint64_t
arch_tf_arg(const struct arch_trapframe *tf, unsigned n)
{
	return tf->x[n];
}

ARCH_TF_SET(return, tf->x[0])
