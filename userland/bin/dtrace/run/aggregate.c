/*
 * aggregate.c - the aggregations as the consumer has added them up: merging, sorting, printing all.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "kernel/abi/dif_hash.h"
#include "userland/bin/dtrace/options.h"
#include "userland/bin/dtrace/run/run.h"
#include "userland/lib/array.h"

static struct agg_entry **buckets; /* a power of two of them, as many as entries or more */
static size_t bucket_total, entry_total;
static uint64_t secret[2];
static struct {
	uint64_t normal; /* 0: 1 */
	bool printed;
} * state;

static void
open_state(void)
{
	if (state == NULL)
		state = dt_alloc((view.agg_count + 1) * sizeof(*state));
}

/* ---- adding ---- */

static struct agg_entry **
bucket_of(uint32_t agg, const uint64_t *keys, size_t words)
{
	return &buckets[dif_hash_words(secret, agg, keys, (uint32_t)words) & (bucket_total - 1)];
}

static void
grow(void)
{
	struct agg_entry **old = buckets;
	size_t total = bucket_total;

	if (total == 0 && getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		err(1, "getrandom");
	secret[1] |= 1;
	bucket_total = total > 0 ? 2 * total : 1024;
	buckets = calloc(bucket_total, sizeof(struct agg_entry *));
	if (buckets == NULL)
		err(1, "memory");
	for (size_t b = 0; b < total; b++) {
		for (struct agg_entry *e = old[b], *next; e != NULL; e = next) {
			struct agg_entry **to = bucket_of(e->agg, e->keys, e->key_words);

			next = e->next;
			e->next = *to;
			*to = e;
		}
	}
	free(old);
}

/* With -x aggpercpu, what a CPU has added is an entry of an aggregation of its own. */
static uint32_t agg_cpus;

static uint32_t
of_cpu(uint32_t agg, uint32_t cpu)
{
	return agg + (1 + cpu) * view.agg_count;
}

/* NULL: there is none. */
static struct agg_entry *
seek(uint32_t agg, const uint64_t *keys, uint16_t key_words)
{
	struct agg_entry *e = *bucket_of(agg, keys, key_words);

	while (e != NULL && (e->agg != agg || e->key_words != key_words ||
			     memcmp(e->keys, keys, 8 * (size_t)key_words) != 0))
		e = e->next;
	return e;
}

static struct agg_entry *
find(uint32_t agg, const uint64_t *keys, uint16_t key_words, uint16_t value_words)
{
	struct agg_entry **bucket, *e;

	if (entry_total == bucket_total)
		grow();
	e = seek(agg, keys, key_words);
	if (e != NULL)
		return e;
	bucket = bucket_of(agg, keys, key_words);
	e = malloc(sizeof(*e) + 8 * ((size_t)key_words + value_words));
	if (e == NULL)
		err(1, "memory");
	*e = (struct agg_entry){*bucket, agg, key_words, value_words, true, (uint64_t *)(e + 1),
				NULL};
	e->values = e->keys + key_words;
	memcpy(e->keys, keys, 8 * (size_t)key_words);
	memset(e->values, 0, 8 * (size_t)value_words);
	*bucket = e;
	entry_total++;
	return e;
}

static void
merge(struct agg_entry *e, const uint64_t *values)
{
	uint8_t func = view.aggs[e->agg % view.agg_count].func;
	unsigned __int128 more;

	if (func == DIF_MIN || func == DIF_MAX) {
		bool less = (int64_t)values[0] < (int64_t)e->values[0];

		if (e->fresh || less == (func == DIF_MIN))
			e->values[0] = values[0];
	} else if (func == DIF_STDDEV) {
		e->values[0] += values[0];
		e->values[1] += values[1];
		memcpy(&more, values + 2, sizeof(more));
		more += (unsigned __int128)e->values[3] << 64 | e->values[2];
		e->values[2] = (uint64_t)more;
		e->values[3] = (uint64_t)(more >> 64);
	} else {
		for (uint16_t i = 0; i < e->value_words; i++)
			e->values[i] += values[i];
	}
	e->fresh = false;
}

static void
fold_program(uint64_t *program)
{
	*program = (uint64_t)usymbol_program((uint32_t)(*program >> 32)) << 32 | (uint32_t)*program;
}

static void
fold_user(const struct rec_field *f, uint64_t *keys)
{
	const char *object, *name;
	uint64_t start;

	fold_program(&keys[0]);
	name = usymbol_at(keys[0], keys[1], &start, &object);
	if (f->show == SHOW_UMOD && object != NULL)
		keys[1] = usymbol_object(keys[0], keys[1]);
	else if (f->show != SHOW_UADDR && name != NULL)
		keys[1] = start;
}

/*
 * Replaces an address in a key by its function: for func() and mod() all addresses in one are one
 * key. Each program has one number.
 */
static void
fold_keys(const struct rec_agg *r, uint64_t *keys)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct rec_field *f = &view.fields[r->first + i];

		if (f->show == SHOW_FUNC || f->show == SHOW_MOD)
			keys[0] = print_function_start(keys[0]);
		if (f->show == SHOW_USTACK && keys[0] > 0)
			fold_program(&keys[1]);
		if (print_is_user(f))
			fold_user(f, keys);
		keys += agg_key_words(f, keys);
	}
}

