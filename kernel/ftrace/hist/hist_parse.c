/* hist_parse.c - reads "hist:…" (Documentation/trace/histogram.rst). Locking: ftrace_lock. */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "ktr/word.h"

#define HIST_AT    5u   /* where the text after "hist:" is */
#define SIZE_LEAST 128u /* entries, as in Linux */
#define SIZE_MOST  131072u

bool
hist_slice_is(const struct hist *h, struct hist_slice s, const char *word)
{
	return strlen(word) == s.n && strncmp(h->text + s.at, word, s.n) == 0;
}

bool
hist_slice_same(const struct hist *h, struct hist_slice s, const struct hist *other,
		struct hist_slice t)
{
	return s.n == t.n && strncmp(h->text + s.at, other->text + t.at, s.n) == 0;
}

/* If the part begins with the word, *rest is what comes after it. */
static bool
hist_skip_word(const struct hist *h, struct hist_slice s, const char *word, struct hist_slice *rest)
{
	unsigned n = (unsigned)strlen(word);

	if (s.n < n || strncmp(h->text + s.at, word, n) != 0)
		return false;
	*rest = (struct hist_slice){s.at + n, s.n - n};
	return true;
}

bool
hist_slice_next(const struct hist *h, struct hist_slice *rest, char separator, struct hist_slice *s)
{
	unsigned depth = 0, n = 0;

	if (rest->at == 0)
		return false;
	while (n < rest->n && (depth > 0 || h->text[rest->at + n] != separator)) {
		char c = h->text[rest->at + n++];

		depth += c == '(';
		depth -= c == ')' && depth > 0;
	}
	*s = (struct hist_slice){rest->at, n};
	if (n == rest->n)
		*rest = (struct hist_slice){0, 0};
	else
		*rest = (struct hist_slice){rest->at + n + 1, rest->n - n - 1};
	return true;
}

bool
hist_slice_copy(const struct hist *h, struct hist_slice s, char *to, size_t room)
{
	size_t n = s.n < room ? s.n : 0;

	memcpy(to, h->text + s.at, n);
	to[n] = '\0';
	return s.n < room;
}

static bool
hist_read_number(const struct hist *h, struct hist_slice s, uint64_t *v)
{
	return s.n > 0 && ktr_number(h->text + s.at, s.n, 0, v) == KTR_NUMBER_OK;
}

/* ---- fields ---- */

const char *const hist_modifiers[] = {
    [HIST_HEX] = "hex",           [HIST_SYM] = "sym",         [HIST_SYM_OFFSET] = "sym-offset",
    [HIST_EXECNAME] = "execname", [HIST_SYSCALL] = "syscall", [HIST_LOG2] = "log2",
    [HIST_BUCKETS] = "buckets=",  [HIST_USECS] = "usecs",     [HIST_PERCENT] = "percent",
    [HIST_GRAPH] = "graph",
};

bool
hist_modifier_read(struct hist_parser *p, struct hist_slice s, struct hist_field *f)
{
	struct hist_slice width = {0, 0};
	bool found = hist_slice_is(p->h, s, "stacktrace");

	for (unsigned i = HIST_HEX; i <= HIST_GRAPH; i++) {
		if (!hist_skip_word(p->h, s, hist_modifiers[i], &width) ||
		    (width.n > 0 && i != HIST_BUCKETS))
			continue;
		f->modifier = (enum hist_modifier)i;
		found = true;
	}
	if (f->modifier == HIST_BUCKETS &&
	    (!hist_read_number(p->h, width, &f->width) || f->width == 0 || f->width > INT32_MAX))
		return hist_fail(p->error, width.at, "Expecting numeric literal");
	if (f->modifier == HIST_EXECNAME && strcmp(f->name, "common_pid") != 0)
		found = false;
	if (f->modifier == HIST_USECS && f->kind != HIST_TIME)
		found = false;
	return found || hist_fail(p->error, s.at, "Invalid field modifier");
}

