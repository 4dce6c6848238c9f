/*
 * check_call.c - functions, actions and aggregations: are their arguments what they take?
 */
#include <string.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/record.h"

static unsigned
count(const struct node *list)
{
	unsigned n = 0;

	for (; list != NULL; list = list->next)
		n++;
	return n;
}

/* ---- keys ---- */

bool
check_is_user_symbol(const struct node *n)
{
	return n->kind == N_CALL && n->function->show >= SHOW_USYM;
}

static struct member *
keys_of(struct node *keys)
{
	struct member *first = NULL, **last = &first;

	for (; keys != NULL; keys = keys->next) {
		*last = dt_alloc(sizeof(**last));
		(*last)->name = "";
		(*last)->type = type_is_bytes(keys->type) ? keys->type : check_held(keys);
		if (type_is_text(keys->type))
			(*last)->type = type_string;
		(*last)->offset = check_is_user_symbol(keys);
		last = &(*last)->next;
	}
	return first;
}

/* The engine's keys: bytes are as many as they have words, an address of a program two. */
void
check_key_size(struct place at, const char *what, const struct member *m)
{
	unsigned n = 0;

	for (; m != NULL; m = m->next)
		n += type_is_bytes(m->type) ? (type_base(m->type)->size + 7) / 8 : 1 + m->offset;
	if (n > DIF_MAX_KEYS)
		dt_error(at, "D_KEY_TYPE", "%s[ ]: the keys are too large", what);
}

static bool
key_fits(struct node *key, struct type *type)
{
	if (type_base(type)->kind == T_STACK)
		return key->type == type; /* the kernel's, or the process's */
	/* A text, bytes, or a value, as an address. */
	if (type_is_text(key->type) != type_is_text(type) ||
	    type_is_bytes(key->type) != type_is_bytes(type))
		return false;
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

		if (kind == T_VOID || k->kind == N_XLATE || kind == T_FUNCTION ||
		    (tag == NULL && (kind == T_STACK || check_is_user_symbol(k))))
			dt_error(k->at, "D_KEY_TYPE", "%s[ ]: a value of type %s cannot be a key",
				 what, type_text(k->type));
	}
	if (count(keys) > DIF_MAX_KEYS)
		dt_error(at, "D_PROTO_LEN", "%s[ ]: found %u keys, expected at most %u", what,
			 count(keys), DIF_MAX_KEYS);
	if (first) {
		*known = keys_of(keys);
		*key_count = count(keys);
		check_key_size(at, what, *known);
		return;
	}
	if (count(keys) != *key_count)
		dt_error(at, tag != NULL ? tag : "D_PROTO_LEN",
			 "%s[ ] prototype mismatch: found %u keys, expected %u", what, count(keys),
			 *key_count);
	for (m = *known; m != NULL; m = m->next, keys = keys->next, n++)
		if (!key_fits(keys, m->type) || m->offset != check_is_user_symbol(keys))
			dt_error(
			    keys->at, tag != NULL ? tag : "D_PROTO_ARG",
			    "%s[ ] key #%u is incompatible with its prototype: found %s, expected %s",
			    what, n, type_text(keys->type), type_text(m->type));
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
		return check_is_scalar(arg);
	case 'm':
		return check_is_scalar(arg) || check_is_string(arg);
	case 'a':
		return check_is_pointer(arg);
	case 's':
		return type_is_stringlike(arg->type) || check_is_null(arg);
	case 'l':
		return arg->constant && type_is_integer(arg->type);
	case 'c':
		return arg->constant && type_is_integer(arg->type) && (int64_t)arg->value > 0;
	case 'z':
		return arg->constant && type_is_integer(arg->type) && (int64_t)arg->value >= 0;
	case 'f':
		return arg->kind == N_STRING;
	default:
		return type_base(arg->type)->kind != T_VOID && arg->kind != N_XLATE;
	}
}

/* Checks an aggregation as an argument: only its name may be there. */
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

/* The tag of what is wrong with an argument, which may be an aggregation. */
static const char *
tag_of(const struct function *f, char letter, unsigned number, struct node *arg)
{
	const char *tag = f->tags != NULL ? f->tags : "";

	if (arg->kind == N_AGG && f->code == ACT_TRACE && f->kind == F_ACTION)
		return "D_TRACE_DYN";
	if (letter == 'x' && arg->kind == N_XLATE)
		return f->code == ACT_TRACE ? "D_TRACE_DYN" : "D_PRINT_DYN";
	if (arg->kind != N_AGG && ((strchr("lc", letter) != NULL && !type_is_integer(arg->type)) ||
				   (letter == 'f' && type_base(arg->type)->kind != T_STRING)))
		return "D_PROTO_ARG"; /* it has not even the type */
	for (; number > 1 && *tag != '\0'; number--)
		tag += strcspn(tag, " "), tag += *tag == ' ';
	return *tag != '\0' ? dt_strndup(tag, strcspn(tag, " ")) : "D_PROTO_ARG";
}

