/*
 * md/pcpu.h - aarch64: TPIDR_EL1 points to the per-CPU block, SP_EL0 to the current thread while
 * the kernel runs (which is on SP_EL1), so that each is one register away. boot.S and trap.S know
 * the offsets.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AARCH64_SPACES 32 /* address spaces whose translations a CPU keeps; ASIDs 1 to this */

struct ktr_ring;

struct arch_pcpu {
	struct ktr_ring *ktr_ring; /* of the main log; changed by ktr/size.c */
	uint64_t ktr_tid;          /* the current thread's id */
	struct thread *curthread;  /* what SP_EL0 becomes on entry from EL0 */
	uintptr_t kstack;          /* lowest address of the current thread's kernel stack */
	uintptr_t overflow_top;    /* where the frame of a stack overflow goes */
	unsigned cpu;
	uint64_t mpidr;                 /* affinity fields of MPIDR_EL1 */
	uint64_t root;                  /* TTBR0's table; 0: none */
	uint64_t space[AARCH64_SPACES]; /* mmu.c: which space ASID i + 1 stands for */
	uint64_t next_space;            /* numbers given out here so far */
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
