/*
 * hist_code.c - a histogram as a program. It leaves variables in registers from HIST_FIRST_NAMED
 * on: first its own, then those of others. Locking: ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist.h"
#include "kernel/lib/string.h"
#include "ktr/word.h"

bool
hist_emit_fail(struct hist_emitter *e, unsigned at, const char *message)
{
	*e->error = (struct hist_error){message, at, 0};
	return false;
}

bool
hist_emit_op(struct hist_emitter *e, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm)
{
	return program_emit(e->p, op, d, a, b, imm) || hist_emit_fail(e, 0, "Too many actions");
}

bool
hist_field_find(const struct ktr_site *site, const char *name, struct filter_field *field)
{
	struct ktr_param params[KTR_SDT_ARGS];
	const struct filter_event event = {ktr_site_number(site) + 1, event_params(site, params),
					   params};

	return filter_field(&event, name, field);
}

/* Register d becomes the power of two that it is not above: its exponent. */
static bool
emit_log2(struct hist_emitter *e, unsigned d)
{
	unsigned power = d + 1, high = d + 2;
	bool good = hist_emit_op(e, DIF_ULT, high, 0, d, 0) &&
		    hist_emit_op(e, DIF_SUB, d, d, high, 0) &&
		    hist_emit_op(e, DIF_OR | DIF_IMM, power, 0, 0, 0);

	for (int32_t shift = 32; shift > 0 && good; shift /= 2)
		good = hist_emit_op(e, DIF_SHR | DIF_IMM, high, d, 0, shift) &&
		       hist_emit_op(e, DIF_JEQ, 0, high, 0, 2) &&
		       hist_emit_op(e, DIF_OR, d, 0, high, 0) &&
		       hist_emit_op(e, DIF_ADD | DIF_IMM, power, power, 0, shift);
	return good && hist_emit_op(e, DIF_ADD, d, d, power, 0);
}

bool
hist_emit_field(struct hist_emitter *e, unsigned d, const struct hist_field *f)
{
	if (f->kind == HIST_TIME)
		return hist_emit_op(e, DIF_BUILTIN, d, 0, 0, DIF_B_TIMESTAMP) &&
		       (f->modifier != HIST_USECS ||
			hist_emit_op(e, DIF_UDIV | DIF_IMM, d, d, 0, 1000));
	if (!filter_emit_field(e->p, d, &f->field))
		return hist_emit_fail(e, 0, "Too many actions");
	if (f->modifier == HIST_LOG2)
		return emit_log2(e, d);
	return f->modifier != HIST_BUCKETS ||
	       (hist_emit_op(e, DIF_UREM | DIF_IMM, d + 1, d, 0, (int32_t)f->width) &&
		hist_emit_op(e, DIF_SUB, d, d, d + 1, 0));
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

static bool
emit_key(struct hist_emitter *e, const struct hist_field *f)
{
	if (f->kind == HIST_STACK)
		return hist_emit_op(e, DIF_KEY_STACK, 0, 0, 0, HIST_FRAMES);
	if (!hist_emit_field(e, 1, f))
		return false;
	if (key_kind(f) == DIF_K_STR)
		return hist_emit_op(e, DIF_KEY_STR, 0, 1, 0, 0);
	return hist_emit_op(e, DIF_KEY, 0, 1, 0, 0);
}

static bool
emit_first_keys(struct hist_emitter *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!emit_key(e, &e->h->keys[i]))
			return false;
	return true;
}

static bool
emit_keys(struct hist_emitter *e)
{
	return emit_first_keys(e, e->h->nkeys);
}

/* ---- the program ---- */

/* What a number has in the table, since 0 there means that it was never stored: its highest bit is
 * inverted. So a variable of INT64_MIN counts as one without a value. */
static bool
emit_flip(struct hist_emitter *e, unsigned d, unsigned from)
{
	return hist_emit_op(e, DIF_OR | DIF_IMM, 1, 0, 0, 1) &&
	       hist_emit_op(e, DIF_SHL | DIF_IMM, 1, 1, 0, 63) &&
	       hist_emit_op(e, DIF_XOR, d, 1, from, 0);
}