static void
check_arguments(struct node *n, const struct function *f)
{
	static const char *const words[] = {['i'] = "an integer",
					    ['p'] = "a pointer or an integer",
					    ['m'] = "a pointer, an integer or a string",
					    ['a'] = "the address of memory",
					    ['s'] = "a string",
					    ['z'] = "an integer constant, 0 or above",
					    ['l'] = "an integer constant",
					    ['c'] = "an integer constant above 0",
					    ['f'] = "a string constant",
					    ['@'] = "an aggregation",
					    ['x'] = "a value"};
	const char *letters = f->args, *given = strpbrk(letters, "?*");
	unsigned number = 1, found = count(n->left),
		 most = (unsigned)strlen(letters) - (given != NULL),
		 least = given != NULL ? (unsigned)(given - letters) : most;

	if (found < least || (found > most && strchr(letters, '*') == NULL))
		dt_error(n->at, "D_PROTO_LEN",
			 "%s( ) prototype mismatch: found %u arguments, expected %s%u", f->name,
			 found,
			 least == most   ? ""
			 : found < least ? "at least "
					 : "at most ",
			 found < least ? least : most);
	for (struct node *arg = n->left; arg != NULL; arg = arg->next, number++) {
		letters += *letters == '?';
		if (arg->kind == N_AGG)
			check_reference(arg);
		else if (*letters == '@')
			arg->type = type_void; /* whatever it is */
		else
			check_expression(arg);
		if (*letters == '*')
			continue;
		if (*letters == 'x' && arg->kind == N_XLATE && type_is_struct(arg->type))
			expand_value(arg);
		if (!is_accepted(*letters, arg))
			dt_error(
			    arg->at, tag_of(f, *letters, number, arg),
			    "%s( ) argument #%u is incompatible with its prototype: found %s, expected %s",
			    f->name, number,
			    arg->kind == N_AGG ? "an aggregation"
			    : *letters == '@'  ? "an expression"
					       : type_text(arg->type),
			    words[(unsigned char)*letters]);
		letters++;
	}
}

/* Makes a node for each key of an aggregation. It has the type of the key, and nothing else. */
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
		dt_error(n->at, n->left == NULL ? "D_PROTO_LEN" : "D_PRINTA_PROTO",
			 "printa( ): found no aggregation, expected one");
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
				dt_error(arg->at, "D_PRINTA_AGGPROTO",
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
		dt_error(n->at, "D_FUNC_UNDEF", "undefined function name: %s%s", n->text,
			 ident_suggest_function(n->text));
	if (f->kind == F_AGG)
		dt_error(n->at, "D_AGG_FUNC",
			 "%s( ) is an aggregating function: expected @name = %s(...)", f->name,
			 f->name);
	ident_check_recorded(n->at, f->name);
	check_arguments(n, f);
	n->function = f;
	n->type = result_of(f);
	if (*f->args == 'f')
		format_check(n, n->left->text, n->left->next, false);
	if (f->does & DO_PRINTA)
		check_printa(n);
	if (*f->args == '@' && n->left->agg->function == NULL)
		dt_error(n->left->at, "D_AGG_UNDEF", "undefined aggregation: @%s", n->left->text);
	if ((f->does & DO_DESTROY) && dt_destroys == NULL)
		dt_destroys = n;
}

/* ---- aggregations ---- */

/*
 * The limits of lquantize()'s and llquantize()'s arguments, which are constants; and the tags of
 * errors: if one is out of its limits, differs from that of an earlier use, or has a wrong type.
 */
static const struct limit {
	uint8_t code;
	int64_t from, to;
	const char *name, *tag, *match, *type;
} limits[] = {
    {DIF_LQUANTIZE, INT32_MIN, INT32_MAX, "base", "D_LQUANT_BASEVAL", "D_LQUANT_MATCHBASE", NULL},
    {DIF_LQUANTIZE, INT32_MIN, INT32_MAX, "limit", "D_LQUANT_LIMVAL", "D_LQUANT_MATCHLIM", NULL},
    {DIF_LQUANTIZE, 1, UINT16_MAX, "step", "D_LQUANT_STEPVAL", "D_LQUANT_MATCHSTEP",
     "D_LQUANT_STEPTYPE"},
    {DIF_LLQUANTIZE, 2, UINT16_MAX, "factor", "D_LLQUANT_FACTORVAL", "D_LLQUANT_MATCHFACTOR", NULL},
    {DIF_LLQUANTIZE, 0, UINT16_MAX, "low magnitude", "D_LLQUANT_LMAGVAL", "D_LLQUANT_MATCHLMAG",
     NULL},
    {DIF_LLQUANTIZE, 0, 62, "high magnitude", "D_LLQUANT_HMAGVAL", "D_LLQUANT_MATCHHMAG", NULL},
    {DIF_LLQUANTIZE, 1, UINT16_MAX, "steps", "D_LLQUANT_STEPVAL", "D_LLQUANT_MATCHSTEPS",
     "D_LLQUANT_STEPTYPE"},
};

