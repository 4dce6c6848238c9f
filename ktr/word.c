/*
 * word.c - numbers, and "did you mean". Locking: none; no state.
 */
#include "ktr/word.h"

#include "ktr/str.h"

#define WORD_MAX 64 /* longer words and names are never suggested */

static unsigned
word_digit(char c)
{
	c = ktr_upper(c);
	return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
	       : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
				      : 16;
}

enum ktr_number
ktr_number(const char *text, size_t len, unsigned base, uint64_t *value)
{
	enum ktr_number kind = KTR_NUMBER_OK;
	uint64_t v = 0;

	if (base == 0) {
		base = 10;
		if (len > 1 && text[0] == '0' && ktr_upper(text[1]) == 'X') {
			base = 16;
			text += 2;
			len -= 2;
		}
	}
	if (len == 0)
		return KTR_NUMBER_NOT;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = word_digit(text[i]);

		if (digit >= base)
			return KTR_NUMBER_NOT;
		if (v > (UINT64_MAX - digit) / base)
			kind = KTR_NUMBER_HUGE;
		v = v * base + digit;
	}
	if (kind == KTR_NUMBER_OK)
		*value = v;
	return kind;
}

static unsigned
word_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many insertions, deletions, changes and swaps of neighbours make one word of the other. */
static unsigned
word_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned char d[3][WORD_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned char *row = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];
		char c = ktr_upper(a[i - 1]);

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= b_len; j++) {
			char e = ktr_upper(b[j - 1]);
			unsigned best =
			    word_min(up[j - 1] + (c != e), word_min(up[j], row[j - 1]) + 1u);

			if (i > 1 && j > 1 && c == ktr_upper(b[j - 2]) && e == ktr_upper(a[i - 2]))
				best = word_min(best, up2[j - 2] + 1u);
			row[j] = (unsigned char)best;
		}
	}
	return d[a_len % 3][b_len];
}

void
ktr_suggest_init(struct ktr_suggestion *s, const char *wanted, size_t len)
{
	/* Up to a third of the word may be wrong. */
	*s = (struct ktr_suggestion){.wanted = wanted,
				     .len = len,
				     .distance = (unsigned)(len / 3 + 1)};
}

void
ktr_suggest_try(struct ktr_suggestion *s, const char *name)
{
	size_t len = ktr_strlen(name);
	unsigned d;

	if (s->len > WORD_MAX || len > WORD_MAX)
		return;
	d = word_distance(s->wanted, s->len, name, len);
	if (d < s->distance) {
		s->distance = d;
		s->best = name;
	}
}

bool
ktr_suggest_nearer(const char *wanted, const char *name, unsigned *distance)
{
	struct ktr_suggestion s;

	ktr_suggest_init(&s, wanted, ktr_strlen(wanted));
	s.distance = word_min(s.distance, *distance);
	ktr_suggest_try(&s, name);
	if (s.best == NULL)
		return false;
	*distance = s.distance;
	return true;
}
