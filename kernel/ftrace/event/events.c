/*
 * events.c - events/: a directory for each class of trace points, for each provider of SDT, and one
 * for the system calls; in it a directory for each event.
 *
 * Events that are enabled here are owned by "ftrace events", an owner for each instance, and
 * recorded in its log. Locking: ftrace_lock; directories are filled under vfs_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/event/filter.h"
#include "kernel/ftrace/hist/hist.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/kprobe.h"
#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/event_format.h"
#include "ktr/glob.h"
#include "ktr/port.h"

#define ALL_SITES UINTPTR_MAX

/* ---- what is enabled ---- */

/* What a file or a command is about. */
struct scope {
	struct instance *i;
	const char *system, *event;  /* globs; NULL: any */
	const struct ktr_site *site; /* this one only; NULL: any */
	bool on;
	unsigned found, found_on;
};

static bool
in_scope(const struct ktr_site *site, const struct scope *s)
{
	const char *system = s->site == NULL || s->site == site ? event_system(site) : NULL;
	char name[EVENT_NAME];

	if (s->site != NULL)
		return system != NULL;
	if (system == NULL || (s->system != NULL && !ktr_glob(s->system, system)) ||
	    strcmp(system, EVENT_MARK) == 0) /* it cannot be enabled */
		return false;
	if (s->event == NULL)
		return true;
	event_name(site, name);
	return ktr_glob(s->event, name);
}

/* The next site of the scope; NULL begins, and ends. */
static const struct ktr_site *
scope_next(const struct scope *s, const struct ktr_site *site)
{
	if (s->site != NULL)
		return site == NULL && in_scope(s->site, s) ? s->site : NULL;
	for (unsigned n = site != NULL ? ktr_site_number(site) + 1 : 0; n < ktr_site_count(); n++)
		if (in_scope(ktr_site_get(n), s))
			return ktr_site_get(n);
	return NULL;
}

bool
event_is_enabled(const struct instance *i, const struct ktr_site *site)
{
	unsigned owner = i->events_owner;
	bool owned = (__atomic_load_n(&site->owners, __ATOMIC_RELAXED) >> owner & 1) != 0;

	return (owner != 0 && owned) || event_filter_on(i, site);
}

static bool
event_site_is_used(struct instance *i, const void *site)
{
	return event_filter_soft(i, site) || triggers_on(i, site);
}

bool
event_is_used(const struct ktr_site *site)
{
	return ktr_site_users(site) != 0 || instances_any(event_site_is_used, site);
}

/* What the log's own path records. */
static bool
events_site_wanted(const struct ktr_site *site, void *arg)
{
	const struct scope *s = arg;

	return !event_filter_has(s->i, site) &&
	       (in_scope(site, s) ? s->on : event_is_enabled(s->i, site));
}

void
events_record(struct instance *i, const struct ktr_firing *f)
{
	if (i != &instance_top || !ktr_firing_logged(f)) /* which does so anyway */
		instance_fire(i, f);
	if (option_on(i, OPTION_STACKTRACE) && pids_want_event(i, f))
		record_stack(i, f);
	if (option_on(i, OPTION_USER_STACK) && pids_want_event(i, f))
		record_user_stack(i, f);
}

static void
events_fire(const struct ktr_firing *f)
{
	events_record(instance_of(f), f);
}

bool
events_log_itself(const struct instance *i)
{
	return i == &instance_top && !pids_any(i, PIDS_EVENT) && !option_on(i, OPTION_STACKTRACE) &&
	       !option_on(i, OPTION_USER_STACK);
}

static int
events_make_owner(struct instance *i)
{
	return instance_owner(i, "ftrace events", events_log_itself(i) ? NULL : events_fire);
}

int
events_pids_changed(struct instance *i)
{
	unsigned old = i->events_owner, owner;
	int n = old != 0 ? events_make_owner(i) : 0, error = n >= 0 ? event_filters_renew(i) : n;

	if (n <= 0)
		return error;
	owner = (unsigned)n;
	if (error == 0)
		ktr_owner_move(old, owner);
	instance_disown(error == 0 ? &old : &owner);
	if (error == 0)
		i->events_owner = owner;
	return error;
}

int
events_own(struct instance *i)
{
	int n = i->events_owner == 0 ? events_make_owner(i) : 0;

	if (n < 0)
		return -EBUSY;
	if (n > 0)
		i->events_owner = (unsigned)n;
	return 0;
}

