/*
 * hist.c - histograms: which there are.
 *
 * Locking: ftrace_lock, before dtrace_lock.
 */
#include "kernel/ftrace/hist/hist.h"

#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"

struct hist *
hist_next(const struct instance *i, const struct ktr_site *site, const struct hist *h)
{
	struct list *l = h != NULL ? h->link.next : i->hists.next;

	for (; l != &i->hists; l = l->next)
		if (site == NULL || list_entry(l, struct hist, link)->site == site)
			return list_entry(l, struct hist, link);
	return NULL;
}

uint32_t *
hist_gate(struct hist *h)
{
	return &h->gate;
}

/* ---- adding and removing ---- */

/* What its actions need goes after it. */
static void
hist_unuse_needed(const struct hist *h)
{
	for (unsigned i = 0; i < h->nactions; i++) {
		if (h->actions[i].event != NULL)
			h->actions[i].event->users--;
		if (h->actions[i].what == HIST_SNAPSHOT)
			snapshot_unuse(h->i);
	}
}

/* What a histogram needs stays as long as it. 0; -ENOMEM: no memory for a snapshot. */
static int
hist_use_needed(const struct hist *h)
{
	for (unsigned i = 0; i < h->nactions; i++)
		if (h->actions[i].what == HIST_SNAPSHOT && snapshot_alloc(h->i) != 0)
			return -ENOMEM;
	for (unsigned i = 0; i < h->nactions; i++) {
		if (h->actions[i].event != NULL)
			h->actions[i].event->users++;
		if (h->actions[i].what == HIST_SNAPSHOT)
			snapshot_use(h->i); /* its memory is there */
	}
	return 0;
}

/* Do others than `user` name the variables of h, or of its hidden histograms, which go with it? */
static bool
has_users(const struct hist *h, const struct hist *user)
{
	for (struct hist *o = NULL; (o = hist_next(h->i, NULL, o)) != NULL;)
		for (unsigned i = 0; i < o->nothers; i++)
			if (o != user && o->others[i].of == h)
				return true;
	for (unsigned i = 0; i < h->nhidden; i++)
		if (has_users(h->hidden[i], user))
			return true;
	return false;
}

static bool
hist_is_used(const struct hist *h)
{
	return has_users(h, h);
}

