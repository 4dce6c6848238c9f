/*
 * clause.c - checks clauses and declarations: which statements may follow which, and what the
 * arguments of the clause's probes are.
 */
#include <string.h>

#include "userland/bin/dtrace/check/check.h"

static struct clause *current;
uint32_t dt_strsize = 256;
unsigned dt_stackframes = 20, dt_ustackframes = 20;
bool dt_destructive;
struct node *dt_destroys;

static unsigned done; /* what the statements so far have done: bits DO_ */

static bool
same_keys(const struct member *a, const struct member *b)
{
	for (; a != NULL && b != NULL; a = a->next, b = b->next)
		if (!type_same(a->type, b->type))
			return false;
	return a == NULL && b == NULL;
}

void
check_declare(struct place at, enum scope scope, const char *name, struct type *type,
	      struct member *keys, bool is_array)
{
	struct variable *v = ident_find(scope, name);
	struct member *m;
	unsigned n = 0;

	if ((v != NULL && v->builtin) || (scope == SCOPE_GLOBAL && ident_function(name) != NULL))
		dt_error(at, "D_DECL_IDRED", "%s is built into D", name);
	if (type_base(type)->kind == T_VOID || type_base(type)->kind == T_FUNCTION)
		dt_error(at, "D_DECL_VOIDOBJ", "%s: a variable of type %s cannot be", name,
			 type_text(type));
	if (type_base(type)->kind != T_STRING && type_base(type)->size == 0)
		dt_error(at, "D_DECL_INCOMPLETE", "%s: %s has no size: it is not defined", name,
			 type_text(type));
	if (is_array && scope == SCOPE_THIS)
		dt_error(at, "D_DECL_LOCASSC",
			 "this->%s: variables of a clause cannot be associative arrays", name);
	for (m = keys; m != NULL; m = m->next)
		n++;
	if (is_array && (n == 0 || n > DIF_MAX_KEYS))
		dt_error(at, "D_DECL_ARRNULL", "%s[ ]: found %u types of keys, expected 1 to %u",
			 name, n, DIF_MAX_KEYS);
	check_key_size(at, name, keys);
	if (v == NULL) {
		v = ident_add(scope, name, type);
		v->is_array = is_array;
		v->keys = keys;
		v->key_count = n;
	} else if (v->type != NULL && (!type_same(v->type, type) || v->is_array != is_array)) {
		dt_error(at, "D_DECL_IDRED", "identifier redeclared: %s: found %s, expected %s",
			 name, type_text(type), type_text(v->type));
	} else if (v->type != NULL && !same_keys(v->keys, keys)) {
		dt_error(at, "D_DECL_IDRED", "identifier redeclared: %s[ ] has other keys", name);
	}
}

/* ---- arguments of the probes ---- */

/*
 * Lists the probes that the clause may be at: the kernel's, and those at a rate, which are made
 * when they are named. Without a kernel: the probes of SDT, and those that the clause names in
 * full.
 */
static struct probe *
known_probes(void)
{
	bool kernel = probe_all() != NULL;
	struct probe *list = kernel ? probe_all() : probe_described();

	if (current->known != NULL)
		return current->known;
	for (struct probe_spec *s = current->probes; s != NULL; s = s->next) {
		struct probe p = {.next = list};
		bool rate;

		probe_split(s->text, &p.p);
		rate = probe_is_rate(p.p.name);
		if (rate) {
			strcpy(p.p.provider, "profile");
			strcpy(p.p.types[0], "uintptr_t");
			strcpy(p.p.types[1], "uintptr_t");
		}
		if (rate || (!kernel && (strcmp(p.p.provider, "fbt") == 0 ||
					 strcmp(p.p.provider, "syscall") == 0)))
			list = memcpy(dt_alloc(sizeof(p)), &p, sizeof(p));
	}
	return current->known = list;
}

