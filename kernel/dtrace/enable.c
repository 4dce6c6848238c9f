/*
 * enable.c - clauses at probes. Each probe has a list of the clauses that name it, of all
 * consumers. The owner `dtrace` (ktr/control.h) has switched on the probes whose lists are not
 * empty.
 *
 * BEGIN, END and ERROR are sites like all others, but without a place in the code. A firing of
 * BEGIN or END says for which consumer it is. An ERROR needs no firing: its clauses run in the
 * firing that has failed.
 */
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/probe/uprobe.h"
#include "kernel/sched/timer.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sync/smp.h"
#include "ktr/control.h"
#include "ktr/event.h"
#include "ktr/port.h"
#include "ktr/sdt.h"

#define WITHIN_MAX 4u         /* firings within firings */
#define ECBS_MAX   (1u << 20) /* clauses at probes, of one consumer */
#define NAMES_MAX  (1u << 20) /* bytes of all clauses' names, which may share one long text */

struct mutex dtrace_lock = MUTEX_INIT("dtrace");

static int owner = -1;
static uint64_t within_refused; /* atomic; of dtrace_fire_within() */
/*
 * For each site, by its number, its first clause. The bit SLOW is set if that is not the only one,
 * the firing needs more than the clause, or its predicate can be cached. dtrace_lock; atomic
 */
static uintptr_t *sites;
static uintptr_t sites_bias; /* where it would begin for a site at address 0 */
#define SLOW ((uintptr_t)1)
#define ASKS ((uintptr_t)2) /* and SLOW: it is the only one; its predicate can be cached */

/* A site has 64 bytes, so a shift makes of its address the place in `sites`. */
static inline uintptr_t *
first_of(const struct ktr_site *site)
{
	_Static_assert(sizeof(struct ktr_site) == 8 * sizeof(*sites), "a shift by 3");
	return (uintptr_t *)(sites_bias + ((uintptr_t)site >> 3));
}

uint64_t
dtrace_machine_ns(void)
{
	return __atomic_load_n(&pcpus[0]->ticks, __ATOMIC_RELAXED) * (1000000000 / HZ);
}

uint64_t
dtrace_refused(void)
{
	return owner < 0 ? 0
			 : ktr_hook_refused((unsigned)owner) +
			       __atomic_load_n(&within_refused, __ATOMIC_RELAXED);
}

/* ---- firing ---- */

/* ERROR's clauses run in the firing that has failed, and see its place. */
void
dif_port_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	const struct dtrace_consumer *consumer = ((const struct dtrace_ecb *)at)->consumer;
	unsigned cpu = (unsigned)(c - at->d->cpu);
	uint64_t args[DIF_ERROR_ARGS];
	struct ktr_firing error = *f;

	if (at->probe == DIF_PROBE_ERROR)
		return;
	dif_error_args(at->d, cpu, at->clause, args);
	error.args = args;
	error.nargs = DIF_ERROR_ARGS;
	for (const struct dtrace_ecb *e = consumer->error; e != NULL; e = e->next) {
		c->fired++;
		dif_fire(&e->at, c, &error);
	}
}

static void
ecb_fire(const struct dtrace_ecb *e, struct dif_cpu *c, const struct ktr_firing *f)
{
	struct dtrace_seen seen;

	dif_fire(&e->at, c, dtrace_see(e->probe, f, &seen));
}

static const struct dtrace_ecb *
first_at(const struct ktr_site *site)
{
	uintptr_t first = __atomic_load_n(first_of(site), __ATOMIC_ACQUIRE);

	return (const struct dtrace_ecb *)(first & ~(SLOW | ASKS));
}

struct call {
	void (*fn)(struct dtrace_consumer *c, unsigned cpu, void *arg);
	struct dtrace_consumer *c;
	void *arg;
	unsigned cpu;
};

