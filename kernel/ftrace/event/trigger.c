/*
 * trigger.c - the files `trigger`: what happens when an event fires
 * (Documentation/trace/events.rst, "Event triggers").
 *
 * A trigger is a program at its trace points, whether the event is enabled or not. Locking:
 * ftrace_lock, before dtrace_lock.
 */
#include "kernel/ftrace/event/trigger.h"
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/list.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"

static const struct trigger_command commands[] = {
    {"traceon", TO_UPCALL, UPCALL_ON, BOTH},
    {"traceoff", TO_UPCALL, UPCALL_OFF, BOTH},
    {"snapshot", TO_UPCALL, UPCALL_SNAPSHOT, BOTH},
    {"stacktrace", TO_UPCALL, UPCALL_STACK, BOTH},
    {"enable_event", TO_EVENT, 1, BOTH},
    {"disable_event", TO_EVENT, 0, BOTH},
    {"enable_hist", TO_HIST, 1, EVENTS},
    {"disable_hist", TO_HIST, 0, EVENTS},
    {"dump", TO_UPCALL, UPCALL_DUMP, FUNCTIONS},
    {"cpudump", TO_UPCALL, UPCALL_CPUDUMP, FUNCTIONS},
};

/* ---- making and removing ---- */

void
trigger_detach(struct trigger *t)
{
	if (t->consumer != NULL)
		dtrace_detach(t->consumer);
	t->consumer = NULL;
}

static bool
is_dump(const struct trigger *t)
{
	return t->command->kind == TO_UPCALL && t->command->arg >= UPCALL_DUMP;
}

static bool
is_snapshot(const struct trigger *t)
{
	return t->command->kind == TO_UPCALL && t->command->arg == UPCALL_SNAPSHOT;
}

void
trigger_destroy(struct trigger *t)
{
	kfree(t->sites);
	kfree(t);
}

void
trigger_drop(struct trigger *t)
{
	trigger_detach(t);
	list_remove(&t->link);
	if (is_dump(t))
		dump_use(-1);
	if (is_snapshot(t))
		snapshot_unuse(t->i);
	if (t->command->kind == TO_EVENT)
		event_filter_use(t->i, t->target, -1, NULL);
	trigger_destroy(t);
}

void
triggers_clean(struct instance *i)
{
	struct trigger *gone;

	do {
		gone = NULL;
		list_for_each_entry (struct trigger, t, &i->triggers, link)
			if ((t->sites == NULL && event_is_gone(t->site, t->name)) ||
			    (t->target != NULL && event_is_gone(t->target, t->target_name)))
				gone = t;
		if (gone != NULL)
			trigger_drop(gone);
	} while (gone != NULL);
	hists_clean(i);
}

void
triggers_stop(struct instance *i)
{
	while (!list_empty(&i->triggers))
		trigger_drop(list_entry(i->triggers.next, struct trigger, link));
	hists_stop(i);
}

/* Linux's type of a trigger's command. Commands that switch on and commands that switch off are
 * of one type: only one of them may be there, and either removes it. */
static int32_t
trigger_type(const struct trigger_command *c)
{
	return c->kind != TO_UPCALL ? -(int32_t)c->kind : c->arg == UPCALL_OFF ? UPCALL_ON : c->arg;
}

bool
trigger_same(const struct trigger *a, const struct trigger *b)
{
	return (a->sites != NULL) == (b->sites != NULL) && a->site == b->site &&
	       a->target == b->target &&
	       (a->sites != NULL ? a->command == b->command
				 : trigger_type(a->command) == trigger_type(b->command));
}

static struct trigger *
trigger_find_same(const struct trigger *like)
{
	list_for_each_entry (struct trigger, t, &like->i->triggers, link)
		if (t != like && trigger_same(t, like))
			return t;
	return NULL;
}

/* Appends code that goes on only if the trigger would change something, as in Linux. */
static void
emit_changes(struct program *p, const struct trigger *t)
{
	const struct trigger_command *c = t->command;

	if (c->kind == TO_EVENT) {
		program_constant(p, 1, (uintptr_t)t->gate);
		program_emit(p, DIF_LD4, 1, 1, 0, 0);
		program_constant(p, 2, (uint64_t)c->arg);
		program_fail(p, DIF_JEQ, 1, 2);
	} else if (c->kind == TO_UPCALL && (c->arg == UPCALL_ON || c->arg == UPCALL_OFF)) {
		program_constant(p, 1, (uintptr_t)instance_mask_at(t->i));
		program_emit(p, DIF_LD8, 1, 1, 0, 0);
		program_fail(p, c->arg == UPCALL_ON ? DIF_JNE : DIF_JEQ, 1, 0);
	}
}

