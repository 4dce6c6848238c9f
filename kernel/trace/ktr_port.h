/*
 * ktr_port.h - ktr's port header for this kernel (ktr/port.h), over arch/ktr.h.
 *
 * The pointer to a CPU's ring and the id of its thread are in its arch_pcpu. ktr_port_refused[n]
 * says why CPU n's events are refused: its thread reads them (the flush thread), or the machine is
 * stopped. Locking: none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"
#include "arch/irq.h"
#include "arch/ktr.h"
#include "kernel/sync/pcpu.h"
#include "ktr/entry.h"

#define KTR_PORT_MAXCPU   MAX_CPUS
#define KTR_PORT_PATCH    1
#define KTR_DYNAMIC_SITES 2560

/* kernel/probe/profile.h */
int profile_make_named(const char *spec, bool first, char *err, size_t errlen);
#define KTR_PORT_MAKE_NAMED profile_make_named

/*
 * Frames are pairs of words: the caller's frame pointer, and the return address. The kernel is in
 * the last 2 GiB, so the low half of an address of its text tells the whole.
 */
#define KTR_PORT_WHERE(f, w)                                                                     \
	do {                                                                                     \
		bool entry_ = (f)->site->kind == KTR_SITE_ENTRY;                                 \
		(w)->pc = (f)->frame[1];                                                         \
		(w)->fp = (f)->frame[0];                                                         \
		if (entry_ || (f)->site->kind == KTR_SITE_RETURN) {                              \
			(w)->pc = (uintptr_t)(int32_t)(f)->site->pc + (entry_ ? 0 : *(f)->args); \
			arch_ktr_probed((f)->frame, entry_, &(w)->ret, &(w)->fp);                \
		}                                                                                \
	} while (0)

#define KTR_PORT_PARAMETERS arch_ktr_parameters
#define KTR_PORT_IN_HOOK    ARCH_KTR_IN_HOOK
#define KTR_PORT_IN_NMI()   (this_pcpu()->nmi > 0)

enum ktr_refusal {
	KTR_REFUSE_THREAD = 1, /* the thread that runs has ktr_suppress; its interrupts lift it */
	KTR_REFUSE_STOP = 2,   /* rings are exchanged; NMIs do not lift it */
};
extern uint8_t ktr_port_refused[KTR_PORT_MAXCPU]; /* by CPU; each CPU writes its own */

extern const char __ktr_record_start[], __ktr_record_end[];

/* The machine ends: CPUs that are stopped will never run again. Written once, by the last CPU. */
extern bool ktr_port_final;

static inline uint64_t
ktr_port_time(void)
{
	return arch_clock_read();
}

static inline unsigned
ktr_port_cpu(void)
{
	return arch_cpu();
}

static inline uint32_t
ktr_port_tid(void)
{
	return arch_ktr_tid();
}

/* Not irq_push(), which counts and checks: this must work in any context. */
static inline uintptr_t
ktr_port_irq_save(void)
{
	return arch_irq_save();
}

static inline void
ktr_port_irq_restore(uintptr_t saved)
{
	arch_irq_restore(saved);
}

#define KTR_PORT_RING_OF(n) ((n) < MAX_CPUS && pcpus[n] != NULL ? &pcpus[n]->md.ktr_ring : NULL)

/*
 * Sets whether this CPU's events are refused for this reason. Returns whether they were: whoever
 * sets it for a while puts that back, because he may have interrupted another one who had set it.
 * Interrupts off.
 */
static inline bool
ktr_port_refuse(enum ktr_refusal why, bool refuse)
{
	unsigned cpu = arch_cpu();
	uint8_t before = ktr_port_refused[cpu];

	*(volatile uint8_t *)&ktr_port_refused[cpu] = refuse ? before | why : before & ~why;
	if (refuse) /* as ktr_ring_close() does for any CPU */
		__atomic_store_n(&arch_this_pcpu()->ktr_ring->limit, 0, __ATOMIC_RELAXED);
	return (before & why) != 0;
}

/*
 * Lifts the current thread's refusal for a while, to record for somebody else. Returns what
 * ktr_port_restore() then gets. Interrupts off.
 */
static inline bool
ktr_port_lift(void)
{
	return ktr_port_refused[arch_cpu()] != 0 && ktr_port_refuse(KTR_REFUSE_THREAD, false);
}

static inline void
ktr_port_restore(bool lifted)
{
	if (lifted)
		ktr_port_refuse(KTR_REFUSE_THREAD, true);
}

/*
 * Sets the thread that runs on this CPU now, and whether its events are refused. The scheduler
 * calls it at a switch. Interrupts off.
 */
static inline void
ktr_port_set_thread(uint32_t tid, bool refuse)
{
	arch_ktr_set_tid(tid);
	ktr_port_refuse(KTR_REFUSE_THREAD, refuse);
}

/* Is this an address of the record text, in which all restartable sequences are? Any context. */
static inline bool
ktr_port_inside(uintptr_t pc)
{
	return pc >= (uintptr_t)__ktr_record_start && pc < (uintptr_t)__ktr_record_end;
}
