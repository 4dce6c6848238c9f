/*
 * usymbol.c - functions of executables, from the symbols in their files.
 *
 * A file is read when its number is first seen, which is soon after it was recorded: the kernel
 * forgets old numbers. One file may have several. What an ELF file says of itself is not trusted.
 */
#include "userland/bin/dtrace/run/run.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/abi/elf.h"
#include "userland/bin/dtrace/files.h"

/* What else of ELF is read here. */
struct elf_section {
	uint32_t name, type;
	uint64_t flags, addr, offset, size;
	uint32_t link, info;
	uint64_t addralign, entsize;
};

struct elf_symbol {
	uint32_t name;
	uint8_t info, other;
	uint16_t shndx;
	uint64_t value, size;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

#define SECTION_SYMTAB 2
#define SECTION_DYNSYM 11
#define SYMBOL_FUNC    2
#define SEGMENT_LOAD   1
#define SEGMENT_EXEC   1

static struct executable {
	struct executable *next, *same; /* same: the first one of this file */
	uint32_t number;
	char *path;
	uint8_t *file; /* NULL: it cannot be read, or is no executable */
	uint64_t size;
	uint64_t base; /* the address in memory of what is at address 0 of the file */
	const struct elf_symbol *symbols;
	const char *names;
	uint64_t count, names_size;
} * executables;

/* The bytes of a table of `count` elements; NULL: they are not in the file. */
static const void *
table(const struct executable *p, uint64_t offset, uint64_t count, uint64_t element)
{
	if (offset > p->size || count > (p->size - offset) / element || offset % 8 != 0)
		return NULL;
	return p->file + offset;
}

/* Those that the linker left, or, in a file that was stripped, those that it exports. */
static void
find_symbols(struct executable *p)
{
	const struct elf64_ehdr *h = (const void *)p->file;
	const struct elf_section *s = table(p, h->shoff, h->shnum, sizeof(*s)), *strings;

	for (unsigned i = 0; s != NULL && i < h->shnum; i++) {
		if ((s[i].type != SECTION_SYMTAB &&
		     (s[i].type != SECTION_DYNSYM || p->symbols != NULL)) ||
		    s[i].link >= h->shnum)
			continue;
		strings = &s[s[i].link];
		if (strings->offset > p->size || strings->size > p->size - strings->offset ||
		    strings->size == 0 || p->file[strings->offset + strings->size - 1] != '\0')
			continue;
		p->symbols =
		    table(p, s[i].offset, s[i].size / sizeof(*p->symbols), sizeof(*p->symbols));
		p->count = p->symbols != NULL ? s[i].size / sizeof(*p->symbols) : 0;
		p->names = (const char *)p->file + strings->offset;
		p->names_size = strings->size;
	}
}

/* Reads a file, if it is an executable. */
static void
open_file(struct executable *p, const char *path)
{
	const struct elf64_ehdr *h;
	size_t size = 0;

	p->file = *path == '/' ? file_read(path, &size) : NULL;
	p->size = size;
	h = (const void *)p->file;
	if (h == NULL || size < sizeof(*h) || memcmp(h->ident, "\177ELF\2\1", 6) != 0 ||
	    h->shentsize != sizeof(struct elf_section)) {
		p->file = NULL;
		return;
	}
	p->base = h->type == ELF_TYPE_DYN ? ELF_PROGRAM_BASE : 0;
	find_symbols(p);
}

/* Makes an address of the file its offset in the file. False: it is not in the file's code. */
static bool
code_offset(const struct executable *p, uint64_t *address)
{
	const struct elf64_ehdr *h = (const void *)p->file;
	const struct elf_segment *s = h != NULL ? table(p, h->phoff, h->phnum, sizeof(*s)) : NULL;

	for (unsigned i = 0; s != NULL && i < h->phnum; i++) {
		if (s[i].type == SEGMENT_LOAD && (s[i].flags & SEGMENT_EXEC) &&
		    *address >= s[i].vaddr && *address - s[i].vaddr < s[i].filesz) {
			*address += s[i].offset - s[i].vaddr;
			return true;
		}
	}
	return false;
}

/* The name of a function; NULL: the symbol is none. */
static const char *
function_name(const struct executable *p, const struct elf_symbol *s)
{
	return (s->info & 15) == SYMBOL_FUNC && s->shndx != 0 && s->name < p->names_size
		   ? p->names + s->name
		   : NULL;
}

static struct executable *
find(uint32_t number)
{
	struct dif_program d = {.program = number};
	struct executable *p, *first;

	for (p = executables; p != NULL; p = p->next)
		if (p->number == number)
			return p;
	p = dt_alloc(sizeof(*p));
	p->number = number;
	p->path = dt_format("%s", consume_program(&d) ? d.path : "");
	for (first = executables; first != NULL && p->same == NULL; first = first->next)
		if (strcmp(first->path, p->path) == 0)
			p->same = first->same;
	if (p->same == NULL) {
		p->same = p;
		open_file(p, p->path);
	}
	p->next = executables;
	executables = p;
	return p;
}

uint32_t
usymbol_program(uint32_t program)
{
	return find(program)->same->number;
}

const char *
usymbol_at(uint32_t program, uint64_t address, uint64_t *start, const char **object)
{
	const struct executable *p = find(program)->same;
	const struct elf_symbol *best = NULL;
	const char *slash = strrchr(p->path, '/');
	uint64_t here = address - p->base, offset = here;

	/* An address that is not in its code is in a library, of which nothing is known here. */
	*object =
	    slash != NULL && (p->file == NULL || address == USYMBOL_ANY || code_offset(p, &offset))
		? slash + 1
		: NULL;
	for (uint64_t i = 0; i < p->count && *object != NULL; i++) {
		const struct elf_symbol *s = &p->symbols[i];

		if (function_name(p, s) != NULL && s->value <= here &&
		    (best == NULL || s->value > best->value ||
		     (s->value == best->value && s->size > best->size)))
			best = s;
	}
	/* A symbol without a size ends where the next one begins. */
	if (best == NULL || (best->size != 0 && here - best->value >= best->size))
		return NULL;
	*start = best->value + p->base;
	return p->names + best->name;
}

void
usymbol_each(const char *path, void (*f)(const struct usymbol *s, void *arg), void *arg)
{
	struct executable p = {0};

	open_file(&p, path);
	for (uint64_t i = 0; i < p.count; i++) {
		const struct elf_symbol *s = &p.symbols[i];
		struct usymbol u = {function_name(&p, s), s->value, s->size};

		if (u.name != NULL && code_offset(&p, &u.offset))
			f(&u, arg);
	}
}

bool
usymbol_offset(const char *path, uint64_t *address)
{
	struct executable p = {0};

	open_file(&p, path);
	return code_offset(&p, address);
}
