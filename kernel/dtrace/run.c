/*
 * run.c - the interpreter. It trusts what verify.c has checked: registers, branches, indices, kinds
 * of keys and places in records. All else it checks itself.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

#define KEY_WORDS (DIF_MAX_KEY / 8u)

static inline bool
key_push(struct dif_run *r, uint64_t v)
{
	if (r->key_words == KEY_WORDS)
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	r->c->keys[r->key_words++] = v;
	return true;
}

static bool
key_push_str(struct dif_run *r, uint64_t addr)
{
	uint32_t strsize = r->d->h.options.strsize;
	char *to = (char *)&r->c->keys[r->key_words];
	long n;

	if (strsize > 8 * (KEY_WORDS - r->key_words))
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	n = dif_copy_str(r, to, addr, strsize);
	if (n < 0)
		return false;
	r->key_words += (uint32_t)n / 8 + 1;
	r->c->keys[r->key_words - 1] &= (1ul << n % 8 * 8) - 1; /* zeroes after the string */
	return true;
}

/* The number of frames, and the frames; a user stack's pid counts as one. */
static bool
key_push_stack(struct dif_run *r, bool user, uint32_t frames)
{
	uint64_t *w = &r->c->keys[r->key_words];
	uint32_t room = KEY_WORDS - r->key_words, n;

	if (frames + 1 + user > room)
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	if (user) {
		w[1] = 0;
		n = 1 + dif_port_ustack(r->x, &w[1], &w[2], frames);
	} else {
		n = dif_port_stack(r->x, &w[1], frames);
	}
	w[0] = n;
	r->key_words += 1 + n;
	return true;
}

static void
record_stack(struct dif_run *r, bool user, uint8_t *to, uint32_t words)
{
	uint64_t *w = (uint64_t *)to;
	uint32_t n;

	if (user) {
		*w++ = 0;
		words--;
		n = dif_port_ustack(r->x, w - 1, w, words);
	} else {
		n = dif_port_stack(r->x, w, words);
	}
	if (n < words)
		w[n] = 0;
}

static bool
record_mem(struct dif_run *r, uint8_t *to, uint64_t addr, uint64_t size, uint64_t most)
{
	return dif_copy(r, to, addr, most < size ? most : size);
}

static uint64_t
extend(uint64_t v, int32_t how)
{
	switch (how) {
	case 1:
		return (uint8_t)v;
	case 2:
		return (uint16_t)v;
	case 4:
		return (uint32_t)v;
	case -1:
		return (uint64_t)(int8_t)v;
	case -2:
		return (uint64_t)(int16_t)v;
	default:
		return (uint64_t)(int32_t)v;
	}
}

