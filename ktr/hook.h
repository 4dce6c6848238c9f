/*
 * hook.h - functions that are called when a probe fires.
 *
 * An owner of probes (ktr/control.h) may have a hook. Of a probe that such an owner has switched
 * on, no event is recorded for it; its hook is called instead. A probe may have several owners at
 * the same time, with and without hooks.
 *
 * A hook is called with interrupts off, in any context, also in an NMI. It does not sleep,
 * allocates nothing, and touches only memory that is mapped. The only locks that it takes are those
 * whose holder is a hook, or has hooks off on its CPU (ktr_hook_without()): else a hook that
 * interrupts the holder waits for it for ever. While a CPU is in a hook, it calls no other one: a
 * probe that fires then, in the hook itself or in an NMI, is refused and counted. The log records
 * it nevertheless, unless it is of a function that the hook has called.
 *
 * A trace point that is only logged does not pay for this: it calls the function that records its
 * event through a pointer in its site, which points to another function while the site has an owner
 * with a hook.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/site.h"

/** Where a probe has fired, as far as is known. */
struct ktr_where {
	/* For KTR_SITE_ENTRY, where the function begins; for KTR_SITE_RETURN, the return;
	 * otherwise an address in the code after the trace point. */
	uintptr_t pc;
	/* For KTR_SITE_ENTRY and KTR_SITE_RETURN, where the probed function returns to; no frame
	 * on the stack says so. Otherwise 0. */
	uintptr_t ret;
	uintptr_t fp; /* of the innermost frame, as the machine's convention has it; 0: unknown */
	/* The port's registers, where an exception interrupted code at pc; else NULL. */
	const void *regs;
};

/** One firing of a probe. Valid while the hook runs. */
struct ktr_firing {
	const struct ktr_site *site;
	const uint64_t *args;   /* what the log records: parameters of CTRn, arguments of a probe */
	const uintptr_t *frame; /* for ktr_firing_where() */
	uint16_t nargs;         /* 0 to KTR_SDT_ARGS */
	uint16_t has_data;      /* CTR_DATAn: the last argument stands for a text */
	uint32_t owners;        /* bits of all for whom it fires; 0: only for `owner` */
	const void *data;       /* has_data: the text */
	uint32_t len;           /* has_data: its bytes */
	uint32_t owner;         /* whose hook is called */
	uint64_t ticks;         /* owners not 0: when the log's event was recorded; 0: none was */
	struct ktr_where where; /* frame NULL: what ktr_firing_where() says */
};

typedef void ktr_hook_fn(const struct ktr_firing *f);

/** Finds out where the probe has fired. While the hook runs. */
struct ktr_where ktr_firing_where(const struct ktr_firing *f);

/**
 * Fires a probe that is no trace point: records an event, and calls hooks, as its owners want.
 * f->nargs is at most 6, at least that of the site, or 0 for a site that is not logged; more are
 * in the ring's entry only. Those that are not given are 0 there. f->frame is NULL. Any context.
 */
void ktr_fire(struct ktr_firing *f);

/**
 * Runs fn(arg) with interrupts off, and meanwhile no hook on this CPU, not even in an NMI. Not from
 * a hook.
 */
void ktr_hook_without(void (*fn)(void *arg), void *arg);

/** Does the log record the firing anyway, for an owner without a hook? For hooks. */
bool ktr_firing_logged(const struct ktr_firing *f);

/**
 * For hooks that fire a probe within a firing: finds out f->owners of f->site, and records the
 * event if the log does so for one of them. The caller calls hooks.
 */
void ktr_fire_within(struct ktr_firing *f);

/** Records an event of the firing: what the log does for owners without a hook. Any context. */
void ktr_fire_record(const struct ktr_firing *f);
/** ktr_fire_record(), unless the log records it anyway for an owner without a hook. For hooks. */
void ktr_fire_once(const struct ktr_firing *f);

/** Firings that an owner's hook has missed, because the CPU was in a hook. Any context. */
uint64_t ktr_hook_refused(unsigned owner);

/* ---- functions' probes that nobody wants for now ---- */

/** The number of an owner's predicate n. */
#define KTR_PREDICATE(owner, n) ((uint64_t)(n) << 8 | (owner))
/**
 * All that an owner does at a function's probe depends on the predicate with this number. While it
 * is known to be false for the thread that runs, and no other owner wants the site, the port's code
 * at the function goes on at once (fbt.S); or it fires nevertheless. This holds until the owner
 * takes it back with 0, before it goes. False if there is none now: it is 0, or the site is no
 * function's. Any context; one owner at a time.
 */
bool ktr_hook_predicate(struct ktr_site *site, uint64_t number);

/**
 * While *cpus is 0, the owner's hook does nothing; this holds until the owner is unregistered.
 * Whoever changes *cpus calls ktr_functions_look().
 */
void ktr_hook_sleeps(unsigned owner, const uint64_t *cpus);
/**
 * Finds out whether all owners that have functions' probes sleep. Then their code (fbt.S) goes on
 * at once. Any context.
 */
void ktr_functions_look(void);
/**
 * How often they fell asleep and woke up: odd while they sleep. One word, so that whoever sees them
 * awake sees the number of this time. Hooks have missed calls and returns between two numbers.
 */
extern uint32_t ktr_functions_naps; /* atomic */

/* For control.c, control lock held. */

extern uint32_t ktr_functions_owners; /* atomic: all owners of functions' probes */
/* Gives the owner a hook. It has no site yet. */
void ktr_hook_add(unsigned owner, ktr_hook_fn *hook);
/* Removes the hook of an owner that has no site any more. Returns when no CPU is in it; false if
 * the port cannot tell that. */
bool ktr_hook_remove(unsigned owner);
/* Sets the site's owners. */
void ktr_hook_own(struct ktr_site *site, uint32_t owners);
/* Makes the site's trace points call hooks, or record, as its owners want. */
void ktr_hook_apply(struct ktr_site *site);
