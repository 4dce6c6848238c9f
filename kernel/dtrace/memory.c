/*
 * memory.c - what memory a program may read and write. Memory that is always there is read
 * directly; of the rest the port reads what can be read, never beyond a page at a time.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

#define PAGE  4096u
#define PIECE 64u

static inline bool
within(uint64_t addr, size_t n, uint64_t start, uint64_t size)
{
	return addr - start < size && n <= size - (addr - start);
}

/* Memory that cannot fault: the kernel's image and most of its RAM, and what the engine gave out.
 */
static inline bool
direct(const struct dif_run *r, uint64_t addr, size_t n)
{
	for (unsigned i = 0; i < DIF_PORT_DIRECT; i++)
		if (within(addr, n, dif_port_direct[i].start, dif_port_direct[i].size))
			return true;
	return within(addr, n, (uintptr_t)r->d->memory, r->d->memory_size);
}

bool
dif_copy(struct dif_run *r, void *dst, uint64_t addr, size_t n)
{
	if (direct(r, addr, n)) {
		memmove(dst, (const void *)addr, n);
		return true;
	}
	if (dif_port_load(dst, addr, n))
		return true;
	return dif_fail(r, DIF_FAULT_BADADDR, addr);
}

/* Has a word a byte that is 0? */
static inline bool
has_nul(uint64_t w)
{
	return ((w - 0x0101010101010101u) & ~w & 0x8080808080808080u) != 0;
}

/* Copies whole words up to one with the NUL, or up to `limit` bytes; returns the bytes copied. */
static size_t
copy_words(char *dst, const char *src, size_t limit)
{
	size_t n = 0;

	for (uint64_t w; n + sizeof(w) <= limit; n += sizeof(w)) {
		memcpy(&w, src + n, sizeof(w));
		if (has_nul(w))
			break;
		memcpy(dst + n, &w, sizeof(w));
	}
	return n;
}

long
dif_copy_str(struct dif_run *r, char *dst, uint64_t addr, size_t size)
{
	size_t n = 0;

	while (n < size - 1) {
		char piece[PIECE];
		const char *from = (const char *)(addr + n);
		size_t part = PAGE - (addr + n) % PAGE, i;

		part = part < size - 1 - n ? part : size - 1 - n;
		if (!direct(r, addr + n, part)) {
			part = part < PIECE ? part : PIECE;
			if (!dif_port_load(piece, addr + n, part))
				return dif_fail(r, DIF_FAULT_BADADDR, addr + n) - 1L;
			from = piece;
		}
		for (i = copy_words(dst + n, from, part); i < part; i++)
			if ((dst[n + i] = from[i]) == '\0')
				return (long)(n + i);
		n += part;
	}
	dst[n] = '\0';
	return (long)n;
}

/* The byte at addr; -1: DIF_FAULT_BADADDR. */
static int
byte_at(struct dif_run *r, uint64_t addr)
{
	uint8_t v;

	return dif_copy(r, &v, addr, 1) ? v : -1;
}

int
dif_compare(struct dif_run *r, uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < r->d->h.options.strsize; i++) {
		int x = byte_at(r, a + i), y = byte_at(r, b + i);

		if (x < 0 || y < 0)
			return -2;
		if (x != y)
			return x < y ? -1 : 1;
		if (x == 0)
			return 0;
	}
	return 0;
}

bool
dif_writable(const struct dif_run *r, uint64_t addr, size_t n)
{
	return within(addr, n, (uintptr_t)r->c->locals, (uintptr_t)(r->top - r->c->locals));
}

void *
dif_scratch(struct dif_run *r, uint64_t n)
{
	uint8_t *p = r->top;

	if (n > (uint64_t)(r->c->scratch_end - p)) {
		dif_fail(r, DIF_FAULT_NOSCRATCH, 0);
		return NULL;
	}
	r->top += (n + 7) & ~7ul; /* scratch_end is aligned */
	return p;
}
