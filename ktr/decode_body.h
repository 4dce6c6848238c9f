/* decode_body.h - reads the body of a frame (ktr/WIRE.md), never beyond its end. For the decoder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/decode.h"

/* A body that is read from the front. Once bad, everything read is 0. */
struct body {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint64_t
body_byte(struct body *b)
{
	if (b->p == b->end) {
		b->bad = true;
		return 0;
	}
	return *b->p++;
}

static inline uint64_t
body_varint_long(struct body *b)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint64_t byte = body_byte(b);
		if (shift == 63 && byte > 1)
			break;
		v |= (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return b->bad ? 0 : v;
	}
	b->bad = true;
	return 0;
}

static inline uint64_t
body_varint(struct body *b)
{
	/* Most are one byte. */
	return b->p < b->end && *b->p < 0x80 ? *b->p++ : body_varint_long(b);
}

static inline uint32_t
body_u32(struct body *b)
{
	uint64_t v = body_varint(b);
	if (v > UINT32_MAX)
		b->bad = true;
	return b->bad ? 0 : (uint32_t)v;
}

static inline uint32_t
body_cpu(struct body *b)
{
	uint32_t cpu = body_u32(b);
	if (cpu >= KTR_DECODE_CPUS)
		b->bad = true;
	return b->bad ? 0 : cpu;
}
