/*
 * print_agg.c - values of aggregations: numbers, averages, distributions.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/run/run.h"

#define BAR 40 /* characters of the longest bar */

/* ---- numbers ---- */

static uint64_t
square_root(unsigned __int128 n)
{
	unsigned __int128 low = 0, high = (unsigned __int128)1 << 64;

	while (high - low > 1) {
		unsigned __int128 middle = low + (high - low) / 2;

		if (middle * middle <= n)
			low = middle;
		else
			high = middle;
	}
	return (uint64_t)low;
}

/* The deviation of values that were all divided by `normal`. */
static int64_t
deviation(const uint64_t *v, uint64_t normal)
{
	unsigned __int128 squares = (unsigned __int128)v[3] << 64 | v[2], mean_square;
	__int128 mean;

	if (v[0] == 0)
		return 0;
	mean_square = squares / normal / normal / v[0];
	mean = (__int128)(int64_t)v[1] / (__int128)normal / (__int128)v[0];
	if ((unsigned __int128)(mean * mean) >= mean_square)
		return 0;
	return (int64_t)square_root(mean_square - (unsigned __int128)(mean * mean));
}

static int64_t
quantize_value(unsigned bucket)
{
	if (bucket < 63)
		return -(int64_t)(1ull << (62 - bucket));
	return bucket == 63 ? 0 : (int64_t)(1ull << (bucket - 64));
}

static uint64_t
power(uint64_t base, uint64_t exponent)
{
	uint64_t p = 1;

	while (exponent-- > 0)
		p *= base;
	return p;
}

/* Where a bucket begins. The first one has no beginning: where the next one begins. */
static int64_t
bucket_value(const struct dif_agg *a, unsigned b)
{
	uint64_t f = (uint64_t)a->p[0], m, at = 1, steps, next;

	if (a->func == DIF_QUANTIZE)
		return quantize_value(b);
	if (a->func == DIF_LQUANTIZE)
		return a->p[0] + (b == 0 ? 0 : (int64_t)b - 1) * a->p[2];
	if (b == 0)
		return (int64_t)power(f, (uint64_t)a->p[1]);
	for (m = (uint64_t)a->p[1]; m <= (uint64_t)a->p[2]; m++) {
		next = power(f, m + 1);
		steps = (uint64_t)a->p[3] < next ? (uint64_t)a->p[3] : next;
		if (b - at < steps - steps / f)
			return (int64_t)(power(f, m) + (b - at) * (next / steps));
		at += steps - steps / f;
	}
	return (int64_t)power(f, m);
}

/* The buckets of a distribution. 0: the aggregation is a number. */
static uint16_t
bucket_count(const struct dif_agg *a)
{
	uint64_t count = 2, steps;

	if (a->func == DIF_QUANTIZE)
		return 127;
	if (a->func == DIF_LQUANTIZE)
		return (uint16_t)((a->p[1] - a->p[0]) / a->p[2] + 2);
	for (int64_t m = a->p[1]; a->func == DIF_LLQUANTIZE && m <= a->p[2]; m++) {
		steps = power((uint64_t)a->p[0], (uint64_t)m + 1);
		steps = (uint64_t)a->p[3] < steps ? (uint64_t)a->p[3] : steps;
		count += steps - steps / (uint64_t)a->p[0];
	}
	return a->func == DIF_LLQUANTIZE ? (uint16_t)count : 0;
}

__int128
agg_number(uint32_t agg, const struct agg_entry *e)
{
	const struct dif_agg *a = &view.aggs[agg];
	__int128 normal = (int64_t)agg_normal(agg), sum = 0;

	if (e == NULL || e->value_words == 0)
		return 0;
	switch (a->func) {
	case DIF_AVG:
		return e->values[0] == 0 ? 0
					 : (int64_t)e->values[1] / normal / (int64_t)e->values[0];
	case DIF_STDDEV:
		return deviation(e->values, (uint64_t)normal);
	case DIF_QUANTIZE: /* what all values add up to; beyond 127 bits the largest number */
	case DIF_LQUANTIZE:
	case DIF_LLQUANTIZE:
		for (unsigned i = 0; i < e->value_words; i++) {
			__int128 value = bucket_value(a, i);

			value *= (int64_t)e->values[i];
			if (__builtin_add_overflow(sum, value, &sum))
				return value < 0 ? (__int128)1 << 127 : ~((__int128)1 << 127);
		}
		return sum;
	default:
		return (int64_t)e->values[0] / normal;
	}
}

/* ---- distributions ---- */

