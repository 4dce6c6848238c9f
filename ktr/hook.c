/*
 * hook.c - calling functions when probes fire.
 *
 * Each function that records an event (ktr/ktr.h) has a sibling here with the same parameters,
 * which does what all owners of the site want. site->fire points to one of the two.
 *
 * Locking: the control lock guards the list of hooks. Firing reads it without a lock, and with
 * interrupts off.
 */
#include "ktr/hook.h"

#include "ktr/control.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/sdt.h"

/* Records the event with 0 for arguments that the firing does not give: whoever has made the
 * probe may look for more in its events. */
static __attribute__((noinline)) void
fire_record_whole(const struct ktr_firing *f)
{
	uint64_t args[KTR_MAXARGS] = {0};
	for (unsigned i = 0; i < f->nargs && i < KTR_MAXARGS; i++)
		args[i] = f->args[i];
	if (f->has_data)
		ktr_log_record_data(&ktr_main, f->site, args, f->data, f->len);
	else
		ktr_record6(f->site, args[0], args[1], args[2], args[3],
			    (struct ktr_pair){args[4], args[5]});
}

void
ktr_fire_record(const struct ktr_firing *f)
{
	const struct ktr_site *site = f->site;
	const uint64_t *a = f->args;
	if (f->has_data || site->kind == KTR_SITE_MADE) {
		if (f->nargs == 2 && !f->has_data) /* most of those that ktr_fire() fires */
			ktr_record6(site, a[0], a[1], 0, 0, (struct ktr_pair){0, 0});
		else
			fire_record_whole(f);
		return;
	}
	switch (f->nargs) {
	case 0:
		ktr_record0(site);
		break;
	case 1:
		ktr_record1(site, a[0]);
		break;
	case 2:
		ktr_record2(site, a[0], a[1]);
		break;
	case 3:
		ktr_record3(site, a[0], a[1], a[2]);
		break;
	case 4:
		ktr_record4(site, a[0], a[1], a[2], a[3]);
		break;
	case 5:
		ktr_record5(site, a[0], a[1], a[2], a[3], (struct ktr_pair){a[4], 0});
		break;
	case 6:
		ktr_record6(site, a[0], a[1], a[2], a[3], (struct ktr_pair){a[4], a[5]});
		break;
	default:
		ktr_record_sdt7(site, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	}
}

static void
do_nothing(const struct ktr_firing *f)
{
	(void)f;
}

static void call_all(const struct ktr_firing *f);

/*
 * What hook_fire() calls, by site->hook: a single owner's hook, or ktr_fire_record() if it has
 * none; do_nothing() or call_all(). [k]; an owner's changes only while no site has that owner.
 */
enum { NOBODY = KTR_OWNER_MAX, SEVERAL, HOOKS };
__extension__ static ktr_hook_fn *ktr_hooks[HOOKS] = {
    [0 ... KTR_OWNER_MAX - 1] = ktr_fire_record, [NOBODY] = do_nothing, [SEVERAL] = call_all};
static uint32_t ktr_hooked;                       /* [k] bits of the owners with a hook */
static uint64_t ktr_hooks_refused[KTR_OWNER_MAX]; /* atomic */

#ifndef KTR_PORT_IN_HOOK
static bool ktr_in_hook[KTR_PORT_MAXCPU]; /* each CPU writes its own, interrupts off */
#define KTR_PORT_IN_HOOK() (&ktr_in_hook[ktr_port_cpu()])
#endif

#ifndef KTR_PORT_IN_NMI
#define KTR_PORT_IN_NMI() false
#endif

static inline uint32_t
owners_of(const struct ktr_site *site)
{
	/* acquire: pairs with ktr_hook_own() */
	return __atomic_load_n(&site->owners, __ATOMIC_ACQUIRE);
}

/* Of these owners, those for whom the log records. */
static inline uint32_t
owners_logged(uint32_t owners)
{
	return owners & ~__atomic_load_n(&ktr_hooked, __ATOMIC_RELAXED);
}

bool
ktr_firing_logged(const struct ktr_firing *f)
{
	return owners_logged(f->owners) != 0;
}

void
ktr_fire_once(const struct ktr_firing *f)
{
	if (!ktr_firing_logged(f))
		ktr_fire_record(f);
}

/* Records an event. Returns its time, which is then that of the firing for all hooks; 0 if the
 * log has refused it. */
static uint64_t
record_now(const struct ktr_firing *f)
{
	struct ktr_ring **at = KTR_PORT_RING_OF(ktr_port_cpu());
	const struct ktr_ring *ring = at != NULL && *at != NULL ? *at : &ktr_ring_none;
	uint64_t before = ktr_ring_head(ring), head;
	const struct ktr_entry *e;
	ktr_fire_record(f);
	head = ktr_ring_head(ring);
	if (head == before || ring->entries == 0)
		return 0;
	e = ktr_ring_slot(ring, head - 1);
	return e->site == (uint32_t)(uintptr_t)f->site ? e->ticks : 0;
}

void
ktr_fire_within(struct ktr_firing *f)
{
	f->owners = owners_of(f->site);
	f->ticks = ktr_firing_logged(f) ? record_now(f) : 0;
}

static bool
is_function(const struct ktr_site *site)
{
	return site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN;
}

bool
ktr_hook_predicate(struct ktr_site *site, uint64_t number)
{
	if (!is_function(site))
		return false;
	__atomic_store_n(&site->predicate, number, __ATOMIC_RELEASE);
	return number != 0;
}

void
ktr_hook_own(struct ktr_site *site, uint32_t owners)
{
	unsigned hook = (owners & (owners - 1)) != 0 ? SEVERAL : NOBODY;
	if (owners == site->owners)
		return;
	for (unsigned owner = 0; owner < KTR_OWNER_MAX && hook == NOBODY; owner++)
		if ((owners >> owner & 1) != 0)
			hook = owner;
	__atomic_store_n(&site->owners, owners, __ATOMIC_RELEASE);
	__atomic_store_n(&site->hook, (uint8_t)hook, __ATOMIC_RELEASE);
}

static void
call_all(const struct ktr_firing *f)
{
	uint32_t owners = owners_of(f->site), log = owners_logged(owners);
	struct ktr_firing one = *f;
	one.owners = owners;
	one.ticks = log != 0 ? record_now(f) : 0;
	for (one.owner = 0; one.owner < KTR_OWNER_MAX; one.owner++)
		if (((owners & ~log) >> one.owner & 1) != 0)
			ktr_hooks[one.owner](&one);
}

/*
 * What a hook calls is the hook's doing, as what the log calls is the log's: a recorded trace has
 * the functions that hooks are told of, and no others.
 */
static bool
is_own_call(const struct ktr_site *site)
{
	return is_function(site) && !KTR_PORT_IN_NMI();
}

/* The CPU is in a hook: only the log takes more. */
static __attribute__((noinline)) void
hook_refuse(const struct ktr_firing *f)
{
	uint32_t owners = owners_of(f->site), log = owners_logged(owners);
	for (unsigned owner = 0; owner < KTR_OWNER_MAX; owner++)
		if (((owners & ~log) >> owner & 1) != 0)
			__atomic_fetch_add(&ktr_hooks_refused[owner], 1, __ATOMIC_RELAXED);
	if (log != 0 && is_own_call(f->site))
		__atomic_fetch_add(&ktr_main.cpu[ktr_port_cpu()].suppressed, 1, __ATOMIC_RELAXED);
	else if (log != 0)
		ktr_fire_record(f);
}

/* Calls what the site's owners want. The site is f's. */
static inline __attribute__((always_inline)) void
hook_fire(struct ktr_firing *f, const struct ktr_site *site)
{
	uintptr_t irq = ktr_port_irq_save();
	__typeof__(KTR_PORT_IN_HOOK()) in_hook = KTR_PORT_IN_HOOK(); /* may change in an NMI */
	if (__builtin_expect(*in_hook, 0)) {
		hook_refuse(f);
	} else {
		/* acquire: pairs with ktr_hook_own(); an owner has its hook before it has sites */
		unsigned hook = __atomic_load_n(&site->hook, __ATOMIC_ACQUIRE);
		*(volatile __typeof__(*in_hook) *)in_hook = true;
		f->owner = hook;
		ktr_hooks[hook](f);
		*(volatile __typeof__(*in_hook) *)in_hook = false;
	}
	ktr_port_irq_restore(irq);
}

void
ktr_fire(struct ktr_firing *f)
{
	uint32_t owners = owners_of(f->site);
	if (owners_logged(owners) != owners)
		hook_fire(f, f->site);
	else if (owners != 0)
		ktr_fire_record(f); /* nobody has a hook */
}

void
ktr_hook_without(void (*fn)(void *arg), void *arg)
{
	uintptr_t irq = ktr_port_irq_save();
	__typeof__(KTR_PORT_IN_HOOK()) in_hook = KTR_PORT_IN_HOOK();
	*(volatile __typeof__(*in_hook) *)in_hook = true;
	fn(arg);
	*(volatile __typeof__(*in_hook) *)in_hook = false;
	ktr_port_irq_restore(irq);
}

/* ---- functions' probes that nobody wants for now ---- */

uint32_t ktr_functions_naps, ktr_functions_owners;
static const uint64_t *ktr_hook_cpus[KTR_OWNER_MAX]; /* atomic; NULL: the owner never sleeps */

static bool
all_sleep(void)
{
	uint32_t owners = __atomic_load_n(&ktr_functions_owners, __ATOMIC_SEQ_CST), awake = owners;
	for (unsigned owner = 0; owner < KTR_OWNER_MAX; owner++) {
		const uint64_t *cpus = __atomic_load_n(&ktr_hook_cpus[owner], __ATOMIC_SEQ_CST);
		if (cpus != NULL && __atomic_load_n(cpus, __ATOMIC_SEQ_CST) == 0)
			awake &= ~(1u << owner);
	}
	return owners != 0 && awake == 0;
}

void
ktr_functions_look(void)
{
	uintptr_t irq = ktr_port_irq_save(); /* ktr_hook_remove() waits for it */
	uint32_t naps = __atomic_load_n(&ktr_functions_naps, __ATOMIC_SEQ_CST);
	while (all_sleep() != (naps & 1)) {
		__atomic_compare_exchange_n(&ktr_functions_naps, &naps, naps + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		/* again: what was seen may have changed before this store, and who changed it has
		 * looked already */
		naps = __atomic_load_n(&ktr_functions_naps, __ATOMIC_SEQ_CST);
	}
	ktr_port_irq_restore(irq);
}

void
ktr_hook_sleeps(unsigned owner, const uint64_t *cpus)
{
	__atomic_store_n(&ktr_hook_cpus[owner], cpus, __ATOMIC_SEQ_CST);
	ktr_functions_look();
}

/* ---- the siblings ---- */

/* `frame` is what KTR_PORT_WHERE() wants. A port without it knows only where the call was. */
#ifdef KTR_PORT_WHERE
#define HERE __builtin_frame_address(0)
#else
#define HERE                 __builtin_return_address(0)
#define KTR_PORT_WHERE(f, w) ((w)->pc = (uintptr_t)(f)->frame)
#endif

struct ktr_where
ktr_firing_where(const struct ktr_firing *f)
{
	struct ktr_where where = {0};
	if (f->frame == NULL)
		return f->where;
	KTR_PORT_WHERE(f, &where);
	return where;
}

/* Members one by one: an initialiser would clear the others. */
#define FIRE(site_, values, n, data_, len_)       \
	do {                                      \
		struct ktr_firing f;              \
		f.site = (site_);                 \
		f.args = (values);                \
		f.frame = HERE;                   \
		f.nargs = (n);                    \
		f.has_data = (data_) != NULL;     \
		f.owners = 0;                     \
		if (f.has_data) {                 \
			f.data = (data_);         \
			f.len = (uint32_t)(len_); \
		}                                 \
		hook_fire(&f, site_);             \
	} while (0)
#define FIRE_POINT(site, args, n) FIRE(site, args, n, NULL, 0)

static void
fire_point0(const struct ktr_site *site)
{
	FIRE_POINT(site, NULL, 0);
}

static void
fire_point1(const struct ktr_site *site, uint64_t a1)
{
	FIRE_POINT(site, &a1, 1);
}

static void
fire_point2(const struct ktr_site *site, uint64_t a1, uint64_t a2)
{
	const uint64_t args[] = {a1, a2};
	FIRE_POINT(site, args, 2);
}

static void
fire_point3(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const uint64_t args[] = {a1, a2, a3};
	FIRE_POINT(site, args, 3);
}

static void
fire_point4(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	const uint64_t args[] = {a1, a2, a3, a4};
	FIRE_POINT(site, args, 4);
}

static void
fire_point5(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	    struct ktr_pair more)
{
	const uint64_t args[] = {a1, a2, a3, a4, more.a5};
	FIRE_POINT(site, args, 5);
}

static void
fire_point6(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	    struct ktr_pair more)
{
	const uint64_t args[] = {a1, a2, a3, a4, more.a5, more.a6};
	FIRE_POINT(site, args, 6);
}

static void
fire_data(const struct ktr_site *site, const void *data, size_t len, uint64_t a1, uint64_t a2,
	  uint64_t a3, uint64_t a4, uint64_t a5)
{
	uint64_t args[] = {a1, a2, a3, a4, a5, 0};
	args[site->nargs - 1] = (uintptr_t)data;
	FIRE(site, args, site->nargs, data, len);
}

static void
fire_sdt7(const struct ktr_site *site, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
	  uint64_t a4, uint64_t a5, uint64_t a6)
{
	const uint64_t args[] = {a0, a1, a2, a3, a4, a5, a6};
	FIRE_POINT(site, args, 7);
}

/* Functions may have more parameters than a format shows. */
static void
fire_entry(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	   struct ktr_pair more)
{
#ifdef KTR_PORT_PARAMETERS
	FIRE_POINT(site, KTR_PORT_PARAMETERS(HERE), 6);
#else
	fire_point6(site, a1, a2, a3, a4, more);
#endif
}

static void
fire_return(const struct ktr_site *site, uint64_t offset, uint64_t value)
{
	const uint64_t args[] = {offset, value};
	FIRE_POINT(site, args, 2);
}

static const struct {
	ktr_fire_fn *record, *fire;
	bool function; /* for KTR_SITE_ENTRY and KTR_SITE_RETURN */
} ktr_siblings[] = {
    {(ktr_fire_fn *)ktr_record0, (ktr_fire_fn *)fire_point0, false},
    {(ktr_fire_fn *)ktr_record1, (ktr_fire_fn *)fire_point1, false},
    {(ktr_fire_fn *)ktr_record2, (ktr_fire_fn *)fire_point2, false},
    {(ktr_fire_fn *)ktr_record3, (ktr_fire_fn *)fire_point3, false},
    {(ktr_fire_fn *)ktr_record4, (ktr_fire_fn *)fire_point4, false},
    {(ktr_fire_fn *)ktr_record5, (ktr_fire_fn *)fire_point5, false},
    {(ktr_fire_fn *)ktr_record6, (ktr_fire_fn *)fire_point6, false},
    {(ktr_fire_fn *)ktr_record_data, (ktr_fire_fn *)fire_data, false},
    {(ktr_fire_fn *)ktr_record_sdt7, (ktr_fire_fn *)fire_sdt7, false},
    {(ktr_fire_fn *)ktr_record6, (ktr_fire_fn *)fire_entry, true},
    {(ktr_fire_fn *)ktr_record2, (ktr_fire_fn *)fire_return, true},
};

/* ---- the list ---- */

void
ktr_hook_apply(struct ktr_site *site)
{
	bool hooked = owners_logged(site->owners) != site->owners;
	bool function = is_function(site);
	/* A CPU may still be on its way from a trace point that goes off: fire stays as it is. */
	if (site->owners == 0)
		return;
	for (size_t i = 0; i < sizeof(ktr_siblings) / sizeof(ktr_siblings[0]); i++) {
		ktr_fire_fn *from = hooked ? ktr_siblings[i].record : ktr_siblings[i].fire;
		ktr_fire_fn *to = hooked ? ktr_siblings[i].fire : ktr_siblings[i].record;
		if (site->fire == from && function == ktr_siblings[i].function) {
			__atomic_store_n(&site->fire, to, __ATOMIC_RELAXED);
			return;
		}
	}
}

void
ktr_hook_add(unsigned owner, ktr_hook_fn *hook)
{
	ktr_hooks[owner] = hook;
	__atomic_store_n(&ktr_hooks_refused[owner], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ktr_hooked, ktr_hooked | 1u << owner, __ATOMIC_RELAXED);
}

bool
ktr_hook_remove(unsigned owner)
{
	ktr_hook_sleeps(owner, NULL);
	if ((ktr_hooked >> owner & 1) == 0)
		return true;
	if (!ktr_port_sync()) /* hooks run with interrupts off */
		return false;
	__atomic_store_n(&ktr_hooked, ktr_hooked & ~(1u << owner), __ATOMIC_RELAXED);
	ktr_hooks[owner] = ktr_fire_record;
	return true;
}

uint64_t
ktr_hook_refused(unsigned owner)
{
	return (ktr_hooked >> owner & 1) == 0
		   ? 0
		   : __atomic_load_n(&ktr_hooks_refused[owner], __ATOMIC_RELAXED);
}
