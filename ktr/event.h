/*
 * event.h - the text of an event: the one formatter, for the debugger, the console and the tools.
 * Any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * Nanoseconds of so many ticks of a counter of hz a second, rounded down; UINT64_MAX: more than
 * 2^63. 0 < hz <= 18 GHz.
 */
static inline uint64_t
ktr_ticks_to_ns(uint64_t ticks, uint64_t hz)
{
	const uint64_t second = 1000000000u;
	uint64_t seconds = ticks / hz;
	/* The remainder is below hz, so that its product fits. */
	return seconds > INT64_MAX / second ? UINT64_MAX
					    : seconds * second + ticks % hz * second / hz;
}

/**
 * The plain conversions at the beginning of a format: those without width, precision, %c and so on.
 * Made once for a format of which many events are printed.
 */
#define KTR_PLAN_PIECES 7u
struct ktr_event_plan {
	uint8_t count;
	uint32_t rest; /* offset in the format of what the pieces do not cover */
	struct ktr_plan_piece {
		uint16_t start, len; /* the literal in the format */
		uint8_t kind;        /* of the conversion after it; event.c */
	} pieces[KTR_PLAN_PIECES];
};

void ktr_event_plan(struct ktr_event_plan *plan, const char *fmt);

/** The text of %s parameter number i, below 6. NULL: not known, it prints as `(bad 0x…)`. */
typedef const char *ktr_string_fn(void *arg, unsigned i, uint64_t value);

/**
 * Formats up to nargs parameters; missing ones are 0. plan: of this format, or NULL. string: gives
 * the texts of parameters; if it is NULL, arg is an array of the nargs texts. Returns the length of
 * the whole text, as snprintf does; buf always gets a NUL when len > 0.
 */
int ktr_event_text(char *buf, size_t len, const struct ktr_event_plan *plan, const char *fmt,
		   const uint64_t *args, unsigned nargs, ktr_string_fn *string, void *arg);

/** Which parameters of a format are %s: bit N for parameter N, counting those of '*'. */
uint8_t ktr_event_strings(const char *fmt);

struct ktr_site;
struct ktr_log;
struct ktr_entry;

/**
 * Formats an event of this program's main log. Strings are found by ktr_string_text(), and long
 * data in the ring of that CPU, before event `seq`; KTR_SEQ_NEWEST if it was just recorded.
 */
#define KTR_SEQ_NEWEST UINT64_MAX
/* Formats an event by `fmt`, which need not be the format of its site. */
int ktr_entry_print(char *buf, size_t len, const struct ktr_log *log, const char *fmt,
		    unsigned nargs, const struct ktr_entry *entry, unsigned cpu, uint64_t seq);
int ktr_entry_text(char *buf, size_t len, const struct ktr_site *site,
		   const struct ktr_entry *entry, unsigned cpu, uint64_t seq);
