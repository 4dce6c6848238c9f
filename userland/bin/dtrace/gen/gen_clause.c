/*
 * gen_clause.c - the program of a clause: predicate, statements, records.
 *
 * All that a clause records is one record, so that its output stays together. What an `if` may
 * leave out has a byte in the record that says whether it is there. Only an `if` that alone
 * records, or with speculate() or commit() in it, has records of its own for each branch.
 */
#include <string.h>

#include "userland/bin/dtrace/gen/gen.h"

static void
gen_recording(struct node *n)
{
	const struct function *f = n->function;
	const char *format = n->left != NULL && n->left->kind == N_STRING && f->code != ACT_TRACE
				 ? n->left->text
				 : NULL;

	record_open();
	record_action(f->code, format);
	if (f->code == ACT_TRACEMEM) {
		record_tracemem(n);
		return;
	}
	if (f->code == ACT_PRINT) {
		record_print(n->left);
		return;
	}
	if (f->result != NULL) {
		record_value(n);
		return;
	}
	for (struct node *a = format != NULL && f->code != ACT_SETOPT ? n->left->next : n->left;
	     a != NULL; a = a->next) {
		gen_action_number += a != n->left && a != n->left->next;
		if (a->kind == N_AGG)
			record_field(
			    (struct rec_field){.show = SHOW_AGG, .offset = a->agg->number});
		else
			record_value(a);
	}
}

static void
gen_action(struct node *n)
{
	const struct function *f = n->function;

	if (f->kind == F_ACTION) {
		gen_recording(n);
		return;
	}
	if (f->does & DO_EXIT) { /* it has a row of its own */
		record_open();
		record_action(ACT_EXIT, NULL);
	}
	if (n->left != NULL)
		gen_value(n->left, 1);
	gen_insn(f->code, 0, n->left != NULL ? 1 : 0, 0, 0);
}

static uint64_t
agg_key_kind(struct type *type)
{
	if (type->kind == T_STACK)
		return type == type_stack ? DIF_K_STACK : DIF_K_USTACK;
	return type->kind == T_STRING ? DIF_K_STR : DIF_K_INT;
}

/* Tells the engine and the consumer of an aggregation, when it is first used. */
static void
define_aggregation(struct aggregation *a, struct node *keys)
{
	struct dif_agg d = {.func = a->function->code};
	struct dif_agg *all;
	struct rec_agg r = {.name = image_text(a->name, strlen(a->name)),
			    .first =
				(uint32_t)(gen_image.rec_fields.size / sizeof(struct rec_field))};

	while (gen_image.aggs.size <= a->number * sizeof(d)) {
		buffer_add(&gen_image.aggs, NULL, sizeof(d));
		buffer_add(&gen_image.rec_aggs, NULL, sizeof(r));
	}
	all = (struct dif_agg *)gen_image.aggs.data;
	if (a->defined)
		return;
	a->defined = true;
	memcpy(d.p, a->p, sizeof(d.p));
	for (struct member *m = a->keys; m != NULL; m = m->next, keys = keys->next, r.count++) {
		struct type *type = type_base(m->type);
		struct rec_field f = {.show = gen_show(type), .size = type->size};

		if (type->kind == T_STACK)
			f.show = type == type_stack ? SHOW_STACK : SHOW_USTACK;
		if (record_symbol_of(keys) != SHOW_INT)
			f.show = record_symbol_of(keys);
		if (m->offset != 0)
			d.keys = DIF_KEYS_AND(d.keys, DIF_K_INT);
		for (uint32_t at = 0; at == 0 || (type_is_bytes(type) && at < type->size); at += 8)
			d.keys = DIF_KEYS_AND(d.keys, agg_key_kind(type));
		buffer_add(&gen_image.rec_fields, &f, sizeof(f));
	}
	all[a->number] = d;
	((struct rec_agg *)gen_image.rec_aggs.data)[a->number] = r;
}

static void
gen_aggregate(struct node *n)
{
	struct node *value = n->right->left, *weight = NULL;
	struct aggregation *a = n->left->agg;
	unsigned constants = a->function->code == DIF_LQUANTIZE    ? 3
			     : a->function->code == DIF_LLQUANTIZE ? 4
								   : 0;

	define_aggregation(a, n->left->left);
	for (weight = value; weight != NULL && constants > 0; constants--)
		weight = weight->next;
	weight = weight != NULL ? weight->next : NULL;
	if (value != NULL)
		gen_value(value, 1);
	if (weight != NULL)
		gen_value(weight, 2);
	gen_keys(n->left->left, NULL, 3);
	gen_insn(DIF_AGG, 0, value != NULL ? 1 : R0, weight != NULL ? 2 : R0, (int32_t)a->number);
}

/* What the actions of some statements do: bits DO_. */
static unsigned
find_actions(const struct node *n)
{
	unsigned does = 0;

	for (; n != NULL; n = n->next) {
		if (n->kind == N_IF)
			does |= find_actions(n->right) | find_actions(n->third);
		else if (ident_action(n->left) != NULL)
			does |= n->left->function->does;
	}
	return does;
}

#define DO_SPECULATION (DO_SPECULATE | DO_COMMIT)

/* Gives each branch that records a byte of the open record, and clears it. */
static void
reserve_flags(struct node *n)
{
	for (; n != NULL; n = n->next) {
		const struct node *branches[] = {n->right, n->third};

		if (n->kind != N_IF)
			continue;
		for (unsigned i = 0; i < 2; i++)
			n->flags[i] =
			    find_actions(branches[i]) & DO_RECORD ? 1 + record_reserve(n, 1, 1) : 0;
		for (unsigned i = 0; i < 2; i++)
			if (n->flags[i] != 0)
				gen_insn(DIF_REC1, 0, R0, 0, (int32_t)n->flags[i] - 1);
		reserve_flags(n->right);
		reserve_flags(n->third);
	}
}

