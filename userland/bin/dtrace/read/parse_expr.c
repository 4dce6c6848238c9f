/*
 * parse_expr.c - expressions, by C's precedence.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/read/read.h"

#define MAX_DEPTH 200  /* of nested expressions and statements */
#define MAX_TREE  1000 /* a chain of operators is as deep as it is long */

static unsigned depth;

struct node *
node_new(enum node_kind kind, struct place at)
{
	struct node *n = dt_alloc(sizeof(*n));

	n->kind = kind;
	n->at = at;
	return n;
}

static unsigned
depth_of(const struct node *list)
{
	unsigned most = 0;

	for (; list != NULL; list = list->next)
		most = list->depth > most ? list->depth : most;
	return most;
}

/* How deep it is, once what is in it is complete: all that walks a tree calls itself so often. */
static void
measure(struct node *n)
{
	unsigned left = depth_of(n->left), right = depth_of(n->right), third = depth_of(n->third);

	n->depth = 1 + (left > right ? left : right);
	n->depth = third >= n->depth ? 1 + third : n->depth;
	if (n->depth > MAX_TREE)
		dt_error(n->at, "D_SYNTAX",
			 "more than %d operators follow each other, or are nested, here", MAX_TREE);
}

struct node *
node_op(enum node_kind kind, uint32_t op, struct place at, struct node *left, struct node *right)
{
	struct node *n = node_new(kind, at);

	n->op = op;
	n->left = left;
	n->right = right;
	measure(n);
	return n;
}

struct node *
node_name(const char *name, struct place at)
{
	struct node *n = node_new(N_NAME, at);

	n->text = name;
	return n;
}

struct node *
node_typed(enum node_kind kind, struct type *type, struct node *left)
{
	struct node *n = node_op(kind, 0, left->at, left, NULL);

	n->type = type;
	return n;
}

void
parse_descend(void)
{
	if (++depth > MAX_DEPTH)
		dt_error(lex_peek()->at, "D_SYNTAX", "more than %d levels are nested here",
			 MAX_DEPTH);
}

void
parse_ascend(void)
{
	depth--;
}

void
parse_reset(void)
{
	depth = 0;
}

static struct node *parse_unary(void);

/* Expressions with commas between, up to the closing token, which is taken. */
static struct node *
parse_list(uint32_t closing)
{
	struct node *first = NULL, **last = &first;

	if (lex_take(closing))
		return NULL;
	do {
		*last = parse_list_item();
		last = &(*last)->next;
	} while (lex_take(','));
	lex_expect(closing);
	return first;
}

static struct node *
parse_type_operand(struct place at)
{
	struct node *n = node_new(N_SIZEOF, at);

	if (lex_is('(') && parse_begins_type(lex_peek2())) {
		lex_next();
		n->type = parse_type_name();
		lex_expect(')');
	} else {
		n->left = parse_unary();
	}
	return n;
}

/* Reads offsetof(type, member.member...), a constant that needs no more than the type. */
static struct node *
parse_offsetof(struct place at)
{
	struct node *n = node_new(N_INT, at);
	struct type *type;
	struct member m;

	n->type = type_ulong;
	lex_expect('(');
	type = parse_type_name();
	lex_expect(',');
	do {
		struct token name = lex_next();

		if (name.kind != TOKEN_NAME)
			dt_error(name.at, "D_SYNTAX",
				 "found no name in offsetof, expected a member's");
		if (!type_is_struct(type) || (!type->complete && type_members(type) == NULL))
			dt_error(name.at, "D_OFFSETOF_TYPE", "%s is not a struct or union",
				 type_text(type));
		if (!type_member(type, name.text, &m))
			dt_error(name.at, "D_UNKNOWN", "%s has no member %s", type_text(type),
				 name.text);
		if (m.bits != 0)
			dt_error(name.at, "D_OFFSETOF_BITFIELD", "%s is a bit-field", name.text);
		n->value += m.offset;
		type = m.type;
	} while (lex_take('.'));
	lex_expect(')');
	return n;
}

static struct node *
parse_xlate(struct place at)
{
	struct node *n = node_new(N_XLATE, at);

	lex_expect('<');
	n->type = parse_type_name();
	lex_expect('>');
	lex_expect('(');
	n->left = parse_expression();
	lex_expect(')');
	return n;
}

/* self->name, this->name */
static struct node *
parse_scoped(struct token t, enum scope scope)
{
	struct node *n = node_new(N_NAME, t.at);

	lex_expect(OP2('-', '>'));
	n->scope = scope;
	if (lex_peek()->kind != TOKEN_NAME)
		lex_expected("the name of a variable");
	n->text = lex_next().text;
	return n;
}

static struct node *
parse_name(struct token t)
{
	struct node *n;

	if (strcmp(t.text, "self") == 0)
		return parse_scoped(t, SCOPE_SELF);
	if (strcmp(t.text, "this") == 0)
		return parse_scoped(t, SCOPE_THIS);
	if (strcmp(t.text, "offsetof") == 0)
		return parse_offsetof(t.at);
	if (strcmp(t.text, "xlate") == 0)
		return parse_xlate(t.at);
	n = node_name(t.text, t.at);
	if (lex_take('(')) {
		n->kind = N_CALL;
		n->left = parse_list(')');
	}
	return n;
}

