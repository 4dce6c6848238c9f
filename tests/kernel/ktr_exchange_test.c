/*
 * ktr_exchange_test.c - no events are recorded while the rings are exchanged, not even in an NMI.
 */
#include "arch/smp.h"
#include "kernel/lib/clock.h"
#include "kernel/sync/pcpu.h"
#include "ktr/ktr.h"
#include "ktr/port.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/ktr_help.h"

#define NMI_WAIT_NS 30000000000ull

struct exchange {
	struct ktr_stats before, after;
	unsigned nmis;
};

static bool
send_nmi(unsigned cpu)
{
	uint64_t count = __atomic_load_n(&pcpus[cpu]->nmi_count, __ATOMIC_RELAXED);
	uint64_t end = clock_ns() + NMI_WAIT_NS;

	if (!arch_nmi_send(cpu))
		return false;
	/* acquire: after the count, the event has been refused, too */
	while (__atomic_load_n(&pcpus[cpu]->nmi_count, __ATOMIC_ACQUIRE) == count)
		if (clock_ns() > end)
			return false;
	return true;
}

static void
exchange_nothing(void *arg)
{
	struct exchange *x = arg;

	ktr_test_sum(&x->before);
	for (unsigned n = 0; n < ncpus; n++)
		x->nmis += send_nmi(n);
	CTR0(KTR_SPARE2, "test: in an exchange");
	ktr_test_sum(&x->after);
}

KTEST(ktr_exchange_is_entered_by_no_nmi)
{
	struct exchange x = {0};

	ktr_test_begin(256);
	ktr_mask_set(KTR_SPARE2 | KTR_INTR);
	ktr_port_lock();
	ktr_port_exchange(exchange_nothing, &x);
	ktr_port_unlock();
	CTR0(KTR_SPARE2, "test: after it");
	ktr_mask_set(0);
	ktr_test_accounting();
	KT_EQ(x.after.recorded, x.before.recorded);
	KT_EQ(x.after.suppressed - x.before.suppressed, x.nmis + 1);
	ktr_test_sum(&x.before);
	KT_GT(x.before.recorded, x.after.recorded);
	ktr_test_end();
	if (x.nmis == 0)
		ktest_skip("this machine has no NMI");
	KT_EQ(x.nmis, ncpus);
}
