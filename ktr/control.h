/*
 * control.h - controlling the log: masks, sites, ring sizes, accounting.
 *
 * Locking: functions that change something take the control lock (ktr_port_lock()) and may sleep.
 * Before threads exist, they may be called in any context. After a panic, and while a debugger has
 * stopped the machine, those that switch sites may not, where the port patches code: it would wait
 * for the CPUs that are stopped. Functions that only read take no lock, unless it is said. Errors
 * are negative errno values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/class.h"
#include "ktr/hook.h"
#include "ktr/site.h"

/** Layout version: debug.ktr.version. */
#define KTR_VERSION 5

#define KTR_ENOENT  2
#define KTR_ENOMEM  12
#define KTR_EINVAL  22
#define KTR_ENOSPC  28
#define KTR_ENOTSUP 95

/** CPUs that record: bit N for CPU N. Read it freely; change it by ktr_cpumask_set(). */
extern uint64_t ktr_cpumask;
/** 0, 1 or 2: events are printed on the console too. Read it freely; change it by
 * ktr_verbose_set(). */
extern int ktr_verbose;

/** Classes that are on: debug.ktr.mask. */
uint64_t ktr_mask_get(void);
/** Sets the mask and switches all sites accordingly. Works from the first C instruction on. */
void ktr_mask_set(uint64_t mask);
/** Changes only the classes `on` and `off`, which have no bit in common. */
void ktr_mask_change(uint64_t on, uint64_t off);
/** Takes no lock. Any context. */
void ktr_cpumask_set(uint64_t cpus);
/** Sets the CPUs that record to `cpus`, if they are `seen` now. False: they are not. */
bool ktr_cpumask_replace(uint64_t seen, uint64_t cpus);
/** -EINVAL: not 0, 1 or 2. */
int ktr_verbose_set(int level);

/** Classes compiled into the core: debug.ktr.compile. */
uint64_t ktr_compile_get(void);

/*
 * Owners: a site is on while at least one owner wants it on. So one owner cannot switch off what
 * another one needs. Two owners are built in; others register.
 */
#define KTR_OWNER_MASK    0u /* the class mask */
#define KTR_OWNER_COMMAND 1u /* per-site switches of the `ktr` command */
#ifdef KTR_SMALL
#define KTR_OWNER_MAX 8u
#else
#define KTR_OWNER_MAX 32u
#endif

/**
 * Registers an owner; name must stay valid. `hook` is called when one of its probes fires
 * (ktr/hook.h); NULL: the log records its probes. Returns its number, or -ENOSPC.
 */
int ktr_owner_register(const char *name, ktr_hook_fn *hook);
/**
 * Switches all of a registered owner's sites off, waits until no CPU is in its hook, and frees its
 * number. -ENOTSUP: the port cannot wait (ktr_port_sync()), so an owner with a hook keeps its
 * number.
 */
int ktr_owner_unregister(unsigned owner);
/** The owner's name, NULL when there is no such owner. Control lock: so long the name is valid. */
const char *ktr_owner_name(unsigned owner);
/** Registered owners that have the site on, and would miss it: a bit each. */
static inline uint32_t
ktr_site_users(const struct ktr_site *site)
{
	return __atomic_load_n(&site->owners, __ATOMIC_RELAXED) &
	       ~(1u << KTR_OWNER_MASK | 1u << KTR_OWNER_COMMAND);
}
/**
 * Gives the sites of one registered owner to another one. A firing meanwhile is for exactly one of
 * the two.
 */
void ktr_owner_move(unsigned from, unsigned to);
/** Number of sites that the owner wants on. */
unsigned ktr_owner_sites(unsigned owner);

/** What a selection found. */
struct ktr_selection {
	unsigned matched; /* sites that SPEC names */
	unsigned on;      /* of these: on afterwards, for any owner */
	unsigned changed; /* sites of these that this call has switched on or off */
	uint32_t owners;  /* bit N: owner N wants at least one of these on */
};

