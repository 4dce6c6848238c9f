/* status.c - how tracing ends, and what has been counted: faults, firings, waiting. */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"

#define CHECK_ALIVE 4096u /* firings */

void
dif_open_cpu(struct dif *d, unsigned cpu)
{
	uint32_t only = DIF_CPU(d->h.flags);

	if (d->state != DIF_ACTIVE)
		return;
	d->cpu[cpu].limit = only == 0 || only == cpu + 1 ? CHECK_ALIVE : 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* dif_drain() sets the state, then the limits */
	if (d->state != DIF_ACTIVE)
		d->cpu[cpu].limit = 0;
}

__attribute__((noinline)) bool
dif_is_alive(struct dif *d, struct dif_cpu *c, uint64_t now)
{
	uint64_t limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
	/* acquire: pairs with the release in dtrace_consumer_claim() */
	uint64_t most = __atomic_load_n(&d->h.options.deadman_ns, __ATOMIC_ACQUIRE);
	uint64_t alive = __atomic_load_n(&d->alive_ns, __ATOMIC_RELAXED);

	/* A sign of life may have come on another CPU since the clock was read. */
	if (now > alive && now - alive > most) {
		if (d->state == DIF_ACTIVE)
			__atomic_store_n(&d->starved, true, __ATOMIC_RELAXED);
		dif_drain(d, 0);
	}
	/* dif_drain() may run on another CPU: it sets the limit to 0, for good. */
	return limit != 0 &&
	       __atomic_compare_exchange_n(&c->limit, &limit, c->fired + CHECK_ALIVE, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	       dif_admit(c);
}

void
dif_drain(struct dif *d, int32_t status)
{
	uint32_t active = DIF_ACTIVE;

	if (__atomic_compare_exchange_n(&d->state, &active, DIF_DRAINING, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_store_n(&d->exit_status, status, __ATOMIC_RELAXED);
	/* If another CPU has, it may set the limits later: this one runs no more after exit(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* as in dif_open_cpu() */
	for (unsigned i = 0; i < d->cpus; i++)
		__atomic_store_n(&d->cpu[i].limit, 0, __ATOMIC_RELAXED);
}

void
dif_exit(const struct dif_at *at, int32_t status)
{
	dif_drain(at->d, status);
	if (at->probe == DIF_PROBE_END)
		__atomic_store_n(&at->d->exit_status, status, __ATOMIC_RELAXED);
}

void
dif_error_args(const struct dif *d, unsigned cpu, uint32_t clause, uint64_t args[DIF_ERROR_ARGS])
{
	const struct dif_last_fault *f = &d->cpu[cpu].fault;

	args[0] = 0;
	args[1] = f->epid;
	args[2] = d->actions != NULL ? d->actions[d->clauses[clause].code + f->insn] : 0;
	args[3] = f->insn;
	args[4] = f->fault;
	args[5] = f->addr;
}

void
dif_status_begin(const struct dif *d, struct dif_status *s)
{
	*s = (struct dif_status){.state = __atomic_load_n(&d->state, __ATOMIC_RELAXED),
				 .exit_status = __atomic_load_n(&d->exit_status, __ATOMIC_RELAXED),
				 .cpus = d->cpu != NULL ? d->cpus : 0, /* 0: nothing is loaded */
				 .time = dif_port_time()};
}

void
dif_status_add(const struct dif *d, unsigned cpu, struct dif_status *s)
{
	const struct dif_cpu *c = &d->cpu[cpu];
	uint64_t busy = __atomic_load_n(&c->spec_busy, __ATOMIC_RELAXED); /* once: it may run */

	s->fired += c->fired;
	s->completed += c->ended[0];
	s->predicate_false += c->ended[1];
	s->faulted += c->faulted;
	s->dropped += c->dropped;
	s->buf_drops += c->buf_drops;
	s->agg_drops += c->agg_drops;
	s->dynvar_drops += c->dynvar_drops;
	s->spec_drops += c->spec_drops;
	s->spec_none += busy + c->spec_full;
	s->spec_busy += busy;
	s->error_faults += c->error_faults;
	s->fullest = c->buf.head > s->fullest ? c->buf.head : s->fullest;
}

void
dif_status_fault(const struct dif *d, unsigned cpu, struct dif_status *s)
{
	const struct dif_last_fault *f = &d->cpu[cpu].fault;

	s->fault = f->fault;
	s->fault_epid = f->epid;
	s->fault_probe = f->probe;
	s->fault_insn = f->insn;
	s->fault_addr = f->addr;
}

void
dif_status(const struct dif *d, struct dif_status *s)
{
	dif_status_begin(d, s);
	for (unsigned i = 0; i < s->cpus; i++)
		dif_status_add(d, i, s);
	if (s->cpus > 0)
		dif_status_fault(d, d->fault_cpu, s);
}
