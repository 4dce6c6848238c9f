/*
 * hist_consumer.c - histograms' programs in the engine, and the rows of what they have counted.
 *
 * Locking: ftrace_lock, before dtrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"

#define LINKED_MAX 64u

/* ---- rows ---- */

static struct dtrace_consumer *
consumer_of(const struct hist *h)
{
	return h->linked ? h->i->linked : h->consumer;
}

static bool
hist_grow(struct hist *h)
{
	unsigned room = 2 * h->room + 64;
	struct hist_row **more = kmap_alloc(room * sizeof(*more));

	if (more == NULL)
		return false;
	memcpy(more, h->rows, h->nrows * sizeof(*more));
	kmap_free(h->rows);
	h->rows = more;
	h->room = room;
	return true;
}

static void
add_row(struct hist *h, unsigned value, const struct dif_entry *e)
{
	const uint64_t *keys = (const uint64_t *)(e + 1);
	struct hist_row *row = NULL;

	if (h->nrows < h->room || hist_grow(h))
		row = kzalloc(sizeof(*row) + e->key_words * sizeof(*keys));
	if (value == 0)
		h->hits += keys[e->key_words];
	if (row == NULL) {
		h->dropped += value == 0 ? keys[e->key_words] : 0;
		return;
	}
	row->key_words = e->key_words;
	row->values[value] = keys[e->key_words];
	memcpy(row->keys, keys, e->key_words * sizeof(*keys));
	h->rows[h->nrows++] = row;
}

struct taking {
	struct instance *i;
	struct dtrace_consumer *c;
};

/* Takes the entries of one CPU; arg: struct taking. */
static void
add_entries(const void *entries, size_t size, void *arg)
{
	const struct taking *t = arg;

	for (size_t at = 0; at < size;) {
		const struct dif_entry *e =
		    (const struct dif_entry *)((const uint8_t *)entries + at);

		at += sizeof(*e) + 8ul * (e->key_words + e->value_words);
		for (struct hist *h = NULL; (h = hist_next(t->i, NULL, h)) != NULL;)
			if (consumer_of(h) == t->c && e->agg >= h->in.agg &&
			    e->agg < h->in.agg + h->nvalues)
				add_row(h->data, e->agg - h->in.agg, e);
	}
}

static void
add_to_row(const struct hist *h, struct hist_row *to, struct hist_row *row)
{
	for (unsigned v = 0; v < h->nvalues; v++)
		to->values[v] += row->values[v];
	to->stays |= row->stays;
	kfree(row);
}

/* Rows with the same keys become one. Those that were there stay; of new ones, so many as fit. */
static void
hist_merge_rows(struct hist *h)
{
	unsigned n = 0, stay = 0, room;

	for (unsigned i = 0; i < h->nrows; i++)
		stay += h->rows[i]->stays;
	/* There may be more rows: those of a larger histogram of the same name. */
	room = stay < h->size ? h->size - stay : 0;
	hist_sort(h, h->rows, h->nrows, hist_compare_keys);
	for (unsigned i = 0, next; i < h->nrows; i = next) {
		struct hist_row *row = h->rows[i];

		for (next = i + 1; next < h->nrows; next++) {
			if (hist_compare_keys(h, row, h->rows[next]) != 0)
				break;
			add_to_row(h, row, h->rows[next]);
		}
		if (row->stays || room > 0) {
			room -= !row->stays;
			row->stays = true;
			h->rows[n++] = row;
		} else {
			h->dropped += row->values[0];
			kfree(row);
		}
	}
	h->nrows = n;
}

static void
take_consumer(struct instance *i, struct dtrace_consumer *c)
{
	struct taking t = {i, c};

	if (c == NULL)
		return;
	dtrace_take(c, add_entries, &t);
	for (struct hist *h = NULL; (h = hist_next(i, NULL, h)) != NULL;)
		if (consumer_of(h) == c)
			hist_merge_rows(h->data);
}

void
hist_take(struct hist *h)
{
	for (struct hist *o = NULL; (o = hist_next(h->i, NULL, o)) != NULL;)
		if (o->data == h->data)
			take_consumer(o->i, consumer_of(o));
}

uint64_t
hist_drops(const struct hist *h)
{
	const struct dtrace_consumer *c = consumer_of(h);
	uint64_t drops = 0;

	for (unsigned i = 0; c != NULL && i < c->d.cpus; i++)
		drops += c->d.cpu[i].lossy;
	return drops;
}

struct reading {
	struct dif *d;
	unsigned var;
	const struct hist_row *row;
	uint64_t value;
};

static void
read_variable(void *arg)
{
	struct reading *r = arg;

	r->value = dif_var_read(r->d, r->var, r->row != NULL ? r->row->keys : NULL,
				r->row != NULL ? r->row->key_words : 0);
}

uint64_t
hist_read(const struct hist *h, unsigned var, const struct hist_row *row)
{
	struct dtrace_consumer *c = consumer_of(h);
	struct reading r = {.d = &c->d, .var = var, .row = row};

	if (c != NULL)
		ktr_hook_without(read_variable, &r);
	return r.value;
}

void
hist_forget_rows(struct hist *h)
{
	for (unsigned i = 0; i < h->nrows; i++)
		kfree(h->rows[i]);
	h->nrows = 0;
	h->hits = h->dropped = 0;
}

