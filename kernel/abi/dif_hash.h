/*
 * dif_hash.h - how the keys of aggregations and arrays are hashed, by the engine and its consumer.
 */
#pragma once

#include <stdint.h>

/*
 * Hashes words. Whoever is traced chooses the keys. Without knowing the secret, whose second word
 * is odd, he cannot choose many keys that fall into one chain. For that, both halves of the product
 * are used: the highest bit of a word changes only the highest bit of the lower half, whatever the
 * secret is, and the next word could change it back.
 */
static inline uint32_t
dif_hash_words(const uint64_t secret[2], uint64_t seed, const uint64_t *w, uint32_t n)
{
	uint64_t h = seed + secret[0];

	for (uint32_t i = 0; i < n; i++) {
		unsigned __int128 product = (unsigned __int128)(h ^ w[i]) * secret[1];

		h = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return (uint32_t)h;
}
