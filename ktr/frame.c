/* frame.c - frames of bytes: COBS and checksum. */
#include "ktr/frame.h"

#include "ktr/crc32c.h"
#include "ktr/str.h"

#define COBS_RUN 254u /* bytes without a zero byte at most */

/* Copies bytes before the first zero byte, n at most, a word at a time. Returns how many. */
static size_t
cobs_copy(uint8_t *to, const uint8_t *from, size_t n)
{
	const uint64_t ones = ~0ull / 255;
	size_t i = 0;
	for (uint64_t w, zero; i + 8 <= n; i += 8) {
		__builtin_memcpy(&w, from + i, 8);
		__builtin_memcpy(to + i, &w, 8); /* what is not theirs is written anew */
		zero = (w - ones) & ~w & ones << 7;
		if (zero != 0) /* the bytes below its lowest bit, by adding them up */
			return i + ((((zero & -zero) - 1) & ones) * ones >> 56) - 1;
	}
	for (; i < n && from[i] != 0; i++)
		to[i] = from[i];
	return i;
}

/* Each zero byte becomes the distance to the next one. */
size_t
ktr_frame_write(uint8_t *out, uint8_t *frame, size_t len)
{
	size_t body = len - KTR_FRAME_HEAD;
	frame[1] = (uint8_t)body;
	frame[2] = (uint8_t)(body >> 8);
	uint32_t crc = ktr_crc32c(frame, len);
	for (unsigned i = 0; i < KTR_FRAME_TAIL; i++)
		frame[len++] = (uint8_t)(crc >> 8 * i);

	const uint8_t *begin = out, *from = frame, *end = frame + len;
	for (;;) {
		size_t left = (size_t)(end - from);
		size_t run = cobs_copy(out + 1, from, left < COBS_RUN ? left : COBS_RUN);
		*out = (uint8_t)(run + 1);
		out += run + 1;
		from += run;
		if (run == COBS_RUN)
			continue; /* no zero byte */
		if (from++ == end)
			break;
	}
	*out++ = 0;
	return (size_t)(out - begin);
}

size_t
ktr_frame_decode(uint8_t *to, size_t room, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	size_t n = 0;
	while (p < end) {
		size_t code = *p++;
		if (code - 1 > (size_t)(end - p) || n + code > room + 1)
			return 0;
		ktr_copy(to + n, p, code - 1);
		p += code - 1;
		n += code - 1;
		if (code != 0xff && p < end) {
			if (n == room)
				return 0;
			to[n++] = 0;
		}
	}
	return n;
}

enum ktr_frame_fault
ktr_frame_check(const uint8_t *frame, size_t len, size_t *body)
{
	if (len < KTR_FRAME_HEAD + KTR_FRAME_TAIL)
		return KTR_FRAME_SHORT;
	*body = (size_t)frame[1] | (size_t)frame[2] << 8;
	if (*body + KTR_FRAME_HEAD + KTR_FRAME_TAIL != len)
		return KTR_FRAME_LENGTH;
	return ktr_little_u32(frame + KTR_FRAME_HEAD + *body) ==
		       ktr_crc32c(frame, KTR_FRAME_HEAD + *body)
		   ? KTR_FRAME_SOUND
		   : KTR_FRAME_CHECKSUM;
}
