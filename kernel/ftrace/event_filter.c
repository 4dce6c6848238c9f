/*
 * event_filter.c - the files `filter`: which firings of an event are recorded.
 *
 * An event with a filter is not recorded by the log's own path. Instead a program of the engine is
 * at its trace point while the event is enabled: it computes the filter (filter.h), and records the
 * event if that is true. Locking: ftrace_lock, before dtrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/filter.h"
#include "kernel/ftrace/ftrace_private.h"
#include "kernel/lib/list.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"

#define STRING_SIZE 256u

/* An image with one clause, and room for all that a filter may have. */
struct image {
	struct dif_header h;
	struct dif_clause clause;
	struct dif_insn code[FILTER_CODE];
	char strings[FILTER_STRINGS];
};

struct event_filter {
	struct list link;
	struct ktr_site *site;
	struct dtrace_consumer *consumer; /* while the event is enabled */
	struct image *image;
	char name[EVENT_NAME]; /* of the event: the site of a kprobe may become another one's */
	char text[];
};

static struct list filters = LIST_INIT(filters);

static struct event_filter *
find(const struct ktr_site *site)
{
	list_for_each (l, &filters) {
		struct event_filter *e = list_entry(l, struct event_filter, link);

		if (e->site == site)
			return e;
	}
	return NULL;
}

bool
event_filter_has(const struct ktr_site *site)
{
	return find(site) != NULL;
}

bool
event_filter_on(const struct ktr_site *site)
{
	const struct event_filter *e = find(site);

	return e != NULL && e->consumer != NULL;
}

int
event_filter_switch(const struct ktr_site *site, bool on)
{
	struct event_filter *e = find(site);

	if (e == NULL || on == (e->consumer != NULL))
		return 0;
	if (on)
		return dtrace_attach(e->image, e->image->h.size, site, &e->consumer);
	dtrace_detach(e->consumer);
	e->consumer = NULL;
	return 0;
}

static void
drop(struct event_filter *e)
{
	if (e == NULL)
		return;
	if (e->consumer != NULL)
		dtrace_detach(e->consumer);
	list_remove(&e->link);
	kfree(e->image);
	kfree(e);
}

void
event_filter_drop(const struct ktr_site *site)
{
	drop(find(site));
}

void
event_filters_clean(void)
{
	struct event_filter *gone;

	do {
		gone = NULL;
		list_for_each (l, &filters) {
			struct event_filter *e = list_entry(l, struct event_filter, link);
			char name[EVENT_NAME];

			event_name(e->site, name);
			if (!ktr_site_is_probe(e->site) || strcmp(name, e->name) != 0)
				gone = e;
		}
		drop(gone);
	} while (gone != NULL);
}

/* The image of a filter: if it is true, the event is recorded. */
static void
make_image(struct image *image, const struct filter *f)
{
	unsigned texts = 0;

	for (unsigned i = 0; i < f->count; i++)
		texts += f->code[i].op == DIF_ARGSTR;
	*image = (struct image){
	    .h = {.magic = DIF_MAGIC,
		  .version = DIF_VERSION,
		  .size = sizeof(*image),
		  .options = {.strsize = STRING_SIZE, .scratch = (texts + 1) * STRING_SIZE},
		  .clauses = {offsetof(struct image, clause), 1},
		  .code = {offsetof(struct image, code), f->count},
		  .strings = {offsetof(struct image, strings), FILTER_STRINGS}},
	    .clause = {.length = f->count},
	};
	memcpy(image->code, f->code, f->count * sizeof(f->code[0]));
	memcpy(image->strings, f->strings, f->strings_len);
}

/* Compiles a filter for a site. 0; -ENOMEM; -EINVAL and what is wrong. */
static int
compile(const struct ktr_site *site, const char *text, struct image *image,
	struct filter_error *error)
{
	struct ktr_param params[KTR_SDT_ARGS];
	const struct filter_event event = {ktr_site_number(site) + 1, event_params(site, params),
					   params};
	struct filter *f = kzalloc(sizeof(*f));
	int result;

	if (f == NULL)
		return -ENOMEM;
	f->strings_len = 1; /* "" is the name of the probe */
	result = filter_compile(f, &event, text, error);
	if (result == 0 &&
	    !(filter_emit(f, DIF_JEQ, 0, 1, 0, 2) && filter_emit(f, DIF_LOG, 0, 0, 0, 0) &&
	      filter_emit(f, DIF_RET, 0, 0, 0, 0) && filter_emit(f, DIF_RET, 0, 0, 0, 1))) {
		*error = (struct filter_error){"Too many terms in predicate expression", 0};
		result = -EINVAL;
	}
	if (result == 0)
		make_image(image, f);
	kfree(f);
	return result;
}

int
event_filter_set(struct ktr_site *site, const char *text, struct filter_error *error)
{
	struct event_filter *before = find(site);
	struct event_filter *e = kzalloc(sizeof(*e) + strlen(text) + 1);
	struct image *image = kmalloc(sizeof(*image));
	int result = e != NULL && image != NULL ? compile(site, text, image, error) : -ENOMEM;

	if (result != 0) {
		kfree(e);
		kfree(image);
		return result;
	}
	e->site = site;
	event_name(site, e->name);
	e->image = image;
	memcpy(e->text, text, strlen(text) + 1);
	drop(before);
	list_append(&filters, &e->link);
	return 0;
}

void
event_filter_show(const struct ktr_site *site, struct sbuf *out)
{
	const struct event_filter *e = find(site);

	sbuf_printf(out, "%s\n", e != NULL ? e->text : "none");
}
