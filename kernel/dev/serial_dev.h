/* serial_dev.h - /dev/ttyS1: the second serial line as a device. */
#pragma once

/* Makes /dev/ttyS1, also when there is no line: opening it then is -ENXIO. Thread context, after
 * vfs_init(). */
void serial_dev_init(void);
