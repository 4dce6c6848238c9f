/* dtrace.h - consumers of /dev/dtrace. */
#pragma once

/* Tries the device's requests; is() compares what was found with what was expected. */
void dtrace_try(void (*is)(const char *what, long found, long expected));
/* `user_test claim`: takes the tracing that began with the boot, and prints what it has. */
int dtrace_claim(void);