/* Appends code that counts, and goes on as often as the trigger's limit says. */
static void
emit_limit(struct program *p, const struct trigger *t)
{
	unsigned var;

	if (t->limit == UINT64_MAX)
		return;
	emit_changes(p, t);
	var = program_var(p, DIF_GLOBAL, 0);
	program_emit(p, DIF_LDV, 1, 0, 0, (int32_t)var);
	program_constant(p, 2, t->limit);
	program_fail(p, DIF_JULE, 2, 1);
	program_emit(p, DIF_ADD | DIF_IMM, 1, 1, 0, 1);
	program_emit(p, DIF_STV, 0, 1, 0, (int32_t)var);
}

/* Code that opens or closes a gate. */
static void
emit_gate(struct program *p, const uint32_t *gate, bool on)
{
	program_constant(p, 1, (uintptr_t)gate);
	program_constant(p, 2, on);
	program_emit(p, DIF_UPCALL, 0, 1, 2, UPCALL_GATE);
}

static int
trigger_emit(struct program *p, const struct trigger *t, struct filter_error *error)
{
	int result;

	program_instance(p, t->i, t->site);
	result = t->filter != NULL ? filter_compile_for(p, t->site, t->filter, error) : 0;
	if (result != 0)
		return result;
	emit_limit(p, t);
	if (t->command->kind == TO_UPCALL)
		program_upcall(p, t->i, t->command->arg);
	else if (t->command->kind == TO_EVENT)
		emit_gate(p, t->gate, t->command->arg != 0);
	else
		for (struct hist *h = NULL; (h = hist_next(t->i, t->target, h)) != NULL;)
			emit_gate(p, hist_gate(h), t->command->arg != 0);
	return 0;
}

int
trigger_attach(struct trigger *t, struct filter_error *error)
{
	struct program *p = program_new();
	bool of_event = t->sites == NULL;

	if (p == NULL)
		return -ENOMEM;
	return program_finish(p, trigger_emit(p, t, error), of_event ? &t->site : t->sites,
			      of_event ? 1 : t->nsites, &t->consumer);
}

uint64_t
trigger_times_left(const struct trigger *t)
{
	uint64_t used =
	    t->limit != UINT64_MAX && t->consumer != NULL ? dtrace_global(t->consumer) : 0;

	return used < t->limit ? t->limit - used : 0;
}

int
triggers_update(struct instance *i, const struct ktr_site *site)
{
	struct filter_error error;
	int result = 0;

	list_for_each_entry (struct trigger, t, &i->triggers, link) {
		if (t->command->kind != TO_HIST || t->target != site)
			continue;
		t->limit = trigger_times_left(t);
		trigger_detach(t);
		if (result == 0)
			result = trigger_attach(t, &error);
	}
	return result;
}

int
trigger_add(struct trigger *t, struct filter_error *error)
{
	int result = t->sites == NULL && trigger_find_same(t) != NULL ? -EEXIST : 0;

	if (result == 0 && t->command->kind == TO_EVENT)
		result = event_filter_use(t->i, t->target, 1, &t->gate);
	if (result == 0 && is_snapshot(t))
		result = snapshot_use(t->i);
	if (result == 0 && is_dump(t))
		result = dump_use(1);
	if (result != 0) {
		trigger_destroy(t);
		return result;
	}
	list_append(&t->i->triggers, &t->link);
	result = trigger_attach(t, error);
	if (result != 0)
		trigger_drop(t);
	return result;
}

/* ---- commands ---- */

char *
trigger_split(char *text, char at)
{
	char *found = strchr(text, at);

	if (found != NULL)
		*found++ = '\0';
	return found;
}