static uint64_t
divide(bool is_signed, bool rest, uint64_t a, uint64_t b)
{
	if (!is_signed)
		return rest ? a % b : a / b;
	if (b == UINT64_MAX) /* the processor may trap on INT64_MIN / -1 */
		return rest ? 0 : 0 - a;
	return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

void
dif_drain(struct dif *d, int32_t status)
{
	uint32_t active = DIF_ACTIVE;

	if (!__atomic_compare_exchange_n(&d->state, &active, DIF_DRAINING, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	d->exit_status = status;
	for (unsigned i = 0; i < d->cpus; i++)
		__atomic_store_n(&d->cpu[i].open, false, __ATOMIC_RELAXED);
}

/* Each CPU waits for at most half of a second's time. */
static void
chill(struct dif_run *r, uint64_t ns)
{
	uint64_t now = dif_port_time();

	if (now - r->c->chill_since > 1000000000) {
		r->c->chill_since = now;
		r->c->chill_ns = 0;
	}
	if (ns > 500000000 - r->c->chill_ns)
		ns = 500000000 - r->c->chill_ns;
	r->c->chill_ns += ns;
	dif_port_act(DIF_CHILL, ns);
}

enum how { COMPLETED, FALSE, FAULTED, DROPPED };

#define A v[i->a]
/* An operation with a register and with a constant. */
#define ALU(code, expr)                                 \
	case code: {                                    \
		uint64_t b = v[i->b];                   \
		v[i->d] = (expr);                       \
		break;                                  \
	}                                               \
	case (code) | DIF_IMM: {                        \
		uint64_t b = (uint64_t)(int64_t)i->imm; \
		v[i->d] = (expr);                       \
		break;                                  \
	}
#define DIVIDE(code, is_signed, rest)                                               \
	case code:                                                                  \
	case (code) | DIF_IMM: {                                                    \
		uint64_t b = i->op == (code) ? v[i->b] : (uint64_t)(int64_t)i->imm; \
		if (b == 0)                                                         \
			goto divzero;                                               \
		v[i->d] = divide(is_signed, rest, A, b);                            \
		break;                                                              \
	}
#define JUMP(code, cond)              \
	case code: {                  \
		uint64_t b = v[i->b]; \
		if (cond)             \
			i += i->imm;  \
		break;                \
	}
#define LOAD(code, type)                                                         \
	case code: {                                                             \
		type t;                                                          \
		if (!dif_copy(&r, &t, A + (uint64_t)(int64_t)i->imm, sizeof(t))) \
			goto fault;                                              \
		v[i->d] = (uint64_t)(int64_t)t;                                  \
		break;                                                           \
	}
#define STORE(code, size)                                                               \
	case code:                                                                      \
		if (!dif_writable(&r, A + (uint64_t)(int64_t)i->imm, size)) {           \
			dif_fail(&r, DIF_FAULT_BADADDR, A + (uint64_t)(int64_t)i->imm); \
			goto fault;                                                     \
		}                                                                       \
		memcpy((void *)(A + (uint64_t)(int64_t)i->imm), &v[i->b], size);        \
		break
#define RECORD(code, size)                       \
	case code:                               \
		memcpy(data + i->imm, &A, size); \
		break
#define CHECK(done)         \
	if (!(done))        \
		goto fault; \
	break

/* *at: the instruction at which it ended. *out: what a fault says. */
static inline enum how
interpret(struct dif *d, struct dif_cpu *c, const struct dif_insn **at, const struct dif_context *x,
	  struct dif_last_fault *out)
{
	struct dif_run r;
	uint64_t v[DIF_REGS];
	uint8_t *data = NULL; /* of the open record */
	const struct dif_insn *i = *at;
	enum how how;

	/* one by one: an initialiser would clear all of it first */
	r.d = d;
	r.c = c;
	r.x = x;
	r.key_words = 0;
	r.top = c->scratch;
	r.record = NULL;
	r.spec = NULL;
	r.nowhere = false;
	r.token = NULL;
	v[0] = 0;
	for (;; i++) {
		switch (i->op) {
		case DIF_RET:
			return i->imm == 0 ? COMPLETED : FALSE;
			ALU(DIF_ADD, A + b)
			ALU(DIF_SUB, A - b)
			ALU(DIF_MUL, A * b)
			DIVIDE(DIF_SDIV, true, false)
			DIVIDE(DIF_UDIV, false, false)
			DIVIDE(DIF_SREM, true, true)
			DIVIDE(DIF_UREM, false, true)
			ALU(DIF_AND, A & b)
			ALU(DIF_OR, A | b)
			ALU(DIF_XOR, A ^ b)
			ALU(DIF_SHL, A << (b & 63))
			ALU(DIF_SHR, A >> (b & 63))
			ALU(DIF_SAR, (uint64_t)((int64_t)A >> (b & 63)))
			ALU(DIF_SEQ, A == b)
			ALU(DIF_SNE, A != b)
			ALU(DIF_SLT, (int64_t)A < (int64_t)b)
			ALU(DIF_SLE, (int64_t)A <= (int64_t)b)
			ALU(DIF_ULT, A < b)
			ALU(DIF_ULE, A <= b)
		case DIF_HIGH:
			v[i->d] = (uint32_t)v[i->d] | (uint64_t)(uint32_t)i->imm << 32;
			break;
		case DIF_EXT:
			v[i->d] = extend(A, i->imm);
			break;
		case DIF_SCMP: {
			int order = dif_compare(&r, A, v[i->b]);
			v[i->d] = (uint64_t)(int64_t)order;
			CHECK(order != -2);
		}
			JUMP(DIF_JA, ((void)b, true))
			JUMP(DIF_JEQ, A == b)
			JUMP(DIF_JNE, A != b)
			JUMP(DIF_JLT, (int64_t)A < (int64_t)b)
			JUMP(DIF_JLE, (int64_t)A <= (int64_t)b)
			JUMP(DIF_JULT, A < b)
			JUMP(DIF_JULE, A <= b)
			LOAD(DIF_LD1, uint8_t)
			LOAD(DIF_LD2, uint16_t)
			LOAD(DIF_LD4, uint32_t)
			LOAD(DIF_LD8, uint64_t)
			LOAD(DIF_LDS1, int8_t)
			LOAD(DIF_LDS2, int16_t)
			LOAD(DIF_LDS4, int32_t)
			STORE(DIF_ST1, 1);
			STORE(DIF_ST2, 2);
			STORE(DIF_ST4, 4);
			STORE(DIF_ST8, 8);
		case DIF_STRING:
			v[i->d] = (uintptr_t)(d->strings + i->imm);
			break;
		case DIF_ARG:
			v[i->d] = (unsigned)i->imm < x->nargs ? x->args[i->imm] : 0;
			break;
		case DIF_BUILTIN:
			v[i->d] = dif_port_builtin(x, (enum dif_builtin)i->imm);
			break;
		case DIF_UREG:
			CHECK(dif_port_uregister(A, &v[i->d]) || dif_fail(&r, DIF_FAULT_ILLOP, A));
		case DIF_CALL: {
			uint64_t result = 0;
			CHECK(dif_subroutine(&r, (unsigned)i->imm, &v[i->a], &result) &&
			      (v[i->d] = result, true));
		}
		case DIF_KEY:
			CHECK(key_push(&r, A));
		case DIF_KEY_STR:
			CHECK(key_push_str(&r, A));
		case DIF_KEY_STACK:
			CHECK(key_push_stack(&r, false, (uint32_t)i->imm));
		case DIF_KEY_USTACK:
			CHECK(key_push_stack(&r, true, (uint32_t)i->imm));
		case DIF_LDV:
			v[i->d] = dif_var_load(&r, (uint32_t)i->imm);
			break;
		case DIF_STV:
			CHECK(dif_var_store(&r, (uint32_t)i->imm, A));
		case DIF_AGG:
			dif_agg_add(&r, (uint32_t)i->imm, A, i->b == 0 ? 1 : v[i->b]);
			break;
		case DIF_REC:
			if (!dif_record_open(&r, (uint32_t)i->imm)) {
				how = DROPPED;
				goto end;
			}
			data = (uint8_t *)(r.record + 1);
			break;
			RECORD(DIF_REC1, 1);
			RECORD(DIF_REC2, 2);
			RECORD(DIF_REC4, 4);
			RECORD(DIF_REC8, 8);
		case DIF_REC_STR:
			CHECK(dif_copy_str(&r, (char *)data + (uint16_t)i->imm, A,
					   (uint32_t)i->imm >> 16) >= 0);
		case DIF_REC_MEM:
			CHECK(record_mem(&r, data + (uint16_t)i->imm, A, (uint32_t)i->imm >> 16,
					 i->b == 0 ? UINT64_MAX : v[i->b]));
		case DIF_REC_STACK:
			record_stack(&r, false, data + (uint16_t)i->imm, (uint32_t)i->imm >> 19);
			break;
		case DIF_REC_USTACK:
			record_stack(&r, true, data + (uint16_t)i->imm, (uint32_t)i->imm >> 19);
			break;
		case DIF_SPECULATE:
			dif_speculate(&r, A);
			break;
		case DIF_COMMIT:
			dif_spec_end(&r, A, DIF_SPEC_COMMITTED);
			break;
		case DIF_DISCARD:
			dif_spec_end(&r, A, DIF_SPEC_DISCARDED);
			break;
		case DIF_EXIT:
			dif_drain(d, (int32_t)A);
			break;
		case DIF_CHILL:
			chill(&r, A);
			break;
		case DIF_RAISE:
		case DIF_STOP:
		case DIF_BREAK:
		case DIF_PANIC:
			dif_port_act((enum dif_op)i->op, A);
			break;
		default:
			__builtin_unreachable(); /* verify.c knows no other */
		}
	}
divzero:
	dif_fail(&r, DIF_FAULT_DIVZERO, 0);
fault:
	dif_record_undo(&r);
	how = FAULTED;
end:
	*at = i;
	out->fault = r.fault;
	out->addr = r.addr;
	return how;
}

struct dif_simple
dif_simple(const struct dif *d, uint32_t clause)
{
	const struct dif_insn *i = &d->code[d->clauses[clause].code];
	struct dif_simple s = {0};

	s.count = i->op == DIF_AGG && d->aggs[i->imm].keys == 0 &&
		  d->aggs[i->imm].func == DIF_COUNT && i[1].op == DIF_RET &&
		  d->cpu[0].aggs.slots != NULL;
	if (s.count)
		s.agg = (uint32_t)i++->imm;
	if (i->op == DIF_RET)
		s.ended = (uint16_t)(offsetof(struct dif_cpu, ended) + 8 * (uint32_t)i->imm);
	return s;
}

enum dif_fault
dif_fire(struct dif *d, struct dif_cpu *c, const struct dif_insn *start,
	 const struct dif_context *x)
{
	const struct dif_insn *at = start;
	struct dif_last_fault f;

	c->fired++;
	switch (interpret(d, c, &at, x, &f)) {
	case COMPLETED:
		c->ended[0]++;
		return DIF_FAULT_NONE;
	case FALSE:
		c->ended[1]++;
		return DIF_FAULT_NONE;
	case DROPPED:
		c->dropped++;
		return DIF_FAULT_NONE;
	default:
		c->faulted++;
	}
	c->fault =
	    (struct dif_last_fault){f.fault, x->epid, x->probe, (uint32_t)(at - start), f.addr};
	__atomic_store_n(&d->fault_cpu, (unsigned)(c - d->cpu), __ATOMIC_RELAXED);
	return f.fault;
}

void
dif_error_args(const struct dif *d, unsigned cpu, uint32_t clause, uint64_t args[DIF_ERROR_ARGS])
{
	const struct dif_last_fault *f = &d->cpu[cpu].fault;

	args[0] = 0;
	args[1] = f->epid;
	args[2] = d->actions != NULL ? d->actions[d->clauses[clause].code + f->insn] : 0;
	args[3] = f->insn;
	args[4] = f->fault;
	args[5] = f->addr;
}

void
dif_status(const struct dif *d, struct dif_status *s)
{
	const struct dif_last_fault *f;

	*s = (struct dif_status){.state = d->state, .exit_status = d->exit_status, .cpus = d->cpus};
	for (unsigned i = 0; d->cpu != NULL && i < d->cpus; i++) {
		const struct dif_cpu *c = &d->cpu[i];

		s->fired += c->fired;
		s->completed += c->ended[0];
		s->predicate_false += c->ended[1];
		s->faulted += c->faulted;
		s->dropped += c->dropped;
		s->buf_drops += c->buf_drops;
		s->agg_drops += c->agg_drops;
		s->dynvar_drops += c->dynvar_drops;
		s->spec_drops += c->spec_drops;
		s->spec_none += c->spec_none;
		s->spec_busy += c->spec_busy;
	}
	if (d->cpu == NULL)
		return; /* nothing is loaded */
	f = &d->cpu[d->fault_cpu].fault;
	s->fault = f->fault;
	s->fault_epid = f->epid;
	s->fault_probe = f->probe;
	s->fault_insn = f->insn;
	s->fault_addr = f->addr;
}
