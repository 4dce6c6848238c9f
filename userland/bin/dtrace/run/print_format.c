/*
 * print_format.c - printf() and printa() with a format.
 */
#include <ctype.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/run/run.h"

static void
put(void *arg, const char *text, size_t size)
{
	fwrite(text, 1, size, print_out);
}

/* A 64-bit integer by a letter of C. */
static void
put_number(const struct conversion *c, char letter, uint64_t value)
{
	struct fmt_spec spec = c->spec;

	spec.conv = letter;
	spec.type = FMT_LONGLONG;
	fmt_value(put, NULL, &spec, value);
}

/* Prints the text, cut to the precision. most < 0: all of it. */
static void
put_text(const struct conversion *c, int most, const char *text)
{
	struct fmt_spec spec = c->spec;

	spec.conv = 's';
	if (spec.precision <= 0)
		spec.precision = most;
	fmt_value(put, NULL, &spec, (uintptr_t)text);
}

/* 2026 Nov 22 21:04:05; for %T Sun, 22 Nov 2026 21:04:05 UTC. Nanoseconds since 1970. */
static void
put_time(const struct conversion *c, uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	const struct tm *t = localtime(&seconds);
	char text[512]; /* the name of a zone is as long as the user likes */

	if (t == NULL ||
	    strftime(text, sizeof(text),
		     c->letter == 'Y' ? "%Y %b %e %H:%M:%S" : "%a, %d %b %Y %H:%M:%S %Z", t) == 0)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)seconds);
	put_text(c, -1, text);
}

/* Prints %S: characters that cannot be printed as C's escapes. */
static void
put_escaped(const struct conversion *c, const char *s, size_t max)
{
	static const char from[] = "\a\b\f\n\r\t\v\\", to[] = "abfnrtv\\";
	char *text = malloc(4 * strnlen(s, max) + 1);
	size_t n = 0;

	if (text == NULL)
		err(1, "memory");
	for (; max > 0 && *s != '\0'; s++, max--) {
		const char *found = strchr(from, *s);

		if (found != NULL) {
			text[n++] = '\\';
			text[n++] = to[found - from];
		} else if (isprint((unsigned char)*s)) {
			text[n++] = *s;
		} else {
			n += (size_t)snprintf(text + n, 5, "\\%03o", (unsigned char)*s);
		}
	}
	text[n] = '\0';
	put_text(c, -1, text);
	free(text);
}

/* Prints %d and %i: unsigned values as unsigned ones. */
static void
put_integer(const struct conversion *c, uint64_t value, bool is_signed, unsigned size)
{
	char letter = strchr("oxX", c->letter) != NULL                ? c->letter
		      : strchr("dDi", c->letter) != NULL && is_signed ? 'd'
		      : strchr("dDiuUP", c->letter) != NULL           ? 'u'
								      : 'x';

	/* The size of the argument, unless the format has a smaller one. */
	if (c->spec.type == FMT_CHAR)
		size = 1;
	if (c->spec.type == FMT_SHORT && size > 2)
		size = 2;
	if (size > 0 && size < 8) {
		unsigned unused = 64 - 8 * size;

		value = letter == 'd' ? (uint64_t)((int64_t)(value << unused) >> unused)
				      : value << unused >> unused;
	}
	put_number(c, letter, value);
}

/* A string, or an integer, by a conversion. */
static void
put_value(const struct conversion *c, const struct rec_field *f, uint64_t value, uint64_t pid,
	  const char *string)
{
	char one[2] = {(char)value, '\0'};

	switch (c->letter) {
	case 'I':
		if (f->show != SHOW_STRING) {
			put_integer(c, value, false, f->size);
			break;
		} /* fallthrough */
	case 's':
		put_text(c, (int)f->size, string);
		break;
	case 'S':
		put_escaped(c, string, f->size);
		break;
	case 'Y':
	case 'T':
		put_time(c, value);
		break;
	case 'a':
	case 'A':
		put_text(c, -1,
			 print_symbol(c->letter == 'A' || print_is_user(f) ? SHOW_UADDR : SHOW_SYM,
				      value, pid));
		break;
	case 'c':
		put_number(c, 'c', value);
		break;
	case 'C':
		put_escaped(c, one, 1);
		break;
	default:
		put_integer(c, value, f->show == SHOW_INT || f->show == SHOW_ENUM, f->size);
	}
}

static void
put_field(const struct conversion *c, const struct rec_field *f, const uint8_t *data)
{
	unsigned indent =
	    c->spec.width > 0 ? (unsigned)c->spec.width : (unsigned)dt_options.stackindent;
	uint64_t words[2];

	if (f->show == SHOW_STRING) {
		put_value(c, f, 0, 0, (const char *)data);
	} else if (f->show == SHOW_STACK || f->show == SHOW_USTACK) {
		print_stack(f, data, indent);
	} else if (f->show == SHOW_BYTES) {
		print_bytes(data, f->size);
	} else if (print_is_user(f)) {
		memcpy(words, data, sizeof(words));
		put_value(c, f, words[1], words[0], "");
	} else {
		put_value(c, f, print_integer(f, data), 0, "");
	}
}

