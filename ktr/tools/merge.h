/*
 * merge.h - puts the events of all CPUs, which come from a decoder, into the order of time.
 *
 * A MARK frame of the stream says up to which time all events have come. Older events are passed
 * on, and the others wait. No more events wait than the writer sends in one pass: of a stream, at
 * most what the rings hold; of a file of ktrace, whose reader has sorted it, some thousand. The
 * first few megabytes wait in memory, the rest in a nameless temporary file.
 */
#pragma once

#include "ktr/decode.h"

struct merge;

/**
 * event and gap are called in the order of time; for one CPU, in the order of sequence numbers.
 * Texts of thread idents are valid until the callback returns.
 */
struct merge_ops {
	void (*event)(void *arg, const struct ktr_decode_event *event);
	void (*gap)(void *arg, const struct ktr_decode_gap *gap);
};

/** NULL: no memory. */
struct merge *merge_create(const struct merge_ops *ops, void *arg);
void merge_destroy(struct merge *m);
/** The arg of merge_create(). */
void *merge_arg(const struct merge *m);

/* A decoder calls these: its arg is the merge. */

/** Adds an event or a gap. */
void merge_event(void *merge, const struct ktr_decode_event *event);
void merge_gap(void *merge, const struct ktr_decode_gap *gap);
/** Says that everything before `ticks` has come, and passes it on. */
void merge_mark(void *merge, uint64_t ticks);
/** Says that everything has come, and passes it on. */
void merge_flush(void *merge);

/**
 * Returns 0; or the errno of what went wrong: there is no memory, or the temporary file cannot be
 * written. Then nothing more is passed on.
 */
int merge_error(const struct merge *m);
