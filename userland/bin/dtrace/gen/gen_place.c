/*
 * gen_place.c - instructions for variables and memory: loading, storing, converting.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/gen/gen.h"

/* ---- types ---- */

bool
gen_is_unsigned(struct type *type)
{
	type = type_base(type);
	return type->kind == T_POINTER || type->kind == T_ARRAY ||
	       (type->kind == T_INT && !type->is_signed);
}

void
gen_cut(struct type *type, unsigned r)
{
	type = type_base(type);
	if (type_is_integer(type) && type->size < 8 && type->size != 0)
		gen_insn(DIF_EXT, r, r, 0,
			 gen_is_unsigned(type) ? (int32_t)type->size : -(int32_t)type->size);
}

/* Does the value surely fit its type? Operators compute with 64 bits. */
static bool
is_cut(const struct node *n)
{
	if (n->kind == N_INT)
		return check_cut(n->type, n->value) == n->value;
	if (n->kind == N_BINARY)
		return op_find(n->op)->kind <= OP_COMPARE;
	return n->kind != N_COND && n->kind != N_COMMA &&
	       (n->kind != N_UNARY || strchr("-~+", (int)n->op) == NULL);
}

void
gen_value_as(struct node *n, struct type *type, unsigned r)
{
	struct type *from = type_base(n->type), *to = type_base(type);
	bool from_unsigned = gen_is_unsigned(from), to_unsigned = gen_is_unsigned(to);

	gen_value(n, r);
	if (is_cut(n) && type_is_integer(from) &&
	    (from->size < to->size ? from_unsigned || !to_unsigned
				   : from->size == to->size && from_unsigned == to_unsigned))
		return;
	gen_cut(to, r);
}

/* ---- places ---- */

static bool
in_variable(struct type *type)
{
	return !type_is_struct(type) && type_base(type)->kind != T_ARRAY;
}

uint32_t
gen_variable(struct variable *v)
{
	struct type *type = type_base(v->type);
	struct dif_var d = {.scope = (uint8_t)v->scope, .size = 8};

	if (v->code != 0)
		return v->code - 1;
	if (type->kind == T_STRING) {
		d.kind = DIF_STR;
		d.size = 0;
	} else if (!in_variable(type)) {
		d.kind = DIF_BYTES;
		d.size = type->size;
	}
	for (struct member *m = v->keys; m != NULL; m = m->next) {
		uint32_t words = type_is_bytes(m->type) ? (type_base(m->type)->size + 7) / 8 : 1;

		for (; words > 0; words--)
			d.keys =
			    DIF_KEYS_AND(d.keys, type_is_text(m->type) ? DIF_K_STR : DIF_K_INT);
	}
	buffer_add(&gen_image.vars, &d, sizeof(d));
	v->code = (uint32_t)(gen_image.vars.size / sizeof(d));
	return v->code - 1;
}

/*
 * Pushes the bytes of a struct or an array as a key: as many integers as it has words, the last one
 * filled up with 0. Registers from `unused` on have no value.
 */
static void
push_bytes(struct node *key, unsigned r, unsigned unused)
{
	unsigned word = gen_need(key, unused), part = gen_need(key, unused + 1);
	uint32_t size = type_base(key->type)->size;

	for (uint32_t at = 0; at < size; at += 8) {
		uint32_t left = size - at < 8 ? size - at : 8;

		if (left == 8)
			gen_insn(DIF_LD8, word, r, 0, (int32_t)at);
		else
			gen_constant(0, word);
		for (uint32_t i = left; left < 8 && i > 0; i--) {
			gen_insn(DIF_LD1, part, r, 0, (int32_t)(at + i - 1));
			gen_insn(DIF_SHL | DIF_IMM, word, word, 0, 8);
			gen_insn(DIF_OR, word, word, part, 0);
		}
		gen_insn(DIF_KEY, 0, word, 0, 0);
	}
}

