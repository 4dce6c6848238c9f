/*
 * ktr_port.h - the port of the record benchmark: x86_64 Linux, in which a pinned thread is a CPU.
 *
 * It is what somebody would write who puts KTR into an x86_64 kernel of their own: the clock is
 * RDTSC, the CPU's block hangs on a segment register (FS here, where the C library keeps
 * thread-local variables), the ring's turn stands beside the head word, the claim is Kestrel's,
 * which an interrupt would begin again (ktr/restart.h; none that records comes here), and sites are
 * no-ops that become jumps.
 *
 * Locking: none; sites, masks and rings change only while no thread records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/restart.h"

#define KTR_PORT_MAXCPU 2
#define KTR_PORT_PATCH  1

/** What recording touches of a CPU. */
struct bench_cpu {
	uint64_t ktr_head;
	struct ktr_turn turn;
	unsigned cpu;
};

extern _Thread_local struct bench_cpu bench_cpu __attribute__((tls_model("local-exec")));
extern struct bench_cpu *bench_cpus[KTR_PORT_MAXCPU];

#define BENCH_AT      "%%fs:bench_cpu@tpoff+"
#define BENCH(member) "i"(offsetof(struct bench_cpu, member))

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
ktr_port_tid(void)
{
	return bench_cpu.turn.tid;
}

/** Stores are seen in program order (SDM vol. 3A, 8.2.2); only the compiler must keep it. */
static inline void
ktr_port_wmb(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline bool
ktr_port_claim(uint64_t head, uint64_t next)
{
	bool claimed;

	__asm__ volatile("cmpxchgq %2, " BENCH_AT "%c3"
			 : "=@ccz"(claimed), "+a"(head)
			 : "r"(next), BENCH(ktr_head)
			 : "memory");
	return claimed;
}

/* From here on: optional, and what makes the difference between 61 instructions and 37. */

static inline bool
bench_claim_now(struct ktr_claim *c)
{
	register uint64_t next __asm__("r11");
	register struct ktr_entry *e __asm__("r10");
	uint64_t now, publish;

	__asm__ goto("movq " BENCH_AT "%c4, %1\n\t"
		     "leaq %c8(%1), %0\n\t"
		     "cmpq " BENCH_AT "%c5, %0\n\t"
		     "ja %l[slow]\n\t"
		     "addq " BENCH_AT "%c6, %1\n\t"
		     "rdtsc\n\t"
		     "shlq $32, %%rdx\n\t"
		     "orq %%rax, %%rdx\n\t"
		     "movq " BENCH_AT "%c7, %%rax\n\t"
		     "movq %0, " BENCH_AT "%c4"
		     : "=&r"(next), "=&r"(e), "=&d"(now), "=&a"(publish)
		     : BENCH(ktr_head), BENCH(turn.limit), BENCH(turn.bias), BENCH(turn.publish),
		       "i"(KTR_HEAD_STEP)
		     : "memory", "cc"
		     : slow);
	*c = (struct ktr_claim){.e = e, .now = now, .publish = publish};
	return true;
slow:
	return false;
}
#define KTR_PORT_CLAIM_NOW(c) bench_claim_now(c)

static inline void
bench_turn(const struct ktr_turn *turn)
{
	bench_cpu.turn.bias = turn->bias;
	bench_cpu.turn.lap = turn->lap;
	bench_cpu.turn.limit = turn->limit;
}
#define KTR_PORT_TURN(head, next) ((void)(head), bench_turn(next))
#define KTR_PORT_TURN_OF(cpu)     (&bench_cpus[cpu]->turn)

#define KTR_PORT_STACK_PAIR(pair) \
	((void)(pair), (const volatile struct ktr_pair *)__builtin_dwarf_cfa())

#define KTR_PORT_SITE_ON(site) KTR_PATCH_SITE_ON(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", site)
