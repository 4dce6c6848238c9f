/*
 * insn.h - contract: instructions in whose place a breakpoint stands, for kprobes and uprobes
 * (kernel/probe/kprobe.h, uprobe.h).
 *
 * After the probe has fired, the instruction is run in one of three ways. One that is patched
 * anyway (ktr_patch) does what its trace point or function probe wants. One whose effect depends on
 * where it stands is emulated, or changed. Any other runs from a copy in a slot, which ends with a
 * jump to the next instruction.
 *
 * Interrupts are off in a slot. So no thread is preempted there, and a slot is free as soon as
 * every CPU has taken an interrupt. A slot has two halves; the first ends by turning interrupts on.
 * If an interrupt can come between this and the jump, the port does the jump before it serves the
 * interrupt.
 *
 * An instruction of a program runs from a slot in the program's memory (kernel/vm/code.c), which
 * ends with another breakpoint.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_trapframe;
struct ktr_patch;

/*
 * Also defines ARCH_INSN_MAX, the bytes of the longest instruction; ARCH_INSN_ALIGN;
 * ARCH_BREAK_SIZE, those of a breakpoint; ARCH_SLOT_SIZE, ARCH_USER_SLOT; ARCH_CALL_PUSHES, the
 * bytes of a return address that a call pushes, 0 if it goes to the link register; and the
 * registers of arguments and of the return value, by name: ARCH_ARG_REGISTERS,
 * ARCH_RETURN_REGISTER, ARCH_STACK_REGISTER.
 */
#include <md/insn.h>

extern const uint8_t arch_break_insn[ARCH_BREAK_SIZE];

/* Length of the instruction at code, which has ARCH_INSN_MAX bytes. 0: unknown. */
size_t arch_insn_length(const uint8_t code[ARCH_INSN_MAX]);
/*
 * Why no breakpoint may be in the place of the instruction; NULL: it may. Function: the code of its
 * function, which is at least `offset` bytes and the instruction itself.
 */
const char *arch_insn_refuse(const uint8_t *function, size_t offset);
/*
 * Writes half of a slot for the instruction, which stands at `at`: the code that runs it at address
 * slot, and continues after `at`. irq_on: turns interrupts on after it. Returns the number of
 * bytes. 0: it is to be emulated.
 */
size_t arch_insn_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot, bool irq_on,
		      uint8_t out[ARCH_SLOT_SIZE / 2]);
/*
 * Does what the instruction at `at` does to the interrupted context, and returns 0. If it is a
 * program's, and its access to memory fails, returns the kind of access, MMU_..., and its address
 * in *va; nothing has changed then. It may sleep.
 */
unsigned arch_insn_emulate(const uint8_t code[ARCH_INSN_MAX], uintptr_t at,
			   struct arch_trapframe *tf, uintptr_t *va);
/*
 * Writes ARCH_USER_SLOT bytes for the instruction of a program, which stands at `at`: the code that
 * runs it at address slot, and a breakpoint. Returns the breakpoint's offset; 0: the instruction is
 * to be emulated; -1: it cannot be so far from its place.
 */
int arch_insn_user_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot,
			uint8_t out[ARCH_USER_SLOT]);
/* Makes the interrupted context continue in the slot. */
void arch_insn_run(uintptr_t slot, struct arch_trapframe *tf);
/* Does what an instruction of ktr_patch is to do at present. */
void arch_patch_run(const struct ktr_patch *p, struct arch_trapframe *tf);
/* The bytes in whose place a breakpoint there stands. */
void arch_patch_code(const struct ktr_patch *p, uint8_t code[ARCH_BREAK_SIZE]);
