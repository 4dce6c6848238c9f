/* sys/prctl.h - what a process is called. 0, or -1 with errno. */
#pragma once

#include "kernel/abi/prctl.h"

/* PR_SET_NAME: a string. Nothing else is known. */
int prctl(int option, const char *name);
