/*
 * probe.h - names of probes: every site is one, and is called provider:module:function:name.
 *
 *	ktr:fs:vfs_open:open         a trace point: the provider `ktr`, the folder of its file, its
 *	                             function, and the first words of its format
 *	syscall:x86_64:read:entry    a trace point "syscall read: …": the entry of a system call
 *	syscall:x86_64:read:return   a trace point "sysret read: …"
 *	fbt:fs:vfs_open:entry        the entry of a function
 *	fbt:fs:vfs_open:return       its returns; a port may have these two, or none
 *	proc:proc::exit              a probe of SDT (ktr/sdt.h): its fields are those of the source,
 *	                             but the module is the folder if the source names none
 *	ktr:::"syscall %s"           all trace points "syscall read: …", "syscall write: …": the
 *	                             format's beginning (ktr_glob_format()), '?' for ':' and ','
 *
 * As in DTrace: an empty field means any, a field may be a glob (ktr/glob.h), and fields that are
 * missing are missing on the left. Several names have commas between. Unlike in DTrace, a text
 * without a colon is no name of a probe.
 */
#pragma once

#include <stdbool.h>

#include "ktr/site.h"

#define KTR_PROBE_TEXT 64u

/** The parts of a name. */
struct ktr_probe_name {
	const char *provider;
	char module[KTR_PROBE_TEXT]; /* longer texts are cut */
	const char *function;        /* the site's, or `call` */
	char name[KTR_PROBE_TEXT], call[KTR_PROBE_TEXT];
	const char *fmt; /* a trace point's, if it has one; else NULL */
};

/** Says what a site is called. Any context. */
void ktr_probe_name(const struct ktr_site *site, struct ktr_probe_name *name);

/** True: the text has a colon. Any context. */
bool ktr_probe_is_name(const char *spec);

/** How many of the spec's names are this one. Any context. */
unsigned ktr_probe_name_matches(const struct ktr_probe_name *name, const char *spec);

/** True: one of the spec's names is the site's. Any context. */
bool ktr_probe_matches(const struct ktr_site *site, const char *spec);

/**
 * spec is one name, which no probe has. Writes a spec that probes match, and that differs from it
 * in one misspelt field, or in the colon at the end; for a provider's name alone, the spec of all
 * its probes. False if none is near enough. Any context.
 */
bool ktr_probe_suggest(const char *spec, char *to, size_t len);
