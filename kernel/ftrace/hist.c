/*
 * hist.c - histograms: which there are, their consumers, their rows.
 *
 * Locking: ftrace_lock, before dtrace_lock.
 */
#include "kernel/ftrace/hist.h"

#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"

#define LINKED_MAX 64u

struct hist *
hist_next(const struct ktr_site *site, const struct hist *h)
{
	struct list *l = h != NULL ? h->link.next : instance_now->hists.next;

	for (; l != &instance_now->hists; l = l->next)
		if (site == NULL || list_entry(l, struct hist, link)->site == site)
			return list_entry(l, struct hist, link);
	return NULL;
}

uint32_t *
hist_gate(struct hist *h)
{
	return &h->gate;
}

/* ---- rows ---- */

static struct dtrace_consumer *
consumer_of(const struct hist *h)
{
	return h->linked ? instance_now->linked : h->consumer;
}

static bool
grow(struct hist *h)
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

	if (h->nrows < h->room || grow(h))
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

/* The entries of one CPU; arg: the consumer. */
static void
add_entries(const void *entries, size_t size, void *arg)
{
	for (size_t at = 0; at < size;) {
		const struct dif_entry *e =
		    (const struct dif_entry *)((const uint8_t *)entries + at);

		at += sizeof(*e) + 8ul * (e->key_words + e->value_words);
		for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;)
			if (consumer_of(h) == arg && e->agg >= h->agg &&
			    e->agg < h->agg + h->nvalues)
				add_row(h->data, e->agg - h->agg, e);
	}
}

/* Rows with the same keys become one. */
static void
merge(struct hist *h)
{
	unsigned n = 0;

	hist_sort(h, h->rows, h->nrows, hist_compare_keys);
	for (unsigned i = 0; i < h->nrows; i++) {
		struct hist_row *row = h->rows[i];
		bool same = n > 0 && hist_compare_keys(h, h->rows[n - 1], row) == 0;

		if (!same && n < h->size) {
			h->rows[n++] = row;
			continue;
		}
		for (unsigned v = 0; same && v < h->nvalues; v++)
			h->rows[n - 1]->values[v] += row->values[v];
		if (!same)
			h->dropped += row->values[0];
		kfree(row);
	}
	h->nrows = n;
}

static void
take_consumer(struct dtrace_consumer *c)
{
	if (c == NULL)
		return;
	dtrace_take(c, add_entries, c);
	for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;)
		if (consumer_of(h) == c)
			merge(h->data);
}

/* Adds what the engine's tables have. */
static void
take(struct hist *h)
{
	for (struct hist *o = NULL; (o = hist_next(NULL, o)) != NULL;)
		if (o->data == h->data)
			take_consumer(consumer_of(o));
}

/* What found no memory in the engine. */
uint64_t
hist_drops(const struct hist *h)
{
	const struct dtrace_consumer *c = consumer_of(h);
	uint64_t drops = 0;

	for (unsigned i = 0; c != NULL && i < c->d.cpus; i++)
		drops += c->d.cpu[i].agg_drops + c->d.cpu[i].dynvar_drops;
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

static void
forget_rows(struct hist *h)
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

/* Room for so many entries as the histogram may have. */
static void
add_sizes(struct program *p, const struct hist *h)
{
	size_t entry = sizeof(struct dif_entry) + keys_size(h) + 8;

	p->aggsize += h->size * h->nvalues * (entry + entry / 8) + 4096;
	for (unsigned i = 0; i < h->nown; i++)
		p->dynvarsize += h->own[i].used ? h->size * 128ul : 0;
	for (unsigned i = 0; i < h->nactions; i++)
		p->dynvarsize += hist_action_vars(&h->actions[i]) * h->size * 128ul;
	for (unsigned i = 0; i < p->nvars; i++)
		p->texts |= p->vars[i].kind == DIF_STR;
}

static int
run(struct program *p, const struct dif_clause *clauses, const struct ktr_site *const *sites,
    unsigned n, struct dtrace_consumer **to)
{
	p->dynvarsize *= p->texts ? 3 : 1; /* all elements have the size of the largest */
	return program_attach(p, clauses, sites, n, to);
}

static int
attach_alone(struct hist *h, struct hist_error *error)
{
	struct program *p = program_new();
	int result = p != NULL ? hist_emit(p, h, error) : -ENOMEM;

	if (result == 0) {
		add_sizes(p, h);
		result =
		    run(p, &(struct dif_clause){.length = p->count}, &h->site, 1, &h->consumer);
	}
	program_free(p);
	return result;
}

static int
emit_linked(struct program *p, struct dif_clause *clauses, const struct ktr_site **sites,
	    unsigned *n, struct hist_error *error)
{
	int result = 0;

	for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;)
		for (unsigned i = 0; i < h->nown && h->linked; i++)
			h->own[i].used = false;
	for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;)
		for (unsigned i = 0; i < h->nothers; i++)
			h->others[i].of->own[h->others[i].index].used = true;
	for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;) {
		for (unsigned i = 0; i < h->nown; i++) {
			if (!h->own[i].used)
				continue;
			if (p->nvars == PROGRAM_ITEMS)
				return -ENOSPC;
			h->own[i].number = program_var(p, DIF_GLOBAL, hist_key_kinds(h));
			if (h->own[i].is.kind == HIST_TEXT)
				p->vars[h->own[i].number].kind = DIF_STR;
		}
	}
	for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL && result == 0;) {
		unsigned begin = p->count;

		if (!h->linked)
			continue;
		if (*n == LINKED_MAX)
			return -ENOSPC;
		result = hist_emit(p, h, error);
		add_sizes(p, h);
		clauses[*n] = (struct dif_clause){.code = begin, .length = p->count - begin};
		sites[(*n)++] = h->site;
	}
	return result;
}

