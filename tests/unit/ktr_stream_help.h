/*
 * ktr_stream_help.h - for tests of streams over live rings: collects the bytes of streams, and what
 * a decoder finds in them.
 *
 * Locking: none; one thread reads streams.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/control.h"
#include "ktr/decode.h"
#include "ktr/port.h"
#include "ktr/stream.h"
#include "tests/unit/ktr_decode_help.h"
#include "tests/unit/ktr_ring_help.h"

#define STREAM_CPUS    2u
#define STREAM_ENTRIES 64u

/* The bytes of all streams since the test began. */
static uint8_t stream_buf[1 << 22];
static size_t stream_len;

static struct ktr_stream account; /* the accounting stream */
static bool damage_expected;      /* then damage is not printed */

/* What the last decoder found. */
static struct {
	uint64_t events[STREAM_CPUS], value[STREAM_CPUS]; /* by CPU: count, last parameter */
	uint64_t gaps[5];                                 /* by reason */
	uint64_t damages, marks, last_mark, ends;
	uint64_t mask[16]; /* as told, in order */
	unsigned masks;
	uint64_t first_ticks[64]; /* of the first events */
	size_t first_count;
	uint64_t events_below_mark;  /* of those, the ones below the last mark */
	uint64_t before_mark;        /* events whose time is below an earlier mark */
	uint64_t ticks[STREAM_CPUS]; /* of the last event, or of the end of the last gap */
	bool bad_order;
	/* of the last event */
	bool known; /* its site is known */
	char thread[32];
	size_t fmt_len;
} seen;

static inline void
stream_on_event(void *arg, const struct ktr_decode_event *e)
{
	seen.events[e->cpu]++;
	if (seen.first_count < sizeof(seen.first_ticks) / sizeof(seen.first_ticks[0]))
		seen.first_ticks[seen.first_count++] = e->ticks;
	seen.before_mark += e->ticks < seen.last_mark;
	seen.bad_order |= e->ticks < seen.ticks[e->cpu];
	seen.ticks[e->cpu] = e->ticks;
	seen.bad_order |= e->nargs > 0 && e->args[0] < seen.value[e->cpu];
	if (e->nargs > 0)
		seen.value[e->cpu] = e->args[0];
	seen.known = e->site != NULL;
	seen.fmt_len = e->site != NULL ? strlen(e->site->fmt) : 0;
	snprintf(seen.thread, sizeof(seen.thread), "%s", e->thread != NULL ? e->thread : "");
}

static inline void
stream_on_gap(void *arg, const struct ktr_decode_gap *g)
{
	seen.gaps[g->reason] += g->count;
	seen.bad_order |= g->from_ticks < seen.ticks[g->cpu] || g->to_ticks < g->from_ticks;
	seen.ticks[g->cpu] = g->to_ticks;
}

static inline void
stream_on_mark(void *arg, uint64_t t)
{
	seen.marks++;
	seen.last_mark = t;
	seen.events_below_mark = 0;
	for (size_t i = 0; i < seen.first_count; i++)
		seen.events_below_mark += seen.first_ticks[i] < t;
}

static inline void
stream_on_mask(void *arg, uint64_t classes)
{
	if (seen.masks < sizeof(seen.mask) / sizeof(seen.mask[0]))
		seen.mask[seen.masks++] = classes;
}

static inline void
stream_on_end(void *arg)
{
	seen.ends++;
}

static inline void
stream_on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	if (!damage_expected)
		printf("# damage at %llu, %llu bytes: %s\n", (unsigned long long)offset,
		       (unsigned long long)bytes, text);
	seen.damages++;
}

/* Decodes the collected bytes, and fills `seen`. */
static inline void
stream_decode(void)
{
	static const struct ktr_decoder_ops ops = {.realloc = decode_realloc,
						   .event = stream_on_event,
						   .gap = stream_on_gap,
						   .mark = stream_on_mark,
						   .mask = stream_on_mask,
						   .end = stream_on_end,
						   .damage = stream_on_damage};
	memset(&seen, 0, sizeof(seen));
	struct ktr_decoder *d = ktr_decoder_create(&ops, NULL);
	assert_int_equal(ktr_decoder_push(d, stream_buf, stream_len), 0);
	assert_int_equal(ktr_decoder_finish(d), 0);
	ktr_decoder_destroy(d);
	assert_int_equal(seen.before_mark, 0);
}

/* Runs one pass of a stream, in pieces. Returns the number of bytes. */
static inline size_t
stream_drain(struct ktr_stream *s, size_t piece)
{
	size_t n, sum = 0;
	while ((n = ktr_stream_read(s, stream_buf + stream_len, piece)) > 0) {
		stream_len += n;
		sum += n;
	}
	return sum;
}

/* Runs a last pass, and ends the stream. */
static inline void
stream_drain_to_end(struct ktr_stream *s, size_t piece)
{
	stream_drain(s, piece);
	ktr_stream_close(s, false);
	stream_drain(s, piece);
}

/* A test's setup: rings of STREAM_ENTRIES on STREAM_CPUS; earlier events are accounted for. */
static inline int
stream_begin(void **state)
{
	ring_make(STREAM_CPUS, STREAM_ENTRIES);
	ktr_stream_open(&account, KTR_STREAM_ACCOUNT);
	stream_len = 0;
	stream_drain(&account, sizeof(stream_buf));
	stream_len = 0;
	memset(&seen, 0, sizeof(seen));
	return 0;
}
