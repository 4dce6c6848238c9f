/*
 * hist_code.c - a histogram as a program. It leaves variables in registers from HIST_FIRST_NAMED
 * on: first its own, then those of others. Locking: ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist/hist.h"

bool
hist_field_find(const struct ktr_site *site, const char *name, struct filter_field *field)
{
	struct ktr_param params[KTR_SDT_ARGS];
	const bool is_call = event_is_call(site);
	const struct filter_event event = {ktr_site_number(site) + 1, event_params(site, params),
					   params, is_call,
					   is_call ? (unsigned)event_call_number(site) : 0};

	return filter_field(&event, name, field);
}

/* Makes register d the exponent of the smallest power of two that is not below it. */
static void
emit_log2(struct program *p, unsigned d)
{
	unsigned power = d + 1, high = d + 2;

	program_emit(p, DIF_ULT, high, 0, d, 0);
	program_emit(p, DIF_SUB, d, d, high, 0);
	program_emit(p, DIF_OR | DIF_IMM, power, 0, 0, 0);
	for (int32_t shift = 32; shift > 0; shift /= 2) {
		program_emit(p, DIF_SHR | DIF_IMM, high, d, 0, shift);
		program_emit(p, DIF_JEQ, 0, high, 0, 2);
		program_emit(p, DIF_OR, d, 0, high, 0);
		program_emit(p, DIF_ADD | DIF_IMM, power, power, 0, shift);
	}
	program_emit(p, DIF_ADD, d, d, power, 0);
}

void
hist_emit_field(struct program *p, unsigned d, const struct hist_field *f)
{
	if (f->kind == HIST_TIME) {
		program_emit(p, DIF_BUILTIN, d, 0, 0, DIF_B_TIMESTAMP);
		if (f->modifier == HIST_USECS)
			program_emit(p, DIF_UDIV | DIF_IMM, d, d, 0, 1000);
	} else {
		filter_emit_field(p, d, &f->field);
	}
	if (f->modifier == HIST_LOG2)
		emit_log2(p, d);
	if (f->modifier != HIST_BUCKETS)
		return;
	program_emit(p, DIF_UREM | DIF_IMM, d + 1, d, 0, (int32_t)f->width);
	program_emit(p, DIF_SUB, d, d, d + 1, 0);
}

/* ---- keys ---- */

static unsigned
key_kind(const struct hist_field *f)
{
	if (f->kind == HIST_STACK)
		return DIF_K_STACK;
	return f->kind == HIST_FIELD && f->field.string ? DIF_K_STR : DIF_K_INT;
}

uint64_t
hist_kinds_of_first(const struct hist *h, unsigned n)
{
	uint64_t kinds = 0;

	for (unsigned i = 0; i < n; i++)
		kinds = DIF_KEYS_AND(kinds, key_kind(&h->keys[i]));
	return kinds;
}

uint64_t
hist_key_kinds(const struct hist *h)
{
	return hist_kinds_of_first(h, h->nkeys);
}

static void
emit_key(struct program *p, const struct hist_field *f)
{
	if (f->kind == HIST_STACK) {
		program_emit(p, DIF_KEY_STACK, 0, 0, 0, HIST_FRAMES);
		return;
	}
	hist_emit_field(p, 1, f);
	program_emit(p, key_kind(f) == DIF_K_STR ? DIF_KEY_STR : DIF_KEY, 0, 1, 0, 0);
}

/* Loads a variable by the first n keys, or stores into it. */
static void
emit_load(struct hist_emitter *e, unsigned d, unsigned nkeys, unsigned var)
{
	for (unsigned i = 0; i < nkeys; i++)
		emit_key(e->p, &e->h->keys[i]);
	program_emit(e->p, DIF_LDV, d, 0, 0, (int32_t)var);
}

static void
emit_store(struct hist_emitter *e, unsigned from, unsigned nkeys, unsigned var)
{
	for (unsigned i = 0; i < nkeys; i++)
		emit_key(e->p, &e->h->keys[i]);
	program_emit(e->p, DIF_STV, 0, from, 0, (int32_t)var);
}

/* ---- the program ---- */

/* Inverts the highest bit of a number. Numbers are stored so in the table, where 0 means that
 * nothing was stored. So a variable of INT64_MIN counts as one without a value. */
