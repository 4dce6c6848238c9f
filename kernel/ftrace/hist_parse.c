/* hist_parse.c - reads "hist:…" (Documentation/trace/histogram.rst). Locking: ftrace_lock. */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/hist.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "ktr/word.h"

#define HIST_AT    5u   /* where the text after "hist:" is */
#define SIZE_LEAST 128u /* entries, as in Linux */
#define SIZE_MOST  131072u

struct parser {
	struct hist *h;
	struct hist_error *error;
	struct hist_commands *commands;
	bool keys, values; /* were given */
	struct hist_slice sort;
};

static bool
fail(struct parser *p, unsigned at, const char *message)
{
	*p->error = (struct hist_error){message, at};
	return false;
}

static bool
is(const struct hist *h, struct hist_slice s, const char *word)
{
	return strlen(word) == s.n && strncmp(h->text + s.at, word, s.n) == 0;
}

/* If the part begins with the word, *rest is what comes after it. */
static bool
after(const struct hist *h, struct hist_slice s, const char *word, struct hist_slice *rest)
{
	unsigned n = (unsigned)strlen(word);

	if (s.n < n || strncmp(h->text + s.at, word, n) != 0)
		return false;
	*rest = (struct hist_slice){s.at + n, s.n - n};
	return true;
}

/* Takes what comes before the separator, which is not within parentheses. False: no more. */
static bool
next(const struct hist *h, struct hist_slice *rest, char separator, struct hist_slice *s)
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

static void
copy(const struct hist *h, struct hist_slice s, char to[HIST_NAME])
{
	unsigned n = s.n < HIST_NAME - 1 ? s.n : HIST_NAME - 1;

	memcpy(to, h->text + s.at, n);
	to[n] = '\0';
}

static bool
read_number(const struct hist *h, struct hist_slice s, uint64_t *v)
{
	return s.n > 0 && ktr_number(h->text + s.at, s.n, 0, v) == KTR_NUMBER_OK;
}

/* ---- fields ---- */

static const struct {
	const char *name;
	enum hist_modifier modifier;
} modifiers[] = {
    {"hex", HIST_HEX},           {"sym", HIST_SYM},         {"sym-offset", HIST_SYM_OFFSET},
    {"execname", HIST_EXECNAME}, {"syscall", HIST_SYSCALL}, {"log2", HIST_LOG2},
    {"usecs", HIST_USECS},       {"percent", HIST_PERCENT}, {"graph", HIST_GRAPH},
    {"stacktrace", HIST_PLAIN},
};

static bool
read_modifier(struct parser *p, struct hist_slice s, struct hist_field *f)
{
	struct hist_slice width;
	bool found = false;

	for (unsigned i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
		if (is(p->h, s, modifiers[i].name)) {
			f->modifier = modifiers[i].modifier;
			found = true;
		}
	}
	if (after(p->h, s, "buckets=", &width)) {
		f->modifier = HIST_BUCKETS;
		if (!read_number(p->h, width, &f->width) || f->width == 0 || f->width > INT32_MAX)
			return fail(p, width.at, "Expecting numeric literal");
		found = true;
	}
	if (f->modifier == HIST_EXECNAME && strcmp(f->name, "common_pid") != 0)
		found = false;
	if (f->modifier == HIST_USECS && f->kind != HIST_TIME)
		found = false;
	return found || fail(p, s.at, "Invalid field modifier");
}

/* Reads FIELD[.MODIFIER]. */
static bool
read_field(struct parser *p, struct hist_slice s, struct hist_field *f)
{
	struct hist_slice rest = s, name;

	*f = (struct hist_field){.kind = HIST_FIELD};
	next(p->h, &rest, '.', &name);
	copy(p->h, name, f->name);
	if (is(p->h, name, "common_timestamp"))
		f->kind = HIST_TIME;
	else if (is(p->h, name, "stacktrace") || is(p->h, name, "common_stacktrace"))
		f->kind = HIST_STACK;
	else if (is(p->h, name, "hitcount"))
		f->kind = HIST_HITCOUNT;
	else if (!hist_field_find(p->h->site, f->name, &f->field))
		return fail(p, s.at, "Couldn't find field");
	p->h->times |= f->kind == HIST_TIME;
	return rest.at == 0 || read_modifier(p, rest, f);
}

/* ---- parts ---- */

static bool
read_keys(struct parser *p, struct hist_slice s)
{
	struct hist_slice part;

	p->keys = true;
	while (next(p->h, &s, ',', &part)) {
		if (part.n == 0)
			return fail(p, part.at, "Couldn't find field");
		if (p->h->text[part.at] == '$')
			return fail(p, part.at, "Using variable references in keys not supported");
		if (p->h->nkeys == HIST_KEYS)
			return fail(p, part.at, "Too many keys");
		if (!read_field(p, part, &p->h->keys[p->h->nkeys]))
			return false;
		if (p->h->keys[p->h->nkeys].kind == HIST_HITCOUNT)
			return fail(p, part.at, "Using hitcount as a key is not supported");
		p->h->nkeys++;
	}
	return true;
}

