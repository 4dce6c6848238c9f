/*
 * event.h - the text of an event: the one formatter, for the debugger, the console and the tools.
 * Any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Turns a %s parameter into text, NULL when it is not known: it prints as `(bad 0x…)`. */
typedef const char *ktr_string_fn(void *arg, uint64_t value);

/**
 * Formats up to nargs parameters; missing ones are 0. string may not be NULL.
 * Returns the length of the whole text, as snprintf does; buf always gets a NUL when len > 0.
 */
int ktr_event_text(char *buf, size_t len, const char *fmt, const uint64_t *args, unsigned nargs,
		   ktr_string_fn *string, void *arg);

/** Which parameters of a format are %s: bit N for parameter N, counting those of '*'. */
uint8_t ktr_event_strings(const char *fmt);

struct ktr_site;
struct ktr_entry;

/** The text of an event in this program's own memory: strings are found by ktr_string_text(). */
int ktr_entry_text(char *buf, size_t len, const struct ktr_site *site,
		   const struct ktr_entry *entry);
