/*
 * irq.h - handlers of device interrupt lines.
 * Locking: the table is written at boot and by drivers' set-up, one at a time; a slot is set once.
 */
#pragma once

/*
 * Calls fn(arg) in interrupt context when line gsi is raised, and unmasks the line. name is
 * read-only data. -EINVAL no such line, -EBUSY taken. Thread context or boot.
 */
int irq_register(unsigned gsi, void (*fn)(void *), void *arg, const char *name);
/* What the line's handler is called, "stray" when it has none: read-only data. Any context. */
const char *irq_line_name(unsigned gsi);
/* The line was raised: calls its handler. Interrupt context. */
void irq_line_raised(unsigned gsi);