static void gen_statements(struct node *n);

static void
gen_branch(struct node *statements, uint32_t flag)
{
	uint32_t outer = gen_record.flag;

	if (flag != 0) {
		gen_insn(DIF_OR | DIF_IMM, 1, R0, 0, 1);
		gen_insn(DIF_REC1, 0, 1, 0, (int32_t)flag - 1);
		gen_record.flag = flag;
	}
	gen_statements(statements);
	gen_record.flag = outer;
}

static void
gen_if(struct node *n)
{
	struct buffer no = {0}, end = {0};
	bool was_open = gen_record.open, opened;
	unsigned does;
	struct node alone = *n;

	alone.next = NULL;
	does = find_actions(&alone);
	/* What alone records has its record where it is recorded: then none is there without it. */
	if ((does & DO_RECORD) && !(does & DO_SPECULATION) && gen_record.flag == 0 &&
	    (was_open || (find_actions(n->next) & DO_RECORD))) {
		record_open();
		was_open = true;
		reserve_flags(&alone);
		memcpy(n->flags, alone.flags, sizeof(n->flags));
	}
	gen_jump(n->left, 1, false, &no);
	gen_branch(n->right, n->flags[0]);
	opened = gen_record.open;
	gen_record.open = was_open;
	if (n->third != NULL) {
		gen_always(&end);
		gen_land(&no);
		gen_branch(n->third, n->flags[1]);
	}
	gen_land(&no);
	gen_land(&end);
	/* If only one branch has opened a record, what follows begins another. */
	gen_record.open = was_open && opened && gen_record.open;
}

static void
gen_statements(struct node *n)
{
	for (; n != NULL; n = n->next) {
		struct node *e = n->left;

		gen_action_number++;
		if (n->kind == N_IF)
			gen_if(n);
		else if (e->kind == N_ASSIGN && e->left->kind == N_AGG)
			gen_aggregate(e);
		else if (ident_action(e) != NULL)
			gen_action(e);
		else
			gen_value(e, 1);
	}
}

/* ---- the time ---- */

struct variable *gen_time[TIMES];

static bool
same_probes(const struct clause *a, const struct clause *b)
{
	const struct probe_spec *x = a->probes, *y = b->probes;

	for (; x != NULL && y != NULL && strcmp(x->text, y->text) == 0; x = x->next, y = y->next)
		;
	return x == NULL && y == NULL;
}

static void
plan_time(struct clause *clauses, unsigned time)
{
	struct clause *end;

	for (struct clause *c = clauses; c != NULL; c = end) {
		unsigned times = 0;

		for (end = c; end != NULL && same_probes(c, end); end = end->next)
			times += end->times[time];
		for (struct clause *one = c; times > 1 && one != end; one = one->next)
			one->time[time] = one == c ? TIME_KEEP : TIME_KEPT;
	}
}

void
gen_plan_times(struct clause *clauses)
{
	for (unsigned time = 0; time < TIMES; time++)
		plan_time(clauses, time);
}

static void
keep_time(const struct clause *c, unsigned time)
{
	/* No program can name them. ERROR fires amid others, so each plan has its own. */
	static const char *const names[TIMES] = {" time", " vtime", " walltime"};

	if (c->time[time] == TIME_READ)
		gen_time[time] = NULL;
	if (c->time[time] != TIME_KEEP)
		return;
	gen_time[time] = ident_add(SCOPE_THIS, names[time], type_ulong);
	gen_insn(DIF_BUILTIN, 1, 0, 0, DIF_B_TIMESTAMP + (int32_t)time);
	gen_insn(DIF_STV, 0, 1, 0, (int32_t)gen_variable(gen_time[time]));
}

void
gen_clause(struct clause *c)
{
	struct buffer no = {0};
	struct dif_clause d = {.code = (uint32_t)(gen_image.code.size / sizeof(struct dif_insn))};
	struct buffer probes = {0};
	unsigned does = find_actions(c->body);

	for (struct probe_spec *p = c->probes; p != NULL; p = p->next) {
		buffer_add(&probes, p->text, strlen(p->text));
		if (p->next != NULL)
			buffer_add(&probes, ",", 1);
	}
	d.probes = image_text((const char *)probes.data, probes.size);
	memset(&gen_record, 0, sizeof(gen_record));
	gen_action_number = 0;
	for (unsigned time = 0; time < TIMES; time++)
		keep_time(c, time);
	if (c->predicate != NULL)
		gen_jump(c->predicate, 1, false, &no);
	gen_statements(c->body);
	/* speculate() alone keeps the fact that the probe fired. */
	if (c->body == NULL || ((does & DO_SPECULATE) && !(does & DO_RECORD))) {
		record_open();
		record_action(ACT_NOTHING, NULL);
	}
	record_place_strings();
	gen_insn(DIF_RET, 0, 0, 0, 0);
	if (c->predicate != NULL) {
		gen_land(&no);
		gen_insn(DIF_RET, 0, 0, 0, 1);
	}
	d.length = (uint32_t)(gen_image.code.size / sizeof(struct dif_insn)) - d.code;
	if (d.length > DIF_MAX_CODE)
		dt_error(c->at, "D_CODE_SIZE",
			 "the clause has %u instructions, expected at most %d", d.length,
			 DIF_MAX_CODE);
	buffer_add(&gen_image.clauses, &d, sizeof(d));
}
