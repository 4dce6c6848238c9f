/*
 * decode.h - reads a stream (ktr/WIRE.md) from bytes that come in pieces, and says what it found.
 *
 * Any bytes are safe: after damage the decoder goes on with the next sound frame. It takes time in
 * proportion to the number of bytes, and less than 40 MB of memory; names that do not fit are
 * damage, also in a sound stream: of strings and threads 131,072 different texts, or 12 MiB, fit.
 * It needs no C library, only an allocator. One thread at a time may use a decoder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/event.h"
#include "ktr/intern.h"
#include "ktr/wire.h"

#define KTR_DECODE_CPUS 256u

/** The contents of a HEADER. Valid until ktr_decoder_destroy(). */
struct ktr_decode_header {
	unsigned flags; /* KTR_WIRE_START, KTR_WIRE_LIVE */
	const char *arch;
	const char *build;
	uint8_t boot_id[16];
	uint64_t hz; /* 0: not known, ticks are taken for nanoseconds */
	uint64_t boot_ticks;
	uint64_t ncpu;
	const char *classes[64]; /* names by bit; NULL: none */
};

/** The contents of a SITE. Valid until ktr_decoder_destroy(). */
struct ktr_decode_site {
	uint32_t number, line;
	uint64_t classes;
	uint32_t nargs;
	uint8_t strings; /* bit N: parameter N is a %s */
	bool parts;      /* the site's events are parts of long data (ktr/wire.h) */
	const char *file, *func, *fmt;
	struct ktr_event_plan plan; /* of fmt, for ktr_decode_text() */
};

/**
 * One event. What it points to is valid until ktr_decoder_destroy(), except for some texts in
 * strings[] (ktr_decode_passing()).
 */
struct ktr_decode_event {
	const struct ktr_decode_header *header; /* never NULL */
	const struct ktr_decode_site *site;     /* NULL: its SITE frame was lost */
	const char *thread;                     /* name; NULL: not known */
	uint64_t seq, ticks;
	uint32_t cpu, tid;
	uint32_t site_number;
	unsigned nargs; /* of args: the site's, or up to the last that is not 0 */
	uint64_t args[6];
	const char *strings[6]; /* texts of %s parameters; NULL: not a string, or not known */
};

/**
 * Does a parameter of that value stand for a text that is valid only until the callback returns?
 * Texts of thread idents and of long data are.
 */
static inline bool
ktr_decode_passing(uint64_t value)
{
	return value >> 48 == KTR_IDENT_TAG || ktr_data_is_word(value);
}

enum ktr_gap_reason {
	KTR_GAP_OVERWRITTEN = KTR_LOSS_OVERWRITTEN,
	KTR_GAP_CORRUPT = KTR_LOSS_CORRUPT,
	KTR_GAP_CLEARED = KTR_LOSS_CLEARED,
	KTR_GAP_DAMAGED, /* in frames that could not be read */
	KTR_GAP_LEFT     /* left in the ring when the stream was cut off */
};
/** One word for the reason. */
const char *ktr_gap_reason_name(enum ktr_gap_reason reason);

/** Events first to first + count - 1 of a CPU are missing. */
struct ktr_decode_gap {
	const struct ktr_decode_header *header;
	uint32_t cpu;
	enum ktr_gap_reason reason;
	uint64_t first, count;
	uint64_t from_ticks, to_ticks; /* between these times */
};

/** A CPU's accounting, from a STATS frame. */
struct ktr_decode_stats {
	uint32_t cpu;
	uint64_t recorded, delivered, resident, overwritten, dropped, suppressed;
};

/**
 * What the decoder calls. All but realloc may be NULL. arg is the one of ktr_decoder_create().
 * Events of a CPU come in the order of their sequence numbers; those of different CPUs come in any
 * order between two calls of mark. Parts of long data come as events too (site->parts), and then
 * again as a text of the event that they belong to.
 */
struct ktr_decoder_ops {
	/** As realloc; size 0 frees. */
	void *(*realloc)(void *p, size_t size);
	/** For the hash tables: a number that the writer of the stream cannot know. */
	uint64_t seed;
	/** If flags has KTR_WIRE_START, a new stream begins; all events of the old one have come.
	 */
	void (*header)(void *arg, const struct ktr_decode_header *header);
	void (*event)(void *arg, const struct ktr_decode_event *event);
	void (*gap)(void *arg, const struct ktr_decode_gap *gap);
	/** Every event before ticks, on every CPU, has come. ticks 0: nothing is promised. */
	void (*mark)(void *arg, uint64_t ticks);
	/** The classes that were recorded at this place of the stream. */
	void (*mask)(void *arg, uint64_t classes);
	void (*stats)(void *arg, const struct ktr_decode_stats *stats);
	/** The stream ended in good order (END). */
	void (*end)(void *arg);
	/** Bytes [offset, offset + bytes) could not be read; text says why. bytes 0: something is
	 * missing. */
	void (*damage)(void *arg, uint64_t offset, uint64_t bytes, const char *text);
};

struct ktr_decoder;

/** NULL: no memory. */
struct ktr_decoder *ktr_decoder_create(const struct ktr_decoder_ops *ops, void *arg);
void ktr_decoder_destroy(struct ktr_decoder *d);

/** The next bytes. 0, or -ENOMEM (-12), after which the decoder can only be destroyed. */
int ktr_decoder_push(struct ktr_decoder *d, const void *bytes, size_t len);
/** The input has ended: reports what is cut off. Same results. */
int ktr_decoder_finish(struct ktr_decoder *d);

/** Frames with a right checksum so far. */
uint64_t ktr_decoder_frames(const struct ktr_decoder *d);

/** Nanoseconds since boot; a time that is further away than 292 years is cut to that. */
int64_t ktr_decode_ns(const struct ktr_decode_header *header, uint64_t ticks);

/** The text of an event; `(site N)` and parameters if its site is not known. As snprintf(). */
int ktr_decode_text(char *buf, size_t len, const struct ktr_decode_event *event);
