/*
 * gen.c - instructions for expressions.
 *
 * The value of an expression comes into a register that is given; those above it are free. Integers
 * are kept in 64 bits, extended as their type says. Structs and arrays are their addresses.
 */
#include "userland/bin/dtrace/gen/gen.h"

#include <stdlib.h>

uint16_t gen_action_number;

size_t
gen_insn(enum dif_op op, unsigned d, unsigned a, unsigned b, int32_t imm)
{
	struct dif_insn i = {(uint8_t)op, (uint8_t)d, (uint8_t)a, (uint8_t)b, imm};

	buffer_add(&gen_image.code, &i, sizeof(i));
	buffer_add(&gen_image.actions, &gen_action_number, sizeof(gen_action_number));
	return gen_image.code.size / sizeof(i) - 1;
}

void
gen_constant(uint64_t value, unsigned r)
{
	gen_insn(DIF_OR | DIF_IMM, r, R0, 0, (int32_t)value);
	if ((int64_t)(int32_t)value != (int64_t)value)
		gen_insn(DIF_HIGH, r, 0, 0, (int32_t)(value >> 32));
}

/* There are 15 registers: an expression may be as deep as that. */
unsigned
gen_need(const struct node *n, unsigned r)
{
	if (r >= DIF_REGS)
		dt_error(n->at, "D_NOREG",
			 "the expression is too complex: use a this-> variable for a part of it");
	return r;
}

/* ---- jumps ---- */

void
gen_always(struct buffer *jumps)
{
	size_t at = gen_insn(DIF_JA, 0, 0, 0, 0);

	buffer_add(jumps, &at, sizeof(at));
}

static void
gen_conditional(enum dif_op op, unsigned a, unsigned b, struct buffer *jumps)
{
	size_t at = gen_insn(op, 0, a, b, 0);

	buffer_add(jumps, &at, sizeof(at));
}

void
gen_land(struct buffer *jumps)
{
	struct dif_insn *code = (struct dif_insn *)gen_image.code.data;
	size_t here = gen_image.code.size / sizeof(*code);

	for (size_t i = 0; i < jumps->size / sizeof(size_t); i++) {
		size_t at = ((size_t *)jumps->data)[i];

		code[at].imm = (int32_t)(here - at - 1);
	}
	*jumps = (struct buffer){0};
}

/* ---- operators ---- */

static bool
fits_imm(struct node *n)
{
	return n->kind == N_INT && (int64_t)n->value == (int64_t)(int32_t)n->value;
}

static uint32_t
pointee_size(struct type *pointer)
{
	struct type *to = type_base(type_base(pointer)->to);

	return to->kind == T_VOID || to->size == 0 ? 1 : to->size;
}

static void
gen_pointer_sum(struct node *n, unsigned r)
{
	uint32_t size = pointee_size(n->left->type);

	gen_value(n->left, r);
	if (fits_imm(n->right) && labs((long)n->right->value) < INT32_MAX / (int64_t)size) {
		int32_t imm = (int32_t)n->right->value * (int32_t)size;

		gen_insn(op_find(n->op)->code[0] | DIF_IMM, r, r, 0, imm);
		return;
	}
	gen_value(n->right, gen_need(n, r + 1));
	if (size > 1)
		gen_insn(DIF_MUL | DIF_IMM, r + 1, r + 1, 0, (int32_t)size);
	gen_insn(op_find(n->op)->code[0], r, r, r + 1, 0);
}

static bool
is_address(struct node *n)
{
	enum type_kind kind = type_base(n->type)->kind;

	return kind == T_POINTER || kind == T_ARRAY;
}

