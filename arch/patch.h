/* patch.h - contract: changing the code at trace sites while other CPUs run it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One change. */
struct arch_patch {
	uintptr_t addr;   /* the site's instruction */
	uintptr_t target; /* where it jumps when on */
	bool on;
};

/*
 * Makes each of n sites jump to its target (on) or fall through (off). Any context before other
 * CPUs run; afterwards thread context with interrupts on and no spin lock held. The caller
 * serialises. Each call interrupts every CPU a few times, independent of n.
 */
void arch_patch(const struct arch_patch *p, size_t n);