/* ---- consumers ---- */

/* Bytes of an entry's keys, about. */
static size_t
keys_size(const struct hist *h)
{
	size_t size = 0;

	for (uint64_t kinds = hist_key_kinds(h); kinds != 0; kinds >>= 4)
		size += (kinds & 15) == DIF_K_INT   ? 8
			: (kinds & 15) == DIF_K_STR ? 64
						    : 8 * (HIST_FRAMES + 1);
	return size;
}

/* Gets room for as many entries as the histogram may have. */
static void
add_sizes(struct program *p, const struct hist *h)
{
	size_t entry = sizeof(struct dif_entry) + keys_size(h) + 8;

	p->aggsize += h->size * h->nvalues * (entry + entry / 8) + 4096;
	for (unsigned i = 0; i < h->nown; i++)
		p->dynvarsize += h->made.used[i] ? h->size * 128ul : 0;
	for (unsigned i = 0; i < h->nactions; i++)
		p->dynvarsize += hist_action_vars(&h->actions[i]) * h->size * 128ul;
	for (unsigned i = 0; i < p->nvars; i++)
		p->texts |= p->vars[i].kind == DIF_STR;
}

static int
hist_run(struct program *p, const struct dif_clause *clauses, const struct ktr_site *const *sites,
	 unsigned n, struct dtrace_consumer **to)
{
	p->dynvarsize *= p->texts ? 3 : 1; /* all elements have the size of the largest */
	return program_attach(p, clauses, sites, n, to);
}

static int
attach_alone(struct hist *h, struct filter_error *error)
{
	struct program *p = program_new();
	int result = p != NULL ? hist_emit(p, h, error) : -ENOMEM;

	if (result == 0) {
		add_sizes(p, h);
		result = hist_run(p, &(struct dif_clause){.length = p->count}, &h->site, 1,
				  &h->consumer);
		h->in = h->made;
	}
	program_free(p);
	return result;
}

/* The next histogram that has a part in the program of all. */
static struct hist *
next_linked(const struct instance *i, const struct hist *h)
{
	struct hist *next = hist_next(i, NULL, h);

	while (next != NULL && (!next->linked || next->leaves))
		next = hist_next(i, NULL, next);
	return next;
}

/* Gives the variables that others name their numbers. */
static void
number_variables(struct program *p, const struct instance *of)
{
	for (struct hist *h = NULL; (h = next_linked(of, h)) != NULL;)
		memset(h->made.used, 0, sizeof(h->made.used));
	for (struct hist *h = NULL; (h = next_linked(of, h)) != NULL;)
		for (unsigned i = 0; i < h->nothers; i++)
			h->others[i].of->made.used[h->others[i].index] = true;
	for (struct hist *h = NULL; (h = next_linked(of, h)) != NULL;) {
		for (unsigned i = 0; i < h->nown; i++) {
			if (!h->made.used[i])
				continue;
			h->made.own[i] = program_var(p, DIF_GLOBAL, hist_key_kinds(h));
			if (h->own[i].is.kind == HIST_TEXT)
				p->vars[h->made.own[i]].kind = DIF_STR;
		}
	}
}

static int
emit_linked(struct program *p, const struct instance *of, struct dif_clause *clauses,
	    const struct ktr_site **sites, unsigned *n, struct filter_error *error)
{
	int result = 0;

	number_variables(p, of);
	for (struct hist *h = NULL; (h = next_linked(of, h)) != NULL && result == 0;) {
		unsigned begin = p->count;

		if (*n == LINKED_MAX)
			return -ENOSPC;
		result = hist_emit(p, h, error);
		add_sizes(p, h);
		clauses[*n] = (struct dif_clause){.code = begin, .length = p->count - begin};
		sites[(*n)++] = h->site;
	}
	return result;
}

void
hist_detach_linked(struct instance *i)
{
	if (i->linked == NULL)
		return;
	take_consumer(i, i->linked);
	for (struct hist *h = NULL; (h = hist_next(i, NULL, h)) != NULL;)
		if (h->linked && h->data == h && h->in.agg != UINT32_MAX) /* in that program */
			h->dropped += hist_drops(h);
	dtrace_detach(i->linked);
	i->linked = NULL;
}

int
hist_attach_linked(struct instance *i, struct filter_error *error)
{
	struct dif_clause clauses[LINKED_MAX];
	const struct ktr_site *sites[LINKED_MAX];
	struct dtrace_consumer *made = NULL;
	struct program *p = program_new();
	unsigned n = 0;
	int result = p != NULL ? emit_linked(p, i, clauses, sites, &n, error) : -ENOMEM;

	if (result == 0 && n > 0) {
		p->waits = true;
		result = hist_run(p, clauses, sites, n, &made);
	}
	program_free(p);
	if (result != 0)
		return result;
	if (made != NULL) /* a firing runs the old program, or this one */
		dtrace_exchange(i->linked, made);
	hist_detach_linked(i);
	i->linked = made;
	for (struct hist *h = NULL; (h = next_linked(i, h)) != NULL;)
		h->in = h->made;
	return 0;
}

int
hist_attach(struct hist *h, struct filter_error *error)
{
	return h->linked ? hist_attach_linked(h->i, error) : attach_alone(h, error);
}
