/* serial_dev.h - /dev/ttyS1: the second serial line as a device. */
#pragma once

struct uart;

/*
 * The line for the kernel's own bytes, from now until as many calls of serial_give(): programs that
 * write to /dev/ttyS1 get -EBUSY. NULL: the machine has none. Thread context; both may sleep.
 */
struct uart *serial_take(void);
void serial_give(void);

/* Makes /dev/ttyS1, also when there is no line: opening it then is -ENXIO. Thread context, after
 * vfs_init(). */
void serial_dev_init(void);
