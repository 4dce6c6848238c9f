/*
 * ktr_port.h - the log on bare harts: tp points to the hart's block, where its head word is.
 *
 * Built with -DHARTS=1 or more, -DKTR_PORT_PATCH=0 or 1. Manuals: RISC-V Unprivileged ISA 20191213.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTR_PORT_MAXCPU HARTS

enum hart_state { HART_WAITS, HART_RUNS, HART_DONE }; /* records nothing but while it runs */

struct hart {
	uint64_t head;   /* atomic: ktr/ring.h */
	uint32_t tid;    /* thread id */
	uint32_t ticks;  /* timer interrupts taken */
	uint64_t passes; /* atomic: times that its loop was outside of the record text */
	uint32_t state;  /* atomic */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct hart) == 64, "start.S shifts by 6");

extern struct hart harts[HARTS];
register struct hart *this_hart __asm__("tp");

/* mtime, which all harts see. Reads of it stay in program order (9.1, 10.1). */
static inline uint64_t
ktr_port_time(void)
{
	uint64_t ticks;
	__asm__ volatile("rdtime %0" : "=r"(ticks) : : "memory");
	return ticks;
}

static inline uint64_t
ktr_port_head(void)
{
	return __atomic_load_n(&this_hart->head, __ATOMIC_RELAXED);
}

/* An SC fails when an interrupt handler's SC came between (8.2): LR/SC is atomic against both. */
static inline bool
ktr_port_claim(uint64_t head, uint64_t next)
{
	return __atomic_compare_exchange_n(&this_hart->head, &head, next, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static inline uint64_t *
ktr_port_head_of(unsigned cpu)
{
	return &harts[cpu].head;
}

static inline uint32_t
ktr_port_tid(void)
{
	return __atomic_load_n(&this_hart->tid, __ATOMIC_RELAXED);
}

static inline void
ktr_port_wmb(void)
{
	__asm__ volatile("fence w, w" : : : "memory");
}

#if KTR_PORT_PATCH
/* A trace point: one instruction of four bytes, aligned so that one store changes it. */
#define KTR_PORT_SITE_OPERAND "%0"
#define KTR_PORT_SITE_ON(site) \
	KTR_PATCH_SITE_ON(".balign 4; .option push; .option norvc; 1: nop; .option pop", site)
#endif

/** "I am outside of the record text": a hart's loop calls it between its events. */
static inline void
hart_pass(void)
{
#if KTR_PORT_PATCH
	/* Sees what was patched before (3.1, FENCE.I). */
	__asm__ volatile("fence.i" : : : "memory");
#endif
	/* release: pairs with the acquires in ktr_port_quiesce() */
	__atomic_fetch_add(&this_hart->passes, 1, __ATOMIC_RELEASE);
}
