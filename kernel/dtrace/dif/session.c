/*
 * session.c - clauses at trace points, in any kernel: loads an image, runs its programs, and takes
 * what they have recorded.
 *
 * Locking: each CPU has a lock, which is held with interrupts off. The CPU's programs run under it.
 * Whoever takes or changes what belongs to the CPU holds it, too, one such lock at a time, and has
 * hooks off on the CPU where he runs (ktr/hook.h). So no CPU needs to interrupt another one, and a
 * firing waits for one such piece of work at most. What the hook finds in `session` changes while
 * `runs` is false, and after each lock was held once.
 */
#include "kernel/dtrace/dif/session.h"
#include "kernel/abi/errno.h"
#include "kernel/dtrace/port.h"
#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/str.h"
#include "ktr/stream.h"

static struct {
	uint32_t lock;
} __attribute__((aligned(64))) session_locks[KTR_PORT_MAXCPU];

static struct {
	struct dif d;
	bool runs; /* atomic: the hook may look at the rest */
	bool starts;
	bool owned; /* `owner` is one */
	unsigned owner;
	uint64_t refused;  /* the owner's firings that were refused before the image came */
	uint64_t alive;    /* atomic: the log's time when the host last said something */
	uint64_t patience; /* it may be silent so long */
	int taken_aggs;    /* the CPU whose aggregations were taken, and are still used; -1: none */
	uint32_t ids;      /* one more than the highest id of a probe */
	uint32_t *first;   /* of the clauses at a probe, by its id; the next id's: where they end */
	struct session_ecb *ecbs;
	struct dtrace_probe *probes;
	uint32_t necbs, nprobes;
	struct dtrace_seen *seen; /* of each CPU: programs read texts there */
	void *block;              /* all of these */
} session = {.taken_aggs = -1};

extern const char __rodata_start[] __attribute__((weak));
extern const char __rodata_end[] __attribute__((weak));

/* A program may end the session on any CPU. */
static uint32_t
session_state(void)
{
	return __atomic_load_n(&session.d.state, __ATOMIC_RELAXED);
}

/* ---- firing ---- */

static void
session_lock(unsigned cpu)
{
	while (__atomic_exchange_n(&session_locks[cpu].lock, 1, __ATOMIC_ACQUIRE) != 0)
		;
}

static void
session_unlock(unsigned cpu)
{
	__atomic_store_n(&session_locks[cpu].lock, 0, __ATOMIC_RELEASE);
}

void
dif_session_hear(void)
{
	uint64_t now = dif_port_stamp();

	__atomic_store_n(&session.d.alive_ns, dif_port_ns(now), __ATOMIC_RELAXED);
	__atomic_store_n(&session.alive, now, __ATOMIC_RELAXED);
}

/* Nobody watches the host but firings, and there may be few: each looks. dif_is_alive() decides. */
static inline bool
session_is_late(void)
{
	uint64_t alive = __atomic_load_n(&session.alive, __ATOMIC_RELAXED);

	return __builtin_expect(dif_port_stamp() - alive > session.patience, 0);
}

/* Runs the clauses at a probe. The CPU's lock is held. forced: whatever the limit is. */
static inline void
session_run(uint32_t id, unsigned cpu, const struct ktr_firing *f, bool forced)
{
	const struct session_ecb *e = &session.ecbs[session.first[id]];
	const struct session_ecb *end = &session.ecbs[session.first[id + 1]];
	struct dif_cpu *c = &session.d.cpu[cpu];

	for (; e < end; e++) {
		if (forced)
			c->fired++;
		else if ((session_is_late() || !dif_admit(c)) &&
			 !dif_is_alive(&session.d, c, dif_port_time()))
			continue;
		dif_fire(&e->at, c, dtrace_see(e->probe, f, &session.seen[cpu]));
	}
}

void
dif_session_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	uint64_t args[DIF_ERROR_ARGS];
	struct ktr_firing error = *f;
	unsigned cpu = (unsigned)(c - at->d->cpu);

	if (at->probe == DIF_PROBE_ERROR)
		return;
	dif_error_args(at->d, cpu, at->clause, args);
	error.args = args;
	error.nargs = DIF_ERROR_ARGS;
	session_run(DIF_PROBE_ERROR, cpu, &error, true);
}

static void
session_hook(const struct ktr_firing *f)
{
	unsigned cpu = ktr_port_cpu();
	uint32_t id = DTRACE_OWN + ktr_site_number(f->site);

	session_lock(cpu);
	/* acquire: pairs with the release in dif_session_start() */
	if (__atomic_load_n(&session.runs, __ATOMIC_ACQUIRE) && cpu < session.d.cpus)
		session_run(id, cpu, f, false);
	session_unlock(cpu);
}

/* ---- calls on a CPU's part ---- */

