/*
 * run.c - the interpreter. It trusts what verify.c has checked: registers, branches, indices, kinds
 * of keys and places in records. All else it checks itself.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"

static bool
record_mem(struct dif_run *r, uint8_t *to, uint64_t addr, uint64_t size, uint64_t most)
{
	return dif_copy(r, to, addr, most < size ? most : size);
}

static uint64_t
run_extend(uint64_t v, int32_t how)
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
run_divide(bool is_signed, bool rest, uint64_t a, uint64_t b)
{
	if (!is_signed)
		return rest ? a % b : a / b;
	if (b == UINT64_MAX) /* the processor may trap on INT64_MIN / -1 */
		return rest ? 0 : 0 - a;
	return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

/* The built-in variables that are in the firing and the clause, and then those of the kernel. */
static inline uint64_t
run_builtin(const struct dif_at *at, const struct ktr_firing *f, enum dif_builtin what)
{
	switch (what) {
	case DIF_B_ID:
		return at->probe;
	case DIF_B_EPID:
		return at->epid;
	case DIF_B_PC:
		return ktr_firing_where(f).pc;
	case DIF_B_NARGS:
		return f->nargs;
	case DIF_B_DATA:
		return f->has_data ? (uintptr_t)f->data : 0;
	case DIF_B_DATALEN:
		return f->has_data ? f->len : 0;
	default:
		return dif_port_builtin(at, f, what);
	}
}

/* ---- what the first loop does of operations that may need a call ---- */

/* Where to add. NULL: there is no entry yet. */
static inline uint64_t *
find_quick(const struct dif_run *r, const struct dif *d, const struct dif_cpu *c, uint32_t agg,
	   bool keys)
{
	uint32_t words = r->key_words, entry;
	const struct dif_entry *e;

	if (keys) {
		e = dif_agg_find(d, c, agg, words,
				 dif_hash_words(d->secret, agg + 1, c->keys, words));
		return e != NULL ? dif_value(e) : NULL;
	}
	entry = c->aggs.slots[agg];
	return entry != 0 ? (uint64_t *)((uint8_t *)c->aggs.slots + entry) + 2 : NULL;
}

/* Opens a record in a buffer that is no ring. place is a DIF_PLACE(layout, words). NULL if there
 * is no room. */
static inline struct dif_record *
open_quick(const struct dif_at *at, struct dif_cpu *c, uint32_t place)
{
	uint32_t head = c->buf.head, need = place >> 16 << 3;
	struct dif_record *record = (struct dif_record *)(c->buf.base + head);

	if (need > c->buf.size - head)
		return NULL;
	c->buf.head = head + need;
	__builtin_memcpy(record, &place, sizeof(place)); /* layout and words */
	record->probe = at->probe;
	record->time = dif_port_stamp();
	return record;
}

/*
 * ---- the operations ----
 *
 * Each is a function, whose last call is a jump to the next one's. So none saves registers for
 * another, and a program costs what its own operations need. That the calls are jumps is seen to by
 * the flag -foptimize-sibling-calls, as long as no address of a local variable is passed on.
 */

#define UNUSED __attribute__((unused))
#define ARGS                                                         \
	const struct ktr_firing *f UNUSED, struct dif_cpu *c UNUSED, \
	    const struct dif_at *at UNUSED, const struct dif_step *i UNUSED
#define OP(name) static __attribute__((noinline)) void op_##name(ARGS)
/* The compiler is to know nothing of i: then it adds to the register that is passed on. */
#define NEXT()                                 \
	do {                                   \
		i++;                           \
		__asm__("" : "+r"(i));         \
		DIF_JUMP(i->run)(f, c, at, i); \
		return;                        \
	} while (0)