/**
 * Switches for one owner the sites that spec names: class names as ktr_mask_parse() reads them, or
 * a glob over file:line (also without folders), function or format of trace points (ktr/glob.h), or
 * names of probes, which have a colon (ktr/probe.h).
 *
 * KTR_OWNER_COMMAND is a person, who expects of `ktr on SCHED` that it changes the mask, and of
 * `ktr off` that it switches a site off whether the mask or a name had switched it on. So classes
 * set or clear bits of the mask, and what is switched off is so for KTR_OWNER_MASK too. A site that
 * was switched off by name stays off until its class is switched on; a class without any site on
 * leaves the mask.
 *
 * *found may be NULL. err (may be NULL) receives one sentence.
 * Returns the number of sites that match (0 for a class without any); -ENOENT: a glob that matches
 * none; -EINVAL: no such owner, or an empty spec; or what KTR_PORT_MAKE_NAMED() returns.
 */
int ktr_select(unsigned owner, const char *spec, bool on, struct ktr_selection *found, char *err,
	       size_t errlen);
/**
 * As ktr_select(), with n specs, each with its NUL. Either all of them are switched, or none,
 * if one of them is refused. *found has the sums.
 */
int ktr_select_list(unsigned owner, const char *specs, unsigned n, bool on,
		    struct ktr_selection *found, char *err, size_t errlen);
/** Switches exactly those sites on for an owner that want(site, arg) says; the others off. */
void ktr_select_all(unsigned owner, bool (*want)(const struct ktr_site *site, void *arg),
		    void *arg);
/** Switches each site as its owners say. For the other files of ktr/; control lock. */
void ktr_sites_apply(void);
/** True: spec names the site, by glob over file:line, function or format, or as a probe. */
bool ktr_site_matches(const struct ktr_site *site, const char *glob);

/** Gives a CPU its ring of ktr_entries_get() entries, before it records. 0 or -ENOMEM. May sleep.
 */
int ktr_cpu_init(unsigned cpu);

/** Entries of each ring. */
unsigned ktr_entries_get(void);
/**
 * Changes the size of all rings: 4 to 2^24 entries, rounded up to a power of two. The newest
 * entries that fit stay, or a few thousand if CPUs record faster than this one copies; sequence
 * numbers run on. -EINVAL: out of range. -ENOMEM: the old rings
 * stay, nothing is lost.
 */
int ktr_resize(unsigned entries);
/** Empties all rings. What was in them counts as overwritten. */
void ktr_clear(void);

/** A CPU's accounting, in events: recorded = delivered + resident + overwritten. */
struct ktr_stats {
	uint64_t recorded;  /* since start-up */
	uint64_t delivered; /* taken by the accounting stream's sink (ktr/stream.h) */
	uint64_t resident;  /* in the ring, not yet delivered */
	/* Lost to newer ones, to a smaller ring, or to clearing. An event that stands in a frame is
	 * counted here, too, until a sink takes the frame. */
	uint64_t overwritten;
	uint64_t suppressed; /* not recorded: CPU masked off, the flush thread's own, no ring */
	uint64_t dropped;    /* not recorded: no room (KTR_POLICY_FILL) */
	uint64_t cleared;    /* of overwritten: by ktr_clear() or a smaller ring */
	/* Of overwritten: stand in no frame, and were not cleared. */
	uint64_t lost;
};

struct ktr_log;

/** False: no such CPU. Exact while nothing is recorded on the CPU. Takes the control lock. */
bool ktr_log_stats(const struct ktr_log *log, unsigned cpu, struct ktr_stats *stats);
/** ktr_log_stats() with the control lock held, or the machine stopped. */
bool ktr_log_stats_locked(const struct ktr_log *log, unsigned cpu, struct ktr_stats *stats);
/** ktr_log_stats() for the main log. */
bool ktr_stats_get(unsigned cpu, struct ktr_stats *stats);