static void
push_key(struct node *key, unsigned r, unsigned unused)
{
	if (key->kind == N_CALL && type_base(key->type)->kind == T_STACK)
		gen_insn(key->type == type_stack ? DIF_KEY_STACK : DIF_KEY_USTACK, 0, 0, 0,
			 (int32_t)gen_frames(key));
	else if (type_is_bytes(key->type))
		push_bytes(key, r, unused);
	else if (type_is_text(key->type))
		gen_insn(DIF_KEY_STR, 0, r, 0, 0);
	else
		gen_insn(DIF_KEY, 0, r, 0, 0);
}

void
gen_keys(struct node *keys, const struct member *types, unsigned r)
{
	unsigned at = r, unused;

	/* Computes all values first: one may need keys for itself. */
	for (struct node *k = keys; k != NULL; k = k->next) {
		if (type_base(k->type)->kind != T_STACK) {
			bool typed = types != NULL && type_is_scalar(types->type);

			gen_value_as(k, typed ? types->type : k->type, gen_need(k, at));
			at++;
		}
		types = types != NULL ? types->next : NULL;
	}
	unused = at;
	at = r;
	for (struct node *k = keys; k != NULL; k = k->next) {
		if (check_is_user_symbol(k)) {
			gen_insn(DIF_BUILTIN, gen_need(k, unused), 0, 0, DIF_B_PROGRAM);
			gen_insn(DIF_KEY, 0, unused, 0, 0);
		}
		push_key(k, at, unused);
		at += type_base(k->type)->kind != T_STACK;
	}
}

/* The value, or address of the bytes, of a variable to r. */
void
gen_load_variable(struct node *n, unsigned r)
{
	struct variable *v = n->var;
	unsigned time = v->code - (unsigned)DIF_B_TIMESTAMP;

	if (v->arg != 0) {
		gen_insn(DIF_ARG, r, 0, 0, v->arg - 1);
	} else if (v->builtin && time < TIMES && gen_time[time] != NULL) {
		gen_insn(DIF_LDV, r, 0, 0, (int32_t)gen_variable(gen_time[time]));
	} else if (v->builtin) {
		gen_insn(DIF_BUILTIN, r, 0, 0, (int32_t)v->code);
	} else {
		if (v->is_array)
			gen_keys(n->right, v->keys, r);
		gen_insn(DIF_LDV, r, 0, 0, (int32_t)gen_variable(v));
	}
}

/* The address of what is in memory: register r, and an offset to add. */
int32_t
gen_place(struct node *n, unsigned r)
{
	int32_t offset = 0;

	switch (n->kind) {
	case N_EXTERN:
		gen_constant(n->value, r);
		return 0;
	case N_MEMBER:
		if (n->op == '>')
			gen_value(n->left, r);
		else
			offset = gen_place(n->left, r);
		return offset + (int32_t)n->member.offset;
	case N_UNARY:
		if (n->op == '*') {
			gen_value(n->left, r);
			return 0;
		}
		/* fall through */
	default:
		gen_value(n, r);
		return 0;
	}
}

void
gen_load(struct type *type, unsigned r, unsigned address, int32_t offset)
{
	static const uint8_t zero[] = {[1] = DIF_LD1, [2] = DIF_LD2, [4] = DIF_LD4, [8] = DIF_LD8};
	static const uint8_t sign[] = {
	    [1] = DIF_LDS1, [2] = DIF_LDS2, [4] = DIF_LDS4, [8] = DIF_LD8};

	type = type_base(type);
	if (type_is_scalar(type) && type->size <= 8 && zero[type->size] != 0) {
		gen_insn(gen_is_unsigned(type) ? zero[type->size] : sign[type->size], r, address, 0,
			 offset);
		return;
	}
	/* A thing that has no value in a register is its address. */
	if (offset != 0)
		gen_insn(DIF_ADD | DIF_IMM, r, address, 0, offset);
	else if (r != address)
		gen_insn(DIF_OR, r, R0, address, 0);
}

