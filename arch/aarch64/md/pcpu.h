/*
 * md/pcpu.h - aarch64: TPIDR_EL1 points to the per-CPU block. While the kernel runs (on SP_EL1),
 * SP_EL0 points to the current thread. So each is in a register. boot.S and trap.S know the
 * offsets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AARCH64_SPACES 32 /* ASIDs of a CPU: 1 to 32, one for each space that it keeps */

struct ktr_ring;

struct arch_pcpu {
	struct ktr_ring *ktr_ring; /* of the main log; changed by ktr/size.c */
	uint64_t ktr_tid;          /* the current thread's id */
	struct thread *curthread;  /* loaded into SP_EL0 on entry from EL0 */
	uintptr_t kstack;          /* lowest address of the current thread's kernel stack */
	uintptr_t overflow_top;    /* top of the stack for the frame of a kernel stack overflow */
	unsigned cpu;
	bool ktr_in_hook;               /* of ktr/hook.c */
	uint64_t mpidr;                 /* affinity fields of MPIDR_EL1 */
	uint64_t root;                  /* physical address of TTBR0's table; 0: none */
	uint64_t space[AARCH64_SPACES]; /* mmu.c: the number of the space with ASID i + 1 */
	unsigned asid, last_asid;
};

_Static_assert(offsetof(struct arch_pcpu, curthread) == 16, "asm.h");
_Static_assert(offsetof(struct arch_pcpu, kstack) == 24, "asm.h");
_Static_assert(offsetof(struct arch_pcpu, overflow_top) == 32, "asm.h");

static inline struct thread *
arch_curthread(void)
{
	struct thread *t;
	__asm__ volatile("mrs %0, sp_el0" : "=r"(t));
	return t;
}

static inline struct arch_pcpu *
arch_this_pcpu(void)
{
	struct arch_pcpu *p;
	__asm__ volatile("mrs %0, tpidr_el1" : "=r"(p));
	return p;
}

static inline void
arch_set_curthread(struct thread *t)
{
	arch_this_pcpu()->curthread = t;
	__asm__ volatile("msr sp_el0, %0" : : "r"(t) : "memory");
}

static inline unsigned
arch_cpu(void)
{
	return arch_this_pcpu()->cpu;
}
