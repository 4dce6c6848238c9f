/*
 * instance.c - instances/: logs of their own, and what the main log and they have in common.
 *
 * The main log's trace points record by themselves. For another log a hook does (ktr/hook.h): its
 * owner's number says for which instance. Locking: ftrace_lock; `guard`, the last lock, for the
 * list of instances, from which the directory is made; an instance's `lock` for what hooks change,
 * too.
 */
#include "kernel/ftrace/instance.h"
#include "arch/irq.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/sync/spinlock.h"
#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/port.h"
#include "ktr/sdt.h"
#include "ktr/wire.h"

struct instance instance_top = {
    .link = LIST_INIT(instance_top.link),
    .trace.log = &ktr_main,
    .snapshot.log = &instance_top.copy,
    .copy.name = "snapshot",
    .cpus = UINT64_MAX,
    .filters = LIST_INIT(instance_top.filters),
    .triggers = LIST_INIT(instance_top.triggers),
    .hists = LIST_INIT(instance_top.hists),
    .system_filters = LIST_INIT(instance_top.system_filters),
};
static struct mutex guard = MUTEX_INIT("instances");
struct instance *instance_owners[KTR_OWNER_MAX];
unsigned instance_entries_new;
#define ENTRIES_NEW 16384u /* a mebibyte for each CPU; Linux has 1,408 KiB */

/* ---- recording ---- */

const uint64_t *
instance_mask_at(const struct instance *i)
{
	return i == &instance_top ? &ktr_cpumask : &i->mask;
}

uint64_t
instance_mask(const struct instance *i)
{
	return __atomic_load_n(instance_mask_at(i), __ATOMIC_RELAXED);
}

/* Changes the mask from `seen` to another one. False: it was no longer `seen`. */
static bool
replace_mask(struct instance *i, uint64_t seen, uint64_t mask)
{
	bool same = i == &instance_top
			? ktr_cpumask_replace(seen, mask)
			: __atomic_compare_exchange_n(&i->mask, &seen, mask, false,
						      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);

	if (same)
		ktr_functions_look();
	return same;
}

/* Replaces the mask by what `next` makes of it, and returns the old one. That of the main log
 * may be changed by others at any time. [lock] */
static uint64_t
change_mask(struct instance *i, uint64_t (*next)(const struct instance *i, uint64_t now))
{
	uint64_t now, to;

	do {
		now = instance_mask(i);
		to = next(i, now);
	} while (to != now && !replace_mask(i, now, to));
	return now;
}

static uint64_t
mask_on(const struct instance *i, uint64_t now)
{
	return now != 0 ? now : i->cpus;
}

static uint64_t
mask_off(const struct instance *i, uint64_t now)
{
	return 0;
}

static uint64_t
mask_of_cpus(const struct instance *i, uint64_t now)
{
	return now != 0 ? i->cpus : 0;
}

/* Switches tracing. [lock] */
static void
instance_turn(struct instance *i, bool on)
{
	uint64_t before = change_mask(i, on ? mask_on : mask_off);

	if (before != 0)
		__atomic_store_n(&i->cpus, before, __ATOMIC_RELAXED);
}

bool
instance_is_on(const struct instance *i)
{
	bool on = instance_mask(i) != 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* a pause sets one, then clears the other */
	return on || __atomic_load_n(&i->resumes, __ATOMIC_SEQ_CST) || instance_mask(i) != 0;
}

void
instance_switch_in_hook(struct instance *i, bool on)
{
	hook_lock(&i->lock);
	if (i->pauses > 0)
		__atomic_store_n(&i->resumes, on, __ATOMIC_SEQ_CST);
	if (i->pauses == 0 || !on) /* debug.ktr.cpumask may have switched it on meanwhile */
		instance_turn(i, on);
	hook_unlock(&i->lock);
}

/* What is to be done under the lock, in thread context. */
struct switching {
	struct instance *i;
	bool on;
	uint64_t cpus;
};

static void
switch_here(void *arg)
{
	const struct switching *s = arg;

	instance_switch_in_hook(s->i, s->on);
}

void
instance_switch(struct instance *i, bool on)
{
	ktr_hook_without(switch_here, &(struct switching){.i = i, .on = on});
}

static void
set_cpus_here(void *arg)
{
	const struct switching *s = arg;

	hook_lock(&s->i->lock);
	__atomic_store_n(&s->i->cpus, s->cpus, __ATOMIC_RELAXED);
	change_mask(s->i, mask_of_cpus);
	hook_unlock(&s->i->lock);
}

void
instance_set_cpus(struct instance *i, uint64_t cpus)
{
	ktr_hook_without(set_cpus_here, &(struct switching){.i = i, .cpus = cpus});
}

