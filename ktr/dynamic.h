/*
 * dynamic.h - sites that are made at run time, with texts of their own.
 *
 * They are like all others: owners switch them on by name, and streams, memory dumps and the ring
 * after a reset have their texts. A site's number is used again only when no ring of any log has an
 * event of its last site. A stream that goes on then tells the new site before its first event.
 *
 * Nothing is patched for them. Whoever makes a site fires it by ktr_fire() (ktr/hook.h), with
 * interrupts off, while site->on is not KTR_SITE_OFF: so an event is never recorded after the site
 * was freed.
 *
 * Locking: the control lock, which the caller holds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ktr/port.h"
#include "ktr/site.h"

/** How many there can be at a time; a port may choose. */
#if !defined(KTR_DYNAMIC_SITES) && defined(KTR_SMALL)
#define KTR_DYNAMIC_SITES 1
#elif !defined(KTR_DYNAMIC_SITES)
#define KTR_DYNAMIC_SITES 8
#endif

/** Room for all texts of a site with their NULs. */
#ifdef KTR_SMALL
#define KTR_DYNAMIC_TEXT 96u
#else
#define KTR_DYNAMIC_TEXT 368u
#endif

/** A site to be made. Texts are copied, but for types, which must stay. */
struct ktr_dynamic {
	const char *provider, *module, *function, *name; /* as in ktr/probe.h */
	const char *file;
	uint32_t line;
	const char *fmt;                 /* printf format of the parameters */
	unsigned nargs;                  /* 0 to KTR_MAXARGS */
	const char *types[KTR_SDT_ARGS]; /* as in struct ktr_sdt */
};

/** NULL: too many sites, or texts too long; err (errlen > 0) receives one sentence. */
struct ktr_site *ktr_site_make(const struct ktr_dynamic *d, char *err, size_t errlen);

/** Switches a site off for all owners and frees it. Its events in the rings stay readable. */
void ktr_site_free(struct ktr_site *site);

/** How often a number was used again: a stream compares. [control lock] */
extern uint64_t ktr_dynamic_reused;

/* What the other files of ktr/ know of the memory that the sites take. */
extern struct ktr_site ktr_dynamic_sites[KTR_DYNAMIC_SITES];
/** What a site refers to; `text` has its texts one after the other, the file's name first. */
extern struct ktr_dynamic_texts {
	struct ktr_sdt sdt;
	char text[KTR_DYNAMIC_TEXT];
} ktr_dynamic_texts[KTR_DYNAMIC_SITES];
/** A site's `pc`: tells a reader of damaged memory whether its texts are sound. */
uint32_t ktr_dynamic_check(const char text[KTR_DYNAMIC_TEXT]);
