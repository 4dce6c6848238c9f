/*
 * check_call.c - functions, actions and aggregations: are their arguments what they take?
 */
#include <string.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"

static unsigned
count(const struct node *list)
{
	unsigned n = 0;

	for (; list != NULL; list = list->next)
		n++;
	return n;
}

/* ---- keys ---- */

static struct member *
keys_of(struct node *keys)
{
	struct member *first = NULL, **last = &first;

	for (; keys != NULL; keys = keys->next) {
		*last = dt_alloc(sizeof(**last));
		(*last)->name = "";
		(*last)->type = check_is_string(keys) ? type_string : check_held(keys);
		last = &(*last)->next;
	}
	return first;
}

static bool
key_fits(struct node *key, struct type *type)
{
	if (type_base(type)->kind == T_STACK)
		return type_base(key->type)->kind == T_STACK;
	return check_fits(key, type) || (type_is_scalar(key->type) && type_is_scalar(type));
}

void
check_keys(struct place at, const char *what, struct node *keys, struct member **known,
	   unsigned *key_count, bool first, const char *tag)
{
	struct member *m;
	unsigned n = 1;

	for (struct node *k = keys; k != NULL; k = k->next) {
		enum type_kind kind = type_base(k->type)->kind;

		if (kind == T_VOID || kind == T_STRUCT || kind == T_UNION || kind == T_FUNCTION ||
		    (kind == T_STACK && strcmp(tag, "D_KEY_TYPE") != 0))
			dt_error(k->at, tag, "%s[ ]: a value of type %s cannot be a key", what,
				 type_text(k->type));
	}
	if (count(keys) > DIF_MAX_KEYS)
		dt_error(at, tag, "%s[ ]: found %u keys, expected at most %u", what, count(keys),
			 DIF_MAX_KEYS);
	if (first) {
		*known = keys_of(keys);
		*key_count = count(keys);
		return;
	}
	if (count(keys) != *key_count)
		dt_error(at, tag, "%s[ ] prototype mismatch: found %u keys, expected %u", what,
			 count(keys), *key_count);
	for (m = *known; m != NULL; m = m->next, keys = keys->next, n++) {
		if (!key_fits(keys, m->type))
			dt_error(
			    keys->at, tag,
			    "%s[ ] key #%u is incompatible with its prototype: found %s, expected %s",
			    what, n, type_text(keys->type), type_text(m->type));
	}
}

/* ---- arguments ---- */

/* Is the argument what the letter of a function's arguments stands for? */
static bool
is_accepted(char letter, struct node *arg)
{
	if (letter == '@' || arg->kind == N_AGG)
		return letter == '*' || (letter == '@' && arg->kind == N_AGG);
	switch (letter) {
	case 'i':
		return type_is_scalar(arg->type);
	case 'p':
		return check_is_scalar(arg) || check_is_string(arg);
	case 's':
		return type_is_stringlike(arg->type);
	case 'n':
		return type_is_stringlike(arg->type) || check_is_null(arg);
	case 'l':
		return arg->constant && type_is_integer(arg->type);
	case 'f':
		return arg->kind == N_STRING;
	default:
		return type_base(arg->type)->kind != T_VOID && arg->kind != N_XLATE;
	}
}

/* An aggregation as an argument: only its name. */
static void
check_reference(struct node *n)
{
	if (n->left != NULL)
		dt_error(n->at, "D_AGG_REF", "@%s: expected the aggregation without keys here",
			 n->text);
	n->agg = ident_aggregation(n->text, n->at);
	n->type = type_void;
	n->checked = true;
}