/* Takes the value of %*; below 0: to the left. */
static void
set_width(struct conversion *c, int width)
{
	c->spec.left |= width < 0;
	c->spec.width = width < 0 ? -width : width;
}

static void
put_printf(const char *format, const struct rec_field *f, uint32_t count, const uint8_t *record)
{
	struct conversion c;
	const char *why;

	while (format_next(&format, &c, &why) && why == NULL) {
		put(NULL, c.literal, c.literal_size);
		if (c.letter == '%') {
			put(NULL, "%", 1);
			continue;
		}
		if (c.letter == '\0')
			continue;
		if (c.spec.star_width && count > 0) {
			set_width(&c, (int)print_integer(f, record + f->offset));
			f++, count--;
		}
		if (c.spec.star_precision && count > 0) {
			c.spec.precision = (int)print_integer(f, record + f->offset);
			f++, count--;
		}
		if (count == 0)
			return;
		put_field(&c, f, record + f->offset);
		f++, count--;
	}
}

void
print_printf(const char *format, const struct rec_field *f, uint32_t count, const uint8_t *record)
{
	put_printf(format, f, count, record);
}

char *
print_to_text(const char *format, const struct rec_field *f, uint32_t count, const uint8_t *record)
{
	FILE *first = print_out;
	char *text;
	size_t size;

	print_out = open_memstream(&text, &size);
	if (print_out == NULL)
		err(1, "memory");
	put_printf(format, f, count, record);
	if (fclose(print_out) != 0)
		err(1, "memory");
	print_out = first;
	return text;
}

/* How many words the key at `key` has. */
size_t
agg_key_words(const struct rec_field *f, const uint64_t *key)
{
	if (f->show == SHOW_STRING)
		return strlen((const char *)key) / 8 + 1;
	if (f->show == SHOW_STACK || f->show == SHOW_USTACK)
		return 1 + key[0];
	if (f->show == SHOW_BYTES)
		return (f->size + 7) / 8;
	return print_is_user(f) ? 2 : 1;
}

struct rec_field
agg_key_field(const struct rec_field *f, const uint64_t *key)
{
	struct rec_field whole = *f;
	bool number = f->show == SHOW_INT || f->show == SHOW_UINT || f->show == SHOW_ENUM;

	if (number && f->size < 8 && print_integer(f, (const uint8_t *)key) != *key) {
		whole.show = SHOW_INT;
		whole.size = 8;
	}
	return whole;
}

static void
put_key(const struct conversion *c, const struct rec_field *f, const uint64_t *key)
{
	struct rec_field whole = agg_key_field(f, key);

	if (f->show == SHOW_STRING)
		whole.size = (uint32_t)strlen((const char *)key) + 1;
	else if (f->show == SHOW_STACK || f->show == SHOW_USTACK)
		whole.size = (uint32_t)key[0] * 8, key++;
	put_field(c, &whole, (const uint8_t *)key);
}

void
print_printa(const char *format, struct agg_entry *const *entries, const uint32_t *aggs,
	     unsigned count)
{
	const struct agg_entry *first = NULL;
	const struct rec_agg *r = &view.rec_aggs[aggs[0]];
	const struct rec_field number = {.show = SHOW_INT, .size = 8};
	const uint64_t *key;
	struct conversion c;
	const char *why;
	uint32_t keys = 0;
	unsigned next = 0;

	for (unsigned i = 0; i < count && first == NULL; i++)
		first = entries[i];
	if (first == NULL)
		return;
	key = first->keys;
	while (format_next(&format, &c, &why) && why == NULL) {
		put(NULL, c.literal, c.literal_size);
		if (c.letter == '%') {
			put(NULL, "%", 1);
		} else if (c.agg) {
			const struct agg_entry *e = entries[next];
			uint8_t func = view.aggs[aggs[next]].func;

			if (func >= DIF_QUANTIZE)
				print_agg_value(aggs[next], e);
			else
				put_value(&c, &number, (uint64_t)agg_number(aggs[next], e), 0, "");
			next = (next + 1) % count;
		} else if (c.letter != '\0' && keys < r->count) {
			if (c.spec.star_width && keys + 1 < r->count) {
				set_width(&c, (int)*key);
				key += agg_key_words(&view.fields[r->first + keys++], key);
			}
			if (c.spec.star_precision && keys + 1 < r->count) {
				c.spec.precision = (int)*key;
				key += agg_key_words(&view.fields[r->first + keys++], key);
			}
			put_key(&c, &view.fields[r->first + keys], key);
			key += agg_key_words(&view.fields[r->first + keys], key);
			keys++;
		}
	}
}
