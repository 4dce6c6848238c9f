/* ktr_help.h - what the tests of the event log share. Thread context. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ktr/control.h"
#include "ktr/ring.h"

/* Prepares the log: no classes, all CPUs, empty rings of `entries`. */
void ktr_test_begin(unsigned entries);
/* Restores what other tests expect. */
void ktr_test_end(void);
/* Fails unless recorded = delivered + resident + overwritten on each CPU. */
void ktr_test_accounting(void);
/* Sums over all CPUs. */
void ktr_test_sum(struct ktr_stats *sum);
/*
 * Calls fn for each event in the rings, by CPU, oldest first. Fails if an event is not whole, or
 * older than the one before it. No events may be recorded meanwhile.
 */
void ktr_test_each(void (*fn)(unsigned cpu, const struct ktr_entry *e, void *arg), void *arg);

/* A stream, read whole into memory. */
struct ktr_test_stream {
	uint8_t *data;
	size_t len, size;
	unsigned headers, batches, ends, truncated, damaged; /* frames found */
	uint64_t events;                                     /* in batches */
	uint64_t lost;                                       /* in LOSS frames */
};

/* Reads path until a read returns 0, and checks every frame. Fails if path cannot be opened. */
void ktr_test_read_stream(const char *path, struct ktr_test_stream *s);
void ktr_test_free_stream(struct ktr_test_stream *s);
