/*
 * filter.c - compiles a filter by recursive descent. A term leaves its truth in register 1; && and
 * || jump over what need not be known. Locking: none.
 */
#include "kernel/ftrace/event/filter.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "ktr/name.h"
#include "ktr/word.h"

#define TRUTH     1 /* registers */
#define FIELD     2 /* this one and the next: arguments of a subroutine */
#define VALUE     3
#define DEPTH_MAX 16
#define WORD_MAX  256 /* as in Linux: MAX_FILTER_STR_VAL */

struct parser {
	struct program *f;
	const struct filter_event *event;
	const char *text, *at;
	struct filter_error *error;
	unsigned depth;
};

static bool
filter_fail(struct parser *p, const char *at, const char *message)
{
	*p->error = (struct filter_error){message, (size_t)(at - p->text), 0};
	return false;
}

static void
filter_skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
		p->at++;
}

/* Takes a token, if it is next. */
static bool
filter_take(struct parser *p, const char *token)
{
	size_t n = strlen(token);

	filter_skip_blanks(p);
	if (strncmp(p->at, token, n) != 0)
		return false;
	p->at += n;
	return true;
}

/* ---- FIELD OP VALUE ---- */

bool
filter_field(const struct filter_event *event, const char *name, struct filter_field *field)
{
	static const struct {
		const char *name;
		struct filter_field field;
	} common[] = {
	    {"comm", {FIELD_BUILTIN, DIF_B_EXECNAME, true, false, 64}},
	    {"COMM", {FIELD_BUILTIN, DIF_B_EXECNAME, true, false, 64}},
	    {"cpu", {FIELD_BUILTIN, DIF_B_CPU, false, true, 64}},
	    {"CPU", {FIELD_BUILTIN, DIF_B_CPU, false, true, 64}},
	    {"common_cpu", {FIELD_BUILTIN, DIF_B_CPU, false, true, 64}},
	    {"common_pid", {FIELD_BUILTIN, DIF_B_TID, false, true, 64}},
	    {"common_flags", {FIELD_CONSTANT, 0, false, false, 64}},
	    {"common_preempt_count", {FIELD_CONSTANT, 0, false, false, 64}},
	};

	for (unsigned i = 0; i < event->nparams; i++) {
		const struct ktr_param *param = &event->params[i];

		if (strcmp(param->name, name) != 0)
			continue;
		*field = (struct filter_field){FIELD_PARAM, i, param->string, param->is_signed,
					       param->bits};
		return true;
	}
	for (unsigned i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (strcmp(common[i].name, name) == 0) {
			*field = common[i].field;
			return true;
		}
	if (event->is_call && strcmp(name, "__syscall_nr") == 0) {
		*field = (struct filter_field){FIELD_CONSTANT, event->call, false, true, 64};
		return true;
	}
	*field = (struct filter_field){FIELD_CONSTANT, event->id, false, false, 64};
	return strcmp(name, "common_type") == 0;
}

void
filter_emit_field(struct program *to, unsigned d, const struct filter_field *f)
{
	unsigned op = f->where == FIELD_BUILTIN ? DIF_BUILTIN : f->string ? DIF_ARGSTR : DIF_ARG;
	int bytes = (int)f->bits / 8;

	if (f->where == FIELD_CONSTANT) {
		program_constant(to, d, f->number);
		return;
	}
	program_emit(to, op, d, 0, 0, (int32_t)f->number);
	if (!f->string && f->bits < 64)
		program_emit(to, DIF_EXT, d, d, 0, f->is_signed ? -bytes : bytes);
}

/* Takes a word, or what stands in quotes. */
static bool
filter_take_value(struct parser *p, char word[WORD_MAX], bool *quoted)
{
	char quote;
	size_t n = 0;

	filter_skip_blanks(p);
	quote = *p->at;
	*quoted = quote == '"' || quote == '\'';
	if (*quoted)
		p->at++;
	const char *start = p->at;

	while (p->at[n] != '\0' &&
	       (*quoted ? p->at[n] != quote : strchr(" \t\n()&|<>=!~\"'", p->at[n]) == NULL))
		n++;
	if (*quoted && p->at[n] != quote)
		return filter_fail(p, start - 1, "Missing matching quote");
	if (n >= WORD_MAX)
		return filter_fail(p, start, "Operand too long");
	memcpy(word, p->at, n);
	word[n] = '\0';
	p->at += n + *quoted;
	return n > 0 || *quoted || filter_fail(p, start, "Invalid value (did you forget quotes)?");
}

static bool
filter_take_number(struct parser *p, uint64_t *v)
{
	char word[WORD_MAX];
	const char *start, *digits = word;
	size_t n;
	bool quoted, minus;
	unsigned base = 0;

	filter_skip_blanks(p);
	start = p->at;
	if (!filter_take_value(p, word, &quoted))
		return false;
	minus = *digits == '-';
	digits += minus;
	n = strlen(digits);
	if (n > 1 && digits[0] == '0' && digits[1] != 'x' && digits[1] != 'X')
		base = 8;
	if (quoted || ktr_number(digits, n, base, v) != KTR_NUMBER_OK)
		return filter_fail(p, start,
				   quoted ? "Expecting numeric field" : "Illegal integer value");
	if (minus)
		*v = 0 - *v;
	return true;
}

static bool
number_term(struct parser *p, const char *op, const char *op_at, const struct filter_field *f)
{
	uint64_t v;
	bool less = *op == '<', more = *op == '>', or_equal = less + more && op[1] == '=';

	if (*op == '~')
		return filter_fail(p, op_at, "Illegal operation for field type");
	if (!filter_take_number(p, &v))
		return false;
	if (f->bits < 64) { /* as a value of the field's type */
		const struct ktr_param as = {.is_signed = f->is_signed, .bits = (uint8_t)f->bits};

		v = ktr_param_value(&as, v);
	}
	filter_emit_field(p->f, FIELD, f);
	program_constant(p->f, VALUE, v);
	if (*op == '&') {
		program_emit(p->f, DIF_AND, TRUTH, FIELD, VALUE, 0);
		program_emit(p->f, DIF_SNE, TRUTH, TRUTH, 0, 0);
	} else if (!less && !more) {
		program_emit(p->f, *op == '=' ? DIF_SEQ : DIF_SNE, TRUTH, FIELD, VALUE, 0);
	} else {
		program_emit(p->f,
			     f->is_signed ? (or_equal ? DIF_SLE : DIF_SLT)
					  : (or_equal ? DIF_ULE : DIF_ULT),
			     TRUTH, less ? FIELD : VALUE, less ? VALUE : FIELD, 0);
	}
	return true;
}

static bool
string_term(struct parser *p, const char *op, const char *op_at, const struct filter_field *f)
{
	char word[WORD_MAX];
	const char *start;
	unsigned at = p->f->strings_len;
	bool quoted;

	if (*op != '=' && *op != '!' && *op != '~')
		return filter_fail(p, op_at, "Illegal operation for field type");
	filter_skip_blanks(p);
	start = p->at;
	if (!filter_take_value(p, word, &quoted))
		return false;
	if (!quoted && (*start == '-' || (*start >= '0' && *start <= '9')))
		return filter_fail(p, start, "Expecting numeric field"); /* as in Linux */
	size_t size = strlen(word) + 1;

	if (size > PROGRAM_STRINGS - at)
		return filter_fail(p, p->at, "Operand too long");
	memcpy(p->f->strings + at, word, size);
	p->f->strings_len += (unsigned)size;
	filter_emit_field(p->f, FIELD, f);
	program_emit(p->f, DIF_STRING, VALUE, 0, 0, (int32_t)at);
	if (*op == '~') {
		program_emit(p->f, DIF_CALL, TRUTH, FIELD, 0, DIF_SUB_GLOB);
	} else {
		program_emit(p->f, DIF_SCMP, TRUTH, FIELD, VALUE, 0);
		program_emit(p->f, *op == '=' ? DIF_SEQ : DIF_SNE, TRUTH, TRUTH, 0, 0);
	}
	return true;
}

static __attribute__((noinline)) bool /* not on the stack of each parenthesis */
filter_take_term(struct parser *p)
{
	static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">", "&", "~"};
	char name[KTR_PARAM_NAME];
	const char *start, *op_at;
	struct filter_field field;
	size_t n;

	filter_skip_blanks(p);
	start = p->at;
	n = ktr_word_length(start);
	if (n == 0)
		return filter_fail(p, start,
				   *start == ')' ? "Too few '('" : "Meaningless filter expression");
	if (n < sizeof(name)) {
		memcpy(name, start, n);
		name[n] = '\0';
	}
	p->at += n;
	filter_skip_blanks(p);
	op_at = p->at;
	if (n >= sizeof(name) || !filter_field(p->event, name, &field))
		return filter_fail(p, op_at, "Field not found"); /* as in Linux: after the field */
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strncmp(op_at, "&&", 2) == 0 || !filter_take(p, ops[i]))
			continue;
		return field.string ? string_term(p, ops[i], op_at, &field)
				    : number_term(p, ops[i], op_at, &field);
	}
	return filter_fail(p, op_at, "Invalid operator");
}