static const struct limit *
limits_of(const struct function *f)
{
	return f->code == DIF_LQUANTIZE ? &limits[0] : &limits[3];
}

/* Constants of lquantize() and llquantize(): what the kernel accepts (kernel/abi/dif.h). */
static void
check_levels(struct node *n, const struct function *f, int64_t p[4])
{
	struct node *arg = n->left->next;
	unsigned max = f->code == DIF_LQUANTIZE ? 3 : f->code == DIF_LLQUANTIZE ? 4 : 0;
	const struct limit *l = limits_of(f);
	int64_t size = 1, levels = 0;

	p[2] = 1; /* the step of lquantize() */
	for (unsigned i = 0; i < max && arg != NULL; i++, arg = arg->next, l++) {
		p[i] = (int64_t)arg->value;
		if (p[i] < l->from || p[i] > l->to)
			dt_error(n->at, p[i] <= 0 && l->from == 1 ? l->type : l->tag,
				 "%s( ): found %s %ld, expected %ld to %ld", f->name, l->name,
				 (long)p[i], (long)l->from, (long)l->to);
		if (i == 1 && f->code == DIF_LQUANTIZE && p[0] >= p[1])
			dt_error(
			    n->at, "D_LQUANT_MISMATCH",
			    "lquantize( ): found base %ld and limit %ld, expected base < limit",
			    (long)p[0], (long)p[1]);
	}
	if (f->code == DIF_LQUANTIZE) {
		if ((p[1] - p[0]) / p[2] == 0)
			dt_error(n->at, "D_LQUANT_STEPLARGE",
				 "lquantize( ): found step %ld, expected at most %ld", (long)p[2],
				 (long)(p[1] - p[0]));
		if ((p[1] - p[0]) / p[2] > DIF_MAX_LEVELS)
			dt_error(n->at, "D_LQUANT_STEPSMALL",
				 "lquantize( ): found %ld levels, expected at most %d",
				 (long)((p[1] - p[0]) / p[2]), DIF_MAX_LEVELS);
	}
	if (f->code != DIF_LLQUANTIZE)
		return;
	if (p[1] > p[2])
		dt_error(n->at, "D_LLQUANT_HMAGVAL",
			 "llquantize( ): found magnitudes %ld to %ld, expected an ascending range",
			 (long)p[1], (long)p[2]);
	for (int64_t m = 0; m <= p[2]; m++) {
		if (__builtin_mul_overflow(size, p[0], &size))
			dt_error(
			    n->at, "D_LLQUANT_HMAGVAL",
			    "llquantize( ): found magnitude %ld of %ld, which 64 bits cannot hold",
			    (long)p[2], (long)p[0]);
		if (p[3] % p[0] != 0 || (m >= p[1] && size > p[3] && size % p[3] != 0))
			dt_error(
			    n->at, "D_LLQUANT_STEPVAL",
			    "llquantize( ): found %ld steps, expected a multiple of the factor %ld that divides its powers",
			    (long)p[3], (long)p[0]);
		if (m >= p[1])
			levels += (size < p[3] ? size : p[3]) / p[0] * (p[0] - 1);
	}
	if (levels > DIF_MAX_LEVELS)
		dt_error(n->at, "D_LLQUANT_STEPVAL",
			 "llquantize( ): found %ld levels, expected at most %d", (long)levels,
			 DIF_MAX_LEVELS);
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
		dt_error(r->at, r->kind == N_CALL && f == NULL ? "D_FUNC_UNDEF" : "D_AGG_FUNC",
			 "@%s: expected an aggregating function after =, as count()", l->text);
	check_keys_of(l->left);
	check_arguments(r, f);
	memset(p, 0, sizeof(p));
	if (f->code >= DIF_LQUANTIZE)
		check_levels(r, f, p);
	a = ident_aggregation(l->text, l->at);
	first = a->function == NULL;
	if (!first && a->function != f)
		dt_error(n->at, "D_AGG_REDEF",
			 "aggregation redefined: @%s: found %s( ), expected %s( ) as on line %u",
			 l->text, f->name, a->function->name, a->at.line);
	for (unsigned i = 0; !first && i < 4; i++)
		if (p[i] != a->p[i])
			dt_error(n->at, limits_of(f)[i].match,
				 "@%s: found %s %ld, expected %ld as on line %u", l->text,
				 limits_of(f)[i].name, (long)p[i], (long)a->p[i], a->at.line);
	check_keys(n->at, dt_format("@%s", l->text), l->left, &a->keys, &a->key_count, first,
		   "D_KEY_TYPE");
	a->function = f;
	memcpy(a->p, p, sizeof(p));
	l->agg = a;
	l->checked = true;
	r->function = f;
	r->type = l->type = n->type = type_void;
}
