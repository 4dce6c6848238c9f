/*
 * md/ktr_site.h - aarch64: how a trace point is switched on, and the record of an event.
 *
 * A trace point is a NOP, which is overwritten by a B. Its entry in section ktr_patch is a struct
 * ktr_patch (ktr/site.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/entry.h"
#include "ktr/restart.h"

struct ktr_site;

#define AARCH64_RING(member) [member] "i"(offsetof(struct ktr_ring, member))

/* one LDP loads both */
_Static_assert(offsetof(struct arch_pcpu, ktr_tid) == offsetof(struct arch_pcpu, ktr_ring) + 8,
	       "aarch64_ktr_record()");
_Static_assert(offsetof(struct ktr_ring, limit) == offsetof(struct ktr_ring, head) + 8,
	       "aarch64_ktr_record()");
_Static_assert(offsetof(struct ktr_entry, site) == 12, "aarch64_ktr_record()");

/*
 * Records n parameters (ktr/ring.c): a restartable sequence. It uses no register that holds a
 * parameter. The ISB keeps the counter from being read before earlier instructions complete. An
 * exception after the ISB is harmless, since exception entry and return synchronise as well (Arm
 * ARM, glossary: context synchronization event). The DMB is the only barrier of ktr/ring.c.
 */
static inline __attribute__((always_inline)) bool
aarch64_ktr_record(unsigned n, const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3,
		   uint64_t a4, uint64_t a5, uint64_t a6)
{
	__asm__ goto("isb\n"
		     "1:\tmrs x13, tpidr_el1\n\t"
		     "ldp x13, x12, [x13, %[ktr_ring]]\n\t" /* ring, thread id */
		     "ldp x9, x10, [x13, %[head]]\n\t"      /* head, limit */
		     "ldr x11, [x13, %[bias]]\n\t"
		     "cmp x9, x10\n\t"
		     "b.hs %l[slow]\n\t"
		     "add x11, x11, x9\n\t"
		     "add x9, x9, %[step]\n\t"
		     "mrs x10, cntvct_el0\n\t"
		     "bfi x12, %x[site], #32, #32\n\t"
		     "stp x10, x12, [x11]\n\t"
		     ".if %c[n] > 0\n\tstp %x[a1], %x[a2], [x11, #16]\n\t.endif\n\t"
		     ".if %c[n] > 2\n\tstp %x[a3], %x[a4], [x11, #32]\n\t.endif\n\t"
		     ".if %c[n] > 4\n\tstp %x[a5], %x[a6], [x11, #48]\n\t.endif\n\t"
		     "dmb ishst\n\t"
		     "str x9, [x13, %[head]]\n\t" KTR_RESTART("1b", "%l[slow]")
		     :
		     : [n] "i"(n), [site] "r"(site), [a1] "rZ"(a1), [a2] "rZ"(a2), [a3] "rZ"(a3),
		       [a4] "rZ"(a4), [a5] "rZ"(a5), [a6] "rZ"(a6), [step] "i"(KTR_ENTRY_BYTES),
		       [ktr_ring] "i"(offsetof(struct arch_pcpu, ktr_ring)), AARCH64_RING(head),
		       AARCH64_RING(bias)
		     : "x9", "x10", "x11", "x12", "x13", "memory", "cc"
		     : slow);
	return true;
slow:
	return false;
}
#define KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more) \
	aarch64_ktr_record(n, site, a1, a2, a3, a4, (more).a5, (more).a6)

static inline void
aarch64_ktr_turn(struct ktr_ring *ring, uint64_t head, uint64_t bias, uint64_t limit)
{
	uint64_t now;

	__asm__ volatile("1:\tldr %[now], [%[ring], %[head]]\n\t"
			 "cmp %[now], %[h]\n\t"
			 "b.ne " KTR_RESTART_END "\n\t"
			 "str %[b], [%[ring], %[bias]]\n\t"
			 "str %[l], [%[ring], %[limit]]\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 : [now] "=&r"(now)
			 : [ring] "r"(ring), [h] "r"(head), [b] "r"(bias), [l] "r"(limit),
			   AARCH64_RING(head), AARCH64_RING(limit), AARCH64_RING(bias)
			 : "memory", "cc");
}
#define KTR_PORT_TURN(ring, head, bias, limit) aarch64_ktr_turn(ring, head, bias, limit)

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON("nop", site)
