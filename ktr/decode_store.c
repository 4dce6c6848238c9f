/*
 * decode_store.c - the decoder's memory: chunks that live as long as it does, and maps from
 * numbers. Invariant: what was handed out stays valid and unchanged until the decoder is destroyed.
 * Locking: none.
 */
#include "ktr/decode_private.h"

#define CHUNK (64u * 1024)

struct decode_chunk {
	struct decode_chunk *next;
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
};

void *
decode_alloc(struct ktr_decoder *d, size_t size)
{
	size = (size + 7) & ~(size_t)7;
	struct decode_chunk *c = d->chunks;
	if (c == NULL || c->size - c->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;
		c = d->ops.realloc(NULL, sizeof(*c) + room);
		if (c == NULL) {
			d->no_memory = true;
			return NULL;
		}
		c->next = d->chunks;
		c->used = 0;
		c->size = room;
		d->chunks = c;
	}
	void *p = c->bytes + c->used;
	c->used += size;
	return p;
}

void
decode_store_free(struct ktr_decoder *d)
{
	while (d->chunks != NULL) {
		struct decode_chunk *c = d->chunks;
		d->chunks = c->next;
		d->ops.realloc(c, 0);
	}
}

static size_t
map_find(const struct decode_map *m, uint64_t key)
{
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (m->size - 1);
	while (m->pairs[i].value != NULL && m->pairs[i].key != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

const void *
decode_map_get(const struct decode_map *m, uint64_t key)
{
	return m->size == 0 ? NULL : m->pairs[map_find(m, key)].value;
}

static bool
map_grow(struct ktr_decoder *d, struct decode_map *m)
{
	struct decode_map bigger = {.size = m->size == 0 ? 256 : m->size * 2};
	bigger.pairs = d->ops.realloc(NULL, bigger.size * sizeof(*bigger.pairs));
	if (bigger.pairs == NULL) {
		d->no_memory = true;
		return false;
	}
	decode_map_clear(&bigger);
	for (size_t i = 0; i < m->size; i++) {
		if (m->pairs[i].value == NULL)
			continue;
		bigger.pairs[map_find(&bigger, m->pairs[i].key)] = m->pairs[i];
		bigger.used++;
	}
	decode_map_free(d, m);
	*m = bigger;
	return true;
}

void
decode_map_put(struct ktr_decoder *d, struct decode_map *m, uint64_t key, const void *value)
{
	if (m->used * 2 >= m->size && !map_grow(d, m))
		return;
	struct decode_pair *p = &m->pairs[map_find(m, key)];
	m->used += p->value == NULL;
	p->key = key;
	p->value = value;
}

void
decode_map_clear(struct decode_map *m)
{
	for (size_t i = 0; i < m->size; i++)
		m->pairs[i].value = NULL;
	m->used = 0;
}

void
decode_map_free(struct ktr_decoder *d, struct decode_map *m)
{
	if (m->pairs != NULL)
		d->ops.realloc(m->pairs, 0);
	*m = (struct decode_map){0};
}