/* Makes the consumer of those with variables anew, after they have changed. */
static int
attach_linked(struct hist_error *error)
{
	struct dif_clause clauses[LINKED_MAX];
	const struct ktr_site *sites[LINKED_MAX];
	struct program *p = program_new();
	unsigned n = 0;
	int result = p != NULL ? emit_linked(p, clauses, sites, &n, error) : -ENOMEM;

	if (instance_now->linked != NULL)
		dtrace_detach(instance_now->linked);
	instance_now->linked = NULL;
	if (result == 0 && n > 0)
		result = run(p, clauses, sites, n, &instance_now->linked);
	program_free(p);
	return result;
}

/* Takes what the consumers have, and makes new ones of what is there now. */
static int
attach(struct hist *h, struct hist_error *error)
{
	if (h->linked)
		return attach_linked(error);
	if (h->consumer != NULL)
		dtrace_detach(h->consumer);
	h->consumer = NULL;
	return attach_alone(h, error);
}

static int
reattach(struct hist *h)
{
	struct hist_error error;

	take(h);
	return attach(h, &error);
}

int
hists_update(const struct ktr_site *site)
{
	int error = 0;

	for (struct hist *h = NULL; (h = hist_next(site, h)) != NULL && error == 0;)
		error = reattach(h);
	return error;
}

/* ---- adding and removing ---- */

static void
use_events(const struct hist *h, int more)
{
	for (unsigned i = 0; i < h->nactions; i++)
		if (h->actions[i].event != NULL)
			h->actions[i].event->users += (unsigned)more;
}

/* Do others name its variables? */
static bool
is_used(const struct hist *h)
{
	for (struct hist *o = NULL; (o = hist_next(NULL, o)) != NULL;)
		for (unsigned i = 0; i < o->nothers; i++)
			if (o != h && o->others[i].of == h)
				return true;
	return false;
}

/* Another one that has the rows gives them to the next of its name. */
static void
hand_over(struct hist *h)
{
	struct hist *heir = NULL;

	for (struct hist *o = NULL; (o = hist_next(NULL, o)) != NULL;) {
		if (o == h || o->data != h)
			continue;
		if (heir == NULL) {
			heir = o;
			heir->rows = h->rows;
			heir->nrows = h->nrows;
			heir->room = h->room;
			heir->hits = h->hits;
			heir->dropped = h->dropped;
			h->rows = NULL;
			h->nrows = 0;
		}
		o->data = heir;
	}
}

/* Puts it and its hidden ones into the list, before it, or takes them off. */
static void
enlist(struct hist *h, bool on)
{
	for (unsigned i = 0; i < h->nhidden; i++)
		enlist(h->hidden[i], on);
	h->linked = h->nown + h->nothers > 0;
	if (on)
		list_append(&instance_now->hists, &h->link);
	else
		list_remove(&h->link);
}

/* Its triggers, and those of its hidden ones, have changed. */
static int
update_triggers(const struct hist *h)
{
	int result = triggers_update(h->site);

	for (unsigned i = 0; i < h->nhidden && result == 0; i++)
		result = update_triggers(h->hidden[i]);
	return result;
}

/* Frees what was counted, and them. */
static void
destroy(struct hist *h)
{
	for (unsigned i = 0; i < h->nhidden; i++)
		destroy(h->hidden[i]);
	forget_rows(h);
	kmap_free(h->rows);
	kfree(h);
}

static void
drop(struct hist *h)
{
	struct hist_error error;

	take(h);
	if (h->consumer != NULL)
		dtrace_detach(h->consumer);
	enlist(h, false);
	update_triggers(h);
	if (h->linked) {
		take_consumer(instance_now->linked);
		attach_linked(&error);
	}
	hand_over(h);
	use_events(h, -1);
	destroy(h);
}

/* Users come after what they use. */
void
hists_stop(void)
{
	while (!list_empty(&instance_now->hists))
		drop(list_entry(instance_now->hists.prev, struct hist, link));
}

/* Do they count the same? */
static bool
same(const struct hist *a, const struct hist *b)
{
	char one[512], two[512];
	struct sbuf out;

	if (a->site != b->site || strcmp(a->name, b->name) != 0)
		return false;
	sbuf_init(&out, one, sizeof(one));
	hist_print_spec(a, &out, false);
	sbuf_init(&out, two, sizeof(two));
	hist_print_spec(b, &out, false);
	return strcmp(one, two) == 0;
}

