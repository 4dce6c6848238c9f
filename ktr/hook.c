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

void
ktr_fire_record(const struct ktr_firing *f)
{
	const uint64_t *a = f->args;
	uint64_t args[KTR_MAXARGS] = {0};
	if (f->nargs > KTR_MAXARGS) {
		ktr_record_sdt7(f->site, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
		return;
	}
	if (f->nargs == 2) { /* the return of a function */
		ktr_record2(f->site, a[0], a[1]);
		return;
	}
	if (f->nargs < KTR_MAXARGS) {
		for (unsigned i = 0; i < f->nargs; i++)
			args[i] = a[i];
		a = args;
	}
	if (f->data != NULL)
		ktr_log_record_data(&ktr_main, f->site, a, f->data, f->len);
	else
		ktr_record6(f->site, a[0], a[1], a[2], a[3], (struct ktr_pair){a[4], a[5]});
}

/* Each hook; and the log, for all owners that have none. So every owner is in one of them. */
static struct hook {
	uint32_t owners;   /* [k] their bits; 0: free */
	ktr_hook_fn *call; /* [k] changes while owners is 0 and no CPU is in a hook */
	uint64_t refused;
} ktr_hooks[KTR_HOOK_MAX + 1] = {[KTR_HOOK_MAX] = {.owners = ~0u, .call = ktr_fire_record}};
#define HOOK_LOG (&ktr_hooks[KTR_HOOK_MAX])

static uint8_t ktr_hook_busy[KTR_PORT_MAXCPU]; /* each CPU writes its own, interrupts off */

static inline uint32_t
owners_of(const struct ktr_site *site)
{
	/* acquire: pairs with site_own(); an owner's hook is in the list before it has sites */
	return __atomic_load_n(&site->owners, __ATOMIC_ACQUIRE);
}

static inline uint32_t
hook_owners(const struct hook *h)
{
	return __atomic_load_n(&h->owners, __ATOMIC_ACQUIRE);
}

/* The owners after the first. */
static __attribute__((noinline)) void
call_rest(struct ktr_firing *f, uint32_t owners)
{
	for (const struct hook *h = ktr_hooks; h <= HOOK_LOG; h++) {
		f->owner = hook_owners(h) & owners;
		if (f->owner != 0)
			h->call(f);
	}
}

/* The CPU is in a hook: only the log takes more. */
static __attribute__((noinline)) void
refuse(const struct ktr_firing *f)
{
	uint32_t owners = owners_of(f->site);
	if ((hook_owners(HOOK_LOG) & owners) != 0)
		ktr_fire_record(f);
	for (struct hook *h = ktr_hooks; h < HOOK_LOG; h++) {
		if ((hook_owners(h) & owners) != 0)
			__atomic_fetch_add(&h->refused, 1, __ATOMIC_RELAXED);
	}
}

/* Calls what the site's owners want. */
static inline __attribute__((always_inline)) void
fire(struct ktr_firing *f)
{
	uintptr_t irq = ktr_port_irq_save();
	volatile uint8_t *busy = &ktr_hook_busy[ktr_port_cpu()];
	if (__builtin_expect(*busy != 0, 0)) {
		refuse(f);
	} else {
		const struct hook *h = ktr_hooks;
		uint32_t owners = owners_of(f->site), first;
		*busy = 1;
		if (owners != 0) {
			while ((first = hook_owners(h) & owners) == 0 && h < HOOK_LOG)
				h++;
			f->owner = first;
			h->call(f);
			if (__builtin_expect(owners != first, 0))
				call_rest(f, owners & ~first);
		}
		*busy = 0;
	}
	ktr_port_irq_restore(irq);
}

void
ktr_fire(struct ktr_firing *f)
{
	uint32_t owners = owners_of(f->site);
	if (owners != 0 && (owners & ~hook_owners(HOOK_LOG)) == 0)
		ktr_fire_record(f); /* nobody has a hook */
	else
		fire(f);
}

/* ---- the siblings ---- */

/*
 * A port says which frame is that of a probe. `frame` is that of the sibling, which the probed
 * function has called, or what its probe jumps to.
 */
#ifndef KTR_PORT_FRAME
#define KTR_PORT_FRAME(firing, frame) ((void)(frame))
#endif
#ifndef KTR_PORT_FUNCTION
#define KTR_PORT_FUNCTION KTR_PORT_FRAME
#endif

/* Members one by one: an initialiser would clear all of them first. */
#define FIRE(where, site_, values, n, data_, len_)                        \
	do {                                                              \
		struct ktr_firing f;                                      \
		f.site = (site_);                                         \
		f.args = (values);                                        \
		f.nargs = (n);                                            \
		f.data = (data_);                                         \
		f.len = (len_);                                           \
		f.pc = (uintptr_t)__builtin_return_address(0);            \
		f.ret = f.fp = 0;                                         \
		where(&f, (const uintptr_t *)__builtin_frame_address(0)); \
		fire(&f);                                                 \
	} while (0)
#define FIRE_POINT(site, args, n) FIRE(KTR_PORT_FRAME, site, args, n, NULL, 0)

static void
fire0(const struct ktr_site *site)
{
	FIRE_POINT(site, NULL, 0);
}

static void
fire1(const struct ktr_site *site, uint64_t a1)
{
	FIRE_POINT(site, &a1, 1);
}

static void
fire2(const struct ktr_site *site, uint64_t a1, uint64_t a2)
{
	const uint64_t args[] = {a1, a2};
	FIRE_POINT(site, args, 2);
}

static void
fire3(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const uint64_t args[] = {a1, a2, a3};
	FIRE_POINT(site, args, 3);
}

static void
fire4(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	const uint64_t args[] = {a1, a2, a3, a4};
	FIRE_POINT(site, args, 4);
}

static void
fire5(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
      struct ktr_pair more)
{
	const uint64_t args[] = {a1, a2, a3, a4, more.a5};
	FIRE_POINT(site, args, 5);
}

static void
fire6(const struct ktr_site *site, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
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
	FIRE(KTR_PORT_FRAME, site, args, site->nargs, data, len);
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
	const uint64_t args[] = {a1, a2, a3, a4, more.a5, more.a6};
	FIRE(KTR_PORT_FUNCTION, site, args, 6, NULL, 0);
}

static void
fire_return(const struct ktr_site *site, uint64_t offset, uint64_t value)
{
	const uint64_t args[] = {offset, value};
	FIRE(KTR_PORT_FUNCTION, site, args, 2, NULL, 0);
}

static const struct {
	ktr_fire_fn *record, *fire;
	bool function; /* for KTR_SITE_ENTRY and KTR_SITE_RETURN */
} ktr_siblings[] = {
    {(ktr_fire_fn *)ktr_record0, (ktr_fire_fn *)fire0, false},
    {(ktr_fire_fn *)ktr_record1, (ktr_fire_fn *)fire1, false},
    {(ktr_fire_fn *)ktr_record2, (ktr_fire_fn *)fire2, false},
    {(ktr_fire_fn *)ktr_record3, (ktr_fire_fn *)fire3, false},
    {(ktr_fire_fn *)ktr_record4, (ktr_fire_fn *)fire4, false},
    {(ktr_fire_fn *)ktr_record5, (ktr_fire_fn *)fire5, false},
    {(ktr_fire_fn *)ktr_record6, (ktr_fire_fn *)fire6, false},
    {(ktr_fire_fn *)ktr_record_data, (ktr_fire_fn *)fire_data, false},
    {(ktr_fire_fn *)ktr_record_sdt7, (ktr_fire_fn *)fire_sdt7, false},
    {(ktr_fire_fn *)ktr_record6, (ktr_fire_fn *)fire_entry, true},
    {(ktr_fire_fn *)ktr_record2, (ktr_fire_fn *)fire_return, true},
};

/* ---- the list ---- */

void
ktr_hook_apply(struct ktr_site *site)
{
	bool hooked = (site->owners & ~HOOK_LOG->owners) != 0;
	bool function = site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN;
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

/* The hook of an owner; owners 0: a free one. */
static struct hook *
hook_find(uint32_t owners)
{
	for (struct hook *h = ktr_hooks; h < HOOK_LOG; h++) {
		if (hook_owners(h) == owners)
			return h;
	}
	return NULL;
}

/* Also sets which owners the log serves: all others. */
static void
hook_set(struct hook *h, uint32_t owners)
{
	uint32_t log = HOOK_LOG->owners | h->owners;
	__atomic_store_n(&HOOK_LOG->owners, log, __ATOMIC_RELAXED);
	__atomic_store_n(&h->owners, owners, __ATOMIC_RELEASE);
	__atomic_store_n(&HOOK_LOG->owners, log & ~owners, __ATOMIC_RELEASE);
}

bool
ktr_hook_add(unsigned owner, ktr_hook_fn *hook)
{
	struct hook *h = hook_find(0);
	if (h == NULL)
		return false;
	h->call = hook;
	__atomic_store_n(&h->refused, 0, __ATOMIC_RELAXED);
	hook_set(h, 1u << owner);
	return true;
}

bool
ktr_hook_remove(unsigned owner)
{
	struct hook *h = hook_find(1u << owner);
	if (h == NULL)
		return true;
	if (!ktr_port_sync()) /* hooks run with interrupts off */
		return false;
	hook_set(h, 0);
	return true;
}

uint64_t
ktr_hook_refused(unsigned owner)
{
	const struct hook *h = hook_find(1u << owner);
	return h != NULL ? __atomic_load_n(&h->refused, __ATOMIC_RELAXED) : 0;
}
