/* watchdog.h - finds CPUs that take no timer interrupt. */
#pragma once

#include <stdbool.h>

/* A clock tick: looks at the next CPU. Timer interrupt. */
void watchdog_tick(void);
/* An NMI: has this CPU been found hung, and is it to enter the debugger? Says so once. */
bool watchdog_hung(void);
