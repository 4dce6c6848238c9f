/* serial_dev.h - /dev/ttyS1: the second serial line as a device. */
#pragma once

struct uart;

/*
 * Takes the line for the kernel's own bytes. Until each serial_take() is matched by a
 * serial_give(), programs that write to /dev/ttyS1 get -EBUSY. NULL: the machine has no such line.
 * Thread context; both may sleep.
 */
struct uart *serial_take(void);
void serial_give(void);

/* Makes /dev/ttyS1. Without a line, opening it is -ENXIO. Thread context, after vfs_init(). */
void serial_dev_init(void);
