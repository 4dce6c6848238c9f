/*
 * stream.h - draining the rings into a byte stream (ktr/WIRE.md): for the flush thread, /dev/ktr,
 * and the dump after a panic.
 *
 * Each stream has its own position in every ring; streams do not affect each other. One of them is
 * the accounting stream (KTR_STREAM_ACCOUNT): struct ktr_stats calls an event delivered when the
 * stream's user has said that its bytes were taken.
 *
 * One thread at a time uses a stream. Functions take the control lock, and may sleep, unless
 * KTR_STREAM_STOPPED is set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/encode.h"
#include "ktr/ring.h"

/** Begin with the events that are recorded from now on. Without this flag a stream begins with
 * the log's first event, and says how many were overwritten. */
#define KTR_STREAM_NOW 1u
/**
 * This is the accounting stream. It begins with the first event that the last one did not deliver,
 * and reports those that were overwritten since. At most one at a time.
 */
#define KTR_STREAM_ACCOUNT 2u
/** The stream may end after any pass, and a reader does not call that damage. For devices. */
#define KTR_STREAM_LIVE 4u
/** The machine is stopped (panic, debugger): take no lock, and do not interrupt other CPUs. */
#define KTR_STREAM_STOPPED 8u

/** After so many bytes metadata is sent again, so that a reader may begin in the middle. */
#define KTR_STREAM_REPEAT (1u << 20)

/** Frames of events that a stream makes at once. */
#ifdef KTR_SMALL
#define KTR_STREAM_FRAMES 4u
#else
#define KTR_STREAM_FRAMES 256u
#endif

/** An index of struct ktr_stream_count, after enum ktr_wire_loss. */
#define KTR_STREAM_DELIVERED 3u

enum ktr_stream_state {
	KTR_STREAM_IDLE,    /* between passes */
	KTR_STREAM_PASS,    /* in a pass */
	KTR_STREAM_CLOSING, /* END is to come */
	KTR_STREAM_ENDED
};

/** What became of a CPU's events: next = first + the sum of `of`. */
struct ktr_stream_count {
	uint64_t next;   /* sequence number */
	uint64_t events; /* delivered, but for parts of long data */
	uint64_t of[KTR_STREAM_DELIVERED + 1];
};

/** Takes 65 KiB, or 5 KiB with KTR_SMALL, and more with more CPUs: not for a stack. Only
 * stream.c uses its members. */
struct ktr_stream {
	struct ktr_encoder enc;
	struct ktr_log *log;
	unsigned flags;
	enum ktr_stream_state state;
	unsigned turn;    /* CPU whose batch is next */
	uint64_t started; /* ticks at the start of the pass */
	uint64_t mark;    /* of the pass: ticks, 0 when nothing can be promised */
	uint64_t settled; /* start of the last pass after which CPUs were in sync: the next mark */
	uint64_t start_end; /* enc.total after the HEADER that begins the stream; 0 before */
	uint64_t header_at; /* enc.total at the last HEADER */
	uint64_t mask_told; /* by the last MASK */
	uint64_t limit;     /* of events in it */
	uint64_t reused;    /* ktr_dynamic_reused, when sites were last told */
	bool first_pass;
	bool pass_over; /* all frames of the pass are made; after them the next read returns 0 */
	bool making;    /* atomic: frames are being made, none of whose bytes was taken */
	bool truncated;
	struct ktr_wire_cpu rows[KTR_PORT_MAXCPU]; /* scratch */
	unsigned frame_count, frames_taken;        /* of frames */
	struct ktr_stream_frame {
		uint32_t end;          /* offset in enc.out of what follows it */
		uint16_t cpu, what;    /* what: index of struct ktr_stream_count's `of` */
		uint64_t first, count; /* its entries */
		uint64_t events;       /* of these, if they are delivered: no parts of long data */
		uint64_t ticks;        /* of the last event up to here */
	} frames[KTR_STREAM_FRAMES];   /* KTR_STREAM_ACCOUNT: those in enc.out that are about events
					*/
	struct ktr_stream_cpu {
		bool exists;
		uint64_t first;                /* sequence number at open */
		uint64_t end;                  /* end of the pass: events below it belong to it */
		uint64_t ticks;                /* up to which frames tell of the CPU; 0: nothing */
		struct ktr_stream_count made;  /* in all frames */
		struct ktr_stream_count taken; /* in those that were taken */
	} cpu[KTR_PORT_MAXCPU];
};

/**
 * Sets what HEADER says about the machine. Call it again when more becomes known. Early boot, or
 * control lock held.
 */
void ktr_info_set(const struct ktr_info *info);
const struct ktr_info *ktr_info_get(void);

/** A stream of the main log. */
void ktr_stream_open(struct ktr_stream *s, unsigned flags);
/** A stream of any log. */
void ktr_stream_open_log(struct ktr_stream *s, struct ktr_log *log, unsigned flags);

/**
 * Makes frames in buf, size >= KTR_ENCODER_OUT, instead of in the stream's own buffer of that size.
 * The stream uses it until it gets another one, or is opened again. Call this before the first
 * read, or when everything that was peeked at has been taken.
 */
void ktr_stream_buffer(struct ktr_stream *s, void *buf, size_t size);

/**
 * The next bytes of the stream: *bytes points to them, and they stay until ktr_stream_taken().
 * Returns how many. A pass covers the events from where the stream is to the newest at its start;
 * 0: the pass is finished, and the next call begins another. Never waits for events.
 */
size_t ktr_stream_peek(struct ktr_stream *s, const uint8_t **bytes);

/**
 * The first n of the bytes that ktr_stream_peek() returned have been written. An event counts as
 * delivered when its whole frame has been taken. The next accounting stream begins with the first
 * event that was not delivered.
 */
void ktr_stream_taken(struct ktr_stream *s, size_t n);

/**
 * Copies up to len bytes of the stream to buf, and takes them. A frame may be split between calls.
 * Returns how many bytes; 0 as from ktr_stream_peek().
 */
size_t ktr_stream_read(struct ktr_stream *s, void *buf, size_t len);

/**
 * Lets no more than so many events into an accounting stream, parts of long data not counted; 0:
 * any number. When they are there, nothing more comes of what is recorded, and the stream promises
 * nothing of it (MARK).
 */
void ktr_stream_limit(struct ktr_stream *s, uint64_t events);

/** Events that were taken from an accounting stream, parts of long data not counted. Any context.
 */
uint64_t ktr_stream_events(const struct ktr_stream *s);

/** Events that are recorded, but not yet taken; for watermarks. Takes the control lock. */
uint64_t ktr_stream_pending(const struct ktr_stream *s);

/**
 * Ends the stream: the frames that have been made are still to be read, and then the END frame;
 * after that ktr_stream_read() returns 0. truncated: there were more events to write. Then frames
 * of which nothing has been taken are dropped, and the stream says how many events it leaves out.
 */
void ktr_stream_close(struct ktr_stream *s, bool truncated);
