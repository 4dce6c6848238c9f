/*
 * dif_hash.h - how the keys of aggregations and arrays are hashed, by the engine and its consumer.
 */
#pragma once

#include <stdint.h>

/*
 * Hashes words. Keys are chosen by whoever is traced; who does not know the secret, whose second
 * word is odd, cannot choose many that fall into one chain. That takes both halves of the product:
 * the highest bit of a word changes just the highest bit of the lower half, whatever the secret,
 * and the next word could change it back.
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
