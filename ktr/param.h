/*
 * param.h - names and types of a trace point's parameters, read from its free-text format: what
 * typed exports call their fields.
 *
 * The rule: a parameter's name is the last word between the previous conversion and its own.
 * `"fork: parent %d child %d"` has parent and child, `"prio:%d"` has prio, `"id:\"%s\""` has id.
 * A conversion may say itself what it is called: `"%{sector}lu + %{count}u"` has sector and count.
 * A word is a C identifier. A parameter without a word, and the '*' of a width or precision, is
 * called p1, p2… by its position. If a name is taken, _2, _3… is appended: `"cpu %u to cpu %u"` has
 * cpu and cpu_2.
 *
 * In Kestrel's own trace points each parameter has a word, and all words of a trace point differ.
 * `make lint` checks this (tests/lint/params.py).
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

/** Fills in p[0] to p[n - 1]. Parameters that the format lacks are p1… of 64 bits. n <= 6. */
void ktr_params_scan(const char *fmt, struct ktr_param *p, unsigned n);

/** Is the parameter the name of a thread: `comm`, `next_comm`? */
bool ktr_param_is_comm(const struct ktr_param *p);

/** The value cut to the size of its C type, and extended to 64 bits again. */
uint64_t ktr_param_value(const struct ktr_param *p, uint64_t value);
