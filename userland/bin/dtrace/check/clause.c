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

/* What the statements so far have done. */
static struct {
	bool speculated, committed, recorded;
	unsigned speculations;
} done;

void
check_declare(struct place at, enum scope scope, const char *name, struct type *type,
	      struct member *keys, bool is_array)
{
	struct variable *v = ident_find(scope, name);
	struct member *m;
	unsigned n = 0;

	if (v != NULL && v->builtin)
		dt_error(at, "D_DECL_IDRED", "%s is built into D", name);
	if (type_base(type)->kind == T_VOID || type_base(type)->kind == T_FUNCTION)
		dt_error(at, "D_DECL_VOIDOBJ", "%s: a variable of type %s cannot be", name,
			 type_text(type));
	if (type_base(type)->kind != T_STRING && type_base(type)->size == 0)
		dt_error(at, "D_DECL_INCOMPLETE", "%s: %s has no size: it is not defined", name,
			 type_text(type));
	if (type_base(type)->size > 4096)
		dt_error(at, "D_DECL_ARRSUB",
			 "%s: found %u bytes, expected at most 4096 for a variable", name,
			 type_base(type)->size);
	if (is_array && scope == SCOPE_THIS)
		dt_error(at, "D_DECL_LOCASSC",
			 "this->%s: variables of a clause cannot be associative arrays", name);
	for (m = keys; m != NULL; m = m->next)
		n++;
	if (is_array && (n == 0 || n > DIF_MAX_KEYS))
		dt_error(at, "D_DECL_ARRNULL", "%s[ ]: found %u types of keys, expected 1 to %u",
			 name, n, DIF_MAX_KEYS);
	if (v == NULL) {
		v = ident_add(scope, name, type);
		v->is_array = is_array;
		v->keys = keys;
		v->key_count = n;
	} else if (v->type != NULL && (!type_same(v->type, type) || v->is_array != is_array)) {
		dt_error(at, "D_DECL_IDRED", "identifier redeclared: %s: found %s, expected %s",
			 name, type_text(type), type_text(v->type));
	}
}

/* ---- arguments of the probes ---- */

static bool
is_probe_of(const struct clause *c, const struct dif_probe *p)
{
	for (struct probe_spec *s = c->probes; s != NULL; s = s->next) {
		if (probe_matches(s->text, p))
			return true;
	}
	return false;
}

/*
 * Those that the clause may be at: the kernel's, and those at a rate, which are made when they are
 * named. Without a kernel: those of SDT, and what it names in full.
 */
static struct probe *
known_probes(void)
{
	bool kernel = probe_all() != NULL;
	struct probe *list = kernel ? probe_all() : probe_described();

	for (struct probe_spec *s = current->probes; s != NULL; s = s->next) {
		struct probe *p = dt_alloc(sizeof(*p));
		bool rate;

		probe_split(s->text, &p->p);
		rate = probe_is_rate(p->p.name);
		if (rate) {
			strcpy(p->p.provider, "profile");
			strcpy(p->p.types[0], "uintptr_t");
			strcpy(p->p.types[1], "uintptr_t");
		}
		p->next = list;
		if (rate || (!kernel && (strcmp(p->p.provider, "fbt") == 0 ||
					 strcmp(p->p.provider, "syscall") == 0)))
			list = p;
	}
	return list;
}

