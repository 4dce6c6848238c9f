/*
 * md/ktr_site.h - x86_64: a trace point is a 5-byte no-op that is rewritten to a jump.
 *
 * The record in section ktr_patch is struct ktr_patch (ktr/site.h). The no-op is the one of the SDM
 * (vol. 2B, NOP: 0F 1F 44 00 00); a JMP rel32 has the same length. Position-independent code cannot
 * name the site as an immediate: build without -fpic and -fpie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/restart.h"

#define X86_KTR(member) "i"(offsetof(struct arch_pcpu, ktr_##member))

/*
 * The claim, restartable (ktr/restart.h), in registers in which no parameter comes (but RDX, where
 * RDTSC leaves its half). The slot's address is computed before RDTSC, behind which all waits.
 */
static inline bool
x86_ktr_claim_now(struct ktr_claim *c)
{
	register uint64_t next __asm__("r11");
	register struct ktr_entry *e __asm__("r10");
	uint64_t now, publish;

	__asm__ goto("1:\tmovq %%gs:%c4, %1\n\t"
		     "leaq %c8(%1), %0\n\t"
		     "cmpq %%gs:%c5, %0\n\t"
		     "ja %l[slow]\n\t"
		     "addq %%gs:%c6, %1\n\t"
		     "rdtsc\n\t"
		     "shlq $32, %%rdx\n\t"
		     "orq %%rax, %%rdx\n\t"
		     "movq %%gs:%c7, %%rax\n\t"
		     "movq %0, %%gs:%c4\n\t" KTR_RESTART("1b", "%l[slow]")
		     : "=&r"(next), "=&r"(e), "=&d"(now), "=&a"(publish)
		     : X86_KTR(head), X86_KTR(turn.limit), X86_KTR(turn.bias),
		       X86_KTR(turn.publish), "i"(KTR_HEAD_STEP)
		     : "memory", "cc"
		     : slow);
	*c = (struct ktr_claim){.e = e, .now = now, .publish = publish};
	return true;
slow:
	return false;
}
#define KTR_PORT_CLAIM_NOW(c) x86_ktr_claim_now(c)

static inline void
x86_ktr_turn(uint64_t head, const struct ktr_turn *turn)
{
	__asm__ volatile("1:\tcmpq %0, %%gs:%c4\n\t"
			 "jne " KTR_RESTART_END "\n\t"
			 "movq %1, %%gs:%c5\n\t"
			 "movw %w2, %%gs:%c6\n\t"
			 "movq %3, %%gs:%c7\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 :
			 : "r"(head), "r"(turn->bias), "r"(turn->lap), "r"(turn->limit),
			   X86_KTR(head), X86_KTR(turn.bias), X86_KTR(turn.lap), X86_KTR(turn.limit)
			 : "memory", "cc");
}
#define KTR_PORT_TURN(head, turn) x86_ktr_turn(head, turn)
#define KTR_PORT_TURN_OF(cpu)     (&pcpus[cpu]->md.ktr_turn)

/*
 * A struct of two that no registers are left for is on the stack, where a function without a frame
 * finds it at the frame's address (System V ABI, 3.2.3): read from there when it is stored.
 */
#define KTR_PORT_STACK_PAIR(pair) \
	((void)(pair), (const volatile struct ktr_pair *)__builtin_dwarf_cfa())

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
