/*
 * malloc.c - memory for programs: boundary tags over regions from mmap, with coalescing.
 *
 * A region is mapped memory: chunks that lie end to end, closed by a sentinel of size 0 that is in
 * use. Each chunk starts with its size and flags; a free chunk also repeats its size at its end,
 * where the chunk after it finds it (PREV_FREE), so that free() joins neighbours without
 * searching. No two neighbours are ever both free. Free chunks hang in lists by power of two of
 * their size. Requests of LARGE_SIZE and more are mapped on their own and returned to the kernel by
 * free(). A header that breaks these rules ends the program: the heap was written over. Locking:
 * none; a program has one thread.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT   16UL
#define HEADER_SIZE offsetof(struct chunk, next)
#define MIN_CHUNK   48UL /* header, two links, size at the end */
#define REGION_SIZE (256UL * 1024)
#define LARGE_SIZE  (128UL * 1024)
#define BIN_COUNT   20
#define PAGE_SIZE   4096UL

#define IN_USE    1UL
#define PREV_FREE 2UL
#define MAPPED    4UL /* a large chunk of its own; size is that of the mapping */
#define FLAGS     15UL

#define MAGIC 0x6b65737472656c21UL

struct chunk {
	uint64_t size_flags; /* size with header, a multiple of 16, and flags */
	uint64_t check;      /* size_flags without PREV_FREE, xor MAGIC, xor the address */
	struct chunk *next;  /* the list's, in a free chunk; payload starts here otherwise */
	struct chunk **link; /* what points to this free chunk */
};

_Static_assert(offsetof(struct chunk, next) == 16, "payload must stay aligned to 16");

static struct chunk *bins[BIN_COUNT]; /* bin b: sizes from 32 << b, the last without limit */

static void __attribute__((noreturn)) heap_damaged(const char *what, const void *p)
{
	fprintf(stderr, "malloc: %s at %p: the heap was written over or freed twice\n", what, p);
	abort();
}

static uint64_t
chunk_size(const struct chunk *c)
{
	return c->size_flags & ~FLAGS;
}

static void
chunk_seal(struct chunk *c, uint64_t size_flags)
{
	c->size_flags = size_flags;
	c->check = (size_flags & ~PREV_FREE) ^ MAGIC ^ (uintptr_t)c;
}

static void
chunk_check(const struct chunk *c)
{
	if (((c->size_flags & ~PREV_FREE) ^ MAGIC ^ (uintptr_t)c) != c->check)
		heap_damaged("bad chunk header", c);
}

static struct chunk *
chunk_after(struct chunk *c)
{
	return (struct chunk *)((char *)c + chunk_size(c));
}

static struct chunk *
chunk_before(struct chunk *c)
{
	uint64_t size = ((uint64_t *)c)[-1];

	return (struct chunk *)((char *)c - size);
}

static unsigned int
bin_of(uint64_t size)
{
	unsigned int b = 58 - (unsigned int)__builtin_clzl(size); /* 32..63 -> 0 */

	return b < BIN_COUNT ? b : BIN_COUNT - 1;
}

static void
chunk_unlink(struct chunk *c)
{
	chunk_check(c);
	if ((c->size_flags & IN_USE) != 0 || *c->link != c)
		heap_damaged("bad free list", c);
	*c->link = c->next;
	if (c->next != NULL)
		c->next->link = c->link;
}

/* Makes the memory a free chunk; its neighbours are in use. */
static void
chunk_link(struct chunk *c, uint64_t size)
{
	struct chunk **bin = &bins[bin_of(size)], *after;

	chunk_seal(c, size);
	c->next = *bin;
	c->link = bin;
	if (c->next != NULL)
		c->next->link = &c->next;
	*bin = c;
	after = chunk_after(c);
	((uint64_t *)after)[-1] = size;
	after->size_flags |= PREV_FREE;
}

static struct chunk *
chunk_find(uint64_t size)
{
	for (unsigned int b = bin_of(size); b < BIN_COUNT; b++) {
		for (struct chunk *c = bins[b]; c != NULL; c = c->next) {
			if (chunk_size(c) >= size)
				return c;
		}
	}
	return NULL;
}

static struct chunk *
region_add(void)
{
	struct chunk *c =
	    mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED)
		return NULL;
	chunk_seal((struct chunk *)((char *)c + REGION_SIZE - HEADER_SIZE), IN_USE);
	chunk_link(c, REGION_SIZE - HEADER_SIZE);
	return c;
}

