/*
 * hist_expression.c - the expressions of histograms as code, with Linux's rules
 * (Documentation/trace/histogram.rst, "Inter-event hist triggers").
 *
 *	EXPRESSION  ATOM; EXPRESSION + - * / EXPRESSION, at most three of these; -(EXPRESSION)
 *	ATOM        a number, FIELD[.MODIFIER], [SYSTEM.EVENT.]$VARIABLE
 *
 * `*` and `/` come before `+` and `-`; those of one kind, from left to right. What has only
 * constants is one. Locking: ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/lib/string.h"
#include "ktr/word.h"

#define OPERATORS_MAX 3u

/* Returns the operator that is applied last, and in *at its place; '\0' if there is none. As in
 * Linux, one minus in front belongs to the whole expression. */
static char
last_operator(const struct hist *h, struct hist_slice s, unsigned *at)
{
	static const char *const kinds[] = {"+-", "*/"};
	unsigned minus = s.n;

	for (unsigned i = 0; i < s.n; i++)
		if (h->text[s.at + i] == '-')
			minus = i;
	*at = s.at;
	if (minus == 0)
		return '-';
	for (unsigned kind = 0; kind < 2; kind++)
		for (unsigned i = s.n; i-- > 0;)
			if (strchr(kinds[kind], h->text[s.at + i]) != NULL) {
				*at = s.at + i;
				return h->text[*at];
			}
	return '\0';
}

bool
hist_is_expression(const struct hist *h, struct hist_slice s)
{
	unsigned at;

	return last_operator(h, s, &at) != '\0';
}

/* Appends code for a value that is in register `from`, or for a constant. */
static void
hist_take_value(struct hist_emitter *e, unsigned d, unsigned from, const struct hist_operand *is)
{
	if (is->kind == HIST_CONSTANT)
		program_constant(e->p, d, is->constant);
	else if (d != from)
		program_emit(e->p, DIF_OR, d, 0, from, 0);
}

/* Reads a variable, or another event's field, as a variable. False: the atom is neither. */
static bool
hist_take_name(struct hist_emitter *e, struct hist_slice s, unsigned d, struct hist_operand *is,
	       bool once)
{
	struct hist *h = e->h;
	unsigned from = HIST_FIRST_NAMED;
	struct hist_slice name = s;

	for (unsigned i = 0; i < h->nothers; i++) {
		struct hist_variable *v = &h->others[i];

		if (!hist_slice_same(h, v->written, h, s) || (v->where >> e->action & 1) == 0)
			continue;
		v->once |= once;
		*is = v->of->own[v->index].is;
		hist_take_value(e, d, from + h->nown + i, is);
		return true;
	}
	for (unsigned i = 0; i < s.n; i++)
		if (h->text[s.at + i] == '$')
			name = (struct hist_slice){s.at + i + 1, s.n - i - 1};
	for (unsigned i = 0; i < h->nown && name.at != s.at; i++) {
		if (!hist_slice_same(h, name, h, h->own[i].name))
			continue;
		*is = h->own[i].is;
		hist_take_value(e, d, from + i, is);
		return true;
	}
	return false;
}

static bool
hist_take_field(struct hist_emitter *e, struct hist_slice s, unsigned d, struct hist_operand *is)
{
	struct hist_parser p = {.h = e->h, .error = e->error};
	struct hist_field f = {.kind = HIST_FIELD};
	struct hist_slice rest = s, name;

	hist_slice_next(e->h, &rest, '.', &name);
	if (!hist_slice_copy(e->h, name, f.name, sizeof(f.name)))
		return hist_fail(e->error, s.at, "Couldn't find field");
	if (strcmp(f.name, "common_timestamp") == 0) {
		f.kind = HIST_TIME;
		e->h->times = true;
	} else if (!hist_field_find(e->h->site, f.name, &f.field)) {
		return hist_fail(e->error, s.at, "Couldn't find field");
	}
	if (rest.at != 0 && !hist_modifier_read(&p, rest, &f))
		return false;
	*is =
	    (struct hist_operand){f.kind == HIST_FIELD && f.field.string ? HIST_TEXT : HIST_NUMBER,
				  0, f.modifier == HIST_USECS};
	hist_emit_field(e->p, d, &f);
	return true;
}

static bool
hist_take_atom(struct hist_emitter *e, struct hist_slice s, unsigned d, struct hist_operand *is,
	       bool once)
{
	char first = s.n > 0 ? e->h->text[s.at] : '\0';

	if (first >= '0' && first <= '9') {
		*is = (struct hist_operand){HIST_CONSTANT, 0, false};
		return ktr_number(e->h->text + s.at, s.n, 0, &is->constant) == KTR_NUMBER_OK ||
		       hist_fail(e->error, s.at, "Expecting numeric literal");
	}
	return hist_take_name(e, s, d, is, once) || hist_take_field(e, s, d, is);
}

