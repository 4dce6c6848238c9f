/*
 * regset.h - contract: a program's registers in Linux's layouts, as debuggers read and set them;
 * and its single steps. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/fpu.h"
#include "arch/trap.h"

struct arch_regs;   /* Linux's struct user_regs_struct, or user_pt_regs: NT_PRSTATUS */
struct arch_fpregs; /* NT_PRFPREG */

/*
 * Also defines ARCH_AUDIT, AUDIT_ARCH_… of the machine; and ARCH_PTRACE_REGS: it has GETREGS.
 */
#include <md/regset.h>

/* tls: the program's thread pointer, where the frame does not have it. */
void arch_regs_get(struct arch_regs *r, const struct arch_trapframe *tf, uint64_t tls);
/* Loads the registers that a program may set: no rights. False: no program can run with these. */
bool arch_regs_set(const struct arch_regs *r, struct arch_trapframe *tf, uint64_t *tls);
void arch_fpregs_get(struct arch_fpregs *r, const struct arch_fpu *fpu);
void arch_fpregs_set(const struct arch_fpregs *r, struct arch_fpu *fpu);
/* A debugger sees the beginning of the system call now. */
void arch_tf_syscall_enter(struct arch_trapframe *tf);
/* Makes it another call. */
void arch_tf_set_syscall(struct arch_trapframe *tf, uint64_t nr);
/*
 * On: the return to tf, the current program's frame, executes one instruction, and then traps
 * (SIGTRAP). Interrupts off: tf is not left before that by another way than
 * arch_user_step_switch(). False: nothing is changed, since the program has itself done the same.
 */
bool arch_user_step(struct arch_trapframe *tf, bool on);
/* A thread that steps is switched to (on), or from. Interrupts off. */
void arch_user_step_switch(bool on);