#define GO(name) return op_##name(f, c, at, i)
#define R        (&c->run)
#define A        R->v[i->a]
#define D        R->v[i->d]
#define IMM      ((uint64_t)(int64_t)i->imm)
/* What is called wants to know where the program runs. */
#define USES() ((void)(R->at = at), (void)(R->f = f))
/* A place in the open record. */
#define DATA ((uint8_t *)(R->record + 1) + (uint16_t)i->imm)
#define SIZE ((uint32_t)i->imm >> 16)

OP(fault)
{
	enum dif_fault why = R->fault;
	uint64_t fired = c->fired;

	dif_record_undo(R);
	c->faulted++;
	c->error_faults += at->probe == DIF_PROBE_ERROR;
	c->fault =
	    (struct dif_last_fault){why, at->epid, at->probe, (uint32_t)(i - at->code), R->addr};
	__atomic_store_n(&at->d->fault_cpu, (unsigned)(c - at->d->cpu), __ATOMIC_RELAXED);
	dif_run_reset(R);
	dif_var_release(c);
	dif_port_fault(at, c, f);
	/* strtok() goes on after ERROR's programs, unless they have used it. */
	if (c->token_probe == at->probe)
		c->token_fired += c->fired - fired;
}

/* An operation that may fault: `done` is false then. */
#define MAY_FAULT(name, done)      \
	OP(name)                   \
	{                          \
		if (!(done))       \
			GO(fault); \
		NEXT();            \
	}
#define DO(name, what)  \
	OP(name)        \
	{               \
		what;   \
		NEXT(); \
	}