/* Reads FIELD[.MODIFIER]. */
static bool
hist_read_field(struct hist_parser *p, struct hist_slice s, struct hist_field *f)
{
	struct hist_slice rest = s, name;

	*f = (struct hist_field){.kind = HIST_FIELD};
	hist_slice_next(p->h, &rest, '.', &name);
	if (!hist_slice_copy(p->h, name, f->name, sizeof(f->name)))
		return hist_fail(p->error, s.at, "Couldn't find field");
	if (hist_slice_is(p->h, name, "common_timestamp"))
		f->kind = HIST_TIME;
	else if (hist_slice_is(p->h, name, "stacktrace") ||
		 hist_slice_is(p->h, name, "common_stacktrace"))
		f->kind = HIST_STACK;
	else if (hist_slice_is(p->h, name, "hitcount"))
		f->kind = HIST_HITCOUNT;
	else if (!hist_field_find(p->h->site, f->name, &f->field))
		return hist_fail(p->error, s.at, "Couldn't find field");
	p->h->times |= f->kind == HIST_TIME;
	return rest.at == 0 || hist_modifier_read(p, rest, f);
}

/* ---- parts ---- */

static bool
read_keys(struct hist_parser *p, struct hist_slice s)
{
	struct hist_slice part;

	p->keys = true;
	while (hist_slice_next(p->h, &s, ',', &part)) {
		if (part.n == 0)
			return hist_fail(p->error, part.at, "Couldn't find field");
		if (p->h->text[part.at] == '$')
			return hist_fail(p->error, part.at,
					 "Using variable references in keys not supported");
		if (p->h->nkeys == HIST_KEYS)
			return hist_fail(p->error, part.at, "Too many keys");
		if (!hist_read_field(p, part, &p->h->keys[p->h->nkeys]))
			return false;
		if (p->h->keys[p->h->nkeys].kind == HIST_HITCOUNT)
			return hist_fail(p->error, part.at,
					 "Using hitcount as a key is not supported");
		p->h->nkeys++;
	}
	return true;
}

/* Is it more than a field? */
static bool
is_expression(const struct hist *h, struct hist_slice s)
{
	for (unsigned i = 0; i < s.n; i++)
		if (h->text[s.at + i] == '$')
			return true;
	return hist_is_expression(h, s);
}

static bool
read_values(struct hist_parser *p, struct hist_slice s)
{
	struct hist_slice part;

	while (hist_slice_next(p->h, &s, ',', &part)) {
		struct hist_field *f = &p->h->values[p->h->nvalues];

		if (part.n == 0)
			return hist_fail(p->error, part.at, "Couldn't find field");
		if (p->h->nvalues == HIST_VALUES)
			return hist_fail(p->error, part.at, "Too many values");
		if (hist_slice_is(p->h, part, "hitcount"))
			continue;
		if (is_expression(p->h, part)) {
			*f = (struct hist_field){.kind = HIST_EXPRESSION};
			if (!hist_read_references(p, part))
				return false;
		} else if (!hist_read_field(p, part, f)) {
			return false;
		} else if (f->kind == HIST_STACK || (f->kind == HIST_FIELD && f->field.string)) {
			return hist_fail(p->error, part.at, "Strings as values not supported");
		} else if (f->kind == HIST_HITCOUNT) {
			p->h->values[0].modifier = f->modifier;
			continue;
		}
		p->h->value_texts[p->h->nvalues++] = part;
	}
	return true;
}

/* NAME=EXPRESSION, … */
static bool
read_variables(struct hist_parser *p, struct hist_slice s)
{
	struct hist_slice part;

	while (hist_slice_next(p->h, &s, ',', &part)) {
		struct hist_variable *v = &p->h->own[p->h->nown];
		struct hist_slice rest = part, name;

		hist_slice_next(p->h, &rest, '=', &name);
		if (name.n == 0 || rest.n == 0)
			return hist_fail(p->error, part.at, "Empty assignment");
		if (hist_names_full(p->h))
			return hist_fail(p->error, part.at, "Too many variables defined");
		*v = (struct hist_variable){.name = name, .expression = rest};
		for (unsigned n = 0; n < p->h->nown; n++)
			if (hist_slice_same(p->h, p->h->own[n].name, p->h, name))
				return hist_fail(p->error, part.at, "Variable already defined");
		if (!hist_read_references(p, rest))
			return false;
		if (hist_names_full(p->h)) /* by those that it names */
			return hist_fail(p->error, part.at, "Too many variables defined");
		p->h->nown++;
	}
	return true;
}