/* BEGIN and END, only of the consumer that the firing names. False: it is none of these. */
static __attribute__((noinline)) bool
fire_own(const struct ktr_firing *f, unsigned cpu)
{
	if (f->site != dtrace_own[DIF_PROBE_BEGIN] && f->site != dtrace_own[DIF_PROBE_END])
		return false;
	for (const struct dtrace_ecb *e = first_at(f->site); e != NULL; e = e->next) {
		struct dif_cpu *c = &e->cpus[cpu];

		if (e->consumer == f->data &&
		    (f->site == dtrace_own[DIF_PROBE_END] || e->consumer->d.state == DIF_ACTIVE)) {
			c->fired++;
			ecb_fire(e, c, f);
		}
	}
	return true;
}

/* All that a probe needs but the simplest. */
static __attribute__((noinline)) void
hook_list(const struct ktr_firing *f)
{
	unsigned cpu = arch_cpu();

	if (__builtin_expect(f->has_data, 0) && fire_own(f, cpu))
		return;
	for (const struct dtrace_ecb *e = first_at(f->site); e != NULL;
	     e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE)) {
		struct dif_cpu *c = &e->cpus[cpu];

		if (dif_admit(c) || dif_is_alive(&e->consumer->d, c, dtrace_machine_ns()))
			ecb_fire(e, c, f);
	}
}

/* As the cache of predicates has it, or 0. */
static uint64_t
ecb_predicate(const struct dtrace_ecb *e)
{
	const struct dtrace_consumer *c = e->consumer;
	uint32_t number = c->d.predicates[e->at.clause].number;

	return number == 0 || c->upcall != NULL
		   ? 0
		   : KTR_PREDICATE((unsigned)owner, c->predicates + number);
}

/*
 * A single clause, whose predicate asks for nothing but the thread. If it is false, it is false
 * for this thread until that has another name, so its functions need not fire (ktr/hook.h).
 */
static __attribute__((noinline)) void
ecb_ask(const struct ktr_firing *f, const struct dtrace_ecb *e)
{
	struct dif_cpu *c = &e->cpus[arch_cpu()];
	struct thread *t = curthread();
	uint32_t changes = thread_predcache_changes(t);
	uint64_t was_false = c->ended[1], faulted = c->faulted;

	if (!dif_admit(c))
		return hook_list(f);
	dif_fire(&e->at, c, f);
	if (c->ended[1] != was_false && c->faulted == faulted)
		thread_predcache_set(t, ecb_predicate(e), changes);
}

static __attribute__((noinline)) void
hook_slow(const struct ktr_firing *f, uintptr_t first)
{
	const struct dtrace_ecb *e = (const struct dtrace_ecb *)(first & ~(SLOW | ASKS));

	return (first & ASKS) != 0 ? ecb_ask(f, e) : hook_list(f);
}

/* A single clause takes the short way. */
static void
ecb_hook(const struct ktr_firing *f)
{
	uintptr_t first = __atomic_load_n(first_of(f->site), __ATOMIC_ACQUIRE);
	const struct dtrace_ecb *e = (const struct dtrace_ecb *)first;
	struct dif_cpu *c;

	if (__builtin_expect((first & SLOW) != 0, 0))
		return hook_slow(f, first);
	c = &e->cpus[arch_cpu()];
	if (__builtin_expect(!dif_admit(c), 0))
		return hook_list(f);
	dif_fire(&e->at, c, f);
}

void
dif_port_upcall(const struct dif_at *at, const struct ktr_firing *f, int32_t imm,
		const uint64_t *args)
{
	((const struct dtrace_ecb *)at)->consumer->upcall(f, imm, args);
}

void
dtrace_fire_within(struct ktr_firing *f)
{
	static uint8_t depth[MAX_CPUS];
	unsigned cpu = arch_cpu();

	ktr_fire_within(f);
	if (owner < 0 || first_at(f->site) == NULL)
		return;
	if (depth[cpu] == WITHIN_MAX) {
		__atomic_fetch_add(&within_refused, 1, __ATOMIC_RELAXED);
		return;
	}
	depth[cpu]++;
	for (const struct dtrace_ecb *e = first_at(f->site); e != NULL;
	     e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE)) {
		struct dif_cpu *c = &e->cpus[cpu];
		struct dif_run outer = c->run; /* of the firing that has called, perhaps */

		if (!dif_admit(c) && !dif_is_alive(&e->consumer->d, c, dtrace_machine_ns()))
			continue;
		dif_run_reset(&c->run);
		c->run.top = outer.top; /* its texts, and what it holds, stay */
		c->run.keeps = c->holds % 2 != 0;
		ecb_fire(e, c, f);
		c->run = outer;
	}
	depth[cpu]--;
}

