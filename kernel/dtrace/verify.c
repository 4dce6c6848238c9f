/*
 * verify.c - what may run. Branches go forward, so one pass in order meets every way to an
 * instruction before the instruction itself. It knows for each: which registers have a value, which
 * keys have been pushed, which record is open, and whether the way to it asks for the thread alone.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/engine.h"
#include "kernel/lib/string.h"

/* What is known before an instruction. */
struct state {
	uint64_t keys;   /* kinds, as DIF_KEYS_AND() */
	uint32_t record; /* 0: none is open; RECORD_UNKNOWN; else layout + 1 */
	uint16_t regs;   /* bit N: register N has a value */
	uint16_t texts;  /* bit N: that of a constant's text, or of the thread's name */
	bool reached;
	bool asks_more; /* what ran may depend on more than the thread, or did something */
};

#define RECORD_UNKNOWN UINT32_MAX
/* Bytes of the frames or ancestors that the port looks at, at most. */
#define DIF_MOST_WALK (1024u * 32)

struct pass {
	const struct dif *d;
	const struct dif_insn *code;
	uint32_t length;
	struct state *states; /* of each instruction */
	uint64_t cost;        /* bytes that the program may touch */
	uint32_t predicate;   /* after the last way to where it is false */
	bool asks_more;       /* one of these ways does */
	const char *error;    /* the first one */
};

/* Operands of an operation. */
enum { D = 1, A = 2, B = 4, IMM = 8, WRITES = 16, KNOWN = 32, UPCALL = 64 };

/* 0: there is no such operation. */
static unsigned
dif_operands(uint8_t op)
{
	static const char *const forms[DIF_IMM] = {
#define DIF_OP(name, code, text, form) [code] = form,
#include "kernel/abi/dif_ops.def"
	};
	static const uint8_t letters[] = {
	    ['d'] = D, ['a'] = A, ['b'] = B, ['m'] = A | IMM, ['w'] = WRITES, ['u'] = UPCALL};
	const char *form = forms[op & ~DIF_IMM];
	bool constant = (op & DIF_IMM) != 0;
	unsigned has = KNOWN;

	if (form == NULL || (constant && (op < (DIF_ADD | DIF_IMM) || op > (DIF_ULE | DIF_IMM))))
		return 0;
	for (; *form != '\0'; form++)
		has |= letters[(uint8_t)*form] != 0 ? letters[(uint8_t)*form] : IMM;
	return constant ? has - B + IMM : has;
}

static void
dif_refuse(struct pass *p, const char *error)
{
	if (p->error == NULL)
		p->error = error;
}

static void
verify_need(struct pass *p, bool true_here, const char *error)
{
	if (!true_here)
		dif_refuse(p, error);
}

static void
need_value(struct pass *p, const struct state *s, unsigned reg)
{
	verify_need(p, reg < DIF_REGS, "expected a register, 0 to 15");
	verify_need(p, reg >= DIF_REGS || (s->regs >> reg & 1) != 0, "register may have no value");
}

static bool
insn_is_false(const struct dif_insn *i)
{
	return i->op == DIF_RET && i->imm == 1;
}

/* Takes over what is known on one way to instruction `to`, from the one at n. */
static void
verify_reach(struct pass *p, uint32_t n, uint32_t to, const struct state *s)
{
	struct state *t;

	if (to >= p->length) {
		dif_refuse(p, "goes beyond the program's end");
		return;
	}
	if (insn_is_false(&p->code[to])) {
		p->predicate = n + 1;
		p->asks_more |= s->asks_more;
	}
	t = &p->states[to];
	if (!t->reached) {
		*t = *s;
		return;
	}
	t->regs &= s->regs;
	t->texts &= s->texts;
	t->asks_more |= s->asks_more;
	if (t->record != s->record)
		t->record = RECORD_UNKNOWN;
	verify_need(p, t->keys == s->keys, "keys differ between two ways to here");
}

static void
use_keys(struct pass *p, struct state *s, uint64_t kinds)
{
	if (kinds == 0)
		return;
	verify_need(p, s->keys == kinds, "keys are not those of the declaration");
	s->keys = 0;
}

static void
push_key(struct pass *p, struct state *s, uint64_t kind)
{
	verify_need(p, s->keys >> 60 == 0, "too many keys");
	s->keys = s->keys << 4 | kind;
}

