/*
 * merge.h - puts the events of all CPUs into the order of time, as they come out of a decoder.
 *
 * A MARK frame of the stream says up to which time all events have come. Older events are passed
 * on, and the others wait. At most as many wait as the writer sends in one pass, which is all that
 * the rings hold. The first few megabytes wait in memory, the rest in a nameless temporary file.
 */
#pragma once

#include "ktr/decode.h"

struct merge;

/**
 * event and gap are called in the order of time; within a CPU, in the order of sequence numbers.
 * Texts of thread idents are valid until the callback returns.
 */
struct merge_ops {
	void (*event)(void *arg, const struct ktr_decode_event *event);
	void (*gap)(void *arg, const struct ktr_decode_gap *gap);
};

/** NULL: no memory. */
struct merge *merge_create(const struct merge_ops *ops, void *arg);
void merge_destroy(struct merge *m);

/* From the decoder. 0; -1: no memory, or the temporary file cannot be written (errno). */
int merge_event(struct merge *m, const struct ktr_decode_event *event);
int merge_gap(struct merge *m, const struct ktr_decode_gap *gap);

/** Everything before ticks has come. As above. */
int merge_mark(struct merge *m, uint64_t ticks);
/** Everything has come. */
int merge_flush(struct merge *m);