static __attribute__((noinline)) void
fire_for(const struct ktr_site *site, const void *data)
{
	struct ktr_firing f = {.site = site, .has_data = true, .data = data, .len = 1};

	f.where.pc = (uintptr_t)__builtin_return_address(0);
	f.where.fp = *(const uintptr_t *)__builtin_frame_address(0); /* the caller's, as the pc */
	ktr_fire(&f);
}

static void
call_here(void *arg)
{
	const struct call *call = arg;

	call->fn(call->c, call->cpu, call->arg);
}

static void
call_on(void *arg)
{
	ktr_hook_without(call_here, arg);
}

void
dtrace_on_cpu(unsigned cpu, void (*fn)(struct dtrace_consumer *c, unsigned cpu, void *arg),
	      struct dtrace_consumer *c, void *arg)
{
	struct call call = {fn, c, arg, cpu};

	smp_call_one(cpu, call_on, &call);
}

/* ---- on and off ---- */

static bool
dtrace_is_wanted(const struct ktr_site *site, void *arg)
{
	return (first_at(site) != NULL && ktr_site_is_probe(site)) ||
	       dtrace_probe_id(site) < DTRACE_OWN;
}

static void
ecb_barrier(void *arg)
{
}

/* Puts e into the list of its site, as the last, or takes out the consumer's first. */
static void
ecb_change(struct dtrace_ecb *e, bool insert)
{
	struct ktr_site *site = dtrace_probe_site(e->at.probe);
	uintptr_t *at_site = first_of(site);
	struct dtrace_ecb *first = (struct dtrace_ecb *)(*at_site & ~(SLOW | ASKS));
	struct dtrace_ecb **at = e->at.probe == DIF_PROBE_ERROR ? &e->consumer->error : &first;
	struct dtrace_ecb **list = at;
	bool slow, asks;

	while (*at != NULL && (insert || (*at)->consumer != e->consumer))
		at = &(*at)->next;
	if (insert) {
		e->next = NULL;
		__atomic_store_n(at, e, __ATOMIC_RELEASE);
	} else if (*at != NULL) {
		__atomic_store_n(at, (*at)->next, __ATOMIC_RELEASE);
	}
	if (list != &first)
		return;
	/* The first one's: of the same site another consumer may want to know less. */
	slow = first == NULL || first->next != NULL || first->at.probe < DTRACE_OWN ||
	       first->probe->sysret || first->probe->texts != 0;
	asks = ktr_hook_predicate(site, slow ? 0 : ecb_predicate(first));
	__atomic_store_n(at_site, (uintptr_t)first | (slow ? SLOW : 0) | (asks ? SLOW | ASKS : 0),
			 __ATOMIC_RELEASE);
}

static enum part {
	PART_OWN,  /* BEGIN, END and ERROR */
	PART_MADE, /* probes that can be unmade, unless somebody has switched them on */
	PART_REST
} part_of(const struct dtrace_ecb *e)
{
	return e->at.probe < DTRACE_OWN ? PART_OWN : e->probe->made ? PART_MADE : PART_REST;
}

static void
consumer_enable(struct dtrace_consumer *c, enum part part)
{
	for (uint32_t i = 0; i < c->necbs; i++) {
		if (part_of(&c->ecbs[i]) != part)
			continue;
		ecb_change(&c->ecbs[i], true);
		c->enabled = true;
	}
}

/* A CPU that stands at an element goes on from there: its link stays. */
static void
consumer_disable(struct dtrace_consumer *c)
{
	for (uint32_t i = 0; i < c->necbs; i++)
		ecb_change(&c->ecbs[i], false);
	c->enabled = false;
	ktr_select_all((unsigned)owner, dtrace_is_wanted, NULL);
	smp_call_all(ecb_barrier, NULL); /* firings have interrupts off: none is under way now */
}