/* A place in the open record. */
static void
check_place(struct pass *p, const struct state *s, uint32_t off, uint32_t size)
{
	if (s->record == 0 || s->record == RECORD_UNKNOWN)
		dif_refuse(p, "no record is open");
	else
		verify_need(p, size > 0 && off + size <= p->d->layouts[s->record - 1],
			    "not within the record");
}

static void
check_call(struct pass *p, const struct state *s, const struct dif_insn *i)
{
	uint32_t sub = (uint32_t)i->imm, strsize = p->d->h.options.strsize;
	bool writes = sub == DIF_SUB_COPYOUT || sub == DIF_SUB_COPYOUTSTR;

	if (sub >= DIF_SUB_COUNT) {
		dif_refuse(p, "no such subroutine");
		return;
	}
	for (unsigned n = 0; n < dif_sub_args[sub]; n++)
		need_value(p, s, i->a + n);
	verify_need(p, !writes || (p->d->h.flags & DIF_DESTRUCTIVE) != 0,
		    "destructive, but not allowed");
	if (sub == DIF_SUB_STRSTR || sub == DIF_SUB_INDEX || sub == DIF_SUB_RINDEX ||
	    sub == DIF_SUB_GLOB)
		p->cost += (uint64_t)strsize * strsize / 4;
	if (sub == DIF_SUB_PROGENYOF)
		p->cost += DIF_MOST_WALK;
	if (sub == DIF_SUB_BCOPY || sub == DIF_SUB_COPYINTO)
		p->cost += (uint64_t)p->d->globals_size + p->d->locals_size;
	p->cost += sub == DIF_SUB_COPYOUT ? DIF_MAX_RECORD : p->d->h.options.scratch + 4 * strsize;
}

static void
check_variable(struct pass *p, struct state *s, uint32_t var)
{
	if (var >= p->d->h.vars.count) {
		dif_refuse(p, "no such variable");
		return;
	}
	use_keys(p, s, p->d->vars[var].keys);
	p->cost += p->d->variables[var].size + DIF_MAX_KEY;
}

static void
check_aggregation(struct pass *p, struct state *s, uint32_t agg)
{
	if (agg >= p->d->h.aggs.count) {
		dif_refuse(p, "no such aggregation");
		return;
	}
	use_keys(p, s, p->d->aggs[agg].keys);
	p->cost += 8 * p->d->aggregations[agg].value_words + DIF_MAX_KEY;
}

/* What the operation demands of imm; and what is known after it. */
static void
check_operation(struct pass *p, struct state *s, const struct dif_insn *i)
{
	uint32_t imm = (uint32_t)i->imm, off = (uint16_t)imm, size = imm >> 16;

	switch (i->op) {
	case DIF_RET:
		verify_need(p, imm <= 1, "expected 0 or 1");
		verify_need(p, imm == 0 || s->record == 0, "a record may be open");
		break;
	case DIF_SDIV | DIF_IMM:
	case DIF_UDIV | DIF_IMM:
	case DIF_SREM | DIF_IMM:
	case DIF_UREM | DIF_IMM:
		verify_need(p, imm != 0, "division by zero");
		break;
	case DIF_EXT:
		verify_need(p, imm + 4 <= 8 && imm != 0 && imm != 3 && imm != (uint32_t)-3,
			    "expected 1, 2, 4, -1, -2 or -4 bytes");
		break;
	case DIF_SCMP:
	case DIF_KEY_STR:
		p->cost += 2 * p->d->h.options.strsize;
		break;
	case DIF_STRING:
		verify_need(p, imm < p->d->h.strings.count, "not within the strings");
		break;
	case DIF_ARGSTR:
		p->cost += 2 * p->d->h.options.strsize;
		/* fall through */
	case DIF_ARG:
		verify_need(p, imm <= 9, "expected an argument, 0 to 9");
		break;
	case DIF_BUILTIN:
		verify_need(p, imm < DIF_B_COUNT, "no such variable");
		if (imm == DIF_B_STACKDEPTH || imm == DIF_B_USTACKDEPTH)
			p->cost += DIF_MOST_WALK;
		break;
	case DIF_CALL:
		check_call(p, s, i);
		break;
	case DIF_KEY_STACK:
	case DIF_KEY_USTACK:
		verify_need(p, imm >= 1 && imm <= DIF_MAX_FRAMES, "expected 1 to 128 frames");
		p->cost += 16ul * DIF_MAX_FRAMES;
		break;
	case DIF_LDV:
	case DIF_STV:
		check_variable(p, s, imm);
		break;
	case DIF_AGG:
		check_aggregation(p, s, imm);
		break;
	case DIF_REC:
		verify_need(p, imm < p->d->h.layouts.count, "no such layout");
		s->record = imm + 1;
		break;
	case DIF_REC1:
	case DIF_REC2:
	case DIF_REC4:
	case DIF_REC8:
		verify_need(p, imm < DIF_MAX_RECORD, "not within the record");
		check_place(p, s, off, 1u << (i->op - DIF_REC1));
		break;
	case DIF_REC_STR:
	case DIF_REC_MEM:
		check_place(p, s, off, size);
		p->cost += size;
		break;
	case DIF_REC_STACK:
	case DIF_REC_USTACK:
		check_place(p, s, off, size);
		verify_need(p, off % 8 == 0 && size % 8 == 0 && size <= 8 * (DIF_MAX_FRAMES + 1),
			    "expected a place for 1 to 128 frames, in words");
		p->cost += 2 * size;
		break;
	case DIF_SPECULATE:
	case DIF_COMMIT:
		verify_need(p, s->record == 0, "a record may be open");
		p->cost += i->op == DIF_COMMIT ? p->d->h.options.specsize : 0;
		break;
	}
	if (i->op == DIF_KEY)
		push_key(p, s, DIF_K_INT);
	else if (i->op > DIF_KEY && i->op <= DIF_KEY_USTACK)
		push_key(p, s, DIF_K_INT + i->op - DIF_KEY);
}

