/*
 * control.c - which sites are on, and why: the class mask, owners, CPU mask and console printing.
 *
 * Invariants while nobody holds the control lock: site->on == ktr_site_why(site), and the site's
 * instructions are patched accordingly. Bit 0 of owners belongs to the mask. It is set only if the
 * mask has one of the site's classes. It may be clear even then, if the site was switched off by
 * name.
 *
 * Locking: functions that change something hold the control lock.
 */
#include "ktr/control.h"

#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/glob.h"
#include "ktr/image.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/probe.h"
#include "ktr/str.h"

uint64_t ktr_cpumask = ~(uint64_t)0;
int ktr_verbose;

static uint64_t ktr_mask; /* [control lock] read anywhere */
static const char *ktr_owner_names[KTR_OWNER_MAX] = {"mask", "command"}; /* [control lock] */

uint64_t
ktr_mask_get(void)
{
	return __atomic_load_n(&ktr_mask, __ATOMIC_RELAXED);
}

uint64_t
ktr_compile_get(void)
{
	return KTR_COMPILE;
}

void
ktr_sites_apply(void)
{
	uint32_t owners = 0;
	for (unsigned i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = &__start_ktr_sites[i];
		ktr_hook_apply(site);
		if (site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN)
			owners |= site->owners;
	}
	__atomic_store_n(&ktr_functions_owners, owners, __ATOMIC_SEQ_CST);
	ktr_functions_look();
#if KTR_PORT_PATCH
	ktr_port_patch();
#endif
	for (unsigned i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = &__start_ktr_sites[i];
		__atomic_store_n(&site->on, (uint8_t)ktr_site_why(site), __ATOMIC_RELAXED);
	}
}

static void
site_own(struct ktr_site *site, unsigned owner, bool on)
{
	uint32_t bit = 1u << owner, owners = site->owners;
	ktr_hook_own(site, on ? owners | bit : owners & ~bit);
}

/* Sets the mask and its bit in all sites' owners. The caller calls ktr_sites_apply(). */
static void
mask_change_locked(uint64_t on, uint64_t off)
{
	uint64_t mask = (ktr_mask & ~off) | on;
	__atomic_store_n(&ktr_mask, mask, __ATOMIC_RELAXED);
	ktr_image_refresh();
	for (unsigned i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = &__start_ktr_sites[i];
		if (site->kind != KTR_SITE_FREE && /* there may be many */
		    ((site->classes & on) != 0 || (site->classes & mask) == 0))
			site_own(site, KTR_OWNER_MASK, (site->classes & mask) != 0);
	}
}

void
ktr_mask_change(uint64_t on, uint64_t off)
{
	ktr_port_lock();
	mask_change_locked(on, off);
	ktr_sites_apply();
	ktr_port_unlock();
}

void
ktr_mask_set(uint64_t mask)
{
	ktr_mask_change(mask, ~mask);
}

/* Sends every CPU's next event to the slow path, where the change takes effect. */
static void
close_all(void)
{
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		ktr_ring_close(cpu);
}

bool
ktr_cpumask_replace(uint64_t seen, uint64_t cpus)
{
	/* Hooks and interrupts call this. No ring is freed while this CPU has interrupts off: that
	 * takes a ktr_port_exchange(). */
	uintptr_t irq = ktr_port_irq_save();
	bool same = __atomic_compare_exchange_n(&ktr_cpumask, &seen, cpus, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED);
	if (same)
		close_all();
	ktr_port_irq_restore(irq);
	ktr_functions_look();
	return same;
}

void
ktr_cpumask_set(uint64_t cpus)
{
	while (!ktr_cpumask_replace(__atomic_load_n(&ktr_cpumask, __ATOMIC_RELAXED), cpus))
		;
}

int
ktr_verbose_set(int level)
{
	if (level < 0 || level > 2)
		return -KTR_EINVAL;
	ktr_port_lock();
	__atomic_store_n(&ktr_verbose, level, __ATOMIC_RELAXED);
	close_all();
	ktr_port_unlock();
	return 0;
}

