/*
 * md/ktr_site.h - aarch64: a trace point is a NOP that is rewritten to a B.
 *
 * The record in section ktr_patch is struct ktr_patch (ktr/site.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/pcpu.h"
#include "ktr/restart.h"

/* This CPU's block; the compiler may keep it, which only the record text (see md/ktr.h) allows. */
static inline __attribute__((always_inline)) struct arch_pcpu *
aarch64_ktr_pcpu(void)
{
	struct arch_pcpu *p;
	__asm__("mrs %0, tpidr_el1" : "=r"(p));
	return p;
}

#define AARCH64_KTR(member) offsetof(struct arch_pcpu, ktr_##member)

/*
 * The claim, restartable (ktr/restart.h). The ISB keeps the count from being read earlier than what
 * was done before; an interrupt behind it does no harm, since exception entry and return
 * synchronise as well (Arm ARM, glossary: context synchronization event). So slot order is time
 * order.
 */
static inline __attribute__((always_inline)) uint64_t
aarch64_ktr_claim_now(uint64_t *now, uint64_t *at, struct ktr_entry **entry)
{
	struct arch_pcpu *p = aarch64_ktr_pcpu();
	/* In registers in which no parameter comes. */
	register uint64_t next __asm__("x9");
	register uint64_t ticks __asm__("x10");
	register struct ktr_entry *e __asm__("x11");

	__asm__ volatile("isb\n"
			 "1:\tldr %0, [%3, %4]\n\t"
			 "ldr %2, [%3, %5]\n\t"
			 "ldr %1, [%3, %6]\n\t"
			 "add %0, %0, #1\n\t"
			 "and %2, %0, %2\n\t"
			 "add %2, %1, %2, lsl #6\n\t"
			 "mrs %1, cntvct_el0\n\t"
			 "str %0, [%3, %4]\n\t" KTR_RESTART("1b")
			 : "=&r"(next), "=&r"(ticks), "=&r"(e)
			 : "r"(p), "i"(AARCH64_KTR(head)), "i"(AARCH64_KTR(mask)),
			   "i"(AARCH64_KTR(slots))
			 : "memory");
	*now = ticks;
	*at = (uint64_t)p;
	*entry = e;
	return next;
}
#define KTR_PORT_CLAIM_NOW(now, at, e) aarch64_ktr_claim_now(now, at, e)

/* The ring stands beside the head word that was claimed. */
#define KTR_PORT_HOT(at, member)     (((const struct arch_pcpu *)(at))->ktr_##member)
#define KTR_PORT_HOT_OF(cpu, member) (&pcpus[cpu]->md.ktr_##member)

/* One store, with its offset in the instruction. */
#define KTR_PORT_PUT(field, value) (*(volatile __typeof__(field) *)&(field) = (value))
/* Each half is single-copy atomic (Arm ARM B2.2.1). */
#define KTR_PORT_PUT_PAIR(at, first, second)             \
	__asm__ volatile("stp %x1, %x2, %0"              \
			 : "=Ump"(*(uint64_t(*)[2])(at)) \
			 : "r"(first), "r"(second))

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON("nop", site)
