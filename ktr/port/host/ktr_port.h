/*
 * ktr_port.h - the hosted port: CPUs are numbers that threads take, so that the same ring runs
 * under pthreads, in unit tests, fuzzers and benchmarks.
 *
 * A thread says by ktr_host_cpu on which CPU it "runs", and may change it at any time, as a
 * migration. Several threads may run on one CPU: the claim is a real compare-and-swap here.
 *
 * With KTR_HOST_RESTART the claim is of the restartable kind (ktr/restart.h), in C: a CPU has one
 * thread, which stays on it, and who steps in as an interrupt counts it in ktr_host_exceptions.
 *
 * A thread that records while others drain or resize registers itself, and calls ktr_host_pass()
 * between events, never inside one: that is how ktr_port_quiesce() and ktr_port_exchange() know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "ktr/restart.h"

#define KTR_PORT_MAXCPU 64
#define KTR_PORT_PATCH  0

extern _Thread_local unsigned ktr_host_cpu;
extern _Thread_local uint32_t ktr_host_tid;
extern uint64_t ktr_host_heads[KTR_PORT_MAXCPU];
extern unsigned ktr_host_cpus;                    /* CPUs that exist, from 0 */
extern _Thread_local bool ktr_host_refuse;        /* the thread's events are refused; then
							 ktr_ring_close() */
extern uint64_t (*volatile ktr_host_clock)(void); /* NULL: CLOCK_MONOTONIC */

/**
 * Places where a test can step in: inside a record call as an interrupt or a migration does, inside
 * a reader as a writer does. A program that measures defines KTR_HOST_NO_STEPS.
 */
enum ktr_host_step {
	KTR_HOST_BEGIN,     /* the head is about to be read */
	KTR_HOST_READ_HEAD, /* the head was read, the clock is about to be */
	KTR_HOST_CLAIM,     /* the clock was read, the claim is about to be tried */
	KTR_HOST_CLAIMED,   /* claimed and invalidated, nothing filled yet */
	KTR_HOST_OWNED,     /* claimed, nothing stored yet */
	KTR_HOST_STORED,    /* one word was filled */
	KTR_HOST_SEQUENCE,  /* inside a restartable sequence */
	KTR_HOST_READ       /* a reader is about to load another word */
};
extern void (*volatile ktr_host_interrupt)(enum ktr_host_step step);

/** Registers and unregisters the calling thread; true when there was room. */
bool ktr_host_enter(void);
void ktr_host_leave(void);
/** "I am in no record call": may wait for an exchange to end. */
void ktr_host_pass(void);

/** Counts calls, for tests of the console printing. */
extern unsigned ktr_host_verbose_calls;
/** False: ktr_port_quiesce() cannot tell. */
extern bool ktr_host_quiescent;
/** Not NULL: waits in place of ktr_port_quiesce(), for tests that schedule writers themselves. */
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

/* The steps of ktr/ring.c. */
#define KTR_PORT_READ_STEP() ktr_host_step(KTR_HOST_READ)
#define KTR_PORT_PUT(field, value)                                     \
	do {                                                           \
		__atomic_store_n(&(field), (value), __ATOMIC_RELAXED); \
		ktr_host_step(KTR_HOST_STORED);                        \
	} while (0)
#define KTR_PORT_PUT_PAIR(at, first, second)   \
	do {                                   \
		KTR_PORT_PUT((at)[1], second); \
		KTR_PORT_PUT((at)[0], first);  \
	} while (0)

static inline uint64_t
ktr_port_head(void)
{
	ktr_host_step(KTR_HOST_BEGIN);
	uint64_t head = __atomic_load_n(&ktr_host_heads[ktr_host_cpu], __ATOMIC_RELAXED);
	ktr_host_step(KTR_HOST_READ_HEAD);
	return head;
}

static inline uint64_t
ktr_port_time(void)
{
	if (ktr_host_clock != NULL)
		return ktr_host_clock();
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline bool
ktr_port_claim(uint64_t head, uint64_t next)
{
	ktr_host_step(KTR_HOST_CLAIM);
	/* release: what the thread did before is seen by who reads this head */
	if (!__atomic_compare_exchange_n(&ktr_host_heads[ktr_host_cpu], &head, next, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	ktr_host_step(KTR_HOST_OWNED);
	return true;
}

static inline uint64_t *
ktr_port_head_of(unsigned cpu)
{
	return cpu < ktr_host_cpus ? &ktr_host_heads[cpu] : NULL;
}

static inline uint32_t
ktr_port_tid(void)
{
	return ktr_host_tid;
}

static inline void
ktr_port_wmb(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	ktr_host_step(KTR_HOST_CLAIMED);
}

#ifdef KTR_HOST_RESTART
extern struct ktr_turn ktr_host_turns[KTR_PORT_MAXCPU];
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
ktr_host_claim_now(struct ktr_claim *c)
{
	uint64_t *word = &ktr_host_heads[ktr_host_cpu];
	struct ktr_turn *turn = &ktr_host_turns[ktr_host_cpu], now = {.tid = ktr_host_tid};
	uint64_t head, limit;
restart:
	ktr_host_step(KTR_HOST_BEGIN);
	head = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	limit = __atomic_load_n(&turn->limit, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	if (head + KTR_HEAD_STEP > limit)
		return false;
	now.bias = __atomic_load_n(&turn->bias, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_READ_HEAD))
		goto restart;
	c->now = ktr_port_time();
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	now.lap = __atomic_load_n(&turn->lap, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_CLAIM))
		goto restart;
	__atomic_store_n(word, head + KTR_HEAD_STEP, __ATOMIC_RELEASE);
	c->e = (struct ktr_entry *)(now.bias + head);
	c->publish = now.publish;
	ktr_host_step(KTR_HOST_OWNED);
	return true;
}
#define KTR_PORT_CLAIM_NOW(c) ktr_host_claim_now(c)

static inline void
ktr_host_turn(uint64_t head, const struct ktr_turn *next)
{
	struct ktr_turn *turn = &ktr_host_turns[ktr_host_cpu];
restart:
	if (__atomic_load_n(&ktr_host_heads[ktr_host_cpu], __ATOMIC_RELAXED) != head)
		return;
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&turn->bias, next->bias, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&turn->lap, next->lap, __ATOMIC_RELAXED);
	if (ktr_host_restart(KTR_HOST_SEQUENCE))
		goto restart;
	__atomic_store_n(&turn->limit, next->limit, __ATOMIC_RELAXED);
	ktr_host_step(KTR_HOST_STORED);
}
#define KTR_PORT_TURN(head, turn) ktr_host_turn(head, turn)
#define KTR_PORT_TURN_OF(cpu)     (&ktr_host_turns[cpu])
#endif