static bool
read_values(struct parser *p, struct hist_slice s)
{
	struct hist_slice part;

	p->values = true;
	while (next(p->h, &s, ',', &part)) {
		struct hist_field *f = &p->h->values[p->h->nvalues];

		if (part.n == 0)
			return fail(p, part.at, "Couldn't find field");
		if (p->h->nvalues == HIST_VALUES)
			return fail(p, part.at, "Too many values");
		if (is(p->h, part, "hitcount"))
			continue;
		if (p->h->text[part.at] == '$') {
			*f = (struct hist_field){.kind = HIST_FIELD};
			copy(p->h, part, f->name);
		} else if (!read_field(p, part, f)) {
			return false;
		} else if (f->kind == HIST_STACK || (f->kind == HIST_FIELD && f->field.string)) {
			return fail(p, part.at, "Strings as values not supported");
		} else if (f->kind == HIST_HITCOUNT) {
			p->h->values[0].modifier = f->modifier;
			continue;
		}
		p->h->value_texts[p->h->nvalues++] = part;
	}
	return true;
}

static bool
has_variable(const struct hist *h, const char *name)
{
	for (unsigned i = 0; i < h->nown + h->nothers; i++)
		if (strcmp(i < h->nown ? h->own[i].name : h->others[i - h->nown].name, name) == 0)
			return true;
	return false;
}

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Looks for the variables of other histograms that a text names. */
static bool
read_references(struct parser *p, struct hist_slice s)
{
	for (unsigned i = 0; i < s.n; i++) {
		struct hist_slice word = {s.at + i + 1, 0};
		struct hist_variable *v;
		char name[HIST_NAME];

		if (p->h->text[s.at + i] != '$')
			continue;
		while (i + 1 + word.n < s.n && is_word(p->h->text[word.at + word.n]))
			word.n++;
		copy(p->h, word, name);
		if (has_variable(p->h, name))
			continue;
		if (p->h->nown + p->h->nothers == HIST_NAMED)
			return fail(p, word.at, "Too many variables defined");
		v = &p->h->others[p->h->nothers];
		*v = (struct hist_variable){.of = NULL};
		strlcpy(v->name, name, sizeof(v->name));
		for (struct hist *h = NULL; v->of == NULL && (h = hist_next(NULL, h)) != NULL;) {
			for (unsigned n = 0; n < h->nown; n++) {
				if (strcmp(h->own[n].name, name) == 0 &&
				    hist_key_kinds(h) == hist_key_kinds(p->h)) {
					v->of = h;
					v->index = n;
				}
			}
		}
		if (v->of == NULL)
			return fail(p, word.at, "Couldn't find variable");
		p->h->nothers++;
	}
	return true;
}

/* NAME=EXPRESSION, … */
static bool
read_variables(struct parser *p, struct hist_slice s)
{
	struct hist_slice part;

	while (next(p->h, &s, ',', &part)) {
		struct hist_variable *v = &p->h->own[p->h->nown];
		struct hist_slice rest = part, name;

		next(p->h, &rest, '=', &name);
		if (name.n == 0 || rest.n == 0)
			return fail(p, part.at, "Empty assignment");
		if (p->h->nown + p->h->nothers == HIST_NAMED)
			return fail(p, part.at, "Too many variables defined");
		*v = (struct hist_variable){.expression = rest};
		copy(p->h, name, v->name);
		for (unsigned n = 0; n < p->h->nown; n++)
			if (strcmp(p->h->own[n].name, v->name) == 0)
				return fail(p, part.at, "Variable already defined");
		if (!read_references(p, rest))
			return false;
		p->h->nown++;
	}
	return true;
}

/* save(PARAM,…), snapshot() */
static bool
read_params(struct parser *p, struct hist_action *a, struct hist_slice name, struct hist_slice list)
{
	unsigned most = a->what == HIST_SAVE ? HIST_PARAMS : 0;
	struct hist_slice part;

	if (a->when == HIST_ONMATCH)
		return fail(p, name.at, "Handler doesn't support action");
	for (unsigned i = 0; i < p->h->nactions && most > 0; i++)
		if (p->h->actions[i].what == HIST_SAVE)
			return fail(p, name.at, "Can't have more than one save() action per hist");
	while (list.n > 0 && next(p->h, &list, ',', &part)) {
		if (a->n == most)
			return fail(p, part.at, "Too many action params");
		if (!read_references(p, part))
			return false;
		a->params[a->n++] = part;
	}
	return a->n > 0 || most == 0 || fail(p, name.at, "Couldn't find action parameter");
}

