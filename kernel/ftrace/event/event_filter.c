/*
 * event_filter.c - the files `filter`, and events that triggers switch: which firings of an event
 * are recorded.
 *
 * Such an event is not recorded by the log's own path. Instead a program of the engine is at its
 * trace point: it looks whether the event's gate is open, computes the filter (filter.h), and
 * records the event if both are true. Locking: ftrace_lock, before dtrace_lock; triggers open and
 * close gates at any time.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/list.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"

struct event_filter {
	struct list link;
	struct instance *i;
	const struct ktr_site *site;
	struct dtrace_consumer *consumer; /* while the event is enabled, or triggers switch it */
	struct dtrace_consumer *next;     /* waits to take its place */
	uint32_t gate;                    /* atomic: 1: it is enabled */
	unsigned users;                   /* triggers that switch it */
	char *text;                       /* the filter; NULL: none */
	char name[EVENT_NAME]; /* of the event: the site of a kprobe may become another event's */
};

static struct event_filter *
event_filter_find(const struct instance *i, const struct ktr_site *site)
{
	list_for_each_entry (struct event_filter, e, &i->filters, link)
		if (e->site == site)
			return e;
	return NULL;
}

bool
event_filter_has(const struct instance *i, const struct ktr_site *site)
{
	return event_filter_find(i, site) != NULL;
}

bool
event_filter_on(const struct instance *i, const struct ktr_site *site)
{
	const struct event_filter *e = event_filter_find(i, site);

	return e != NULL && __atomic_load_n(&e->gate, __ATOMIC_RELAXED) != 0;
}

bool
event_filter_soft(const struct instance *i, const struct ktr_site *site)
{
	const struct event_filter *e = event_filter_find(i, site);

	return e != NULL && e->users > 0;
}

/* If the code from `start` on is one comparison, makes it a branch. False: it is not. */
static bool
event_filter_branch(struct program *p, unsigned start)
{
	/* The comparison that is true if this is not; the one with registers a and b exchanged. */
	static const struct {
		uint8_t compare, branch;
	} ops[] = {{DIF_SEQ, DIF_JNE}, {DIF_SNE, DIF_JEQ},  {DIF_SLT, DIF_JLE},
		   {DIF_SLE, DIF_JLT}, {DIF_ULT, DIF_JULE}, {DIF_ULE, DIF_JULT}};
	const struct dif_insn last = p->code[p->count - 1];
	bool same = last.op == DIF_SEQ || last.op == DIF_SNE;

	for (unsigned i = start; i < p->count; i++)
		if (p->code[i].op >= DIF_JA && p->code[i].op <= DIF_JULE)
			return false; /* to the end, with its result */
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (last.op != ops[i].compare)
			continue;
		p->count--;
		program_fail(p, ops[i].branch, same ? last.a : last.b, same ? last.b : last.a);
		return true;
	}
	return false;
}

int
filter_compile_for(struct program *p, const struct ktr_site *site, const char *text,
		   struct filter_error *error)
{
	struct ktr_param params[KTR_SDT_ARGS];
	const bool is_call = event_is_call(site);
	const struct filter_event event = {ktr_site_number(site) + 1, event_params(site, params),
					   params, is_call,
					   is_call ? (unsigned)event_call_number(site) : 0};
	unsigned start = p->count;
	int result = filter_compile(p, &event, text, error);

	if (result == 0 && !event_filter_branch(p, start))
		program_fail(p, DIF_JEQ, 1, 0);
	return result;
}

void
program_gate(struct program *p, const uint32_t *gate)
{
	program_constant(p, 1, (uintptr_t)gate);
	program_emit(p, DIF_LD4, 1, 1, 0, 0);
	program_fail(p, DIF_JEQ, 1, 0);
}

void
program_instance(struct program *p, const struct instance *i, const struct ktr_site *site)
{
	if (site == NULL || !event_is_in(site, EVENT_MARK))
		return; /* it happens in all */
	/* Who writes a text holds ftrace_lock. */
	program_constant(p, 1, (uintptr_t)&marker_instance);
	program_emit(p, DIF_LD8, 1, 1, 0, 0);
	program_constant(p, 2, (uintptr_t)i);
	program_fail(p, DIF_JNE, 1, 2);
}

