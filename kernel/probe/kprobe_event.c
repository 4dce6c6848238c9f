/*
 * kprobe_event.c - events of kprobes: their groups, which probes they have, how they are listed and
 * removed. Locking: the control lock; groups are read without it.
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/probe/kprobe.h"
#include "kernel/probe/kprobe_private.h"
#include "ktr/control.h"
#include "ktr/dynamic.h"
#include "ktr/port.h"

bool (*kprobe_name_taken)(const char *group, const char *name);
const struct kprobe_events *kprobe_events;

/* ---- groups ---- */

/*
 * A group's name stays when its last event goes: directories that are still open refer to it. So
 * there is a limit, which also keeps a look into events/ short: it asks for each group whether one
 * of the sites is in it.
 */
#define GROUPS_MAX 256u
static const char *groups[GROUPS_MAX];          /* atomic */
static const char *of_sites[KTR_DYNAMIC_SITES]; /* atomic; of the site of the same index */
const char *const kprobe_groups[] = {"kprobes", "uprobes", "eprobes"};

/* Finds the name of a group, or adds it. NULL: there is no room for one more, or no memory. */
static const char *
group_find_or_make(const char *group)
{
	unsigned n = 0;
	char *copy;

	for (unsigned i = 0; i < KPROBE_AT_EVENT; i++)
		if (strcmp(kprobe_groups[i], group) == 0)
			return kprobe_groups[i];
	for (; n < GROUPS_MAX && groups[n] != NULL; n++)
		if (strcmp(groups[n], group) == 0)
			return groups[n];
	copy = n < GROUPS_MAX ? kmalloc(strlen(group) + 1) : NULL;
	if (copy == NULL)
		return NULL;
	memcpy(copy, group, strlen(group) + 1);
	/* release: pairs with the acquire in kprobe_group_at() */
	__atomic_store_n(&groups[n], copy, __ATOMIC_RELEASE);
	return copy;
}

int
kprobe_group_set(const struct ktr_site *site, const char *group, char *err, size_t errlen)
{
	const char *name = group_find_or_make(group);

	__atomic_store_n(&of_sites[site - ktr_dynamic_sites], name, __ATOMIC_RELEASE);
	if (name != NULL)
		return 0;
	if (groups[GROUPS_MAX - 1] == NULL)
		return -ENOMEM;
	snprintf(err, errlen, "there were %u groups since the boot, and there is no room for more",
		 GROUPS_MAX);
	return -ENOSPC;
}

const char *
kprobe_group(const struct ktr_site *site)
{
	/* acquire: pairs with the release in kprobe_group_set() */
	const char *name = __atomic_load_n(&of_sites[site - ktr_dynamic_sites], __ATOMIC_ACQUIRE);

	return name != NULL ? name : kprobe_groups[site->sdt->provider[0] == 'u'];
}

const char *
kprobe_group_at(unsigned n)
{
	return n < GROUPS_MAX ? __atomic_load_n(&groups[n], __ATOMIC_ACQUIRE) : NULL;
}

/* ---- the probes of an event ---- */

struct kprobe *
kprobe_event_find(const char *group, const char *name)
{
	list_for_each_entry (struct kprobe, k, &kprobes, link)
		if (k->user.pid == 0 && strcmp(k->def.name, name) == 0 &&
		    strcmp(k->def.group, group) == 0)
			return k;
	return NULL;
}

static bool
same_type(const struct kfetch *a, const struct kfetch *b)
{
	return a->print == b->print && a->size == b->size && a->width == b->width &&
	       a->shift == b->shift && a->count == b->count && strcmp(a->name, b->name) == 0;
}

/* Where an argument begins in its definition. */
static size_t
argument_at(const struct kfetch *f, const char *text)
{
	return f->at > 0 && text[f->at - 1] == '=' ? f->at - strlen(f->name) - 1 : f->at;
}

static bool
same_place(const struct kprobe *k, const struct kdefinition *d, const char *text)
{
	if (d->kind == KPROBE_KERNEL)
		return k->function + k->def.offset == d->address + d->offset;
	return k->def.offset == d->offset && k->def.path == d->path &&
	       strncmp(k->text + k->def.place_at, text + d->place_at, d->path) == 0;
}