static void
check_arguments(struct node *n, const struct function *f)
{
	static const char *const words[] = {['i'] = "an integer",
					    ['p'] = "a pointer or an integer",
					    ['s'] = "a string",
					    ['n'] = "a string",
					    ['l'] = "an integer constant",
					    ['f'] = "a string constant",
					    ['@'] = "an aggregation",
					    ['x'] = "a value"};
	const char *letters = f->args;
	bool optional = false;
	unsigned number = 1;

	for (struct node *arg = n->left; arg != NULL; arg = arg->next, number++) {
		if (arg->kind == N_AGG)
			check_reference(arg);
		else
			check_expression(arg);
		if (*letters == '?')
			letters++, optional = true;
		if (*letters == '*')
			continue;
		if (*letters == '\0')
			dt_error(arg->at, "D_PROTO_LEN",
				 "%s( ) prototype mismatch: found %u arguments, expected %s%u",
				 f->name, count(n->left), optional ? "at most " : "", number - 1);
		if (!is_accepted(*letters, arg))
			dt_error(
			    arg->at, "D_PROTO_ARG",
			    "%s( ) argument #%u is incompatible with its prototype: found %s, expected %s",
			    f->name, number,
			    arg->kind == N_AGG ? "an aggregation" : type_text(arg->type),
			    words[(unsigned char)*letters]);
		letters++;
	}
	if (!optional && *letters != '\0' && *letters != '?' && *letters != '*')
		dt_error(n->at, "D_PROTO_LEN",
			 "%s( ) prototype mismatch: found %u arguments, expected %s as #%u",
			 f->name, number - 1, words[(unsigned char)*letters], number);
}

/* Stand for the keys of an aggregation: their types. */
static struct node *
key_nodes(struct node *call, const struct aggregation *a)
{
	struct node *list = NULL, **last = &list;

	for (struct member *m = a->keys; m != NULL; m = m->next, last = &(*last)->next) {
		*last = node_new(N_NAME, call->at);
		(*last)->type = m->type;
	}
	return list;
}

/* printa(format, @a, ...) or printa(@a) */
static void
check_printa(struct node *n)
{
	struct node *arg = n->left;
	struct aggregation *first = NULL;

	const char *format = NULL;

	if (arg != NULL && arg->kind == N_STRING) {
		format = arg->text;
		arg = arg->next;
	}
	if (arg == NULL)
		dt_error(n->at, "D_PRINTA_PROTO", "printa( ): found no aggregation, expected one");
	for (; arg != NULL; arg = arg->next) {
		if (arg->kind != N_AGG)
			dt_error(arg->at, "D_PRINTA_AGGARG",
				 "printa( ): found %s, expected an aggregation",
				 type_text(arg->type));
		if (arg->agg->function == NULL)
			dt_error(arg->at, "D_AGG_UNDEF", "undefined aggregation: @%s", arg->text);
		if (first == NULL)
			first = arg->agg;
		if (arg->agg->key_count != first->key_count)
			dt_error(arg->at, "D_PRINTA_AGGKEY",
				 "printa( ): @%s has %u keys, but @%s has %u", arg->text,
				 arg->agg->key_count, first->name, first->key_count);
		for (struct member *a = arg->agg->keys, *b = first->keys; a != NULL && b != NULL;
		     a = a->next, b = b->next) {
			if (!type_same(a->type, b->type))
				dt_error(arg->at, "D_PRINTA_AGGKEY",
					 "printa( ): @%s has a key of type %s, but @%s of type %s",
					 arg->text, type_text(a->type), first->name,
					 type_text(b->type));
		}
	}
	if (format != NULL)
		format_check(n, format, key_nodes(n, first), true);
}

static struct type *
result_of(const struct function *f)
{
	if (f->result == NULL)
		return type_void;
	if (f->kind == F_ACTION && strcmp(f->result, "stack") == 0)
		return type_stack;
	if (f->kind == F_ACTION && strcmp(f->result, "ustack") == 0)
		return type_ustack;
	return type_by_text(f->result);
}

void
check_call(struct node *n)
{
	const struct function *f = ident_function(n->text);

	if (f == NULL && strcmp(n->text, "tstamp") == 0 && n->left == NULL) {
		n->text = "trace"; /* of the time */
		n->left = node_name("timestamp", n->at);
		f = ident_function(n->text);
	}
	if (f == NULL && expand_find(n->text, true) != NULL) {
		expand_inline(n, expand_find(n->text, true), n->left);
		return;
	}
	if (f == NULL)
		dt_error(n->at, "D_FUNC_UNDEF", "undefined function name: %s", n->text);
	if (f->kind == F_AGG)
		dt_error(n->at, "D_AGG_FUNC",
			 "%s( ) is an aggregating function: expected @name = %s(...)", f->name,
			 f->name);
	check_arguments(n, f);
	n->function = f;
	n->type = result_of(f);
	if (*f->args == 'f')
		format_check(n, n->left->text, n->left->next, false);
	if (f->does & DO_PRINTA)
		check_printa(n);
	if (*f->args == '@' && n->left->agg->function == NULL)
		dt_error(n->left->at, "D_AGG_UNDEF", "undefined aggregation: @%s", n->left->text);
	if ((f->does & DO_DESTROY) && !dt_destructive)
		dt_error(n->at, "D_DESTRUCTIVE", "%s( ) changes the system: it needs the option -w",
			 f->name);
}

