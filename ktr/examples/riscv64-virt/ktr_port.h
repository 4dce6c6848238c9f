/*
 * ktr_port.h - the log on bare harts: tp points to the hart's block.
 *
 * Built with -DHARTS=1 or more, -DKTR_PORT_PATCH=0 or 1. Manuals: RISC-V Unprivileged ISA 20191213,
 * Privileged Architecture 20211203.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ktr_ring;

enum hart_state { HART_WAITS, HART_RUNS, HART_DONE }; /* records nothing but while it runs */

struct hart {
	struct ktr_ring *ring;
	uint32_t tid;    /* thread id */
	uint32_t ticks;  /* timer interrupts taken */
	uint64_t passes; /* atomic: times that its loop was outside of a record */
	uint32_t state;  /* atomic */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct hart) == 64, "start.S shifts by 6");

extern struct hart harts[HARTS];
register struct hart *this_hart __asm__("tp");

#define MSTATUS_MIE 0x8ul

/* mtime, which all harts see. Reads of it stay in program order (unprivileged, 9.1, 10.1). */
static inline uint64_t
clock_read(void)
{
	uint64_t ticks;
	__asm__ volatile("rdtime %0" : "=r"(ticks) : : "memory");
	return ticks;
}

static inline uint64_t
irq_save(void)
{
	uint64_t mstatus;
	__asm__ volatile("csrrci %0, mstatus, %1" : "=r"(mstatus) : "i"(MSTATUS_MIE) : "memory");
	return mstatus;
}

/* Sets the interrupts as they were before: MIE, too, if it was set. */
static inline void
irq_restore(uint64_t mstatus)
{
	__asm__ volatile("csrs mstatus, %0" : : "r"(mstatus) : "memory");
}

#define KTR_PORT_MAXCPU      HARTS
#define KTR_CPU()            (this_hart - harts)
#define KTR_CLOCK()          clock_read()
#define KTR_THREAD()         this_hart->tid
#define KTR_IRQ_SAVE()       irq_save()
#define KTR_IRQ_RESTORE(s)   irq_restore(s)
#define KTR_PORT_RING_OF(n)  ((n) < HARTS ? &harts[n].ring : NULL)
#define KTR_PORT_THIS_RING() this_hart->ring
#define KTR_PORT_ARENA_BYTES (HARTS * 64 * (4096 + 1))
#define DIF_PORT_ARENA_BYTES (64 * 1024 + HARTS * 128 * 1024) /* dif.c */
#if KTR_PORT_PATCH
/* A trace point: one instruction of four bytes, aligned so that one store changes it. */
#define KTR_PORT_SITE_ON(site) \
	KTR_PATCH_SITE_ON(".balign 4; .option push; .option norvc; 1: nop; .option pop", site)
#endif
#include <ktr_port_default.h>

/** "I am outside of a record": a hart's loop calls it between its events. */
static inline void
hart_pass(void)
{
#if KTR_PORT_PATCH
	/* Sees what was patched before (3.1, FENCE.I). */
	__asm__ volatile("fence.i" : : : "memory");
#endif
	/* release: pairs with the acquires in ktr_port_sync() */
	__atomic_fetch_add(&this_hart->passes, 1, __ATOMIC_RELEASE);
}