/* Attaches the program, which waits for event_filter_run(); or only compiles it. */
static int
event_filter_attach(struct event_filter *e, const char *text, bool for_users,
		    struct dtrace_consumer **to, struct filter_error *error)
{
	struct program *p = program_new();
	int result = 0;

	if (p == NULL)
		return -ENOMEM;
	p->waits = true;
	if (for_users)
		program_gate(p, &e->gate);
	if (text != NULL)
		result = filter_compile_for(p, e->site, text, error);
	if (events_log_itself(e->i))
		program_emit(p, DIF_LOG, 0, 0, 0, 0);
	else
		program_upcall(p, e->i, UPCALL_RECORD);
	return program_finish(p, result, &e->site, 1, to);
}

/* Until now firings ran the old program; from now on they run that of `consumer`. NULL: none. */
static void
event_filter_run(struct event_filter *e, struct dtrace_consumer *consumer)
{
	if (consumer != NULL)
		dtrace_exchange(e->consumer, consumer);
	if (e->consumer != NULL)
		dtrace_detach(e->consumer);
	e->consumer = consumer;
}

static void
event_filter_free(struct event_filter *e)
{
	event_filter_run(e, NULL);
	kfree(e->text);
	kfree(e);
}

static void
event_filter_release(struct event_filter *e)
{
	list_remove(&e->link);
	event_filter_free(e);
}

static struct event_filter *
find_or_make(struct instance *i, const struct ktr_site *site)
{
	struct event_filter *e = event_filter_find(i, site);

	if (e != NULL)
		return e;
	e = kzalloc(sizeof(*e));
	if (e == NULL)
		return NULL;
	e->i = i;
	e->site = site;
	event_name(site, e->name);
	list_append(&i->filters, &e->link);
	return e;
}

int
event_filter_prepare(struct instance *i, const struct ktr_site *site)
{
	struct event_filter *e = event_filter_find(i, site);
	struct filter_error error;

	if (e == NULL || e->consumer != NULL || e->next != NULL)
		return 0;
	return event_filter_attach(e, e->text, e->users > 0, &e->next, &error);
}

void
event_filters_unprepare(struct instance *i)
{
	list_for_each_entry (struct event_filter, e, &i->filters, link) {
		if (e->next != NULL)
			dtrace_detach(e->next);
		e->next = NULL;
	}
}

void
event_filter_switch(struct instance *i, const struct ktr_site *site, bool on)
{
	struct event_filter *e = event_filter_find(i, site);
	struct dtrace_consumer *consumer;

	if (e == NULL)
		return;
	consumer = e->next;
	e->next = NULL;
	__atomic_store_n(&e->gate, on, __ATOMIC_RELAXED);
	if (consumer != NULL || (!on && e->users == 0))
		event_filter_run(e, consumer);
}

int
event_filters_renew(struct instance *i)
{
	struct filter_error error;
	int result = 0;

	event_filters_clean();
	list_for_each_entry (struct event_filter, e, &i->filters, link)
		if (result == 0 && e->consumer != NULL)
			result = event_filter_attach(e, e->text, e->users > 0, &e->next, &error);
	list_for_each_entry (struct event_filter, e, &i->filters, link) {
		if (e->next == NULL || result != 0)
			continue;
		event_filter_run(e, e->next);
		e->next = NULL;
	}
	event_filters_unprepare(i);
	return result;
}

/* Gives the event's program a new filter and number of users. While the event is enabled, no
 * event is lost meanwhile, and none is recorded twice. */
static int
event_filter_change(struct instance *i, const struct ktr_site *site, char *text, unsigned users,
		    struct filter_error *error)
{
	struct event_filter *e = event_filter_find(i, site), *made = NULL;
	struct dtrace_consumer *consumer = NULL;
	bool on = event_is_enabled(i, site);
	int result = 0;

	if (e == NULL)
		e = made = find_or_make(i, site);
	if (e == NULL)
		return -ENOMEM;
	bool wanted = on || users > 0;

