/*
 * export.h - writers of other tools' formats: each is one file, and one line of the table in
 * export.c. Host only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ktr/decode.h"

struct export; /* a writer's own */

/**
 * A format. Events come in the order of time, within a CPU in that of their numbers, and gaps where
 * they belong. Functions that return bool: false, with a sentence in err that says what failed.
 */
struct export_format {
	const char *name; /* of --format */
	const char *what; /* one line of the help text */
	bool
	    needs_path; /* a name is needed: it is more than one file, or is written out of order */
	/** NULL: it cannot be begun. What is written goes to another name until it is complete. */
	struct export *(*open)(const char *path, char *err, size_t errlen);
	bool (*event)(struct export *x, const struct ktr_decode_event *e, char *err, size_t errlen);
	bool (*gap)(struct export *x, const struct ktr_decode_gap *g, char *err, size_t errlen);
	/** Ends it: under its final name when complete is true, else nothing stays. Frees x. */
	bool (*close)(struct export *x, bool complete, char *err, size_t errlen);
};

extern const struct export_format export_ctf;      /* export_ctf.c */
extern const struct export_format export_tracedat; /* export_tracedat.c */

/** NULL: no such format. */
const struct export_format *export_find(const char *name);
/** Format number n, from 0; NULL behind the last. */
const struct export_format *export_nth(unsigned n);

/** Puts a sentence into err. Returns false, for writers to return. */
__attribute__((format(printf, 3, 4))) bool export_fail(char *err, size_t errlen, const char *fmt,
						       ...);