void
agg_add(uint32_t cpu, const void *table, size_t size)
{
	const uint8_t *p = table, *end = p + size;

	agg_cpus = cpu >= agg_cpus ? cpu + 1 : agg_cpus;
	while ((size_t)(end - p) >= sizeof(struct dif_entry)) {
		const struct dif_entry *e = (const void *)p;
		uint64_t *keys = (uint64_t *)(p + sizeof(*e));
		size_t need = sizeof(*e) + 8 * ((size_t)e->key_words + e->value_words);

		if (need > (size_t)(end - p) || e->agg >= view.agg_count)
			break;
		fold_keys(&view.rec_aggs[e->agg], keys);
		merge(find(e->agg, keys, e->key_words, e->value_words), keys + e->key_words);
		if (dt_options.aggpercpu)
			merge(find(of_cpu(e->agg, cpu), keys, e->key_words, e->value_words),
			      keys + e->key_words);
		p += need;
	}
}

/* ---- what actions do to them ---- */

void
agg_each(uint32_t agg, void (*f)(const struct agg_entry *e))
{
	for (size_t b = 0; b < bucket_total; b++)
		for (struct agg_entry *e = buckets[b]; e != NULL; e = e->next)
			if (e->agg == agg)
				f(e);
}

void
agg_clear(uint32_t agg)
{
	for (size_t b = 0; b < bucket_total; b++) {
		for (struct agg_entry *e = buckets[b]; e != NULL; e = e->next) {
			if (e->agg % view.agg_count != agg)
				continue;
			memset(e->values, 0, 8 * (size_t)e->value_words);
			e->fresh = true;
		}
	}
}

void
agg_normalize(uint32_t agg, uint64_t by)
{
	open_state();
	state[agg].normal = by;
}

uint64_t
agg_normal(uint32_t agg)
{
	open_state();
	return state[agg].normal != 0 ? state[agg].normal : 1;
}

/* ---- sorting ---- */

static const uint32_t *sorted_aggs;
static unsigned sorted_count;

static int
compare_numbers(__int128 a, __int128 b)
{
	return a < b ? -1 : a > b;
}

static int
compare_one_key(const struct rec_field *f, const uint64_t *a, const uint64_t *b)
{
	size_t words;

	switch (f->show) {
	case SHOW_STRING:
		return strcmp((const char *)a, (const char *)b);
	case SHOW_STACK:
	case SHOW_USTACK:
		words = a[0] < b[0] ? a[0] : b[0];
		for (size_t i = 1; i <= words; i++)
			if (a[i] != b[i])
				return a[i] < b[i] ? -1 : 1;
		return compare_numbers((int64_t)a[0], (int64_t)b[0]);
	case SHOW_BYTES:
		return memcmp(a, b, f->size);
	case SHOW_INT:
	case SHOW_ENUM:
		return compare_numbers((int64_t)a[0], (int64_t)b[0]);
	case SHOW_UINT:
		if (f->size < 8) /* another use may have a sign: agg_key_field() */
			return compare_numbers((int64_t)a[0], (int64_t)b[0]);
		return compare_numbers(a[0], b[0]);
	default:
		if (print_is_user(f) && a[0] == b[0])
			return compare_numbers(a[1], b[1]);
		return compare_numbers(a[0], b[0]);
	}
}

