/*
 * debug.c - breakpoint and watchpoint registers, and software step (Arm ARM D2.8 to D2.12).
 *
 * The kernel runs with debug exceptions unmasked (PSTATE.D clear), except in the handlers of debug
 * exceptions. Points are active at EL1 only.
 */
#include "arch/debug.h"
#include "arch/aarch64/a64.h"
#include "kernel/sched/thread.h"

#define REGISTERS 4  /* used at most, of each kind; every CPU has at least 2 */
#define LOOP_MAX  16 /* instructions of a loop with exclusive accesses, at most */

#define MDSCR_MDE (1ul << 15)
#define CR_ENABLE 1ul
#define CR_EL1    (1ul << 1)   /* PMC, PAC */
#define BCR_WORD  (0xful << 5) /* BAS: a whole instruction */
#define WCR_STORE (2ul << 3)   /* LSC */
#define WCR_BOTH  (3ul << 3)

unsigned
arch_points_max(enum arch_point_kind kind)
{
	uint64_t dfr = READ_SYSREG(id_aa64dfr0_el1);
	unsigned n = (kind == ARCH_POINT_EXEC ? dfr >> 12 & 15 : dfr >> 20 & 15) + 1;

	return n < REGISTERS ? n : REGISTERS;
}

/* Sets breakpoint register n, or watchpoint register n - REGISTERS. */
static void
set_register(unsigned n, uint64_t control, uint64_t addr)
{
#define SET(number, kind, i)                                   \
	case number:                                           \
		WRITE_SYSREG(dbg##kind##cr##i##_el1, 0);       \
		WRITE_SYSREG(dbg##kind##vr##i##_el1, addr);    \
		WRITE_SYSREG(dbg##kind##cr##i##_el1, control); \
		break
	switch (n) {
		SET(0, b, 0);
		SET(1, b, 1);
		SET(2, b, 2);
		SET(3, b, 3);
		SET(4, w, 0);
		SET(5, w, 1);
		SET(6, w, 2);
		SET(7, w, 3);
	}
#undef SET
}

/* Selects the bytes of the doubleword that a watchpoint watches (D2.10.3). */
static uint64_t
byte_select(const struct arch_point *p)
{
	return ((1ul << p->size) - 1) << (p->addr & 7) << 5;
}

/* Without points and steps of the kernel: does the current thread's program go step by step? */
static uint64_t
idle_mdscr(void)
{
	const struct thread *t = curthread();

	return t != NULL && t->stepped ? MDSCR_SS : 0;
}

bool
arch_points_set(const struct arch_point *p, unsigned n)
{
	unsigned breaks = 0, watches = 0;

	WRITE_SYSREG(oslar_el1, 0);
	WRITE_SYSREG(mdscr_el1, 0);
	for (unsigned i = 0; i < arch_points_max(ARCH_POINT_EXEC); i++)
		set_register(i, 0, 0);
	for (unsigned i = 0; i < arch_points_max(ARCH_POINT_WRITE); i++)
		set_register(REGISTERS + i, 0, 0);
	ISB();
	for (unsigned i = 0; i < n; i++)
		if (p[i].kind == ARCH_POINT_EXEC ? ++breaks > arch_points_max(p[i].kind)
						 : ++watches > arch_points_max(p[i].kind))
			return false;
	breaks = watches = 0;
	for (unsigned i = 0; i < n; i++) {
		if (p[i].kind == ARCH_POINT_EXEC)
			set_register(breaks++, BCR_WORD | CR_EL1 | CR_ENABLE, p[i].addr);
		else
			set_register(REGISTERS + watches++,
				     byte_select(&p[i]) | CR_EL1 | CR_ENABLE |
					 (p[i].kind == ARCH_POINT_WRITE ? WCR_STORE : WCR_BOTH),
				     p[i].addr & ~7ul);
	}
	WRITE_SYSREG(mdscr_el1, n > 0 ? MDSCR_KDE | MDSCR_MDE : idle_mdscr());
	ISB();
	return true;
}

/*
 * A loop with load-exclusive and store-exclusive would never end in single steps, since each
 * exception clears the exclusive monitor (B2.12.2). So it runs as a whole, to breakpoints at its
 * exits. Returns the number of exits. 0: pc is not at such a loop.
 */
static unsigned
exclusive_exits(uintptr_t pc, struct arch_point *exits)
{
	const uint32_t *insn = (const uint32_t *)pc;
	unsigned n = 0, end = 0;

	/* Load-exclusive or store-exclusive (C4.1.66); bit 22 is set in loads. */
	if ((insn[0] & 0x3fc00000) != 0x08400000)
		return 0;
	for (unsigned i = 1; i < LOOP_MAX && end == 0; i++)
		if ((insn[i] & 0x3fc00000) == 0x08000000)
			end = i + 1;
	if (end == 0)
		return 0;
	if ((insn[end] & 0x7e000000) == 0x34000000) /* CBZ or CBNZ: repeats if the store failed */
		end++;
	exits[n++] = (struct arch_point){.kind = ARCH_POINT_EXEC, .addr = pc + 4 * end};
	for (unsigned i = 1; i < end && n < REGISTERS; i++) {
		int64_t words = (int32_t)(insn[i] << 8) >> 13;
		bool branches = (insn[i] & 0xff000010) == 0x54000000 || /* B.cond */
				(insn[i] & 0x7e000000) == 0x34000000;

		if (branches && (i + words < 0 || i + words > end))
			exits[n++] = (struct arch_point){.kind = ARCH_POINT_EXEC,
							 .addr = pc + 4 * (uint64_t)(i + words)};
	}
	return n;
}

/* Runs to the n exits of a loop with exclusive accesses. If n is 0, steps one instruction. */
static void
debug_step(struct arch_trapframe *tf, bool on, const struct arch_point *exits, unsigned n)
{
	intc_mask(on);
	/* With SS set and debug exceptions unmasked, the CPU would step this function. */
	__asm__ volatile("msr daifset, #8" ::: "memory");
	if (!arch_points_set(exits, n))
		n = 0;
	if (n == 0)
		WRITE_SYSREG(mdscr_el1, on ? MDSCR_SS | MDSCR_KDE : idle_mdscr());
	ISB();
	tf->pstate = on && n == 0 ? tf->pstate | PSTATE_SS : tf->pstate & ~PSTATE_SS;
}

void
arch_step(struct arch_trapframe *tf, bool on)
{
	struct arch_point exits[REGISTERS];

	debug_step(tf, on, exits, on ? exclusive_exits(tf->pc, exits) : 0);
}

void
arch_step_until(struct arch_trapframe *tf, uintptr_t a, uintptr_t b)
{
	struct arch_point ends[] = {{.kind = ARCH_POINT_EXEC, .addr = a},
				    {.kind = ARCH_POINT_EXEC, .addr = b}};

	debug_step(tf, true, ends, 2);
}
