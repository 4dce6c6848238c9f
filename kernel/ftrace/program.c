/* program.c - programs that are being made. Locking: none. */
#include "kernel/ftrace/program.h"

bool
program_emit(struct program *p, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm)
{
	if (p->count == PROGRAM_CODE)
		return false;
	p->code[p->count++] =
	    (struct dif_insn){(uint8_t)op, (uint8_t)d, (uint8_t)a, (uint8_t)b, imm};
	return true;
}

bool
program_constant(struct program *p, unsigned d, uint64_t v)
{
	return program_emit(p, DIF_OR | DIF_IMM, d, 0, 0, (int32_t)v) &&
	       ((int64_t)v == (int32_t)v || program_emit(p, DIF_HIGH, d, 0, 0, (int32_t)(v >> 32)));
}

bool
program_fail(struct program *p, unsigned op, unsigned a, unsigned b)
{
	if (!program_emit(p, op, 0, a, b, (int32_t)p->fails))
		return false;
	p->fails = p->count;
	return true;
}

bool
program_end(struct program *p)
{
	if (!program_emit(p, DIF_RET, 0, 0, 0, 0))
		return false;
	while (p->fails != 0) {
		struct dif_insn *branch = &p->code[p->fails - 1];
		unsigned before = (unsigned)branch->imm;

		branch->imm = (int32_t)(p->count - p->fails);
		p->fails = before;
	}
	return program_emit(p, DIF_RET, 0, 0, 0, 1);
}

unsigned
program_var(struct program *p, enum dif_scope scope, uint64_t keys)
{
	p->vars[p->nvars] =
	    (struct dif_var){.scope = (uint8_t)scope, .kind = DIF_INT, .size = 8, .keys = keys};
	return p->nvars++;
}

unsigned
program_agg(struct program *p, enum dif_func func, uint64_t keys)
{
	p->aggs[p->naggs] = (struct dif_agg){.func = (uint8_t)func, .keys = keys};
	return p->naggs++;
}