/* What the rows of a distribution have in common. */
struct scale {
	unsigned __int128 total; /* of the counts' sizes */
	uint64_t most;
	bool positives, negatives;
	uint64_t normal;
	bool whole; /* aggzoom's scale is a whole number, as agghist's is in the original */
};

static void
print_part(char c, uint64_t n)
{
	for (; n > 0; n--)
		fputc(c, print_out);
}

/* The count's part of the length: to the nearest, or down. */
static uint64_t
depth(const struct scale *s, int64_t count, unsigned length, bool nearest)
{
	uint64_t size = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
	unsigned __int128 bar = (unsigned __int128)size * length, of = s->total;

	if (dt_options.aggzoom) { /* the longest bar takes 95 % */
		bar *= 95;
		of = (unsigned __int128)100 * s->most;
		if (s->whole)
			of = of / 95 * 95;
	}
	return of == 0 ? 0 : (uint64_t)((2 * bar + (nearest ? of : 0)) / (2 * of));
}

static void
scale_add(struct scale *s, int64_t count)
{
	uint64_t size = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;

	s->positives |= count > 0;
	s->negatives |= count < 0;
	s->total += size;
	s->most = size > s->most ? size : s->most;
}

/* U+2588 is a whole block, U+2589 to U+258f have seven to one eighths of it. */
static void
print_blocks(uint64_t eighths)
{
	fputc('|', print_out);
	for (uint64_t n = eighths / 8; n > 0; n--)
		fputs("\xe2\x96\x88", print_out);
	if (eighths % 8 != 0)
		fprintf(print_out, "\xe2\x96%c", (char)(0x90 - eighths % 8));
	print_part(' ', BAR - (eighths + 7) / 8);
}

static void
print_bar(int64_t count, const struct scale *s)
{
	uint64_t bar = depth(s, count, s->positives && s->negatives ? BAR / 2 : BAR, true);

	if (!s->negatives && dt_options.encoding == ENCODING_UTF8) {
		print_blocks(depth(s, count, 8 * BAR, false));
	} else if (!s->negatives) {
		fputc('|', print_out);
		print_part('@', bar);
		print_part(' ', BAR - bar);
	} else if (!s->positives) {
		print_part(' ', BAR - bar);
		print_part('@', bar);
		fputc('|', print_out);
	} else {
		print_part(' ', BAR / 2 - (count <= 0 ? bar : 0));
		print_part('@', count <= 0 ? bar : 0);
		fputc('|', print_out);
		print_part('@', count <= 0 ? 0 : bar);
		print_part(' ', BAR / 2 - (count <= 0 ? 0 : bar));
	}
	fprintf(print_out, " %-9ld\n", (long)((__int128)count / (int64_t)s->normal));
}

/* The text before bucket `b` of n. */
static const char *
label(const struct dif_agg *a, unsigned b, unsigned n)
{
	static char text[40];
	bool ends = a->func != DIF_QUANTIZE;

	snprintf(text, sizeof(text), "%s%ld",
		 ends && b == 0       ? "< "
		 : ends && b == n - 1 ? ">= "
				      : "",
		 (long)bucket_value(a, b));
	return text;
}

static void
print_heading(int width, const char *what)
{
	fprintf(print_out, "\n%*s %41s %-9s\n", width, what,
		"------------- Distribution -------------", "count");
}

static void
print_distribution(uint32_t agg, const struct agg_entry *e)
{
	const struct dif_agg *a = &view.aggs[agg];
	struct scale s = {.normal = agg_normal(agg)};
	unsigned n = e->value_words, first = n, last = 0;

	for (unsigned i = 0; i < n; i++) {
		int64_t count = (int64_t)e->values[i];

		if (count == 0)
			continue;
		first = i < first ? i : first;
		last = i;
		scale_add(&s, count);
	}
	if (first == n) { /* nothing: the rows about 0, or the first ones */
		first = a->func == DIF_QUANTIZE ? 62 : 0;
		last = a->func == DIF_LLQUANTIZE ? 1 : first + 2;
	} else
		first = first > 0 ? first - 1 : 0, last = last < n - 1 ? last + 1 : last;
	print_heading(16, "value");
	for (unsigned i = first; i <= last; i++) {
		fprintf(print_out, "%16s ", label(a, i, n));
		print_bar((int64_t)e->values[i], &s);
	}
}

/* ---- agghist and aggpack: one row for each key ---- */

/* For the aggregation that is printed: the counts' scale, or the buckets that entries use. */
static struct scale pack_scale;
static unsigned pack_first, pack_last;

static bool
is_histogram(uint32_t agg)
{
	return dt_options.agghist && view.aggs[agg].func <= DIF_SUM;
}