static void
emit_flip(struct program *p, unsigned d, unsigned from)
{
	program_emit(p, DIF_OR | DIF_IMM, 1, 0, 0, 1);
	program_emit(p, DIF_SHL | DIF_IMM, 1, 1, 0, 63);
	program_emit(p, DIF_XOR, d, 1, from, 0);
}

/* Copies the text in register d, since its variable may go. */
static void
emit_copy(struct program *p, unsigned d)
{
	program_emit(p, DIF_OR, 1, 0, d, 0);
	program_emit(p, DIF_STRING, 2, 0, 0, 0);
	program_emit(p, DIF_CALL, d, 1, 0, DIF_SUB_STRJOIN);
}

/* Loads the variables of other histograms, by as many keys as those have. If one has no value,
 * the program ends. What an expression has read is removed. */
static void
emit_others(struct hist_emitter *e)
{
	unsigned d = HIST_FIRST_NAMED + e->h->nown;

	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i];

		emit_load(e, d + i, v->of->nkeys, v->of->made.own[v->index]);
		program_fail(e->p, DIF_JEQ, d + i, 0);
	}
	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i], *own = &v->of->own[v->index];

		if (own->is.kind == HIST_TEXT)
			emit_copy(e->p, d + i);
		else
			emit_flip(e->p, d + i, d + i);
		if (v->once)
			emit_store(e, 0, v->of->nkeys, v->of->made.own[v->index]);
	}
}

static bool
emit_own(struct hist_emitter *e)
{
	for (unsigned i = 0; i < e->h->nown; i++) {
		struct hist_variable *v = &e->h->own[i];
		unsigned d = HIST_FIRST_NAMED + i, from = d;

		if (!hist_emit_expression(e, v->expression, d, &v->is))
			return false;
		if (!e->h->made.used[i])
			continue;
		if (v->is.kind != HIST_TEXT)
			emit_flip(e->p, from = 4, d);
		emit_store(e, from, e->h->nkeys, e->h->made.own[i]);
	}
	return true;
}

static bool
emit_values(struct hist_emitter *e)
{
	for (unsigned i = 0; i < e->h->nvalues; i++) {
		unsigned agg =
		    program_agg(e->p, i == 0 ? DIF_COUNT : DIF_SUM, hist_key_kinds(e->h));
		const struct hist_field *f = &e->h->values[i];
		struct hist_operand is = {HIST_NUMBER, 0, false};

		if (i == 0)
			e->h->made.agg = agg;
		else if (f->kind != HIST_EXPRESSION)
			hist_emit_field(e->p, 4, f);
		else if (!hist_emit_expression(e, e->h->value_texts[i], 4, &is))
			return false;
		if (is.kind == HIST_TEXT)
			return hist_fail(e->error, e->h->value_texts[i].at,
					 "Strings as values not supported");
		for (unsigned key = 0; key < e->h->nkeys; key++)
			emit_key(e->p, &e->h->keys[key]);
		program_emit(e->p, DIF_AGG, 0, i > 0 ? 4 : 0, 0, (int32_t)agg);
	}
	return true;
}

/*
 * Code that goes on only if the value in register 5 is above all values before (onmax), or another
 * than the last (onchange), for the first n keys. What is kept is the value + 1: 0 means that there
 * was none.
 */
static unsigned
emit_condition(struct hist_emitter *e, const struct hist_action *a, unsigned nkeys, unsigned last)
{
	emit_load(e, 4, nkeys, last);
	return program_branch(e->p, a->when == HIST_ONMAX ? DIF_JULE : DIF_JEQ, 5, 4);
}

unsigned
hist_action_vars(const struct hist_action *a)
{
	return a->when == HIST_ONMATCH    ? 0
	       : a->what == HIST_SAVE     ? 1 + a->n
	       : a->what == HIST_SNAPSHOT ? 4
					  : 1;
}

static struct hist_action_numbers *
action_numbers(struct hist_emitter *e)
{
	return &e->h->made.actions[e->action - 1];
}

