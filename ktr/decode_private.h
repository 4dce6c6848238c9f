/*
 * decode_private.h - what the files of the decoder share. Not for users.
 */
#pragma once

#include "ktr/decode.h"
#include "ktr/intern.h"
#include "ktr/map.h"

/** Chunks of memory that are freed together. */
struct decode_store {
	struct decode_chunk *chunks;
	size_t size;
};

/** Texts by number, told since the last HEADER; before: told since the HEADER before that one. */
struct decode_names {
	struct ktr_map now, before;
	struct decode_store idents, idents_before; /* texts of thread idents, likewise */
};

struct decode_cpu {
	bool known;               /* next means something */
	uint64_t next;            /* sequence number expected */
	uint64_t ticks;           /* of the last event, or of the end of a loss after it; 0 none */
	uint64_t events;          /* since the stream's START */
	struct decode_data *data; /* decode_data.c; NULL: none came yet */
};

/** The last event of a site in a batch, from which the next one differs (WIRE.md, BATCH). */
struct decode_slot {
	uint64_t batch;     /* the number of that batch; of another one: the slot is empty */
	uint32_t successor; /* number + 1 of the site that last followed; 0: none yet */
	struct ktr_decode_event event;
};

struct ktr_decoder {
	struct ktr_decoder_ops ops;
	void *arg;
	bool no_memory;

	/* Framing. */
	uint8_t raw[KTR_WIRE_COBS_MAX + 1]; /* the beginning of a frame, of an earlier push */
	uint8_t frame[KTR_WIRE_FRAME_MAX];  /* without COBS */
	size_t raw_len;
	uint64_t offset;     /* in the input, of the next byte */
	uint64_t frame_at;   /* offset of the frame that is looked at */
	uint64_t frames;     /* sound ones */
	uint64_t bad_at;     /* run of damage that is not reported yet */
	uint64_t bad_len;    /* 0: none */
	uint64_t bad_frames; /* in it */
	char bad_text[120];  /* of its first frame */

	/* The stream. */
	const struct ktr_decode_header *header;
	bool any_header, ended, at_mark;
	bool header_lost; /* there was no room for the last header */
	struct decode_cpu cpu[KTR_DECODE_CPUS];
	struct decode_names strings, threads;
	struct ktr_map sites, sites_before; /* by number: told since the last START, and ever */
	uint64_t batches;                   /* so far */
	struct decode_slot slots[KTR_WIRE_SLOTS];

	/* decode_store.c */
	struct decode_store texts;
	struct ktr_map once; /* texts by their hash: each is kept once */
};

/** Is that %s parameter a thread's ident? */
static inline bool
decode_is_ident(uint64_t value)
{
	return value >> 48 == KTR_IDENT_TAG;
}

static inline const char *
decode_names_get(const struct decode_names *names, uint64_t key)
{
	const char *now = ktr_map_get(&names->now, key);
	return now != NULL ? now : ktr_map_get(&names->before, key);
}

void decode_store_init(struct ktr_decoder *d);
void decode_store_free(struct ktr_decoder *d);
/**
 * Memory that lives as long as the decoder. NULL: there is no room, and no_memory is set when that
 * is because memory has run out.
 */
void *decode_alloc(struct ktr_decoder *d, size_t size, size_t align);
/**
 * Keeps a text of n bytes, or up to the first NUL, as long as the decoder lives. Equal texts are
 * kept once. NULL as for decode_alloc().
 */
const char *decode_text(struct ktr_decoder *d, const uint8_t *bytes, size_t n);
/** Keeps a name that a frame tells. False: there is no room; d->no_memory may be set. */
bool decode_name(struct ktr_decoder *d, struct decode_names *names, uint64_t key,
		 const uint8_t *bytes, size_t n);
/** Ages the names, since a HEADER has come: those that are in use will be told again. */
void decode_names_age(struct ktr_decoder *d, struct decode_names *names);

/** Is that the format of the site whose events are parts of long data? */
bool decode_data_format(const char *fmt);
/** A part of long data comes on that CPU. */
void decode_data_part(struct ktr_decoder *d, unsigned cpu, const uint64_t args[6]);
/** The data that an event names, as text. It stays until the CPU's next part. NULL: no memory. */
const char *decode_data_text(struct ktr_decoder *d, unsigned cpu, uint64_t word);

/**
 * Takes a frame whose checksum is right. Returns NULL, or what is wrong with it: then what could be
 * understood has been used.
 */
const char *decode_frame(struct ktr_decoder *d, unsigned type, const uint8_t *body, size_t len);