struct type *
check_argument(struct place at, uint64_t number, const char **xlate)
{
	struct type *found = NULL, *type;
	const char *x = NULL;
	const struct dif_probe *first = NULL;

	if (current == NULL)
		dt_error(at, "D_ARGS_NONE", "args[ ] has a meaning in clauses only");
	for (struct probe *p = known_probes(); p != NULL; p = p->next) {
		if (!probe_is_meant(current->probes, &p->p))
			continue;
		type = probe_argument(&p->p, number, &x);
		if (type == NULL && dt_recorded && number < p->p.nargs)
			dt_error(
			    at, "D_RECORDED",
			    "args[%u] of %s:%s:%s:%s is a pointer, and what it points to is not in a recorded trace: arg%u is the address",
			    (unsigned)number, p->p.provider, p->p.module, p->p.function, p->p.name,
			    (unsigned)number);
		if (type == NULL)
			dt_error(
			    at, "D_ARGS_IDX",
			    "args[%u]: %s:%s:%s:%s has no argument of that number whose type is known",
			    (unsigned)number, p->p.provider, p->p.module, p->p.function, p->p.name);
		if (first != NULL && !type_same(type, found))
			dt_error(
			    at, "D_ARGS_MULTI",
			    "args[%u] is %s in %s:%s, but %s in %s:%s: name probes of one type",
			    (unsigned)number, type_text(found), first->function, first->name,
			    type_text(type), p->p.function, p->p.name);
		stable_use(at, dt_format("args[%u]", (unsigned)number),
			   stable_of_probe(p->p.provider, STABLE_ARGS));
		first = &p->p;
		found = type;
		*xlate = x;
	}
	if (found == NULL)
		dt_error(at, "D_ARGS_NONE", "args[%u]: no probe matches %s%s", (unsigned)number,
			 current->probes->text, suggest_probe(current->probes->text));
	if (dt_recorded && type_base(found)->kind == T_POINTER && first->types[number][0] == '\0')
		dt_error(
		    at, "D_RECORDED",
		    "args[%u] is %s, and what it points to is not in a recorded trace: arg%u is the address",
		    (unsigned)number, type_text(found), (unsigned)number);
	return found;
}

void
check_count_time(const struct variable *v)
{
	unsigned time = v->code - (unsigned)DIF_B_TIMESTAMP;

	if (current != NULL && v->builtin && v->arg == 0 && time < TIMES)
		current->times[time]++;
}

/* ---- statements ---- */

#define DO_DATA (DO_RECORD | DO_AGGREGATE)

/* What may not follow what. */
static const struct {
	unsigned does, after;
	const char *tag;
} orders[] = {
    {DO_COMMIT, DO_DATA, "D_COMM_DREC"},        {DO_COMMIT, DO_COMMIT, "D_COMM_COMM"},
    {DO_COMMIT, DO_SPECULATE, "D_COMM_SPEC"},   {DO_SPECULATE, DO_SPECULATE, "D_SPEC_SPEC"},
    {DO_SPECULATE, DO_DATA, "D_SPEC_DREC"},     {DO_SPECULATE, DO_COMMIT, "D_SPEC_COMM"},
    {DO_AGGREGATE, DO_COMMIT, "D_AGG_COMM"},    {DO_AGGREGATE, DO_SPECULATE, "D_AGG_SPEC"},
    {DO_DESTROY, DO_SPECULATE, "D_ACT_SPEC"},   {DO_EXIT, DO_SPECULATE, "D_EXIT_SPEC"},
    {DO_PRINTA, DO_SPECULATE, "D_PRINTA_SPEC"}, {DO_RECORD, DO_COMMIT, "D_DREC_COMM"},
};

/* A statement that calls an action or an aggregating function. */
static void
check_order(struct place at, const struct function *f)
{
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		unsigned after = orders[i].after;

		if ((f->does & orders[i].does) != 0 && (done & after) != 0)
			dt_error(at, orders[i].tag, "%s( ) may not follow %s", f->name,
				 (after & DO_RECORD)  ? "data-recording actions"
				 : after == DO_COMMIT ? "commit( )"
						      : "speculate( )");
	}
	done |= f->does;
}

/* Actions have no values: they stand alone. */
static void
refuse_actions(struct node *n)
{
	for (; n != NULL; n = n->next) {
		const struct function *f = ident_action(n);

		if (f != NULL && f->result == NULL)
			dt_error(
			    n->at, "D_ACT_VALUE",
			    "%s( ) is an action, which has no value: expected it as a statement of its own",
			    f->name);
		refuse_actions(n->left);
		refuse_actions(n->right);
		refuse_actions(n->third);
	}
}

static void
check_truth(struct node *n, const char *what)
{
	check_expression(n);
	refuse_actions(n);
	if (!type_is_scalar(n->type))
		dt_error(
		    n->at, "D_PRED_SCALAR",
		    "%s result type is incompatible: found %s, expected an integer or a pointer",
		    what, type_text(n->type));
}

