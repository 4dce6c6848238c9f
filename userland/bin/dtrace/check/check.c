/*
 * check.c - the types of expressions: names, arrays, members.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"

#define MAX_DEPTH 2000 /* of a tree once inlines and translators are what they stand for */

unsigned check_depth;

/* ---- names ---- */

void
check_constant(struct node *n, struct type *type, uint64_t value)
{
	n->kind = N_INT;
	n->type = type;
	n->value = check_cut(type, value);
	n->constant = true;
	n->left = n->right = n->third = NULL;
}

void
check_variable_size(struct place at, const struct variable *v)
{
	if (v->type != NULL && type_base(v->type)->size > 4096)
		dt_error(at, "D_DECL_ARRBIG",
			 "%s: found %u bytes, expected at most 4096 for a variable", v->name,
			 type_base(v->type)->size);
}

static void
check_name(struct node *n)
{
	struct type *type;
	int64_t value;
	struct inline_def *def = n->scope == SCOPE_GLOBAL ? expand_find(n->text, false) : NULL;
	struct variable *v;

	if (def != NULL) {
		expand_inline(n, def, NULL);
		return;
	}
	v = ident_find(n->scope, n->text);
	if (v == NULL && n->scope == SCOPE_GLOBAL &&
	    type_enumerator(n->text, false, &type, &value)) {
		check_constant(n, type_int, (uint64_t)value);
		return;
	}
	if (v == NULL && n->scope == SCOPE_GLOBAL && strcmp(n->text, "NULL") == 0) {
		check_constant(n, type_int, 0);
		return;
	}
	if (v == NULL && n->scope == SCOPE_GLOBAL &&
	    (ident_function(n->text) != NULL || expand_find(n->text, true) != NULL ||
	     strcmp(n->text, "args") == 0 || strcmp(n->text, "uregs") == 0))
		dt_error(n->at, "D_IDENT_BADREF",
			 "%s: found only its name, expected arguments after it", n->text);
	if (v == NULL)
		v = ident_add(n->scope, n->text, NULL);
	if (v->builtin)
		ident_check_recorded(n->at, n->text);
	if (v->is_array)
		dt_error(n->at, "D_IDENT_BADREF", "%s is an array: expected a key in [ ] after it",
			 ident_text(v));
	stable_use(n->at, ident_text(v), stable_of_name(n->text));
	check_count_time(v);
	n->var = v;
	n->type = v->type;
	check_variable_size(n->at, v);
}

static void
check_extern(struct node *n)
{
	const char *tick = strchr(n->text, '`'), *name = tick != NULL ? tick + 1 : n->text;
	struct type *type;

	if (!symbol_find(name, &n->value, &type))
		dt_error(n->at, "D_IDENT_UNDEF", "`%s: the kernel has no such symbol", name);
	if (type == NULL)
		dt_error(n->at, "D_SYM_NOTYPES", "`%s: the type of this symbol is not known", name);
	stable_use(n->at, n->text, stable_private);
	n->type = type;
}

/* ---- arrays and members ---- */

/* args[n] */
static void
check_args(struct node *n)
{
	struct type *type, *to;
	struct node *value;
	const char *xlate;
	uint64_t number;

	check_expression(n->right);
	if (!type_is_integer(n->right->type))
		dt_error(n->right->at, "D_PROTO_ARG",
			 "args[ ]: found %s, expected an integer constant",
			 type_text(n->right->type));
	if (!n->right->constant || n->right->next != NULL || (int64_t)n->right->value < 0)
		dt_error(n->right->at, "D_ARGS_IDX",
			 "args[ ]: expected one integer constant as index");
	number = n->right->value;
	type = check_argument(n->at, number, &xlate);
	to = xlate != NULL ? type_by_text(xlate) : type;
	if (to == NULL || (!type_same(type, to) && expand_translator(type, to) == NULL))
		dt_error(n->at, "D_ARGS_XLATOR", "args[%u]: there is no translator from %s to %s",
			 (unsigned)number, type_text(type), xlate);
	value = node_typed(N_CAST, type, node_name(dt_format("arg%u", (unsigned)number), n->at));
	if (!type_same(type, to))
		value = node_typed(N_XLATE, to, value);
	check_expression(value);
	check_replace(n, value);
}

static void
check_pointer_index(struct node *n)
{
	struct type *array = type_base(n->left->type);

	if (n->right->next != NULL)
		dt_error(n->at, "D_ARR_BADREF", "an array of C has one index; found more");
	if (array->kind == T_ARRAY && n->right->constant && array->count > 1 &&
	    n->right->value >= array->count)
		dt_error(n->at, "D_ARR_BOUNDS", "found index %ld, but the array has %u elements",
			 (long)n->right->value, array->count);
	n->kind = N_UNARY;
	n->op = '*';
	n->left = node_op(N_BINARY, '+', n->at, n->left, n->right);
	n->right = NULL;
	check_unary(n);
}

void
check_keys_of(struct node *keys)
{
	for (; keys != NULL; keys = keys->next) {
		if (keys->kind == N_AGG)
			dt_error(keys->at, "D_KEY_TYPE", "@%s: an aggregation cannot be a key",
				 keys->text);
		check_expression(keys);
	}
}

