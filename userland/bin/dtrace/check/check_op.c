/*
 * check_op.c - the types of operators; constants are computed.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"

bool check_in_if;

const char *
check_op_text(uint32_t op)
{
	return dt_format("%c%c%c", (int)(op & 0xff), (int)(op >> 8 & 0xff), (int)(op >> 16 & 0xff));
}

bool
check_is_string(struct node *n)
{
	return type_base(n->type)->kind == T_STRING;
}

bool
check_is_pointer(struct node *n)
{
	enum type_kind kind = type_base(n->type)->kind;

	return kind == T_POINTER || kind == T_ARRAY;
}

bool
check_is_scalar(struct node *n)
{
	return type_is_scalar(n->type) || check_is_pointer(n);
}

uint64_t
check_cut(struct type *type, uint64_t value)
{
	unsigned bits;

	type = type_base(type);
	if (type->kind == T_ENUM)
		return (uint64_t)(int64_t)(int32_t)value;
	if (type->kind != T_INT || type->size >= 8 || type->size == 0)
		return value;
	bits = 64 - 8 * type->size;
	return type->is_signed ? (uint64_t)((int64_t)(value << bits) >> bits)
			       : value << bits >> bits;
}

/* D promotes no integers: char + char is a char. Only an enum becomes an int. */
struct type *
check_promoted(struct type *type)
{
	type = type_base(type);
	return type->kind == T_ENUM ? type_int : type;
}

struct type *
check_common(struct type *a, struct type *b)
{
	a = check_promoted(a);
	b = check_promoted(b);
	if (a->size != b->size)
		return a->size > b->size ? a : b;
	return a->is_signed ? b : a;
}

bool
check_compares_signed(struct type *a, struct type *b)
{
	struct type *common = check_common(a, b);

	return common->is_signed || common->size < type_int->size;
}

/* ---- constants ---- */

/* Computes an operator. The type of the operands says whether they are signed. */
static uint64_t
compute(const struct op *o, bool is_signed, uint64_t a, uint64_t b)
{
	int64_t sa, sb;

	if (o->kind == OP_LOGIC)
		a = a != 0, b = b != 0;
	if (o->swapped)
		sa = (int64_t)a, a = b, b = (uint64_t)sa;
	sa = (int64_t)a;
	sb = (int64_t)b;
	switch (o->code[!is_signed]) {
	case DIF_ADD:
		return a + b;
	case DIF_SUB:
		return a - b;
	case DIF_MUL:
		return a * b;
	case DIF_UDIV:
		return a / b;
	case DIF_UREM:
		return a % b;
	case DIF_SDIV:
		return sb == -1 ? 0 - a : (uint64_t)(sa / sb);
	case DIF_SREM:
		return sb == -1 ? 0 : (uint64_t)(sa % sb);
	case DIF_AND:
		return a & b;
	case DIF_OR:
		return a | b;
	case DIF_XOR:
		return a ^ b;
	case DIF_SHL:
		return a << (b & 63);
	case DIF_SHR:
		return a >> (b & 63);
	case DIF_SAR:
		return (uint64_t)(sa >> (b & 63));
	case DIF_JEQ:
		return a == b;
	case DIF_JNE:
		return a != b;
	case DIF_JLT:
		return sa < sb;
	case DIF_JLE:
		return sa <= sb;
	case DIF_JULT:
		return a < b;
	default:
		return a <= b;
	}
}

void
check_computed(struct node *n, struct type *type, uint64_t value)
{
	bool is_signed = type_base(type)->is_signed;

	if (type_base(type)->size >= type_int->size && check_cut(type, value) != value &&
	    (is_signed || (int64_t)value > 0))
		type = is_signed ? type_long : type_ulong;
	check_constant(n, type, value);
	n->value = value; /* 64 bits, as when the program runs: storing the value cuts it */
}

/* ---- operators with two operands ---- */

