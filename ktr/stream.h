/*
 * stream.h - draining the rings into a byte stream (ktr/WIRE.md): the flush thread, /dev/ktr, the
 * dump after a panic.
 *
 * Each stream has its own place in every ring, and none disturbs another. One of them is the
 * accounting stream (KTR_STREAM_ACCOUNT): what it takes is what struct ktr_stats calls delivered.
 *
 * A stream is used by one thread at a time. Functions take the control lock, and may sleep, unless
 * KTR_STREAM_STOPPED is set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/encode.h"
#include "ktr/ring.h"

/** Begin with the events that are recorded from now on; else with the oldest that are resident. */
#define KTR_STREAM_NOW 1u
/**
 * This is the accounting stream: it goes on where the last one stopped, and what was overwritten
 * since is reported. At most one at a time.
 */
#define KTR_STREAM_ACCOUNT 2u
/** A snapshot: a reader takes the end of any pass for a good end. For devices. */
#define KTR_STREAM_LIVE 4u
/** The machine is stopped (panic, debugger): take no lock, ask nobody. */
#define KTR_STREAM_STOPPED 8u

/** After so many bytes metadata is sent again, so that a reader may begin in the middle. */
#define KTR_STREAM_REPEAT (1u << 20)

enum ktr_stream_state {
	KTR_STREAM_IDLE,    /* between passes */
	KTR_STREAM_PASS,    /* in a pass */
	KTR_STREAM_CLOSING, /* END is to come */
	KTR_STREAM_ENDED
};

/** About 70 KiB: not for a stack. Private to stream.c, but for allocation. */
struct ktr_stream {
	struct ktr_encoder enc;
	struct ktr_log *log;
	unsigned flags;
	enum ktr_stream_state state;
	unsigned turn;      /* CPU whose batch is next */
	uint64_t started;   /* ticks at the start of the pass */
	uint64_t mark;      /* of the pass: ticks, 0 when nothing can be promised */
	uint64_t settled;   /* start of the last pass after which CPUs were in sync: the next mark */
	uint64_t header_at; /* enc.total at the last HEADER */
	bool first_pass;
	bool pass_over; /* its last byte is made; a read of 0 is due */
	bool truncated;
	struct ktr_wire_cpu rows[KTR_PORT_MAXCPU]; /* scratch */
	struct ktr_stream_cpu {
		bool exists;
		uint64_t first;  /* sequence number at open */
		uint64_t cursor; /* next sequence number */
		uint64_t end;    /* of the pass: events below it belong to it */
		uint64_t ticks;  /* of the last event delivered; 0 none */
		uint64_t delivered, overwritten, cleared;
	} cpu[KTR_PORT_MAXCPU];
};

/** What HEADER says about the machine; call it again when something becomes known. Any context. */
void ktr_info_set(const struct ktr_info *info);
const struct ktr_info *ktr_info_get(void);

/** A stream of the main log. */
void ktr_stream_open(struct ktr_stream *s, unsigned flags);
/** A stream of any log. */
void ktr_stream_open_log(struct ktr_stream *s, struct ktr_log *log, unsigned flags);

/**
 * Fills buf with up to len bytes of the stream, which may stop at any byte and goes on with the
 * next call. A pass covers the events from where the stream is to the newest at its start. Returns
 * the number of bytes; 0: the pass is finished, and the next call begins another. Never blocks for
 * events.
 */
size_t ktr_stream_read(struct ktr_stream *s, void *buf, size_t len);

/** Events that are recorded, but not yet taken; for watermarks. No lock, any context. */
uint64_t ktr_stream_pending(const struct ktr_stream *s);

/**
 * Ends the stream: ktr_stream_read() goes on until 0 with what is in the buffers and the END frame.
 * truncated: events are left that the stream should have had, and it says so.
 */
void ktr_stream_close(struct ktr_stream *s, bool truncated);