static void
gen_arithmetic(struct node *n, unsigned r)
{
	const struct op *o = op_find(n->op);
	unsigned code = o->code[gen_is_unsigned(n->type)];

	if (o->kind == OP_ADD && is_address(n->left) && !is_address(n->right)) {
		gen_pointer_sum(n, r);
		return;
	}
	gen_value(n->left, r);
	if (fits_imm(n->right)) {
		gen_insn(code | DIF_IMM, r, r, 0, (int32_t)n->right->value);
	} else {
		gen_value(n->right, gen_need(n, r + 1));
		gen_insn(code, r, r, r + 1, 0);
	}
	if (is_address(n->left) && pointee_size(n->left->type) > 1) /* a difference of two */
		gen_insn(DIF_SDIV | DIF_IMM, r, r, 0, (int32_t)pointee_size(n->left->type));
}

/* Truth as a number. */
static void
gen_truth(struct node *n, unsigned r)
{
	struct buffer no = {0}, end = {0};

	gen_jump(n, r, false, &no);
	gen_constant(1, r);
	gen_always(&end);
	gen_land(&no);
	gen_constant(0, r);
	gen_land(&end);
}

static void
gen_step(struct node *n, unsigned r)
{
	struct type *type = type_base(n->type);
	int32_t step = type->kind == T_POINTER ? (int32_t)pointee_size(type) : 1;
	unsigned result = n->kind == N_POSTFIX ? gen_need(n, r + 1) : r;

	gen_value(n->left, r);
	gen_insn((n->op == OP2('+', '+') ? DIF_ADD : DIF_SUB) | DIF_IMM, result, r, 0, step);
	gen_cut(type, result);
	gen_store(n->left, result, gen_need(n, result + 1));
}

static void
gen_unary(struct node *n, unsigned r)
{
	switch (n->op) {
	case '!':
		gen_truth(n, r);
		break;
	case '+':
		gen_value(n->left, r);
		break;
	case '-':
		gen_value(n->left, r);
		gen_insn(DIF_SUB, r, R0, r, 0);
		break;
	case '~':
		gen_value(n->left, r);
		gen_insn(DIF_XOR | DIF_IMM, r, r, 0, -1);
		break;
	case '*':
		gen_value(n->left, r);
		gen_load(n->type, r, r, 0);
		break;
	case '&': {
		int32_t offset = gen_place(n->left, r);

		/* Who stores by the address cannot know how much room there is. */
		if (n->left->kind == N_MEMBER && type_base(n->left->type)->kind == T_STRING &&
		    n->left->member.value != dt_strsize + 1)
			dt_error(n->at, "D_UNKNOWN", "&: strsize was not %u where the struct is",
				 dt_strsize);
		if (offset != 0)
			gen_insn(DIF_ADD | DIF_IMM, r, r, 0, offset);
		break;
	}
	default:
		gen_step(n, r);
	}
}

static void
gen_assign(struct node *n, unsigned r)
{
	gen_value_as(n->right, n->type, r);
	gen_store(n->left, r, r + 1);
}

static void
gen_condition(struct node *n, unsigned r)
{
	struct buffer no = {0}, end = {0};

	gen_jump(n->left, r, false, &no);
	gen_value(n->right, r);
	gen_always(&end);
	gen_land(&no);
	gen_value(n->third, r);
	gen_land(&end);
}

static void
gen_call(struct node *n, unsigned r)
{
	static const uint8_t arguments[] = {
#define ARGUMENTS(name, nargs) nargs,
	    DIF_SUBS(ARGUMENTS)
#undef ARGUMENTS
	};
	unsigned at = r;

	if (n->function->show != 0) { /* an address that is shown as a symbol */
		gen_value(n->left, r);
		return;
	}
	for (struct node *arg = n->left; arg != NULL; arg = arg->next)
		gen_value(arg, gen_need(n, at++));
	/* Arguments that were not given. */
	while (at - r < arguments[n->function->code]) {
		gen_constant((uint64_t)n->function->missing, gen_need(n, at));
		at++;
	}
	gen_insn(DIF_CALL, r, arguments[n->function->code] != 0 ? r : 0, 0, n->function->code);
	if (n->function->code == DIF_SUB_RAND)
		gen_cut(n->type, r);
}

