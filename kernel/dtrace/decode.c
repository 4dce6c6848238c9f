/*
 * decode.c - a program as it runs: a copy of what was verified, in which common operations have
 * numbers of their own (enum dif_own_op). An instruction changes by itself or with the one after
 * it; none moves. What is never reached was not verified: there may be any bytes.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"

static uint8_t
decode_builtin(uint32_t what)
{
#define BIT(what) | 1u << (what)
	const uint32_t quick = 0 DIF_PORT_QUICK(BIT);
#undef BIT
	bool is = what < DIF_B_COUNT && (quick >> what & 1) != 0;

	return (uint8_t)(is ? DIF_OWN_BUILTIN + what : DIF_BUILTIN);
}

static uint8_t
decode_branch(const struct dif_step *i)
{
	bool constant =
	    i->op == (DIF_OR | DIF_IMM) && i->a == 0 && i[1].b == i->d && i[1].a != i->d;

	if (constant && i[1].op == DIF_JEQ)
		return DIF_OWN_JEQ;
	return constant && i[1].op == DIF_JNE ? DIF_OWN_JNE : i->op;
}

/* The operation that instruction i becomes. The next one, i[1], has been decoded already. */
static uint8_t
decode_key(const struct dif *d, const struct dif_step *i)
{
	return i[1].op == DIF_OWN_COUNT_KEYS && d->aggs[i[1].imm].keys == DIF_K_INT
		   ? DIF_OWN_COUNT_KEY
		   : DIF_KEY;
}

static uint8_t
decode_variable(const struct dif *d, struct dif_step *i)
{
	uint32_t var = (uint32_t)i->imm;
	bool local, load = i->op == DIF_LDV;

	if (var >= d->h.vars.count || d->variables[var].dynamic || d->vars[var].kind != DIF_INT)
		return i->op;
	local = d->vars[var].scope == DIF_THIS;
	i->imm = (int32_t)d->variables[var].place;
	return (load ? DIF_OWN_LDG : DIF_OWN_STG) + (local ? DIF_OWN_LDL - DIF_OWN_LDG : 0);
}

static uint8_t
decode_aggregation(const struct dif *d, const struct dif_step *i)
{
	uint32_t agg = (uint32_t)i->imm;
	const struct dif_agg *a = &d->aggs[agg];

	if (agg >= d->h.aggs.count || d->cpu[0].aggs.slots == NULL ||
	    (a->func != DIF_COUNT && a->func != DIF_SUM))
		return i->op;
	return (a->func == DIF_COUNT ? DIF_OWN_COUNT : DIF_OWN_SUM) +
	       (a->keys != 0 ? DIF_OWN_COUNT_KEYS - DIF_OWN_COUNT : 0);
}

static void
dif_decode_record(const struct dif *d, struct dif_step *i)
{
	uint32_t layout = (uint32_t)i->imm;

	if (layout >= d->h.layouts.count)
		return;
	i->op = DIF_OWN_REC;
	i->imm = DIF_PLACE(layout, (sizeof(struct dif_record) + d->layouts[layout] + 7) / 8);
}

/* Do these test a variable, and go to DIF_RET with 1 if it fails? Nothing is to be undone then. */
static bool
is_predicate(const struct dif_step *i, const struct dif_step *end)
{
	const struct dif_step *branch = &i[2];

	return i->op >= DIF_OWN_BUILTIN && i->op < DIF_OWN_BUILTIN + DIF_B_COUNT && end - i > 3 &&
	       i[1].op == DIF_OWN_JNE && branch->a == i->d &&
	       branch[1 + branch->imm].op == DIF_RET && branch[1 + branch->imm].imm == 1;
}

/* What depends on the whole program. */
static void
decode_clause(struct dif *d, const struct dif_clause *c)
{
	struct dif_step *begin = &d->steps[c->code], *end = begin + c->length;
	bool ring = d->h.options.policy == DIF_RING, keeps = false, more = ring, holds = false;

	if (is_predicate(begin, end))
		begin->op += DIF_OWN_IF - DIF_OWN_BUILTIN;
	for (const struct dif_insn *i = &d->code[c->code]; i < &d->code[c->code + c->length]; i++) {
		keeps |= (i->op >= DIF_KEY && i->op <= DIF_KEY_USTACK) || i->op == DIF_REC;
		more |= i->op == DIF_CALL || i->op == DIF_ARGSTR || i->op == DIF_SPECULATE;
		ring |= i->op == DIF_SPECULATE;
		holds |= i->op == DIF_LDV && (uint32_t)i->imm < d->h.vars.count &&
			 d->variables[i->imm].dynamic && d->vars[i->imm].kind != DIF_INT;
	}
	for (struct dif_step *i = begin; i < end; i++) {
		if (i->op == DIF_LOG && i + 1 < end && i[1].op == DIF_RET && i[1].imm == 0 &&
		    !more && !keeps && !holds)
			i->op = DIF_OWN_LOG_DONE;
		else if (i->op == DIF_RET && holds)
			i->op = DIF_OWN_RET_HELD;
		else if (i->op == DIF_RET && more)
			i->op = DIF_OWN_RET_RESET;
		else if (i->op == DIF_RET && keeps && i->imm <= 1)
			i->op = (uint8_t)(DIF_OWN_RET_RECORD + i->imm);
		else if (i->op == DIF_RET && i->imm <= 1)
			i->op = i->imm == 0 ? DIF_OWN_DONE : DIF_OWN_FALSE;
		else if (i->op == DIF_OWN_REC && ring)
			i->op = DIF_REC;
	}
}

void
dif_decode(struct dif *d)
{
	uint32_t count = d->h.code.count;

	/* From the last on: what one becomes may depend on what the next one has become. */
	for (uint32_t n = count; n-- > 0;) {
		const struct dif_insn *from = &d->code[n];
		struct dif_step *i = &d->steps[n];

		*i = (struct dif_step){NULL, from->op, from->d, from->a, from->b, from->imm};
		if (i->op >=
		    DIF_OWN_BUILTIN) /* in an image, such an instruction is never reached */
			i->op = DIF_RET;
		if (i->op == DIF_BUILTIN)
			i->op = decode_builtin((uint32_t)i->imm);
		else if (i->op == DIF_LDV || i->op == DIF_STV)
			i->op = decode_variable(d, i);
		else if (i->op == DIF_AGG)
			i->op = decode_aggregation(d, i);
		else if (i->op == DIF_KEY_STR && d->h.options.strsize >= DIF_QUICK_STR)
			i->op = DIF_OWN_KEY_STR;
		else if (i->op == DIF_REC)
			dif_decode_record(d, i);
		else if (i->op == DIF_REC_MEM && i->b == 0 && (uint32_t)i->imm >> 16 == 64)
			i->op = DIF_OWN_REC_64;
		else if (i->op == (DIF_OR | DIF_IMM) && n + 1 < count)
			i->op = decode_branch(i);
		else if (i->op == DIF_KEY && n + 1 < count)
			i->op = decode_key(d, i);
	}
	for (uint32_t i = 0; i < d->h.clauses.count; i++)
		decode_clause(d, &d->clauses[i]);
	for (uint32_t n = 0; n < count; n++)
		d->steps[n].run = dif_operations[d->steps[n].op];
}