int
dtrace_go(struct dtrace_consumer *c)
{
	if (c->d.state != DIF_LOADED)
		return -EINVAL;
	c->d.alive_ns = dtrace_machine_ns();
	__atomic_store_n(&c->d.state, DIF_ACTIVE, __ATOMIC_RELEASE);
	consumer_enable(c, PART_OWN);
	c->enabled = true;
	fire_for(dtrace_own[DIF_PROBE_BEGIN], c);
	/* Programs run on all CPUs only from here on, though probes that were made for this
	 * consumer are on already. All CPUs see what BEGIN did. */
	smp_call_all(ecb_barrier, NULL);
	for (unsigned i = 0; i < c->d.cpus && !c->waits; i++)
		dif_open_cpu(&c->d, i);
	if (c->d.state == DIF_ACTIVE) {
		consumer_enable(c, PART_REST);
		ktr_select_all((unsigned)owner, dtrace_is_wanted, NULL);
	}
	return 0;
}

void
dtrace_stop(struct dtrace_consumer *c, bool killed)
{
	if (!c->enabled || (c->d.state == DIF_LOADED && !killed))
		return;
	killed |= __atomic_load_n(&c->d.starved, __ATOMIC_RELAXED);
	dif_drain(&c->d, 0);
	smp_call_all(ecb_barrier, NULL); /* END comes after all others */
	if (!killed)
		fire_for(dtrace_own[DIF_PROBE_END], c);
	consumer_disable(c);
	c->d.state = killed ? DIF_KILLED : DIF_STOPPED;
}

/* ---- clauses ---- */

static void
probe_settle(struct dtrace_probe *p, const struct ktr_site *site, bool as_d)
{
	dtrace_probe_describe(p, site, as_d);
	p->name.provider = dtrace_direct(p->name.provider);
	p->name.function = dtrace_direct(p->name.function);
}

/* How often a clause runs at a probe: once for each of its names that mean it. Control lock held.
 */
static unsigned
is_at(const struct dtrace_consumer *c, uint32_t clause, const struct ktr_site *site,
      const struct ktr_probe_name *name)
{
	unsigned n;

	if (c->only != NULL)
		return site == c->only[clause];
	n = ktr_probe_name_matches(name, c->d.strings + c->d.clauses[clause].probes);
	return n == 0 || uprobe_in_other(site, c->pids) ? 0 : n;
}

/* Each name of a clause is compared with each probe. */
static bool
names_fit(const struct dtrace_consumer *c)
{
	size_t letters = 0;

	for (uint32_t i = 0; i < c->d.h.clauses.count && letters <= NAMES_MAX; i++)
		letters += strlen(c->d.strings + c->d.clauses[i].probes);
	return letters <= NAMES_MAX;
}

/* Makes the clauses at each probe, in the order of the probes' ids and then of the image; or, if
 * not `make`, only counts them, up to somewhat more than there may be. */
static void
make_ecbs(struct dtrace_consumer *c, uint32_t *matches, bool make)
{
	uint32_t ecbs = 0, probes = 0;

	for (uint32_t id = DIF_PROBE_BEGIN; id < DTRACE_OWN + ktr_site_count() && ecbs <= ECBS_MAX;
	     id++) {
		const struct ktr_site *site = dtrace_probe_site(id);
		uint32_t before = ecbs; /* one probe adds less than NAMES_MAX */
		struct ktr_probe_name name;

		if (!ktr_site_is_probe(site) || dtrace_probe_id(site) != id)
			continue; /* BEGIN, END or ERROR once more, or none */
		ktr_probe_name(site, &name);
		for (uint32_t i = 0; i < c->d.h.clauses.count; i++) {
			unsigned n = is_at(c, i, site, &name);

			if (make && matches != NULL)
				matches[i] += n;
			for (; n > 0; n--, ecbs++)
				if (make)
					c->ecbs[ecbs] =
					    (struct dtrace_ecb){dif_at(&c->d, i, id, ecbs + 1),
								c->d.cpu, NULL, c,
								&c->probes[probes]};
		}
		if (ecbs > before) {
			if (make)
				probe_settle(&c->probes[probes], site, c->only == NULL);
			probes++;
		}
	}
	c->necbs = ecbs;
	c->nprobes = probes;
}