int
ktr_owner_register(const char *name, ktr_hook_fn *hook)
{
	unsigned owner = 0;
	ktr_port_lock();
	while (owner < KTR_OWNER_MAX && ktr_owner_names[owner] != NULL)
		owner++;
	if (owner < KTR_OWNER_MAX)
		ktr_owner_names[owner] = name;
	if (owner < KTR_OWNER_MAX && hook != NULL)
		ktr_hook_add(owner, hook);
	ktr_port_unlock();
	return owner < KTR_OWNER_MAX ? (int)owner : -KTR_ENOSPC;
}

int
ktr_owner_unregister(unsigned owner)
{
	int error = -KTR_EINVAL;
	ktr_port_lock();
	if (owner > KTR_OWNER_COMMAND && ktr_owner_name(owner) != NULL) {
		for (unsigned i = 0; i < ktr_site_count(); i++)
			if (__start_ktr_sites[i].kind != KTR_SITE_FREE)
				site_own(&__start_ktr_sites[i], owner, false);
		ktr_sites_apply();
		error = ktr_hook_remove(owner) ? 0 : -KTR_ENOTSUP;
		if (error == 0)
			ktr_owner_names[owner] = NULL;
	}
	ktr_port_unlock();
	return error;
}

void
ktr_owner_move(unsigned from, unsigned to)
{
	ktr_port_lock();
	for (unsigned i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = &__start_ktr_sites[i];
		if ((site->owners >> from & 1) != 0)
			ktr_hook_own(site, (site->owners & ~(1u << from)) | 1u << to);
	}
	ktr_sites_apply();
	ktr_port_unlock();
}

const char *
ktr_owner_name(unsigned owner)
{
	return owner < KTR_OWNER_MAX ? ktr_owner_names[owner] : NULL;
}

unsigned
ktr_owner_sites(unsigned owner)
{
	unsigned n = 0;
	for (unsigned i = 0; owner < KTR_OWNER_MAX && i < ktr_site_count(); i++)
		n += __start_ktr_sites[i].owners >> owner & 1;
	return n;
}

bool
ktr_site_matches(const struct ktr_site *site, const char *glob)
{
	char place[256];
	const char *file = site->file;
	if (ktr_probe_matches(site, glob))
		return true;
	if (site->kind != KTR_SITE_POINT)
		return false; /* functions go by their names as probes only: there are thousands */
	fmt_snprintf(place, sizeof(place), "%s:%u", file, (unsigned)site->line);
	return ktr_glob(glob, file) || ktr_glob(glob, ktr_basename(file)) ||
	       ktr_glob(glob, place) || ktr_glob(glob, ktr_basename(place)) ||
	       ktr_glob(glob, site->func) || ktr_glob(glob, site->fmt);
}

/* Removes classes from the mask of which every site has been switched off by name. */
static void
mask_drop_empty(uint64_t dropped)
{
	uint64_t used = 0;
	for (unsigned i = 0; i < ktr_site_count(); i++)
		if ((__start_ktr_sites[i].owners >> KTR_OWNER_MASK & 1) != 0)
			used |= __start_ktr_sites[i].classes;
	mask_change_locked(0, used == 0 ? KTR_ALL : dropped & ~used);
}

/* Switches the sites of `classes` for an owner; if classes is 0, those that match the glob.
 * Control lock held. */
static struct ktr_selection
select_sites(unsigned owner, uint64_t classes, const char *glob, bool on)
{
	struct ktr_selection found = {0};
	bool person = owner == KTR_OWNER_COMMAND || owner == KTR_OWNER_MASK;
	bool named = classes == 0, dropped = person && named && !on;
	uint64_t matched = 0;
	if (person && !named)
		mask_change_locked(on ? classes : 0, on ? 0 : classes);
	for (unsigned i = 0; i < ktr_site_count(); i++) {
		struct ktr_site *site = &__start_ktr_sites[i];
		if (named ? !ktr_site_matches(site, glob) : (site->classes & classes) == 0)
			continue;
		if (!person || named || !on)
			site_own(site, owner, on);
		if (dropped)
			site_own(site, KTR_OWNER_MASK, false);
		matched |= site->classes;
		found.matched++;
		found.changed += ((site->on & KTR_SITE_ON) != 0) != (site->owners != 0);
		found.on += site->owners != 0;
		found.owners |= site->owners;
	}
	if (dropped)
		mask_drop_empty(matched);
	ktr_sites_apply();
	return found;
}