static void
pause_here(void *arg)
{
	const struct switching *s = arg;
	struct instance *i = s->i;

	hook_lock(&i->lock);
	if (!s->on && i->pauses++ == 0) {
		__atomic_store_n(&i->resumes, instance_mask(i) != 0, __ATOMIC_SEQ_CST);
		instance_turn(i, false);
	} else if (s->on && --i->pauses == 0 && i->resumes) {
		instance_turn(i, true);
		__atomic_store_n(&i->resumes, false, __ATOMIC_SEQ_CST);
	}
	hook_unlock(&i->lock);
}

void
instance_pause(struct instance *i, bool pause)
{
	ktr_hook_without(pause_here, &(struct switching){.i = i, .on = !pause});
}

/* Without the option overwrite: is there no room for so many entries on this CPU? */
static bool
has_no_room(struct instance *i, uint64_t entries)
{
	unsigned cpu = arch_cpu();
	uint64_t from = __atomic_load_n(&i->trace.shown[cpu].from, __ATOMIC_RELAXED), tail, head;

	if (option_on(i, OPTION_OVERWRITE) || !ktr_log_window(&i->own, cpu, &tail, &head) ||
	    head + entries + KTR_RING_SPARE <= from + i->entries)
		return false;
	__atomic_fetch_add(&i->trace.shown[cpu].dropped, 1, __ATOMIC_RELAXED);
	return true;
}

/* Not for the main log, which looks for itself. */
static bool
instance_admits(struct instance *i, uint64_t entries)
{
	return (instance_mask(i) >> arch_cpu() & 1) != 0 && !ktr_port_suppressed() &&
	       !has_no_room(i, entries);
}

/* No interrupt takes the room that was found; that an NMI does is rare. */
static void
record_if_room(struct instance *i, const struct ktr_site *site, const uint64_t args[KTR_MAXARGS])
{
	uintptr_t irq = ktr_port_irq_save();

	if (instance_admits(i, 1))
		ktr_log_record(i->trace.log, site, args);
	ktr_port_irq_restore(irq);
}

void
instance_record(struct instance *i, const struct ktr_site *site, const uint64_t args[KTR_MAXARGS])
{
	if (i == &instance_top)
		ktr_record6(site, args[0], args[1], args[2], args[3],
			    (struct ktr_pair){args[4], args[5]});
	else
		record_if_room(i, site, args);
}

bool
instance_record_data(struct instance *i, const struct ktr_site *site,
		     const uint64_t args[KTR_MAXARGS], const void *data, size_t len)
{
	size_t kept = len < KTR_DATA_MAX ? len : KTR_DATA_MAX;
	uint64_t entries = 1 + (kept + KTR_DATA_PART - 1) / KTR_DATA_PART;
	uintptr_t irq;
	bool recorded;

	if (i == &instance_top)
		return ktr_log_record_data(i->trace.log, site, args, data, len);
	irq = ktr_port_irq_save();
	recorded =
	    instance_admits(i, entries) && ktr_log_record_data(i->trace.log, site, args, data, len);
	ktr_port_irq_restore(irq);
	return recorded;
}

void
instance_fire(struct instance *i, const struct ktr_firing *f)
{
	uint64_t args[KTR_MAXARGS] = {0};
	char text[64];
	struct sbuf last;

	if (!pids_want_event(i, f))
		return;
	if (i == &instance_top) {
		ktr_fire_record(f);
		return;
	}
	for (unsigned n = 0; n < f->nargs && n < KTR_MAXARGS; n++)
		args[n] = f->args[n];
	if (f->nargs > KTR_MAXARGS) { /* the last two are one text, as in the main log */
		size_t n = (size_t)ktr_event_text(text, sizeof(text), NULL, f->site->sdt->last,
						  &f->args[KTR_MAXARGS - 1], 2, NULL, NULL);

		last = (struct sbuf){text, sizeof(text), n};
		instance_record_data(i, f->site, args, text, sbuf_stored(&last));
	} else if (f->has_data) {
		instance_record_data(i, f->site, args, f->data, f->len);
	} else {
		instance_record(i, f->site, args);
	}
}

void
instances_fire(const struct ktr_firing *f)
{
	for (unsigned owner = 0; owner < KTR_OWNER_MAX; owner++)
		if ((f->owners >> owner & 1) != 0 && instance_owners[owner] != NULL)
			events_record(instance_owners[owner], f);
}

int
instance_owner(struct instance *i, const char *name, ktr_hook_fn *hook)
{
	int n = ktr_owner_register(name, hook);

	if (n >= 0 && hook != NULL)
		instance_owners[n] = i;
	return n;
}

void
instance_disown(unsigned *owner)
{
	int error = *owner != 0 ? ktr_owner_unregister(*owner) : 0;

	if (error != 0)
		panic("ftrace: error %d", error);
	if (*owner != 0)
		instance_owners[*owner] = NULL;
	*owner = 0;
}

