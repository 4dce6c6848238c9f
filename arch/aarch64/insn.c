/*
 * insn.c - how each instruction is run when a BRK stands in its place (Arm ARM C4.1, C6.2). Pure
 * but for the trap frame. Locking: none.
 */
#include "arch/insn.h"

#include "arch/mmu.h"
#include "arch/trap.h"
#include "arch/uaccess.h"

#define PSTATE_I 0x80u
#define BACK_MAX 32 /* instructions before one that are searched for a load-exclusive */

#define INSN_DAIFCLR_I 0xd50342ffu
#define INSN_B         0x14000000u
#define BRK                            \
	{                              \
		0x00, 0x0e, 0x2d, 0xd4 \
	} /* BRK #0x6870 */

const uint8_t arch_break_insn[ARCH_BREAK_SIZE] = BRK;

static uint32_t
insn_at(const uint8_t *code)
{
	return code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

static void
insn_put(uint8_t *out, uint32_t insn)
{
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(insn >> 8 * i);
}

/* The bits from `low` on, so many, as a number with a sign. */
static int64_t
insn_field(uint32_t insn, unsigned low, unsigned bits)
{
	return (int64_t)((uint64_t)insn << (64 - low - bits)) >> (64 - bits);
}

enum kind {
	COPY,
	BRANCH,     /* B, BL */
	BRANCH_IF,  /* B.cond */
	BRANCH_0,   /* CBZ, CBNZ */
	BRANCH_BIT, /* TBZ, TBNZ */
	BRANCH_REG, /* BR, BLR, RET */
	ADDRESS,    /* ADR, ADRP */
	LITERAL,    /* LDR from a literal */
	EXCLUSIVE,  /* load or store exclusive, and CLREX */
	REFUSED
};

static enum kind
insn_kind(uint32_t i)
{
	if ((i & 0x7c000000) == 0x14000000)
		return BRANCH;
	if ((i & 0xff000010) == 0x54000000)
		return BRANCH_IF;
	if ((i & 0x7e000000) == 0x34000000)
		return BRANCH_0;
	if ((i & 0x7e000000) == 0x36000000)
		return BRANCH_BIT;
	if ((i & 0xff9ffc1f) == 0xd61f0000 && (i >> 21 & 3) != 3)
		return BRANCH_REG;
	if ((i & 0x1f000000) == 0x10000000)
		return ADDRESS;
	if ((i & 0x3b000000) == 0x18000000)
		return (i >> 26 & 1) != 0 ? REFUSED : LITERAL;
	if ((i & 0x3f800000) == 0x08000000 || (i & 0xfffff0ff) == 0xd503305f)
		return EXCLUSIVE;
	/* other branches to registers; exceptions; undefined; WFE and WFI; DAIF, written or read */
	if ((i & 0xfe000000) == 0xd6000000 || (i & 0xff000000) == 0xd4000000 || i >> 16 == 0 ||
	    (i & 0xffffffdf) == 0xd503205f || (i & 0xfff8f01f) == 0xd500401f ||
	    (i & 0xffdfffe0) == 0xd51b4220)
		return REFUSED;
	return COPY;
}

size_t
arch_insn_length(const uint8_t code[ARCH_INSN_MAX])
{
	return 4;
}

/* Is the instruction between a load-exclusive and its store? An exception would make it fail. */
static bool
in_exclusive(const uint8_t *function, size_t offset)
{
	for (unsigned n = 0; n < BACK_MAX && offset >= 4; n++) {
		uint32_t i = insn_at(function + (offset -= 4));

		if (insn_kind(i) == EXCLUSIVE)
			return (i & 0x3f400000) == 0x08400000;
	}
	return false;
}

const char *
arch_insn_refuse(const uint8_t *function, size_t offset)
{
	enum kind kind = insn_kind(insn_at(function + offset));

	if (kind == EXCLUSIVE || in_exclusive(function, offset))
		return "an exclusive access is there, which a breakpoint would make fail for ever";
	return kind == REFUSED ? "the instruction there changes how interrupts or traps are taken"
			       : NULL;
}

size_t
arch_insn_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot, bool irq_on,
	       uint8_t out[ARCH_SLOT_SIZE / 2])
{
	size_t n = 0;

	if (insn_kind(insn_at(code)) != COPY)
		return 0;
	insn_put(out, insn_at(code));
	n += 4;
	if (irq_on) {
		insn_put(out + n, INSN_DAIFCLR_I);
		n += 4;
	}
	insn_put(out + n, INSN_B | ((uint32_t)((at + 4 - (slot + n)) >> 2) & 0x3ffffff));
	return n + 4;
}

