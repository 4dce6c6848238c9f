/*
 * variable.c - the programs' variables. Those of the consumer and of the CPU have a place each.
 * Those of threads and the elements of arrays share a hash table of chunks of one size, which all
 * CPUs use.
 *
 * Locking: each bucket has a lock, a word. It is held with interrupts off while the chain is
 * searched and a value copied, which cannot fault, and a CPU never asks for one while it has one.
 * The wait is bounded all the same; who waits in vain counts a drop.
 *
 * A program may have the address of an element's bytes or text when another CPU removes the
 * element; or the program itself removes it. Its CPU has then said so (dif_cpu.holds) before it has
 * unlocked the bucket. The chunk is set aside until that program has ended on each such CPU.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

#define SPINS 10000000u
#define NONE  0u /* chunks are numbered from 1 */

struct dif_bucket {
	uint32_t lock; /* atomic */
	uint32_t head; /* chunk; lock */
};

struct chunk {
	uint32_t next;
	uint32_t hash;
	uint32_t var;
	uint32_t key_words;
	uint64_t thread; /* 0: an element of a consumer's array */
	uint64_t keys[]; /* the value stands at the chunk's end */
};

uint32_t
dif_dynamic_chunk(uint32_t key_size, uint32_t value_size)
{
	return (uint32_t)sizeof(struct chunk) + key_size + value_size;
}

void
dif_dynamic_init(struct dif_dynamic *t, void *memory, size_t size, uint32_t chunk, uint32_t value)
{
	uint32_t buckets = 1;

	*t = (struct dif_dynamic){.size = chunk, .value_size = value};
	if (chunk == 0 || size < chunk + sizeof(struct dif_bucket))
		return;
	while (buckets * 2ul * (chunk + sizeof(struct dif_bucket)) <= size)
		buckets *= 2;
	t->buckets = memory;
	t->mask = buckets - 1;
	t->chunks = (uint8_t *)memory + buckets * sizeof(struct dif_bucket);
	t->count = (uint32_t)((size - buckets * sizeof(struct dif_bucket)) / chunk);
}

uint64_t
dif_dynamic_least(uint64_t size, uint32_t count, uint32_t chunk)
{
	uint64_t least = count * ((uint64_t)chunk + sizeof(struct dif_bucket));

	return size < least ? (least + 7) & ~7ul : size;
}

static struct chunk *
chunk_at(const struct dif_dynamic *t, uint32_t number)
{
	return (struct chunk *)(t->chunks + (uint64_t)(number - 1) * t->size);
}

static uint8_t *
dif_dynamic_value(const struct dif_dynamic *t, struct chunk *k)
{
	return (uint8_t *)k + t->size - t->value_size;
}

/* Frees a chunk. The word that begins the list has the first chunk in its lower half, and in its
 * upper half a counter, so that no two states of the list look the same. */