static bool
same_probe(const struct kprobe *k, const struct kdefinition *d, const char *text)
{
	bool same = same_place(k, d, text);

	for (unsigned i = 0; i < d->nargs && same; i++) {
		const struct kfetch *a = &k->def.args[i], *b = &d->args[i];

		same = a->len == b->len && strncmp(k->text + a->at, text + b->at, a->len) == 0;
	}
	return same;
}

int
kprobe_event_check(const struct kprobe *event, const struct kdefinition *d, const char *text,
		   struct ktold *t)
{
	const struct kdefinition *e = &event->def;
	unsigned i = 0;

	if (e->kind != d->kind || d->kind == KPROBE_AT_EVENT) {
		snprintf(t->err, t->errlen, "there is an event \"%s/%s\" already", d->group,
			 d->name);
		return -EEXIST;
	}
	if (e->is_return != d->is_return) {
		snprintf(t->err, t->errlen, "the event \"%s\" has probes %c: only", d->name,
			 e->is_return ? 'r' : 'p');
		return -EEXIST;
	}
	while (i < e->nargs && i < d->nargs && same_type(&e->args[i], &d->args[i]))
		i++;
	if (i < e->nargs || i < d->nargs) {
		kprobe_refuse(t->err, t->errlen,
			      i < d->nargs ? argument_at(&d->args[i], text) : strlen(text) + 1,
			      "names and types of the arguments differ from those of the event's "
			      "other probes");
		return -EEXIST;
	}
	list_for_each_entry (const struct kprobe, k, &kprobes, link)
		if (k->site == event->site && same_probe(k, d, text)) {
			snprintf(t->err, t->errlen, "there is a probe \"%s\" already", d->name);
			return -EEXIST;
		}
	return 0;
}

/* ---- listing, removal ---- */

void
kprobe_print_target(const struct kprobe_info *info, struct sbuf *out)
{
	for (size_t i = 0; i < info->path_size; i++)
		sbuf_putc(out, info->path[i] == '/' ? '.' : info->path[i]);
}

void
kprobe_print(const struct kprobe_info *info, struct sbuf *out)
{
	const struct kprobe *k = info->probe;
	const struct kdefinition *d = &k->def;
	const char *place = k->text + d->place_at;

	sbuf_putc(out, d->kind == KPROBE_AT_EVENT ? 'e' : d->is_return ? 'r' : 'p');
	if (d->maxactive != 0)
		sbuf_printf(out, "%u", d->maxactive);
	sbuf_printf(out, ":%s/%s ", d->group, d->name);
	if (d->kind == KPROBE_AT_EVENT)
		kprobe_print_target(info, out);
	else if (d->kind == KPROBE_USER)
		sbuf_printf(out, "%.*s:0x%016lx", (int)d->path, place, d->offset);
	else if (*place >= '0' && *place <= '9')
		sbuf_printf(out, "0x%lx", d->address);
	else if (d->offset != 0)
		sbuf_printf(out, "%s+%zu", d->function, d->offset);
	else
		sbuf_puts(out, d->function);
	for (unsigned i = 0; i < d->nargs; i++)
		sbuf_printf(out, " %s=%.*s", d->args[i].name, (int)d->args[i].len,
			    k->text + d->args[i].at);
}

/* The definition as it is listed; kfree() frees it. NULL: no memory. */
static char *
kprobe_list_line(const struct kprobe_info *info)
{
	struct sbuf out;
	char *line;

	sbuf_init(&out, NULL, 0);
	kprobe_print(info, &out);
	line = kmalloc(out.len + 1);
	if (line != NULL) {
		sbuf_init(&out, line, out.len + 1);
		kprobe_print(info, &out);
	}
	return line;
}

/* Are all words of `some` the first ones of `all`? */
static bool
begins_with(const char *all, const char *some)
{
	for (;;) {
		size_t n = 0;

		while (*all == ' ')
			all++;
		while (*some == ' ')
			some++;
		while (some[n] != '\0' && some[n] != ' ')
			n++;
		if (n == 0)
			return true;
		if (strncmp(all, some, n) != 0 || (all[n] != '\0' && all[n] != ' '))
			return false;
		all += n;
		some += n;
	}
}

