/*
 * wire.h - constants of the stream; ktr/WIRE.md is its specification. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTR_WIRE_MAGIC   "KTRW"
#define KTR_WIRE_VERSION 1u

/** Longest frame before COBS: type, length, body, checksum. */
#define KTR_WIRE_FRAME_MAX 4096u
#define KTR_WIRE_OVERHEAD  7u /* type 1, length 2, checksum 4 */
#define KTR_WIRE_BODY_MAX  (KTR_WIRE_FRAME_MAX - KTR_WIRE_OVERHEAD)
/** Longest frame after COBS, with its delimiter. */
#define KTR_WIRE_COBS_MAX (KTR_WIRE_FRAME_MAX + KTR_WIRE_FRAME_MAX / 254u + 2u)

/** Sequence numbers have 56 bits. */
#define KTR_WIRE_SEQ_MAX (1ull << 56)

/** Longest texts; longer ones are cut by the encoder. */
#define KTR_WIRE_FILE_MAX   255u
#define KTR_WIRE_FUNC_MAX   127u
#define KTR_WIRE_FMT_MAX    1023u
#define KTR_WIRE_STRING_MAX 255u

/** Frame types. */
enum ktr_wire_type {
	KTR_WIRE_HEADER = 1,
	KTR_WIRE_SITE = 2,
	KTR_WIRE_STRING = 3,
	KTR_WIRE_THREAD = 4,
	KTR_WIRE_BATCH = 5,
	KTR_WIRE_LOSS = 6,
	KTR_WIRE_STATS = 7,
	KTR_WIRE_MARK = 8,
	KTR_WIRE_TRUNCATED = 9,
	KTR_WIRE_END = 10,
	KTR_WIRE_FAULT = 11,
	KTR_WIRE_MASK = 12
};

/**
 * Long data. They stand in the ring before the event that names them, in entries of a site whose
 * format is KTR_DATA_FORMAT: parts of KTR_DATA_PART bytes, the last part first, so that the oldest
 * entries, which are overwritten first, hold the end. The event's last parameter is a %s and has
 * ktr_data_word(length, number). A part's first parameter is ktr_data_word(index, number), and the
 * other five are its bytes. The number tells the data of an event from those of others of its CPU.
 */
#define KTR_DATA_TAG    0x7a5eull
#define KTR_DATA_PART   40u
#define KTR_DATA_MAX    4000u  /* bytes that are recorded; longer data are cut */
#define KTR_DATA_LENGTH 65535u /* data that are longer are said to have this length */
#define KTR_DATA_FORMAT "KTRDATA %#lx %#lx %#lx %#lx %#lx %#lx"
/** What follows data of which only a part is there: how much, of how much. */
#define KTR_DATA_CUT     "(cut at %u of %u)"
#define KTR_DATA_CUT_MAX 24u /* its length, with the NUL */

static inline uint64_t
ktr_data_word(uint32_t middle, uint32_t number)
{
	return KTR_DATA_TAG << 48 | (uint64_t)middle << 32 | number;
}

static inline bool
ktr_data_is_word(uint64_t value)
{
	return value >> 48 == KTR_DATA_TAG;
}

/** The index or the length in a word. */
static inline uint32_t
ktr_data_middle(uint64_t word)
{
	return word >> 32 & 0xffff;
}

/** HEADER flags. */
#define KTR_WIRE_START 1u /* a stream begins: earlier sites and names are void */
#define KTR_WIRE_LIVE  2u /* the stream may end in good order after any MARK */

/** LOSS reasons. */
enum ktr_wire_loss { KTR_LOSS_OVERWRITTEN = 0, KTR_LOSS_CORRUPT = 1, KTR_LOSS_CLEARED = 2 };

/** An event's first byte: bits 0 to 5 say which parameters follow. */
#define KTR_WIRE_EVENT_TID  0x40u /* a thread id follows */
#define KTR_WIRE_EVENT_SITE 0x80u /* a site number follows; else it is the predicted one */

/** What encoder and decoder remember of recent sites within a batch: one slot a site number mod 64.
 */
#define KTR_WIRE_SLOTS 64u
struct ktr_wire_slot {
	uint32_t site;      /* number + 1; 0: empty */
	uint32_t successor; /* number + 1 of the site that last followed; 0: none yet */
	uint64_t args[6];   /* parameters of the site's last event; 0 before the first */
};

static inline uint64_t
ktr_zigzag(uint64_t delta)
{
	return delta << 1 ^ (uint64_t) - (int64_t)(delta >> 63);
}

static inline uint64_t
ktr_unzigzag(uint64_t v)
{
	return v >> 1 ^ (uint64_t) - (int64_t)(v & 1);
}

/**
 * Writes a varint (LEB128: 7 bits a byte, least significant first, bit 7 = more follow), at most 10
 * bytes. Returns its length.
 */
static inline size_t
ktr_varint_put(uint8_t *p, uint64_t v)
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}
