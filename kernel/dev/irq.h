/*
 * irq.h - handlers of device interrupt lines.
 * Locking: none. Drivers register one after the other, before other CPUs start; a slot is set once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IRQ_LINES 256

/*
 * Registers fn(arg) as the handler of line gsi, in interrupt context, and unmasks the line. name is
 * read-only data. -EINVAL: no such line; -EBUSY: it has a handler. Boot, one CPU.
 */
int irq_register(unsigned gsi, void (*fn)(void *), void *arg, const char *name);
/* Name of the line's handler, or "stray" if it has none; read-only data. Any context. */
const char *irq_line_name(unsigned gsi);
/* Has the line a handler? Any context. */
bool irq_line_used(unsigned gsi);
/* How often a line was raised on a CPU. Any context. */
uint64_t irq_line_count(unsigned gsi, unsigned cpu);
/* Calls the handler of a line that was raised. Interrupt context. */
void irq_line_raised(unsigned gsi);
