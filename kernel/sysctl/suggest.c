/*
 * suggest.c - "did you mean": edit distance, by one row of the usual table.
 * Invariant: names longer than the row are never suggested. Locking: none; no state.
 */
#include "kernel/sysctl/suggest.h"
#include "kernel/lib/string.h"

#define SUGGEST_MAX 64

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned
edit_distance(const char *a, const char *b, size_t b_len)
{
	unsigned char row[SUGGEST_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned char)j;
	for (; *a != '\0'; a++) {
		unsigned diagonal = row[0]++;

		for (size_t j = 1; j <= b_len; j++) {
			unsigned up = row[j];

			row[j] = (unsigned char)min3(up + 1, row[j - 1] + 1u,
						     diagonal + (*a != b[j - 1]));
			diagonal = up;
		}
	}
	return row[b_len];
}

void
suggest_init(struct suggestion *s, const char *wanted)
{
	size_t n = strlen(wanted);

	/* Up to a third of the name may be wrong. */
	*s = (struct suggestion){.wanted = n <= SUGGEST_MAX ? wanted : NULL,
				 .distance = (unsigned)(n / 3 + 1)};
}

void
suggest_try(struct suggestion *s, const char *candidate)
{
	size_t n = strlen(candidate);
	unsigned d;

	if (s->wanted == NULL || n > SUGGEST_MAX)
		return;
	d = edit_distance(s->wanted, candidate, n);
	if (d < s->distance) {
		s->distance = d;
		s->best = candidate;
	}
}
