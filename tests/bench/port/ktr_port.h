/*
 * ktr_port.h - the port of the record benchmark: x86_64 Linux, in which a pinned thread is a CPU.
 *
 * It is what somebody would write who puts KTR into an x86_64 kernel of their own: the clock is
 * RDTSC, the CPU's block hangs on a segment register (FS here, where the C library keeps
 * thread-local variables), a record is Kestrel's restartable sequence, and sites are no-ops that
 * become jumps. No signal handler records here, so nothing ever makes a sequence begin again.
 *
 * Locking: none; sites, masks and rings change only while no thread records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/entry.h"
#include "ktr/restart.h"

#define KTR_PORT_MAXCPU 2
#define KTR_PORT_PATCH  1

struct ktr_site;

/** What recording touches of a CPU. */
struct bench_cpu {
	struct ktr_ring *ktr_ring;
	uint32_t tid;
	unsigned cpu;
};

extern _Thread_local struct bench_cpu bench_cpu __attribute__((tls_model("local-exec")));
extern struct bench_cpu *bench_cpus[KTR_PORT_MAXCPU];

#define BENCH_AT           "%%fs:bench_cpu@tpoff+"
#define BENCH_CPU(member)  [member] "i"(offsetof(struct bench_cpu, member))
#define BENCH_RING(member) [member] "i"(offsetof(struct ktr_ring, member))

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

/* From here on: optional, and what makes records fast. */

static inline __attribute__((always_inline)) bool
bench_record(unsigned n, const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3,
	     uint64_t a4, const volatile void *more)
{
	__asm__ goto("1:\tmovq " BENCH_AT "%c[ktr_ring], %%r10\n\t"
		     "movq %c[head](%%r10), %%r11\n\t"
		     "cmpq %c[limit](%%r10), %%r11\n\t"
		     "jae %l[slow]\n\t"
		     "addq %c[bias](%%r10), %%r11\n\t"
		     "rdtsc\n\t"
		     "movl %%eax, (%%r11)\n\t"
		     "movl %%edx, 4(%%r11)\n\t"
		     "movl " BENCH_AT "%c[tid], %%eax\n\t"
		     "movl %%eax, 8(%%r11)\n\t"
		     "movl %k[site], 12(%%r11)\n\t"
		     ".if %c[n] > 0\n\tmovq %[a1], 16(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 1\n\tmovq %[a2], 24(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 2\n\tmovq %[a3], 32(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 3\n\tmovq %[a4], 40(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 4\n\tmovq %a[more], %%rax\n\tmovq %%rax, 48(%%r11)\n\t.endif\n\t"
		     ".if %c[n] > 5\n\tmovq 8+%a[more], %%rax\n\tmovq %%rax, 56(%%r11)\n\t.endif\n\t"
		     "addq %[step], %c[head](%%r10)\n\t" KTR_RESTART("1b", "%l[slow]")
		     :
		     : [n] "i"(n), [site] "r"(site), [a1] "ri"(a1), [a2] "ri"(a2), [a3] "ri"(a3),
		       [a4] "ri"(a4), [more] "p"(more), [step] "i"(KTR_ENTRY_BYTES),
		       BENCH_RING(head), BENCH_RING(limit), BENCH_RING(bias), BENCH_CPU(ktr_ring),
		       BENCH_CPU(tid)
		     : "rax", "rdx", "r10", "r11", "memory", "cc"
		     : slow);
	return true;
slow:
	return false;
}

/* Where the compiler found parameters five and six (arch/x86_64/md/ktr_site.h). */
#define KTR_PORT_PAIR(more) \
	((void)(more), *(const volatile struct ktr_pair *)__builtin_dwarf_cfa())
#define KTR_PORT_RECORD(n, site, a1, a2, a3, a4, more) \
	bench_record(n, site, a1, a2, a3, a4, (n) > 4 ? __builtin_dwarf_cfa() : NULL)

static inline void
bench_turn(struct ktr_ring *ring, uint64_t head, uint64_t bias, uint64_t limit)
{
	if (ring->head != head)
		return;
	ring->bias = bias;
	ring->limit = limit;
}
#define KTR_PORT_TURN(ring, head, bias, limit) bench_turn(ring, head, bias, limit)
#define KTR_PORT_RING_OF(n) \
	((n) < KTR_PORT_MAXCPU && bench_cpus[n] != NULL ? &bench_cpus[n]->ktr_ring : NULL)

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
