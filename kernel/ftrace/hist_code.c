/*
 * hist_code.c - a histogram as a program. It leaves variables in registers from 8 on: first its
 * own, then those of others. Locking: ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist.h"
#include "kernel/lib/string.h"
#include "ktr/word.h"

#define FIRST_NAMED 8u /* registers */
#define LAST_TEMP   7u

struct emitter {
	struct program *p;
	struct hist *h;
	struct hist_error *error;
	struct hist_slice s; /* the expression that is being read */
};

static bool
fail(struct emitter *e, unsigned at, const char *message)
{
	*e->error = (struct hist_error){message, at};
	return false;
}

static bool
emit(struct emitter *e, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm)
{
	return program_emit(e->p, op, d, a, b, imm) || fail(e, 0, "Too many actions");
}

bool
hist_field_find(const struct ktr_site *site, const char *name, struct filter_field *field)
{
	struct ktr_param params[KTR_SDT_ARGS];
	const struct filter_event event = {ktr_site_number(site) + 1, event_params(site, params),
					   params};

	return filter_field(&event, name, field);
}

/* Code that leaves a field's value, or its text's address, in register d. */
static bool
hist_emit_field(struct emitter *e, unsigned d, const struct hist_field *f)
{
	if (f->kind == HIST_TIME)
		return emit(e, DIF_BUILTIN, d, 0, 0, DIF_B_TIMESTAMP) &&
		       (f->modifier != HIST_USECS || emit(e, DIF_UDIV | DIF_IMM, d, d, 0, 1000));
	return filter_emit_field(e->p, d, &f->field) || fail(e, 0, "Too many actions");
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
hist_key_kinds(const struct hist *h)
{
	uint64_t kinds = 0;

	for (unsigned i = 0; i < h->nkeys; i++)
		kinds = DIF_KEYS_AND(kinds, key_kind(&h->keys[i]));
	return kinds;
}

/* Register 1 becomes the power of two that it is not above: its exponent. */
static bool
emit_log2(struct emitter *e)
{
	bool good = emit(e, DIF_ULT, 3, 0, 1, 0) && emit(e, DIF_SUB, 1, 1, 3, 0) &&
		    emit(e, DIF_OR | DIF_IMM, 2, 0, 0, 0);

	for (int32_t shift = 32; shift > 0 && good; shift /= 2)
		good = emit(e, DIF_SHR | DIF_IMM, 3, 1, 0, shift) && emit(e, DIF_JEQ, 0, 3, 0, 2) &&
		       emit(e, DIF_OR, 1, 0, 3, 0) && emit(e, DIF_ADD | DIF_IMM, 2, 2, 0, shift);
	return good && emit(e, DIF_ADD, 1, 1, 2, 0);
}

static bool
emit_key(struct emitter *e, const struct hist_field *f)
{
	if (f->kind == HIST_STACK)
		return emit(e, DIF_KEY_STACK, 0, 0, 0, HIST_FRAMES);
	if (!hist_emit_field(e, 1, f))
		return false;
	if (key_kind(f) == DIF_K_STR)
		return emit(e, DIF_KEY_STR, 0, 1, 0, 0);
	if (f->modifier == HIST_LOG2 && !emit_log2(e))
		return false;
	if (f->modifier == HIST_BUCKETS &&
	    !(emit(e, DIF_UREM | DIF_IMM, 2, 1, 0, (int32_t)f->width) &&
	      emit(e, DIF_SUB, 1, 1, 2, 0)))
		return false;
	return emit(e, DIF_KEY, 0, 1, 0, 0);
}

static bool
emit_keys(struct emitter *e)
{
	for (unsigned i = 0; i < e->h->nkeys; i++)
		if (!emit_key(e, &e->h->keys[i]))
			return false;
	return true;
}

/* ---- expressions ---- */

static bool hist_expression(struct emitter *e, unsigned d);

static char
peek(const struct emitter *e)
{
	return e->s.n > 0 ? e->h->text[e->s.at] : '\0';
}

static void
skip(struct emitter *e, unsigned n)
{
	e->s.at += n;
	e->s.n -= n;
}

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Takes a word: its place and length. */
static struct hist_slice
hist_take_word(struct emitter *e)
{
	struct hist_slice word = {e->s.at, 0};

	while (is_word(peek(e))) {
		skip(e, 1);
		word.n++;
	}
	return word;
}

static void
copy(const struct emitter *e, struct hist_slice s, char to[HIST_NAME])
{
	unsigned n = s.n < HIST_NAME - 1 ? s.n : HIST_NAME - 1;

	memcpy(to, e->h->text + s.at, n);
	to[n] = '\0';
}

static bool
variable(struct emitter *e, unsigned d)
{
	const struct hist *h = e->h;
	struct hist_slice word;
	char name[HIST_NAME];

	skip(e, 1); /* '$' */
	word = hist_take_word(e);
	copy(e, word, name);
	for (unsigned i = 0; i < h->nown + h->nothers; i++)
		if (strcmp(i < h->nown ? h->own[i].name : h->others[i - h->nown].name, name) == 0)
			return emit(e, DIF_OR, d, 0, FIRST_NAMED + i, 0);
	return fail(e, word.at, "Couldn't find variable");
}

static bool
field(struct emitter *e, unsigned d)
{
	struct hist_slice word = hist_take_word(e);
	struct hist_field f = {.kind = HIST_FIELD};

	copy(e, word, f.name);
	if (word.n == 0)
		return fail(e, word.at, "Invalid expression");
	if (strcmp(f.name, "common_timestamp") == 0) {
		f.kind = HIST_TIME;
		e->h->times = true;
	} else if (!hist_field_find(e->h->site, f.name, &f.field)) {
		return fail(e, word.at, "Couldn't find field");
	}
	if (peek(e) == '.') {
		skip(e, 1);
		word = hist_take_word(e);
		copy(e, word, f.name);
		if (strcmp(f.name, "usecs") == 0 && f.kind == HIST_TIME)
			f.modifier = HIST_USECS;
		else if (strcmp(f.name, "hex") != 0 && strcmp(f.name, "execname") != 0)
			return fail(e, word.at, "Invalid field modifier");
	}
	return hist_emit_field(e, d, &f);
}

static bool
hist_factor(struct emitter *e, unsigned d)
{
	char c = peek(e);

	if (d > LAST_TEMP)
		return fail(e, e->s.at, "Too many subexpressions (3 max)");
	if (c == '-') {
		skip(e, 1);
		return hist_factor(e, d) && emit(e, DIF_SUB, d, 0, d, 0);
	}
	if (c == '(') {
		skip(e, 1);
		if (!hist_expression(e, d))
			return false;
		if (peek(e) != ')')
			return fail(e, e->s.at, "No closing paren found");
		skip(e, 1);
		return true;
	}
	if (c == '$')
		return variable(e, d);
	if (c >= '0' && c <= '9') {
		struct hist_slice word = hist_take_word(e);
		uint64_t v;

		if (ktr_number(e->h->text + word.at, word.n, 0, &v) != KTR_NUMBER_OK)
			return fail(e, word.at, "Expecting numeric literal");
		return program_constant(e->p, d, v) || fail(e, 0, "Too many actions");
	}
	return field(e, d);
}

static bool
product(struct emitter *e, unsigned d)
{
	bool good = hist_factor(e, d);

	while (good && (peek(e) == '*' || peek(e) == '/')) {
		unsigned op = peek(e) == '*' ? DIF_MUL : DIF_SDIV;

		skip(e, 1);
		good = hist_factor(e, d + 1);
		/* By 0: -1, as in Linux. */
		if (good && op == DIF_SDIV)
			good = emit(e, DIF_JNE, 0, d + 1, 0, 1) &&
			       emit(e, DIF_OR | DIF_IMM, d + 1, 0, 0, -1);
		good = good && emit(e, op, d, d, d + 1, 0);
	}
	return good;
}

static bool
hist_expression(struct emitter *e, unsigned d)
{
	bool good = product(e, d);

	while (good && (peek(e) == '+' || peek(e) == '-')) {
		unsigned op = peek(e) == '+' ? DIF_ADD : DIF_SUB;

		skip(e, 1);
		good = product(e, d + 1) && emit(e, op, d, d, d + 1, 0);
	}
	return good;
}

/* Code that leaves the value of a whole part in register d. */
static bool
emit_expression(struct emitter *e, struct hist_slice s, unsigned d)
{
	e->s = s;
	return hist_expression(e, d) && (e->s.n == 0 || fail(e, e->s.at, "Invalid expression"));
}

/* ---- the program ---- */

/* Variables of others: without a value the program ends. They are used up. */
static bool
emit_others(struct emitter *e)
{
	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i];
		unsigned d = FIRST_NAMED + e->h->nown + i;
		int32_t number = (int32_t)v->of->own[v->index].number;

		if (!emit_keys(e) || !emit(e, DIF_LDV, d, 0, 0, number) ||
		    !program_fail(e->p, DIF_JEQ, d, 0))
			return false;
	}
	for (unsigned i = 0; i < e->h->nothers; i++) {
		const struct hist_variable *v = &e->h->others[i];

		if (!emit_keys(e) ||
		    !emit(e, DIF_STV, 0, 0, 0, (int32_t)v->of->own[v->index].number))
			return false;
	}
	return true;
}