int
trigger_parse(struct trigger *t, char *text, bool remove)
{
	char *rest = trigger_split(text, ':'), *event, *count;

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, text) == 0 &&
		    (commands[i].where & (t->sites != NULL ? FUNCTIONS : EVENTS)) != 0)
			t->command = &commands[i];
	if (t->command == NULL)
		return -EINVAL;
	count = rest;
	if (t->command->kind != TO_UPCALL) {
		event = rest != NULL ? trigger_split(rest, ':') : NULL;
		count = event != NULL ? trigger_split(event, ':') : NULL;
		t->target = event != NULL ? event_find(rest, event) : NULL;
		if (t->target == NULL ||
		    (t->command->kind == TO_EVENT && event_is_in(t->target, EVENT_MARK)))
			return -EINVAL;
		event_name(t->target, t->target_name);
	}
	t->limit = UINT64_MAX;
	if (count == NULL || strcmp(count, "unlimited") == 0 || remove)
		return 0;
	return tracefs_number(count, &t->limit);
}

struct trigger *
trigger_make(struct instance *i, const char *text)
{
	struct trigger *t = kzalloc(sizeof(*t) + strlen(text) + 1);

	if (t == NULL)
		return NULL;
	t->i = i;
	memcpy(t->text, text, strlen(text) + 1);
	list_init(&t->link);
	return t;
}

/* Adds or removes what was read. Takes t. */
static int
carry_out(struct trigger *t, bool remove, struct filter_error *error)
{
	struct trigger *there = trigger_find_same(t);

	if (!remove)
		return trigger_add(t, error);
	if (there != NULL)
		trigger_drop(there);
	kfree(t);
	return 0;
}

/* The text after " if ", which ends the text before it. NULL: there is none. */
static char *
split_filter(char *text)
{
	char *filter = strstr(text, " if ");

	if (filter == NULL)
		return NULL;
	*filter = '\0';
	filter += 4;
	while (*filter == ' ')
		filter++;
	return filter;
}

int
trigger_store(struct instance *i, uintptr_t arg, char *text)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;
	bool remove;
	char *command;
	struct filter_error wrong = {NULL, 0, 0};
	struct trigger *t;
	int error;

	event_filters_clean();
	if (event_system(site) == NULL)
		return -ENODEV;
	text = tracefs_trim(text);
	remove = *text == '!';
	command = text + remove;
	if (*command == '\0')
		return 0; /* `echo > trigger`: all is done */
	if (strncmp(command, "hist:", 5) == 0)
		return hist_store(i, site, command, remove);
	t = trigger_make(i, command);
	if (t == NULL)
		return -ENOMEM;
	t->site = site;
	event_name(site, t->name);
	t->filter = split_filter(t->text);
	size_t at = t->filter != NULL ? (size_t)(t->filter - t->text) : 0;

	error = trigger_parse(t, t->text, remove);
	if (error != 0)
		kfree(t);
	else
		error = carry_out(t, remove, &wrong);
	if (error == -EINVAL && wrong.message != NULL)
		error_log_add(i, "event filter parse error", wrong.message, command, at + wrong.at);
	return error;
}

int
trigger_clear(struct instance *i, uintptr_t arg)
{
	return hist_clear(i, (const struct ktr_site *)arg);
}

/* ---- texts ---- */

void
trigger_show_one(const struct trigger *t, const char *function, struct sbuf *out)
{
	if (function != NULL)
		sbuf_printf(out, "%s:", function);
	sbuf_puts(out, t->command->name);
	if (t->command->kind != TO_UPCALL) {
		char name[EVENT_NAME];

		event_name(t->target, name);
		sbuf_printf(out, ":%s:%s", event_system(t->target), name);
	}
	if (t->limit == UINT64_MAX)
		sbuf_puts(out, ":unlimited");
	else
		sbuf_printf(out, ":count=%lu", trigger_times_left(t));
	if (t->filter != NULL)
		sbuf_printf(out, " if %s", t->filter);
	sbuf_putc(out, '\n');
}

void
trigger_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;
	size_t before = out->len;

	event_filters_clean();
	list_for_each_entry (const struct trigger, t, &i->triggers, link)
		if (t->sites == NULL && t->site == site)
			trigger_show_one(t, NULL, out);
	hist_show_triggers(i, site, out);
	if (out->len > before)
		return;
	sbuf_puts(out, "# Available triggers:\n#");
	for (unsigned n = 0; n < sizeof(commands) / sizeof(commands[0]); n++)
		if ((commands[n].where & EVENTS) != 0)
			sbuf_printf(out, " %s", commands[n].name);
	sbuf_puts(out, " hist\n");
}

bool
triggers_on(const struct instance *i, const struct ktr_site *site)
{
	list_for_each_entry (const struct trigger, t, &i->triggers, link)
		if (t->sites == NULL && t->site == site)
			return true;
	return hist_next(i, site, NULL) != NULL;
}
