/*
 * symbols.h - the symbols of a linked kernel's functions, by address; for mkfbt.c.
 */
#pragma once

#include <elfutils/libdw.h>
#include <err.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* An array with room for one more element. */
static void *
grow(void *array, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0) /* only at powers of two */
		return array;
	array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
	if (array == NULL)
		err(1, "realloc");
	return array;
}

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
read_symbols(Elf *elf)
{
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) != NULL;) {
		GElf_Shdr header;
		if (gelf_getshdr(s, &header) == NULL || header.sh_type != SHT_SYMTAB)
			continue;
		Elf_Data *all = elf_getdata(s, NULL);
		for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
			GElf_Sym sym;
			if (gelf_getsym(all, (int)i, &sym) == NULL ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
				continue;
			symbols = grow(symbols, symbol_count, sizeof(*symbols));
			symbols[symbol_count++] =
			    (struct symbol){sym.st_value,
					    elf_strptr(elf, header.sh_link, sym.st_name), i};
		}
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
