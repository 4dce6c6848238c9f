/*
 * expand.c - inlines and translators.
 *
 * A use becomes a copy of their expression, in which the parameters' names stand for what was
 * given.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"

/* A name that stands for an expression, which has not been checked. */
struct binding {
	const struct binding *next;
	const char *name;
	const struct node *value;
};

#define MAX_EXPANSIONS 100000
#define MAX_NESTED     64
static unsigned temporaries;
static unsigned expansions, expanding; /* of inlines and translators: in all; one within another */

void
expand_init(void)
{
	expansions = expanding = temporaries = 0;
}

/* ---- copies ---- */

static struct node *clone(const struct node *n, const struct binding *bindings);

static struct node *
clone_one(const struct node *n, const struct binding *bindings)
{
	struct node *copy;

	for (const struct binding *b = bindings; b != NULL && n->kind == N_NAME; b = b->next)
		if (n->scope == SCOPE_GLOBAL && strcmp(b->name, n->text) == 0)
			return clone(b->value, NULL);
	copy = dt_alloc(sizeof(*copy));
	*copy = *n;
	copy->left = clone(n->left, bindings);
	copy->right = clone(n->right, bindings);
	copy->third = clone(n->third, bindings);
	return copy;
}

/* Copies a node, and those that follow it in its list, which may be long. */
static struct node *
clone(const struct node *n, const struct binding *bindings)
{
	struct node *first = NULL, **last = &first;

	for (; n != NULL; n = n->next) {
		*last = clone_one(n, bindings);
		last = &(*last)->next;
	}
	*last = NULL;
	return first;
}

struct node *
check_clone(const struct node *n)
{
	struct node copy;

	if (n == NULL)
		return NULL;
	copy = *n;
	copy.next = NULL;
	return clone(&copy, NULL);
}

/* Puts another node in the place of n, which keeps its place in lists. */
void
check_replace(struct node *n, const struct node *by)
{
	struct node *next = n->next;

	*n = *by;
	n->next = next;
}

/* Expands a node to value, converted to the type if there is one. */
static void
expand(struct node *n, const struct node *value, const struct binding *bindings, struct type *type,
       const char *tag)
{
	struct node copy = *value;
	struct node *inner;

	copy.next = NULL;
	inner = clone(&copy, bindings);
	if (++expansions > MAX_EXPANSIONS || ++expanding > MAX_NESTED)
		dt_error(n->at, "D_SYNTAX",
			 "inlines and translators use each other, or themselves, too often");
	check_expression(inner);
	expanding--;
	if (type != NULL && type_is_scalar(type) && type_is_scalar(inner->type) &&
	    type_is_integer(type) == type_is_integer(inner->type) &&
	    !type_same(type, inner->type)) {
		inner = node_typed(N_CAST, type, inner);
		check_expression(inner);
	} else if (type != NULL && !check_fits(inner, type)) {
		dt_error(n->at, tag, "found %s, expected %s", type_text(inner->type),
			 type_text(type));
	}
	inner->at = n->at; /* an error about the value is one about its use */
	check_replace(n, inner);
	if (type != NULL && n->kind != N_XLATE)
		n->type = type;
}

void
expand_check(const struct node *value, const struct member *names, struct type *type,
	     const char *tag)
{
	const struct binding *bindings = NULL;
	struct node *n = check_clone(value);

	for (const struct member *m = names; m != NULL; m = m->next) {
		struct binding *b = dt_alloc(sizeof(*b));
		struct node *variable =
		    node_name(dt_format("%s#%u", m->name, temporaries++), n->at);

		variable->scope = SCOPE_THIS;
		ident_add(SCOPE_THIS, variable->text, m->type);
		*b = (struct binding){bindings, m->name, variable};
		bindings = b;
	}
	expand(n, value, bindings, type, tag);
}

struct inline_def *
expand_find(const char *name, bool is_array)
{
	for (struct inline_def *d = dt_program.inlines; d != NULL; d = d->next)
		if (d->is_array == is_array && strcmp(d->name, name) == 0)
			return d;
	return NULL;
}

/*
 * Checks that what is given fits the type, to which it is then cast; but a number does not become
 * an address. Its stability is looked at where it is used.
 */
static void
check_given(struct node *n, struct node *given, struct type *type)
{
	stable_hidden++;
	check_expression(given);
	if (!check_fits(given, type))
		dt_error(given->at, "D_PROTO_ARG", "found %s as an argument, expected %s",
			 type_text(given->type), type_text(type));
	check_expression(n);
	stable_hidden--;
}

/*
 * Binds a name to an expression that has not been checked. Unless it is simple, it is computed
 * once, into a variable of the clause: `first` is the list of these assignments.
 */
static const struct binding *
bind(const struct binding *bindings, const char *name, const struct node *value, struct type *type,
     struct node **first)
{
	struct binding *b = dt_alloc(sizeof(*b));
	struct node *assign, *variable;

	b->next = bindings;
	b->name = name;
	b->value = check_clone(value);
	if (value->kind == N_STRING)
		return b;
	if (value->kind == N_INT || value->kind == N_NAME) {
		struct node *given = check_clone(value);

		check_given(given, given, type);
		if (type_is_scalar(type) && given->kind != N_XLATE)
			b->value = node_typed(N_CAST, type, check_clone(value));
		return b;
	}
	variable = node_name(dt_format("%s#%u", name, temporaries++), value->at);
	variable->scope = SCOPE_THIS;
	ident_add(SCOPE_THIS, variable->text, type);
	assign = node_op(N_ASSIGN, 0, value->at, check_clone(variable),
			 node_typed(N_CAST, type, check_clone(value)));
	while (*first != NULL)
		first = &(*first)->next;
	*first = assign;
	b->value = variable;
	return b;
}

