/* md/trap.h - aarch64: the frame that trap.S saves. */
#pragma once

#include <stddef.h>

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

static inline uintptr_t
arch_tf_pc(const struct arch_trapframe *tf)
{
	return tf->pc;
}

static inline void
arch_tf_set_pc(struct arch_trapframe *tf, uintptr_t pc)
{
	tf->pc = pc;
}

static inline uintptr_t
arch_tf_sp(const struct arch_trapframe *tf)
{
	return tf->sp;
}

static inline void
arch_tf_set_sp(struct arch_trapframe *tf, uintptr_t sp)
{
	tf->sp = sp;
}

static inline void
arch_tf_set_tls(struct arch_trapframe *tf, uint64_t tls)
{
	tf->tls = tls;
}

static inline uint64_t
arch_tf_tls(const struct arch_trapframe *tf)
{
	return tf->tls;
}

static inline uintptr_t
arch_tf_fp(const struct arch_trapframe *tf)
{
	return tf->x[29];
}

static inline uintptr_t
arch_tf_link(const struct arch_trapframe *tf)
{
	return tf->x[30];
}

static inline void
arch_tf_set_link(struct arch_trapframe *tf, uintptr_t link)
{
	tf->x[30] = link;
}

static inline bool
arch_tf_user(const struct arch_trapframe *tf)
{
	return (tf->pstate & 0xf) == 0; /* EL0t */
}

static inline bool
arch_tf_irq_on(const struct arch_trapframe *tf)
{
	return !(tf->pstate & (1ul << 7));
}

static inline uint64_t
arch_tf_return(const struct arch_trapframe *tf)
{
	return tf->x[0];
}

static inline bool
arch_tf_in_syscall(const struct arch_trapframe *tf)
{
	return tf->esr >> 26 == 0x15; /* SVC in A64 */
}

static inline void
arch_tf_syscall_again(struct arch_trapframe *tf)
{
	tf->x[0] = tf->x0;
	tf->pc -= 4;
}

static inline uint64_t
arch_tf_syscall(const struct arch_trapframe *tf)
{
	return tf->x[8];
}

static inline uint64_t
arch_tf_arg(const struct arch_trapframe *tf, unsigned n)
{
	return tf->x[n];
}

static inline void
arch_tf_set_return(struct arch_trapframe *tf, uint64_t v)
{
	tf->x[0] = v;
}
