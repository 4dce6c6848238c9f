/*
 * expand.c - what a word stands for: quotes, $…, fields, file names.
 *
 * A field is built character by character, with a second text that marks which characters were
 * quoted: those are neither split at nor taken for wildcards.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/sh/sh.h"

struct build {
	struct text s, quoted; /* of the same length: characters, and 'q' or '-' for each */
	bool active;           /* a field has begun, even when it is empty ("") */
	bool split;
	bool failed;
	struct argv *out; /* split: where fields go */
};

static void expand_into(struct build *b, const char *p, bool in_quotes);

static void
put(struct build *b, char c, bool quoted)
{
	text_putc(&b->s, c);
	text_putc(&b->quoted, quoted ? 'q' : '-');
	b->active = true;
}

/* The text with \ before each quoted character and each backslash: a pattern. */
static char *
as_pattern(const struct build *b)
{
	struct text t = {0};

	for (size_t i = 0; i < b->s.len; i++) {
		if (b->quoted.s[i] == 'q' || b->s.s[i] == '\\')
			text_putc(&t, '\\');
		text_putc(&t, b->s.s[i]);
	}
	return t.s != NULL ? t.s : arena_strndup("", 0);
}

static void
end_field(struct build *b)
{
	char *pattern;

	if (!b->active)
		return;
	pattern = as_pattern(b);
	if (!glob_has_magic(pattern) || glob_expand(pattern, b->out) == 0)
		argv_add(b->out, b->s.s != NULL ? b->s.s : arena_strndup("", 0));
	b->s = b->quoted = (struct text){0};
	b->active = false;
}

/* Puts what an expansion gave: unquoted, it is split at the characters of IFS. */
static void
put_value(struct build *b, const char *value, bool in_quotes)
{
	const char *ifs = var_get("IFS");

	if (ifs == NULL)
		ifs = " \t\n";
	for (; *value != '\0'; value++) {
		if (b->split && !in_quotes && strchr(ifs, *value) != NULL) {
			/* Blanks only separate; another separator ends a field even if it is empty.
			 */
			if (!isspace((unsigned char)*value))
				b->active = true;
			end_field(b);
		} else {
			put(b, *value, in_quotes);
		}
	}
	if (in_quotes)
		b->active = true;
}

/* $@ and $*. In quotes, $@ keeps the arguments apart and $* joins them. */
static void
put_args(struct build *b, char which, bool in_quotes)
{
	for (int i = 0; i < sh.arg_count; i++) {
		if (i > 0) {
			if (in_quotes && which == '*')
				put(b, ' ', true);
			else if (b->split)
				end_field(b);
			else
				put(b, ' ', in_quotes);
		}
		put_value(b, sh.args[i], in_quotes);
	}
}

/* Value of a parameter that is no list; NULL when it is not set. */
static const char *
parameter_value(const char *name)
{
	if (isdigit((unsigned char)*name)) {
		int n = atoi(name);

		if (n == 0)
			return sh.name;
		return n <= sh.arg_count ? sh.args[n - 1] : NULL;
	}
	switch (*name) {
	case '?':
		return arena_printf("%d", sh.status);
	case '$':
		return arena_printf("%d", sh.pid);
	case '#':
		return arena_printf("%d", sh.arg_count);
	case '!':
		return sh.last_background > 0 ? arena_printf("%d", sh.last_background) : NULL;
	case '-':
		return arena_printf("%s%s%s", sh.exit_on_error ? "e" : "", sh.trace ? "x" : "",
				    sh.interactive ? "i" : "");
	case '@':
	case '*': {
		struct text t = {0};

		for (int i = 0; i < sh.arg_count; i++) {
			if (i > 0)
				text_putc(&t, ' ');
			text_puts(&t, sh.args[i]);
		}
		return t.s;
	}
	default:
		return var_get(name);
	}
}

/* Removes from value what matches the pattern, at its start (#) or end (%), the longest if doubled.
 */
static const char *
remove_match(const char *value, const char *pattern, char side, bool longest)
{
	size_t len = strlen(value);

	for (size_t i = 0; i <= len; i++) {
		size_t n = longest ? len - i : i; /* what is removed */
		char *part =
		    side == '#' ? arena_strndup(value, n) : arena_strndup(value + len - n, n);

		if (fnmatch(pattern, part, 0) == 0)
			return side == '#' ? value + n : arena_strndup(value, len - n);
	}
	return value;
}

