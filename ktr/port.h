/*
 * port.h - what ktr asks of the kernel or program around it; ktr/README.md goes through it.
 *
 * The port's <ktr_port.h> supplies, as macros and static inline functions that any context calls:
 *
 *	KTR_PORT_MAXCPU   CPUs are numbered below it: a number, 1 to 64
 *	KTR_PORT_PATCH    1: it defines KTR_PORT_SITE_ON(site) by asm goto (KTR_PATCH_SITE_ON of
 *	                  ktr/site.h), and ktr_port_patch() exists; 0: sites are loaded and tested
 *	uint64_t ktr_port_time(void)
 *	                  raw clock; agrees between CPUs, never runs backwards
 *	uint64_t ktr_port_head(void)
 *	                  this CPU's head word (ktr/ring.h)
 *	bool ktr_port_claim(uint64_t head, uint64_t next)
 *	                  this CPU's head word from head to next if it still is head; atomic
 *	                  against this CPU's interrupts and NMIs
 *	uint64_t *ktr_port_head_of(unsigned cpu)
 *	                  that CPU's head word; NULL: no such CPU (yet)
 *	uint32_t ktr_port_tid(void)
 *	                  the current thread's id
 *	void ktr_port_wmb(void)
 *	                  orders stores before it before stores after it
 *
 * and, where it knows better than what stands here and in ring.c:
 *
 *	KTR_PORT_CLAIM_NOW(&c)         the claim in one piece, restartable: fills a struct ktr_claim
 *	                               from the struct ktr_turn of this CPU (ktr/restart.h). False:
 *	                               the claim would go beyond the turn's limit, and
 *	                               nothing is claimed. It needs the next two
 *	KTR_PORT_TURN(head, &turn)     if this CPU's head word still is head, its struct
 *	                               ktr_turn takes bias, lap and limit from turn, the
 *	                               limit last; restartable
 *	KTR_PORT_TURN_OF(cpu)          that CPU's struct ktr_turn; there is one where there is a
 *	                               head word
 *	KTR_PORT_STACK_PAIR(&p)        where the last two parameters are
 *	KTR_PORT_PUT(field, value), KTR_PORT_PUT_PAIR(at, first, second)
 *	                               store words of an entry, each in one piece
 *
 * The head word of CPU n starts as n. Before a CPU has its own ring, which
 * ktr_cpu_init() gives it, it may record too: CPU 0 into the boot ring, others into nothing, which
 * is counted.
 *
 * The functions below are the port's as well. None of them is called while an event is recorded,
 * but for the two that the slow path asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/ring.h"
#include "ktr/site.h"

/**
 * The functions of this section are "inside the record text", as ktr_port_quiesce() says; so what
 * they call of the port's header is inlined, whatever the compiler thinks. Nothing is assumed of
 * their callers, for KTR_PORT_STACK_PAIR() looks where the ABI puts a parameter.
 */
#ifdef __clang__
#define KTR_RECORD_TEXT __attribute__((section(".text.ktr_record"), noinline, flatten))
#else
#define KTR_RECORD_TEXT __attribute__((section(".text.ktr_record"), noinline, flatten, noipa))
#endif

/** The control lock. May sleep; not taken before threads exist, nor after a panic. Not recursive.
 */
void ktr_port_lock(void);
void ktr_port_unlock(void);

/**
 * Makes each instruction jump to its target (on) or fall through (!on), safely while other CPUs run
 * it. Control lock held. Before other CPUs run it must work in any context. Only with
 * KTR_PORT_PATCH 1.
 */
void ktr_port_patch(const struct ktr_patch *const *patches, unsigned count, bool on);

/**
 * Waits until every record call that began before this call has finished: each CPU has been outside
 * of the record text once. May sleep. False: cannot tell. Control lock held.
 */
bool ktr_port_quiesce(void);

/** Runs fn(arg) while no CPU is inside the record text, nor enters it. fn is short and does not
 * sleep. */
void ktr_port_exchange(void (*fn)(void *), void *arg);

/** Zeroed memory, aligned to 64, or NULL. May sleep. */
void *ktr_port_alloc(size_t size);
void ktr_port_free(void *p, size_t size);

/** True: p points into read-only data of the program, where a NUL follows. Any context. */
bool ktr_port_string_ok(const char *p);

/**
 * Slow path: the current thread's events are refused. Any context, also NMI. Whenever that becomes
 * so, also by a switch to the thread, the port calls ktr_ring_close() for the CPU. This rests on no
 * thread being switched out inside the record text.
 */
bool ktr_port_suppressed(void);

/**
 * Slow path: prints one event, which was just recorded, on the console; best effort, any context.
 * level is debug.ktr.verbose: 1 cpu and message, 2 also file.line. Not called while the same CPU is
 * in it.
 */
void ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		      int level);
