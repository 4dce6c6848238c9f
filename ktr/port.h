/*
 * port.h - the interface to the kernel or program around ktr; ktr/README.md shows how to supply it.
 *
 * The port's <ktr_port.h> supplies, as macros and static inline functions for any context:
 *
 *	KTR_PORT_MAXCPU   CPUs are numbered below it: a number, 1 to 64
 *	KTR_PORT_PATCH    1: the port defines KTR_PORT_SITE_ON(site) by asm goto
 *	                  (KTR_PATCH_SITE_ON of ktr/site.h), and ktr_port_patch() exists;
 *	                  0: a trace point loads and tests a flag
 *	uint64_t ktr_port_time(void)
 *	                  raw clock: the same on all CPUs, never runs backwards
 *	unsigned ktr_port_cpu(void)
 *	                  this CPU's number; called with interrupts off
 *	uint32_t ktr_port_tid(void)
 *	                  the current thread's id
 *	uintptr_t ktr_port_irq_save(void), void ktr_port_irq_restore(uintptr_t)
 *	                  turn this CPU's interrupts off, and back to what they were
 *
 * A port may define more, to make records faster:
 *
 *	KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more)
 *	                  the whole record of n parameters as a restartable sequence
 *	                  (ktr/restart.h, ktr/ring.c); `more` is a struct ktr_pair. False: this
 *	                  CPU's head has reached its limit, nothing is recorded. Without it
 *	                  records run with interrupts off
 *	KTR_PORT_TURN(ring, head, bias, limit)
 *	                  with KTR_PORT_RECORD: if ring->head is head, stores ring->bias and then
 *	                  ring->limit; a restartable sequence. Interrupts are off
 *	KTR_PORT_PAIR(more)
 *	                  the function's parameter `more`, when KTR_PORT_RECORD finds it by itself
 *	KTR_PORT_THIS_RING()
 *	                  this CPU's ring, with interrupts off; without KTR_PORT_RECORD
 *	KTR_PORT_RING_OF(cpu)
 *	                  where the pointer to the CPU's ring in the main log is; NULL: no such CPU
 *
 * And for what not every port has:
 *
 *	KTR_PORT_IN_HOOK()
 *	                  for hooks (ktr/hook.h), to make them faster: a pointer to a bool of
 *	                  this CPU, at first false, with interrupts off
 *	KTR_PORT_IN_NMI()
 *	                  for hooks: is the CPU in an NMI, or in what it calls? With interrupts off
 *	KTR_PORT_WHERE(firing, where)
 *	                  for hooks: sets the members of a struct ktr_where that are known.
 *	                  firing->frame is the frame pointer of the function that the trace
 *	                  point, or the code at a function's entry or return, has called. Without
 *	                  it only ->pc is known
 *	KTR_PORT_PARAMETERS(frame)
 *	                  for hooks: where the six parameters of a function that is entered are in
 *	                  memory; of firing->frame
 *	KTR_PORT_MAKE_NAMED(spec, first, err, errlen)
 *	                  before probes are switched on by name: makes those that exist when they
 *	                  are first named, and keeps those that were named by the calls since
 *	                  one with `first`. 0, or a negative errno value and a sentence in err.
 *	                  The control lock is held from that call on
 *
 * The functions below are the port's as well. A record calls none of them, but for the two that
 * its slow path asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/ring.h"
#include "ktr/site.h"

/* Tests of the hosted port step in here, as interrupts and as other CPUs. */
#ifndef KTR_PORT_STEP
#define KTR_PORT_STEP(step) ((void)0)
#endif

/**
 * The functions of this section are the record text, which contains all restartable sequences. What
 * they call of the port's header is inlined (flatten). The compiler must not change their calling
 * convention (noipa), since x86_64's KTR_PORT_RECORD reads parameters where the ABI puts them.
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
 * For each record p of KTR_PATCH_EACH(p): makes the instruction at ktr_patch_at(p) jump to
 * ktr_patch_target(p), if ktr_patch_on(p), or be what it was built as, safely while other CPUs run
 * it. Control lock held. Before other CPUs run it must work in any context. Only with
 * KTR_PORT_PATCH 1.
 */
void ktr_port_patch(void);

/**
 * Makes every CPU take an interrupt, and waits for it. A record that was under way on any CPU when
 * this was called has then ended, or it begins again and reads the clock again. May sleep. False:
 * the port cannot do this; streams then do not say up to which time they are complete. Control lock
 * held.
 */
bool ktr_port_sync(void);

/**
 * Runs fn(arg) while every other CPU waits in an interrupt handler, with interrupts off here and
 * the events of all CPUs refused, those of NMIs too. fn is short and does not sleep. Control lock
 * held.
 */
void ktr_port_exchange(void (*fn)(void *), void *arg);

/** Zeroed memory, aligned to 64, or NULL. May sleep. Control lock held. */
void *ktr_port_alloc(size_t size);
void ktr_port_free(void *p, size_t size);

/** True: p points into read-only data of the program, where a NUL follows. Any context. Handles of
 * ktr/intern.h and of long data do not come here. */
bool ktr_port_string_ok(const char *p);

/**
 * Slow path: are the current thread's events refused? Interrupts off. Any context, also NMI.
 * Whenever the answer becomes true, also by a switch to another thread, the port calls
 * ktr_ring_close() for the CPU.
 */
bool ktr_port_suppressed(void);

/**
 * Slow path: prints one event, which was just recorded, on the console; best effort, any context.
 * level is debug.ktr.verbose: 1 cpu and message, 2 also file.line. Not called while the same CPU is
 * in it.
 */
void ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		      int level);