bool
pack_wanted(uint32_t agg)
{
	uint8_t func = view.aggs[agg].func;

	return is_histogram(agg) ||
	       (dt_options.aggpack && (func == DIF_QUANTIZE || func == DIF_LQUANTIZE));
}

static void
pack_add(const struct agg_entry *e)
{
	if (is_histogram(e->agg))
		scale_add(&pack_scale, (int64_t)e->values[0]);
	for (unsigned i = 0; i < e->value_words && !is_histogram(e->agg); i++) {
		if (e->values[i] == 0)
			continue;
		pack_first = i < pack_first ? i : pack_first;
		pack_last = i > pack_last ? i : pack_last;
	}
}

/* Characters of a number, or of `min` and `max` above it. */
static int
number_width(int64_t value)
{
	int width = snprintf(NULL, 0, "%ld", (long)value);

	return width > 4 ? width : 4;
}

void
pack_print_heading(uint32_t agg, int width)
{
	const struct dif_agg *a = &view.aggs[agg];
	int min = 7, max = 8;

	pack_scale = (struct scale){.normal = agg_normal(agg), .whole = is_histogram(agg)};
	pack_first = UINT32_MAX;
	pack_last = 0;
	agg_each(agg, pack_add);
	if (is_histogram(agg)) {
		print_heading(width != 0 ? width : 16, width != 0 ? "key" : "value");
		return;
	}
	if (a->func == DIF_LQUANTIZE) {
		pack_first = 0;
		pack_last = (unsigned)((a->p[1] - a->p[0]) / a->p[2]) + 1;
	} else {
		if (pack_first > pack_last)
			pack_first = pack_last = 63;
		pack_first -= pack_first > 0 && pack_first != 63; /* no row below 0 for it alone */
		pack_last += pack_last < 126;
		min = number_width(quantize_value(pack_first));
		max = number_width(quantize_value(pack_last));
	}
	fprintf(print_out, "\n%*s %*s .", width, width > 0 ? "key" : "", min, "min");
	print_part('-', pack_last - pack_first + 1);
	fprintf(print_out, ". %*s | count\n", -max, "max");
}

/* Prints a bucket as one character: the higher, the more of the entry it has. */
static void
print_level(int64_t count, const struct scale *s)
{
	bool utf8 = dt_options.encoding != ENCODING_ASCII && count > 0;
	unsigned level = (unsigned)depth(s, count, count > 0 ? 7 : 5, true);

	if (utf8) /* U+2581 to U+2588: blocks of one to eight eighths */
		fprintf(print_out, "\xe2\x96%c", (char)(0x81 + level));
	else
		fputc((count < 0 ? "vvvvVV" : "__xxxxXX")[level], print_out);
}

void
pack_print_value(uint32_t agg, const struct agg_entry *e)
{
	const struct dif_agg *a = &view.aggs[agg];
	bool linear = a->func == DIF_LQUANTIZE;
	int min = 7, max = 8;
	struct scale s = {0};
	uint64_t count = 0;

	if (is_histogram(agg)) {
		fprintf(print_out, "%*s ", e->key_words == 0 ? 16 : 0, "");
		print_bar((int64_t)e->values[0], &pack_scale);
		return;
	}
	if (!linear) {
		min = number_width(quantize_value(pack_first));
		max = number_width(quantize_value(pack_last));
	}
	fprintf(print_out, " %*s :", min, label(a, pack_first, e->value_words));
	for (unsigned i = pack_first; i <= pack_last; i++) {
		count += e->values[i];
		scale_add(&s, (int64_t)e->values[i]);
	}
	for (unsigned i = pack_first; i <= pack_last; i++) {
		if (e->values[i] == 0)
			fputc(' ', print_out);
		else
			print_level((int64_t)e->values[i], &s);
	}
	fprintf(print_out, ": %*s | %ld\n", -max, label(a, pack_last, e->value_words), (long)count);
}

void
print_agg_value(uint32_t agg, const struct agg_entry *e)
{
	const struct dif_agg *a = &view.aggs[agg];
	/* For keys that an aggregation does not have: a distribution of nothing. */
	struct agg_entry none = {.agg = agg, .value_words = bucket_count(a)};
	uint64_t *nothing = NULL;

	if (e == NULL && none.value_words != 0) {
		none.values = nothing = calloc(none.value_words, sizeof(*nothing));
		if (nothing == NULL)
			err(1, "memory");
		e = &none;
	}
	if (e != NULL && a->func >= DIF_QUANTIZE)
		print_distribution(agg, e);
	else
		fprintf(print_out, " %16ld", (long)agg_number(agg, e));
	free(nothing);
}
