/*
 * pid.h - the provider pid.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

/*
 * If a name with four fields names probes of the provider pid: makes them. command: the path of
 * what $target will execute; NULL: it does so already.
 */
void pid_probes(struct place at, const char *full, const char *command);
