/* md/pcpu.h - x86_64: GS points to the per-CPU block. trap.S knows some offsets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ktr_ring;
struct x86_cpu;

struct arch_pcpu {
	struct arch_pcpu *self;
	uint64_t kstack_top; /* top of the current thread's kernel stack: for SYSCALL, and a
				program's steps */
	uint64_t user_sp;    /* scratch of the SYSCALL entry */
	struct thread *curthread;
	struct ktr_ring *ktr_ring; /* of the main log; changed by ktr/size.c */
	uint64_t ktr_tid;          /* the current thread's id */
	unsigned cpu;
	bool ktr_in_hook; /* of ktr/hook.c */
	uint32_t apic_id;
	struct x86_cpu *x86; /* descriptor tables and fault stacks */
	/* While a debug exception of the kernel is handled: DR7, as it will be afterwards. */
	uint64_t dr7;
	bool in_debug;
};

_Static_assert(offsetof(struct arch_pcpu, kstack_top) == 8, "trap.S");
_Static_assert(offsetof(struct arch_pcpu, user_sp) == 16, "trap.S");
_Static_assert(offsetof(struct arch_pcpu, curthread) == 24, "asm.h");
_Static_assert(offsetof(struct arch_pcpu, dr7) == 72, "asm.h");
_Static_assert(offsetof(struct arch_pcpu, in_debug) == 80, "asm.h");

#define X86_GS_READ(v, member) \
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(v) : "i"(offsetof(struct arch_pcpu, member)))

static inline struct thread *
arch_curthread(void)
{
	struct thread *t;
	X86_GS_READ(t, curthread);
	return t;
}

static inline void
arch_set_curthread(struct thread *t)
{
	__asm__ volatile("movq %0, %%gs:%c1"
			 :
			 : "r"(t), "i"(offsetof(struct arch_pcpu, curthread))
			 : "memory");
}

static inline struct arch_pcpu *
arch_this_pcpu(void)
{
	struct arch_pcpu *p;
	X86_GS_READ(p, self);
	return p;
}

static inline unsigned
arch_cpu(void)
{
	unsigned n;
	X86_GS_READ(n, cpu);
	return n;
}