static struct hist *
find_same(const struct hist *like)
{
	struct hist *h = NULL;

	while ((h = hist_next(like->site, h)) != NULL && !same(h, like))
		;
	return h;
}

/* A variable belongs to one histogram of its event. */
static bool
defines_again(const struct hist *h, const struct hist *other, struct hist_error *error)
{
	for (unsigned i = 0; i < h->nown; i++) {
		for (unsigned n = 0; n < other->nown; n++) {
			if (strcmp(h->own[i].name, other->own[n].name) != 0)
				continue;
			*error = (struct hist_error){"Variable already defined",
						     h->own[i].expression.at -
							 (unsigned)strlen(h->own[i].name) - 1,
						     0};
			return true;
		}
	}
	return false;
}

static int
add(struct hist *h, struct hist_error *error)
{
	struct hist_error again;
	int result;

	for (struct hist *o = NULL; (o = hist_next(h->site, o)) != NULL;)
		if (defines_again(h, o, error))
			return -EINVAL;
	for (struct hist *o = NULL; (o = hist_next(NULL, o)) != NULL;)
		if (h->name[0] != '\0' && strcmp(o->name, h->name) == 0) {
			if (hist_key_kinds(o) != hist_key_kinds(h) || o->nvalues != h->nvalues) {
				*error = (struct hist_error){"Named trigger doesn't match existing "
							     "named trigger (includes variables)",
							     0, 0};
				return -EINVAL;
			}
			h->data = o->data;
		}
	for (unsigned i = 0; i < h->nactions; i++)
		if (h->actions[i].what == HIST_SNAPSHOT && snapshot_alloc() != 0)
			return -ENOMEM;
	if (h->nown + h->nothers > 0)
		take_consumer(instance_now->linked);
	enlist(h, true);
	result = attach(h, error);
	if (result == 0)
		result = update_triggers(h);
	if (result == 0) {
		use_events(h, 1);
		return 0;
	}
	if (h->consumer != NULL)
		dtrace_detach(h->consumer);
	enlist(h, false);
	update_triggers(h);
	if (h->linked)
		attach_linked(&again);
	return result;
}

/* pause, continue, clear of one that is there. */
static int
change(struct hist *h, const struct hist_commands *c)
{
	if (c->clear) {
		take(h);
		forget_rows(h->data);
	}
	if (!c->pause && !c->go_on)
		return c->clear ? 0 : -EEXIST;
	__atomic_store_n(&h->gate, c->go_on, __ATOMIC_RELAXED);
	return reattach(h);
}

int
hist_store(const struct ktr_site *site, char *text, bool remove)
{
	struct hist_error wrong = {NULL, 0, 0};
	struct hist_commands commands;
	struct hist *h, *there;
	char system[160], name[EVENT_NAME];
	int error;

	error = hist_parse(site, text, &h, &commands, &wrong);
	if (error == 0) {
		there = find_same(h);
		h->gate = !commands.pause;
		if (remove)
			error = there != NULL && is_used(there) ? -EBUSY : 0;
		else if (there != NULL)
			error = change(there, &commands);
		else
			error = commands.go_on || commands.clear ? -ENOENT : add(h, &wrong);
		if (remove && error == 0 && there != NULL)
			drop(there);
		if (remove || there != NULL || error != 0)
			hist_free(h);
	}
	if (error != 0 && wrong.message != NULL) {
		event_name(site, name);
		snprintf(system, sizeof(system), "hist:%s:%s", event_system(site), name);
		error_log_add(system, wrong.message, text, wrong.at);
	}
	return error;
}

int
hist_clear(const struct ktr_site *site)
{
	struct hist *h;

	for (h = NULL; (h = hist_next(site, h)) != NULL;)
		if (is_used(h))
			return -EBUSY;
	while ((h = hist_next(site, NULL)) != NULL)
		drop(h);
	return 0;
}

void
hists_clean(void)
{
	struct hist *gone;

	do {
		gone = NULL;
		for (struct hist *h = NULL; (h = hist_next(NULL, h)) != NULL;)
			if (event_is_gone(h->site, h->event) && !is_used(h))
				gone = h;
		if (gone != NULL)
			drop(gone);
	} while (gone != NULL);
}

/* ---- files ---- */

void
hist_show_triggers(const struct ktr_site *site, struct sbuf *out)
{
	for (struct hist *h = NULL; (h = hist_next(site, h)) != NULL;) {
		hist_print_spec(h, out, true);
		sbuf_putc(out, '\n');
	}
}

void
hist_show(uintptr_t arg, struct sbuf *out)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;
	bool first = true;

	event_filters_clean();
	for (struct hist *h = NULL; (h = hist_next(site, h)) != NULL; first = false) {
		take(h);
		sbuf_printf(out, "%s# event histogram\n#\n# trigger info: ", first ? "" : "\n\n");
		hist_print_spec(h, out, true);
		sbuf_puts(out, "\n#\n\n");
		hist_print(h, out);
	}
}
