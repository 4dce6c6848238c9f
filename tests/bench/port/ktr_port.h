/*
 * ktr_port.h - the port of the record benchmark: x86_64 Linux, in which a pinned thread is a CPU.
 *
 * It is what somebody would write who puts KTR into an x86_64 kernel of their own: the clock is
 * RDTSC, the CPU's block hangs on a segment register (FS here, where the C library keeps
 * thread-local variables), the ring stands beside the head word, the claim is Kestrel's, which an
 * interrupt would begin again (ktr/restart.h; none that records comes here), and sites are no-ops
 * that become jumps.
 *
 * Locking: none; sites, masks and rings change only while no thread records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTR_PORT_MAXCPU 2
#define KTR_PORT_PATCH  1

/** What recording touches of a CPU. */
struct bench_cpu {
	uint64_t ktr_head;
	uint32_t ktr_ident;
	unsigned cpu;
	struct ktr_entry *slots;
	uint64_t mask;
	uint64_t lap_mul;
};

extern _Thread_local struct bench_cpu bench_cpu __attribute__((tls_model("local-exec")));
extern struct bench_cpu *bench_cpus[KTR_PORT_MAXCPU];

_Static_assert(offsetof(struct bench_cpu, ktr_head) == 0, "BENCH_HEAD");
_Static_assert(offsetof(struct bench_cpu, ktr_ident) == 8, "BENCH_IDENT");
_Static_assert(offsetof(struct bench_cpu, slots) == 16, "BENCH_SLOTS");
_Static_assert(offsetof(struct bench_cpu, mask) == 24, "BENCH_MASK");
#define BENCH_HEAD  "%%fs:bench_cpu@tpoff"
#define BENCH_IDENT "%%fs:bench_cpu@tpoff+8"
#define BENCH_SLOTS "%%fs:bench_cpu@tpoff+16"
#define BENCH_MASK  "%%fs:bench_cpu@tpoff+24"

/** RDTSC: constant and the same on all CPUs of any machine that runs the benchmark. */
static inline uint64_t
ktr_port_time(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t
ktr_port_head(void)
{
	return bench_cpu.ktr_head;
}

static inline uint64_t *
ktr_port_head_of(unsigned cpu)
{
	return cpu < KTR_PORT_MAXCPU && bench_cpus[cpu] != NULL ? &bench_cpus[cpu]->ktr_head : NULL;
}

static inline uint32_t
ktr_port_ident(void)
{
	return bench_cpu.ktr_ident;
}

/** Stores are seen in program order (SDM vol. 3A, 8.2.2); only the compiler must keep it. */
static inline void
ktr_port_wmb(void)
{
	__asm__ volatile("" ::: "memory");
}

/* From here on: optional, and what makes the difference between 60 instructions and 43. */

/* The ring stands beside the head word that is claimed: no table, and no number of the CPU. */
#define KTR_PORT_HOT(at, member)     ((void)(at), bench_cpu.member)
#define KTR_PORT_HOT_OF(cpu, member) (&bench_cpus[cpu]->member)

static inline __attribute__((always_inline)) uint64_t
bench_claim_now(uint64_t *now, uint64_t *at, struct ktr_entry **entry)
{
	register uint64_t next __asm__("r11");
	register struct ktr_entry *e __asm__("r10");
	uint64_t ticks;
	__asm__ volatile("movq " BENCH_HEAD ", %0\n\t"
			 "incq %0\n\t"
			 "movq " BENCH_MASK ", %1\n\t"
			 "andq %0, %1\n\t"
			 "shlq $6, %1\n\t"
			 "addq " BENCH_SLOTS ", %1\n\t"
			 "rdtsc\n\t"
			 "shlq $32, %%rdx\n\t"
			 "orq %%rax, %%rdx\n\t"
			 "movq %0, " BENCH_HEAD
			 : "=&r"(next), "=&r"(e), "=&d"(ticks)
			 :
			 : "rax", "memory", "cc");
	*now = ticks;
	*at = 0;
	*entry = e;
	return next;
}
#define KTR_PORT_CLAIM_NOW(now, at, entry) bench_claim_now(now, at, entry)

#define KTR_PORT_STACK_PAIR(pair) \
	((void)(pair), (const volatile struct ktr_pair *)__builtin_dwarf_cfa())

#define KTR_PORT_SLOW()                                                                   \
	__extension__({                                                                   \
		_Bool ktr_slow_;                                                          \
		__asm__ volatile("cmpl $0, " BENCH_IDENT : "=@ccs"(ktr_slow_)::"memory"); \
		ktr_slow_;                                                                \
	})

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
