/*
 * profile.c - probes that fire at a rate: profile-N and tick-N (profile.h).
 *
 * Each CPU has its own times, which are multiples of the interval after the time at which it found
 * the probe on: so they do not drift. What a stopped CPU misses is not made up for.
 *
 * Locking: the control lock for which probes there are. CPUs read them without, in the timer
 * interrupt; so a probe goes only after all CPUs have taken an interrupt.
 */
#include "kernel/probe/profile.h"

#include <ktr_port.h>

#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/rate.h"
#include "kernel/sync/pcpu.h"
#include "ktr/dynamic.h"
#include "ktr/glob.h"
#include "ktr/hook.h"
#include "ktr/port.h"
#include "ktr/probe.h"

#define SLOTS 32

static struct profile {
	struct ktr_site *site; /* atomic; NULL: none */
	uint64_t period_ns;
	bool tick;              /* on CPU 0 only */
	uint64_t request;       /* that named it last; control lock */
	uint64_t due[MAX_CPUS]; /* each CPU's own; 0: the probe was off when it last looked */
} profiles[SLOTS];
static uint64_t request; /* the one that goes on; control lock */

static void
profile_fire(const struct ktr_site *site, const struct arch_trapframe *tf)
{
	bool user = arch_tf_user(tf);
	uintptr_t pc = arch_tf_pc(tf);
	const uint64_t args[2] = {user ? 0 : pc, user ? pc : 0};

	ktr_fire(
	    &(struct ktr_firing){.site = site,
				 .args = args,
				 .nargs = 2,
				 .where = {.pc = pc, .fp = user ? 0 : arch_tf_fp(tf), .regs = tf}});
}

/* Fires the probe on CPU `cpu` if it is on and due. Returns when it is due next. */
static uint64_t
profile_one(struct profile *p, unsigned cpu, uint64_t now, const struct arch_trapframe *tf)
{
	/* acquire: pairs with the release of its making */
	const struct ktr_site *site = __atomic_load_n(&p->site, __ATOMIC_ACQUIRE);
	uint64_t *due = &p->due[cpu];

	if (site == NULL || __atomic_load_n(&site->on, __ATOMIC_RELAXED) == KTR_SITE_OFF ||
	    (p->tick && cpu != 0)) {
		*due = 0;
		return UINT64_MAX;
	}
	if (*due == 0)
		*due = now + p->period_ns;
	if (*due > now)
		return *due;
	*due += ((now - *due) / p->period_ns + 1) * p->period_ns;
	profile_fire(site, tf);
	return *due;
}

static void
profile_run(void)
{
	struct pcpu *pc = this_pcpu();
	uint64_t now = clock_ns(), next = UINT64_MAX;

	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t due = profile_one(&profiles[i], arch_cpu(), now, pc->timer_tf);

		next = due < next ? due : next;
	}
	pc->profile_ns = next;
}
HOOK(profile_due, profile_run);

/* Finds a slot never used, or frees one whose probe is off. NULL: all are on, or will be. */
static struct profile *
take_slot(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (profiles[i].site == NULL)
			return &profiles[i];
	for (unsigned i = 0; i < SLOTS; i++) {
		struct ktr_site *site = profiles[i].site;

		if (site->owners != 0 || profiles[i].request == request)
			continue;
		__atomic_store_n(&profiles[i].site, NULL, __ATOMIC_RELAXED);
		ktr_port_sync(); /* no CPU uses it any more */
		ktr_site_free(site);
		return &profiles[i];
	}
	return NULL;
}

/* Makes the probe of that name, with the text after the dash. */
static int
profile_make(const char *name, const char *after, char *err, size_t errlen)
{
	char fmt[KTR_PROBE_TEXT + 32];
	const struct ktr_dynamic d = {.provider = "profile",
				      .module = "",
				      .function = "",
				      .name = name,
				      .file = __FILE__,
				      .line = __LINE__,
				      .fmt = fmt,
				      .nargs = 2,
				      .types = {"uintptr_t", "uintptr_t"}};
	uint64_t period = rate_period(after, err, errlen);
	struct profile *p;
	struct ktr_site *site;

	if (period == 0)
		return -EINVAL;
	p = take_slot();
	if (p == NULL) {
		snprintf(err, errlen,
			 "%d probes of profile are on or asked for: expected at most as many",
			 SLOTS);
		return -ENOSPC;
	}
	snprintf(fmt, sizeof(fmt), "profile:::%s: pc %%#lx user %%#lx", name);
	site = ktr_site_make(&d, err, errlen);
	if (site == NULL)
		return -ENOSPC;
	p->period_ns = period;
	p->tick = name[0] == 't';
	p->request = request;
	memset(p->due, 0, sizeof(p->due));
	/* release: pairs with the acquire of profile_one() */
	__atomic_store_n(&p->site, site, __ATOMIC_RELEASE);
	return 0;
}

/* Makes the probe at a rate that n characters of a spec name, unless it is there. */
static int
profile_make_spec(const char *spec, size_t n, char *err, size_t errlen)
{
	char name[KTR_PROBE_TEXT];
	size_t skip = n >= 7 && memcmp(spec, "profile", 7) == 0 ? 7 : 0;

	if (n < skip + 3 || n - skip - 3 >= sizeof(name) || memcmp(spec + skip, ":::", 3) != 0)
		return 0;
	memcpy(name, spec + skip + 3, n - skip - 3);
	name[n - skip - 3] = '\0';
	if ((strncmp(name, "profile-", 8) != 0 && strncmp(name, "tick-", 5) != 0) ||
	    ktr_glob_is_pattern(name))
		return 0;
	for (unsigned i = 0; i < SLOTS; i++)
		if (profiles[i].site != NULL && strcmp(profiles[i].site->sdt->name, name) == 0) {
			profiles[i].request = request;
			return 0;
		}
	return profile_make(name, strchr(name, '-') + 1, err, errlen);
}

int
profile_make_named(const char *spec, bool first, char *err, size_t errlen)
{
	int error = 0;

	request += first;
	while (error == 0) {
		size_t n = 0;

		while (spec[n] != '\0' && spec[n] != ',')
			n++;
		error = profile_make_spec(spec, n, err, errlen);
		if (spec[n] == '\0')
			break;
		spec += n + 1;
	}
	return error;
}