/* Switches all events of a scope, or none after an error. -EINVAL: the scope has no events. */
static int
scope_switch(struct scope *s, bool on)
{
	const struct ktr_site *site = NULL;
	int error = 0;

	event_filters_clean();
	s->on = on;
	for (s->found = 0; error == 0 && (site = scope_next(s, site)) != NULL; s->found++)
		error = on ? event_filter_prepare(s->i, site) : 0;
	if (s->found == 0)
		return s->site != NULL ? -ENODEV : -EINVAL;
	if (error == 0 && on)
		error = events_own(s->i);
	if (error != 0) {
		event_filters_unprepare(s->i);
		return error;
	}
	while ((site = scope_next(s, site)) != NULL) {
		if (on)
			event_note_on(s->i, site);
		event_filter_switch(s->i, site, on);
	}
	if (s->i->events_owner != 0)
		ktr_select_all(s->i->events_owner, events_site_wanted, s);
	return 0;
}

int
event_enable(struct instance *i, const struct ktr_site *site)
{
	struct scope one = {.i = i, .site = site};

	return scope_switch(&one, true);
}

static void
scope_count(struct scope *s)
{
	s->found = s->found_on = 0;
	for (const struct ktr_site *site = NULL; (site = scope_next(s, site)) != NULL; s->found++)
		s->found_on += event_is_enabled(s->i, site);
}

/* ---- enable, filter: of an event, and of a system ---- */

static struct scope
scope_of_event(struct instance *i, uintptr_t arg)
{
	return (struct scope){.i = i, .site = (const struct ktr_site *)arg};
}

static struct scope
scope_of_system(struct instance *i, uintptr_t arg)
{
	return (struct scope){.i = i, .system = arg == ALL_SITES ? NULL : (const char *)arg};
}

static int
enable_store(struct scope s, char *text)
{
	bool on;
	int error = tracefs_bool(text, &on);

	return error == 0 ? scope_switch(&s, on) : error;
}

static void
all_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	struct scope s = scope_of_system(i, arg);

	scope_count(&s);
	sbuf_printf(out, "%c\n", s.found_on == 0 ? '0' : s.found_on == s.found ? '1' : 'X');
}

static int
all_store(struct instance *i, uintptr_t arg, char *text)
{
	return enable_store(scope_of_system(i, arg), text);
}

/* A star: triggers switch it. */
static void
one_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;

	sbuf_printf(out, "%d%s\n", event_is_enabled(i, site),
		    event_filter_soft(i, site) ? "*" : "");
}

static int
one_store(struct instance *i, uintptr_t arg, char *text)
{
	return enable_store(scope_of_event(i, arg), text);
}

static void
filter_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	event_filters_clean();
	event_filter_show(i, (const struct ktr_site *)arg, out);
}

/* Sets a filter for a scope's events that have the fields which it names; "0" removes theirs. */
static int
filter_set(struct scope s, const char *text)
{
	struct filter_error wrong = {"No filter found", 0, 0};
	uint64_t number;
	bool none = tracefs_number(text, &number) == 0 && number == 0;
	unsigned set = 0;
	int error = s.site != NULL ? -ENODEV : none ? 0 : -EINVAL;

	event_filters_clean();
	for (const struct ktr_site *site = NULL; (site = scope_next(&s, site)) != NULL;) {
		error = event_filter_set(s.i, site, none ? NULL : text, &wrong);
		set += error == 0;
		if (error != 0 && error != -EINVAL)
			return error;
	}
	if (set > 0)
		return 0;
	if (error == -EINVAL)
		error_log_add(s.i, "event filter parse error", wrong.message, text, wrong.at);
	return error;
}

static int
filter_store(struct instance *i, uintptr_t arg, char *text)
{
	return filter_set(scope_of_event(i, arg), text);
}

/* The filter that was set last for all events of a system, as its file shows it. */
struct system_filter {
	struct list link;
	uintptr_t system;
	char text[];
};

static struct system_filter *
system_filter(const struct instance *i, uintptr_t system)
{
	list_for_each_entry (struct system_filter, f, &i->system_filters, link)
		if (f->system == system)
			return f;
	return NULL;
}

static void
system_filter_drop(struct system_filter *f)
{
	if (f != NULL)
		list_remove(&f->link);
	kfree(f);
}