/* Lets assignments happen before an expression that may be checked. */
static struct node *
after(const struct node *assignments, struct node *n)
{
	if (assignments == NULL)
		return n;
	return node_op(N_COMMA, 0, n->at, check_clone(assignments), after(assignments->next, n));
}

/* Expands a node to value, of that type, after the assignments of its bindings. */
static void
expand_after(struct node *n, const struct node *assignments, const struct node *value,
	     const struct binding *bindings, struct type *type)
{
	struct node *inner, *all;

	/* What is wrong with what was given is said here. */
	for (const struct node *a = assignments; a != NULL; a = a->next) {
		struct node *assign = check_clone(a);

		check_given(assign, assign->right->left, a->right->type);
	}
	expand(n, value, bindings, type, "D_OP_INCOMPAT");
	if (n->kind == N_XLATE) {
		n->xlated = after(assignments, n->xlated);
		return;
	}
	inner = dt_alloc(sizeof(*inner));
	*inner = *n;
	inner->next = NULL;
	all = after(assignments, inner);
	if (all == inner)
		return;
	check_expression(all);
	check_replace(n, all);
}

void
expand_inline(struct node *n, struct inline_def *def, const struct node *given)
{
	const struct binding *bindings = NULL;
	struct node *assignments = NULL;

	for (struct member *m = def->parameters; m != NULL; m = m->next, given = given->next) {
		if (given == NULL)
			dt_error(n->at, "D_PROTO_LEN", "%s[ ]: found too few arguments", def->name);
		bindings = bind(bindings, m->name, given, m->type, &assignments);
	}
	if (given != NULL)
		dt_error(n->at, "D_PROTO_LEN", "%s[ ]: found too many arguments", def->name);
	stable_use(n->at, def->name, stable_of_name(def->name));
	stable_hidden += def->library;
	expand_after(n, assignments, def->body, bindings, def->type);
	stable_hidden -= def->library;
}

/* ---- translators ---- */

struct translator *
expand_translator(struct type *from, struct type *to)
{
	to = type_base(to);
	if (to->kind == T_POINTER)
		to = to->to;
	for (struct translator *t = dt_program.translators; t != NULL; t = t->next)
		if (type_same(t->to, to) && type_same(t->from, from))
			return t;
	return NULL;
}

void
expand_xlate(struct node *n)
{
	struct type *to = type_base(n->type);

	if (!type_is_struct(to->kind == T_POINTER ? to->to : to))
		dt_error(n->at, "D_XLATE_SOU", "xlate: found %s, expected a struct or union",
			 type_text(n->type));
	n->xlated = check_clone(n->left);
	check_expression(n->left);
	n->translator = expand_translator(n->left->type, to);
	if (n->translator == NULL)
		dt_error(n->at, "D_XLATE_NONE", "there is no translator from %s to %s",
			 type_text(n->left->type), type_text(n->type));
}

/* Replaces a member of what a translator makes by the translator's expression for it. */
void
expand_member(struct node *n)
{
	struct node *from = n->left;
	struct translator *t = from->translator;
	struct node *assignments = NULL;
	const struct binding *input;
	struct member found;

	if ((type_base(from->type)->kind == T_POINTER) != (n->op == '>'))
		dt_error(n->at, "D_OP_SOU", "%s: found %s, expected %s", type_text(from->type),
			 n->op == '>' ? "->" : ".", n->op == '>' ? "." : "->");
	if (!type_member(t->to, n->text, &found))
		dt_error(n->at, "D_TYPE_MEMBER", "%s has no member %s", type_text(t->to), n->text);
	for (struct translator_member *m = t->members; m != NULL; m = m->next) {
		if (strcmp(m->name, n->text) != 0)
			continue;
		input = bind(NULL, t->name, from->xlated, t->from, &assignments);
		stable_hidden += t->library;
		expand_after(n, assignments, m->value, input, found.type);
		stable_hidden -= t->library;
		return;
	}
	dt_error(n->at, "D_XLATE_NOCONV", "the translator from %s to %s does not define %s",
		 type_text(t->from), type_text(t->to), n->text);
}

static struct node *
member_of(const struct node *n, const char *name)
{
	struct node *member = node_op(N_MEMBER, '.', n->at, check_clone(n), NULL);

	member->text = name;
	return member;
}

void
expand_value(struct node *n)
{
	struct type *type = n->type;
	struct node *variable = node_name(dt_format("xlate#%u", temporaries++), n->at);
	struct node *all = variable, *assignments = NULL;

	/* All members have the same input, which is computed once. */
	n->xlated =
	    check_clone(bind(NULL, "xlate", n->xlated, n->translator->from, &assignments)->value);
	variable->scope = SCOPE_THIS;
	ident_add(SCOPE_THIS, variable->text, type);
	for (struct member *m = type_members(type_base(type)); m != NULL; m = m->next) {
		struct translator_member *with = n->translator->members;
		struct node *value = node_new(N_INT, n->at);

		value->type = type_int;
		while (with != NULL && strcmp(with->name, m->name) != 0)
			with = with->next;
		if (with == NULL && !type_is_scalar(m->type))
			continue;
		if (with != NULL)
			value = member_of(n, m->name);
		all =
		    node_op(N_COMMA, 0, n->at,
			    node_op(N_ASSIGN, 0, n->at, member_of(variable, m->name), value), all);
	}
	all = after(assignments, all);
	check_expression(all);
	check_replace(n, all);
}
