/*
 * decode_private.h - what the files of the decoder share. Not for users.
 */
#pragma once

#include "ktr/decode.h"

/** Number → pointer, open addressing; keys may be any number. */
struct decode_map {
	struct decode_pair {
		uint64_t key;
		const void *value; /* NULL: free */
	} * pairs;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

/** Names by number: those told since the last HEADER, and those told since the one before. */
struct decode_names {
	struct decode_map now, before;
};

struct decode_cpu {
	bool known;      /* next means something */
	uint64_t next;   /* sequence number expected */
	uint64_t ticks;  /* of the last event; 0 none */
	uint64_t events; /* since the stream's START */
};

struct ktr_decoder {
	struct ktr_decoder_ops ops;
	void *arg;
	bool no_memory;

	/* Framing. */
	uint8_t raw[KTR_WIRE_COBS_MAX]; /* bytes since the last delimiter */
	size_t raw_len;
	uint64_t offset;     /* in the input, of the next byte */
	uint64_t frame_at;   /* offset of raw[0] */
	uint64_t frames;     /* sound ones */
	uint64_t bad_at;     /* run of damage that is not reported yet */
	uint64_t bad_len;    /* 0: none */
	uint64_t bad_frames; /* in it */
	char bad_text[120];  /* of its first frame */

	/* The stream. */
	const struct ktr_decode_header *header;
	bool any_header, ended, at_mark;
	struct decode_cpu cpu[KTR_DECODE_CPUS];
	struct decode_map sites;
	struct decode_names strings, threads;
	struct decode_map texts; /* by hash: each is kept once */
	struct ktr_wire_slot slots[KTR_WIRE_SLOTS];
	struct decode_chunk *chunks;
};

/** Memory that lives as long as the decoder; NULL and no_memory set when there is none. */
void *decode_alloc(struct ktr_decoder *d, size_t size, size_t align);
/** A text of n bytes, or up to the first NUL, which lives as long. NULL likewise. */
const char *decode_text(struct ktr_decoder *d, const uint8_t *bytes, size_t n);
/** The same, but what was said before is the same text again. */
const char *decode_text_once(struct ktr_decoder *d, const uint8_t *bytes, size_t n);
bool decode_text_is(const char *text, const uint8_t *bytes, size_t n);
const void *decode_map_get(const struct decode_map *m, uint64_t key);
void decode_map_put(struct ktr_decoder *d, struct decode_map *m, uint64_t key, const void *value);
void decode_map_free(struct ktr_decoder *d, struct decode_map *m);
/** Forgets the keys; values stay valid. */
void decode_map_clear(struct decode_map *m);
const void *decode_names_get(const struct decode_names *names, uint64_t key);
/** A HEADER comes: all names that are still used will be told again. */
void decode_names_age(struct decode_names *names);
void decode_store_free(struct ktr_decoder *d);

/**
 * Takes a frame whose checksum is right. Returns NULL, or what is wrong with it: then what could be
 * understood has been used.
 */
const char *decode_frame(struct ktr_decoder *d, unsigned type, const uint8_t *body, size_t len);