/* A comparison: jumps if it is `when`. */
static void
gen_compare(struct node *n, unsigned r, bool when, struct buffer *jumps)
{
	const struct op *o = op_find(when ? n->op : op_find(n->op)->inverse);
	struct node *l = n->left, *rt = n->right;
	unsigned a = r, b = r + 1;
	bool is_unsigned = true;

	gen_value(l, r);
	if ((check_is_string(l) || check_is_string(rt)) && !check_is_null(l) &&
	    !check_is_null(rt)) {
		gen_value(rt, gen_need(n, r + 1));
		gen_insn(DIF_SCMP, r, r, r + 1, 0);
		is_unsigned = false;
		b = R0;
	} else {
		if (type_is_integer(l->type) && type_is_integer(rt->type))
			is_unsigned = !check_compares_signed(l->type, rt->type);
		if (rt->kind == N_INT && rt->value == 0)
			b = R0;
		else
			gen_value(rt, gen_need(n, r + 1));
	}
	gen_conditional(o->code[is_unsigned], o->swapped ? b : a, o->swapped ? a : b, jumps);
}

void
gen_jump(struct node *n, unsigned r, bool when, struct buffer *jumps)
{
	enum op_kind kind = n->kind == N_BINARY ? op_find(n->op)->kind : 0;
	struct buffer over = {0};

	if (n->kind == N_UNARY && n->op == '!') {
		gen_jump(n->left, r, !when, jumps);
	} else if (kind == OP_LOGIC && n->op != OP2('^', '^')) {
		bool either = n->op == OP2('|', '|'); /* the first decides if it is this */

		if (either == when) {
			gen_jump(n->left, r, when, jumps);
		} else {
			gen_jump(n->left, r, either, &over);
		}
		gen_jump(n->right, r, when, jumps);
		gen_land(&over);
	} else if (kind == OP_LOGIC) {
		gen_truth(n->left, r);
		gen_truth(n->right, gen_need(n, r + 1));
		gen_conditional(when ? DIF_JNE : DIF_JEQ, r, r + 1, jumps);
	} else if (kind == OP_COMPARE) {
		gen_compare(n, r, when, jumps);
	} else {
		gen_value(n, r);
		gen_conditional(when ? DIF_JNE : DIF_JEQ, r, R0, jumps);
	}
}

void
gen_value(struct node *n, unsigned r)
{
	gen_need(n, r);
	switch (n->kind) {
	case N_INT:
		gen_constant(n->value, r);
		break;
	case N_STRING:
		gen_insn(DIF_STRING, r, 0, 0, (int32_t)image_text(n->text, n->size));
		break;
	case N_NAME:
		gen_load_variable(n, r);
		break;
	case N_EXTERN:
		gen_constant(n->value, r);
		gen_load(n->type, r, r, 0);
		break;
	case N_INDEX:
		if (n->var != NULL) {
			gen_load_variable(n, r);
		} else { /* uregs[n] */
			gen_value(n->right, r);
			gen_insn(DIF_UREG, r, r, 0, 0);
		}
		break;
	case N_MEMBER:
		gen_member(n, r);
		break;
	case N_UNARY:
		gen_unary(n, r);
		break;
	case N_POSTFIX:
		gen_step(n, r);
		break;
	case N_BINARY:
		if (op_find(n->op)->kind <= OP_COMPARE)
			gen_truth(n, r);
		else
			gen_arithmetic(n, r);
		break;
	case N_ASSIGN:
		gen_assign(n, r);
		break;
	case N_COND:
		gen_condition(n, r);
		break;
	case N_COMMA:
		gen_value(n->left, r);
		gen_value(n->right, r);
		break;
	case N_CAST:
		gen_value_as(n->left, n->type, r);
		break;
	case N_STRINGOF:
		gen_value(n->left, r);
		break;
	case N_CALL:
		gen_call(n, r);
		break;
	default:
		dt_error(n->at, "D_XLATE_DYN",
			 "what a translator makes has no value as a whole; use its members");
	}
}