static bool
emit_own(struct emitter *e)
{
	for (unsigned i = 0; i < e->h->nown; i++) {
		const struct hist_variable *v = &e->h->own[i];

		if (!emit_expression(e, v->expression, 1) ||
		    !emit(e, DIF_OR, FIRST_NAMED + i, 0, 1, 0))
			return false;
		if (v->used &&
		    !(emit_keys(e) && emit(e, DIF_STV, 0, FIRST_NAMED + i, 0, (int32_t)v->number)))
			return false;
	}
	return true;
}

static bool
emit_values(struct emitter *e)
{
	for (unsigned i = 0; i < e->h->nvalues; i++) {
		unsigned agg =
		    program_agg(e->p, i == 0 ? DIF_COUNT : DIF_SUM, hist_key_kinds(e->h));
		struct hist_slice text = e->h->value_texts[i];

		if (i == 0)
			e->h->agg = agg;
		/* Modifiers say how a value is printed. */
		for (unsigned n = 0; n < text.n; n++)
			if (e->h->text[text.at + n] == '.' && e->h->values[i].kind != HIST_TIME)
				text.n = n;
		if (i > 0 && !emit_expression(e, text, 4))
			return false;
		if (!emit_keys(e) || !emit(e, DIF_AGG, 0, i > 0 ? 4 : 0, 0, (int32_t)agg))
			return false;
	}
	return true;
}

