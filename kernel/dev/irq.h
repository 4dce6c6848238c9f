/*
 * irq.h - handlers of device interrupt lines.
 * Locking: none. Drivers register one after the other, at boot or set-up; a slot is set once.
 */
#pragma once

/*
 * Registers fn(arg) as the handler of line gsi, in interrupt context, and unmasks the line. name is
 * read-only data. -EINVAL: no such line; -EBUSY: it has a handler. Thread context or boot.
 */
int irq_register(unsigned gsi, void (*fn)(void *), void *arg, const char *name);
/* Name of the line's handler, or "stray" if it has none; read-only data. Any context. */
const char *irq_line_name(unsigned gsi);
/* Calls the handler of a line that was raised. Interrupt context. */
void irq_line_raised(unsigned gsi);
