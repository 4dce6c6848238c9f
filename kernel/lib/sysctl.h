/*
 * sysctl.h - named variables, read and written as text: by the system call sysctl, by the debugger,
 * and as loader parameters of the same name. Any file may declare one. Each declaration is an entry
 * in a linker section, which kernel/sysctl/registry.h searches.
 *
 * static int hz = 100;
 *   SYSCTL_INT(kern_hz, "kern.hz", SYSCTL_TUN, &hz, 10, 1000, "clock ticks a second");
 *
 * Functions run in thread context with the sysctl mutex held, unless SYSCTL_FREE is given. Who
 * holds it keeps all users from all other variables. There are two more exceptions. A loader
 * parameter sets its variable before there are threads, and before the heap unless SYSCTL_LATE is
 * given. At the debugger's prompt value() and get() run on a stopped machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSCTL_WR   1 /* may be written at run time */
#define SYSCTL_TUN  2 /* may be set by a loader parameter */
#define SYSCTL_LATE 4 /* apply the loader parameter when heap and threads exist, not at once */
#define SYSCTL_FREE 8 /* its functions may take long, or wait, and lock what they need */

enum sysctl_type { SYSCTL_TYPE_INT, SYSCTL_TYPE_U64, SYSCTL_TYPE_TEXT };

struct sbuf; /* kernel/lib/sbuf.h */

struct sysctl {
	const char *name, *descr;
	enum sysctl_type type;
	uint8_t flags;
	/* A number: in a variable, or by functions. Without either it reads 0. */
	void *var;        /* int or uint64_t */
	int64_t min, max; /* of an int */
	uint64_t (*value)(void);
	void (*run)(void); /* called when 1 is written */
	/* Sets v, which is in range. 0, or -errno with a sentence in err (errlen > 0 bytes). */
	int (*apply)(int64_t v, char *err, size_t errlen);
	/* Text. get prints to out. val is NUL-terminated and trimmed; results as of apply(). */
	void (*get)(const struct sysctl *s, struct sbuf *out);
	int (*set)(const struct sysctl *s, const char *val, char *err, size_t errlen);
};

#define SYSCTL_ENTRY(ident)                       \
	static const struct sysctl sysctl_##ident \
	    __attribute__((section("sysctls"), used, aligned(8)))

/* An int or a 64-bit number in a variable. */
#define SYSCTL_INT(ident, nm, fl, ptr, lo, hi, ds)      \
	SYSCTL_ENTRY(ident) = {.name = nm,              \
			       .descr = ds,             \
			       .type = SYSCTL_TYPE_INT, \
			       .flags = fl,             \
			       .var = ptr,              \
			       .min = lo,               \
			       .max = hi}
#define SYSCTL_U64(ident, nm, fl, ptr, ds) \
	SYSCTL_ENTRY(                      \
	    ident) = {.name = nm, .descr = ds, .type = SYSCTL_TYPE_U64, .flags = fl, .var = ptr}
/* A number by functions: an int from lo to hi, or 64 bits. applyf NULL: read-only. */
#define SYSCTL_INT_CALL(ident, nm, fl, valuef, applyf, lo, hi, ds) \
	SYSCTL_ENTRY(ident) = {.name = nm,                         \
			       .descr = ds,                        \
			       .type = SYSCTL_TYPE_INT,            \
			       .flags = fl,                        \
			       .value = valuef,                    \
			       .apply = applyf,                    \
			       .min = lo,                          \
			       .max = hi}
#define SYSCTL_U64_CALL(ident, nm, fl, valuef, applyf, ds) \
	SYSCTL_ENTRY(ident) = {.name = nm,                 \
			       .descr = ds,                \
			       .type = SYSCTL_TYPE_U64,    \
			       .flags = fl,                \
			       .value = valuef,            \
			       .apply = applyf}
/* A command: writing 1 calls fn. Reads 0. */
#define SYSCTL_COMMAND(ident, nm, fn, ds)               \
	SYSCTL_ENTRY(ident) = {.name = nm,              \
			       .descr = ds,             \
			       .type = SYSCTL_TYPE_INT, \
			       .flags = SYSCTL_WR,      \
			       .run = fn,               \
			       .max = 1}
/* Text by functions. setf NULL: read-only. */
#define SYSCTL_TEXT(ident, nm, fl, getf, setf, ds)       \
	SYSCTL_ENTRY(ident) = {.name = nm,               \
			       .descr = ds,              \
			       .type = SYSCTL_TYPE_TEXT, \
			       .flags = fl,              \
			       .get = getf,              \
			       .set = setf}
