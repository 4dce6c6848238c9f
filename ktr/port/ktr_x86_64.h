/*
 * ktr_x86_64.h - x86_64: the record of an event as a restartable sequence (ktr/restart.h), for
 * ports whose exception returns make such sequences begin again.
 *
 * The port says, as assembly text with the operands that the text names, and includes this file:
 *
 *	KTR_X86_RING      instructions that load the address of this CPU's ring into R10
 *	KTR_X86_TID       instructions that load the current thread's id into EAX
 *	KTR_X86_OPERANDS  a comma, and operands; may be empty
 *
 * Position-independent code cannot name the site as an immediate: build without -fpic and -fpie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/entry.h"
#include "ktr/restart.h"

struct ktr_site;

/* Parameters five and six: struct ktr_pair, which comes later (ktr/ktr.h). */
struct x86_ktr_pair {
	uint64_t word[2];
};

#define KTR_X86_MEMBER(member) [member] "i"(offsetof(struct ktr_ring, member))

/*
 * The record of n parameters (ktr/ring.c). It uses registers in which no parameter comes, and RDX,
 * where RDTSC leaves half of the clock: the compiler moves a2 elsewhere first. Stores are seen in
 * program order (SDM vol. 3A, 8.2.2), so no barrier is needed. more: parameters five and six;
 * with fewer it points anywhere.
 */
static inline __attribute__((always_inline)) bool
x86_ktr_record(unsigned n, const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3,
	       uint64_t a4, const volatile struct x86_ktr_pair *more)
{
	__asm__ goto("1:\t" KTR_X86_RING "\n\t"
		     "movq %c[head](%%r10), %%r11\n\t"
		     "cmpq %c[limit](%%r10), %%r11\n\t"
		     "jae %l[slow]\n\t"
		     "addq %c[bias](%%r10), %%r11\n\t"
		     "rdtsc\n\t"
		     "movl %%eax, (%%r11)\n\t"
		     "movl %%edx, 4(%%r11)\n\t" KTR_X86_TID "\n\t"
		     "movl %%eax, 8(%%r11)\n\t"
		     "movl %k[site], 12(%%r11)\n\t"
		     ".if %c[n] > 0\n\tmovq %[a1], 16(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 1\n\tmovq %[a2], 24(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 2\n\tmovq %[a3], 32(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 3\n\tmovq %[a4], 40(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 4\n\tmovq %[more], %%rax\n\tmovq %%rax, 48(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 5\n\tmovq 8+%[more], %%rax\n\tmovq %%rax, 56(%%r11)\n\t.endif\n\t"
		     "addq %[step], %c[head](%%r10)\n\t" KTR_RESTART("1b", "%l[slow]")
		     :
		     : [n] "i"(n), [site] "r"(site), [a1] "ri"(a1), [a2] "ri"(a2), [a3] "ri"(a3),
		       [a4] "ri"(a4), [more] "m"(*more), [step] "i"(KTR_ENTRY_BYTES),
		       KTR_X86_MEMBER(head), KTR_X86_MEMBER(limit),
		       KTR_X86_MEMBER(bias) KTR_X86_OPERANDS
		     : "rax", "rdx", "r10", "r11", "memory", "cc"
		     : slow);
	return true;
slow:
	return false;
}

/*
 * A struct of two words for which no registers are left comes on the stack, at the address that the
 * stack pointer had before the call (System V ABI, 3.2.3). The record reads it there; else the
 * compiler would load it early, into registers that it has to save.
 */
#define KTR_PORT_PAIR(more) ((void)(more), *(const volatile struct ktr_pair *)__builtin_dwarf_cfa())
#define KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more) \
	x86_ktr_record(n, site, a1, a2, a3, a4,        \
		       (n) > 4 ? (const void *)__builtin_dwarf_cfa() : (const void *)(site))

static inline void
x86_ktr_turn(struct ktr_ring *ring, uint64_t head, uint64_t bias, uint64_t limit)
{
	__asm__ volatile("1:\tcmpq %[h], %c[head](%[ring])\n\t"
			 "jne " KTR_RESTART_END "\n\t"
			 "movq %[b], %c[bias](%[ring])\n\t"
			 "movq %[l], %c[limit](%[ring])\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 :
			 : [ring] "r"(ring), [h] "r"(head), [b] "r"(bias), [l] "r"(limit),
			   KTR_X86_MEMBER(head), KTR_X86_MEMBER(limit), KTR_X86_MEMBER(bias)
			 : "memory", "cc");
}
#define KTR_PORT_TURN(ring, head, bias, limit) x86_ktr_turn(ring, head, bias, limit)