void
arch_insn_run(uintptr_t slot, struct arch_trapframe *tf)
{
	tf->pc = arch_tf_irq_on(tf) ? slot : slot + ARCH_SLOT_SIZE / 2;
	tf->pstate |= PSTATE_I;
}

/* Does a condition hold? (C1.2.4) */
static bool
insn_condition_holds(unsigned cond, uint64_t pstate)
{
	bool n = pstate >> 31 & 1, z = pstate >> 30 & 1, c = pstate >> 29 & 1, v = pstate >> 28 & 1;
	bool is[] = {z, c, n, v, c && !z, n == v, n == v && !z, true};

	return cond >= 14 || is[cond >> 1] != (cond & 1);
}

/* A general register; 31 is zero. */
static uint64_t
insn_reg(const struct arch_trapframe *tf, unsigned n)
{
	return n == 31 ? 0 : tf->x[n];
}

static void
reg_set(struct arch_trapframe *tf, unsigned n, uint64_t v)
{
	if (n != 31)
		tf->x[n] = v;
}

/* LDR (literal): 32 bits, 64 bits, 32 bits with sign, or a prefetch. */
static bool
insn_load_literal(uint32_t i, uintptr_t from, struct arch_trapframe *tf)
{
	size_t size = i >> 30 == 1 ? 8 : 4;
	uint64_t v = 0;

	if (i >> 30 == 3)
		return true;
	if (!arch_tf_user(tf)) /* no memcpy(), which has a probe */
		v = size == 8 ? *(const uint64_t *)from : *(const uint32_t *)from;
	else if (from > ARCH_USER_END - size || !arch_copy_user(&v, (const void *)from, size))
		return false;
	reg_set(tf, i & 31, i >> 30 == 2 ? (uint64_t)(int64_t)(int32_t)v : v);
	return true;
}

unsigned
arch_insn_emulate(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, struct arch_trapframe *tf,
		  uintptr_t *va)
{
	uint32_t i = insn_at(code);
	uintptr_t near = at + (uintptr_t)(insn_field(i, 5, 19) * 4);
	uint64_t v = insn_reg(tf, i & 31);
	int64_t offset;

	tf->pc = at + 4;
	switch (insn_kind(i)) {
	case BRANCH:
		if (i >> 31 != 0)
			tf->x[30] = at + 4;
		tf->pc = at + (uintptr_t)(insn_field(i, 0, 26) * 4);
		break;
	case BRANCH_IF:
		if (insn_condition_holds(i & 15, tf->pstate))
			tf->pc = near;
		break;
	case BRANCH_0:
		if (i >> 31 == 0)
			v = (uint32_t)v;
		if ((v == 0) != (i >> 24 & 1))
			tf->pc = near;
		break;
	case BRANCH_BIT:
		if ((v >> ((i >> 26 & 32) | (i >> 19 & 31)) & 1) == (i >> 24 & 1))
			tf->pc = at + (uintptr_t)(insn_field(i, 5, 14) * 4);
		break;
	case BRANCH_REG:
		v = insn_reg(tf, i >> 5 & 31);
		if ((i >> 21 & 3) == 1)
			tf->x[30] = at + 4;
		tf->pc = v;
		break;
	case ADDRESS:
		offset = insn_field(i, 5, 19) * 4 + (i >> 29 & 3);
		reg_set(tf, i & 31,
			i >> 31 != 0 ? (at & ~0xffful) + (uint64_t)(offset * 4096)
				     : at + (uint64_t)offset);
		break;
	case LITERAL:
		if (!insn_load_literal(i, near, tf)) {
			tf->pc = at;
			*va = near;
			return MMU_READ;
		}
		break;
	case COPY:
	case EXCLUSIVE:
	case REFUSED:
		break;
	}
	return 0;
}

int
arch_insn_user_slot(const uint8_t code[ARCH_INSN_MAX], uintptr_t at, uintptr_t slot,
		    uint8_t out[ARCH_USER_SLOT])
{
	(void)at, (void)slot;
	if (insn_kind(insn_at(code)) != COPY)
		return 0;
	insn_put(out, insn_at(code));
	__builtin_memcpy(out + 4, arch_break_insn, ARCH_BREAK_SIZE);
	return 4;
}