static void
check_format_text(struct node *n)
{
	bool reopen = n->function->code == ACT_FREOPEN;

	if (reopen && strcmp(n->left->text, ".") == 0)
		dt_error(n->at, "D_FREOPEN_INVALID", "freopen( ): found \".\", expected a file");
	if (!reopen && *n->left->text == '\0')
		dt_error(n->at, "D_PRINTF_FMT_EMPTY", "%s( ): the format is empty", n->text);
}

static void
check_statements(struct node *n)
{
	for (; n != NULL; n = n->next) {
		struct node *e = n->left;
		unsigned before, after;

		if (n->kind == N_IF) {
			check_truth(n->left, "if");
			before = done;
			check_statements(n->right);
			after = done;
			done = before; /* the other branch does not follow this one */
			check_statements(n->third);
			done |= after;
			continue;
		}
		if (e->kind == N_AGG)
			dt_error(e->at,
				 ident_aggregation(e->text, e->at)->function != NULL ||
					 e->left != NULL
				     ? "D_AGG_NULL"
				     : "D_IDENT_UNDEF",
				 "@%s: expected = and an aggregating function after it", e->text);
		if (e->kind == N_CALL && ident_function(e->text) != NULL &&
		    ident_function(e->text)->kind == F_AGG)
			dt_error(e->at, "D_CG_EXPR", "%s( ): expected @name = %s(...)", e->text,
				 e->text);
		check_place(e);
		if (e->kind == N_ASSIGN && e->left->kind == N_AGG) {
			check_order(e->at, e->right->function);
			refuse_actions(e->left->left);
			continue;
		}
		if (e->kind == N_CALL && e->function != NULL && *e->function->args == 'f')
			check_format_text(e);
		if (ident_action(e) != NULL) {
			refuse_actions(e->left);
			check_order(e->at, e->function);
			continue;
		}
		check_expression(e);
		if (e->kind == N_CALL && e->function != NULL)
			check_order(e->at, e->function);
		if (e->kind == N_XLATE)
			dt_error(e->at, "D_CG_DYN",
				 "what a translator makes is used by its members only");
		refuse_actions(e);
		if (e->constant || e->kind == N_NAME || e->kind == N_STRING)
			dt_error(e->at, "D_EXPR_NULL", "expression has null effect");
	}
}

/* Has each variable in an expression been assigned to, as far as is known? */
static bool
check_is_known(const struct node *n)
{
	const struct variable *v;

	if (n == NULL)
		return true;
	if (n->kind == N_ASSIGN) /* has the type of what is assigned */
		return check_is_known(n->right);
	if (n->kind != N_NAME)
		return check_is_known(n->left) && check_is_known(n->right) &&
		       check_is_known(n->third);
	if (n->scope == SCOPE_GLOBAL &&
	    (strcmp(n->text, "args") == 0 || strcmp(n->text, "uregs") == 0 ||
	     expand_find(n->text, false) != NULL || expand_find(n->text, true) != NULL))
		return true;
	v = ident_find(n->scope, n->text);
	return v != NULL && (v->type != NULL || v->builtin || v->is_array);
}

/* Makes the variables that an expression steps, or to which it assigns what is known. */
static void
check_assigned(const struct node *n)
{
	unsigned times[TIMES];

	if (n == NULL)
		return;
	if (n->left != NULL && n->left->kind == N_NAME &&
	    ((n->kind == N_ASSIGN && check_is_known(n->right)) || n->op == OP2('+', '+') ||
	     n->op == OP2('-', '-'))) {
		memcpy(times, current->times, sizeof(times));
		check_expression(check_clone(n));
		memcpy(current->times, times, sizeof(times)); /* they are counted once, later */
	}
	check_assigned(n->left);
	check_assigned(n->right);
	check_assigned(n->third);
}

void
check_init(void)
{
	current = NULL;
	dt_destroys = NULL;
	check_in_if = false;
	check_depth = 0;
	expand_init();
}

void
check_clause(struct clause *c)
{
	current = c;
	done = 0;
	/* The predicate may test what the first firing's actions assign, and they what it does. */
	dt_region = "predicate";
	check_assigned(c->predicate);
	dt_region = "action list";
	check_statements(c->body);
	dt_region = "predicate";
	if (c->predicate != NULL)
		check_truth(c->predicate, "predicate");
	dt_region = NULL;
	current = NULL;
}