static bool
read_size(struct hist_parser *p, struct hist_slice s)
{
	uint64_t size;
	unsigned entries = SIZE_LEAST;

	if (!hist_read_number(p->h, s, &size) || size > SIZE_MOST)
		return hist_fail(p->error, s.at, "Invalid size");
	while (entries < size)
		entries *= 2;
	p->h->size = entries;
	return true;
}

/* Parts are read in this order: what is named must be known. */
enum pass { KEYS, VARIABLES, REST, PASSES };

static bool
read_name(struct hist_parser *p, struct hist_slice s)
{
	return hist_slice_copy(p->h, s, p->h->name, sizeof(p->h->name)) ||
	       hist_fail(p->error, s.at, "Invalid expression");
}

static bool
read_command(struct hist_parser *p, struct hist_slice s)
{
	if (hist_slice_is(p->h, s, "pause"))
		p->commands->pause = true;
	else if (hist_slice_is(p->h, s, "cont") || hist_slice_is(p->h, s, "continue"))
		p->commands->go_on = true;
	else if (hist_slice_is(p->h, s, "clear"))
		p->commands->clear = true;
	else if (hist_slice_is(p->h, s, "nohitcount") || hist_slice_is(p->h, s, "NOHC"))
		p->h->no_hitcount = true;
	else if (s.at == HIST_AT) /* as it is listed: hist:NAME:keys=... */
		return read_name(p, s);
	else
		return hist_fail(p->error, s.at, "Invalid expression");
	return true;
}

static bool
read_part(struct hist_parser *p, struct hist_slice s, enum pass pass)
{
	struct hist_slice rest = s, name;

	if (hist_skip_word(p->h, s, "keys=", &rest) || hist_skip_word(p->h, s, "key=", &rest))
		return pass != KEYS || read_keys(p, rest);
	if (hist_skip_word(p->h, s, "vals=", &rest) || hist_skip_word(p->h, s, "val=", &rest) ||
	    hist_skip_word(p->h, s, "values=", &rest))
		return pass != REST || read_values(p, rest);
	if (hist_skip_word(p->h, s, "onmatch(", &rest) && pass == KEYS)
		hist_read_match(p, rest);
	if (hist_skip_word(p->h, s, "onmatch(", &rest) ||
	    hist_skip_word(p->h, s, "onmax(", &rest) || hist_skip_word(p->h, s, "onchange(", &rest))
		return pass != REST || hist_read_action(p, s, rest);
	if (pass != VARIABLES)
		return true;
	if (hist_skip_word(p->h, s, "sort=", &p->sort))
		return true;
	if (hist_skip_word(p->h, s, "size=", &rest))
		return read_size(p, rest);
	if (hist_skip_word(p->h, s, "name=", &rest))
		return read_name(p, rest);
	if (hist_skip_word(p->h, s, "clock=", &rest))
		return clock_find(p->h->text + rest.at, rest.n) >= 0 ||
		       hist_fail(p->error, rest.at, "Couldn't set trace_clock");
	if (hist_slice_next(p->h, &rest, '=', &name) && rest.at != 0)
		return read_variables(p, s);
	return read_command(p, s);
}