/* The word after an operator in ${…}, as text. */
static char *
operand(struct build *b, const char *word, bool pattern)
{
	char *s = pattern ? expand_pattern(word) : expand_text(word);

	if (s == NULL)
		b->failed = true;
	return s;
}

/* ${name op word} where op is - = + ? with or without a colon. */
static void
put_alternative(struct build *b, const char *name, const char *value, bool colon, const char *op,
		bool in_quotes)
{
	bool missing = value == NULL || (colon && *value == '\0');
	char *word;

	switch (*op) {
	case '-':
		if (missing)
			expand_into(b, op + 1, in_quotes);
		else
			put_value(b, value, in_quotes);
		return;
	case '+':
		if (!missing)
			expand_into(b, op + 1, in_quotes);
		return;
	case '=':
		if (missing) {
			word = operand(b, op + 1, false);
			if (word == NULL)
				return;
			var_set(name, word);
			value = word;
		}
		put_value(b, value, in_quotes);
		return;
	default:
		if (!missing) {
			put_value(b, value, in_quotes);
			return;
		}
		word = operand(b, op + 1, false);
		sh_error("%s: %s", name, word != NULL && *word != '\0' ? word : "is not set");
		b->failed = true;
		if (!sh.interactive)
			sh.unwind = U_EXIT;
	}
}

static size_t
parameter_length(const char *p)
{
	size_t n = 0;

	if (isdigit((unsigned char)*p)) {
		while (isdigit((unsigned char)p[n]))
			n++;
	} else if (*p != '\0' && strchr("?$#!@*-", *p) != NULL) {
		n = 1;
	} else {
		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
	}
	return n;
}

/* An unset parameter is empty, or under set -u an error. */
static const char *
value_or_empty(struct build *b, const char *name, const char *value)
{
	if (value != NULL)
		return value;
	if (sh.no_unset && strchr("@*", *name) == NULL) {
		sh_error("%s: is not set", name);
		b->failed = true;
		if (!sh.interactive)
			sh.unwind = U_EXIT;
	}
	return "";
}

/* What stands between ${ and }. */
static void
put_braced(struct build *b, const char *inside, bool in_quotes)
{
	bool length = inside[0] == '#' && inside[1] != '\0';
	size_t n = parameter_length(inside + length);
	char *name = arena_strndup(inside + length, n), *pattern;
	const char *op = inside + length + n, *value;
	bool colon = *op == ':';

	value = n > 0 ? parameter_value(name) : NULL;
	if (n == 0 || (length && *op != '\0')) {
		sh_error("found \"${%s}\", expected a variable", inside);
		b->failed = true;
	} else if (length) {
		put_value(b, arena_printf("%zu", strlen(value_or_empty(b, name, value))),
			  in_quotes);
	} else if (*op == '\0' && (*name == '@' || *name == '*')) {
		put_args(b, *name, in_quotes);
	} else if (*op == '\0') {
		put_value(b, value_or_empty(b, name, value), in_quotes);
	} else if (op[colon] != '\0' && strchr("-=+?", op[colon]) != NULL) {
		put_alternative(b, name, value, colon, op + colon, in_quotes);
	} else if (*op == '#' || *op == '%') {
		bool longest = op[1] == op[0];

		pattern = operand(b, op + 1 + longest, true);
		if (pattern != NULL)
			put_value(b,
				  remove_match(value_or_empty(b, name, value), pattern, *op,
					       longest),
				  in_quotes);
	} else {
		sh_error("found \"${%s}\", expected - = + ? # or %% after the name", inside);
		b->failed = true;
	}
}

/* $((…)) */
static void
put_arith(struct build *b, const char *inside, bool in_quotes)
{
	char *text = expand_here(inside);
	long value;

	if (text == NULL || !arith_evaluate(text, &value))
		b->failed = true;
	else
		put_value(b, arena_printf("%ld", value), in_quotes);
}

static void
put_command(struct build *b, const char *command, bool in_quotes)
{
	char *output = exec_output(command);

	if (output == NULL)
		b->failed = true;
	else
		put_value(b, output, in_quotes);
}