_Noreturn static void
refuse(struct node *n, const char *tag, const char *expected)
{
	dt_error(n->at, tag, "operator %s: found %s and %s, expected %s", check_op_text(n->op),
		 type_text(n->left->type), type_text(n->right->type), expected);
}

static void
check_comparison(struct node *n)
{
	struct node *l = n->left, *r = n->right;

	n->type = type_int;
	if ((check_is_string(l) || check_is_string(r)) && type_is_stringlike(l->type) &&
	    type_is_stringlike(r->type))
		return;
	if (check_is_scalar(l) && check_is_scalar(r))
		return;
	if ((check_is_string(l) && check_is_null(r)) || (check_is_null(l) && check_is_string(r)))
		return; /* is there a string at all? */
	if (type_is_struct(l->type) || type_is_struct(r->type))
		refuse(n, "D_OP_SCALAR", "integers, pointers or strings");
	refuse(n, "D_OP_INCOMPAT", "two integers, two pointers or two strings");
}

void
check_characters(struct node **n)
{
	if (!check_is_string(*n))
		return;
	*n = node_typed(N_CAST, type_pointer(type_char), *n);
	check_expression(*n);
}

static void
check_additive(struct node *n)
{
	struct node *l, *r;

	if (type_is_integer(n->right->type))
		check_characters(&n->left);
	else if (n->op == '+' && type_is_integer(n->left->type))
		check_characters(&n->right);
	l = n->left;
	r = n->right;

	if (type_is_integer(l->type) && type_is_integer(r->type)) {
		n->type = check_common(l->type, r->type);
		return;
	}
	if (n->op == '+' && type_is_integer(l->type) && check_is_pointer(r)) {
		n->left = r;
		n->right = l;
		l = n->left;
		r = n->right;
	}
	if (check_is_pointer(l) && type_is_integer(r->type) &&
	    type_base(type_base(l->type)->to)->kind != T_VOID) {
		n->type = type_pointer(type_base(l->type)->to);
		return;
	}
	if (n->op == '-' && check_is_pointer(l) && check_is_pointer(r)) {
		if (!type_same(type_base(l->type)->to, type_base(r->type)->to))
			refuse(n, "D_OP_INCOMPAT", "pointers to the same type");
		n->type = type_long;
		return;
	}
	refuse(n,
	       check_is_pointer(r) && type_base(type_base(r->type)->to)->kind == T_VOID
		   ? "D_OP_VFPTR"
		   : "D_OP_INCOMPAT",
	       "integers, or a pointer and an integer");
}

/*
 * If the left operand of && or || decides, the other one need not have a value: `0 && 1 / 0`. Only
 * the preprocessor's #if asks for this. True if the node was computed so.
 */
static bool
check_short(struct node *n)
{
	bool truth;

	check_expression(n->left);
	if (!n->left->constant)
		return false;
	truth = n->left->value != 0;
	if (n->kind == N_COND) {
		n->left = truth ? n->right : n->third;
		check_expression(n->left);
		check_replace(n, n->left);
		return true;
	}
	if (truth != (n->op == OP2('|', '|')) || n->op == OP2('^', '^'))
		return false;
	check_constant(n, type_int, truth);
	return true;
}

