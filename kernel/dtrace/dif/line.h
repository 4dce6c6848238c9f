/*
 * line.h - what goes over the line between dtrace(1) and a kernel: ktr/DIF-WIRE.md is its
 * specification. Both ends use this.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/crc32c.h"
#include "ktr/encode.h"
#include "ktr/frame.h"
#include "ktr/site.h"
#include "ktr/str.h"

#define DIF_LINE_MAGIC   0x4c464944u /* "DIFL" */
#define DIF_LINE_VERSION 1u

/* Types of frames; those of a stream are lower (ktr/wire.h). */
enum { DIF_LINE_REQUEST = 64, DIF_LINE_REPLY };

enum dif_line_what {
	DIF_LINE_HELLO = 1,
	DIF_LINE_IMAGE,
	DIF_LINE_LOAD,
	DIF_LINE_START,
	DIF_LINE_STATUS,
	DIF_LINE_TAKE,
	DIF_LINE_DROPS,
	DIF_LINE_STOP,
	DIF_LINE_END,
	DIF_LINE_RATE,
};

#define DIF_LINE_FRAME KTR_ENCODER_FRAME /* the longest frame of this end */
/* The longest frame after COBS, with a zero byte before and after it. */
#define DIF_LINE_CODED (DIF_LINE_FRAME + DIF_LINE_FRAME / 254u + 3u)
/* Bytes of a frame beside the fields: a request's number and what, and a reply's result, too. */
#define DIF_LINE_ASK    (KTR_FRAME_HEAD + KTR_FRAME_TAIL + 5u)
#define DIF_LINE_ANSWER (DIF_LINE_ASK + 4u)

static inline void
dif_line_put(uint8_t *to, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

/* Adds a trace point to the sum that tells whether two lists of them are the same; the first: 0. */
static inline uint32_t
dif_line_sum(uint32_t sum, const struct ktr_site *site)
{
	uint8_t words[12];

	if (!ktr_site_is_probe(site) || site->kind == KTR_SITE_MADE)
		return sum;
	dif_line_put(words, sum);
	dif_line_put(words + 4, ktr_crc32c(site->fmt, ktr_strlen(site->fmt)));
	dif_line_put(words + 8, ktr_crc32c(site->func, ktr_strlen(site->func)));
	return ktr_crc32c(words, sizeof(words));
}