/* Compares keys number `from` and after, then the first ones. */
static int
compare_keys(const struct agg_entry *a, const struct agg_entry *b)
{
	const struct rec_agg *r = &view.rec_aggs[a->agg];
	uint32_t from =
	    dt_options.aggsortkeypos < r->count ? (uint32_t)dt_options.aggsortkeypos : 0;

	for (unsigned turn = 0; turn < 2; turn++) {
		const uint64_t *x = a->keys, *y = b->keys;

		for (uint32_t i = 0; i < r->count; i++) {
			const struct rec_field *f = &view.fields[r->first + i];
			int c = (turn == 0) == (i >= from) ? compare_one_key(f, x, y) : 0;

			if (c != 0)
				return c;
			x += agg_key_words(f, x);
			y += agg_key_words(f, y);
		}
	}
	return 0;
}

/* A row has an entry of each of sorted_aggs, at least one of which is not NULL. */
static const struct agg_entry *
any_of(struct agg_entry *const *row)
{
	while (*row == NULL)
		row++;
	return *row;
}

static int
compare_values(struct agg_entry *const *a, struct agg_entry *const *b)
{
	unsigned from = dt_options.aggsortpos < sorted_count ? (unsigned)dt_options.aggsortpos : 0;

	for (unsigned i = 0; i < sorted_count; i++) {
		unsigned n = (from + i) % sorted_count;
		int c = compare_numbers(agg_number(sorted_aggs[n], a[n]),
					agg_number(sorted_aggs[n], b[n]));

		if (c != 0)
			return c;
	}
	return 0;
}

static bool truncating; /* rows are sorted by their values, whatever the options say */

static int
compare_rows(const void *one, const void *other)
{
	struct agg_entry *const *a = one, *const *b = other;
	int c;

	if (dt_options.aggsortkey && !truncating) {
		c = compare_keys(any_of(a), any_of(b));
		c = c != 0 ? c : compare_values(a, b);
	} else {
		c = compare_values(a, b);
		c = c != 0 ? c : compare_keys(any_of(a), any_of(b));
	}
	return dt_options.aggsortrev && !truncating ? -c : c;
}

/* Makes rows of the aggregations' entries, one for equal keys; sorts them. */
static struct agg_entry **
make_rows(const uint32_t *aggs, unsigned count, size_t *rows)
{
	struct agg_entry **list = NULL;
	size_t size = 0;

	for (size_t b = 0; b < bucket_total * count; b++) {
		size_t n = b / bucket_total;

		for (struct agg_entry *e = buckets[b % bucket_total]; e != NULL; e = e->next) {
			bool earlier = false;

			if (e->agg != aggs[n])
				continue;
			for (unsigned i = 0; i < count; i++) {
				ARRAY_ADD(list, size, seek(aggs[i], e->keys, e->key_words));
				earlier |= i < n && list[size - 1] != NULL;
			}
			if (earlier) /* it has its row already */
				size -= count;
		}
	}
	sorted_aggs = aggs;
	sorted_count = count;
	*rows = size / count;
	if (size > 0)
		qsort(list, *rows, count * sizeof(*list), compare_rows);
	return list;
}

static void
remove_entry(struct agg_entry *gone)
{
	struct agg_entry **p = bucket_of(gone->agg, gone->keys, gone->key_words);

	while (*p != gone)
		p = &(*p)->next;
	*p = gone->next;
	free(gone);
	entry_total--;
}

static void
remove_all(struct agg_entry *gone)
{
	for (uint32_t cpu = 0; cpu < agg_cpus; cpu++) {
		struct agg_entry *e = seek(of_cpu(gone->agg, cpu), gone->keys, gone->key_words);

		if (e != NULL)
			remove_entry(e);
	}
	remove_entry(gone);
}

