/*
 * remote_sound.c - checks records and aggregations from another kernel: can the program have made
 * them? What prints them (userland/bin/dtrace/run/) relies on that, and stays within them.
 */
#include <string.h>

#include "kernel/dtrace/host/remote.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/run/run.h"

static bool
has_end(const void *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* Are the field's data in the record's `size` bytes? A string's may end with its NUL. */
static bool
is_field(const struct rec_action *a, const struct rec_field *f, const uint8_t *data, size_t size)
{
	size_t left = f->offset < size ? size - f->offset : 0;

	if (f->show == SHOW_AGG || f->show == SHOW_STRUCT || f->show == SHOW_END)
		return true;
	if (f->size <= left && (f->show != SHOW_STRING || a->action == ACT_PRINT))
		return true; /* print() knows how long an array is */
	return f->show == SHOW_STRING && has_end(data + f->offset, left < f->size ? left : f->size);
}

static const char *
unsound_record(const struct dif *d, const struct dif_record *r)
{
	const uint8_t *data = (const uint8_t *)(r + 1);
	size_t size = 8u * r->words - sizeof(*r);
	const struct rec_layout *l;

	if (r->layout == DIF_VOID)
		return NULL;
	if (r->layout >= view.layout_count || r->layout >= d->h.layouts.count)
		return "a record of no kind that the program has";
	if (size > ((d->layouts[r->layout] + 7u) & ~7u))
		return "a record longer than the program makes it";
	l = &view.layouts[r->layout];
	for (uint32_t i = l->first; i < l->first + l->count; i++) {
		const struct rec_action *a = &view.actions[i];

		if (a->flag > size)
			return "a record shorter than the program makes it";
		if (a->flag > 0 && data[a->flag - 1] == 0)
			continue; /* the action was not done: these bytes are an earlier record's */
		for (uint32_t n = a->first; n < a->first + a->count; n++)
			if (!is_field(a, &view.fields[n], data, size))
				return "a record that ends within a value";
	}
	return NULL;
}

const char *
remote_unsound_records(const struct dif *d, const uint8_t *p, size_t size)
{
	const char *unsound = NULL;

	for (size_t at = 0; at < size && unsound == NULL;) {
		const struct dif_record *r = (const void *)(p + at);

		if (size - at < sizeof(*r) || 8u * r->words < sizeof(*r) ||
		    8u * r->words > size - at)
			return "a record that ends beyond the others";
		unsound = unsound_record(d, r);
		at += 8u * r->words;
	}
	return unsound;
}

/* The words that a key takes; 0: the key is not valid. */
static size_t
key_words(const struct rec_field *f, const uint64_t *key, size_t left)
{
	size_t words;

	if (left == 0 || (f->show == SHOW_STRING && !has_end(key, 8 * left)) ||
	    ((f->show == SHOW_STACK || f->show == SHOW_USTACK) && key[0] >= left))
		return 0;
	words = agg_key_words(f, key);
	return words <= left ? words : 0;
}

const char *
remote_unsound_aggs(const struct dif *d, const uint8_t *p, size_t size)
{
	for (size_t at = 0, need; at < size; at += need) {
		const struct dif_entry *e = (const void *)(p + at);
		const uint64_t *keys = (const uint64_t *)(e + 1);
		const struct rec_agg *r;
		size_t left, words = 1;

		if (size - at < sizeof(*e))
			return "an entry that ends beyond the others";
		need = sizeof(*e) + 8 * ((size_t)e->key_words + e->value_words);
		if (need > size - at)
			return "an entry that ends beyond the others";
		if (e->agg >= view.agg_count || e->agg >= d->h.aggs.count ||
		    e->value_words != d->aggregations[e->agg].value_words)
			return "an entry of no aggregation of the program";
		r = &view.rec_aggs[e->agg];
		left = e->key_words;
		for (uint32_t i = r->first; i < r->first + r->count && words > 0; i++) {
			words = key_words(&view.fields[i], keys, left);
			keys += words;
			left -= words;
		}
		if (words == 0 || left != 0)
			return "an entry with other keys than the program's";
	}
	return NULL;
}
