/* frame.c - frames of bytes: COBS and checksum. */
#include "ktr/frame.h"

#include "ktr/crc32c.h"
#include "ktr/str.h"

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

	const uint8_t *begin = out;
	uint8_t *code = out++;
	uint8_t run = 1;
	for (size_t i = 0; i < len; i++) {
		if (frame[i] != 0) {
			*out++ = frame[i];
			run++;
		}
		if (frame[i] == 0 || run == 0xff) {
			*code = run;
			code = out++;
			run = 1;
		}
	}
	*code = run;
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
