/*
 * md/ktr_site.h - x86_64: how a trace point is switched, and the record of an event.
 *
 * A trace point is a 5-byte no-op (SDM vol. 2B, NOP: 0F 1F 44 00 00) that is rewritten to a JMP
 * rel32 of the same length. The record in section ktr_patch is struct ktr_patch (ktr/site.h).
 * Position-independent code cannot name the site as an immediate: build without -fpic and -fpie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/entry.h"
#include "ktr/restart.h"

struct ktr_site;

#define X86_RING(member) [member] "i"(offsetof(struct ktr_ring, member))
#define X86_CPU(member)  [member] "i"(offsetof(struct arch_pcpu, member))

/*
 * The record of n parameters (ktr/ring.c), a restartable sequence. It uses registers in which no
 * parameter comes, and RDX, where RDTSC leaves half of the clock: the compiler moves a2 elsewhere
 * first. Stores are seen in program order (SDM vol. 3A, 8.2.2), so no barrier is needed.
 * more: the address of parameters five and six.
 */
static inline __attribute__((always_inline)) bool
x86_ktr_record(unsigned n, const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3,
	       uint64_t a4, const volatile void *more)
{
	__asm__ goto("1:\tmovq %%gs:%c[ktr_ring], %%r10\n\t"
		     "movq %c[head](%%r10), %%r11\n\t"
		     "cmpq %c[limit](%%r10), %%r11\n\t"
		     "jae %l[slow]\n\t"
		     "addq %c[bias](%%r10), %%r11\n\t"
		     "rdtsc\n\t"
		     "movl %%eax, (%%r11)\n\t"
		     "movl %%edx, 4(%%r11)\n\t"
		     "movl %%gs:%c[ktr_tid], %%eax\n\t"
		     "movl %%eax, 8(%%r11)\n\t"
		     "movl %k[site], 12(%%r11)\n\t"
		     ".if %c[n] > 0\n\tmovq %[a1], 16(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 1\n\tmovq %[a2], 24(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 2\n\tmovq %[a3], 32(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 3\n\tmovq %[a4], 40(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 4\n\tmovq %a[more], %%rax\n\tmovq %%rax, 48(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 5\n\tmovq 8+%a[more], %%rax\n\tmovq %%rax, 56(%%r11)\n\t.endif\n\t"
		     "addq %[step], %c[head](%%r10)\n\t" KTR_RESTART("1b", "%l[slow]")
		     :
		     : [n] "i"(n), [site] "r"(site), [a1] "ri"(a1), [a2] "ri"(a2), [a3] "ri"(a3),
		       [a4] "ri"(a4), [more] "p"(more), [step] "i"(KTR_ENTRY_BYTES),
		       X86_RING(head), X86_RING(limit), X86_RING(bias), X86_CPU(ktr_ring),
		       X86_CPU(ktr_tid)
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
#define KTR_PORT_PAIR(more) \
	((void)(more), *(const volatile struct ktr_pair *)__builtin_dwarf_cfa())
#define KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more) \
	x86_ktr_record(n, site, a1, a2, a3, a4, (n) > 4 ? __builtin_dwarf_cfa() : NULL)

static inline void
x86_ktr_turn(struct ktr_ring *ring, uint64_t head, uint64_t bias, uint64_t limit)
{
	__asm__ volatile("1:\tcmpq %[h], %c[head](%[ring])\n\t"
			 "jne " KTR_RESTART_END "\n\t"
			 "movq %[b], %c[bias](%[ring])\n\t"
			 "movq %[l], %c[limit](%[ring])\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 :
			 : [ring] "r"(ring), [h] "r"(head), [b] "r"(bias), [l] "r"(limit),
			   X86_RING(head), X86_RING(limit), X86_RING(bias)
			 : "memory", "cc");
}
#define KTR_PORT_TURN(ring, head, bias, limit) x86_ktr_turn(ring, head, bias, limit)

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
