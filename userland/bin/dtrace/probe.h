/*
 * probe.h - the probes that there are, and the types of their arguments.
 */
#pragma once

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/dt.h"

struct probe {
	struct probe *next;
	struct dif_probe p;
};

/* All probes, in the order of their ids; NULL: they are not known. Asks for them only once. */
struct probe *probe_all(void);
/* Asks again next time: there are more. */
void probe_forget(void);
/* Where probe_all() gets them; id in p->id. False: there is none from this id on. */
extern bool (*probe_describe)(struct dif_probe *p);
/* Without a kernel: those of SDT that its build has described. */
struct probe *probe_described(void);
/* Does a description with four fields, which may be globs, or empty, match the probe? */
bool probe_matches(const char *full, const struct dif_probe *p);
/* profile-N or tick-N: a probe that is made when it is named. */
bool probe_is_rate(const char *name);
/* The four fields of a full name. */
void probe_split(const char *full, struct dif_probe *p);
/*
 * The name with its four fields. `fields`: how many the leftmost field of a description with one
 * field has before it, itself included: 4 of -n (a name), 3 of -f, 2 of -m, 1 of -P. NULL: too
 * many.
 */
char *probe_full_name(const char *text, unsigned fields);
/* The type of the argument, NULL: not known. *xlate: what it is translated to, or NULL. */
struct type *probe_argument(const struct dif_probe *p, uint64_t number, struct type **xlate);
