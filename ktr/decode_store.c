/*
 * decode_store.c - the decoder's memory: chunks that live as long as it does, texts in them, and
 * maps from numbers. Invariant: what was handed out stays valid and unchanged until the decoder is
 * destroyed. Locking: none.
 */
#include "ktr/decode_private.h"

#define CHUNK (64u * 1024)

struct decode_chunk {
	struct decode_chunk *next;
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
};

void *
decode_alloc(struct ktr_decoder *d, size_t size, size_t align)
{
	struct decode_chunk *c = d->chunks;
	if (c != NULL)
		c->used = (c->used + align - 1) & ~(align - 1);
	if (c == NULL || c->used > c->size || c->size - c->used < size) {
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
text_length(const uint8_t *bytes, size_t n)
{
	size_t length = 0;
	while (length < n && bytes[length] != '\0')
		length++;
	return length;
}

bool
decode_text_is(const char *text, const uint8_t *bytes, size_t n)
{
	size_t length = text_length(bytes, n), i = 0;
	while (i < length && text[i] == (char)bytes[i])
		i++;
	return i == length && text[i] == '\0';
}

const char *
decode_text(struct ktr_decoder *d, const uint8_t *bytes, size_t n)
{
	size_t length = text_length(bytes, n);
	char *text = decode_alloc(d, length + 1, 1);
	if (text == NULL)
		return NULL;
	for (size_t i = 0; i < length; i++)
		text[i] = (char)bytes[i];
	text[length] = '\0';
	return text;
}

const char *
decode_text_once(struct ktr_decoder *d, const uint8_t *bytes, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	for (size_t i = 0, length = text_length(bytes, n); i < length; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	const char *text = decode_map_get(&d->texts, hash);
	if (text != NULL && decode_text_is(text, bytes, n))
		return text;
	text = decode_text(d, bytes, n);
	if (text != NULL)
		decode_map_put(d, &d->texts, hash, text);
	return text;
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

const void *
decode_names_get(const struct decode_names *names, uint64_t key)
{
	const void *now = decode_map_get(&names->now, key);
	return now != NULL ? now : decode_map_get(&names->before, key);
}

void
decode_names_age(struct decode_names *names)
{
	struct decode_map oldest = names->before;
	names->before = names->now;
	names->now = oldest;
	decode_map_clear(&names->now);
}

void
decode_map_free(struct ktr_decoder *d, struct decode_map *m)
{
	if (m->pairs != NULL)
		d->ops.realloc(m->pairs, 0);
	*m = (struct decode_map){0};
}