enum { SESSION_HERE = KTR_PORT_MAXCPU };

struct session_call {
	void (*fn)(unsigned cpu, void *arg);
	unsigned cpu;
	void *arg;
};

static void
session_call_locked(void *arg)
{
	const struct session_call *call = arg;
	unsigned cpu = call->cpu == SESSION_HERE ? ktr_port_cpu() : call->cpu;

	session_lock(cpu);
	call->fn(cpu, call->arg);
	session_unlock(cpu);
}

/* Runs fn while no program runs on the CPU, or on this one. */
static void
session_on_cpu(unsigned cpu, void (*fn)(unsigned cpu, void *arg), void *arg)
{
	struct session_call call = {fn, cpu, arg};

	ktr_hook_without(session_call_locked, &call);
}

static void
session_do_nothing(unsigned cpu, void *arg)
{
	(void)cpu, (void)arg;
}

/* Programs that run have ended, and later ones see what was changed before. */
static void
session_barrier(void)
{
	for (unsigned cpu = 0; cpu < KTR_PORT_MAXCPU; cpu++)
		session_on_cpu(cpu, session_do_nothing, NULL);
}

static void
session_fire_here(unsigned cpu, void *arg)
{
	uint32_t id = *(const uint32_t *)arg;
	const struct ktr_firing f = {.site = dtrace_own[id]};

	session_run(id, cpu < session.d.cpus ? cpu : 0, &f, true);
}

/* BEGIN or END. */
static void
session_fire_own(uint32_t id)
{
	session_on_cpu(SESSION_HERE, session_fire_here, &id);
}

/* ---- clauses ---- */

unsigned
dif_session_cpus(void)
{
	unsigned cpus = 1;

	for (unsigned cpu = cpus; cpu < KTR_PORT_MAXCPU; cpu++)
		if (ktr_log_ring(&ktr_main, cpu) != NULL)
			cpus = cpu + 1;
	return cpus;
}

/* Does dtrace know the site, from the kernel's ELF? It knows none that was made at run time. */
static bool
session_knows(uint32_t id)
{
	const struct ktr_site *site = dtrace_probe_site(id);

	return dtrace_probe_id(site) == id && ktr_site_is_probe(site) &&
	       site->kind != KTR_SITE_MADE;
}

/* The probes at a rate come after all others. */
static uint32_t
session_rate_id(uint32_t n)
{
	return DTRACE_OWN + ktr_site_count() + n;
}

/* What a probe is called. False: no clause can be at it. */
static bool
session_describe(uint32_t id, struct dtrace_probe *p)
{
	uint32_t rate = id - session_rate_id(0);

	if (id >= DTRACE_OWN && rate < dif_rates_count) {
		*p = (struct dtrace_probe){.name = {.provider = "profile", .function = ""},
					   .id = id,
					   .made = true};
		ktr_copy(p->name.name, dif_rates[rate].name, sizeof(dif_rates[rate].name));
		return true;
	}
	if (id < DIF_PROBE_BEGIN || !session_knows(id))
		return false;
	dtrace_probe_describe(p, dtrace_probe_site(id), true);
	return true;
}

/* Makes the clauses at each probe, by the probes' ids and in the image's order; or counts them. */
static void
session_match(bool make)
{
	struct dtrace_probe p;
	struct dif *d = &session.d;
	uint32_t ecbs = 0, probes = 0;

	for (uint32_t id = 0; id < session.ids; id++) {
		uint32_t before = ecbs;

		if (make)
			session.first[id] = ecbs;
		if (!session_describe(id, &p))
			continue;
		for (uint32_t i = 0; i < d->h.clauses.count; i++) {
			unsigned n =
			    ktr_probe_name_matches(&p.name, d->strings + d->clauses[i].probes);

			for (; n > 0; n--, ecbs++)
				if (make)
					session.ecbs[ecbs] =
					    (struct session_ecb){dif_at(d, i, id, ecbs + 1),
								 &session.probes[probes]};
		}
		if (ecbs > before && make)
			session_describe(id, &session.probes[probes]);
		probes += ecbs > before;
	}
	if (make)
		session.first[session.ids] = ecbs;
	session.necbs = ecbs;
	session.nprobes = probes;
}

/* The first pass, without a base, only counts the bytes. */
static size_t
session_lay_out(uint8_t *base)
{
	size_t at = 0;
#define SESSION_CARVE(member, n)                                            \
	do {                                                                \
		session.member = base != NULL ? (void *)(base + at) : NULL; \
		at += ((size_t)(n) * sizeof(*session.member) + 63) & ~63ul; \
	} while (0)
	SESSION_CARVE(seen, session.d.cpus);
	SESSION_CARVE(probes, session.nprobes);
	SESSION_CARVE(ecbs, session.necbs);
	SESSION_CARVE(first, session.ids + 1);
#undef SESSION_CARVE
	return at;
}