	/* From here on the event may be enabled: nothing that comes after this may fail. */
	if (on)
		result = events_own(i);
	if (result == 0 && (text != NULL || users > 0))
		result = event_filter_attach(e, text, users > 0, wanted ? &consumer : NULL, error);
	if (result != 0) {
		if (made != NULL)
			event_filter_release(made);
		return result;
	}
	if (text == NULL && users == 0) {
		list_remove(&e->link);
		if (on)
			event_enable(i, site); /* before its program goes: none is lost */
		event_filter_free(e);
		return 0;
	}
	if (e->text != text)
		kfree(e->text);
	e->text = text;
	e->users = users;
	if (made != NULL) /* a gate that was there is switched by triggers, at any time */
		__atomic_store_n(&e->gate, on, __ATOMIC_RELAXED);
	event_filter_run(e, consumer);
	if (on && made != NULL)
		event_enable(i, site);
	return 0;
}

int
event_filter_set(struct instance *i, const struct ktr_site *site, const char *text,
		 struct filter_error *error)
{
	const struct event_filter *e = event_filter_find(i, site);
	char *copy = NULL;
	int result;

	if (text == NULL && e == NULL)
		return 0;
	if (text != NULL) {
		copy = kmalloc(strlen(text) + 1);
		if (copy == NULL)
			return -ENOMEM;
		memcpy(copy, text, strlen(text) + 1);
	}
	result = event_filter_change(i, site, copy, e != NULL ? e->users : 0, error);
	if (result != 0)
		kfree(copy);
	return result;
}

/* The bit in i->was_on of an event that may be removed; *word: its word. 0: of another event. */
static uint64_t
was_on_bit(struct instance *i, const struct ktr_site *site, uint64_t **word)
{
	size_t n = site->kind == KTR_SITE_MADE ? (size_t)(site - ktr_dynamic_sites) : 0;

	*word = &i->was_on[n / 64];
	return site->kind == KTR_SITE_MADE ? 1ull << n % 64 : 0;
}

void
event_note_on(struct instance *i, const struct ktr_site *site)
{
	uint64_t *word, bit = was_on_bit(i, site, &word);

	*word |= bit;
}

int
event_filter_use(struct instance *i, const struct ktr_site *site, int more, uint32_t **gate)
{
	struct event_filter *e = event_filter_find(i, site);
	struct filter_error error;
	bool there = e != NULL && !event_is_gone(site, e->name);
	int result = event_filter_change(i, site, there ? e->text : NULL,
					 (e != NULL ? e->users : 0) + (unsigned)more, &error);

	e = event_filter_find(i, site);
	if (result != 0 && more < 0 && e != NULL)
		e->users += (unsigned)more; /* the old program stays, with a gate for nobody */
	if (result == 0 && more > 0)
		event_note_on(i, site);
	if (result == 0 && gate != NULL)
		*gate = &e->gate;
	return result;
}

static bool
drop_of(struct instance *i, const void *site)
{
	struct event_filter *e = event_filter_find(i, site);
	uint64_t *word, bit = was_on_bit(i, site, &word);

	if (e != NULL)
		event_filter_release(e);
	if ((*word & bit) != 0) {
		buffer_clear(&i->trace, BUFFER_ALL);
		if (i->snapshot_there)
			buffer_clear(&i->snapshot, BUFFER_ALL);
	}
	*word &= ~bit;
	return false;
}

void
event_filter_drop(const struct ktr_site *site)
{
	instances_any(drop_of, site);
}

bool
event_is_gone(const struct ktr_site *site, const char *name)
{
	char now[EVENT_NAME];

	event_name(site, now);
	return !ktr_site_is_probe(site) || strcmp(now, name) != 0;
}

static bool
event_filter_clean(struct instance *i, const void *arg)
{
	struct event_filter *gone;

	triggers_clean(i); /* they use gates */
	do {
		gone = NULL;
		list_for_each_entry (struct event_filter, e, &i->filters, link)
			if (event_is_gone(e->site, e->name) && e->users == 0)
				gone = e;
		if (gone != NULL)
			event_filter_release(gone);
	} while (gone != NULL);
	return false;
}

void
event_filters_clean(void)
{
	instances_any(event_filter_clean, NULL);
}

void
event_filters_stop(struct instance *i)
{
	triggers_stop(i);
	while (!list_empty(&i->filters))
		event_filter_release(list_entry(i->filters.next, struct event_filter, link));
}

void
event_filter_show(const struct instance *i, const struct ktr_site *site, struct sbuf *out)
{
	const struct event_filter *e = event_filter_find(i, site);

	sbuf_printf(out, "%s\n", e != NULL && e->text != NULL ? e->text : "none");
}
