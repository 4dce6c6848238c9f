/*
 * sysctl.h - named variables, read and written as text: by the sysctl system call, by the debugger
 * and, under the same names, as loader tunables. Each is one entry in a linker section.
 *
 *   static int hz = 100;
 *   SYSCTL_INT(kern_hz, "kern.hz", SYSCTL_TUN, &hz, 10, 1000, "clock ticks a second");
 *
 * Handlers run in thread context with the sysctl mutex held, except for tunables at boot: then
 * before any thread, and with no heap unless SYSCTL_LATE is given (applied again after the heap
 * exists).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSCTL_WR   1 /* may be written at run time */
#define SYSCTL_TUN  2 /* may be set by a loader parameter */
#define SYSCTL_LATE 4 /* the tunable is applied when heap and threads exist, not at once */

enum sysctl_type { SYSCTL_TYPE_INT, SYSCTL_TYPE_U64, SYSCTL_TYPE_TEXT };

struct sbuf; /* kernel/lib/sbuf.h: text that grows, or is counted when its room is used up */

struct sysctl {
	const char *name, *descr;
	enum sysctl_type type;
	uint8_t flags;
	void *var;        /* int or uint64_t; NULL with handlers */
	int64_t min, max; /* of an int */
	void (*get)(const struct sysctl *s, struct sbuf *out);
	/*
	 * val is NUL-terminated and trimmed. 0, or a negative errno with a sentence in err (errlen
	 * > 0) that says what was found and what was expected.
	 */
	int (*set)(const struct sysctl *s, const char *val, char *err, size_t errlen);
};

#define SYSCTL_ENTRY(ident)                       \
	static const struct sysctl sysctl_##ident \
	    __attribute__((section("sysctls"), used, aligned(8)))

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
/* Handlers: setf NULL is read-only. */
#define SYSCTL_PROC(ident, nm, ty, fl, getf, setf, ds) \
	SYSCTL_ENTRY(                                  \
	    ident) = {.name = nm, .descr = ds, .type = ty, .flags = fl, .get = getf, .set = setf}

/* All of these: thread context, or early boot. Results are negative errnos; err gets a sentence. */
const struct sysctl *sysctl_find(const char *name);
/* The one after s in order of names; NULL gives the first; NULL after the last. */
const struct sysctl *sysctl_next(const struct sysctl *s);
void sysctl_get_text(const struct sysctl *s, struct sbuf *out);
int sysctl_set_text(const char *name, const char *val, char *err, size_t errlen);
