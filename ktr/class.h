/*
 * class.h - the event classes: constants, names, and the one parser of masks.
 *
 * The tables are constant. No function here takes a lock; all may be called in any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** One bit per class: KTR_GEN … KTR_PTRACE. The mask is 64 bits wide. */
__extension__ enum ktr_class_bit {
#define KTR_CLASS(name, bit, text) KTR_##name = bit,
#include "ktr/classes.def"
#undef KTR_CLASS
	/** Not a class: makes every constant 64 bits wide. */
	KTR_CLASS_WIDE = 0x8000000000000000ull
};

/** Every bit of the mask, with a name or without. */
#define KTR_ALL (~(uint64_t)0)

/** A class, for tools and for the stream's header. */
struct ktr_class {
	uint64_t bit;     /* exactly one bit */
	const char *name; /* without "KTR_" */
	const char *text; /* one line */
};

extern const struct ktr_class ktr_classes[];
extern const unsigned ktr_class_count;

/**
 * Parses a mask: class names separated by ',' or '|' (spaces allowed), each with or without "KTR_",
 * in either case; numbers in decimal or 0x form; ALL and NONE. A word after the first may begin
 * with
 * -, which takes its classes away again. An empty text is an error, NONE is 0.
 *
 * @mask is set only on success. @err (may be NULL) receives one sentence that says what was found
 * and what was expected, for example `no class "SCHD"; did you mean SCHED?`. Returns 0, or -EINVAL
 * (-22).
 */
int ktr_mask_parse(const char *text, uint64_t *mask, char *err, size_t errlen);

/**
 * Parses a change of a mask: words as of ktr_mask_parse(), perhaps with + or -. If the first one
 * does, *on and *off are the classes to switch on and off, and others stay ("+LOCK,-CALLOUT").
 * Otherwise the text says all of the mask, and *off is what *on is not ("ALL,-CALLOUT"). The last
 * word about a class counts. Same errors as ktr_mask_parse(); both are set only on success.
 */
int ktr_mask_parse_change(const char *text, uint64_t *on, uint64_t *off, char *err, size_t errlen);

/**
 * Prints @mask as names separated by ',', bits without a name as one 0x number, "NONE" when it is
 * 0. Returns the length that the whole text has, as snprintf does.
 */
int ktr_mask_print(uint64_t mask, char *buf, size_t len);

/**
 * Parses a set of CPUs: "all", "none", "0-3,5", or a 0x number whose bit N stands for CPU N (N <
 * 64). Same errors as ktr_mask_parse().
 */
int ktr_cpumask_parse(const char *text, uint64_t *cpus, char *err, size_t errlen);

/** Prints a set of CPUs in the form "0-3,5"; "none" when empty, "all" when it is every bit. Returns
 * as snprintf does. */
int ktr_cpumask_print(uint64_t cpus, char *buf, size_t len);