/* trace(EVENT,PARAM,…), EVENT(PARAM,…), save(PARAM,…) or snapshot(), which is `call`. */
static bool
read_call(struct parser *p, struct hist_action *a, struct hist_slice call)
{
	struct hist_slice name = {call.at, 0}, list, part;
	char text[HIST_NAME];
	unsigned params = 0;

	while (name.n < call.n && p->h->text[call.at + name.n] != '(')
		name.n++;
	if (name.n == call.n || p->h->text[call.at + call.n - 1] != ')')
		return fail(p, call.at + name.n,
			    name.n == call.n ? "No action specified" : "No closing paren found");
	list = (struct hist_slice){call.at + name.n + 1, call.n - name.n - 2};
	if (is(p->h, name, "trace") && (!next(p->h, &list, ',', &name) || name.n == 0))
		return fail(p, call.at, "No synthetic event specified for trace action");
	copy(p->h, name, text);
	if (strcmp(text, "save") == 0 || strcmp(text, "snapshot") == 0) {
		a->what = text[1] == 'a' ? HIST_SAVE : HIST_SNAPSHOT;
		return read_params(p, a, name, list);
	}
	a->event = synthetic_find(text);
	if (a->event == NULL)
		return fail(p, name.at, "Couldn't find synthetic event");
	while (next(p->h, &list, ',', &part)) {
		if (part.n == 0 && params == 0)
			break;
		if (params == a->event->n || params == HIST_PARAMS)
			return fail(p, name.at,
				    "Param count doesn't match synthetic event field count");
		if (!read_references(p, part))
			return false;
		a->params[params++] = part;
	}
	a->n = params;
	return params == a->event->n ||
	       fail(p, name.at, "Param count doesn't match synthetic event field count");
}

/* onmatch(SYSTEM.EVENT).CALL, onmax($VARIABLE).CALL, onchange($VARIABLE).CALL */
static bool
read_action(struct parser *p, struct hist_slice s, struct hist_slice of)
{
	struct hist_action *a = &p->h->actions[p->h->nactions];
	char system[HIST_NAME], event[HIST_NAME];
	struct hist_slice inside = {of.at, 0}, rest, word;

	if (p->h->nactions == HIST_ACTIONS)
		return fail(p, s.at, "Too many actions");
	*a = (struct hist_action){.when = is(p->h, (struct hist_slice){s.at, 5}, "onmax")
					      ? HIST_ONMAX
					      : HIST_ONCHANGE,
				  .text = s};
	if (is(p->h, (struct hist_slice){s.at, 7}, "onmatch"))
		a->when = HIST_ONMATCH;
	while (inside.n < of.n && p->h->text[of.at + inside.n] != ')')
		inside.n++;
	if (inside.n == of.n)
		return fail(p, of.at, "No closing paren found");
	if (of.n < inside.n + 2 || p->h->text[of.at + inside.n + 1] != '.')
		return fail(p, of.at + inside.n, "No action specified");
	rest = inside;
	if (a->when == HIST_ONMATCH) {
		next(p->h, &rest, '.', &word);
		if (rest.at == 0)
			return fail(p, inside.at, "Missing subsystem");
		copy(p->h, word, system);
		copy(p->h, rest, event);
		const struct ktr_site *site = event_find(system, event);

		if (site == NULL || hist_next(site, NULL) == NULL)
			return fail(p, inside.at, "Couldn't find event");
	} else {
		if (inside.n == 0 || p->h->text[inside.at] != '$')
			return fail(p, inside.at, "Not a variable");
		if (!read_references(p, inside))
			return false;
		a->variable = inside;
	}
	if (!read_call(p, a, (struct hist_slice){of.at + inside.n + 2, of.n - inside.n - 2}))
		return false;
	p->h->nactions++;
	return true;
}

static bool
read_size(struct parser *p, struct hist_slice s)
{
	uint64_t size;
	unsigned entries = SIZE_LEAST;

	if (!read_number(p->h, s, &size) || size > SIZE_MOST)
		return fail(p, s.at, "Invalid size");
	while (entries < size)
		entries *= 2;
	p->h->size = entries;
	return true;
}

