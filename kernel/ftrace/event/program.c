/* program.c - programs that are being made. Locking: none. */
#include "kernel/ftrace/event/program.h"

void
program_emit(struct program *p, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm)
{
	if (p->count < PROGRAM_CODE)
		p->code[p->count++] =
		    (struct dif_insn){(uint8_t)op, (uint8_t)d, (uint8_t)a, (uint8_t)b, imm};
	else
		p->full = true;
}

void
program_constant(struct program *p, unsigned d, uint64_t v)
{
	program_emit(p, DIF_OR | DIF_IMM, d, 0, 0, (int32_t)v);
	if ((int64_t)v != (int32_t)v)
		program_emit(p, DIF_HIGH, d, 0, 0, (int32_t)(v >> 32));
}

unsigned
program_branch(struct program *p, unsigned op, unsigned a, unsigned b)
{
	program_emit(p, op, 0, a, b, 0);
	return p->count - 1;
}

void
program_land(struct program *p, unsigned branch)
{
	p->code[branch].imm = (int32_t)(p->count - branch - 1);
}

void
program_fail(struct program *p, unsigned op, unsigned a, unsigned b)
{
	program_emit(p, op, 0, a, b, (int32_t)p->fails);
	p->fails = p->count;
}

bool
program_end(struct program *p)
{
	program_emit(p, DIF_RET, 0, 0, 0, 0);
	while (p->fails != 0 && !p->full) {
		unsigned branch = p->fails - 1;

		p->fails = (unsigned)p->code[branch].imm;
		program_land(p, branch);
	}
	program_emit(p, DIF_RET, 0, 0, 0, 1);
	return !p->full;
}

/* The number of one more of them. */
static unsigned
take_item(struct program *p, unsigned *n)
{
	if (*n < PROGRAM_ITEMS)
		return (*n)++;
	p->full = true;
	return 0;
}

unsigned
program_var(struct program *p, enum dif_scope scope, uint64_t keys)
{
	unsigned n = take_item(p, &p->nvars);

	p->vars[n] =
	    (struct dif_var){.scope = (uint8_t)scope, .kind = DIF_INT, .size = 8, .keys = keys};
	return n;
}

unsigned
program_agg(struct program *p, enum dif_func func, uint64_t keys)
{
	unsigned n = take_item(p, &p->naggs);

	p->aggs[n] = (struct dif_agg){.func = (uint8_t)func, .keys = keys};
	return n;
}
