/* watchdog.h - finds CPUs that take no timer interrupt. */
#pragma once

#include <stdbool.h>

/* In an NMI: is this CPU hung, and must it enter the debugger? True once for each alarm. */
bool watchdog_hung(void);
