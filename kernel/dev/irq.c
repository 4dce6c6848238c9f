/*
 * irq.c - the handlers of interrupt lines.
 */
#include "kernel/dev/irq.h"

#include "arch/intc.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/pcpu.h"
#include "ktr/ktr.h"

static struct {
	void (*fn)(void *);
	void *arg;
	const char *name;
	uint64_t *counts; /* one for each of MAX_CPUS; NULL: not counted */
} lines[IRQ_LINES];

int
irq_register(unsigned gsi, void (*fn)(void *), void *arg, const char *name)
{
	int error;

	if (ncpus > 1)
		panic("line %u: drivers register before other CPUs start", gsi);
	if (gsi >= IRQ_LINES)
		return -EINVAL;
	if (lines[gsi].fn != NULL)
		return -EBUSY;
	lines[gsi].arg = arg;
	lines[gsi].name = name;
	lines[gsi].counts = kzalloc(MAX_CPUS * sizeof(uint64_t));
	/* release: pairs with irq_line_raised(), which may follow on any CPU */
	__atomic_store_n(&lines[gsi].fn, fn, __ATOMIC_RELEASE);
	CTR2(KTR_DEV, "irq register: line %u name %s", gsi, name);
	error = arch_irq_unmask(gsi);
	if (error != 0) {
		__atomic_store_n(&lines[gsi].fn, NULL, __ATOMIC_RELAXED);
		kfree(lines[gsi].counts);
		lines[gsi].counts = NULL;
	}
	return error;
}

void
irq_line_raised(unsigned gsi)
{
	void (*fn)(void *) =
	    gsi < IRQ_LINES ? __atomic_load_n(&lines[gsi].fn, __ATOMIC_ACQUIRE) : NULL;

	if (fn == NULL) {
		CTR1(KTR_INTR, "irq stray: line %u", gsi);
		return;
	}
	if (lines[gsi].counts != NULL)
		lines[gsi].counts[arch_cpu()]++;
	CTR2(KTR_INTR, "irq: line %u name %s", gsi, lines[gsi].name);
	fn(lines[gsi].arg);
}

bool
irq_line_used(unsigned gsi)
{
	/* acquire: pairs with irq_register() */
	return gsi < IRQ_LINES && __atomic_load_n(&lines[gsi].fn, __ATOMIC_ACQUIRE) != NULL;
}

const char *
irq_line_name(unsigned gsi)
{
	return irq_line_used(gsi) ? lines[gsi].name : "stray";
}

uint64_t
irq_line_count(unsigned gsi, unsigned cpu)
{
	if (!irq_line_used(gsi) || lines[gsi].counts == NULL)
		return 0;
	return __atomic_load_n(&lines[gsi].counts[cpu], __ATOMIC_RELAXED);
}
