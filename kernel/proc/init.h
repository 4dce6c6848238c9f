/* init.h - the first process. */
#pragma once

/* Starts /bin/init as process 1, with script (NULL: none) as its argument. Panics when it cannot.
 */
void proc_start_init(const char *script);