/* Is the type signed? An enum is if one of its values is below 0. */
static bool
is_signed_field(struct type *type)
{
	struct member *m = type->kind == T_ENUM ? type_members(type) : NULL;

	while (m != NULL && m->value >= 0)
		m = m->next;
	return type->kind == T_ENUM ? m != NULL : !gen_is_unsigned(type);
}

void
gen_member(struct node *n, unsigned r)
{
	struct member *m = &n->member;
	int32_t offset = gen_place(n, r);
	struct type *unit = type_base(m->type);

	gen_load(m->type, r, r, offset);
	if (m->bits != 0) {
		gen_insn(DIF_SHL | DIF_IMM, r, r, 0, 64 - m->bits - m->shift);
		gen_insn((is_signed_field(unit) ? DIF_SAR : DIF_SHR) | DIF_IMM, r, r, 0,
			 64 - m->bits);
	}
}

/* Stores register `value` to a bit-field or any other place in memory; uses registers from r on. */
static void
gen_store_memory(struct node *n, unsigned value, unsigned r)
{
	static const uint8_t store[] = {[1] = DIF_ST1, [2] = DIF_ST2, [4] = DIF_ST4, [8] = DIF_ST8};
	struct type *type = type_base(n->type);
	int32_t offset = gen_place(n, gen_need(n, r));

	if (n->kind == N_MEMBER && n->member.bits != 0) {
		uint64_t mask = (n->member.bits == 64 ? ~0ull : (1ull << n->member.bits) - 1);
		unsigned unit = gen_need(n, r + 1), bits = gen_need(n, r + 2),
			 m = gen_need(n, r + 3);

		gen_constant(mask << n->member.shift, m);
		gen_insn(DIF_SHL | DIF_IMM, bits, value, 0, n->member.shift);
		gen_insn(DIF_AND, bits, bits, m, 0);
		gen_insn(DIF_XOR | DIF_IMM, m, m, 0, -1);
		gen_load(type, unit, r, offset);
		gen_insn(DIF_AND, unit, unit, m, 0);
		gen_insn(DIF_OR, unit, unit, bits, 0);
		value = unit;
	}
	if (type_is_struct(type) || type->kind == T_STRING) {
		unsigned from = r + 1, to = r + 2, size = gen_need(n, r + 3);

		gen_insn(DIF_OR, from, R0, value, 0);
		gen_constant(type->size, size);
		if (type->kind == T_STRING) { /* it may be longer than its room */
			gen_constant(0, to);
			gen_constant(n->kind == N_MEMBER ? n->member.value - 1 : dt_strsize, size);
			gen_insn(DIF_CALL, from, from, 0, DIF_SUB_SUBSTR);
			gen_insn(DIF_CALL, size, from, 0, DIF_SUB_STRLEN);
			gen_insn(DIF_ADD | DIF_IMM, size, size, 0, 1);
		}
		gen_insn(DIF_ADD | DIF_IMM, to, r, 0, offset);
		gen_insn(DIF_CALL, r, from, 0, DIF_SUB_BCOPY);
		return;
	}
	if (!type_is_scalar(type) || type->size > 8 || store[type->size] == 0)
		dt_error(n->at, "D_OP_INCOMPAT", "operator =: %s cannot be stored in memory",
			 type_text(type));
	gen_insn(store[type->size], 0, r, value, offset);
}

void
gen_store(struct node *n, unsigned value, unsigned r)
{
	if ((n->kind == N_NAME || n->kind == N_INDEX) && n->var != NULL) {
		if (n->var->is_array)
			gen_keys(n->right, n->var->keys, r);
		gen_insn(DIF_STV, 0, value, 0, (int32_t)gen_variable(n->var));
	} else {
		gen_store_memory(n, value, r);
	}
}
