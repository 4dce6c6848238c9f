/*
 * aggregate.c - aggregations: for each CPU a hash table in memory of fixed size, to which only that
 * CPU adds. The reader exchanges it for an empty one.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"

#include "kernel/lib/string.h"

uint32_t
dif_table_begin(const struct dif *d)
{
	return (uint32_t)(d->table_slots * sizeof(uint32_t) + 7) & ~7u;
}

/* base to the power of n; -1: 2^63 or more. */
static int64_t
agg_power(int64_t base, int64_t n)
{
	int64_t v = 1;

	for (; n > 0 && v >= 0; n--)
		if (__builtin_mul_overflow(v, base, &v))
			v = -1;
	return v;
}

static int64_t
agg_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint32_t
llquantize_words(const int64_t *p, int64_t *base)
{
	uint64_t words = 2;

	if (p[0] < 2 || p[1] < 0 || p[1] > p[2] || p[2] > 62 || agg_power(p[0], p[2] + 1) < 0 ||
	    p[3] < 1 || p[3] % p[0] != 0)
		return 0;
	*base = agg_power(p[0], p[1]);
	for (int64_t m = p[1]; m <= p[2]; m++) {
		int64_t next = agg_power(p[0], m + 1), n = agg_least(next, p[3]);

		if (next % n != 0)
			return 0;
		words += (uint64_t)(n - n / p[0]);
		if (words > DIF_MAX_LEVELS + 2)
			return 0;
	}
	return (uint32_t)words;
}

uint32_t
dif_agg_words(const struct dif_agg *a, int64_t *base)
{
	const int64_t *p = a->p;
	uint64_t levels;

	*base = 0;
	switch (a->func) {
	case DIF_COUNT:
	case DIF_SUM:
	case DIF_MIN:
	case DIF_MAX:
		return 1;
	case DIF_AVG:
		return 2;
	case DIF_STDDEV:
		return 4;
	case DIF_QUANTIZE:
		return 127;
	case DIF_LQUANTIZE:
		if (p[0] >= p[1] || p[2] <= 0)
			return 0;
		levels = ((uint64_t)p[1] - (uint64_t)p[0]) / (uint64_t)p[2];
		return levels > 0 && levels <= DIF_MAX_LEVELS ? (uint32_t)levels + 2 : 0;
	case DIF_LLQUANTIZE:
		return llquantize_words(p, base);
	default:
		return 0;
	}
}

static uint32_t
quantize_bucket(int64_t v)
{
	if (v == 0)
		return 63;
	if (v == INT64_MIN)
		return 0;
	return v > 0 ? 64 + 63 - (uint32_t)__builtin_clzll((uint64_t)v)
		     : 62 - (63 - (uint32_t)__builtin_clzll((uint64_t)-v));
}

static uint32_t
lquantize_bucket(const struct dif_agg *a, uint32_t words, int64_t v)
{
	uint64_t level;

	if (v < a->p[0])
		return 0;
	level = ((uint64_t)v - (uint64_t)a->p[0]) / (uint64_t)a->p[2];
	return level < words - 2 ? (uint32_t)level + 1 : words - 1;
}

static uint32_t
llquantize_bucket(const struct dif_agg *a, int64_t from, int64_t v)
{
	const int64_t *p = a->p;
	int64_t bucket = 1;

	if (v < from)
		return 0;
	for (int64_t m = p[1]; m <= p[2]; m++) {
		int64_t next = from * p[0], n = agg_least(next, p[3]);

		if (v < next)
			return (uint32_t)(bucket + (v - from) / (next / n));
		bucket += n - n / p[0];
		from = next;
	}
	return (uint32_t)bucket;
}

/* Adds the square of v to 128 bits. */
static void
add_square(uint64_t *sum, int64_t v)
{
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
	unsigned __int128 total = (unsigned __int128)sum[1] << 64 | sum[0];

	total += (unsigned __int128)u * u;
	sum[0] = (uint64_t)total;
	sum[1] = (uint64_t)(total >> 64);
}

static __attribute__((noinline)) void
aggregation_add(const struct dif_agg *a, const struct dif_aggregation *g, uint64_t *w,
		uint64_t value, uint64_t weight)
{
	int64_t v = (int64_t)value;

	switch (a->func) {
	case DIF_SUM:
		w[0] += value;
		break;
	case DIF_MIN:
		if (v < (int64_t)w[0])
			w[0] = value;
		break;
	case DIF_MAX:
		if (v > (int64_t)w[0])
			w[0] = value;
		break;
	case DIF_STDDEV:
		add_square(&w[2], v);
		/* fallthrough */
	case DIF_AVG:
		w[0]++;
		w[1] += value;
		break;
	case DIF_QUANTIZE:
		w[quantize_bucket(v)] += weight;
		break;
	case DIF_LQUANTIZE:
		w[lquantize_bucket(a, g->value_words, v)] += weight;
		break;
	case DIF_LLQUANTIZE:
		w[llquantize_bucket(a, g->base, v)] += weight;
		break;
	}
}

