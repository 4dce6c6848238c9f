/*
 * frame.h - frames of bytes on a line: those of the stream (ktr/WIRE.md), and what others send in
 * the same form. A frame is type, length, body and checksum, coded by COBS and ended by a zero
 * byte. Any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Bytes before the body, and after it: ktr/wire.h has how long a frame may be. */
#define KTR_FRAME_HEAD 3u
#define KTR_FRAME_TAIL 4u

/**
 * Ends a frame of `len` bytes: its type, room for the length, and its body. It has room for the
 * checksum. Writes it, coded, with its zero byte. Returns the bytes written.
 */
size_t ktr_frame_write(uint8_t *out, uint8_t *frame, size_t len);

/** Undoes COBS. Returns the length, at most room; 0: it is not COBS, or longer. */
size_t ktr_frame_decode(uint8_t *to, size_t room, const uint8_t *p, size_t len);

enum ktr_frame_fault { KTR_FRAME_SOUND, KTR_FRAME_SHORT, KTR_FRAME_LENGTH, KTR_FRAME_CHECKSUM };

/** What is wrong with a frame's decoded bytes; *body: how many bytes of body the frame says. */
enum ktr_frame_fault ktr_frame_check(const uint8_t *frame, size_t len, size_t *body);

static inline uint32_t
ktr_little_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
