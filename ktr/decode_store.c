/*
 * decode_store.c - the decoder's memory: texts, and names by number, each in bounds.
 *
 * Invariant: texts stay valid and unchanged until the decoder is destroyed, except for those of
 * thread idents. There may be any number of these, so they are freed after two more HEADER frames.
 * A caller that keeps an event copies them.
 * Locking: none.
 */
#include "ktr/decode_private.h"

#include "ktr/str.h"

#define CHUNK (64u * 1024)

/* Less than 40 MB, with 32 bytes of a table for each name and text. */
#define TEXTS_MAX  (12u << 20) /* bytes of texts, sites and headers */
#define IDENTS_MAX (1u << 20)  /* bytes of idents' texts since a HEADER */
#define NAMES_MAX  (1u << 17)  /* strings or threads since a HEADER */
#define ONCE_MAX   (1u << 17)  /* different texts */

struct decode_chunk {
	struct decode_chunk *next;
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
};

static void *
store_alloc(struct ktr_decoder *d, struct decode_store *s, size_t most, size_t size, size_t align)
{
	struct decode_chunk *c = s->chunks;
	if (c != NULL)
		c->used = (c->used + align - 1) & ~(align - 1);
	if (c == NULL || c->used > c->size || c->size - c->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;
		if (s->size + room > most)
			return NULL;
		c = d->ops.realloc(NULL, sizeof(*c) + room);
		if (c == NULL) {
			d->no_memory = true;
			return NULL;
		}
		*c = (struct decode_chunk){.next = s->chunks, .size = room};
		s->chunks = c;
		s->size += room;
	}
	void *p = c->bytes + c->used;
	c->used += size;
	return p;
}

static void
store_free(struct ktr_decoder *d, struct decode_store *s)
{
	while (s->chunks != NULL) {
		struct decode_chunk *c = s->chunks;
		s->chunks = c->next;
		d->ops.realloc(c, 0);
	}
	s->size = 0;
}

void *
decode_alloc(struct ktr_decoder *d, size_t size, size_t align)
{
	return store_alloc(d, &d->texts, TEXTS_MAX, size, align);
}

static size_t
text_length(const uint8_t *bytes, size_t n)
{
	size_t length = 0;
	while (length < n && bytes[length] != '\0')
		length++;
	return length;
}

static bool
text_is(const char *text, const uint8_t *bytes, size_t n)
{
	size_t length = text_length(bytes, n), i = 0;
	while (i < length && text[i] == (char)bytes[i])
		i++;
	return i == length && text[i] == '\0';
}

static const char *
text_copy(struct ktr_decoder *d, struct decode_store *s, size_t most, const uint8_t *bytes,
	  size_t n)
{
	size_t length = text_length(bytes, n);
	char *text = store_alloc(d, s, most, length + 1, 1);
	if (text == NULL)
		return NULL;
	ktr_copy(text, bytes, length);
	text[length] = '\0';
	return text;
}

/*
 * Keeps equal texts once. If two different texts have the same hash, they are kept each time that
 * they come. The hash has a secret seed, so this cannot be provoked.
 */
const char *
decode_text(struct ktr_decoder *d, const uint8_t *bytes, size_t n)
{
	uint64_t hash = ktr_hash(d->ops.seed, bytes, text_length(bytes, n));
	const char *text = ktr_map_get(&d->once, hash);
	if (text != NULL && text_is(text, bytes, n))
		return text;
	if (d->once.used >= ONCE_MAX)
		return NULL;
	text = text_copy(d, &d->texts, TEXTS_MAX, bytes, n);
	if (text != NULL && !ktr_map_put(&d->once, hash, (void *)(uintptr_t)text))
		d->no_memory = true;
	return text;
}

bool
decode_name(struct ktr_decoder *d, struct decode_names *names, uint64_t key, const uint8_t *bytes,
	    size_t n)
{
	bool ident = names == &d->strings && decode_is_ident(key);
	const char *text = ktr_map_get(&names->now, key);
	if (text == NULL && !ident)
		text = ktr_map_get(&names->before, key);
	if (text == NULL || !text_is(text, bytes, n))
		text = ident ? text_copy(d, &names->idents, IDENTS_MAX, bytes, n)
			     : decode_text(d, bytes, n);
	if (text == NULL || names->now.used >= NAMES_MAX)
		return false;
	if (!ktr_map_put(&names->now, key, (void *)(uintptr_t)text))
		d->no_memory = true;
	return true;
}

void
decode_names_age(struct ktr_decoder *d, struct decode_names *names)
{
	struct ktr_map oldest = names->before;
	names->before = names->now;
	names->now = oldest;
	ktr_map_clear(&names->now);
	store_free(d, &names->idents_before);
	names->idents_before = names->idents;
	names->idents = (struct decode_store){0};
}

static void
names_init(struct ktr_decoder *d, struct decode_names *names)
{
	names->now = names->before = ktr_map_make(d->ops.realloc, d->ops.seed);
}

static void
names_free(struct ktr_decoder *d, struct decode_names *names)
{
	ktr_map_free(&names->now);
	ktr_map_free(&names->before);
	store_free(d, &names->idents);
	store_free(d, &names->idents_before);
}

void
decode_store_init(struct ktr_decoder *d)
{
	names_init(d, &d->strings);
	names_init(d, &d->threads);
	d->once = d->sites = d->sites_before = ktr_map_make(d->ops.realloc, d->ops.seed);
}

void
decode_store_free(struct ktr_decoder *d)
{
	names_free(d, &d->strings);
	names_free(d, &d->threads);
	ktr_map_free(&d->sites);
	ktr_map_free(&d->sites_before);
	ktr_map_free(&d->once);
	store_free(d, &d->texts);
}
