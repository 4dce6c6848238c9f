/*
 * loader_conf.c - the parser of loader parameters.
 * Invariant: no byte at or after text + size is read, and each step consumes at least one byte.
 * Locking: none; no state.
 */
#include "kernel/sysctl/loader_conf.h"

#include <stdbool.h>

struct cursor {
	const char *at, *end;
};

/* The text of a value or word, while it is parsed. */
struct piece {
	char *buf;
	size_t size, len;
	bool too_long, bad_char;
};

static bool
loader_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool
is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == '%';
}

/* Only printable text is accepted: these values are printed later. */
static bool
is_value_char(char c)
{
	return (unsigned char)c >= 0x20 && c != 0x7f;
}

static void
loader_piece_add(struct piece *p, char c)
{
	if (!is_value_char(c) && c != '\t')
		p->bad_char = true;
	else if (p->len + 1 < p->size)
		p->buf[p->len++] = c;
	else
		p->too_long = true;
	p->buf[p->len] = '\0';
}

static void
loader_skip_blanks(struct cursor *c)
{
	while (c->at < c->end && loader_is_blank(*c->at))
		c->at++;
}

/* Is only white space left before the end of the line or a #? Skips it. */
static bool
at_line_end(struct cursor *c)
{
	loader_skip_blanks(c);
	return c->at == c->end || *c->at == '#';
}

static void
loader_complain(const struct loader_sink *sink, unsigned line, const char *from, const char *to,
		const char *expected)
{
	while (to > from && loader_is_blank(to[-1]))
		to--;
	sink->complain(sink->arg, line, from, (size_t)(to - from), expected);
}

/* Parses the value after '='. Returns NULL, or what was expected instead of the text at c. */
static const char *
conf_value(struct cursor *c, struct piece *value)
{
	const char *start = c->at;

	if (c->at < c->end && *c->at == '"') {
		for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
			if (*c->at == '\\' && c->at + 1 < c->end)
				c->at++;
			loader_piece_add(value, *c->at);
		}
		if (c->at == c->end) {
			c->at = start;
			return "a closing \" on the same line";
		}
		c->at++;
	} else {
		for (; c->at < c->end && !loader_is_blank(*c->at) && *c->at != '#'; c->at++)
			loader_piece_add(value, *c->at);
	}
	if (value->bad_char || value->too_long) {
		c->at = start;
		return value->bad_char ? "a value of printable characters"
				       : "a value of at most 1023 characters";
	}
	return at_line_end(c) ? NULL : "nothing but a # comment after the value";
}

/* Parses a name and '='. Returns NULL, or what was expected. */
static const char *
conf_name(struct cursor *c, struct piece *name)
{
	for (; c->at < c->end && is_name_char(*c->at); c->at++)
		loader_piece_add(name, *c->at);
	if (name->too_long)
		return "a name of at most 63 characters";
	loader_skip_blanks(c);
	if (name->len == 0 || c->at == c->end || *c->at != '=')
		return "name=\"value\"";
	c->at++;
	loader_skip_blanks(c);
	return NULL;
}

static void
conf_line(struct cursor c, unsigned line, const struct loader_sink *sink)
{
	char name_buf[LOADER_NAME_MAX] = "", value_buf[LOADER_VALUE_MAX] = "";
	struct piece name = {.buf = name_buf, .size = sizeof(name_buf)};
	struct piece value = {.buf = value_buf, .size = sizeof(value_buf)};
	const char *start, *expected;

	if (at_line_end(&c))
		return;
	start = c.at;
	expected = conf_name(&c, &name);
	if (expected != NULL) {
		loader_complain(sink, line, start, c.end, expected);
		return;
	}
	expected = conf_value(&c, &value);
	if (expected != NULL)
		loader_complain(sink, line, c.at, c.end, expected);
	else
		sink->set(sink->arg, line, name_buf, value_buf);
}

void
loader_conf_parse(const char *text, size_t size, const struct loader_sink *sink)
{
	const char *end = text + size;

	for (unsigned line = 1; text < end; line++) {
		const char *eol = text;

		while (eol < end && *eol != '\n')
			eol++;
		conf_line((struct cursor){text, eol}, line, sink);
		text = eol < end ? eol + 1 : end;
	}
}

static bool
loader_is_space(char c)
{
	return loader_is_blank(c) || c == '\n' || c == '\0';
}

/* Takes one word, and removes quotes. Returns a quote that was not closed, or 0. */
static char
word_take(struct cursor *c, struct piece *word)
{
	char quote = 0;

	for (; c->at < c->end && (quote != 0 || !loader_is_space(*c->at)); c->at++) {
		char ch = *c->at;

		if (quote != '\'' && ch == '\\' && c->at + 1 < c->end)
			loader_piece_add(word, *++c->at);
		else if (quote != 0 ? ch == quote : ch == '"' || ch == '\'')
			quote = quote != 0 ? 0 : ch;
		else
			loader_piece_add(word, ch);
	}
	return quote;
}

/* Splits the word at its first '='. Returns NULL, or what was expected. */
static const char *
word_split(char *word, const char **value)
{
	size_t n = 0;

	*value = NULL;
	while (is_name_char(word[n]))
		n++;
	if (n == 0 || (word[n] != '=' && word[n] != '\0'))
		return "name=value";
	if (n >= LOADER_NAME_MAX)
		return "a name of at most 63 characters";
	if (word[n] == '=') {
		word[n] = '\0';
		*value = word + n + 1;
	}
	return NULL;
}

void
loader_words_parse(const char *text, size_t size, const struct loader_sink *sink)
{
	struct cursor c = {text, text + size};

	for (;;) {
		char buf[LOADER_NAME_MAX + LOADER_VALUE_MAX] = "";
		struct piece word = {.buf = buf, .size = sizeof(buf)};
		const char *start, *value = NULL, *expected = NULL;

		while (c.at < c.end && loader_is_space(*c.at))
			c.at++;
		if (c.at == c.end)
			return;
		start = c.at;
		if (word_take(&c, &word) != 0)
			expected = "a closing quote";
		else if (word.too_long)
			expected = "a value of at most 1023 characters";
		else if (word.bad_char)
			expected = "printable characters";
		else
			expected = word_split(buf, &value);
		if (expected == NULL && value != NULL &&
		    (size_t)(buf + word.len - value) >= LOADER_VALUE_MAX)
			expected = "a value of at most 1023 characters";
		if (expected != NULL)
			loader_complain(sink, 0, start, c.at, expected);
		else
			sink->set(sink->arg, 0, buf, value);
	}
}
