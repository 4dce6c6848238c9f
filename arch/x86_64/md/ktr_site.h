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

/*
 * The claim in registers in which no parameter comes (but RDX, where RDTSC leaves its half), so
 * that all parameters can stay where the call put them. The same as arch_ktr_head(),
 * arch_clock_read() and arch_ktr_claim() until it succeeds.
 */
static inline __attribute__((always_inline)) uint64_t
x86_ktr_claim_now(uint64_t *now, uint64_t *at)
{
	register uint64_t next __asm__("r11");
	uint64_t old, ticks;
	__asm__ volatile("1:\tmovq %%gs:%c3, %0\n\t"
			 "rdtsc\n\t"
			 "shlq $32, %%rdx\n\t"
			 "orq %%rax, %%rdx\n\t"
			 "movq %0, %%rax\n\t"
			 "incq %0\n\t"
			 "cmpxchgq %0, %%gs:%c3\n\t"
			 "jne 1b"
			 : "=&r"(next), "=&a"(old), "=&d"(ticks)
			 : "i"(offsetof(struct arch_pcpu, ktr_head))
			 : "memory", "cc");
	*now = ticks;
	*at = 0;
	return next;
}
#define KTR_PORT_CLAIM_NOW(now, at) x86_ktr_claim_now(now, at)

/*
 * The ring stands beside the head word, in the block of the CPU that executes: nothing waits for
 * the claim to say which CPU it is. In GCC's address space of GS the loads are operands.
 */
#define KTR_PORT_HOT(at, member)                                                                   \
	((void)(at),                                                                               \
	 *(__typeof__(((struct arch_pcpu *)0)->ktr_##member) __seg_gs *)offsetof(struct arch_pcpu, \
										 ktr_##member))
#define KTR_PORT_HOT_OF(cpu, member) (&pcpus[cpu]->md.ktr_##member)

/* Left to itself GCC takes RCX for it, and moves the parameters out of RCX and RSI. */
#define KTR_PORT_ENTRY_KEEP(e)                                    \
	do {                                                      \
		register struct ktr_entry *ktr_e_ __asm__("r10"); \
		ktr_e_ = (e);                                     \
		__asm__("" : "+r"(ktr_e_));                       \
		(e) = ktr_e_;                                     \
	} while (0)

/*
 * A struct of two that no registers are left for is on the stack, where a function without a frame
 * finds it at the frame's address (System V ABI, 3.2.3): read from there when it is stored.
 */
#define KTR_PORT_STACK_PAIR(pair) ((const volatile struct ktr_pair *)__builtin_dwarf_cfa())

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