static int
filter_store_all(struct instance *i, uintptr_t arg, char *text)
{
	size_t n = strlen(text) + 1;
	struct system_filter *f = kmalloc(sizeof(*f) + n);
	int error = f != NULL ? filter_set(scope_of_system(i, arg), text) : -ENOMEM;

	if (error != 0) {
		kfree(f);
		return error;
	}
	system_filter_drop(system_filter(i, arg));
	f->system = arg;
	memcpy(f->text, text, n);
	list_append(&i->system_filters, &f->link);
	if (strcmp(text, "0") == 0)
		system_filter_drop(f);
	return 0;
}

static void
filter_show_all(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct system_filter *f = system_filter(i, arg);

	if (f != NULL) {
		sbuf_printf(out, "%s\n", f->text);
		return;
	}
	sbuf_puts(out, "### global filter ###\n"
		       "# Use this to set filters for multiple events.\n"
		       "# Only events with the given fields will be affected.\n"
		       "# If no events are modified, an error message will be displayed here\n");
}

/* ---- available_events, set_event ---- */

static void
events_show(const struct instance *i, struct sbuf *out, bool all)
{
	char name[EVENT_NAME];

	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const struct ktr_site *site = ktr_site_get(n);
		const char *system = event_system(site);

		if (system == NULL || strcmp(system, EVENT_MARK) == 0 ||
		    !(all || event_is_enabled(i, site)))
			continue;
		event_name(site, name);
		sbuf_printf(out, "%s:%s\n", system, name);
	}
}

void
events_show_all(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	events_show(i, out, true);
}

void
events_show_set(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	events_show(i, out, false);
}

/* Words are [!]SYSTEM:EVENT, SYSTEM, EVENT, *:*; as in Linux, those before a wrong one count. */
int
events_store_set(struct instance *i, uintptr_t arg, char *text)
{
	int error = 0;
	char *word;

	while (error == 0 && (word = tracefs_word(&text)) != NULL) {
		bool on = *word != '!';
		char *system = on ? word : word + 1, *event = strchr(system, ':');
		struct scope s = {.i = i, .system = system};

		if (event != NULL) {
			*event++ = '\0';
			s.event = *event != '\0' ? event : NULL;
			s.system = *system != '\0' ? system : NULL;
		}
		error = scope_switch(&s, on);
		if (error == -EINVAL && event == NULL) {
			s = (struct scope){.i = i, .event = system};
			error = scope_switch(&s, on);
		}
	}
	return error;
}

int
events_clear_set(struct instance *i, uintptr_t arg)
{
	return scope_switch(&(struct scope){.i = i}, false);
}

void
events_stop(struct instance *i)
{
	event_filters_stop(i);
	while (!list_empty(&i->system_filters))
		system_filter_drop(list_entry(i->system_filters.next, struct system_filter, link));
	instance_disown(&i->events_owner);
	instance_disown(&i->fork_owner);
}

/* ---- directories ---- */

static void
id_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%u\n", ktr_site_number((const struct ktr_site *)arg) + 1);
}

void
event_format_put(void *out, const char *text, size_t n)
{
	sbuf_write(out, text, n);
}

static void
format_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct ktr_site *site = (const struct ktr_site *)arg;
	const struct ktr_format_out to = {event_format_put, out};
	struct ktr_param params[EVENT_RECORD];
	char name[EVENT_NAME], fmt[EVENT_FORMAT];
	unsigned nargs;

	ktr_port_lock();
	nargs = event_record(site, fmt, params);
	ktr_port_unlock();
	event_name(site, name);
	ktr_format_begin(&to, name, ktr_site_number(site) + 1);
	ktr_format_site(&to, fmt, params, nargs, event_is_call(site));
}

static void
event_fill(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    TRACEFS_TEXT("enable", 0640, one_show, one_store, NULL),
	    TRACEFS_TEXT("filter", 0640, filter_show, filter_store, NULL),
	    TRACEFS_TEXT("format", 0440, format_show, NULL, NULL),
	    TRACEFS_TEXT("hist", 0440, hist_show, NULL, NULL),
	    TRACEFS_TEXT("id", 0440, id_show, NULL, NULL),
	    TRACEFS_TEXT("trigger", 0640, trigger_show, trigger_store, trigger_clear),
	};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), tracefs_arg(dir));
}

static const struct tracefs_file all_enable =
    TRACEFS_TEXT("enable", 0640, all_show, all_store, NULL);

