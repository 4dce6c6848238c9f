/*
 * param.c - names and types of a trace point's parameters, from its format.
 *
 * Invariant: names of one format differ. Locking: none.
 */
#include "ktr/param.h"
#include "ktr/fmt.h"
#include "ktr/name.h"
#include "ktr/str.h"

/* The name is the word, or p1, p2… if the word is empty. number, unless 0, is appended to it. */
static void
param_name(struct ktr_param *p, const char *word, size_t len, unsigned place, unsigned number)
{
	const size_t room = KTR_PARAM_NAME - 1 - (number > 0 ? 2 : 0);
	size_t n = 0;
	while (n < len && n < room) {
		p->name[n] = word[n];
		n++;
	}
	if (len == 0) {
		p->name[n++] = 'p';
		p->name[n++] = (char)('1' + place);
	}
	if (number > 0) {
		p->name[n++] = '_';
		p->name[n++] = (char)('0' + number);
	}
	p->name[n] = '\0';
}

static bool
param_same_text(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool
param_name_taken(const struct ktr_param *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (param_same_text(p[i].name, p[n].name))
			return true;
	return false;
}

/* The last word of [from, to). */
static size_t
last_word(const char *from, const char *to, const char **word)
{
	while (to > from && !ktr_is_word(to[-1]))
		to--;
	const char *start = to;
	while (start > from && ktr_is_word(start[-1]))
		start--;
	while (start < to && *start >= '0' && *start <= '9')
		start++;
	*word = start;
	return (size_t)(to - start);
}

static void
param_type(struct ktr_param *p, const struct fmt_spec *s)
{
	p->string = s->conv == 's';
	p->is_signed = s->conv == 'd' || s->conv == 'c';
	p->bits = s->type == FMT_CHAR                                      ? 8
		  : s->type == FMT_SHORT                                   ? 16
		  : s->type == FMT_INT || s->conv == 'I' || s->conv == 'D' ? 32
									   : 64;
}

static void
param_set(struct ktr_param *all, unsigned i, const struct fmt_spec *s, const char *word, size_t len)
{
	struct ktr_param *p = &all[i];
	param_type(p, s);
	param_name(p, word, len, i, 0);
	/* At most five names are taken already, so this ends. */
	for (unsigned number = 2; param_name_taken(all, i); number++)
		param_name(p, word, len, i, number);
}

void
ktr_params_scan(const char *fmt, struct ktr_param *p, unsigned n)
{
	static const struct fmt_spec star = {.conv = 'd', .type = FMT_INT};
	static const struct fmt_spec none = {.conv = 'u', .type = FMT_LONGLONG};
	const char *from = fmt;
	unsigned i = 0;
	while (*fmt != '\0' && i < n) {
		struct fmt_spec s;
		const char *percent = fmt, *word;
		if (*fmt++ != '%')
			continue;
		fmt_scan(&fmt, &s);
		if (s.conv == 0 || s.conv == '%')
			continue;
		size_t len = last_word(from, percent, &word);
		if (s.name != NULL) {
			word = s.name;
			len = s.name_len;
		}
		for (int stars = s.star_width + s.star_precision; stars > 0 && i < n; stars--)
			param_set(p, i++, &star, word, 0);
		if (i < n)
			param_set(p, i++, &s, word, len);
		from = fmt;
	}
	for (; i < n; i++)
		param_set(p, i, &none, fmt, 0);
}

uint64_t
ktr_param_value(const struct ktr_param *p, uint64_t value)
{
	unsigned shift = 64u - p->bits;
	return p->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift)
			    : value << shift >> shift;
}

bool
ktr_param_is_comm(const struct ktr_param *p)
{
	static const char suffix[] = "_comm";
	size_t n = 0, len = sizeof(suffix) - 1;
	while (p->name[n] != '\0')
		n++;
	return p->string && (param_same_text(p->name, suffix + 1) ||
			     (n > len && param_same_text(p->name + n - len, suffix)));
}
