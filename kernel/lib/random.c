/*
 * random.c - ChaCha20 (RFC 8439, 2.3) as a generator. The first half of each block becomes the next
 * key, so that the state tells nothing about numbers that were given out before.
 *
 * Locking: none. The count makes each block another one, also where two CPUs use the same key; a
 * key of which each CPU has stored some words is as good as any.
 */
#include "kernel/lib/random.h"

#include "arch/clock.h"
#include "arch/machine.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"

#define ROUNDS    20
#define KEY_WORDS 8

static uint32_t key[KEY_WORDS]; /* atomic */
static uint32_t blocks;         /* atomic */

static void
quarter_round(uint32_t s[16], unsigned a, unsigned b, unsigned c, unsigned d)
{
	static const struct {
		unsigned left, right;
	} turns[] = {{16, 16}, {12, 20}, {8, 24}, {7, 25}};

	for (unsigned i = 0; i < 4; i += 2) {
		s[a] += s[b];
		s[d] ^= s[a];
		s[d] = s[d] << turns[i].left | s[d] >> turns[i].right;
		s[c] += s[d];
		s[b] ^= s[c];
		s[b] = s[b] << turns[i + 1].left | s[b] >> turns[i + 1].right;
	}
}

static void
chacha20_block(const uint32_t in[16], uint32_t out[16])
{
	memcpy(out, in, 16 * sizeof(*out));
	for (unsigned i = 0; i < ROUNDS; i += 2) {
		for (unsigned c = 0; c < 4; c++)
			quarter_round(out, c, 4 + c, 8 + c, 12 + c);
		for (unsigned c = 0; c < 4; c++)
			quarter_round(out, c, 4 + (c + 1) % 4, 8 + (c + 2) % 4, 12 + (c + 3) % 4);
	}
	for (unsigned i = 0; i < 16; i++)
		out[i] += in[i];
}

void
random_bytes(void *buf, size_t n)
{
	while (n > 0) {
		size_t part = n < KEY_WORDS * 4 ? n : KEY_WORDS * 4;
		uint64_t fresh[2] = {arch_clock_read() << 32, clock_real_now_ns()}, hard;
		uint32_t in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, out[16];

		fresh[0] |= __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
		if (arch_random(&hard)) /* this number may be bad: the time stays in, too */
			fresh[1] ^= hard;
		for (unsigned i = 0; i < KEY_WORDS; i++)
			in[4 + i] = __atomic_load_n(&key[i], __ATOMIC_RELAXED);
		memcpy(&in[12], fresh, sizeof(fresh));
		chacha20_block(in, out);
		for (unsigned i = 0; i < KEY_WORDS; i++)
			__atomic_store_n(&key[i], out[i], __ATOMIC_RELAXED);
		memcpy(buf, out + KEY_WORDS, part);
		buf = (char *)buf + part;
		n -= part;
	}
}
