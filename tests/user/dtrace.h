/* dtrace.h - consumers of /dev/dtrace. */
#pragma once

#include <stdint.h>

/* Tries the device's requests; is() compares what was found with what was expected. */
void dtrace_try(void (*is)(const char *what, long found, long expected));
/* `user_test claim`: takes the tracing that began with the boot, and prints what it has. */
int dtrace_claim(void);
/* Loads a random image, which is refused or runs, and makes random requests. below(n): a random
 * number below n. */
void dtrace_round(uint64_t (*below)(uint64_t n));