/* Each name of a clause is compared with each probe. Clauses may share long texts. */
static bool
session_names_fit(void)
{
	const struct dif *d = &session.d;
	uint64_t most = (1u << 28) / session.ids, letters = 0;

	for (uint32_t i = 0; i < d->h.clauses.count && letters <= most; i++)
		letters += ktr_strlen(d->strings + d->clauses[i].probes);
	return letters <= most;
}

static int
session_settle(const char **why)
{
	size_t size;

	session.ids = session_rate_id(dif_rates_count);
	if (!session_names_fit()) {
		*why = "the clauses have more names of probes than the kernel compares";
		return -EINVAL;
	}
	session_match(false);
	size = session_lay_out(NULL);
	session.block = dif_port_alloc(size);
	if (session.block == NULL)
		return -ENOMEM;
	session_lay_out(session.block);
	session_match(true);
	dif_port_direct[0] =
	    (struct dif_port_range){(uintptr_t)__rodata_start,
				    (uintptr_t)__rodata_end - (uintptr_t)__rodata_start};
	dif_port_direct[1] = (struct dif_port_range){(uintptr_t)session.block, size};
	return 0;
}

static int
session_own(const char **why)
{
	int owner;

	if (session.owned)
		return 0;
	owner = ktr_owner_register("dtrace", session_hook);
	if (owner < 0) {
		*why = "the log has no number left for an owner of probes";
		return -EINVAL;
	}
	session.owner = (unsigned)owner;
	session.owned = true;
	return 0;
}

int
dif_session_load(const void *image, size_t size, uint32_t *matched, const char **why)
{
	struct dif_refusal refusal = {0, 0, NULL};
	int error;

	*why = NULL;
	if (session_state() != DIF_EMPTY)
		return -EBUSY;
	if (size >= sizeof(struct dif_header) &&
	    (((const struct dif_header *)image)->flags & DIF_KERNEL) != 0) {
		*why = "no such flag";
		return -EINVAL;
	}
	error = session_own(why);
	if (error == 0) {
		session.refused = ktr_hook_refused(session.owner);
		error = dif_load(&session.d, image, size, dif_session_cpus(), &refusal);
		*why = refusal.error;
	}
	if (error == 0)
		error = session_settle(why);
	if (error != 0)
		dif_session_end();
	*matched = session.necbs;
	return error;
}

/* ---- on and off ---- */

/* A duration by the log's clock; more than a year counts as a year. */
static uint64_t
session_ticks(uint64_t ns)
{
	const uint64_t second = 1000000000, year = 31536000;
	uint64_t hz = ktr_info_get()->hz, s = ns / second < year ? ns / second : year;

	return hz == 0 ? ns : s * hz + ns % second * hz / second;
}

static bool
session_is_wanted(const struct ktr_site *site, void *arg)
{
	uint32_t id = dtrace_probe_id(site);

	(void)arg;
	return session.starts && id >= DTRACE_OWN && session.first[id] < session.first[id + 1];
}

int
dif_session_start(void)
{
	struct dif *d = &session.d;

	if (session_state() != DIF_LOADED)
		return -EINVAL;
	session.patience = session_ticks(d->h.options.deadman_ns);
	for (struct dif_rate *r = dif_rates; r < dif_rates + dif_rates_count; r++) {
		r->period = session_ticks(r->ns) + 1;
		ktr_zero(r->due, sizeof(r->due));
	}
	dif_session_hear();
	d->state = DIF_ACTIVE;
	session_fire_own(DIF_PROBE_BEGIN);
	session_barrier(); /* all CPUs see what BEGIN did */
	for (unsigned cpu = 0; cpu < d->cpus; cpu++)
		dif_open_cpu(d, cpu);
	/* release: pairs with the acquire in session_hook() */
	__atomic_store_n(&session.runs, true, __ATOMIC_RELEASE);
	session.starts = session_state() == DIF_ACTIVE;
	if (session.starts)
		ktr_select_all(session.owner, session_is_wanted, NULL);
	return 0;
}

static void
session_stop(bool killed)
{
	struct dif *d = &session.d;

	if (session_state() != DIF_ACTIVE && session_state() != DIF_DRAINING)
		return;
	killed |= __atomic_load_n(&d->starved, __ATOMIC_RELAXED);
	dif_drain(d, 0);
	__atomic_store_n(&session.runs, false, __ATOMIC_RELAXED);
	session_barrier(); /* END comes after all others */
	if (!killed)
		session_fire_own(DIF_PROBE_END);
	session.starts = false;
	ktr_select_all(session.owner, session_is_wanted, NULL);
	d->state = killed ? DIF_KILLED : DIF_STOPPED;
}

void
dif_session_stop(void)
{
	session_stop(false);
}