static void
check_upcall(struct pass *p, const struct state *s, const struct dif_insn *i)
{
	verify_need(p, (p->d->h.flags & DIF_KERNEL) != 0, "only for the kernel's own");
	verify_need(p, i->b <= 8, "expected at most 8 registers");
	verify_need(p, s->keys == 0 && s->record == 0, "keys or a record are not done");
	for (unsigned n = 0; n < i->b && n < 8; n++)
		need_value(p, s, i->a + n);
}

/* Does the instruction just compute, from what a thread keeps until it is renamed? */
static bool
insn_asks_thread(const struct dif_insn *i, uint16_t texts)
{
	if (i->op == DIF_BUILTIN)
		return i->imm == DIF_B_PID || i->imm == DIF_B_TID || i->imm == DIF_B_EXECNAME ||
		       i->imm == DIF_B_CURTHREAD;
	if (i->op == DIF_SCMP) /* texts elsewhere may change */
		return (texts >> i->a & 1) != 0 && (texts >> i->b & 1) != 0;
	return i->op == DIF_RET || (i->op & ~DIF_IMM) <= DIF_ULE || i->op == DIF_HIGH ||
	       i->op == DIF_EXT || i->op == DIF_STRING || (i->op >= DIF_JA && i->op <= DIF_JULE);
}

static void
check_insn(struct pass *p, uint32_t n)
{
	const struct dif_insn *i = &p->code[n];
	unsigned has = dif_operands(i->op);
	struct state s = p->states[n];

	if (has == 0) {
		dif_refuse(p, "no such operation");
		return;
	}
	if (i->op == DIF_CALL && (uint32_t)i->imm < DIF_SUB_COUNT && dif_sub_args[i->imm] == 0)
		has &= ~(unsigned)A;
	if ((has & A) != 0)
		need_value(p, &s, i->a);
	if ((has & B) != 0)
		need_value(p, &s, i->b);
	if (i->op == DIF_HIGH)
		need_value(p, &s, i->d);
	verify_need(p, (has & D) == 0 || (i->d > 0 && i->d < DIF_REGS),
		    "expected a register, 1 to 15");
	verify_need(p,
		    ((has & D) != 0 || i->d == 0) && ((has & (A | UPCALL)) != 0 || i->a == 0) &&
			((has & (B | UPCALL)) != 0 || i->b == 0) &&
			((has & IMM) != 0 || i->imm == 0),
		    "a field without a meaning is not 0");
	if ((has & UPCALL) != 0)
		check_upcall(p, &s, i);
	verify_need(p, (has & WRITES) == 0 || (p->d->h.flags & DIF_DESTRUCTIVE) != 0,
		    "destructive, but not allowed");
	if (p->error != NULL)
		return;
	p->cost += 8;
	check_operation(p, &s, i);
	s.asks_more |= !insn_asks_thread(i, s.texts);
	if ((has & D) != 0) {
		bool text =
		    i->op == DIF_STRING || (i->op == DIF_BUILTIN && i->imm == DIF_B_EXECNAME);

		s.regs |= (uint16_t)(1u << i->d);
		s.texts = (uint16_t)((s.texts & ~(1u << i->d)) | (unsigned)text << i->d);
	}
	if (i->op >= DIF_JA && i->op <= DIF_JULE) {
		if (i->imm < 0)
			dif_refuse(p, "goes back");
		else
			verify_reach(p, n, (uint32_t)(n + 1ul + (uint32_t)i->imm), &s);
	}
	if (i->op != DIF_RET && i->op != DIF_JA)
		verify_reach(p, n, n + 1, &s);
}

