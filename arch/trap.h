/* trap.h - contract: accessors of the trap frame. Any context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_trapframe; /* every register of the interrupted context */

static inline uintptr_t arch_tf_pc(const struct arch_trapframe *tf);
static inline void arch_tf_set_pc(struct arch_trapframe *tf, uintptr_t pc);
static inline uintptr_t arch_tf_sp(const struct arch_trapframe *tf);
static inline void arch_tf_set_sp(struct arch_trapframe *tf, uintptr_t sp);
/* The program's thread pointer, if the frame has it; arch_context_prepare() gets it in any case. */
static inline void arch_tf_set_tls(struct arch_trapframe *tf, uint64_t tls);
/* The thread pointer, if the frame has it; 0: it does not. */
static inline uint64_t arch_tf_tls(const struct arch_trapframe *tf);
/* Frame pointer, for unwinding. */
static inline uintptr_t arch_tf_fp(const struct arch_trapframe *tf);
/* The link register; 0 on ports where a call pushes the return address. */
static inline uintptr_t arch_tf_link(const struct arch_trapframe *tf);
static inline void arch_tf_set_link(struct arch_trapframe *tf, uintptr_t link);
static inline bool arch_tf_user(const struct arch_trapframe *tf);
/* Were interrupts on in the interrupted context? */
static inline bool arch_tf_irq_on(const struct arch_trapframe *tf);
/* System call number, argument n (0 to 5), and the return value. */
static inline uint64_t arch_tf_syscall(const struct arch_trapframe *tf);
static inline uint64_t arch_tf_arg(const struct arch_trapframe *tf, unsigned n);
static inline void arch_tf_set_return(struct arch_trapframe *tf, uint64_t v);
/* The value that arch_tf_set_return() has set. */
static inline uint64_t arch_tf_return(const struct arch_trapframe *tf);
/* Did a system call make this frame, and nothing change it since but its return value? */
static inline bool arch_tf_in_syscall(const struct arch_trapframe *tf);
/* After arch_tf_in_syscall(): makes the program call again, with the same arguments. */
static inline void arch_tf_syscall_again(struct arch_trapframe *tf);
/*
 * Also defines ARCH_CALL_REWOUND. 1: a debugger sees a call that is to begin again as such a frame.
 * 0: it sees the call's end, and what it makes of that counts.
 */
/* The pc is at a system call, which becomes another one. */
static inline void arch_tf_set_next_call(struct arch_trapframe *tf, uint64_t nr);

/* For the port: these define arch_tf_NAME(), whose value is an expression of tf, and
 * arch_tf_set_NAME(), which stores to a place in tf. */
#define ARCH_TF_IS(type, name, ...)                                        \
	static inline type arch_tf_##name(const struct arch_trapframe *tf) \
	{                                                                  \
		return __VA_ARGS__;                                        \
	}
#define ARCH_TF_SET(name, place)                                                     \
	static inline void arch_tf_set_##name(struct arch_trapframe *tf, uint64_t v) \
	{                                                                            \
		place = v;                                                           \
	}

#include <md/trap.h>

/* The frame of entries from user mode, at the top of a thread's kernel stack. */
static inline struct arch_trapframe *
arch_user_frame(uintptr_t stack_top)
{
	return (struct arch_trapframe *)stack_top - 1;
}

/* Makes a frame that starts a user program: all registers are 0 but pc and sp. */
void arch_tf_init_user(struct arch_trapframe *tf, uintptr_t pc, uintptr_t sp);
/* Leaves the kernel through tf. Interrupts off. */
_Noreturn void arch_return_to_user(struct arch_trapframe *tf);
/* The value of a register by its name, as arch_tf_print() has it. False: no such register. */
bool arch_tf_register(const struct arch_trapframe *tf, const char *name, uint64_t *v);
/* One line per register group, by printk. For panics and the debugger. */
void arch_tf_print(const struct arch_trapframe *tf);