/* ---- aggregations ---- */

/* Constants of lquantize() and llquantize(): what the kernel accepts (kernel/abi/dif.h). */
static void
check_levels(struct node *n, const struct function *f, int64_t p[4])
{
	struct node *arg = n->left->next;
	unsigned max = f->code == DIF_LQUANTIZE ? 3 : f->code == DIF_LLQUANTIZE ? 4 : 0;

	memset(p, 0, 4 * sizeof(p[0]));
	for (unsigned i = 0; i < max && arg != NULL; i++, arg = arg->next)
		p[i] = (int64_t)arg->value;
	if (f->code == DIF_LQUANTIZE) {
		p[2] = n->left->next->next->next == NULL ? 1 : p[2];
		if (p[0] >= p[1])
			dt_error(
			    n->at, "D_LQUANT_BASEVAL",
			    "lquantize( ): found base %ld and limit %ld, expected base < limit",
			    (long)p[0], (long)p[1]);
		if (p[2] <= 0)
			dt_error(n->at, "D_LQUANT_STEPVAL",
				 "lquantize( ): found step %ld, expected at least 1", (long)p[2]);
		if ((p[1] - p[0]) / p[2] == 0)
			dt_error(n->at, "D_LQUANT_STEPLARGE",
				 "lquantize( ): found step %ld, expected at most %ld", (long)p[2],
				 (long)(p[1] - p[0]));
		if ((p[1] - p[0]) / p[2] > 1024)
			dt_error(n->at, "D_LQUANT_STEPSMALL",
				 "lquantize( ): found %ld levels, expected at most 1024",
				 (long)((p[1] - p[0]) / p[2]));
	}
	if (f->code == DIF_LLQUANTIZE) {
		if (p[0] < 2)
			dt_error(n->at, "D_LLQUANT_FACTORSMALL",
				 "llquantize( ): found factor %ld, expected at least 2",
				 (long)p[0]);
		if (p[1] < 0 || p[1] > p[2])
			dt_error(
			    n->at, "D_LLQUANT_MAGRANGE",
			    "llquantize( ): found magnitudes %ld to %ld, expected an ascending range",
			    (long)p[1], (long)p[2]);
		if (p[3] <= 0 || p[3] % p[0] != 0)
			dt_error(
			    n->at, "D_LLQUANT_FACTORNSTEPS",
			    "llquantize( ): found %ld steps, expected a multiple of the factor %ld",
			    (long)p[3], (long)p[0]);
	}
}

void
check_aggregate(struct node *n)
{
	struct node *l = n->left, *r = n->right;
	const struct function *f = r->kind == N_CALL ? ident_function(r->text) : NULL;
	struct aggregation *a;
	int64_t p[4];
	bool first;

	if (n->op != 0)
		dt_error(n->at, "D_AGG_OP", "@%s: only = can be applied to an aggregation",
			 l->text);
	if (f == NULL || f->kind != F_AGG)
		dt_error(r->at, "D_AGG_FUNC",
			 "@%s: expected an aggregating function after =, as count()", l->text);
	for (struct node *k = l->left; k != NULL; k = k->next)
		check_expression(k);
	check_arguments(r, f);
	memset(p, 0, sizeof(p));
	if (r->left != NULL)
		check_levels(r, f, p);
	a = ident_aggregation(l->text, l->at);
	first = a->function == NULL;
	if (!first && a->function != f)
		dt_error(n->at, "D_AGG_REDEF",
			 "aggregation redefined: @%s: found %s( ), expected %s( ) as on line %u",
			 l->text, f->name, a->function->name, a->at.line);
	if (!first && memcmp(p, a->p, sizeof(p)) != 0)
		dt_error(n->at, "D_AGG_REDEF", "@%s: %s( ) has other limits than on line %u",
			 l->text, f->name, a->at.line);
	check_keys(n->at, dt_format("@%s", l->text), l->left, &a->keys, &a->key_count, first,
		   "D_KEY_TYPE");
	a->function = f;
	memcpy(a->p, p, sizeof(p));
	l->agg = a;
	l->checked = true;
	r->function = f;
	r->type = l->type = n->type = type_void;
}
