/*
 * md/ktr_site.h - aarch64: a trace point is a NOP that is rewritten to a B.
 *
 * The record in section ktr_patch is struct ktr_patch (ktr/site.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/restart.h"

#define AARCH64_KTR(member) "i"(offsetof(struct arch_pcpu, ktr_##member))

/* LDP loads two. */
_Static_assert(offsetof(struct arch_pcpu, ktr_turn.limit) ==
		   offsetof(struct arch_pcpu, ktr_head) + 8,
	       "aarch64_ktr_claim_now()");
_Static_assert(offsetof(struct ktr_turn, publish) == offsetof(struct ktr_turn, bias) + 8,
	       "aarch64_ktr_claim_now()");

/*
 * The claim, restartable (ktr/restart.h). The ISB keeps the count from being read earlier than what
 * was done before; an interrupt behind it does no harm, since exception entry and return
 * synchronise as well (Arm ARM, glossary: context synchronization event). So slot order is time
 * order.
 */
static inline bool
aarch64_ktr_claim_now(struct ktr_claim *c)
{
	/* In registers in which no parameter comes. */
	register struct arch_pcpu *p __asm__("x13") = arch_this_pcpu();
	register uint64_t next __asm__("x9");
	register uint64_t now __asm__("x10"); /* before: the limit */
	register struct ktr_entry *e __asm__("x11");
	register uint64_t publish __asm__("x12");

	__asm__ goto("isb\n"
		     "1:\tldp %0, %1, [%4, %5]\n\t"
		     "ldp %2, %3, [%4, %6]\n\t"
		     "add %2, %2, %0\n\t"
		     "add %0, %0, %7\n\t"
		     "cmp %0, %1\n\t"
		     "b.hi %l[slow]\n\t"
		     "mrs %1, cntvct_el0\n\t"
		     "str %0, [%4, %5]\n\t" KTR_RESTART("1b", "%l[slow]")
		     : "=&r"(next), "=&r"(now), "=&r"(e), "=&r"(publish)
		     : "r"(p), AARCH64_KTR(head), AARCH64_KTR(turn.bias), "i"(KTR_HEAD_STEP)
		     : "memory", "cc"
		     : slow);
	*c = (struct ktr_claim){.e = e, .now = now, .publish = publish};
	return true;
slow:
	return false;
}
#define KTR_PORT_CLAIM_NOW(c) aarch64_ktr_claim_now(c)

static inline void
aarch64_ktr_turn(uint64_t head, const struct ktr_turn *turn)
{
	uint64_t now;

	__asm__ volatile("1:\tldr %0, [%1, %6]\n\t"
			 "cmp %0, %2\n\t"
			 "b.ne " KTR_RESTART_END "\n\t"
			 "str %3, [%1, %7]\n\t"
			 "strh %w4, [%1, %8]\n\t"
			 "str %5, [%1, %9]\n\t" KTR_RESTART("1b", KTR_RESTART_END)
			 : "=&r"(now)
			 : "r"(arch_this_pcpu()), "r"(head), "r"(turn->bias), "r"(turn->lap),
			   "r"(turn->limit), AARCH64_KTR(head), AARCH64_KTR(turn.bias),
			   AARCH64_KTR(turn.lap), AARCH64_KTR(turn.limit)
			 : "memory", "cc");
}
#define KTR_PORT_TURN(head, turn) aarch64_ktr_turn(head, turn)
#define KTR_PORT_TURN_OF(cpu)     (&pcpus[cpu]->md.ktr_turn)

/* One store, with its offset in the instruction. */
#define KTR_PORT_PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))
/* Each half is single-copy atomic (Arm ARM B2.2.1). */
#define KTR_PORT_PUT_PAIR(at, first, second)             \
	__asm__ volatile("stp %x1, %x2, %0"              \
			 : "=Ump"(*(uint64_t(*)[2])(at)) \
			 : "r"(first), "r"(second))

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON("nop", site)