/* Gives the rows, if h has them, to the next histogram of its name. */
static void
hand_over(struct hist *h)
{
	struct hist *heir = NULL;

	for (struct hist *o = NULL; (o = hist_next(h->i, NULL, o)) != NULL;) {
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

/* Puts a histogram into the list, with its hidden ones before it; or takes them off. */
static void
hist_enlist(struct hist *h, bool on)
{
	for (unsigned i = 0; i < h->nhidden; i++)
		hist_enlist(h->hidden[i], on);
	h->linked = h->nown + h->nothers > 0;
	if (on)
		list_append(&h->i->hists, &h->link);
	else
		list_remove(&h->link);
}

/* Makes the programs anew after a change of its triggers, or its hidden ones'. 0 or -errno. */
static int
update_triggers(const struct hist *h)
{
	int result = triggers_update(h->i, h->site);

	for (unsigned i = 0; i < h->nhidden && result == 0; i++)
		result = update_triggers(h->hidden[i]);
	return result;
}

static void
set_leaving(struct hist *h, bool leaves)
{
	for (unsigned i = 0; i < h->nhidden; i++)
		set_leaving(h->hidden[i], leaves);
	h->leaves = leaves;
}

/* Ends the counting of a histogram, and adds to its rows what it has counted. After an error,
 * others that have variables have ended, too. */
static int
hist_end(struct hist *h)
{
	struct filter_error error;

	if (!h->linked) {
		__atomic_store_n(&h->gate, 0, __ATOMIC_RELAXED); /* nothing after what is taken */
		hist_take(h);
		dtrace_detach(h->consumer);
		return 0;
	}
	set_leaving(h, true);
	if (hist_attach_linked(h->i, &error) == 0)
		return 0;
	/* There is no memory for two programs at a time. */
	hist_detach_linked(h->i);
	return hist_attach_linked(h->i, &error);
}

/* Removes a histogram, also if hist_end() fails. Returns the error of that. */
static int
hist_drop(struct hist *h)
{
	int error = hist_end(h);

	hist_enlist(h, false);
	update_triggers(h);
	hand_over(h);
	hist_unuse_needed(h);
	hist_free(h);
	return error;
}

/* Users come after what they use. */
void
hists_stop(struct instance *i)
{
	while (!list_empty(&i->hists))
		hist_drop(list_entry(i->hists.prev, struct hist, link));
}

static void
print_whole(const struct hist *h, struct sbuf *out)
{
	hist_print_spec(h, out, false);
}

static void
print_columns(const struct hist *h, struct sbuf *out)
{
	hist_print_keys(h, out);
	sbuf_putc(out, ':');
	hist_print_values(h, out);
}

/* Would both be printed alike? False, too: there is no memory. */
static bool
prints_same(const struct hist *a, const struct hist *b,
	    void (*print)(const struct hist *h, struct sbuf *out))
{
	const size_t size = 4096; /* of what can be written */
	char *text = kmalloc(2 * size);
	struct sbuf one, two;
	bool is_same;

	if (text == NULL)
		return false;
	sbuf_init(&one, text, size);
	print(a, &one);
	sbuf_init(&two, text + size, size);
	print(b, &two);
	is_same = strcmp(one.buf, two.buf) == 0;
	kfree(text);
	return is_same;
}

static struct hist *
hist_find_same(const struct hist *like)
{
	struct hist *h = NULL;

	while ((h = hist_next(like->i, like->site, h)) != NULL &&
	       (strcmp(h->name, like->name) != 0 || !prints_same(h, like, print_whole)))
		;
	return h;
}

/* May they share one table? */
static bool
tables_fit(const struct hist *a, const struct hist *b)
{
	return hist_key_kinds(a) == hist_key_kinds(b) && prints_same(a, b, print_columns);
}

/* A variable belongs to one histogram of its event. */
static bool
defines_again(const struct hist *h, const struct hist *other, struct filter_error *error)
{
	for (unsigned i = 0; i < h->nown; i++) {
		for (unsigned n = 0; n < other->nown; n++) {
			if (!hist_slice_same(h, h->own[i].name, other, other->own[n].name))
				continue;
			*error =
			    (struct filter_error){"Variable already defined", h->own[i].name.at, 0};
			return true;
		}
	}
	return false;
}

static int
hist_add(struct hist *h, struct filter_error *error)
{
	int result;

	for (struct hist *o = NULL; (o = hist_next(h->i, h->site, o)) != NULL;)
		if (defines_again(h, o, error))
			return -EINVAL;
	for (struct hist *o = NULL; (o = hist_next(h->i, NULL, o)) != NULL;)
		if (h->name[0] != '\0' && strcmp(o->name, h->name) == 0) {
			if (!tables_fit(o, h)) {
				*error =
				    (struct filter_error){"Named trigger doesn't match existing "
							  "named trigger (includes variables)",
							  0, 0};
				return -EINVAL;
			}
			h->data = o->data;
		}
	result = hist_use_needed(h);
	if (result != 0)
		return result;
	hist_enlist(h, true);
	result = hist_attach(h, error);
	if (result != 0) {
		hist_enlist(h, false);
		hist_unuse_needed(h);
		return result;
	}
	result = update_triggers(h);
	if (result != 0) {
		hist_end(h);
		hist_enlist(h, false);
		hist_unuse_needed(h);
		update_triggers(h);
	}
	return result;
}

/* Does pause, continue or clear to a histogram that is there. */
static int
hist_change(struct hist *h, const struct hist_commands *c)
{
	if (c->clear) {
		hist_take(h);
		hist_forget_rows(h->data);
	}
	if (!c->pause && !c->go_on)
		return c->clear ? 0 : -EEXIST;
	__atomic_store_n(&h->gate, c->go_on, __ATOMIC_RELAXED);
	return 0;
}

int
hist_store(struct instance *i, const struct ktr_site *site, char *text, bool remove)
{
	struct filter_error wrong = {NULL, 0, 0};
	struct hist_commands commands;
	struct hist *h, *there;
	char system[160], name[EVENT_NAME];
	int error;

	error = hist_parse(i, site, text, &h, &commands, &wrong);
	if (error == 0) {
		there = hist_find_same(h);
		h->gate = !commands.pause;
		if (remove)
			error = there != NULL && hist_is_used(there) ? -EBUSY : 0;
		else if (there != NULL)
			error = hist_change(there, &commands);
		else
			error = commands.go_on || commands.clear ? -ENOENT : hist_add(h, &wrong);
		if (remove && error == 0 && there != NULL)
			error = hist_drop(there);
		if (remove || there != NULL || error != 0)
			hist_free(h);
	}
	if (error != 0 && wrong.message != NULL) {
		event_name(site, name);
		snprintf(system, sizeof(system), "hist:%s:%s", event_system(site), name);
		error_log_add(i, system, wrong.message, text, wrong.at);
	}
	return error;
}

int
hist_clear(struct instance *i, const struct ktr_site *site)
{
	struct hist *h;
	int error = 0, e;
	bool linked;

	for (h = NULL; (h = hist_next(i, site, h)) != NULL;)
		if (hist_is_used(h))
			return 0;
	while ((h = hist_next(i, site, NULL)) != NULL) {
		linked = h->linked;
		e = hist_drop(h);
		if (linked) /* the others may be attached again when the next such one goes */
			error = e;
	}
	return error;
}

void
hists_clean(struct instance *i)
{
	struct hist *gone;

	do {
		gone = NULL;
		for (struct hist *h = NULL; (h = hist_next(i, NULL, h)) != NULL;)
			if (event_is_gone(h->site, h->event) && !hist_is_used(h))
				gone = h;
		if (gone != NULL)
			hist_drop(gone);
	} while (gone != NULL);
}

/* ---- files ---- */

void
hist_show_triggers(const struct instance *i, const struct ktr_site *site, struct sbuf *out)
{
	for (struct hist *h = NULL; (h = hist_next(i, site, h)) != NULL;) {
		hist_print_spec(h, out, true);
		sbuf_putc(out, '\n');
	}
}

void
hist_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;
	bool first = true;

	event_filters_clean();
	for (struct hist *h = NULL; (h = hist_next(i, site, h)) != NULL; first = false) {
		hist_take(h);
		sbuf_printf(out, "%s# event histogram\n#\n# trigger info: ", first ? "" : "\n\n");
		hist_print_spec(h, out, true);
		sbuf_puts(out, "\n#\n\n");
		hist_print(h, out);
	}
}