/* Does it branch to where the predicate is false? It may be one that is never reached. */
static bool
insn_goes_to_false(const struct dif_insn *i, const struct dif_insn *end)
{
	return i->op >= DIF_JA && i->op <= DIF_JULE && i->imm >= 0 && i->imm < end - i - 1 &&
	       insn_is_false(i + 1 + i->imm);
}

/* Are two clauses' predicates the same instructions? How far a branch to the end leads does not
 * count. */
static bool
predicates_equal(const struct dif *d, uint32_t clause, uint32_t other)
{
	const struct dif_clause *c = &d->clauses[clause], *o = &d->clauses[other];
	const struct dif_insn *i = &d->code[c->code], *end = i + c->length;
	const struct dif_insn *j = &d->code[o->code], *other_end = j + o->length;
	uint32_t length = d->predicates[clause].length, n = 0;

	for (; n < length && i->op == j->op && i->d == j->d && i->a == j->a && i->b == j->b &&
	       insn_goes_to_false(i, end) == insn_goes_to_false(j, other_end) &&
	       (i->imm == j->imm || insn_goes_to_false(i, end));
	     n++, i++, j++)
		;
	return n == length && insn_is_false(i) == insn_is_false(j);
}

/* The hash of a clause's predicate: of what predicates_equal() compares. */
static uint32_t
predicate_hash(const struct dif *d, uint32_t clause)
{
	const struct dif_clause *c = &d->clauses[clause];
	const struct dif_insn *i = &d->code[c->code], *end = i + c->length;
	uint32_t hash = 0;

	for (uint32_t n = 0; n < d->predicates[clause].length; n++, i++) {
		hash = hash * 31 +
		       (i->op | (uint32_t)i->d << 8 | (uint32_t)i->a << 16 | (uint32_t)i->b << 24);
		hash = hash * 31 + (insn_goes_to_false(i, end) ? 0 : (uint32_t)i->imm);
	}
	return hash;
}

static void
predicate_number(const struct dif *d, uint32_t clause, const struct pass *p)
{
	struct dif_predicate *to = &d->predicates[clause];
	uint32_t other = 0;

	*to = (struct dif_predicate){.length = p->asks_more ? 0 : p->predicate};
	if (to->length == 0)
		return;
	to->hash = predicate_hash(d, clause);
	while (other < clause &&
	       (d->predicates[other].length != to->length ||
		d->predicates[other].hash != to->hash || !predicates_equal(d, clause, other)))
		other++;
	to->number = other < clause ? d->predicates[other].number : clause + 1;
}

size_t
dif_verify_size(const struct dif *d)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < d->h.clauses.count; i++)
		if (d->clauses[i].length > longest && d->clauses[i].length <= DIF_MAX_CODE)
			longest = d->clauses[i].length;
	return (longest + 1) * sizeof(struct state);
}

int
dif_verify(const struct dif *d, uint32_t clause, void *work, struct dif_refusal *why)
{
	const struct dif_clause *c = &d->clauses[clause];
	struct pass p = {.d = d, .code = &d->code[c->code], .length = c->length, .states = work};

	*why = (struct dif_refusal){clause, 0, NULL};
	if (c->length == 0 || c->length > DIF_MAX_CODE) {
		why->error = "expected 1 to 16384 instructions";
		return -EINVAL;
	}
	memset(work, 0, c->length * sizeof(*p.states));
	p.states[0] = (struct state){.regs = 1, .reached = true};
	for (uint32_t n = 0; n < c->length && p.error == NULL; n++) {
		why->insn = n;
		if (p.states[n].reached)
			check_insn(&p, n);
	}
	if (p.cost > DIF_MAX_COST)
		dif_refuse(&p, "touches too much memory; strsize, scratch and specsize count");
	why->error = p.error;
	if (p.error == NULL)
		predicate_number(d, clause, &p);
	return p.error != NULL ? -EINVAL : 0;
}
