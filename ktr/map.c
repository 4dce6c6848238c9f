/* map.c - a hash table from numbers to pointers: map.h. Locking: none. */
#include "ktr/map.h"

#include "ktr/str.h"

#define MAP_MIN 64u /* pairs */

uint64_t
ktr_hash(uint64_t seed, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t hash = seed ^ n;
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		ktr_copy(&word, p + i, n - i < 8 ? n - i : 8);
		hash = ktr_mix(hash ^ word, 0x9e3779b97f4a7c15u);
	}
	return hash;
}

static struct ktr_map_pair *
map_find(const struct ktr_map *m, uint64_t key)
{
	size_t at = ktr_map_first(m, key);
	while (m->pairs[at].value != NULL && m->pairs[at].key != key)
		at = (at + 1) & (m->size - 1);
	return &m->pairs[at];
}

static void
map_zero(struct ktr_map *m)
{
	for (size_t i = 0; i < m->size; i++)
		m->pairs[i].value = NULL;
	m->used = 0;
}

static bool
map_grow(struct ktr_map *m)
{
	struct ktr_map bigger = *m;
	bigger.size = m->size == 0 ? MAP_MIN : m->size * 2;
	bigger.pairs = m->realloc(NULL, bigger.size * sizeof(*bigger.pairs));
	if (bigger.pairs == NULL)
		return false;
	map_zero(&bigger);
	for (size_t i = 0; i < m->size; i++)
		if (m->pairs[i].value != NULL)
			*map_find(&bigger, m->pairs[i].key) = m->pairs[i];
	bigger.used = m->used;
	ktr_map_free(m);
	*m = bigger;
	return true;
}

bool
ktr_map_put(struct ktr_map *m, uint64_t key, void *value)
{
	if (m->used * 2 >= m->size && !map_grow(m))
		return false;
	struct ktr_map_pair *p = map_find(m, key);
	m->used += p->value == NULL;
	*p = (struct ktr_map_pair){key, value};
	return true;
}

/* Moves pairs into the hole that a search could not find any more. */
void
ktr_map_remove(struct ktr_map *m, uint64_t key)
{
	if (ktr_map_get(m, key) == NULL)
		return;
	size_t mask = m->size - 1, hole = (size_t)(map_find(m, key) - m->pairs);
	for (size_t at = (hole + 1) & mask; m->pairs[at].value != NULL; at = (at + 1) & mask) {
		size_t first = ktr_map_first(m, m->pairs[at].key);
		if (((at - first) & mask) < ((at - hole) & mask))
			continue;
		m->pairs[hole] = m->pairs[at];
		hole = at;
	}
	m->pairs[hole].value = NULL;
	m->used--;
}

/* A table that is nearly empty is freed, since clearing costs time in proportion to its size. */
void
ktr_map_clear(struct ktr_map *m)
{
	if (m->used * 8 < m->size)
		ktr_map_free(m);
	else
		map_zero(m);
}

void
ktr_map_free(struct ktr_map *m)
{
	if (m->pairs != NULL)
		m->realloc(m->pairs, 0);
	m->pairs = NULL;
	m->size = m->used = 0;
}
