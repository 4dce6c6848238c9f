/*
 * tunable.h - loader parameters: the kernel's command line and /boot/loader.conf set sysctls that are
 * marked SYSCTL_TUN; the command line wins. What makes no sense is reported on the console with file,
 * line and what was expected, and boot goes on.
 */
#pragma once

#include <stddef.h>

/* Parses loader.conf (name="value" lines, # comments; NULL: none), then the command line. Early boot. */
void tunable_init(const char *conf, size_t conf_size, const char *cmdline);
/* Applies those marked SYSCTL_LATE. Thread context. */
void tunable_apply_late(void);
/* Words that are no sysctl but read by name, like init.script: NULL if not given. */
const char *tunable_get(const char *name);