/* ---- !, (), &&, || ---- */

static bool filter_take_expression(struct parser *p);

static bool
filter_take_factor(struct parser *p)
{
	const char *start;
	bool good;

	filter_skip_blanks(p);
	start = p->at;
	if (p->depth == DEPTH_MAX)
		return filter_fail(p, start, "Too many terms in predicate expression");
	p->depth++;
	if (filter_take(p, "!")) {
		good = filter_take_factor(p);
		program_emit(p->f, DIF_SEQ, TRUTH, TRUTH, 0, 0);
	} else if (filter_take(p, "(")) {
		good = filter_take_expression(p) &&
		       (filter_take(p, ")") || filter_fail(p, start, "Too many '('"));
	} else {
		good = filter_take_term(p);
	}
	p->depth--;
	return good;
}

/*
 * Compiles operands with an operator between them. Where the rest does not matter, `jump` goes to
 * the end. Until the end is known, each jump holds the number of the one before it.
 */
static bool
filter_take_operands(struct parser *p, bool (*operand)(struct parser *), const char *op,
		     unsigned jump)
{
	bool good = operand(p);
	int32_t last = -1;

	while (good && filter_take(p, op)) {
		program_emit(p->f, jump, 0, TRUTH, 0, last);
		last = (int32_t)p->f->count - 1;
		good = operand(p);
	}
	while (last >= 0 && !p->f->full) {
		int32_t before = p->f->code[last].imm;

		program_land(p->f, (unsigned)last);
		last = before;
	}
	return good;
}

static bool
filter_take_conjunction(struct parser *p)
{
	return filter_take_operands(p, filter_take_factor, "&&", DIF_JEQ);
}

static bool
filter_take_expression(struct parser *p)
{
	return filter_take_operands(p, filter_take_conjunction, "||", DIF_JNE);
}

int
filter_compile(struct program *f, const struct filter_event *event, const char *text,
	       struct filter_error *error)
{
	struct parser p = {.f = f, .event = event, .text = text, .at = text, .error = error};

	if (!filter_take_expression(&p))
		return -EINVAL;
	filter_skip_blanks(&p);
	if (*p.at != '\0')
		filter_fail(&p, p.at, *p.at == ')' ? "Too few '('" : "Invalid operator");
	else if (f->full)
		filter_fail(&p, p.at, "Too many terms in predicate expression");
	else
		return 0;
	return -EINVAL;
}