/*
 * Code that goes on only if the variable is above all values before (onmax), or another than the
 * last (onchange), for these keys. What is kept is the value + 1: 0 means that there was none.
 */
static bool
emit_condition(struct emitter *e, struct hist_action *a, unsigned *jump)
{
	a->last = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
	if (!emit_keys(e) || !emit(e, DIF_LDV, 4, 0, 0, (int32_t)a->last) ||
	    !emit_expression(e, a->variable, 5) || !emit(e, DIF_ADD | DIF_IMM, 5, 5, 0, 1))
		return false;
	*jump = e->p->count;
	return emit(e, a->when == HIST_ONMAX ? DIF_JULE : DIF_JEQ, 0, 5, 4, 0) && emit_keys(e) &&
	       emit(e, DIF_STV, 0, 5, 0, (int32_t)a->last);
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
is_text(const struct emitter *e, struct hist_slice param)
{
	struct filter_field field = {.string = false};
	char name[HIST_NAME];

	copy(e, param, name);
	return hist_field_find(e->h->site, name, &field) && field.string;
}

static bool
emit_save(struct emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		a->saved[i] = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
		a->is_text[i] = is_text(e, a->params[i]);
		if (a->is_text[i])
			e->p->vars[a->saved[i]].kind = DIF_STR;
		if (!emit_expression(e, a->params[i], 4) || !emit_keys(e) ||
		    !emit(e, DIF_STV, 0, 4, 0, (int32_t)a->saved[i]))
			return false;
	}
	return true;
}