/* Expands what begins with $ at p; returns the text after it. */
static const char *
put_dollar(struct build *b, const char *p, bool in_quotes)
{
	size_t span = lex_span(p, in_quotes), n;

	if (p[1] == '(' || p[1] == '{') {
		if (span == 0) {
			sh_error("found \"%s\", expected its closing", p);
			b->failed = true;
			return p + strlen(p);
		}
		if (p[1] == '{')
			put_braced(b, arena_strndup(p + 2, span - 3), in_quotes);
		else if (p[2] == '(' && span >= 6 && p[span - 2] == ')')
			put_arith(b, arena_strndup(p + 3, span - 5), in_quotes);
		else
			put_command(b, arena_strndup(p + 2, span - 3), in_quotes);
		return p + span;
	}
	n = parameter_length(p + 1);
	if (n == 0) {
		put(b, '$', in_quotes);
		return p + 1;
	}
	if (isdigit((unsigned char)p[1]))
		n = 1; /* $10 is $1 and a zero */
	if (p[1] == '@' || p[1] == '*') {
		put_args(b, p[1], in_quotes);
	} else {
		char *name = arena_strndup(p + 1, n);

		put_value(b, value_or_empty(b, name, parameter_value(name)), in_quotes);
	}
	return p + 1 + n;
}

/* `…`: in it, \ quotes $ ` and \. */
static const char *
put_backquoted(struct build *b, const char *p, bool in_quotes)
{
	size_t span = lex_span(p, in_quotes);
	struct text t = {0};

	if (span == 0) {
		put(b, *p, in_quotes);
		return p + 1;
	}
	for (size_t i = 1; i < span - 1; i++) {
		if (p[i] == '\\' && strchr("$`\\", p[i + 1]) != NULL)
			i++;
		text_putc(&t, p[i]);
	}
	if (t.s != NULL)
		put_command(b, t.s, in_quotes);
	return p + span;
}

static void
expand_into(struct build *b, const char *p, bool in_quotes)
{
	bool outer = in_quotes;

	while (*p != '\0' && !b->failed) {
		if (*p == '\\' && p[1] != '\0') {
			if (in_quotes && strchr("$`\"\\\n", p[1]) == NULL)
				put(b, *p++, true);
			else
				p++;
			if (*p != '\n')
				put(b, *p, true);
			p++;
		} else if (*p == '"') {
			in_quotes = !in_quotes || outer;
			/* "$@" without arguments is no field; any other pair of quotes is one. */
			if (strncmp(p, "\"$@\"", 4) != 0)
				b->active |= in_quotes;
			p++;
		} else if (*p == '\'' && !in_quotes) {
			b->active = true;
			for (p++; *p != '\'' && *p != '\0'; p++)
				put(b, *p, true);
			p += *p != '\0';
		} else if (*p == '$') {
			p = put_dollar(b, p, in_quotes);
		} else if (*p == '`') {
			p = put_backquoted(b, p, in_quotes);
		} else {
			put(b, *p++, in_quotes);
		}
	}
}

/* ~ and ~/… at the start of a word. */
static const char *
put_home(struct build *b, const char *word)
{
	const char *home = var_get("HOME");

	if (word[0] != '~' || (word[1] != '\0' && word[1] != '/') || home == NULL)
		return word;
	for (; *home != '\0'; home++)
		put(b, *home, true);
	return word + 1;
}

bool
expand_words(const struct word *words, struct argv *out)
{
	for (; words != NULL; words = words->next) {
		struct build b = {.split = true, .out = out};

		expand_into(&b, put_home(&b, words->text), false);
		if (b.failed)
			return false;
		end_field(&b);
	}
	return true;
}

char *
expand_text(const char *word)
{
	struct build b = {0};

	expand_into(&b, put_home(&b, word), false);
	if (b.failed)
		return NULL;
	return b.s.s != NULL ? b.s.s : arena_strndup("", 0);
}

char *
expand_pattern(const char *word)
{
	struct build b = {0};

	expand_into(&b, word, false);
	return b.failed ? NULL : as_pattern(&b);
}

/* As between double quotes, where quotes themselves are plain characters. */
char *
expand_here(const char *text)
{
	struct build b = {0};

	while (*text != '\0' && !b.failed) {
		if (*text == '\\' && text[1] != '\0' && strchr("$`\\\n", text[1]) != NULL) {
			text++;
			if (*text != '\n')
				put(&b, *text, true);
			text++;
		} else if (*text == '$') {
			text = put_dollar(&b, text, true);
		} else if (*text == '`') {
			text = put_backquoted(&b, text, true);
		} else {
			put(&b, *text++, true);
		}
	}
	if (b.failed)
		return NULL;
	return b.s.s != NULL ? b.s.s : arena_strndup("", 0);
}
