/*
 * symbols.h - the symbols of a linked kernel's functions, by address; for mkfbt.c.
 */
#pragma once

#include <stdlib.h>

#include "kernel/host/elf.h"
#include "userland/lib/array.h"

struct symbol {
	Dwarf_Addr at;
	const char *name;
	size_t order; /* in the image */
};
static struct symbol *symbols; /* of functions, by address */
static size_t symbol_count;

static int
by_symbol(const void *a, const void *b)
{
	const struct symbol *s = a, *t = b;
	if (s->at != t->at)
		return s->at < t->at ? -1 : 1;
	return s->order < t->order ? -1 : s->order > t->order;
}

static void
read_symbols(void)
{
	GElf_Sym sym;
	const char *name;
	for (size_t i = 0; (name = elf_symbol(i, &sym)) != NULL; i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		ARRAY_ADD(symbols, symbol_count, (struct symbol){sym.st_value, name, i});
	}
	if (symbols == NULL)
		errx(1, "no functions in the image");
	qsort(symbols, symbol_count, sizeof(*symbols), by_symbol);
}

/*
 * The symbol of a function; if there are several, the one with the name in the source. (The
 * compiler calls a specialised copy NAME.constprop.0, and merges functions that have the same
 * code.)
 */
static const char *
symbol(Dwarf_Addr at, const char *in_source)
{
	size_t low = 0, high = symbol_count; /* below `low` all are at lower addresses */
	const char *found = NULL;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (symbols[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < symbol_count && symbols[low].at == at; low++)
		if (found == NULL ||
		    (in_source != NULL && strcmp(symbols[low].name, in_source) == 0))
			found = symbols[low].name;
	return found;
}