/* ---- sizes ---- */

unsigned
instance_entries(const struct instance *i)
{
	return i == &instance_top ? ktr_entries_get() : i->entries;
}

static unsigned
new_entries(void)
{
	uint64_t share = page_count_total() * PAGE_SIZE / 32;
	unsigned n = ENTRIES_NEW;

	while (n > KTR_ENTRIES_DEFAULT && ncpus * ktr_ring_bytes(n) > share)
		n /= 2;
	return instance_entries_new != 0 ? instance_entries_new : n;
}

int
instance_resize(struct instance *i, unsigned entries)
{
	int error;

	if (i == &instance_top)
		return ktr_resize(entries);
	ktr_log_close(&i->own);
	buffer_forget(&i->trace);
	error = ktr_log_open(&i->own, entries);
	if (error == 0)
		i->entries = entries;
	else
		ktr_log_open(&i->own, i->entries); /* without rings every event is refused */
	return error;
}

/* ---- the list ---- */

static struct instance *
next_of(const struct instance *i)
{
	struct instance *next = list_entry(i->link.next, struct instance, link);

	return next != &instance_top ? next : NULL;
}

bool
instance_is_there(const struct instance *i)
{
	const struct instance *o = &instance_top;

	while (o != NULL && o != i)
		o = next_of(o);
	return o != NULL;
}

bool
instances_any(bool (*f)(struct instance *i, const void *arg), const void *arg)
{
	bool found = false;

	for (struct instance *i = &instance_top; i != NULL && !found; i = next_of(i))
		found = f(i, arg);
	return found;
}

static struct instance *
instance_find(const char *name)
{
	struct instance *i = next_of(&instance_top);

	while (i != NULL && strcmp(i->name, name) != 0)
		i = next_of(i);
	return i;
}

int
instance_make(const char *name, struct instance **made)
{
	struct instance *i;

	if (instance_find(name) != NULL)
		return -EEXIST;
	if (strlen(name) >= sizeof(i->name))
		return -ENAMETOOLONG;
	i = kmap_alloc(sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	strlcpy(i->name, name, sizeof(i->name));
	i->own.name = i->name;
	i->copy.name = "snapshot";
	i->trace.log = &i->own;
	i->snapshot.log = &i->copy;
	i->mask = i->cpus = UINT64_MAX;
	i->entries = new_entries();
	list_init(&i->filters);
	list_init(&i->triggers);
	list_init(&i->hists);
	list_init(&i->system_filters);
	if (ktr_log_open(&i->own, i->entries) != 0) {
		kmap_free(i);
		return -ENOMEM;
	}
	mutex_lock(&guard);
	list_append(&instance_top.link, &i->link);
	mutex_unlock(&guard);
	*made = i;
	return 0;
}

static void
instance_destroy(struct instance *i)
{
	tracer_stop(i);
	events_stop(i);
	snapshot_free(i);
	mutex_lock(&guard);
	list_remove(&i->link);
	mutex_unlock(&guard);
	ktr_log_close(&i->own);
	kmap_free(i);
}

/* ---- the directory ---- */

static int
instances_mkdir(struct vnode *dir, const char *name)
{
	struct instance *made;
	int error;

	mutex_lock(&ftrace_lock);
	error = instance_make(name, &made);
	mutex_unlock(&ftrace_lock);
	return error;
}

static int
instances_rmdir(struct vnode *dir, const char *name)
{
	struct instance *i;
	int error;

	mutex_lock(&ftrace_lock);
	i = instance_find(name);
	error = i == NULL ? -ENOENT : i->users > 0 ? -EBUSY : 0;
	if (error == 0)
		instance_destroy(i);
	mutex_unlock(&ftrace_lock);
	return error;
}

static bool
is_gone(const struct vnode *vn, const char *name)
{
	const struct instance *i = instance_find(name);

	return i == NULL || tracefs_instance(vn) != i;
}

static void
instances_fill(struct vnode *dir)
{
	static const struct tracefs_file file = {.mode = 0750, .fill = tracefs_fill_instance};

	mutex_lock(&guard);
	vnode_sweep(dir, is_gone);
	for (struct instance *i = &instance_top; (i = next_of(i)) != NULL;) {
		struct vnode *vn = tracefs_add(dir, &file, i->name, BUFFER_ALL);

		if (vn != NULL)
			((struct tracefs_node *)vn->data)->instance = i;
	}
	mutex_unlock(&guard);
	dir->missing = true; /* look again next time */
}

static const struct vnode_ops dir_ops = {
    .mkdir = instances_mkdir,
    .rmdir = instances_rmdir,
    .destroy = tracefs_destroy,
};

const struct tracefs_file instances_dir = {.name = "instances",
					   .mode = 0750,
					   .ops = &dir_ops,
					   .fill = instances_fill};
