/* session.h - what session.c has for the other files of the folder. */
#pragma once

#include "kernel/dtrace/dif/dif.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/probe.h"
#include "ktr/port.h"

/* A clause at a probe. */
struct session_ecb {
	struct dif_at at; /* first: what the engine knows of it */
	const struct dtrace_probe *probe;
};

/* dif_port_fault(): runs the clauses of ERROR in the firing that has failed. */
void dif_session_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);
/* A sign of life of the host. */
void dif_session_hear(void);
/* Adds a probe of that name (n bytes) before the image; its id. -EBUSY: there is one; and
 * dif_rate_add()'s. */
int dif_session_rate(const void *name, size_t n, uint64_t ns);
/* CPUs that may run programs: up to the last one with a ring. */
unsigned dif_session_cpus(void);

/* ---- rate.c ---- */

enum { DIF_RATES = 8 };
/* A probe that dif_tick() fires: profile-N on each CPU, tick-N on one. */
extern struct dif_rate {
	char name[32];
	uint64_t ns, period;           /* the latter by the log's clock */
	uint64_t due[KTR_PORT_MAXCPU]; /* atomic; 0: not yet known */
} dif_rates[DIF_RATES];
extern uint32_t dif_rates_count; /* changes while there is no session */
extern bool dif_rates_tick;      /* atomic: the kernel calls dif_tick() */

/* Adds a rate; returns its number. -ENOSYS: dif_tick() was never called; -ENOSPC; -EINVAL. */
int dif_rate_add(const void *name, size_t n, uint64_t ns);
bool dif_rate_is_due(struct dif_rate *r, unsigned cpu, uint64_t now);
