/*
 * trigger_functions.c - commands in set_ftrace_filter: what happens when a function is called
 * (Documentation/trace/ftrace.rst, "Filter commands"). Locking: ftrace_lock.
 */
#include "kernel/abi/dif.h"
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/trigger.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/ksyms.h"
#include "kernel/mm/heap.h"

#define SITES_MAX DIF_MAX_CLAUSES

static bool
has_function(const struct trigger *t, const struct ktr_site *site)
{
	for (unsigned i = 0; i < t->nsites; i++)
		if (t->sites[i] == site)
			return true;
	return false;
}

/* The trigger that does the same as t at a function. */
static struct trigger *
find_function(const struct trigger *t, const struct ktr_site *site)
{
	list_for_each_entry (struct trigger, there, &t->i->triggers, link)
		if (trigger_same(there, t) && has_function(there, site))
			return there;
	return NULL;
}

/* Takes the functions of `gone` out of the triggers that do the same, and programs each of these
 * anew. -EINVAL if there are none. */
static int
trigger_leave(const struct trigger *gone)
{
	struct filter_error wrong;
	struct trigger *t;
	bool found = false;
	int error = 0;

	for (unsigned i = 0; i < gone->nsites && error == 0; i++) {
		unsigned n = 0;

		t = find_function(gone, gone->sites[i]);
		if (t == NULL)
			continue;
		found = true;
		for (unsigned j = 0; j < t->nsites; j++)
			if (!has_function(gone, t->sites[j]))
				t->sites[n++] = t->sites[j];
		t->nsites = n;
		if (n == 0) {
			trigger_drop(t);
			continue;
		}
		t->limit = t->limit == UINT64_MAX ? t->limit : trigger_times_left(t);
		trigger_detach(t);
		error = trigger_attach(t, &wrong);
	}
	return found ? error : -EINVAL;
}

/* A count belongs to all functions of a command together. */
int
trigger_store_function(struct instance *i, char *word)
{
	bool remove = *word == '!';
	struct filter_error wrong;
	struct trigger *t = trigger_make(i, word + remove);
	char *command;
	int error = t != NULL ? -EINVAL : -ENOMEM;

	if (t == NULL)
		return error;
	command = trigger_split(t->text, ':');
	t->sites = kmalloc(ktr_site_count() * sizeof(t->sites[0]));
	if (t->sites == NULL)
		error = -ENOMEM;
	for (unsigned n = 0; t->sites != NULL && n < ktr_site_count(); n++)
		if (function_is(ktr_site_get(n), t->text))
			t->sites[t->nsites++] = ktr_site_get(n);
	if (t->nsites > 0)
		error = trigger_parse(t, command, remove);
	if (error != 0 || remove) {
		if (error == 0)
			error = trigger_leave(t);
		trigger_destroy(t);
		return error;
	}
	for (unsigned n = t->nsites; n-- > 0;)
		if (find_function(t, t->sites[n]) != NULL)
			t->sites[n] = t->sites[--t->nsites];
	if (t->nsites > 0 && t->nsites <= SITES_MAX)
		return trigger_add(t, &wrong);
	error = t->nsites == 0 ? -EEXIST : -ENOSPC;
	trigger_destroy(t);
	return error;
}

void
triggers_show_functions(const struct instance *i, struct sbuf *out)
{
	list_for_each_entry (const struct trigger, t, &i->triggers, link) {
		for (unsigned n = 0; n < t->nsites; n++) {
			const char *also = ksym_also(function_address(t->sites[n]));

			trigger_show_one(t, function_name(t->sites[n]), out);
			if (also != NULL)
				trigger_show_one(t, also, out);
		}
	}
}
