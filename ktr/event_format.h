/*
 * event_format.h - the format of an event's record, as Linux's tools read it from a `format` file
 * or from the head of a trace.dat (Linux's Documentation/trace/events.rst, "Event formats").
 *
 * A record has the fields that all events have, then each parameter in 64 bits under its name
 * (ktr/param.h); of a text the place where it stands, but the name of a thread stands there itself.
 * With the `print fmt` readers print the text that ktrdump prints, but a number for %c, which they
 * do not know. Any context; no locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/param.h"
#include "ktr/probe.h"

/** Bytes of the fields that all events have: type, flags, preemption count, thread. */
#define KTR_FORMAT_COMMON 8u

/** An event as Linux's tools call it. */
#define KTR_EVENT_NAME 96u
struct ktr_event_name {
	char system[KTR_PROBE_TEXT]; /* the provider of a probe; "" of a trace point */
	char name[KTR_EVENT_NAME];   /* a C identifier: the probe's name, or FUNCTION_LINE */
	const char *fmt;             /* the format, without the name of a probe */
};
void ktr_event_name(struct ktr_event_name *to, const char *func, unsigned line, const char *fmt);

/** What a page of records looks like, and the head of a record: `header_page`, `header_event`. */
extern const char ktr_format_header_page[], ktr_format_header_event[];
/**
 * Writes the head of a record of n bytes, a multiple of 4, that is delta nanoseconds later than the
 * one before it. Returns how many bytes it has, at most KTR_FORMAT_RECORD_HEAD.
 */
#define KTR_FORMAT_RECORD_HEAD 16u
size_t ktr_format_record_head(uint8_t *to, uint64_t delta, size_t n);

/** Where the text goes, in pieces. */
struct ktr_format_out {
	void (*put)(void *arg, const char *text, size_t n);
	void *arg;
};

/** Bytes of a thread's name in a record, with its NUL, as in Linux. */
#define KTR_FORMAT_COMM 16u

/** The types of fields. */
enum ktr_field {
	KTR_FIELD_INT, /* 32 bits, signed */
	KTR_FIELD_UINT,
	KTR_FIELD_LONG, /* 64 bits, signed */
	KTR_FIELD_ULONG,
	KTR_FIELD_S64,
	KTR_FIELD_U64,
	KTR_FIELD_COMM,   /* char[16] */
	KTR_FIELD_STRING, /* the place of a text, which stands after the fields */
	KTR_FIELD_REST,   /* bytes to the end of the record; the last field */
	KTR_FIELD_CALLERS /* addresses to the end of the record, of which the format tells 8 */
};

/** A field's value in a record. */
struct ktr_value {
	enum ktr_field type;
	uint64_t number;
	const char *text; /* of COMM and the types after it */
	size_t len;       /* bytes of text, without a NUL */
};

/** The type of a parameter's field. */
enum ktr_field ktr_param_field(const struct ktr_param *p);
/**
 * Writes a record: the fields that all events have, these values, and zeros up to a multiple of 4.
 * Returns its bytes, at most KTR_FORMAT_COMMON, the bytes of the values, and 12.
 */
size_t ktr_record_put(uint8_t *to, uint32_t id, uint32_t tid, const struct ktr_value *v,
		      unsigned n);

/** The beginning: name, id, common fields. */
void ktr_format_begin(const struct ktr_format_out *out, const char *name, unsigned id);
/** A field at offset *at or soon after it; *at becomes the offset after the field. */
void ktr_format_field(const struct ktr_format_out *out, enum ktr_field type, const char *name,
		      unsigned *at);
/** Writes the fields of a trace point's parameters, and its print format, which leaves out the
 * first `silent` of them. */
void ktr_format_site(const struct ktr_format_out *out, const char *fmt,
		     const struct ktr_param *params, unsigned nargs, unsigned silent);