struct type *
check_argument(struct place at, uint64_t number, struct type **xlate)
{
	struct type *found = NULL, *type, *x = NULL;
	const struct dif_probe *first = NULL;

	if (current == NULL)
		dt_error(at, "D_ARGS_NONE", "args[ ] has a meaning in clauses only");
	for (struct probe *p = known_probes(); p != NULL; p = p->next) {
		if (!is_probe_of(current, &p->p))
			continue;
		type = probe_argument(&p->p, number, &x);
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
		dt_error(at, "D_ARGS_NONE", "args[%u]: no probe matches %s", (unsigned)number,
			 current->probes->text);
	return found;
}

/* ---- statements ---- */

static bool
is_recording(const struct function *f)
{
	switch (f->code) {
	case ACT_TRACE:
	case ACT_PRINTF:
	case ACT_PRINTA:
	case ACT_PRINT:
	case ACT_TRACEMEM:
	case ACT_STACK:
	case ACT_USTACK:
	case ACT_SYMBOL:
	case ACT_FREOPEN:
	case ACT_FTRUNCATE:
	case ACT_SYSTEM:
	case ACT_SETOPT:
	case ACT_NORMALIZE:
	case ACT_DENORMALIZE:
	case ACT_CLEAR:
	case ACT_TRUNC:
		return true;
	default:
		return false;
	}
}

/* An action that stands as a statement. */
static void
check_action(struct node *n)
{
	const struct function *f = n->function;

	if (f->code == ACT_COMMIT || f->code == ACT_DISCARD) {
		if (done.recorded)
			dt_error(n->at, "D_COMM_DREC",
				 "%s( ) may not follow data-recording actions", f->name);
		if (done.committed)
			dt_error(n->at, "D_COMM_COMM",
				 "commit( ) or discard( ) may not follow another one");
		if (done.speculated)
			dt_error(n->at, "D_COMM_SPEC", "%s( ) may not follow speculate( )",
				 f->name);
		done.committed = true;
	} else if (f->code == ACT_SPECULATE) {
		if (done.recorded)
			dt_error(n->at, "D_SPEC_DREC",
				 "speculate( ) may not follow data-recording actions");
		if (done.committed)
			dt_error(n->at, "D_SPEC_COMM",
				 "speculate( ) may not follow commit( ) or discard( )");
		if (done.speculated)
			dt_error(n->at, "D_SPEC_SPEC", "speculate( ) may not follow speculate( )");
		done.speculated = true;
	} else if (f->code == ACT_EXIT) {
		if (done.speculated)
			dt_error(n->at, "D_EXIT_SPEC", "exit( ) may not follow speculate( )");
	} else if (f->destructive && done.speculated) {
		dt_error(n->at, "D_ACT_SPEC", "%s( ) may not follow speculate( )", f->name);
	} else if (is_recording(f)) {
		if (done.committed)
			dt_error(n->at, "D_DREC_COMM",
				 "data-recording actions may not follow commit( ) or discard( )");
		if (f->code == ACT_PRINTA && done.speculated)
			dt_error(n->at, "D_PRINTA_SPEC", "printa( ) may not follow speculate( )");
		done.recorded = true;
	}
}

/* Actions have no values: they stand alone. */
static void
refuse_actions(struct node *n, const struct node *statement)
{
	if (n == NULL)
		return;
	if (n->kind == N_CALL && n != statement && n->function != NULL &&
	    n->function->kind == F_ACTION && n->function->result == NULL)
		dt_error(
		    n->at, "D_ACT_VALUE",
		    "%s( ) is an action, which has no value: expected it as a statement of its own",
		    n->function->name);
	refuse_actions(n->left, statement);
	refuse_actions(n->right, statement);
	refuse_actions(n->third, statement);
	for (n = n->next; n != NULL; n = n->next) {
		refuse_actions(n->left, statement);
		refuse_actions(n->right, statement);
		if (n->kind == N_CALL && n->function != NULL && n->function->kind == F_ACTION &&
		    n->function->result == NULL)
			dt_error(n->at, "D_ACT_VALUE", "%s( ) is an action, which has no value",
				 n->function->name);
	}
}

static void
check_truth(struct node *n, const char *what)
{
	check_expression(n);
	refuse_actions(n, NULL);
	if (!type_is_scalar(n->type) && type_base(n->type)->kind != T_ARRAY)
		dt_error(
		    n->at, "D_PRED_SCALAR",
		    "%s result type is incompatible: found %s, expected an integer or a pointer",
		    what, type_text(n->type));
}

static void
check_statements(struct node *n)
{
	for (; n != NULL; n = n->next) {
		struct node *e = n->left;

		if (n->kind == N_IF) {
			check_truth(n->left, "if");
			check_statements(n->right);
			check_statements(n->third);
			continue;
		}
		check_place(e);
		if (e->kind == N_ASSIGN && e->left->kind == N_AGG) {
			if (done.committed)
				dt_error(e->at, "D_AGG_COMM",
					 "an aggregation may not follow commit( ) or discard( )");
			if (done.speculated)
				dt_error(e->at, "D_AGG_SPEC",
					 "an aggregation may not follow speculate( )");
			for (struct node *k = e->left->left; k != NULL; k = k->next)
				refuse_actions(k, NULL);
			continue;
		}
		if (e->kind == N_CALL && e->function != NULL && e->function->kind == F_ACTION) {
			refuse_actions(e->left, e);
			check_action(e);
			continue;
		}
		check_expression(e);
		if (e->kind == N_XLATE)
			dt_error(e->at, "D_XLATE_DYN",
				 "what a translator makes is used by its members only");
		refuse_actions(e, NULL);
		if (e->constant || e->kind == N_NAME || e->kind == N_STRING)
			dt_error(e->at, "D_EXPR_NULL", "expression has null effect");
	}
}

void
check_init(void)
{
	current = NULL;
	expand_init();
}

void
check_clause(struct clause *c)
{
	current = c;
	memset(&done, 0, sizeof(done));
	dt_region = "predicate";
	if (c->predicate != NULL)
		check_truth(c->predicate, "predicate");
	dt_region = "action list";
	check_statements(c->body);
	dt_region = NULL;
	current = NULL;
}