/* Where emit_condition() looks at one key, this looks at the last value of all. It is in
 * register 5. */
static bool
emit_snapshot(struct emitter *e, struct hist_action *a)
{
	unsigned jump;
	bool good;

	a->most = program_var(e->p, DIF_GLOBAL, 0);
	a->count = program_var(e->p, DIF_GLOBAL, 0);
	a->number = program_var(e->p, DIF_GLOBAL, hist_key_kinds(e->h));
	good = emit(e, DIF_LDV, 4, 0, 0, (int32_t)a->most);
	jump = e->p->count;
	good = good && emit(e, a->when == HIST_ONMAX ? DIF_JULE : DIF_JEQ, 0, 5, 4, 0) &&
	       emit(e, DIF_STV, 0, 5, 0, (int32_t)a->most) &&
	       emit(e, DIF_LDV, 4, 0, 0, (int32_t)a->count) &&
	       emit(e, DIF_ADD | DIF_IMM, 4, 4, 0, 1) &&
	       emit(e, DIF_STV, 0, 4, 0, (int32_t)a->count) && emit_keys(e) &&
	       emit(e, DIF_STV, 0, 4, 0, (int32_t)a->number) &&
	       (program_upcall(e->p, UPCALL_SNAPSHOT) || fail(e, 0, "Too many actions"));
	if (good)
		e->p->code[jump].imm = (int32_t)(e->p->count - jump - 1);
	return good;
}

static bool
emit_trace(struct emitter *e, struct hist_action *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct synthetic_field *to = &a->event->fields[i];

		if (is_text(e, a->params[i]) != (to->format[1] == 's'))
			return fail(e, a->params[i].at,
				    "Param type doesn't match synthetic event field type");
		if (!emit_expression(e, a->params[i], 2 + i))
			return false;
	}
	return program_constant(e->p, 1, (uintptr_t)a->event) &&
	       emit(e, DIF_UPCALL, 0, 1, 1 + a->n, UPCALL_SYNTHETIC);
}

static bool
emit_action(struct emitter *e, struct hist_action *a)
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
emit_filter(struct emitter *e)
{
	struct filter_error error = {"", 0};

	if (e->h->filter.n == 0)
		return true;
	return filter_compile_for(e->p, e->h->site, e->h->text + e->h->filter.at, &error) == 0 ||
	       fail(e, e->h->filter.at + (unsigned)error.at, error.message);
}

int
hist_emit(struct program *p, struct hist *h, struct hist_error *error)
{
	struct emitter e = {.p = p, .h = h, .error = error};
	bool gated =
	    triggers_switch_hists(h->site) || __atomic_load_n(&h->gate, __ATOMIC_RELAXED) == 0;
	unsigned vars = p->nvars;
	bool good;

	*error = (struct hist_error){"Too many actions", 0};
	for (unsigned i = 0; i < h->nactions; i++)
		vars += hist_action_vars(&h->actions[i]);
	if (p->naggs + h->nvalues > PROGRAM_ITEMS || vars > PROGRAM_ITEMS)
		return -EINVAL;
	good = (!gated || program_gate(p, &h->gate)) && emit_filter(&e) && emit_others(&e) &&
	       emit_own(&e) && emit_values(&e);
	for (unsigned i = 0; i < h->nactions && good; i++)
		good = emit_action(&e, &h->actions[i]);
	return good && program_end(p) ? 0 : -EINVAL;
}