/* FIELD[.ascending|.descending] */
static bool
read_sort_key(struct hist_parser *p, struct hist_slice part)
{
	struct hist_slice rest = part, name;
	unsigned n = p->h->nsorts, found = UINT32_MAX;

	hist_slice_next(p->h, &rest, '.', &name);
	for (unsigned i = 0; i < p->h->nvalues; i++)
		if (p->h->values[i].kind == HIST_EXPRESSION
			? hist_slice_same(p->h, p->h->value_texts[i], p->h, name)
			: hist_slice_is(p->h, name, p->h->values[i].name))
			found = HIST_KEYS + i;
	for (unsigned i = 0; i < p->h->nkeys; i++)
		if (hist_slice_is(p->h, name, p->h->keys[i].name))
			found = i;
	if (found == UINT32_MAX)
		return hist_fail(p->error, part.at, "Sort field must be a key or a val");
	p->h->sorts[n].key = found;
	p->h->sorts[n].descending = hist_slice_is(p->h, rest, "descending");
	if (rest.at != 0 && rest.n > 0 && !p->h->sorts[n].descending &&
	    !hist_slice_is(p->h, rest, "ascending"))
		return hist_fail(p->error, rest.at, "Invalid sort modifier");
	p->h->nsorts++;
	return true;
}

static bool
read_sort(struct hist_parser *p)
{
	struct hist_slice s = p->sort, part;
	unsigned at = s.at - (unsigned)(sizeof("sort=") - 1);

	if (s.at != 0 && s.n == 0)
		return hist_fail(p->error, at, "Empty assignment");
	while (hist_slice_next(p->h, &s, ',', &part)) {
		if (part.n == 0)
			return hist_fail(p->error, at, "Empty sort field");
		if (p->h->nsorts == HIST_SORTS)
			return hist_fail(p->error, at, "Too many sort fields (Max = 2)");
		if (!read_sort_key(p, part))
			return false;
	}
	if (p->h->nsorts == 0)
		p->h->sorts[p->h->nsorts++].key = HIST_KEYS;
	return true;
}

/* Checks the expressions: compiles them for nothing. */
static bool
hist_check(struct hist_parser *p)
{
	struct program *program = program_new();
	int error = program != NULL ? hist_emit(program, p->h, p->error) : -ENOMEM;

	program_free(program);
	if (error == -ENOMEM)
		p->error->number = error;
	return error == 0;
}

int
hist_parse(struct instance *i, const struct ktr_site *site, const char *text, struct hist **to,
	   struct hist_commands *commands, struct filter_error *error)
{
	size_t n = strlen(text);
	struct hist *h = kzalloc(sizeof(*h) + n + 1);
	struct hist_parser p = {.h = h, .error = error, .commands = commands};
	const char *filter = strstr(text, " if ");
	struct hist_slice all, s, rest;
	bool good = true;

	if (h == NULL)
		return -ENOMEM;
	*commands = (struct hist_commands){false, false, false};
	*error = (struct filter_error){NULL, 0, 0};
	memcpy(h->text, text, n + 1);
	h->i = i;
	h->site = site;
	event_name(site, h->event);
	h->size = HIST_SIZE;
	h->gate = 1;
	h->data = h;
	h->in.agg = UINT32_MAX; /* it is in no program yet */
	h->values[h->nvalues++] = (struct hist_field){"hitcount", .kind = HIST_HITCOUNT};
	all = (struct hist_slice){HIST_AT, (unsigned)n - HIST_AT};
	if (filter != NULL) {
		unsigned at = (unsigned)(filter - text);

		all.n = at - HIST_AT;
		h->filter = (struct hist_slice){at + 4, (unsigned)n - at - 4};
	}
	for (enum pass pass = KEYS; pass < PASSES && good; pass++) {
		for (rest = all; good && hist_slice_next(h, &rest, ':', &s);)
			good = read_part(&p, s, pass);
		if (good && !p.keys)
			good = hist_fail(p.error, 0, "No keys specified");
	}
	good = good && read_sort(&p) && hist_check(&p);
	if (!good) {
		hist_free(h);
		return error->number != 0 ? error->number : -EINVAL;
	}
	*to = h;
	return 0;
}

void
hist_free(struct hist *h)
{
	for (unsigned i = 0; i < h->nhidden; i++)
		hist_free(h->hidden[i]);
	hist_forget_rows(h);
	kmap_free(h->rows);
	kfree(h);
}