bool
kprobe_matches(const struct kprobe_info *info, const char *which)
{
	const struct kdefinition *d = &info->probe->def;
	const char *name = which, *end = which, *place;
	char *line;
	size_t n;
	bool same;

	if (which == NULL)
		return true;
	for (; *end != '\0' && *end != ' '; end++)
		if (*end == '/' && name == which)
			name = end + 1;
	if (name != which && (strlen(d->group) != (size_t)(name - 1 - which) ||
			      strncmp(d->group, which, (size_t)(name - 1 - which)) != 0))
		return false;
	n = (size_t)(end - name);
	if (n == 0 ? name == which : strlen(d->name) != n || strncmp(d->name, name, n) != 0)
		return false;
	while (*end == ' ')
		end++;
	if (*end == '\0')
		return true;
	if (begins_with(info->definition + d->place_at, end))
		return true;
	line = kprobe_list_line(info);
	place = line != NULL ? strchr(line, ' ') : NULL;
	same = place != NULL && begins_with(place, end);
	kfree(line);
	return same;
}

void
kprobe_event_is_several(const struct ktr_site *site)
{
	list_for_each_entry (struct kprobe, k, &kprobes, link)
		if (k->site == site)
			__atomic_store_n(&k->tells_more, true, __ATOMIC_RELAXED);
}

static bool
has_probe(const struct ktr_site *site, bool gone)
{
	list_for_each_entry (const struct kprobe, k, &kprobes, link)
		if (k->site == site && k->gone <= gone)
			return true;
	return false;
}

struct marking {
	const char *which;
	enum kprobe_kind kind;
	unsigned found;
};

static void
kprobe_mark(const struct kprobe_info *info, void *arg)
{
	struct marking *m = arg;

	if (info->kind != m->kind || !kprobe_matches(info, m->which))
		return;
	info->probe->gone = true;
	m->found++;
}

void
kprobe_remove_marked(struct list *closing)
{
	kprobe_apply(); /* so that no probe fires any more, even if its event stays on */
	list_for_each_entry_safe (struct kprobe, k, &kprobes, link) {
		if (!k->gone)
			continue;
		list_remove(&k->link);
		if (!has_probe(k->site, true))
			ktr_site_free(k->site);
		if (k->user.vn != NULL)
			list_append(closing, &k->link);
		else
			kprobe_free(k);
	}
}

void
kprobe_free_all(struct list *closing)
{
	list_for_each_entry_safe (struct kprobe, k, closing, link)
		kprobe_free(k);
}

/* The owner of an event that is on, and would go with the marked probes; NULL: there is none. */
static const char *
user_of_marked(void)
{
	list_for_each_entry (const struct kprobe, k, &kprobes, link) {
		uint32_t users = k->gone ? ktr_site_users(k->site) : 0;

		if (users != 0 && !has_probe(k->site, false))
			return ktr_owner_name((unsigned)__builtin_ctz(users));
	}
	return NULL;
}

static void
kprobe_unmark_all(void)
{
	list_for_each_entry (struct kprobe, k, &kprobes, link)
		k->gone = false;
}

int
kprobe_drop(struct kprobe *probe)
{
	struct list closing = LIST_INIT(closing);
	const char *user;

	ktr_port_lock();
	probe->gone = true;
	user = user_of_marked();
	if (user == NULL)
		kprobe_remove_marked(&closing);
	else
		probe->gone = false;
	ktr_port_unlock();
	kprobe_free_all(&closing);
	return user != NULL ? -EBUSY : 0;
}

int
kprobe_del(const char *which, enum kprobe_kind kind, char *err, size_t errlen)
{
	struct marking m = {.which = which, .kind = kind};
	struct list closing = LIST_INIT(closing);
	const char *user;

	ktr_port_lock();
	kprobe_each(kprobe_mark, &m);
	user = user_of_marked();
	if (user == NULL)
		kprobe_remove_marked(&closing);
	else
		snprintf(err, errlen, "the probe is on for %.40s", user);
	kprobe_unmark_all();
	ktr_port_unlock();
	kprobe_free_all(&closing);
	if (m.found == 0)
		snprintf(err, errlen, "no probe \"%.40s\"", which != NULL ? which : "");
	return m.found == 0 ? -ENOENT : user != NULL ? -EBUSY : 0;
}
