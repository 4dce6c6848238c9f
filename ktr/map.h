/*
 * map.h - a hash table from numbers to pointers. Without knowing the seed nobody can choose numbers
 * that make it slow.
 *
 * Open addressing, at most half full. Locking: none; one thread uses a map.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ktr_map {
	void *(*realloc)(void *p, size_t size); /* size 0 frees */
	uint64_t seed;
	struct ktr_map_pair {
		uint64_t key;
		void *value; /* NULL: the pair is free */
	} * pairs;
	size_t size; /* pairs: a power of two, or 0 */
	size_t used;
};

/** The high half of the product times the low half: each bit depends on all bits of both. */
static inline uint64_t
ktr_mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/** A hash of n bytes, for use as a key. */
uint64_t ktr_hash(uint64_t seed, const void *bytes, size_t n);

static inline size_t
ktr_map_first(const struct ktr_map *m, uint64_t key)
{
	return (size_t)ktr_mix(key ^ m->seed, (m->seed ^ 0x9e3779b97f4a7c15u) | 1) & (m->size - 1);
}

/** The value of a key. NULL: the key is not there. */
static inline void *
ktr_map_get(const struct ktr_map *m, uint64_t key)
{
	if (m->used == 0)
		return NULL;
	size_t at = ktr_map_first(m, key);
	while (m->pairs[at].value != NULL && m->pairs[at].key != key)
		at = (at + 1) & (m->size - 1);
	return m->pairs[at].value;
}

/** An empty map, without memory yet. */
static inline struct ktr_map
ktr_map_make(void *(*realloc)(void *p, size_t size), uint64_t seed)
{
	return (struct ktr_map){.realloc = realloc, .seed = seed};
}

/** Sets the value of a key. value is not NULL. False: no memory, and nothing has changed. */
bool ktr_map_put(struct ktr_map *m, uint64_t key, void *value);
/** Removes a key, if it is there. */
void ktr_map_remove(struct ktr_map *m, uint64_t key);
/** Removes all keys. On average its time is that of the ktr_map_put() calls before. */
void ktr_map_clear(struct ktr_map *m);
/** Frees the memory: the map is as ktr_map_make() made it. */
void ktr_map_free(struct ktr_map *m);