/* Reads a spec. *classes becomes 0 if it is a glob or names. 0; or an error and a sentence, if it
 * names nothing. Control lock held. */
static int
select_read(const char *spec, uint64_t *classes, char *err, size_t errlen)
{
	*classes = 0;
	if (spec[0] == '\0') {
		fmt_snprintf(err, errlen,
			     "empty selection; expected classes, or a glob over file:line, "
			     "function or format");
		return -KTR_EINVAL;
	}
	bool is_class = ktr_mask_parse(spec, classes, err, errlen) == 0;
	if (is_class && *classes == 0)
		fmt_snprintf(err, errlen, "\"%.60s\" selects nothing", spec);
	if (is_class)
		return *classes != 0 ? 0 : -KTR_ENOENT;
	for (unsigned i = 0; i < ktr_site_count(); i++)
		if (ktr_site_matches(&__start_ktr_sites[i], spec))
			return 0;
	char meant[4 * KTR_PROBE_TEXT];
	/* A word that could be a class keeps the mask parser's sentence. */
	if (ktr_probe_suggest(spec, meant, sizeof(meant)))
		fmt_snprintf(err, errlen, "nothing matches \"%.60s\"; did you mean %s?", spec,
			     meant);
	else if (ktr_glob_is_pattern(spec) || ktr_strlen(spec) > 16 || ktr_probe_is_name(spec))
		fmt_snprintf(
		    err, errlen,
		    "nothing matches \"%.60s\": expected file:line, function or format of a "
		    "trace point, or provider:module:function:name",
		    spec);
	return -KTR_ENOENT;
}

int
ktr_select_list(unsigned owner, const char *specs, unsigned n, bool on, struct ktr_selection *found,
		char *err, size_t errlen)
{
	struct ktr_selection sum = {0};
	uint64_t classes;
	char ignored[1];
	int error = 0;
	if (err == NULL) {
		err = ignored;
		errlen = sizeof(ignored);
	}
	if (ktr_owner_name(owner) == NULL) {
		fmt_snprintf(err, errlen, "no such owner");
		return -KTR_EINVAL;
	}
	ktr_port_lock();
	const char *spec = specs;
	for (unsigned i = 0; i < n && error == 0; i++, spec += ktr_strlen(spec) + 1) {
#ifdef KTR_PORT_MAKE_NAMED
		if (on && ktr_probe_is_name(spec))
			error = KTR_PORT_MAKE_NAMED(spec, i == 0, err, errlen);
#endif
		if (error == 0)
			error = select_read(spec, &classes, err, errlen);
	}
	spec = specs;
	for (unsigned i = 0; i < n && error == 0; i++, spec += ktr_strlen(spec) + 1) {
		classes = 0;
		ktr_mask_parse(spec, &classes, NULL, 0);
		struct ktr_selection one = select_sites(owner, classes, spec, on);
		sum.matched += one.matched;
		sum.on += one.on;
		sum.changed += one.changed;
		sum.owners |= one.owners;
	}
	ktr_port_unlock();
	if (error != 0)
		return error;
	err[0] = '\0';
	if (found != NULL)
		*found = sum;
	return (int)sum.matched;
}

int
ktr_select(unsigned owner, const char *spec, bool on, struct ktr_selection *found, char *err,
	   size_t errlen)
{
	return ktr_select_list(owner, spec, 1, on, found, err, errlen);
}

void
ktr_select_all(unsigned owner, bool (*want)(const struct ktr_site *site, void *arg), void *arg)
{
	ktr_port_lock();
	for (unsigned i = 0; i < ktr_site_count(); i++)
		if (__start_ktr_sites[i].kind != KTR_SITE_FREE) /* there may be many */
			site_own(&__start_ktr_sites[i], owner % KTR_OWNER_MAX,
				 want(&__start_ktr_sites[i], arg));
	ktr_sites_apply();
	ktr_port_unlock();
}