/* Copies the text in register d, which its variable may lose. */
static bool
emit_copy(struct hist_emitter *e, unsigned d)
{
	return hist_emit_op(e, DIF_OR, 1, 0, d, 0) && hist_emit_op(e, DIF_STRING, 2, 0, 0, 0) &&
	       hist_emit_op(e, DIF_CALL, d, 1, 0, DIF_SUB_STRJOIN);
}

/* Variables of others, by as many keys as those have: without a value the program ends. What
 * expressions read is used up. */
static bool
emit_others(struct hist_emitter *e)
{
	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i], *own = &v->of->own[v->index];
		unsigned d = HIST_FIRST_NAMED + e->h->nown + i;

		if (!emit_first_keys(e, v->of->nkeys) ||
		    !hist_emit_op(e, DIF_LDV, d, 0, 0, (int32_t)own->number) ||
		    !program_fail(e->p, DIF_JEQ, d, 0))
			return false;
	}
	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i], *own = &v->of->own[v->index];
		unsigned d = HIST_FIRST_NAMED + e->h->nown + i;

		if (!(own->is.kind == HIST_TEXT ? emit_copy(e, d) : emit_flip(e, d, d)))
			return false;
		if (v->once && !(emit_first_keys(e, v->of->nkeys) &&
				 hist_emit_op(e, DIF_STV, 0, 0, 0, (int32_t)own->number)))
			return false;
	}
	return true;
}

static bool
emit_own(struct hist_emitter *e)
{
	for (unsigned i = 0; i < e->h->nown; i++) {
		struct hist_variable *v = &e->h->own[i];
		unsigned d = HIST_FIRST_NAMED + i, from = d;

		if (!hist_emit_expression(e, v->expression, d, &v->is))
			return false;
		if (!v->used)
			continue;
		if (v->is.kind != HIST_TEXT && !emit_flip(e, from = 4, d))
			return false;
		if (!emit_keys(e) || !hist_emit_op(e, DIF_STV, 0, from, 0, (int32_t)v->number))
			return false;
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
			e->h->agg = agg;
		else if (f->kind == HIST_EXPRESSION
			     ? !hist_emit_expression(e, e->h->value_texts[i], 4, &is)
			     : !hist_emit_field(e, 4, f))
			return false;
		if (is.kind == HIST_TEXT)
			return hist_emit_fail(e, e->h->value_texts[i].at,
					      "Strings as values not supported");
		if (!emit_keys(e) || !hist_emit_op(e, DIF_AGG, 0, i > 0 ? 4 : 0, 0, (int32_t)agg))
			return false;
	}
	return true;
}

/*
 * Code that goes on only if the variable is above all values before (onmax), or another than the
 * last (onchange), for these keys. What is kept is the value + 1: 0 means that there was none.
 */
static bool
emit_condition(struct hist_emitter *e, struct hist_action *a, unsigned *jump)
{
	struct hist_operand is;

	a->last = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
	if (!hist_emit_atom(e, a->variable, 5, &is) || is.kind == HIST_TEXT ||
	    !hist_emit_op(e, DIF_ADD | DIF_IMM, 5, 5, 0, 1) || !emit_keys(e) ||
	    !hist_emit_op(e, DIF_LDV, 4, 0, 0, (int32_t)a->last))
		return false;
	*jump = e->p->count;
	return hist_emit_op(e, a->when == HIST_ONMAX ? DIF_JULE : DIF_JEQ, 0, 5, 4, 0) &&
	       emit_keys(e) && hist_emit_op(e, DIF_STV, 0, 5, 0, (int32_t)a->last);
}

unsigned
hist_action_vars(const struct hist_action *a)
{
	return a->when == HIST_ONMATCH    ? 0
	       : a->what == HIST_SAVE     ? 1 + a->n
	       : a->what == HIST_SNAPSHOT ? 4
					  : 1;
}

static bool
emit_save(struct hist_emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		struct hist_operand is;

		a->saved[i] = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
		if (!hist_emit_atom(e, a->params[i], 4, &is))
			return false;
		a->is_text[i] = is.kind == HIST_TEXT;
		if (a->is_text[i])
			e->p->vars[a->saved[i]].kind = DIF_STR;
		if (!emit_keys(e) || !hist_emit_op(e, DIF_STV, 0, 4, 0, (int32_t)a->saved[i]))
			return false;
	}
	return true;
}

