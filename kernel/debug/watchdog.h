/* watchdog.h - finds CPUs that take no timer interrupt. */
#pragma once

#include <stdbool.h>

/* An NMI: has this CPU been found hung, and is it to enter the debugger? Says so once. */
bool watchdog_hung(void);
