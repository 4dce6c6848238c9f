/*
 * eprobe.c - probes at events, in dynamic_events (Linux's Documentation/trace/eprobetrace.rst).
 *
 * A definition is read, and its arguments are fetched, as those of kprobes (kernel/probe/kprobe.h).
 * A program at the event has the filter and the fields. It ends at its first branch while nobody
 * wants the probe. Locking: ftrace_lock; the control lock guards the probes. eprobe_fire() runs in
 * hooks.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/kprobe.h"
#include "ktr/port.h"

#define FIELDS_AT 2 /* register of the first field; the one before it has the probe */

struct eprobe {
	struct list link;
	struct kprobe *probe;
	const struct ktr_site *site, *target;
	struct dtrace_consumer *consumer;
	bool goes;
};

static struct list all = LIST_INIT(all);

void
eprobe_fire(const struct eprobe *e, const struct ktr_firing *f, const uint64_t *fields)
{
	uint64_t args[KTR_MAXARGS];
	struct ktr_firing mine = {.site = e->site, .args = args};

	mine.nargs = (uint16_t)kprobe_fetch_all(e->probe, fields, args);
	mine.where = ktr_firing_where(f);
	dtrace_fire_within(&mine);
	instances_fire(&mine);
}

/* ---- what definitions name ---- */

static const struct ktr_site *
find_target(const char *system, const char *event)
{
	const struct ktr_site *site = event_find(system, event);

	if (site == NULL || strcmp(system, EVENT_MARK) == 0)
		return NULL;
	return site->kind == KTR_SITE_MADE && strcmp(site->sdt->provider, "eprobe") == 0 ? NULL
											 : site;
}

static bool
find_field(const struct ktr_site *event, const char *name, unsigned *number, bool *is_text)
{
	struct ktr_param params[KTR_SDT_ARGS];
	unsigned n = event_params(event, params), i = 0;

	while (i < n && strcmp(params[i].name, name) != 0)
		i++;
	*number = i;
	*is_text = i < n && params[i].string;
	return i < n;
}

/* ---- programs ---- */

static void
eprobe_emit(struct program *p, const struct eprobe *e, unsigned fields)
{
	struct ktr_param params[KTR_SDT_ARGS];
	unsigned n = event_params(e->target, params);

	for (unsigned i = 0; i < fields && i < n; i++) {
		const struct filter_field field = {FIELD_PARAM, i, params[i].string,
						   params[i].is_signed, params[i].bits};

		filter_emit_field(p, FIELDS_AT + i, &field);
	}
	program_constant(p, FIELDS_AT - 1, (uintptr_t)e);
	program_emit(p, DIF_UPCALL, 0, FIELDS_AT - 1, 1 + fields, UPCALL_EPROBE);
}

/* to NULL: only checks whether it can be. Says what is wrong with the filter. */
static int
attach_at_event(const struct eprobe *e, const char *filter, unsigned fields,
		struct dtrace_consumer **to)
{
	struct program *p = program_new();
	struct filter_error wrong = {NULL, 0, 0};
	int result = 0;

	if (p == NULL)
		return -ENOMEM;
	program_gate(p, &e->site->owners);
	if (filter != NULL)
		result = filter_compile_for(p, e->target, filter, &wrong);
	if (wrong.message != NULL)
		error_log_add(&instance_top, "event filter parse error", wrong.message, filter,
			      wrong.at);
	eprobe_emit(p, e, fields);
	return program_finish(p, result, &e->target, 1, to);
}

/* 0 if the filter is one for the event. Asked before others see the probe, and may switch it on. */
static int
check_filter(const struct ktr_site *event, const char *filter)
{
	return attach_at_event(&(struct eprobe){.site = event, .target = event}, filter,
			       KTR_SDT_ARGS, NULL);
}

static void
eprobe_drop(struct eprobe *e)
{
	if (e->consumer != NULL)
		dtrace_detach(e->consumer);
	list_remove(&e->link);
	kfree(e);
}

static struct eprobe *
eprobe_find(const struct kprobe *probe)
{
	list_for_each_entry (struct eprobe, e, &all, link)
		if (e->probe == probe)
			return e;
	return NULL;
}

static void
find_new(const struct kprobe_info *k, void *found)
{
	if (k->kind == KPROBE_AT_EVENT && eprobe_find(k->probe) == NULL)
		*(struct kprobe_info *)found = *k;
}

int
eprobe_attach(void)
{
	struct kprobe_info k = {0};
	struct eprobe *e = kzalloc(sizeof(*e));
	int error = -ENOMEM;

	ktr_port_lock();
	kprobe_each(find_new, &k);
	ktr_port_unlock();
	if (e != NULL) {
		*e = (struct eprobe){.probe = k.probe, .site = k.site, .target = k.target};
		list_append(&all, &e->link);
		error = attach_at_event(e, k.filter, k.fields, &e->consumer);
	}
	if (error == 0)
		return 0;
	if (e != NULL)
		eprobe_drop(e);
	/* If somebody has switched it on meanwhile, it stays, and does not fire. */
	return kprobe_drop(k.probe) != 0 ? -EBUSY : error;
}

static bool
is_on(struct instance *i, const void *site)
{
	return event_is_enabled(i, site) || event_filter_soft(i, site) || triggers_on(i, site);
}

bool
eprobes_apart_used(const struct ktr_site *site)
{
	list_for_each_entry (const struct eprobe, e, &all, link)
		if (e->target == site)
			return instances_any(is_on, site);
	return event_is_used(site);
}

/* Drops those that go. */
static void
drop_all(void)
{
	list_for_each_entry_safe (struct eprobe, e, &all, link)
		if (e->goes)
			eprobe_drop(e);
}

static void
eprobe_mark(const struct kprobe_info *k, void *which)
{
	struct eprobe *e = eprobe_find(k->probe);

	if (e != NULL && kprobe_matches(k, which))
		e->goes = true;
}

void
eprobes_detach(const char *which)
{
	ktr_port_lock();
	kprobe_each(eprobe_mark, (void *)(uintptr_t)which);
	ktr_port_unlock();
	drop_all();
}

static void
eprobes_init(void)
{
	static const struct kprobe_events events = {find_target, find_field, check_filter};

	kprobe_events = &events;
}
HOOK(booted, eprobes_init);