/* Cuts an unlinked free chunk, or one in use, down to `size`; what is left becomes free. */
static void
chunk_use(struct chunk *c, uint64_t size)
{
	uint64_t whole = chunk_size(c), left = whole - size;
	uint64_t prev = c->size_flags & PREV_FREE;

	if (left >= MIN_CHUNK) {
		chunk_seal(c, size | IN_USE | prev);
		chunk_link(chunk_after(c), left);
	} else {
		chunk_seal(c, whole | IN_USE | prev);
		chunk_after(c)->size_flags &= ~PREV_FREE;
	}
}

static void *
large_alloc(size_t size)
{
	uint64_t len = (size + HEADER_SIZE + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
	struct chunk *c =
	    mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (c == MAP_FAILED) {
		errno = ENOMEM;
		return NULL;
	}
	chunk_seal(c, len | IN_USE | MAPPED);
	return &c->next;
}

void *
malloc(size_t size)
{
	uint64_t need = (size + HEADER_SIZE + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	struct chunk *c;

	if (size > (size_t)INT64_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	if (size >= LARGE_SIZE)
		return large_alloc(size);
	if (need < MIN_CHUNK)
		need = MIN_CHUNK;
	c = chunk_find(need);
	if (c == NULL)
		c = region_add();
	if (c == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	chunk_unlink(c);
	chunk_use(c, need);
	return &c->next;
}

static struct chunk *
chunk_of(void *p)
{
	struct chunk *c = (struct chunk *)((char *)p - HEADER_SIZE);

	chunk_check(c);
	if ((c->size_flags & IN_USE) == 0)
		heap_damaged("pointer that is not in use", p);
	return c;
}

void
free(void *p)
{
	int error = errno;
	struct chunk *c, *after;
	uint64_t size;

	if (p == NULL)
		return;
	c = chunk_of(p);
	size = chunk_size(c);
	if ((c->size_flags & MAPPED) != 0) {
		munmap(c, size);
		errno = error;
		return;
	}
	after = chunk_after(c);
	chunk_check(after);
	if ((after->size_flags & IN_USE) == 0) {
		chunk_unlink(after);
		size += chunk_size(after);
	}
	if ((c->size_flags & PREV_FREE) != 0) {
		struct chunk *before = chunk_before(c);

		chunk_unlink(before);
		size += chunk_size(before);
		chunk_seal(c, chunk_size(c)); /* a second free() of it must not look sound */
		c = before;
	}
	chunk_link(c, size);
	/* A region that is all free goes back, unless it is the only free memory of its size. */
	if (size == REGION_SIZE - HEADER_SIZE &&
	    (c->next != NULL || c->link != &bins[bin_of(size)])) {
		chunk_unlink(c);
		munmap(c, REGION_SIZE);
	}
	errno = error;
}

void *
calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = malloc(bytes);
	if (p != NULL && bytes < LARGE_SIZE) /* fresh mappings are zero */
		memset(p, 0, bytes);
	return p;
}

/* Grows or shrinks a chunk where it stands; false when the chunk after it has no room. */
static int
chunk_resize(struct chunk *c, uint64_t need)
{
	uint64_t have = chunk_size(c);
	struct chunk *after = chunk_after(c);

	if (have < need) {
		chunk_check(after);
		if ((after->size_flags & IN_USE) != 0 || have + chunk_size(after) < need)
			return 0;
		chunk_unlink(after);
		chunk_seal(c, (have + chunk_size(after)) | (c->size_flags & FLAGS));
		chunk_use(c, need);
	}
	return 1;
}

void *
realloc(void *p, size_t size)
{
	struct chunk *c;
	uint64_t need = (size + HEADER_SIZE + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	uint64_t have;
	void *q;

	if (p == NULL)
		return malloc(size);
	c = chunk_of(p);
	have = chunk_size(c) - HEADER_SIZE;
	if (size <= have && (size >= have / 2 || have <= 1024))
		return p;
	if ((c->size_flags & MAPPED) == 0 && size > have && size < LARGE_SIZE &&
	    chunk_resize(c, need))
		return p;
	q = malloc(size);
	if (q == NULL)
		return NULL;
	memcpy(q, p, have < size ? have : size);
	free(p);
	return q;
}

void *
reallocarray(void *p, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}
