/* init.h - the first process. */
#pragma once

/* Starts /bin/init as process 1. script (NULL: none) is its argument. Panics on failure. */
void proc_start_init(const char *script);