/* An operation with a register and with a constant. */
#define ALU(name, type, operator)                                    \
	DO(name, D = (uint64_t)((type)A operator((type)R->v[i->b]))) \
	DO(name##_imm, D = (uint64_t)((type)A operator((type)IMM)))
#define SHIFT(name, type, operator)                                 \
	DO(name, D = (uint64_t)((type)A operator(R->v[i->b] & 63))) \
	DO(name##_imm, D = (uint64_t)((type)A operator(IMM & 63)))
#define DIVIDE(name, is_signed, rest)                                                            \
	MAY_FAULT(name, R->v[i->b] != 0 ? (D = run_divide(is_signed, rest, A, R->v[i->b]), true) \
					: dif_fail(R, DIF_FAULT_DIVZERO, 0))                     \
	DO(name##_imm, D = run_divide(is_signed, rest, A, IMM))
#define JUMP(name, cond)                 \
	OP(name)                         \
	{                                \
		uint64_t b = R->v[i->b]; \
		if (cond)                \
			i += i->imm;     \
		NEXT();                  \
	}
/* A constant, and the comparison with it that follows. */
#define JUMP_IMM(name, operator)             \
	OP(name)                             \
	{                                    \
		uint64_t b = D = IMM;        \
		if (R->v[i[1].a] operator b) \
			i += i[1].imm;       \
		i++;                         \
		NEXT();                      \
	}
#define LOAD(name, type)                                                     \
	OP(name)                                                             \
	{                                                                    \
		uint64_t from = A + IMM;                                     \
		type value;                                                  \
		if (!dif_port_is_quick(from)) {                              \
			if (!dif_copy(R, &R->temp, from, sizeof(type)))      \
				GO(fault);                                   \
			from = (uintptr_t)&R->temp;                          \
		}                                                            \
		__builtin_memcpy(&value, (const void *)from, sizeof(value)); \
		D = (uint64_t)(int64_t)value;                                \
		NEXT();                                                      \
	}
#define STORE(name, type)                                                \
	OP(name)                                                         \
	{                                                                \
		uint64_t to = A + IMM;                                   \
		if (!dif_writable(R, to, sizeof(type))) {                \
			dif_fail(R, DIF_FAULT_BADADDR, to);              \
			GO(fault);                                       \
		}                                                        \
		__builtin_memcpy((void *)to, &R->v[i->b], sizeof(type)); \
		NEXT();                                                  \
	}
#define RECORD(name, size) DO(name, __builtin_memcpy(DATA, &A, size))
/* Adds n to an aggregation. */
#define ADD(name, keys, n)                                                         \
	OP(name)                                                                   \
	{                                                                          \
		uint64_t *value = find_quick(R, at->d, c, (uint32_t)i->imm, keys); \
		if (__builtin_expect(value == NULL, 0))                            \
			GO(agg);                                                   \
		*value += (n);                                                     \
		if (keys)                                                          \
			R->key_words = 0;                                          \
		NEXT();                                                            \
	}

/* The variable has the value with which it was compared. */
OP(if_true)
{
	D = R->v[i[1].d] = (uint64_t)(int64_t)i[1].imm;
	i += 2;
	NEXT();
}

#define BUILTIN(what)                                   \
	DO(quick_##what, D = dif_port_quick(at, what))  \
	OP(if_##what)                                   \
	{                                               \
		uint64_t v = dif_port_quick(at, what);  \
		if (v != (uint64_t)(int64_t)i[1].imm) { \
			c->ended[1]++;                  \
			return;                         \
		}                                       \
		GO(if_true);                            \
	}

OP(ret)
{
	c->ended[i->imm]++;
}

OP(ret_done)
{
	c->ended[0]++;
}

OP(log_done)
{
	c->ended[0]++;
	dif_port_log(f);
}

OP(ret_false)
{
	c->ended[1]++;
}

/* After keys or a record. */
OP(ret_record)
{
	R->key_words = 0;
	R->record = NULL;
	GO(ret_done);
}

OP(ret_record_false)
{
	R->key_words = 0;
	R->record = NULL;
	GO(ret_false);
}

/* The end of a program that has used scratch memory or a speculation. */
OP(ret_reset)
{
	dif_run_reset(R);
	GO(ret);
}

OP(ret_held)
{
	dif_var_release(c);
	GO(ret_reset);
}

ALU(add, uint64_t, +)
ALU(sub, uint64_t, -)
ALU(mul, uint64_t, *)
DIVIDE(sdiv, true, false)
DIVIDE(udiv, false, false)
DIVIDE(srem, true, true)
DIVIDE(urem, false, true)
ALU(and, uint64_t, &)
ALU(or, uint64_t, |)
ALU(xor, uint64_t, ^)
SHIFT(shl, uint64_t, <<)
SHIFT(shr, uint64_t, >>)
SHIFT(sar, int64_t, >>)
ALU(seq, uint64_t, ==)
ALU(sne, uint64_t, !=)
ALU(slt, int64_t, <)
ALU(sle, int64_t, <=)
ALU(ult, uint64_t, <)
ALU(ule, uint64_t, <=)
DO(high, D = (uint32_t)D | (uint64_t)(uint32_t)i->imm << 32)
DO(ext, D = run_extend(A, i->imm))
MAY_FAULT(scmp, (D = (uint64_t)(int64_t)dif_compare(R, A, R->v[i->b])) != (uint64_t)-2)
JUMP(ja, ((void)b, true))
JUMP(jeq, A == b)
JUMP(jne, A != b)
JUMP(jlt, (int64_t)A < (int64_t)b)
JUMP(jle, (int64_t)A <= (int64_t)b)
JUMP(jult, A < b)
JUMP(jule, A <= b)
JUMP_IMM(jeq_imm, ==)
JUMP_IMM(jne_imm, !=)
LOAD(ld1, uint8_t)
LOAD(ld2, uint16_t)
LOAD(ld4, uint32_t)
LOAD(ld8, uint64_t)
LOAD(lds1, int8_t)
LOAD(lds2, int16_t)
LOAD(lds4, int32_t)
STORE(st1, uint8_t)
STORE(st2, uint16_t)
STORE(st4, uint32_t)
STORE(st8, uint64_t)
DO(string, D = (uintptr_t)(at->d->strings + i->imm))
DO(arg, D = (unsigned)i->imm < f->nargs ? f->args[i->imm] : dif_port_argument(f, (unsigned)i->imm))
DIF_PORT_QUICK(BUILTIN)
MAY_FAULT(argstr, (USES(), dif_arg_string(R, (unsigned)i->imm, &D)))
DO(log, dif_port_log(f))
DO(upcall, dif_port_upcall(at, f, i->imm, &A))
DO(builtin, D = run_builtin(at, f, (enum dif_builtin)i->imm))
MAY_FAULT(ureg, dif_port_uregister(A, &D) || dif_fail(R, DIF_FAULT_ILLOP, A))

OP(call)
{
	USES();
	R->temp = 0;
	if (!dif_subroutine(R, (unsigned)i->imm, &A, &R->temp))
		GO(fault);
	D = R->temp;
	NEXT();
}

OP(key)
{
	if (__builtin_expect(R->key_words == DIF_KEY_WORDS, 0)) {
		dif_fail(R, DIF_FAULT_TUPOFLOW, 0);
		GO(fault);
	}
	c->keys[R->key_words++] = A;
	NEXT();
}

MAY_FAULT(keystr, dif_key_str(R, A))

/* A short string that is surely memory, by words. */
OP(key_str_quick)
{
	uint64_t from = A, end = from + DIF_QUICK_STR;
	uint32_t words = R->key_words;
	uint64_t *to = &c->keys[words];

	if (!dif_port_is_quick(from) || words > DIF_KEY_WORDS - DIF_QUICK_STR / 8)
		GO(keystr);
	for (uint64_t w, nul; from < end; from += 8, *to++ = w) {
		__builtin_memcpy(&w, (const void *)from, 8);
		nul = dif_nul_bit(w);
		if (nul != 0) {
			*to++ = w & ((nul & -nul) - 1);
			R->key_words = (uint32_t)(to - c->keys);
			NEXT();
		}
	}
	GO(keystr);
}

MAY_FAULT(keystack, (USES(), dif_key_stack(R, false, (uint32_t)i->imm)))
MAY_FAULT(keyustack, (USES(), dif_key_stack(R, true, (uint32_t)i->imm)))
DO(load_global, D = __atomic_load_n((uint64_t *)(at->d->globals + i->imm), __ATOMIC_RELAXED))
DO(store_global, __atomic_store_n((uint64_t *)(at->d->globals + i->imm), A, __ATOMIC_RELAXED))
DO(load_local, D = *(uint64_t *)(c->locals + i->imm))
DO(store_local, *(uint64_t *)(c->locals + i->imm) = A)
DO(ldv, D = dif_var_load(R, (uint32_t)i->imm))
MAY_FAULT(stv, dif_var_store(R, (uint32_t)i->imm, A))
DO(agg, dif_agg_add(R, (uint32_t)i->imm, A, i->b == 0 ? 1 : R->v[i->b]))
ADD(count, false, 1)
ADD(sum, false, A)
ADD(count_keys, true, 1)
ADD(sum_keys, true, A)

OP(count_key)
{
	uint64_t key_ = A;
	uint32_t agg = (uint32_t)i[1].imm, hash = dif_hash_words(at->d->secret, agg + 1, &key_, 1);
	uint64_t id = agg | (uint64_t)hash << 32;
	const uint8_t *table = (const uint8_t *)c->aggs.slots;

	for (uint32_t n = c->aggs.buckets[hash & at->d->bucket_mask]; n != 0;) {
		uint64_t *e = (uint64_t *)(table + n); /* the entry's words: id; next; key; value */

		if (e[0] == id && e[2] == key_) {
			e[3]++;
			i++;
			NEXT();
		}
		n = (uint32_t)e[1];
	}
	GO(key);
}

OP(rec)
{
	USES();
	if (!dif_record_open(R, (uint16_t)i->imm)) {
		c->dropped++;
		dif_run_reset(R);
		dif_var_release(c);
		return;
	}
	NEXT();
}

/* No speculation is active, and the buffer is no ring. */
OP(record_quick)
{
	R->record = open_quick(at, c, (uint32_t)i->imm);
	if (__builtin_expect(R->record == NULL, 0))
		GO(rec);
	NEXT();
}

RECORD(rec1, 1)
RECORD(rec2, 2)
RECORD(rec4, 4)
RECORD(rec8, 8)
MAY_FAULT(recstr, dif_record_str(R, DATA, A, SIZE))
MAY_FAULT(recmem, record_mem(R, DATA, A, SIZE, i->b == 0 ? UINT64_MAX : R->v[i->b]))

/* Records 64 bytes. */
OP(rec_64)
{
	uint8_t *to = DATA;
	uint64_t from = A;

	if (!dif_port_is_quick(from))
		GO(recmem);
	__builtin_memcpy(to, (const void *)from, 32);
	__builtin_memcpy(to + 32, (const void *)(from + 32), 32);
	NEXT();
}

DO(recstack, USES(); dif_record_stack(R, false, DATA, SIZE / 8))
DO(recustack, USES(); dif_record_stack(R, true, DATA, SIZE / 8))
/* Without an active speculation the program ends here. */
OP(speculate)
{
	if (!dif_speculate(R, A))
		GO(fault);
	if (R->spec == NULL) {
		c->ended[0]++;
		dif_run_reset(R);
		dif_var_release(c);
		return;
	}
	NEXT();
}
MAY_FAULT(commit, dif_spec_end(R, A, DIF_SPEC_COMMITTED))
MAY_FAULT(discard, dif_spec_end(R, A, DIF_SPEC_DISCARDED))
DO(exit, dif_exit(at, (int32_t)A))
MAY_FAULT(raise, dif_port_act(at, (enum dif_op)i->op, A) || dif_fail(R, DIF_FAULT_ILLOP, 0))

#define op_stop  op_raise
#define op_break op_raise
#define op_panic op_raise
#define op_chill op_raise

dif_operation *const dif_operations[256] = {
#define DIF_OP(name, code, text, form) [code] = op_##text,
#define DIF_ALU(name, code, text)      [code] = op_##text, [(code) | DIF_IMM] = op_##text##_imm,
#include "kernel/abi/dif_ops.def"
    [DIF_OWN_DONE] = op_ret_done,
    [DIF_OWN_FALSE] = op_ret_false,
    [DIF_OWN_LOG_DONE] = op_log_done,
    [DIF_OWN_RET_RECORD] = op_ret_record,
    [DIF_OWN_RET_RECORD + 1] = op_ret_record_false,
    [DIF_OWN_RET_RESET] = op_ret_reset,
    [DIF_OWN_RET_HELD] = op_ret_held,
    [DIF_OWN_JEQ] = op_jeq_imm,
    [DIF_OWN_JNE] = op_jne_imm,
    [DIF_OWN_KEY_STR] = op_key_str_quick,
    [DIF_OWN_LDG] = op_load_global,
    [DIF_OWN_STG] = op_store_global,
    [DIF_OWN_LDL] = op_load_local,
    [DIF_OWN_STL] = op_store_local,
    [DIF_OWN_COUNT] = op_count,
    [DIF_OWN_SUM] = op_sum,
    [DIF_OWN_COUNT_KEYS] = op_count_keys,
    [DIF_OWN_SUM_KEYS] = op_sum_keys,
    [DIF_OWN_COUNT_KEY] = op_count_key,
    [DIF_OWN_REC] = op_record_quick,
    [DIF_OWN_REC_64] = op_rec_64,
#define QUICK(what) \
	[DIF_OWN_BUILTIN + (what)] = op_quick_##what, [DIF_OWN_IF + (what)] = op_if_##what,
    DIF_PORT_QUICK(QUICK)
#undef QUICK
};
