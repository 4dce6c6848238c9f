/*
 * ktr_port.h - the hosted port: CPUs are numbers that threads take, so that the same ring runs
 * under pthreads, in unit tests, fuzzers and benchmarks.
 *
 * A thread says by ktr_host_cpu on which CPU it "runs". At any time at most one thread runs on a
 * CPU, as on a real one. Tests that want interrupts, NMIs and migrations step in by
 * ktr_host_interrupt.
 *
 * Records run "with interrupts off": what a step does inside of one is an NMI. With
 * KTR_HOST_RESTART a record is a restartable sequence (ktr/restart.h), in C: who steps in as an
 * exception counts it in ktr_host_exceptions, and the record begins again.
 *
 * A thread that records while others drain or resize registers itself, and calls ktr_host_pass()
 * between events, never inside one: that is how ktr_port_sync() and ktr_port_exchange() know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "ktr/entry.h"

#define KTR_PORT_MAXCPU 64
#define KTR_PORT_PATCH  0

struct ktr_site;

extern _Thread_local unsigned ktr_host_cpu;
extern _Thread_local uint32_t ktr_host_tid;
extern struct ktr_ring *ktr_host_rings[KTR_PORT_MAXCPU];
extern _Thread_local unsigned ktr_host_masked;    /* not 0: the thread has interrupts off */
extern unsigned ktr_host_cpus;                    /* CPUs that exist, from 0 */
extern _Thread_local bool ktr_host_refuse;        /* the thread's events are refused; then
							 ktr_ring_close() */
extern uint64_t (*volatile ktr_host_clock)(void); /* NULL: CLOCK_MONOTONIC */

/**
 * Places where a test can step in: inside a record call as an exception does, inside a reader as a
 * writer on another CPU does. A program that measures defines KTR_HOST_NO_STEPS.
 */
enum ktr_host_step {
	KTR_HOST_BEGIN,    /* the head is about to be read */
	KTR_HOST_SEQUENCE, /* inside a record, after one of its loads or stores */
	KTR_HOST_PUBLISH,  /* the entry is complete, its head is about to be stored */
	KTR_HOST_READ,     /* a reader is about to load another word */
	KTR_HOST_NAME      /* a thread's name is about to be stored */
};
extern void (*volatile ktr_host_interrupt)(enum ktr_host_step step);

/** Registers and unregisters the calling thread; true when there was room. */
bool ktr_host_enter(void);
void ktr_host_leave(void);
/** "I am in no record call": may wait for an exchange to end. */
void ktr_host_pass(void);

/** Counts calls, for tests of the console printing. */
extern unsigned ktr_host_verbose_calls;
/** ktr_port_exchange() is under way. */
extern bool ktr_host_exchanges;
/** False: ktr_port_sync() cannot tell. */
extern bool ktr_host_in_sync;
/** Not NULL: waits in place of ktr_port_sync(), for tests that schedule writers themselves. */
extern void (*ktr_host_wait)(void);
/** Prints nothing. */
extern bool ktr_host_quiet;
/** Allocations that still succeed; -1: all. */
extern int ktr_host_alloc_left;

static inline void
ktr_host_step(enum ktr_host_step step)
{
#ifdef KTR_HOST_NO_STEPS
	(void)step;
#else
	if (__builtin_expect(ktr_host_interrupt != NULL, 0))
		ktr_host_interrupt(step);
#endif
}

/* The steps of ktr/ring.c and others. */
#define KTR_PORT_STEP(step) ktr_host_step(step)
#define KTR_PORT_PUT(field, value)                                     \
	do {                                                           \
		__atomic_store_n(&(field), (value), __ATOMIC_RELAXED); \
		ktr_host_step(KTR_HOST_SEQUENCE);                      \
	} while (0)
#define KTR_PORT_RING_OF(n) ((n) < ktr_host_cpus ? &ktr_host_rings[n] : NULL)

static inline uint64_t
ktr_port_time(void)
{
	if (ktr_host_clock != NULL)
		return ktr_host_clock();
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline unsigned
ktr_port_cpu(void)
{
	return ktr_host_cpu;
}

static inline uint32_t
ktr_port_tid(void)
{
	return ktr_host_tid;
}

static inline uintptr_t
ktr_port_irq_save(void)
{
	return ktr_host_masked++;
}

static inline void
ktr_port_irq_restore(uintptr_t masked)
{
	ktr_host_masked = (unsigned)masked;
}

#ifdef KTR_HOST_RESTART
extern unsigned ktr_host_exceptions;

/** A step in a sequence. True: there was an exception, which returns to the beginning. */
static inline bool
ktr_host_restart(enum ktr_host_step step)
{
	unsigned before = ktr_host_exceptions;
	ktr_host_step(step);
	return ktr_host_exceptions != before;
}

static inline bool
ktr_host_record(unsigned n, const struct ktr_site *site, const uint64_t args[KTR_MAXARGS])
{
	struct ktr_ring *ring;
	struct ktr_entry *e;
	uint64_t head;
restart:
	ktr_host_step(KTR_HOST_BEGIN);
	ring = *KTR_PORT_RING_OF(ktr_host_cpu);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	if (head >= __atomic_load_n(&ring->limit, __ATOMIC_RELAXED))
		return false;
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	e = (struct ktr_entry *)(uintptr_t)(ring->bias + head);
	__atomic_store_n(&e->ticks, ktr_port_time(), __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&e->tid, ktr_port_tid(), __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&e->site, (uint32_t)(uintptr_t)site, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	for (unsigned i = 0; i < n; i++) {
		__atomic_store_n(&e->args[i], args[i], __ATOMIC_RELAXED);
		if (ktr_host_restart(KTR_HOST_SEQUENCE))
			goto restart;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (ktr_host_restart(KTR_HOST_PUBLISH))
		goto restart;
	__atomic_store_n(&ring->head, head + KTR_ENTRY_BYTES, __ATOMIC_RELAXED);
	return true;
}
#define KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more) \
	ktr_host_record(n, site, (uint64_t[]){a1, a2, a3, a4, (more).a5, (more).a6})

static inline void
ktr_host_turn(struct ktr_ring *ring, uint64_t head, uint64_t bias, uint64_t limit)
{
restart:
	if (__atomic_load_n(&ring->head, __ATOMIC_RELAXED) != head)
		return;
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	ring->bias = bias;
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&ring->limit, limit, __ATOMIC_RELAXED);
	ktr_host_step(KTR_HOST_SEQUENCE);
}
#define KTR_PORT_TURN(ring, head, bias, limit) ktr_host_turn(ring, head, bias, limit)
#endif
