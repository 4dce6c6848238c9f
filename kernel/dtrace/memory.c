/*
 * memory.c - what memory a program may read and write. Memory that is always there is read
 * directly; of the rest the port reads what can be read, never beyond a page at a time.
 */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "ktr/str.h"

#define PAGE  4096u
#define PIECE 64u

static inline bool
memory_is_within(uint64_t addr, size_t n, uint64_t start, uint64_t size)
{
	return addr - start < size && n <= size - (addr - start);
}

static inline size_t
memory_part(uint64_t addr, size_t n, uint64_t start, uint64_t size)
{
	uint64_t left = addr - start < size ? size - (addr - start) : 0;

	return n < left ? n : left;
}

/*
 * How many of the n bytes from addr on are in memory that cannot fault: the kernel's image, most of
 * its RAM, and what the engine gave out. 0 if the first one is not.
 */
static inline size_t
memory_direct(const struct dif_run *r, uint64_t addr, size_t n)
{
	size_t part;

	for (unsigned i = 0; i < DIF_PORT_DIRECT; i++) {
		part = memory_part(addr, n, dif_port_direct[i].start, dif_port_direct[i].size);
		if (part > 0)
			return part;
	}
	return memory_part(addr, n, (uintptr_t)r->d->memory, r->d->memory_size);
}

bool
dif_copy(struct dif_run *r, void *dst, uint64_t addr, size_t n)
{
	if (n == 0 || memory_direct(r, addr, n) == n) {
		ktr_copy(dst, (const void *)addr, n);
		return true;
	}
	if (dif_port_load(dst, addr, n))
		return true;
	return dif_fail(r, DIF_FAULT_BADADDR, addr);
}

/*
 * Copies a string by words, as many as fit into `limit` bytes. *ended: the NUL was in the last
 * word, in which all bytes from it on are 0. Returns how many bytes there are before the NUL.
 */
static inline size_t
copy_words(char *dst, const char *src, size_t limit, bool *ended)
{
	size_t n = 0;

	*ended = false;
	for (uint64_t w, nul; n + sizeof(w) <= limit; n += sizeof(w)) {
		__builtin_memcpy(&w, src + n, sizeof(w));
		nul = dif_nul_bit(w);
		if (nul != 0) {
			w &= (nul & -nul) - 1; /* bytes before the NUL, and bits that are 0 */
			__builtin_memcpy(dst + n, &w, sizeof(w));
			*ended = true;
			return n + (unsigned)__builtin_ctzll(nul) / 8;
		}
		__builtin_memcpy(dst + n, &w, sizeof(w));
	}
	return n;
}

long
dif_copy_str(struct dif_run *r, char *dst, uint64_t addr, size_t size)
{
	size_t n = 0;
	bool ended = false;

	if (dif_port_is_quick(addr) && size <= DIF_PORT_QUICK_SIZE)
		n = copy_words(dst, (const char *)addr, size - 1, &ended);
	if (ended)
		return (long)n;
	while (n < size - 1) {
		char piece[PIECE];
		const char *from = (const char *)(addr + n);
		size_t most = PAGE - (addr + n) % PAGE, part, i;

		most = most < size - 1 - n ? most : size - 1 - n;
		part = memory_direct(r, addr + n, most);
		if (part == 0) {
			part = most < PIECE ? most : PIECE;
			if (!dif_port_load(piece, addr + n, part))
				return dif_fail(r, DIF_FAULT_BADADDR, addr + n) - 1L;
			from = piece;
		}
		i = copy_words(dst + n, from, part, &ended);
		if (ended)
			return (long)(n + i);
		for (; i < part; i++)
			if ((dst[n + i] = from[i]) == '\0')
				return (long)(n + i);
		n += part;
	}
	dst[n] = '\0';
	return (long)n;
}

/* How much of a string is there from addr on, for who may not look beyond its NUL. */
static size_t
piece_size(const struct dif_run *r, uint64_t addr, size_t most)
{
	size_t part = PAGE - addr % PAGE, direct;

	part = part < PIECE ? part : PIECE;
	part = part < most ? part : most;
	direct = memory_direct(r, addr, part);
	return direct > 0 ? direct : part;
}

int
dif_compare(struct dif_run *r, uint64_t a, uint64_t b)
{
	uint8_t x[PIECE] = {0}, y[PIECE] = {0}; /* address 0 is an empty string, as in illumos */
	size_t n;

	for (size_t left = r->d->h.options.strsize; left > 0; left -= n, a += n, b += n) {
		n = piece_size(r, b, piece_size(r, a, left));
		if ((a != 0 && !dif_copy(r, x, a, n)) || (b != 0 && !dif_copy(r, y, b, n)))
			return -2;
		for (size_t i = 0; i < n; i++) {
			if (x[i] != y[i])
				return x[i] < y[i] ? -1 : 1;
			if (x[i] == 0)
				return 0;
		}
	}
	return 0;
}

bool
dif_writable(const struct dif_run *r, uint64_t addr, size_t n)
{
	return memory_is_within(addr, n, (uintptr_t)r->c->locals,
				(uintptr_t)(r->top - r->c->locals)) ||
	       dif_in_variable(r, addr, n);
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
