/*
 * lex_constant.c - integers, characters and strings.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/read/read.h"

size_t
lex_name_size(const char *p)
{
	size_t n = 0;

	if (isdigit((unsigned char)*p))
		return 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

struct type *
lex_integer_type(uint64_t value, bool decimal, bool is_unsigned, bool is_long)
{
	if (!is_unsigned && !is_long && value <= INT32_MAX)
		return type_int;
	if (!is_long && value <= UINT32_MAX && (is_unsigned || !decimal))
		return type_uint;
	if (!is_unsigned && value <= INT64_MAX)
		return type_long;
	return type_ulong;
}

/* An integer of `size` characters: digits, then what says its type. */
void
lex_integer(struct token *t, const char *text, size_t size)
{
	char *copy = dt_strndup(text, size), *end = copy;
	bool is_unsigned = false;
	unsigned longs = 0, base;

	errno = 0;
	t->kind = TOKEN_INT;
	base = copy[0] != '0' ? 10 : (copy[1] | 0x20) == 'x' ? 16 : 8;
	t->value = strtoull(copy, &end, (int)base);
	if (errno == ERANGE)
		dt_error(t->at, "D_INT_OFLOW", "%s: the integer does not fit into 64 bits", copy);
	for (char *p = end; *p != '\0'; p++) {
		if ((*p | 0x20) == 'u' && !is_unsigned)
			is_unsigned = true;
		else if ((*p | 0x20) == 'l' && longs < 2)
			longs++;
		else if (*p == '.' || (base == 10 && (*p | 0x20) == 'e'))
			dt_error(t->at, "D_SYNTAX", "%s: D has no floating point", copy);
		else
			dt_error(t->at,
				 base == 8 && isdigit((unsigned char)*p) ? "D_INT_DIGIT"
									 : "D_SYNTAX",
				 "%s: found '%c', expected a digit, or u or l at the end", copy,
				 *p);
	}
	t->type = lex_integer_type(t->value, base == 10, is_unsigned, longs > 0);
}

/* Adds the character at p, which may be an escape; returns where it ends. */
static const char *
escape(const char *p, char **to)
{
	static const char from[] = "abfnrtv", meant[] = "\a\b\f\n\r\t\v";
	const char *found;
	unsigned value = 0, digits = 0;

	if (*p != '\\') {
		*(*to)++ = *p;
		return p + 1;
	}
	p++;
	found = strchr(from, *p);
	if (*p == 'x') {
		for (p++; isxdigit((unsigned char)*p) && digits < 2; p++, digits++)
			value = value * 16 + (unsigned)(isdigit((unsigned char)*p)
							    ? *p - '0'
							    : (*p | 0x20) - 'a' + 10);
		*(*to)++ = (char)value;
		return p;
	}
	if (*p >= '0' && *p <= '7') {
		for (; *p >= '0' && *p <= '7' && digits < 3; p++, digits++)
			value = value * 8 + (unsigned)(*p - '0');
		*(*to)++ = (char)value;
		return p;
	}
	if (strchr("\"\\'?", *p) == NULL && (*p == '\0' || found == NULL))
		*(*to)++ = '\\'; /* it stands for itself */
	*(*to)++ = *p != '\0' && found != NULL ? meant[found - from] : *p;
	return p + (*p != '\0');
}

/* A string or character constant, which begins at lex.pos; takes it, and returns its bytes. */
char *
lex_quoted(struct token *t, size_t *size)
{
	char quote = *lex.pos, *bytes, *to;
	const char *end = lex.pos + 1;

	while (*end != quote) {
		if (*end == '\0' || (*end == '\n'))
			dt_error(t->at, quote == '"' ? "D_STR_NL" : "D_CHR_NL",
				 "found the end of the line in a %s, expected %c",
				 quote == '"' ? "string" : "character constant", quote);
		lex.here.line += end[0] == '\\' && end[1] == '\n';
		end += end[0] == '\\' && end[1] != '\0' ? 2 : 1;
	}
	to = bytes = dt_alloc((size_t)(end - lex.pos));
	for (const char *p = lex.pos + 1; p < end;) {
		if (p[0] == '\\' && p[1] == '\n')
			p += 2;
		else
			p = escape(p, &to);
	}
	lex.pos = end + 1;
	*size = (size_t)(to - bytes);
	return bytes;
}

void
lex_character(struct token *t)
{
	size_t size;
	const char *bytes = lex_quoted(t, &size);

	t->kind = TOKEN_INT;
	if (size == 0)
		dt_error(t->at, "D_CHR_NULL", "found '', expected a character");
	if (size > 8)
		dt_error(t->at, "D_CHR_OFLOW", "a character constant has at most 8 characters");
	for (size_t i = 0; i < size; i++)
		t->value = t->value << 8 | (unsigned char)bytes[i];
	if (size == 1)
		t->value = (uint64_t)(int64_t)(signed char)bytes[0];
	t->type = size > 4 ? type_long : type_int;
}
