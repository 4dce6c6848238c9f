/*
 * check_unary.c - the types of operators with one operand; what may be written.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"

bool
check_is_place(struct node *n)
{
	return n->kind == N_NAME || n->kind == N_EXTERN || n->kind == N_MEMBER ||
	       (n->kind == N_INDEX && n->var != NULL) || (n->kind == N_UNARY && n->op == '*');
}

static bool is_scratch(struct node *n);

/* The variable or memory that a place is in may be written. */
bool
check_is_writable(struct node *n)
{
	switch (n->kind) {
	case N_NAME:
	case N_INDEX:
		return n->var != NULL && !n->var->builtin;
	case N_MEMBER:
		return n->op == '.' ? check_is_writable(n->left) : is_scratch(n->left);
	case N_UNARY:
		return n->op == '*' && is_scratch(n->left);
	default:
		return false;
	}
}

/* May the value be an address of the program's own memory? Only the kernel knows for sure. */
static bool
is_scratch(struct node *n)
{
	switch (n->kind) {
	case N_NAME:
	case N_INDEX:
		return check_is_writable(n);
	case N_CALL:
		return true;
	case N_CAST:
		return n->left->kind != N_INT && is_scratch(n->left);
	case N_BINARY:
		return is_scratch(n->left);
	case N_UNARY:
		return (n->op == '&' || n->op == '*') && is_scratch(n->left);
	case N_MEMBER:
		return is_scratch(n->left);
	default:
		return false;
	}
}

void
check_step(struct node *n)
{
	struct node *l = n->left;

	check_place(l);
	if (l->type == NULL && l->var != NULL) /* ++ of a variable that is not known yet */
		l->type = l->var->type = type_long;
	check_expression(l);
	if (!check_is_place(l))
		dt_error(n->at, "D_OP_LVAL", "operator %s: found no variable, expected one",
			 check_op_text(n->op));
	if (!check_is_writable(l))
		dt_error(n->at, "D_OP_WRITE",
			 "operator %s can only be applied to a writable variable",
			 check_op_text(n->op));
	if (!type_is_scalar(l->type))
		dt_error(n->at, "D_OP_SCALAR",
			 "operator %s: found %s, expected an integer or a pointer",
			 check_op_text(n->op), type_text(l->type));
	n->type = l->type;
}

static void
check_address(struct node *n)
{
	struct node *l = n->left;

	if (l->kind == N_AGG)
		dt_error(n->at, "D_ADDROF_VAR", "operator &: an aggregation has no address");
	check_expression(l);
	if (!check_is_place(l))
		dt_error(n->at, "D_ADDROF_LVAL",
			 "operator &: found no variable or memory, expected one");
	if (l->kind == N_MEMBER && l->member.bits != 0)
		dt_error(n->at, "D_ADDROF_BITFIELD", "operator &: a bit-field has no address");
	if (l->kind == N_NAME || l->kind == N_INDEX)
		dt_error(n->at, "D_ADDROF_VAR",
			 "operator &: %s is a variable of D, which has no address",
			 l->var != NULL ? ident_text(l->var) : "this");
	n->type = type_pointer(l->type);
}

void
check_unary(struct node *n)
{
	struct node *l = n->left;
	uint64_t v;

	if (n->op == OP2('+', '+') || n->op == OP2('-', '-')) {
		check_step(n);
		return;
	}
	if (n->op == '&') {
		check_address(n);
		return;
	}
	check_expression(l);
	if (n->op == '*') {
		check_characters(&n->left);
		l = n->left;
		if (!check_is_pointer(l))
			dt_error(n->at, "D_DEREF_NONPTR",
				 "operator *: found %s, expected a pointer", type_text(l->type));
		n->type = type_base(l->type)->to;
		if (l->kind == N_XLATE) {
			l->type = n->type;
			check_replace(n, l);
			return;
		}
		if (type_base(n->type)->kind == T_VOID)
			dt_error(n->at, "D_DEREF_VOID",
				 "operator *: found a pointer to void; cast it first");
		return;
	}
	if (n->op == '!' ? !check_is_scalar(l) : !type_is_integer(l->type))
		dt_error(n->at,
			 n->op == '!'                              ? "D_OP_SCALAR"
			 : n->op == '~' || type_is_scalar(l->type) ? "D_OP_INT"
								   : "D_OP_ARITH",
			 "operator %s: found %s, expected an integer", check_op_text(n->op),
			 type_text(l->type));
	n->type = n->op == '!' ? type_int : check_promoted(l->type);
	if (!l->constant)
		return;
	v = l->value;
	check_computed(n, n->type,
		       n->op == '!'   ? v == 0
		       : n->op == '~' ? ~v
		       : n->op == '-' ? 0 - v
				      : v);
}