/* Makes the probes that are made when they are named: all clauses' at once. */
static int
make_named(struct dtrace_consumer *c, char *err, size_t errlen)
{
	int error = 0;

#ifdef KTR_PORT_MAKE_NAMED
	for (uint32_t i = 0; i < c->d.h.clauses.count && error == 0; i++)
		error =
		    KTR_PORT_MAKE_NAMED(c->d.strings + c->d.clauses[i].probes, i == 0, err, errlen);
#endif
	return error;
}

/* Switches on what could be unmade before the consumer begins. Its programs do not run yet. */
static int
dtrace_hold_site(struct dtrace_consumer *c, char *err, size_t errlen)
{
	bool gone = false;

	c->d.alive_ns = dtrace_machine_ns();
	consumer_enable(c, PART_MADE);
	if (!c->enabled)
		return 0;
	ktr_select_all((unsigned)owner, dtrace_is_wanted, NULL);
	ktr_port_lock();
	for (uint32_t i = 0; i < c->necbs && !gone; i++) {
		const struct dif_at *at = &c->ecbs[i].at;
		const struct ktr_site *site = dtrace_probe_site(at->probe);
		struct ktr_probe_name name;

		if (part_of(&c->ecbs[i]) != PART_MADE)
			continue;
		if (ktr_site_is_probe(site))
			ktr_probe_name(site, &name);
		gone = !ktr_site_is_probe(site) || !is_at(c, at->clause, site, &name);
	}
	ktr_port_unlock();
	if (gone)
		strlcpy(err, "a probe has gone meanwhile", errlen);
	return gone ? -EAGAIN : 0;
}

int
dtrace_match(struct dtrace_consumer *c, uint32_t *matches, char *err, size_t errlen)
{
	static uint64_t predicates;
	int error;

	if (!names_fit(c)) {
		strlcpy(err, "the clauses have more names of probes than the kernel compares",
			errlen);
		return -E2BIG;
	}
	c->predicates = predicates;
	predicates += c->d.h.clauses.count;
	ktr_port_lock(); /* nobody makes or frees a site between the two passes */
	error = make_named(c, err, errlen);
	if (error == 0)
		make_ecbs(c, NULL, false);
	if (error == 0 && c->necbs > ECBS_MAX) {
		snprintf(err, errlen, "the clauses' names mean more than %u probes", ECBS_MAX);
		error = -E2BIG;
	}
	if (error == 0) {
		c->ecbs = kmap_alloc((c->necbs + 1) * sizeof(*c->ecbs));
		c->probes =
		    kzalloc((c->nprobes + 1) * sizeof(*c->probes)); /* strings: read directly */
		if (c->ecbs == NULL || c->probes == NULL)
			error = -ENOMEM;
		else
			make_ecbs(c, matches, true);
	}
	ktr_port_unlock();
	return error != 0 ? error : dtrace_hold_site(c, err, errlen);
}

/* What curcpu points to (userland/root/usr/lib/dtrace/procfs.d). */
struct dtrace_cpu dtrace_cpus[MAX_CPUS];

int
dtrace_owner_begin(void)
{
	for (int i = 0; i < (int)MAX_CPUS; i++)
		dtrace_cpus[i].cpu_id = i;
	if (sites == NULL) {
		sites = kmap_alloc(ktr_site_count() * sizeof(*sites));
		if (sites == NULL)
			return -ENOMEM;
		for (unsigned i = 0; i < ktr_site_count(); i++)
			sites[i] = SLOW;
		sites_bias = (uintptr_t)sites - ((uintptr_t)ktr_site_get(0) >> 3);
	}
	owner = ktr_owner_register("dtrace", ecb_hook);
	if (owner < 0)
		return owner;
	__atomic_store_n(&within_refused, 0, __ATOMIC_RELAXED);
	ktr_select_all((unsigned)owner, dtrace_is_wanted, NULL);
	return 0;
}

void
dtrace_owner_end(void)
{
	if (owner >= 0)
		ktr_owner_unregister((unsigned)owner);
	owner = -1;
}
