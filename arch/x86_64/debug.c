/*
 * debug.c - debug registers and single step (SDM vol. 3B, 17.2 and 17.3).
 */
#include "arch/debug.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"

#define POINTS    4
#define DR6_STEP  (1ul << 14)
#define RFLAGS_TF (1ul << 8)
#define PUSHF     0x9c
#define CR8_ALL   15ul /* task priority above that of every interrupt */

static uintptr_t stepped; /* the instruction being stepped */

unsigned
arch_points_max(enum arch_point_kind kind)
{
	(void)kind; /* all kinds share the registers */
	return POINTS;
}

static void
set_address(unsigned n, uintptr_t addr)
{
#define SET(i)                                                     \
	case i:                                                    \
		__asm__ volatile("mov %0, %%dr" #i : : "r"(addr)); \
		break
	switch (n) {
		SET(0);
		SET(1);
		SET(2);
		SET(3);
	}
#undef SET
}

bool
arch_points_set(const struct arch_point *p, unsigned n)
{
	/* R/W and LEN fields (17.2.4); a length of 8 is encoded as 2. */
	static const uint8_t rw[] = {
	    [ARCH_POINT_EXEC] = 0, [ARCH_POINT_WRITE] = 1, [ARCH_POINT_ACCESS] = 3};
	struct arch_pcpu *x = arch_this_pcpu();
	uint64_t dr7 = DR7_OFF;

	__asm__ volatile("mov %0, %%dr7" : : "r"(dr7));
	x->dr7 = dr7;
	if (n > POINTS)
		return false;
	for (unsigned i = 0; i < n; i++) {
		uint64_t len = p[i].kind == ARCH_POINT_EXEC ? 0
			       : p[i].size == 8             ? 2
							    : p[i].size - 1;

		set_address(i, p[i].addr);
		dr7 |= 2ul << 2 * i | (uint64_t)(rw[p[i].kind] | len << 2) << (16 + 4 * i);
	}
	x->dr7 = dr7;
	if (!x->in_debug) /* else they are on from its return */
		__asm__ volatile("mov %0, %%dr7" : : "r"(dr7));
	return true;
}

/* Blocks all interrupts but NMIs while a step is taken. */
static void
debug_mask_irqs(bool on)
{
	uint64_t priority = on ? CR8_ALL : 0;

	__asm__ volatile("mov %0, %%cr8" : : "r"(priority) : "memory");
}

void
arch_step(struct arch_trapframe *tf, bool on)
{
	debug_mask_irqs(on);
	if (on) {
		stepped = tf->rip;
		tf->rflags |= RFLAGS_TF;
		return;
	}
	tf->rflags &= ~RFLAGS_TF;
	arch_points_set(NULL, 0);
	/* PUSHF has stored the TF that the step set: clear it. */
	if (*(const uint8_t *)stepped == PUSHF)
		*(uint64_t *)tf->rsp &= ~RFLAGS_TF;
}

void
arch_step_until(struct arch_trapframe *tf, uintptr_t a, uintptr_t b)
{
	struct arch_point ends[] = {{.kind = ARCH_POINT_EXEC, .addr = a},
				    {.kind = ARCH_POINT_EXEC, .addr = b}};

	debug_mask_irqs(true);
	stepped = tf->rip;
	tf->rflags &= ~RFLAGS_TF;
	arch_points_set(ends, 2);
}

static uintptr_t
dr_read(unsigned n)
{
	uintptr_t addr = 0;

#define GET(i)                                                       \
	case i:                                                      \
		__asm__ volatile("mov %%dr" #i ", %0" : "=r"(addr)); \
		break
	switch (n) {
		GET(0);
		GET(1);
		GET(2);
		GET(3);
	}
#undef GET
	return addr;
}

void
x86_debug_exception(struct arch_trapframe *tf)
{
	uint64_t dr6, dr7 = tf->error; /* DR7 as it was: paranoid_entry has turned the points off */

	__asm__ volatile("mov %%dr6, %0" : "=r"(dr6));
	__asm__ volatile("mov %0, %%dr6" : : "r"(0ul));
	for (unsigned i = 0; !(dr6 & DR6_STEP) && i < POINTS; i++) {
		if (!(dr6 >> i & 1))
			continue;
		entry_debug(tf, dr7 >> (16 + 4 * i) & 3 ? ENTRY_WATCH : ENTRY_POINT, dr_read(i));
		return;
	}
	entry_debug(tf, ENTRY_STEP, 0);
}
