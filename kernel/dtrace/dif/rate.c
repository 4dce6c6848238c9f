/*
 * rate.c - probes at a rate in any kernel: which there are, and when each is due. The host says the
 * names and the intervals.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dif/session.h"
#include "ktr/str.h"

struct dif_rate dif_rates[DIF_RATES];
uint32_t dif_rates_count;
bool dif_rates_tick;

int
dif_rate_add(const void *name, size_t n, uint64_t ns)
{
	struct dif_rate *r = &dif_rates[dif_rates_count];

	if (!__atomic_load_n(&dif_rates_tick, __ATOMIC_RELAXED))
		return -ENOSYS;
	if (dif_rates_count == DIF_RATES)
		return -ENOSPC;
	if (n == 0 || n >= sizeof(r->name) || ns == 0)
		return -EINVAL;
	ktr_zero(r, sizeof(*r));
	ktr_copy(r->name, name, n);
	r->ns = ns;
	return (int)dif_rates_count++;
}

bool
dif_rate_is_due(struct dif_rate *r, unsigned cpu, uint64_t now)
{
	uint64_t *at = &r->due[r->name[0] == 't' ? 0 : cpu]; /* tick: for all */
	uint64_t due = __atomic_load_n(at, __ATOMIC_RELAXED), next = now + r->period;

	if (now < due)
		return false;
	if (due != 0)
		next = due + ((now - due) / r->period + 1) * r->period;
	/* Several CPUs may find a tick due, and one takes it. */
	return __atomic_compare_exchange_n(at, &due, next, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED) &&
	       due != 0;
}
