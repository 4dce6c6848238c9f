/*
 * ktr_port.h - the port of the record benchmark: x86_64 Linux, where a pinned thread is a CPU.
 *
 * It resembles the port of any x86_64 kernel. The clock is RDTSC. A segment register points to the
 * CPU's block (here FS, where the C library keeps thread-local variables). A record is Kestrel's
 * restartable sequence, and sites are no-ops that become jumps. No signal handler records here, so
 * no sequence is ever restarted.
 *
 * Locking: none; sites, masks and rings change only while no thread records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/entry.h"

#define KTR_PORT_MAXCPU 2
#define KTR_PORT_PATCH  1

/** The data of a CPU that recording uses. */
struct bench_cpu {
	struct ktr_ring *ktr_ring;
	uint32_t tid;
	unsigned cpu;
};

extern _Thread_local struct bench_cpu bench_cpu __attribute__((tls_model("local-exec")));
extern struct bench_cpu *bench_cpus[KTR_PORT_MAXCPU];

/** RDTSC: constant and the same on all CPUs of any machine that runs the benchmark. */
static inline uint64_t
ktr_port_time(void)
{
	return __builtin_ia32_rdtsc();
}

static inline unsigned
ktr_port_cpu(void)
{
	return bench_cpu.cpu;
}

static inline uint32_t
ktr_port_tid(void)
{
	return bench_cpu.tid;
}

/* There are no interrupts. */
static inline uintptr_t
ktr_port_irq_save(void)
{
	return 0;
}

static inline void
ktr_port_irq_restore(uintptr_t irq)
{
	(void)irq;
}

/* What follows is optional, and makes records fast. */

#define KTR_PORT_RING_OF(n) \
	((n) < KTR_PORT_MAXCPU && bench_cpus[n] != NULL ? &bench_cpus[n]->ktr_ring : NULL)

#define BENCH_CPU    "%%fs:bench_cpu@tpoff+"
#define KTR_X86_RING "movq " BENCH_CPU "%c[ktr_ring], %%r10"
#define KTR_X86_TID  "movl " BENCH_CPU "%c[tid], %%eax"
#define KTR_X86_OPERANDS                                        \
	, [ktr_ring] "i"(offsetof(struct bench_cpu, ktr_ring)), \
	    [tid] "i"(offsetof(struct bench_cpu, tid))
#include "ktr/port/ktr_x86_64.h"

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