void
dif_session_end(void)
{
	session_stop(true);
	session.taken_aggs = -1;
	dif_port_free(session.block);
	session.block = NULL;
	session.necbs = session.nprobes = 0;
	dif_unload(&session.d);
}

/* ---- probes at a rate ---- */

int
dif_session_rate(const void *name, size_t n, uint64_t ns)
{
	int rate = session_state() != DIF_EMPTY ? -EBUSY : dif_rate_add(name, n, ns);

	return rate < 0 ? rate : (int)session_rate_id((uint32_t)rate);
}

static void
session_tick(unsigned cpu, void *arg)
{
	uint64_t now = dif_port_stamp();

	/* acquire: as in session_hook() */
	if (!__atomic_load_n(&session.runs, __ATOMIC_ACQUIRE) || cpu >= session.d.cpus)
		return;
	for (uint32_t n = 0; n < dif_rates_count; n++)
		if (dif_rate_is_due(&dif_rates[n], cpu, now))
			session_run(session_rate_id(n), cpu, arg, false);
}

void
dif_tick(uint64_t pc, bool user)
{
	const uint64_t args[2] = {user ? 0 : pc, user ? pc : 0};
	struct ktr_firing f = {.site = dtrace_own[DIF_PROBE_BEGIN],
			       .args = args,
			       .nargs = 2,
			       .where = {.pc = (uintptr_t)pc}};

	__atomic_store_n(&dif_rates_tick, true, __ATOMIC_RELAXED);
	if (__atomic_load_n(&session.runs, __ATOMIC_RELAXED))
		session_on_cpu(SESSION_HERE, session_tick, &f);
}

/* ---- what comes out ---- */

static void
session_clean(unsigned cpu, void *arg)
{
	(void)arg;
	dif_spec_clean(&session.d, cpu);
}

/* Of a CPU what has fired has ended. */
static void
session_count(unsigned cpu, void *arg)
{
	dif_status_add(&session.d, cpu, arg);
}

static void
session_count_fault(unsigned cpu, void *arg)
{
	dif_status_fault(&session.d, cpu, arg);
}

void
dif_session_status(struct dif_status *s)
{
	dif_session_hear();
	for (unsigned cpu = 0; cpu < session.d.cpus; cpu++)
		for (uint32_t n = 0;
		     n < session.d.h.options.nspec && dif_spec_waits(&session.d, cpu); n++)
			session_on_cpu(cpu, session_clean, NULL);
	dif_status_begin(&session.d, s);
	for (unsigned cpu = 0; cpu < s->cpus; cpu++)
		session_on_cpu(cpu, session_count, s);
	if (s->cpus > 0)
		session_on_cpu(__atomic_load_n(&session.d.fault_cpu, __ATOMIC_RELAXED),
			       session_count_fault, s);
	s->sites = session.starts ? session.nprobes : 0;
	s->refused = session.owned ? ktr_hook_refused(session.owner) - session.refused : 0;
}

static void
session_count_drops(unsigned cpu, void *arg)
{
	struct dif_drops *drops = arg;

	drops->buf_drops = session.d.cpu[cpu].buf_drops;
	drops->agg_drops = session.d.cpu[cpu].agg_drops;
}

int
dif_session_drops(struct dif_drops *drops)
{
	if (session_state() == DIF_EMPTY || drops->cpu >= session.d.cpus)
		return -EINVAL;
	session_on_cpu(drops->cpu, session_count_drops, drops);
	return 0;
}

static void
session_take_records(unsigned cpu, void *arg)
{
	struct dif_taken *t = arg;

	dif_record_take(&session.d, cpu, t->piece, t->size);
}

static void
session_take_aggs(unsigned cpu, void *arg)
{
	struct dif_taken *t = arg;

	t->size[0] = dif_agg_take(&session.d, cpu, &t->piece[0]);
}

int
dif_session_take(enum dif_take what, unsigned cpu, struct dif_taken *to)
{
	const struct dif *d = &session.d;
	uint32_t state = session_state();

	*to = (struct dif_taken){{NULL, NULL}, {0, 0}};
	if (state == DIF_EMPTY || cpu >= d->cpus ||
	    (what == DIF_TAKE_RECORDS && d->h.options.policy != DIF_SWITCH &&
	     (state == DIF_ACTIVE || state == DIF_DRAINING)))
		return -EINVAL;
	if (what == DIF_TAKE_AGGS) {
		if (session.taken_aggs >= 0)
			dif_agg_done(&session.d, (unsigned)session.taken_aggs);
		session_on_cpu(cpu, session_take_aggs, to);
		session.taken_aggs = (int)cpu;
	} else {
		session_on_cpu(cpu, session_take_records, to);
		for (unsigned i = 0; i < 2; i++)
			dif_record_times(to->piece[i], to->size[i]);
	}
	return 0;
}