void
check_binary(struct node *n)
{
	const struct op *o = op_find(n->op);
	struct node *l = n->left, *r = n->right;
	bool integers, is_signed;

	if (l->kind == N_AGG || r->kind == N_AGG)
		dt_error(n->at, "D_OP_INCOMPAT", "operator %s: an aggregation has no value",
			 check_op_text(n->op));
	if (check_in_if && o->kind == OP_LOGIC && check_short(n))
		return;
	check_expression(l);
	check_expression(r);
	integers = type_is_integer(l->type) && type_is_integer(r->type);
	if (o->kind == OP_LOGIC) {
		if (!check_is_scalar(l) || !check_is_scalar(r))
			refuse(n, "D_OP_SCALAR", "integers or pointers");
		n->type = type_int;
	} else if (o->kind == OP_COMPARE) {
		check_comparison(n);
	} else if (o->kind == OP_ADD) {
		check_additive(n);
	} else if (!integers) {
		refuse(n, "D_OP_INT", "integers");
	} else {
		n->type =
		    o->kind == OP_SHIFT ? check_promoted(l->type) : check_common(l->type, r->type);
	}
	if ((n->op == '/' || n->op == '%') && r->constant && r->value == 0)
		dt_error(n->at, "D_DIV_ZERO", "expression contains division by zero");
	if (!l->constant || !r->constant || !type_is_integer(n->type))
		return;
	is_signed = type_base(n->type)->is_signed;
	if (o->kind == OP_COMPARE) /* addresses have no sign */
		is_signed = integers && check_compares_signed(l->type, r->type);
	check_computed(n, n->type, compute(o, is_signed, l->value, r->value));
}

void
check_cast(struct node *n)
{
	struct node *l = n->left;

	check_expression(l);
	if (l->kind == N_XLATE && type_same(l->type, n->type)) {
		check_replace(n, l);
		return;
	}
	if (l->kind == N_XLATE)
		dt_error(n->at, "D_CAST_INVAL", "what a translator makes cannot be cast");
	if (type_base(n->type)->kind == T_STRING) {
		n->kind = N_STRINGOF;
		check_stringof(n);
		return;
	}
	if (type_base(n->type)->kind == T_VOID)
		return;
	if (type_is_struct(n->type) && type_same(l->type, n->type)) {
		check_replace(n, l);
		return;
	}
	if (!type_is_scalar(n->type) || (!check_is_scalar(l) && !check_is_string(l)))
		dt_error(n->at, "D_CAST_INVAL", "invalid cast from %s to %s", type_text(l->type),
			 type_text(n->type));
	if (check_is_string(l) && type_base(n->type)->kind != T_POINTER)
		dt_error(n->at, "D_CAST_INVAL", "invalid cast from string to %s",
			 type_text(n->type));
	if (l->constant)
		check_constant(n, n->type, l->value);
}

void
check_condition(struct node *n)
{
	struct node *yes = n->right, *no = n->third;

	if (check_in_if && check_short(n))
		return;
	check_expression(n->left);
	check_expression(yes);
	check_expression(no);
	if (!check_is_scalar(n->left))
		dt_error(n->at, "D_OP_SCALAR",
			 "operator ?: found %s before it, expected an integer or a pointer",
			 type_text(n->left->type));
	if (type_is_integer(yes->type) && type_is_integer(no->type))
		n->type =
		    type_same(yes->type, no->type) ? yes->type : check_common(yes->type, no->type);
	else if ((check_is_string(yes) || check_is_string(no)) && type_is_stringlike(yes->type) &&
		 type_is_stringlike(no->type))
		n->type = type_string;
	else if (ident_action(yes) != NULL || ident_action(no) != NULL ||
		 check_fits(no, check_held(yes)))
		n->type = check_held(yes);
	else if (check_fits(yes, check_held(no)))
		n->type = check_held(no);
	else
		dt_error(n->at, "D_OP_INCOMPAT",
			 "operator ?: found %s and %s, expected the same type twice",
			 type_text(yes->type), type_text(no->type));
	if (type_base(n->type)->kind == T_STACK || type_base(n->type)->kind == T_VOID)
		dt_error(n->at, "D_OP_ACT", "operator ?: an action has no value");
	yes = n->left->value != 0 ? yes : no;
	if (n->left->constant && yes->constant && type_is_integer(n->type))
		check_constant(n, n->type, yes->value);
}

void
check_comma(struct node *n)
{
	check_expression(n->left);
	check_expression(n->right);
	if (type_base(n->left->type)->kind == T_STACK || type_base(n->right->type)->kind == T_STACK)
		dt_error(n->at, "D_OP_INCOMPAT", "operator ,: a stack has no value");
	n->type = n->right->type;
}

