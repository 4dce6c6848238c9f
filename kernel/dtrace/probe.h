/*
 * probe.h - probes as the program engine's consumers see them, in this kernel and in any other one
 * (dif/): their ids and names, and the arguments of their firings.
 */
#pragma once

#include "kernel/dtrace/engine.h"
#include "ktr/hook.h"
#include "ktr/intern.h"
#include "ktr/probe.h"
#include "ktr/sdt.h"

/* ---- own.c ---- */

enum { DTRACE_OWN = DIF_PROBE_ERROR + 1 }; /* ids of the engine's own; all others follow */
/* The sites of BEGIN, END and ERROR, by their ids. */
extern struct ktr_site *const dtrace_own[];

uint32_t dtrace_probe_id(const struct ktr_site *site);
/* As ktr_probe_name(); BEGIN, END and ERROR, and what fires at a rate, belong to no module. */
void dtrace_probe_name(const struct ktr_site *site, struct ktr_probe_name *name);
/* The site of a probe; NULL: no such. */
struct ktr_site *dtrace_probe_site(uint32_t id);

/* A probe at which a consumer has clauses. */
struct dtrace_probe {
	struct ktr_probe_name name;
	uint32_t id;
	bool sysret; /* the return of a system call */
	bool made;   /* the probe can be unmade: one at a rate, or a kprobe */
	uint8_t
	    texts; /* bit N: argument N is a text, which may be a handle (ktr/intern.h) or data */
};

/* as_d: the probe's programs see arguments as D has them; else as the log has them. */
void dtrace_probe_describe(struct dtrace_probe *p, const struct ktr_site *site, bool as_d);

/* ---- probe.c ---- */

/* What a consumer is told of a probe. The name is dtrace_probe_name()'s. */
void dif_probe_describe(struct dif_probe *p, uint32_t id, const struct ktr_probe_name *name,
			const struct ktr_site *site);

/* A firing as programs see it, and copies of texts. */
struct dtrace_seen {
	struct ktr_firing f;
	uint64_t args[KTR_SDT_ARGS];
	char copies[2][KTR_STRING_MAX];
};
/*
 * Returns the firing as programs see it: f itself, or a copy in *to. In the copy, an argument that
 * stands for a text (at most two do) is the address of the text, and the result of a system call is
 * arguments 0 and 1, as D has it. Any context.
 */
const struct ktr_firing *dtrace_see(const struct dtrace_probe *p, const struct ktr_firing *f,
				    struct dtrace_seen *to);
static inline uint64_t
dtrace_errno(const struct ktr_firing *f)
{
	return f->args[2] > (uint64_t)-4096 ? -f->args[2] : 0;
}