void
agg_trunc(uint32_t agg, int64_t keep)
{
	size_t count;
	struct agg_entry **rows;
	uint64_t left = (uint64_t)(keep < 0 ? -keep : keep);

	truncating = true;
	rows = make_rows(&agg, 1, &count);
	truncating = false;

	/* Rows ascend: the largest are the last. */
	for (size_t i = 0; i < count; i++) {
		bool stays = keep < 0 ? i < left : count - i <= left;

		if (!stays)
			remove_all(rows[i]);
	}
	free(rows);
}

/* ---- printing ---- */

static bool
is_number(const struct rec_field *f)
{
	return f->show == SHOW_INT || f->show == SHOW_UINT || f->show == SHOW_HEX ||
	       f->show == SHOW_ENUM;
}

static void
print_key(const struct rec_field *f, const uint64_t *key, bool packed)
{
	struct rec_field whole = agg_key_field(f, key);

	switch (f->show) {
	case SHOW_STRING:
		fprintf(print_out, packed ? " %16s" : "  %-50s", (const char *)key);
		return;
	case SHOW_STACK:
	case SHOW_USTACK:
		whole.size = (uint32_t)key[0] * 8;
		print_stack(&whole, key + 1, (unsigned)dt_options.stackindent);
		return;
	case SHOW_BYTES:
		print_bytes((const uint8_t *)key, f->size);
		return;
	case SHOW_INT:
	case SHOW_UINT:
	case SHOW_HEX:
	case SHOW_ENUM:
		print_number(&whole, (const uint8_t *)key, true);
		return;
	default:
		fprintf(print_out, "  %-50s",
			print_symbol((enum show)f->show, print_is_user(f) ? key[1] : key[0],
				     key[0]));
	}
}

static void
print_row(struct agg_entry *const *row)
{
	const struct agg_entry *e = any_of(row);
	const struct rec_agg *rec = &view.rec_aggs[e->agg];
	const uint64_t *key = e->keys;
	bool packed = sorted_count == 1 && pack_wanted(e->agg);

	for (uint32_t i = 0; i < rec->count; i++) {
		const struct rec_field *f = &view.fields[rec->first + i];

		print_key(f, key, packed);
		key += agg_key_words(f, key);
	}
	if (packed) {
		pack_print_value(e->agg, e);
		return;
	}
	for (unsigned i = 0; i < sorted_count; i++)
		print_agg_value(sorted_aggs[i], row[i]);
	for (uint32_t cpu = 0; cpu < agg_cpus && dt_options.aggpercpu; cpu++) {
		fprintf(print_out, "\n    [CPU %u]", cpu);
		for (unsigned i = 0; i < sorted_count; i++)
			print_agg_value(sorted_aggs[i],
					seek(of_cpu(sorted_aggs[i], cpu), e->keys, e->key_words));
	}
	fprintf(print_out, "\n");
}

static void
print_pack_heading(uint32_t agg)
{
	const struct rec_agg *rec = &view.rec_aggs[agg];
	int width = 0;

	for (uint32_t i = 0; i < rec->count; i++) {
		const struct rec_field *f = &view.fields[rec->first + i];

		width += 1 + (is_number(f) ? print_number_width(f) : 16);
	}
	pack_print_heading(agg, width);
}

void
agg_print(const char *format, const uint32_t *aggs, unsigned count)
{
	size_t rows;
	struct agg_entry **list;

	open_state();
	list = make_rows(aggs, count, &rows);
	for (unsigned i = 0; i < count; i++)
		state[aggs[i]].printed |= rows > 0;
	if (format == NULL && count == 1 && rows > 0 && pack_wanted(aggs[0]))
		print_pack_heading(aggs[0]);
	for (size_t i = 0; i < rows; i++) {
		if (format != NULL)
			print_printa(format, list + i * count, aggs, count);
		else
			print_row(list + i * count);
	}
	free(list);
}

void
agg_print_rest(void)
{
	open_state();
	for (uint32_t agg = 0; agg < view.agg_count; agg++)
		if (!state[agg].printed)
			agg_print(NULL, &agg, 1);
}