static struct node *
parse_primary(void)
{
	struct node *n;
	struct token t = *lex_peek();

	switch (t.kind) {
	case TOKEN_INT:
		lex_next();
		n = node_new(N_INT, t.at);
		n->value = t.value;
		n->type = t.type;
		return n;
	case TOKEN_STRING:
		lex_next();
		n = node_new(N_STRING, t.at);
		n->text = t.text;
		n->size = t.size;
		/* Strings in sequence are one string. */
		while (lex_peek()->kind == TOKEN_STRING) {
			struct token more = lex_next();
			char *text = dt_alloc(n->size + more.size + 1);

			memcpy(text, n->text, n->size);
			memcpy(text + n->size, more.text, more.size);
			n->text = text;
			n->size += more.size;
		}
		return n;
	case TOKEN_AGG:
	case TOKEN_EXTERN:
		lex_next();
		n = node_new(t.kind == TOKEN_AGG ? N_AGG : N_EXTERN, t.at);
		n->text = t.text;
		if (t.kind == TOKEN_AGG && lex_take('['))
			n->left = parse_list(']');
		return n;
	case TOKEN_NAME:
		lex_next();
		return parse_name(t);
	default:
		if (!lex_take('('))
			lex_expected("an expression");
		n = parse_expression();
		lex_expect(')');
		return n;
	}
}

static struct node *
parse_postfix(void)
{
	struct node *n = parse_primary();

	for (;;) {
		struct token t = *lex_peek();

		if (lex_take('[')) {
			n = node_op(N_INDEX, 0, t.at, n, parse_list(']'));
			if (n->right == NULL)
				dt_error(t.at, "D_SYNTAX", "found [], expected an index");
		} else if (lex_is('.') || lex_is(OP2('-', '>'))) {
			lex_next();
			n = node_op(N_MEMBER, t.op == '.' ? '.' : '>', t.at, n, NULL);
			if (lex_peek()->kind != TOKEN_NAME)
				lex_expected("the name of a member");
			n->text = lex_next().text;
		} else if (lex_is(OP2('+', '+')) || lex_is(OP2('-', '-'))) {
			lex_next();
			n = node_op(N_POSTFIX, t.op, t.at, n, NULL);
		} else if (lex_is('(')) {
			dt_error(t.at, "D_FUNC_IDENT",
				 "found (, expected a function's name before it");
		} else {
			return n;
		}
	}
}

static struct node *
parse_cast(struct place at)
{
	struct node *n = node_new(N_CAST, at);

	lex_expect('(');
	n->type = parse_type_name();
	lex_expect(')');
	n->left = parse_unary();
	return n;
}

static bool
is_unary(const struct token *t)
{
	return t->kind == TOKEN_OP &&
	       (strchr("!~-+*&", (int)(t->op & 0xff)) != NULL && t->op < 256);
}

static struct node *
parse_unary(void)
{
	struct token t = *lex_peek();
	struct node *n;

	parse_descend();
	if (is_unary(&t) || lex_is(OP2('+', '+')) || lex_is(OP2('-', '-'))) {
		lex_next();
		n = node_op(N_UNARY, t.op, t.at, parse_unary(), NULL);
	} else if (lex_is_name("sizeof")) {
		lex_next();
		n = parse_type_operand(t.at);
	} else if (lex_is_name("stringof")) {
		lex_next();
		n = node_op(N_STRINGOF, 0, t.at, parse_unary(), NULL);
	} else if (lex_is('(') && parse_begins_type(lex_peek2())) {
		n = parse_cast(t.at);
	} else {
		n = parse_postfix();
	}
	measure(n);
	parse_ascend();
	return n;
}

static unsigned
level_of(const struct token *t)
{
	return t->kind == TOKEN_OP && !lex_ends_predicate() ? op_find(t->op)->level : 0;
}

static struct node *
parse_binary(unsigned lowest)
{
	struct node *n = parse_unary();
	unsigned level;

	while ((level = level_of(lex_peek())) >= lowest && level != 0) {
		struct token t = lex_next();

		n = node_op(N_BINARY, t.op, t.at, n, parse_binary(level + 1));
	}
	return n;
}

/* The operator of an assignment, 0 for a plain one; -1: none comes next. */
static int64_t
assignment(void)
{
	const struct token *t = lex_peek();
	unsigned last = t->op >> 16 != 0 ? 16 : 8; /* bits before the last character */

	if (t->kind != TOKEN_OP)
		return -1;
	if (t->op == '=')
		return 0;
	if (t->op >> last != '=' || op_find(t->op)->kind != 0)
		return -1;
	return t->op & ((1u << last) - 1);
}

struct node *
parse_list_item(void)
{
	struct node *n, *yes;
	struct token t;
	int64_t op;

	parse_descend();
	n = parse_binary(1);
	t = *lex_peek();
	op = assignment();
	if (op >= 0) {
		lex_next();
		n = node_op(N_ASSIGN, (uint32_t)op, t.at, n, parse_list_item());
	} else if (lex_take('?')) {
		yes = parse_expression();
		lex_expect(':');
		n = node_op(N_COND, 0, t.at, n, yes);
		n->third = parse_list_item();
		measure(n);
	}
	parse_ascend();
	return n;
}

struct node *
parse_expression(void)
{
	struct node *n = parse_list_item();

	while (lex_is(',')) {
		struct token t = lex_next();

		n = node_op(N_COMMA, 0, t.at, n, parse_list_item());
	}
	return n;
}

int64_t
parse_constant(const char *what, const char *tag)
{
	struct node *n = parse_list_item();

	check_expression(n);
	if (!n->constant || !type_is_integer(n->type))
		dt_error(n->at, tag, "%s must be an integer constant", what);
	return (int64_t)n->value;
}