bool
dif_key_str(struct dif_run *r, uint64_t addr)
{
	uint32_t strsize = r->d->h.options.strsize, room = 8 * (DIF_KEY_WORDS - r->key_words);
	char *to = (char *)&r->c->keys[r->key_words], more = '\0';
	long n;

	if (room == 0)
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	n = addr == 0 ? 0 : dif_copy_str(r, to, addr, strsize < room ? strsize : room);
	/* Is it longer than the room, and not only than strsize? */
	if (n < 0 || (room < strsize && n + 1u == room && !dif_copy(r, &more, addr + room - 1, 1)))
		return false;
	if (more != '\0')
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	r->key_words += (uint32_t)n / 8 + 1;
	r->c->keys[r->key_words - 1] &= (1ul << n % 8 * 8) - 1; /* zeroes after the string */
	return true;
}

/* The number of frames, and the frames; a user stack's pid counts as one. */
bool
dif_key_stack(struct dif_run *r, bool user, uint32_t frames)
{
	uint64_t *w = &r->c->keys[r->key_words];
	uint32_t room = DIF_KEY_WORDS - r->key_words, n;

	if (frames + 1 + user > room)
		return dif_fail(r, DIF_FAULT_TUPOFLOW, 0);
	if (user) {
		w[1] = 0;
		n = 1 + dif_port_ustack(r->f, &w[1], &w[2], frames);
	} else {
		n = dif_port_stack(r->f, &w[1], frames);
	}
	w[0] = n;
	r->key_words += 1 + n;
	return true;
}

static struct dif_entry *
entry_at(const struct dif_table *t, uint32_t offset)
{
	return (struct dif_entry *)((uint8_t *)t->slots + offset);
}

/* Makes an entry, and links it at *slot. NULL: no memory. */
static __attribute__((noinline)) struct dif_entry *
new_entry(struct dif_run *r, uint32_t agg, uint32_t key_words, uint32_t hash, uint32_t *slot)
{
	struct dif_table *t = &r->c->aggs;
	uint32_t words = r->d->aggregations[agg].value_words;
	uint32_t size = (uint32_t)sizeof(struct dif_entry) + 8 * (key_words + words);
	struct dif_entry *e = entry_at(t, t->head);
	uint64_t *w = (uint64_t *)(e + 1);

	if (size > r->d->h.options.aggsize - t->head) {
		dif_drop(r->c, &r->c->agg_drops);
		return NULL;
	}
	*e = (struct dif_entry){agg, hash, *slot, (uint16_t)key_words, (uint16_t)words};
	for (uint32_t i = 0; i < key_words; i++)
		*w++ = r->c->keys[i];
	for (uint32_t i = 0; i < words; i++)
		w[i] = 0;
	if (r->d->aggs[agg].func == DIF_MIN)
		w[0] = INT64_MAX;
	if (r->d->aggs[agg].func == DIF_MAX)
		w[0] = (uint64_t)INT64_MIN;
	*slot = t->head;
	t->head += size;
	return e;
}

static struct dif_entry *
find_entry(struct dif_run *r, uint32_t agg)
{
	uint32_t hash = dif_hash_words(r->d->secret, agg + 1, r->c->keys, r->key_words);
	struct dif_entry *e = dif_agg_find(r->d, r->c, agg, r->key_words, hash);

	return e != NULL ? e
			 : new_entry(r, agg, r->key_words, hash,
				     &r->c->aggs.buckets[hash & r->d->bucket_mask]);
}

void
dif_agg_add(struct dif_run *r, uint32_t agg, uint64_t value, uint64_t weight)
{
	const struct dif_agg *a = &r->d->aggs[agg];
	struct dif_table *t = &r->c->aggs;
	struct dif_entry *e;

	if (t->slots == NULL) {
		e = NULL;
		dif_drop(r->c, &r->c->agg_drops);
	} else if (a->keys != 0) {
		e = find_entry(r, agg);
	} else if (t->slots[agg] != 0) {
		e = entry_at(t, t->slots[agg]);
	} else {
		e = new_entry(r, agg, 0, 0, &t->slots[agg]);
	}
	if (a->keys != 0)
		r->key_words = 0;
	if (e != NULL && a->func == DIF_COUNT)
		++*dif_value(e);
	else if (e != NULL)
		aggregation_add(a, &r->d->aggregations[agg], dif_value(e), value, weight);
}

uint32_t
dif_agg_take(struct dif *d, unsigned cpu, void **entries)
{
	struct dif_table *t = &d->cpu[cpu].aggs;
	uint32_t *written = t->slots, size = t->head - dif_table_begin(d);

	if (written == NULL)
		return 0;
	t->slots = t->spare;
	t->buckets = t->slots + d->h.aggs.count;
	t->spare = written;
	t->head = dif_table_begin(d);
	*entries = (uint8_t *)written + t->head;
	return size;
}

void
dif_agg_done(struct dif *d, unsigned cpu)
{
	if (d->cpu[cpu].aggs.spare != NULL)
		memset(d->cpu[cpu].aggs.spare, 0, dif_table_begin(d));
}