static bool
emit_save(struct hist_emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		struct hist_operand is;

		unsigned var = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));

		action_numbers(e)->saved[i] = var;
		if (!hist_emit_atom(e, a->params[i], 4, &is))
			return false;
		a->is_text[i] = is.kind == HIST_TEXT;
		if (a->is_text[i])
			e->p->vars[var].kind = DIF_STR;
		emit_store(e, 4, e->h->nkeys, var);
	}
	return true;
}

/* Where an action looks at one key, a snapshot looks at the value of the last snapshot. */
static void
emit_snapshot(struct hist_emitter *e, const struct hist_action *a)
{
	struct hist_action_numbers *n = action_numbers(e);
	unsigned branch, refused;

	n->most = program_var(e->p, DIF_GLOBAL, 0);
	n->count = program_var(e->p, DIF_GLOBAL, 0);
	n->number = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
	branch = emit_condition(e, a, 0, n->most);
	program_upcall(e->p, e->h->i, UPCALL_SNAPSHOT);
	program_constant(e->p, 1, (uintptr_t)&e->h->i->snapshot_taken);
	program_emit(e->p, DIF_LD4, 1, 1, 0, 0);
	refused = program_branch(e->p, DIF_JEQ, 1, 0);
	emit_store(e, 5, 0, n->most);
	emit_load(e, 4, 0, n->count);
	program_emit(e->p, DIF_ADD | DIF_IMM, 4, 4, 0, 1);
	emit_store(e, 4, 0, n->count);
	emit_store(e, 4, e->h->nkeys, n->number);
	program_land(e->p, refused);
	program_land(e->p, branch);
}

static bool
emit_trace(struct hist_emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		struct hist_operand is;

		if (!hist_emit_atom(e, a->params[i], 2 + i, &is))
			return false;
		if ((is.kind == HIST_TEXT) != (a->event->fields[i].format[1] == 's'))
			return hist_fail(e->error, a->params[i].at,
					 "Param type doesn't match synthetic event field type");
	}
	program_constant(e->p, 1, (uintptr_t)a->event);
	program_emit(e->p, DIF_UPCALL, 0, 1, 1 + a->n, UPCALL_SYNTHETIC);
	return true;
}

static bool
emit_action(struct hist_emitter *e, struct hist_action *a)
{
	bool always = a->when == HIST_ONMATCH, good = true;
	struct hist_operand is;
	unsigned branch = 0;

	if (!always) {
		unsigned last = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));

		action_numbers(e)->last = last;
		if (!hist_emit_atom(e, a->variable, 5, &is) || is.kind == HIST_TEXT)
			return false;
		program_emit(e->p, DIF_ADD | DIF_IMM, 5, 5, 0, 1);
		branch = emit_condition(e, a, e->h->nkeys, last);
		emit_store(e, 5, e->h->nkeys, last);
	}
	if (a->what == HIST_SNAPSHOT)
		emit_snapshot(e, a);
	else
		good = a->what == HIST_SAVE ? emit_save(e, a) : emit_trace(e, a);
	if (!always)
		program_land(e->p, branch);
	return good;
}

/* A place in the filter's text is that of the error, too. */
static bool
emit_filter(struct hist_emitter *e)
{
	struct hist_slice filter = e->h->filter;

	if (filter.n == 0 ||
	    filter_compile_for(e->p, e->h->site, e->h->text + filter.at, e->error) == 0)
		return true;
	e->error->at += filter.at;
	return false;
}

int
hist_emit(struct program *p, struct hist *h, struct filter_error *error)
{
	struct hist_emitter e = {.p = p, .h = h, .error = error};
	bool good, shared = p->count > 0 || p->full; /* with other histograms */

	*error = (struct filter_error){"Too many actions", 0, 0};
	program_instance(p, h->i, h->site);
	program_gate(p, &h->gate);
	good = emit_filter(&e);
	emit_others(&e);
	good = good && emit_own(&e) && emit_values(&e);
	for (unsigned i = 0; i < h->nactions && good; i++) {
		e.action = i + 1;
		good = emit_action(&e, &h->actions[i]);
	}
	if (good && program_end(p))
		return 0;
	if (p->full && shared)
		*error = (struct filter_error){"Too many histograms with variables", 0, -ENOSPC};
	return error->number != 0 ? error->number : -EINVAL;
}