void
check_stringof(struct node *n)
{
	check_expression(n->left);
	if (!type_is_stringlike(n->left->type) && !check_is_scalar(n->left))
		dt_error(n->at, "D_STRINGOF_TYPE", "stringof cannot be applied to %s",
			 type_text(n->left->type));
	n->type = type_string;
}

/* ---- assignments ---- */

struct type *
check_held(struct node *n)
{
	struct type *type = type_base(n->type);

	if (type->kind == T_ARRAY)
		return type_pointer(type->to);
	return n->type;
}

bool
check_is_null(struct node *n)
{
	return n->constant && n->value == 0 && type_is_scalar(n->type);
}

bool
check_fits(struct node *n, struct type *type)
{
	struct type *to = type_base(type), *from = type_base(n->type);

	if (to->kind == T_STRING)
		return type_is_stringlike(from) || check_is_null(n);
	if (type_is_integer(to))
		return type_is_integer(from);
	if (to->kind == T_POINTER) {
		if (type_is_integer(from))
			return n->constant && n->value == 0;
		if (!check_is_pointer(n))
			return from->kind == T_STRING && type_is_stringlike(to);
		return type_base(to->to)->kind == T_VOID || type_base(from->to)->kind == T_VOID ||
		       type_same(to->to, from->to);
	}
	return type_same(to, from);
}

void
check_assign(struct node *n)
{
	struct node *l = n->left, *r = n->right;

	if (l->kind == N_AGG) {
		check_aggregate(n);
		return;
	}
	check_place(l);
	check_expression(r);
	if (n->op == 0 && r->kind == N_XLATE && type_is_struct(r->type))
		expand_value(r);
	if (r->kind == N_XLATE)
		dt_error(n->at, "D_XLATE_DYN",
			 "what a translator makes cannot be stored; store its members");
	if (l->var != NULL && l->var->type == NULL) {
		enum type_kind kind = type_base(r->type)->kind;

		if (kind == T_VOID || kind == T_FUNCTION || kind == T_STACK)
			dt_error(n->at, n->op == 0 ? "D_OP_INCOMPAT" : "D_VAR_UNDEF",
				 "operator =: a value of type %s cannot be stored",
				 type_text(r->type));
		bool null = r->constant && r->text != NULL && strcmp(r->text, "NULL") == 0;

		l->type = l->var->type = null ? type_pointer(type_void) : check_held(r);
		check_variable_size(l->at, l->var);
	}
	check_expression(l);
	if (!check_is_place(l))
		dt_error(n->at, "D_OP_LVAL",
			 "operator =: found no variable on its left side, expected one");
	if (!check_is_writable(l))
		dt_error(
		    n->at, "D_OP_WRITE",
		    "operator = can only be applied to a writable variable; D does not write the kernel's memory");
	if (type_base(l->type)->kind == T_ARRAY)
		dt_error(n->at, "D_OP_ARRFUN",
			 "operator =: an array cannot be assigned as a whole");
	n->type = l->type;
	if (n->op != 0) {
		/* x op= y is x = x op y: code that finds the place runs twice. */
		n->right = r = node_op(N_BINARY, n->op, n->at, l, r);
		check_expression(r);
	}
	/* A struct in an array's element or a thread's variable may be set to 0: that frees its
	 * memory. */
	if (type_is_struct(l->type) && check_is_null(r) && l->var != NULL &&
	    (l->kind == N_INDEX ? l->var->is_array : l->kind == N_NAME && l->scope == SCOPE_SELF))
		return;
	if (!check_fits(r, l->type))
		dt_error(n->at, "D_OP_INCOMPAT",
			 "operator =: operands have incompatible types: %s = %s",
			 type_text(l->type), type_text(r->type));
}