static void
chunk_free(struct dif_dynamic *t, uint32_t number)
{
	uint64_t old = __atomic_load_n(&t->free, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&chunk_at(t, number)->next, (uint32_t)old, __ATOMIC_RELAXED);
		new = ((old >> 32) + 1) << 32 | number;
		/* release: pairs with the acquire in chunk_alloc() */
	} while (!__atomic_compare_exchange_n(&t->free, &old, new, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

static bool
dif_dynamic_lock(uint32_t *lock)
{
	uint32_t spins = 0;

	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
		if (++spins == SPINS)
			return false;
	return true;
}

static void
dif_dynamic_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* May some program have addresses of elements? */
static bool
dif_any_holds(const struct dif *d)
{
	unsigned i = 0;

	while (i < d->cpus && __atomic_load_n(&d->cpu[i].holds, __ATOMIC_ACQUIRE) % 2 == 0)
		i++;
	return i < d->cpus;
}

/* Adds the CPUs whose programs may have addresses of elements. */
static void
dif_add_holders(const struct dif *d, struct dif_aside *a)
{
	for (unsigned i = 0; i < d->cpus; i++) {
		uint32_t holds = __atomic_load_n(&d->cpu[i].holds, __ATOMIC_ACQUIRE);

		if (holds % 2 != 0) {
			a->cpus |= 1ul << i;
			a->holds[i] = holds;
		}
	}
}

/* Takes out CPUs whose program has ended since. */
static void
dif_drop_holders(const struct dif *d, struct dif_aside *a)
{
	for (unsigned i = 0; i < d->cpus; i++)
		if (__atomic_load_n(&d->cpu[i].holds, __ATOMIC_ACQUIRE) != a->holds[i])
			a->cpus &= ~(1ul << i);
}

static bool
has_aside(const struct dif_dynamic *t)
{
	return (__atomic_load_n(&t->aside.first, __ATOMIC_RELAXED) |
		__atomic_load_n(&t->older.first, __ATOMIC_RELAXED)) != NONE;
}

/* Frees chunks that were set aside, and that nobody uses any more. Their lock is held. */
static void
aside_free(struct dif *d)
{
	struct dif_dynamic *t = &d->dynamic;

	for (unsigned i = 0; i < 2; i++) {
		dif_drop_holders(d, &t->older);
		if (t->older.cpus != 0)
			return;
		for (uint32_t next; t->older.first != NONE; t->older.first = next) {
			next = chunk_at(t, t->older.first)->next;
			chunk_free(t, t->older.first);
		}
		t->older = t->aside;
		t->aside.first = NONE;
		t->aside.cpus = 0;
	}
}

/* Frees a chunk that had an address, and is in no chain any more. */
static void
chunk_retire(struct dif_run *r, uint32_t number)
{
	struct dif_dynamic *t = &r->d->dynamic;

	if (!dif_any_holds(r->d) || !dif_dynamic_lock(&t->lock)) {
		chunk_free(t, number); /* the chunk is freed now at the latest: else it were lost */
		return;
	}
	chunk_at(t, number)->next = t->aside.first;
	t->aside.first = number;
	dif_add_holders(r->d, &t->aside);
	aside_free(r->d);
	dif_dynamic_unlock(&t->lock);
}

static uint32_t
chunk_alloc(struct dif_dynamic *t)
{
	uint64_t old = __atomic_load_n(&t->free, __ATOMIC_ACQUIRE), new;
	uint32_t unused;

	while ((uint32_t)old != NONE) {
		uint32_t next =
		    __atomic_load_n(&chunk_at(t, (uint32_t)old)->next, __ATOMIC_RELAXED);

		new = ((old >> 32) + 1) << 32 | next;
		if (__atomic_compare_exchange_n(&t->free, &old, new, false, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE))
			return (uint32_t)old;
	}
	unused = __atomic_load_n(&t->unused, __ATOMIC_RELAXED);
	while (unused < t->count)
		if (__atomic_compare_exchange_n(&t->unused, &unused, unused + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return unused + 1;
	return NONE;
}

/* An element that is looked for, and, while its bucket is locked, where. */
struct search {
	struct dif_bucket *bucket;
	uint32_t *link; /* the link that leads to the chunk, or the chain's last one */
	uint64_t thread;
	uint32_t hash;
	uint32_t key_words;
};

static bool
is_it(const struct dif_run *r, const struct search *s, uint32_t var, const struct chunk *k)
{
	if (k->hash != s->hash || k->var != var || k->thread != s->thread ||
	    k->key_words != s->key_words)
		return false;
	for (uint32_t i = 0; i < s->key_words; i++)
		if (k->keys[i] != r->c->keys[i])
			return false;
	return true;
}

/* Locks the bucket, and finds the link. False: a drop. */
static bool
dynamic_search(struct dif_run *r, uint32_t var, struct search *s)
{
	struct dif_dynamic *t = &r->d->dynamic;

	if (t->count == 0) {
		dif_drop(r->c, &r->c->dynvar_drops);
		return false;
	}
	s->thread = r->d->vars[var].scope == DIF_SELF ? dif_port_thread() : 0;
	s->key_words = r->d->vars[var].keys != 0 ? r->key_words : 0;
	s->hash = dif_hash_words(r->d->secret, s->thread * 31 + var + 1, r->c->keys, s->key_words);
	s->bucket = &t->buckets[s->hash & t->mask];
	if (!dif_dynamic_lock(&s->bucket->lock)) {
		dif_drop(r->c, &r->c->dynvar_drops);
		return false;
	}
	s->link = &s->bucket->head;
	while (*s->link != NONE && !is_it(r, s, var, chunk_at(t, *s->link)))
		s->link = &chunk_at(t, *s->link)->next;
	return true;
}

static void
search_end(struct search *s)
{
	dif_dynamic_unlock(&s->bucket->lock);
}

/* A new chunk at the chain's end; NULL: no memory. */
static struct chunk *
dynamic_add(struct dif_run *r, uint32_t var, struct search *s)
{
	struct dif_dynamic *t = &r->d->dynamic;
	uint32_t number = chunk_alloc(t);
	struct chunk *k;

	if (number == NONE && has_aside(t) && dif_dynamic_lock(&t->lock)) {
		aside_free(r->d);
		dif_dynamic_unlock(&t->lock);
		number = chunk_alloc(t);
	}
	if (number == NONE)
		return NULL;
	k = chunk_at(t, number);
	*k = (struct chunk){NONE, s->hash, var, s->key_words, s->thread};
	memcpy(k->keys, r->c->keys, s->key_words * sizeof(uint64_t));
	*s->link = number;
	return k;
}

static uint64_t
dynamic_load(struct dif_run *r, uint32_t var)
{
	struct dif_dynamic *t = &r->d->dynamic;
	bool bytes = r->d->vars[var].kind == DIF_BYTES;
	bool bytes_or_text = r->d->vars[var].kind != DIF_INT;
	struct search s;
	uint64_t v = 0;

	if ((t->count == 0 && !bytes) || !dynamic_search(r, var, &s))
		return 0;
	/* A program that asks for the address of bytes stores through it: so the element must be
	 * there already. */
	if (*s.link == NONE && bytes) {
		struct chunk *k = dynamic_add(r, var, &s);

		if (k != NULL)
			memset(dif_dynamic_value(t, k), 0, t->value_size);
		else
			dif_drop(r->c, &r->c->dynvar_drops);
	}
	if (*s.link != NONE) {
		uint8_t *value = dif_dynamic_value(t, chunk_at(t, *s.link));

		v = bytes_or_text ? (uintptr_t)value : *(uint64_t *)value;
		if (bytes_or_text) /* before the bucket is unlocked */
			__atomic_store_n(&r->c->holds, r->c->holds | 1, __ATOMIC_RELAXED);
	}
	search_end(&s);
	return v;
}

static void
dynamic_remove(struct dif_run *r, uint32_t var, struct search *s)
{
	struct dif_dynamic *t = &r->d->dynamic;
	uint32_t number = *s->link;

	*s->link = chunk_at(t, number)->next;
	if (r->d->vars[var].kind == DIF_INT)
		chunk_free(t, number);
	else
		chunk_retire(r, number);
}

/* value NULL: removes it. */
static void
dif_dynamic_store(struct dif_run *r, uint32_t var, const void *value, size_t size)
{
	struct dif_dynamic *t = &r->d->dynamic;
	struct search s;
	struct chunk *k = NULL;

	if (!dynamic_search(r, var, &s))
		return;
	if (value == NULL) {
		if (*s.link != NONE)
			dynamic_remove(r, var, &s);
	} else {
		k = *s.link != NONE ? chunk_at(t, *s.link) : dynamic_add(r, var, &s);
		if (k != NULL)
			memcpy(dif_dynamic_value(t, k), value, size);
		else
			dif_drop(r->c, &r->c->dynvar_drops);
	}
	search_end(&s);
}

bool
dif_in_variable(const struct dif_run *r, uint64_t addr, size_t n)
{
	const struct dif_dynamic *t = &r->d->dynamic;
	uint64_t off = addr - (uintptr_t)r->d->globals;

	if (off < r->d->globals_size)
		return n <= r->d->globals_size - off;
	off = addr - (uintptr_t)t->chunks;
	/* Only the value of a chunk: the rest is the table's. */
	return off < (uint64_t)t->count * t->size && off % t->size >= t->size - t->value_size &&
	       n <= t->size - off % t->size;
}

/* A simple variable's place. Before bytes and strings stands a word: 1 if it is address 0. */
static uint64_t *
dif_variable_place(const struct dif_run *r, uint32_t var)
{
	bool local = r->d->vars[var].scope == DIF_THIS;

	return (uint64_t *)((local ? r->c->locals : r->d->globals) + r->d->variables[var].place);
}

uint64_t
dif_var_load(struct dif_run *r, uint32_t var)
{
	uint64_t v, *place;

	if (r->d->variables[var].dynamic) {
		v = dynamic_load(r, var);
		if (r->d->vars[var].keys != 0)
			r->key_words = 0;
		return v;
	}
	place = dif_variable_place(r, var);
	if (r->d->vars[var].kind == DIF_INT)
		return __atomic_load_n(place, __ATOMIC_RELAXED);
	return *place != 0 ? 0 : (uintptr_t)(place + 1);
}

uint64_t
dif_var_read(struct dif *d, uint32_t var, const uint64_t *keys, uint32_t key_words)
{
	struct dif_cpu c = {.keys = (uint64_t *)keys};
	struct dif_run r = {.d = d, .c = &c, .key_words = key_words};

	return dif_var_load(&r, var);
}

/* Copies the bytes or the string at addr. */
static bool
dif_variable_take(struct dif_run *r, uint32_t var, void *to, uint64_t addr, size_t *size)
{
	long n;

	*size = r->d->variables[var].size;
	if (r->d->vars[var].kind == DIF_BYTES)
		return dif_copy(r, to, addr, *size);
	n = dif_copy_str(r, to, addr, *size);
	*size = (size_t)n + 1;
	return n >= 0;
}

bool
dif_var_store(struct dif_run *r, uint32_t var, uint64_t value)
{
	bool integer = r->d->vars[var].kind == DIF_INT;
	void *bytes = r->c->text[0];
	uint64_t *place;
	size_t size;

	if (r->d->variables[var].dynamic) {
		if (value == 0)
			dif_dynamic_store(r, var, NULL, 0);
		else if (integer)
			dif_dynamic_store(r, var, &value, sizeof(value));
		else if (dif_variable_take(r, var, bytes, value, &size))
			dif_dynamic_store(r, var, bytes, size);
		else
			return false;
		if (r->d->vars[var].keys != 0)
			r->key_words = 0;
		return true;
	}
	place = dif_variable_place(r, var);
	if (integer) {
		__atomic_store_n(place, value, __ATOMIC_RELAXED);
		return true;
	}
	*place = value == 0;
	return value == 0 || dif_variable_take(r, var, place + 1, value, &size);
}