static bool
read_part(struct parser *p, struct hist_slice s)
{
	struct hist_slice rest = s, name;

	if (after(p->h, s, "keys=", &rest) || after(p->h, s, "key=", &rest))
		return true; /* has been read */
	if (after(p->h, s, "vals=", &rest) || after(p->h, s, "val=", &rest) ||
	    after(p->h, s, "values=", &rest))
		return read_values(p, rest);
	if (after(p->h, s, "sort=", &rest)) {
		p->sort = rest;
		return true;
	}
	if (after(p->h, s, "size=", &rest))
		return read_size(p, rest);
	if (after(p->h, s, "name=", &rest)) {
		copy(p->h, rest, p->h->name);
		return true;
	}
	if (after(p->h, s, "clock=", &rest))
		return clock_find(p->h->text + rest.at, rest.n) >= 0 ||
		       fail(p, rest.at, "Couldn't set trace_clock");
	if (after(p->h, s, "onmatch(", &rest) || after(p->h, s, "onmax(", &rest) ||
	    after(p->h, s, "onchange(", &rest))
		return read_action(p, s, rest);
	if (is(p->h, s, "pause"))
		p->commands->pause = true;
	else if (is(p->h, s, "cont") || is(p->h, s, "continue"))
		p->commands->go_on = true;
	else if (is(p->h, s, "clear"))
		p->commands->clear = true;
	else if (is(p->h, s, "nohitcount") || is(p->h, s, "NOHC"))
		p->h->no_hitcount = true;
	else if (next(p->h, &rest, '=', &name) && rest.at != 0)
		return read_variables(p, s);
	else if (s.at == HIST_AT) /* as it is listed: hist:NAME:keys=... */
		copy(p->h, s, p->h->name);
	else
		return fail(p, s.at, "Invalid expression");
	return true;
}

static bool
read_sort(struct parser *p)
{
	struct hist_slice s = p->sort, part;

	while (next(p->h, &s, ',', &part)) {
		struct hist_slice rest = part, name;
		char text[HIST_NAME];
		unsigned n = p->h->nsorts, found = UINT_MAX;

		next(p->h, &rest, '.', &name);
		copy(p->h, name, text);
		if (part.n == 0)
			return fail(p, part.at, "Empty sort field");
		if (n == HIST_SORTS)
			return fail(p, part.at, "Too many sort fields (Max = 2)");
		for (unsigned i = 0; i < p->h->nvalues; i++)
			if (strcmp(p->h->values[i].name, text) == 0)
				found = HIST_KEYS + i;
		for (unsigned i = 0; i < p->h->nkeys; i++)
			if (strcmp(p->h->keys[i].name, text) == 0)
				found = i;
		if (found == UINT_MAX)
			return fail(p, part.at, "Sort field must be a key or a val");
		p->h->sorts[n].key = found;
		p->h->sorts[n].descending = is(p->h, rest, "descending");
		if (rest.at != 0 && rest.n > 0 && !p->h->sorts[n].descending &&
		    !is(p->h, rest, "ascending"))
			return fail(p, rest.at, "Invalid sort modifier");
		p->h->nsorts++;
	}
	if (p->h->nsorts == 0)
		p->h->sorts[p->h->nsorts++].key = HIST_KEYS;
	return true;
}

/* Checks the expressions: compiles them for nothing. */
static bool
check(struct parser *p)
{
	struct program *program = program_new();
	int error = program != NULL ? hist_emit(program, p->h, p->error) : -ENOMEM;

	program_free(program);
	return error == 0 || (error == -ENOMEM && fail(p, 0, "No memory"));
}

int
hist_parse(const struct ktr_site *site, const char *text, struct hist **to,
	   struct hist_commands *commands, struct hist_error *error)
{
	size_t n = strlen(text);
	struct hist *h = kzalloc(sizeof(*h) + n + 1);
	struct parser p = {.h = h, .error = error, .commands = commands};
	const char *filter = strstr(text, " if ");
	struct hist_slice all, s, rest;
	bool good = true;

	if (h == NULL)
		return -ENOMEM;
	*commands = (struct hist_commands){false, false, false};
	memcpy(h->text, text, n + 1);
	h->site = site;
	event_name(site, h->event);
	h->size = HIST_SIZE;
	h->gate = 1;
	h->data = h;
	h->values[h->nvalues++] = (struct hist_field){"hitcount", .kind = HIST_HITCOUNT};
	all = (struct hist_slice){HIST_AT, (unsigned)n - HIST_AT};
	if (filter != NULL) {
		unsigned at = (unsigned)(filter - text);

		all.n = at - HIST_AT;
		h->filter = (struct hist_slice){at + 4, (unsigned)n - at - 4};
	}
	/* Keys first: variables of others are looked for by them. */
	for (unsigned pass = 0; pass < 2 && good; pass++) {
		for (rest = all; good && next(h, &rest, ':', &s);) {
			struct hist_slice keys;

			if (pass == 1)
				good = read_part(&p, s);
			else if (after(h, s, "keys=", &keys) || after(h, s, "key=", &keys))
				good = read_keys(&p, keys);
		}
		if (good && !p.keys)
			good = fail(&p, 0, "No keys specified");
	}
	good = good && read_sort(&p) && check(&p);
	if (!good) {
		kfree(h);
		return -EINVAL;
	}
	*to = h;
	return 0;
}
