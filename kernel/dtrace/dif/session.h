/* session.h - what session.c has for the other files of the folder. */
#pragma once

#include "kernel/dtrace/dif/dif.h"
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/probe.h"

/* A clause at a probe. */
struct session_ecb {
	struct dif_at at; /* first: what the engine knows of it */
	const struct dtrace_probe *probe;
};

/* dif_port_fault(): runs the clauses of ERROR in the firing that has failed. */
void dif_session_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f);
/* A sign of life of the host. */
void dif_session_hear(void);
/* CPUs that may run programs: up to the last one with a ring. */
unsigned dif_session_cpus(void);
