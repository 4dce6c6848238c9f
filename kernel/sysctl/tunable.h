/*
 * tunable.h - loader parameters: the kernel's command line and /boot/loader.conf set sysctls that
 * are marked SYSCTL_TUN. The command line wins. Errors are reported on the console, with file, line
 * and what was expected; the boot goes on.
 */
#pragma once

#include <stddef.h>

#include "kernel/lib/printf.h"

/*
 * Declares a parameter that is read by tunable_get() and is not a sysctl. Undeclared names are
 * reported as errors. On the command line its name alone means "1".
 *
 * TUNABLE(init_script, "init.script", "script that init runs instead of a shell");
 */
struct tunable {
	const char *name, *descr;
};

#define TUNABLE(ident, nm, ds)                      \
	static const struct tunable tunable_##ident \
	    __attribute__((section("tunables"), used, aligned(8))) = {.name = nm, .descr = ds}

/* Parses loader.conf (NULL: none), then the command line. Early boot. */
void tunable_init(const char *conf, size_t conf_size, const char *cmdline);
/* Applies one parameter marked SYSCTL_LATE, if it was set. Boot, when there is a heap. */
void tunable_apply(const char *name);
/* Applies the others marked so. Thread context. */
void tunable_apply_late(void);
/*
 * Says on the console why the value of a TUNABLE() is wrong: "NAME=VALUE: why; it is what". The
 * caller reads it by tunable_get(). Boot.
 */
void tunable_refuse(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* How many parameters were refused, or not understood. Any context. */
unsigned tunable_refused(void);
/* The value of a TUNABLE(). NULL: not set. Any context after tunable_init(). */
const char *tunable_get(const char *name);
