/*
 * ksyms.c - looks up symbols, lines and frames by binary search.
 */
#include "kernel/lib/ksyms.h"

#include "kernel/lib/string.h"

extern const char __ksyms_start[], __ksyms_end[];

struct tables {
	const struct ksyms_header *h;
	const struct ksyms_sym *syms;
	const struct ksyms_line *lines;
	const struct ksyms_frame *frames;
	const uint32_t *files;
	const char *names;
	const uint32_t *by_name; /* the hash table */
};

static bool
ksyms_open_tables(struct tables *t)
{
	t->h = (const struct ksyms_header *)__ksyms_start;
	if ((size_t)(__ksyms_end - __ksyms_start) < sizeof(*t->h) || t->h->magic != KSYMS_MAGIC)
		return false;
	t->syms = (const void *)(t->h + 1);
	t->lines = (const void *)(t->syms + t->h->sym_count);
	t->frames = (const void *)(t->lines + t->h->line_count);
	t->files = (const void *)(t->frames + t->h->frame_count);
	t->names = (const void *)(t->files + t->h->file_count);
	t->by_name = (const void *)(t->names + ((t->h->names_size + 3) & ~3ull));
	return true;
}

/* Index of the last of n 8-byte records whose first field is at or below addr. -1: none. */
static long
last_at_or_below(const void *records, uint32_t n, uint32_t addr)
{
	const struct ksyms_sym *r = records;
	uint32_t lo = 0, hi = n;

	_Static_assert(sizeof(struct ksyms_sym) == 8 && sizeof(struct ksyms_line) == 8 &&
			   sizeof(struct ksyms_frame) == 8,
		       "one search");
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (r[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (long)lo - 1;
}

/* Bit i, atomic: who asked last for symbol i meant its own name; who asked before that. */
static uint64_t asked[2][KSYMS_MAX / 64];

static bool
bit_of(bool other, long i)
{
	return (__atomic_load_n(&asked[other][i / 64], __ATOMIC_RELAXED) >> i % 64 & 1) != 0;
}

static void
ksyms_set_bit(bool other, long i, bool on)
{
	if (on)
		__atomic_fetch_or(&asked[other][i / 64], 1ull << i % 64, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&asked[other][i / 64], ~(1ull << i % 64), __ATOMIC_RELAXED);
}

/* Is it called by the other one? */
static bool
is_asked(long i)
{
	return bit_of(true, i) && !bit_of(false, i);
}

/* The number of the last symbol at or before pc. -1: none. */
static long
ksyms_find(struct tables *t, uintptr_t pc)
{
	if (!ksyms_open_tables(t) || pc < t->h->base || pc >= (uintptr_t)__ksyms_start)
		return -1;
	return last_at_or_below(t->syms, t->h->sym_count, (uint32_t)(pc - t->h->base));
}

const char *
ksym_lookup(uintptr_t pc, uintptr_t *offset)
{
	struct tables t;
	long i = ksyms_find(&t, pc);

	if (i < 0)
		return NULL;
	*offset = pc - t.h->base - t.syms[i].addr;
	return t.names + t.syms[i - is_asked(i)].name;
}

/* The number of the function at pc, if the symbol before it is its other name; else 0. */
static long
find_pair(struct tables *t, uintptr_t pc)
{
	long i = ksyms_find(t, pc);

	return i > 0 && t->syms[i].addr == pc - t->h->base && t->syms[i - 1].addr == t->syms[i].addr
		   ? i
		   : 0;
}

const char *
ksym_alias(uintptr_t pc)
{
	struct tables t;
	long i = find_pair(&t, pc);

	return i > 0 ? t.names + t.syms[i - 1].name : NULL;
}

void
ksym_ask(uintptr_t pc, bool own, bool other)
{
	struct tables t;
	long i = find_pair(&t, pc);

	if (i > 0) {
		ksyms_set_bit(false, i, own);
		ksyms_set_bit(true, i, other);
	}
}

const char *
ksym_also(uintptr_t pc)
{
	struct tables t;
	long i = find_pair(&t, pc);

	return i > 0 && bit_of(false, i) && bit_of(true, i) ? t.names + t.syms[i - 1].name : NULL;
}

bool
ksym_line(uintptr_t pc, const char **file, unsigned *line)
{
	struct tables t;
	long i;

	if (!ksyms_open_tables(&t) || pc < t.h->base || pc >= (uintptr_t)__ksyms_start)
		return false;
	i = last_at_or_below(t.lines, t.h->line_count, (uint32_t)(pc - t.h->base));
	if (i < 0 || t.lines[i].line == 0)
		return false;
	*file = t.names + t.files[t.lines[i].file];
	*line = t.lines[i].line;
	return true;
}

bool
ksym_frame(uintptr_t pc, struct ksyms_frame *frame)
{
	struct tables t;
	long i;

	if (!ksyms_open_tables(&t) || pc < t.h->base || pc >= (uintptr_t)__ksyms_start)
		return false;
	i = last_at_or_below(t.frames, t.h->frame_count, (uint32_t)(pc - t.h->base));
	if (i < 0 || t.frames[i].cfa == 0)
		return false;
	*frame = t.frames[i];
	return true;
}

const char *
ksym_at(uint32_t i, uintptr_t *address)
{
	struct tables t;
	long own, name = i;

	if (!ksyms_open_tables(&t) || i >= t.h->sym_count)
		return NULL;
	*address = t.h->base + t.syms[i].addr;
	own = find_pair(&t, *address);
	if (own > 0 && !is_asked(own))
		name = own + own - 1 - name;
	return t.names + t.syms[name].name;
}

uintptr_t
ksym_address(const char *name)
{
	struct tables t;
	uint32_t slots = 1, hash = 2166136261; /* FNV-1a */

	if (!ksyms_open_tables(&t))
		return 0;
	while (slots < 2 * t.h->sym_count)
		slots *= 2;
	for (const char *c = name; *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619;
	for (; t.by_name[hash & (slots - 1)] != 0; hash++) {
		const struct ksyms_sym *sym = &t.syms[t.by_name[hash & (slots - 1)] - 1];

		if (strcmp(t.names + sym->name, name) == 0)
			return t.h->base + sym->addr;
	}
	return 0;
}