/* Is the directory that of an event that has gone? */
static bool
event_gone(const struct vnode *vn, const char *name)
{
	const struct ktr_site *site = (const struct ktr_site *)tracefs_arg(vn);
	char now[EVENT_NAME];

	if (!S_ISDIR(vn->mode))
		return false;
	event_name(site, now);
	return !event_is_in(site, (const char *)tracefs_arg(vn->parent)) || strcmp(now, name) != 0;
}

/* Is this a system whose events are made and removed at run time? */
static bool
system_changes(const char *system)
{
	const char *group;

	for (unsigned n = 0; (group = kprobe_group_at(n)) != NULL; n++)
		if (strcmp(group, system) == 0)
			return true;
	return strcmp(system, EVENT_KPROBES) == 0 || strcmp(system, EVENT_UPROBES) == 0 ||
	       strcmp(system, EVENT_SYNTHETIC) == 0;
}

static const struct tracefs_file all_filter =
    TRACEFS_TEXT("filter", 0640, filter_show_all, filter_store_all, NULL);

static void
system_add_events(struct vnode *dir)
{
	static const struct tracefs_file event_dir = {.mode = 0750, .fill = event_fill};
	char name[EVENT_NAME + 12];

	for (unsigned n = 0; n < ktr_site_count(); n++) {
		struct ktr_site *site = ktr_site_get(n);

		if (!event_is_in(site, (const char *)tracefs_arg(dir)))
			continue;
		event_name(site, name);
		tracefs_add(dir, &event_dir, name, (uintptr_t)site);
	}
}

/* Any system may be the group of probes. */
static void
system_fill_again(struct vnode *dir)
{
	if (system_changes((const char *)tracefs_arg(dir))) {
		vnode_sweep(dir, event_gone);
		system_add_events(dir);
	}
	dir->missing = true; /* look again next time */
}

static void
system_fill(struct vnode *dir)
{
	tracefs_add(dir, &all_enable, all_enable.name, tracefs_arg(dir));
	tracefs_add(dir, &all_filter, all_filter.name, tracefs_arg(dir));
	system_add_events(dir);
	if (!dir->missing) /* there was memory for all */
		dir->fill = system_fill_again;
	dir->missing = true;
}

/* Has the group events now? */
static bool
group_is_used(const char *group)
{
	for (unsigned n = 0; n < KTR_DYNAMIC_SITES; n++)
		if (event_system(&ktr_dynamic_sites[n]) == group)
			return true;
	return false;
}

/* Is the directory that of a group that has no events any more? */
static bool
group_gone(const struct vnode *vn, const char *name)
{
	const char *group;

	for (unsigned n = 0; (group = kprobe_group_at(n)) != NULL; n++)
		if (S_ISDIR(vn->mode) && group == (const char *)tracefs_arg(vn))
			return !group_is_used(group);
	return false;
}

static const struct tracefs_file system_dir = {.mode = 0750, .fill = system_fill};

static void
events_fill_again(struct vnode *dir)
{
	const char *group;

	vnode_sweep(dir, group_gone);
	for (unsigned n = 0; (group = kprobe_group_at(n)) != NULL; n++)
		if (group_is_used(group))
			tracefs_add(dir, &system_dir, group, (uintptr_t)group);
	dir->missing = true; /* look again next time */
}

static void
events_fill(struct vnode *dir)
{
	tracefs_add(dir, &all_enable, all_enable.name, ALL_SITES);
	raw_fill(dir);
	tracefs_add(dir, &raw_tracers_dir, raw_tracers_dir.name, ALL_SITES);
	for (unsigned n = 0; n < ktr_site_count(); n++) {
		const char *system = event_system(ktr_site_get(n));

		if (system != NULL)
			tracefs_add(dir, &system_dir, system, (uintptr_t)system);
	}
	tracefs_add(dir, &system_dir, EVENT_KPROBES, (uintptr_t)EVENT_KPROBES);
	tracefs_add(dir, &system_dir, EVENT_UPROBES, (uintptr_t)EVENT_UPROBES);
	tracefs_add(dir, &system_dir, EVENT_SYNTHETIC, (uintptr_t)EVENT_SYNTHETIC);
	if (!dir->missing) /* there was memory for all */
		dir->fill = events_fill_again;
	dir->missing = true;
}

const struct tracefs_file events_dir = {.name = "events", .mode = 0750, .fill = events_fill};