static uint64_t
hist_fold(char op, uint64_t a, uint64_t b)
{
	return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
}

/* Appends d = d OP d + 1. What is divided by 0 is -1. */
static void
hist_emit_operator(struct program *p, char op, unsigned d)
{
	if (op == '/') {
		program_emit(p, DIF_JNE, 0, d + 1, 0, 2);
		program_emit(p, DIF_OR | DIF_IMM, d, 0, 0, -1);
		program_emit(p, DIF_JA, 0, 0, 0, 1);
	}
	program_emit(p,
		     op == '+'   ? DIF_ADD
		     : op == '-' ? DIF_SUB
		     : op == '*' ? DIF_MUL
				 : DIF_UDIV,
		     d, d, d + 1, 0);
}

/* An operand must be no text. */
static bool
is_number(struct hist_emitter *e, struct hist_slice s, const struct hist_operand *is)
{
	return is->kind != HIST_TEXT ||
	       hist_fail(e->error, s.at, "String type can not be an operand in expression");
}

static bool hist_take_expression(struct hist_emitter *e, struct hist_slice s, unsigned d,
				 struct hist_operand *is, bool once, unsigned *count);

/* -(EXPRESSION) */
static bool
hist_take_negation(struct hist_emitter *e, struct hist_slice s, unsigned d, struct hist_operand *is,
		   unsigned *count)
{
	struct hist_slice inside = {s.at + 2, 0};

	if (++*count > OPERATORS_MAX)
		return hist_fail(e->error, s.at, "Too many subexpressions (3 max)");
	if (s.n < 2 || e->h->text[s.at + 1] != '(')
		return hist_fail(e->error, s.at, "Invalid expression");
	for (unsigned i = 2; i < s.n; i++)
		if (e->h->text[s.at + i] == ')')
			inside.n = i - 2;
	if (inside.n == 0)
		return hist_fail(e->error, s.at, "No closing paren found");
	if (inside.n + 3 != s.n)
		return hist_fail(e->error, inside.at,
				 "Unary minus not supported in sub-expressions");
	if (!hist_take_expression(e, inside, d, is, false, count) || !is_number(e, inside, is))
		return false;
	if (is->kind == HIST_CONSTANT) {
		is->constant = 0 - is->constant;
		return true;
	}
	program_emit(e->p, DIF_SUB, d, 0, d, 0);
	return true;
}

static bool
hist_take_expression(struct hist_emitter *e, struct hist_slice s, unsigned d,
		     struct hist_operand *is, bool once, unsigned *count)
{
	struct hist_slice left = {s.at, 0}, right;
	struct hist_operand second;
	unsigned at = 0;
	char op;

	if (*count > OPERATORS_MAX)
		return hist_fail(e->error, s.at, "Too many subexpressions (3 max)");
	op = last_operator(e->h, s, &at);
	if (op == '\0')
		return hist_take_atom(e, s, d, is, once);
	if (op == '-' && at == s.at)
		return hist_take_negation(e, s, d, is, count);
	++*count;
	left.n = at - s.at;
	right = (struct hist_slice){at + 1, s.n - left.n - 1};
	if (left.n == 0 || right.n == 0)
		return hist_fail(e->error, s.at, "Invalid expression");
	if (!hist_take_expression(e, left, d, is, true, count) || !is_number(e, left, is) ||
	    !hist_take_expression(e, right, d + 1, &second, true, count) ||
	    !is_number(e, right, &second))
		return false;
	if (is->usecs != second.usecs)
		return hist_fail(e->error, 0, "Timestamp units in expression don't match");
	if (op == '/' && second.kind == HIST_CONSTANT && second.constant == 0) {
		*e->error = (struct filter_error){"Division by zero", right.at, -EDOM};
		return false;
	}
	if (is->kind == HIST_CONSTANT && second.kind == HIST_CONSTANT) {
		is->constant = hist_fold(op, is->constant, second.constant);
		return true;
	}
	hist_take_value(e, d, d, is);
	hist_take_value(e, d + 1, d + 1, &second);
	is->kind = HIST_NUMBER;
	hist_emit_operator(e->p, op, d);
	return true;
}

bool
hist_emit_atom(struct hist_emitter *e, struct hist_slice s, unsigned d, struct hist_operand *is)
{
	if (!hist_take_atom(e, s, d, is, false))
		return false;
	hist_take_value(e, d, d, is);
	return true;
}

bool
hist_emit_expression(struct hist_emitter *e, struct hist_slice s, unsigned d,
		     struct hist_operand *is)
{
	unsigned count = 0;

	if (!hist_take_expression(e, s, 1, is, false, &count))
		return false;
	hist_take_value(e, d, 1, is);
	return true;
}