static void
check_index(struct node *n)
{
	struct node *name = n->left;
	struct variable *v;
	struct inline_def *def;

	if (name->kind == N_NAME) {
		if (name->scope == SCOPE_GLOBAL && strcmp(name->text, "args") == 0) {
			check_args(n);
			return;
		}
		if (name->scope == SCOPE_GLOBAL && strcmp(name->text, "uregs") == 0) {
			ident_check_recorded(name->at, name->text);
			check_expression(n->right);
			n->var = NULL;
			n->type = type_ulong;
			return;
		}
		def = name->scope == SCOPE_GLOBAL ? expand_find(name->text, true) : NULL;
		if (def != NULL) {
			expand_inline(n, def, n->right);
			return;
		}
		v = ident_find(name->scope, name->text);
		if (v == NULL && name->scope == SCOPE_THIS)
			dt_error(n->at, "D_ARR_LOCAL",
				 "this->%s: variables of a clause cannot be associative arrays",
				 name->text);
		bool is_inline = v == NULL && name->scope == SCOPE_GLOBAL &&
				 expand_find(name->text, false) != NULL;
		if (!is_inline && (v == NULL || (v->is_array && !v->builtin))) {
			check_keys_of(n->right);
			if (v == NULL) {
				v = ident_add(name->scope, name->text, NULL);
				v->is_array = true;
			}
			check_keys(n->at, ident_text(v), n->right, &v->keys, &v->key_count,
				   v->key_count == 0, NULL);
			n->var = v;
			n->type = v->type;
			check_variable_size(n->at, v);
			return;
		}
	}
	if (name->kind == N_AGG)
		dt_error(n->at, "D_AGG_MDIM", "@%s: expected all keys in one [ ]", name->text);
	check_expression(n->left);
	check_keys_of(n->right);
	check_pointer_index(n);
}

static void
check_member(struct node *n)
{
	struct type *type;

	check_expression(n->left);
	if (n->left->kind == N_XLATE) {
		expand_member(n);
		return;
	}
	type = type_base(n->left->type);
	if (n->op == '>') {
		if (dt_recorded && n->left->kind == N_CAST && type_is_integer(type))
			dt_error(n->at, "D_RECORDED",
				 "-> %s: found %s, and no structure of it is in a recorded trace",
				 n->text, type_text(n->left->type));
		if (type->kind != T_POINTER && type->kind != T_ARRAY)
			dt_error(n->at, "D_OP_PTR", "-> %s: found %s before it, expected a pointer",
				 n->text, type_text(n->left->type));
		type = type_base(type->to);
	}
	if (!type_is_struct(type))
		dt_error(n->at, "D_OP_SOU",
			 "%s %s: found %s before it, expected a struct or union%s",
			 n->op == '>' ? "->" : ".", n->text, type_text(n->left->type),
			 n->op == '>' ? "'s address" : "");
	if (!type->complete && type_members(type) == NULL)
		dt_error(n->at, "D_OP_INCOMPLETE", "%s is not defined", type_text(type));
	if (!type_member(type, n->text, &n->member))
		dt_error(n->at, "D_TYPE_MEMBER", "%s has no member %s", type_text(type), n->text);
	n->type = n->member.type;
}

static void
check_sizeof(struct node *n)
{
	struct type *type = n->type;

	if (type == NULL) {
		if (n->left->kind == N_STRING) { /* as an array of char */
			check_constant(n, type_ulong, n->left->size + 1);
			return;
		}
		check_expression(n->left);
		type = n->left->type;
		if (n->left->kind == N_MEMBER && n->left->member.bits != 0)
			dt_error(n->at, "D_SIZEOF_BITFIELD",
				 "sizeof cannot be applied to a bit-field");
	}
	type = type_base(type);
	if (type->kind == T_STRING)
		type = type_array(type_char, dt_strsize);
	if ((type->kind != T_ARRAY && type->size == 0) || type->kind == T_FUNCTION ||
	    (type_is_struct(type) && !type->complete && type->size == 0))
		dt_error(n->at, "D_SIZEOF_TYPE", "%s has no size", type_text(type));
	check_constant(n, type_ulong, type->size);
}

_Noreturn static void
check_aggregation(struct node *n)
{
	dt_error(n->at, "D_AGG_REF",
		 "@%s: an aggregation has no value; only = and functions like printa use it",
		 n->text);
}

void
check_place(struct node *n)
{
	static void (*const checks[])(struct node *) = {
	    [N_NAME] = check_name,     [N_EXTERN] = check_extern,  [N_AGG] = check_aggregation,
	    [N_UNARY] = check_unary,   [N_POSTFIX] = check_step,   [N_BINARY] = check_binary,
	    [N_ASSIGN] = check_assign, [N_COND] = check_condition, [N_COMMA] = check_comma,
	    [N_CAST] = check_cast,     [N_SIZEOF] = check_sizeof,  [N_STRINGOF] = check_stringof,
	    [N_MEMBER] = check_member, [N_INDEX] = check_index,    [N_CALL] = check_call,
	    [N_XLATE] = expand_xlate,
	};

	if (n->checked)
		return;
	if (++check_depth > MAX_DEPTH)
		dt_error(n->at, "D_SYNTAX",
			 "more than %d operators are nested here, with those of "
			 "inlines and translators",
			 MAX_DEPTH);
	n->checked = true;
	n->constant |= n->kind == N_INT;
	if (n->kind == N_STRING)
		n->type = type_string;
	else if (n->kind != N_INT)
		checks[n->kind](n);
	n->checked = true;
	check_depth--;
}

void
check_expression(struct node *n)
{
	check_place(n);
	if (n->type == NULL) {
		if (n->var != NULL && n->var->scope == SCOPE_GLOBAL && !n->var->is_array)
			dt_error(n->at, "D_IDENT_UNDEF",
				 "failed to resolve %s: unknown variable name%s", n->text,
				 ident_suggest_variable(n->text));
		if (n->var != NULL)
			dt_error(n->at, "D_VAR_UNDEF", "%s has not yet been declared or assigned",
				 ident_text(n->var));
		dt_error(n->at, "D_SYNTAX", "this has no value");
	}
}