/* Where emit_condition() looks at one key, this looks at the last value of all. It is in
 * register 5. */
static bool
emit_snapshot(struct hist_emitter *e, struct hist_action *a)
{
	unsigned jump;
	bool good;

	a->most = program_var(e->p, DIF_GLOBAL, 0);
	a->count = program_var(e->p, DIF_GLOBAL, 0);
	a->number = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
	good = hist_emit_op(e, DIF_LDV, 4, 0, 0, (int32_t)a->most);
	jump = e->p->count;
	good = good && hist_emit_op(e, a->when == HIST_ONMAX ? DIF_JULE : DIF_JEQ, 0, 5, 4, 0) &&
	       hist_emit_op(e, DIF_STV, 0, 5, 0, (int32_t)a->most) &&
	       hist_emit_op(e, DIF_LDV, 4, 0, 0, (int32_t)a->count) &&
	       hist_emit_op(e, DIF_ADD | DIF_IMM, 4, 4, 0, 1) &&
	       hist_emit_op(e, DIF_STV, 0, 4, 0, (int32_t)a->count) && emit_keys(e) &&
	       hist_emit_op(e, DIF_STV, 0, 4, 0, (int32_t)a->number) &&
	       (program_upcall(e->p, UPCALL_SNAPSHOT) || hist_emit_fail(e, 0, "Too many actions"));
	if (good)
		e->p->code[jump].imm = (int32_t)(e->p->count - jump - 1);
	return good;
}

static bool
emit_trace(struct hist_emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct synthetic_field *to = &a->event->fields[i];

		struct hist_operand is;

		if (!hist_emit_atom(e, a->params[i], 2 + i, &is))
			return false;
		if ((is.kind == HIST_TEXT) != (to->format[1] == 's'))
			return hist_emit_fail(
			    e, a->params[i].at,
			    "Param type doesn't match synthetic event field type");
	}
	return program_constant(e->p, 1, (uintptr_t)a->event) &&
	       hist_emit_op(e, DIF_UPCALL, 0, 1, 1 + a->n, UPCALL_SYNTHETIC);
}

static bool
emit_action(struct hist_emitter *e, struct hist_action *a)
{
	unsigned jump = UINT_MAX;
	bool good = a->when == HIST_ONMATCH || emit_condition(e, a, &jump);

	good = good && (a->what == HIST_SAVE       ? emit_save(e, a)
			: a->what == HIST_SNAPSHOT ? emit_snapshot(e, a)
						   : emit_trace(e, a));
	if (!good)
		return false;
	if (jump != UINT_MAX)
		e->p->code[jump].imm = (int32_t)(e->p->count - jump - 1);
	return true;
}

/* The filter's place in the text is that of the error, too. */
static bool
emit_filter(struct hist_emitter *e)
{
	struct filter_error error = {"", 0};

	if (e->h->filter.n == 0)
		return true;
	return filter_compile_for(e->p, e->h->site, e->h->text + e->h->filter.at, &error) == 0 ||
	       hist_emit_fail(e, e->h->filter.at + (unsigned)error.at, error.message);
}

int
hist_emit(struct program *p, struct hist *h, struct hist_error *error)
{
	struct hist_emitter e = {.p = p, .h = h, .error = error};
	bool gated =
	    triggers_switch_hists(h->site) || __atomic_load_n(&h->gate, __ATOMIC_RELAXED) == 0;
	unsigned vars = p->nvars;
	bool good;

	*error = (struct hist_error){"Too many actions", 0, 0};
	for (unsigned i = 0; i < h->nactions; i++)
		vars += hist_action_vars(&h->actions[i]);
	if (p->naggs + h->nvalues > PROGRAM_ITEMS || vars > PROGRAM_ITEMS)
		return -EINVAL;
	good = program_instance(p, h->site) && (!gated || program_gate(p, &h->gate)) &&
	       emit_filter(&e) && emit_others(&e) && emit_own(&e) && emit_values(&e);
	for (unsigned i = 0; i < h->nactions && good; i++)
		good = emit_action(&e, &h->actions[i]);
	if (good && program_end(p))
		return 0;
	return error->number != 0 ? error->number : -EINVAL;
}
