/*
 * param.h - names and types of a trace point's parameters, read from its free-text format: what
 * typed exports call their fields.
 *
 * The rule. A parameter is named by the last word before its conversion, and behind the conversion
 * before: `"fork: parent %d child %d"` has parent and child, `"prio:%d"` prio, `"id:\"%s\""` id.
 * A word is a C identifier. Without one, and for the '*' of a width or precision, it is p1, p2…,
 * by its place. A name that stands already gets _2, _3… behind it: `"cpu %u to cpu %u"` has
 * cpu and cpu_2.
 *
 * In Kestrel's own trace points every parameter has a word, and no two the same one: `make lint`
 * (tests/lint/params.py) holds them to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTR_PARAM_MAX  6u
#define KTR_PARAM_NAME 32u

struct ktr_param {
	char name[KTR_PARAM_NAME]; /* a C identifier, cut to the buffer */
	bool string;               /* a %s */
	bool is_signed;
	uint8_t bits; /* of the value: 8, 16, 32, 64 */
};

/** Fills in p[0] to p[n - 1], whatever the format has: what it lacks is p1… of 64 bits. n <= 6. */
void ktr_params_scan(const char *fmt, struct ktr_param *p, unsigned n);

/** The value as its C type has it, extended again to 64 bits. */
uint64_t ktr_param_value(const struct ktr_param *p, uint64_t value);
