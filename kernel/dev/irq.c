/*
 * irq.c - the handlers of interrupt lines.
 */
#include "kernel/dev/irq.h"

#include <stddef.h>

#include "arch/intc.h"
#include "kernel/abi/errno.h"
#include "ktr/ktr.h"

#define LINES 256

static struct {
	void (*fn)(void *);
	void *arg;
	const char *name;
} lines[LINES];

int
irq_register(unsigned gsi, void (*fn)(void *), void *arg, const char *name)
{
	if (gsi >= LINES)
		return -EINVAL;
	if (lines[gsi].fn != NULL)
		return -EBUSY;
	lines[gsi].arg = arg;
	lines[gsi].name = name;
	/* release: the interrupt may arrive on another CPU at once */
	__atomic_store_n(&lines[gsi].fn, fn, __ATOMIC_RELEASE);
	CTR2(KTR_DEV, "irq register: line %u name %s", gsi, name);
	return arch_irq_unmask(gsi);
}

void
irq_line_raised(unsigned gsi)
{
	void (*fn)(void *) = gsi < LINES ? __atomic_load_n(&lines[gsi].fn, __ATOMIC_ACQUIRE) : NULL;

	if (fn == NULL) {
		CTR1(KTR_INTR, "irq stray: line %u", gsi);
		return;
	}
	CTR2(KTR_INTR, "irq: line %u name %s", gsi, lines[gsi].name);
	fn(lines[gsi].arg);
}

const char *
irq_line_name(unsigned gsi)
{
	/* acquire: pairs with irq_register() */
	if (gsi >= LINES || __atomic_load_n(&lines[gsi].fn, __ATOMIC_ACQUIRE) == NULL)
		return "stray";
	return lines[gsi].name;
}
