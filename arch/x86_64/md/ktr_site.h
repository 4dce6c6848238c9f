/*
 * md/ktr_site.h - x86_64: a trace point is a 5-byte no-op that is rewritten to a jump.
 *
 * The record in section ktr_patch is struct ktr_patch (ktr/site.h). The no-op is the one of the SDM
 * (vol. 2B, NOP: 0F 1F 44 00 00); a JMP rel32 has the same length. Position-independent code cannot
 * name the site as an immediate: build without -fpic and -fpie.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/restart.h"

#define X86_KTR(member) offsetof(struct arch_pcpu, ktr_##member)

/*
 * The claim, restartable (ktr/restart.h), in registers in which no parameter comes (but RDX, where
 * RDTSC leaves its half). The slot's address is computed before RDTSC, behind which all waits.
 */
static inline __attribute__((always_inline)) uint64_t
x86_ktr_claim_now(uint64_t *now, uint64_t *at, struct ktr_entry **entry)
{
	register uint64_t next __asm__("r11");
	register struct ktr_entry *e __asm__("r10");
	uint64_t ticks;

	__asm__ volatile("1:\tmovq %%gs:%c3, %0\n\t"
			 "incq %0\n\t"
			 "movq %%gs:%c4, %1\n\t"
			 "andq %0, %1\n\t"
			 "shlq $6, %1\n\t"
			 "addq %%gs:%c5, %1\n\t"
			 "rdtsc\n\t"
			 "shlq $32, %%rdx\n\t"
			 "orq %%rax, %%rdx\n\t"
			 "movq %0, %%gs:%c3\n\t" KTR_RESTART("1b")
			 : "=&r"(next), "=&r"(e), "=&d"(ticks)
			 : "i"(X86_KTR(head)), "i"(X86_KTR(mask)), "i"(X86_KTR(slots))
			 : "rax", "memory", "cc");
	*now = ticks;
	*at = 0;
	*entry = e;
	return next;
}
#define KTR_PORT_CLAIM_NOW(now, at, e) x86_ktr_claim_now(now, at, e)

/*
 * The ring stands beside the head word, in the block of the CPU that executes: nothing waits for
 * the claim to say which CPU it is. In GCC's address space of GS the loads are operands.
 */
#define KTR_PORT_HOT(at, member)                                                                   \
	((void)(at),                                                                               \
	 *(__typeof__(((struct arch_pcpu *)0)->ktr_##member) __seg_gs *)offsetof(struct arch_pcpu, \
										 ktr_##member))
#define KTR_PORT_HOT_OF(cpu, member) (&pcpus[cpu]->md.ktr_##member)

/*
 * A struct of two that no registers are left for is on the stack, where a function without a frame
 * finds it at the frame's address (System V ABI, 3.2.3): read from there when it is stored.
 */
#define KTR_PORT_STACK_PAIR(pair) \
	((void)(pair), (const volatile struct ktr_pair *)__builtin_dwarf_cfa())

/* Bit 31 of this CPU's ident, without loading it. */
#define KTR_PORT_SLOW()                                                         \
	__extension__({                                                         \
		_Bool ktr_slow_;                                                \
		__asm__ volatile("cmpl $0, %%gs:%c1"                            \
				 : "=@ccs"(ktr_slow_)                           \
				 : "i"(offsetof(struct arch_pcpu, ktr_ident))); \
		ktr_slow_;                                                      \
	})

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
