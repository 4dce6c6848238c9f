/*
 * usymbol.c - functions of executables, from the symbols in their files.
 *
 * A file is read when its number is first seen, which is soon after it was recorded: the kernel
 * forgets old numbers. One file may have several. What an ELF file says of itself is not trusted.
 */
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/abi/elf.h"
#include "userland/bin/dtrace/files.h"

/* As in kernel/abi/elf.h. */
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
#define SYMBOL_FUNC    2

static struct executable {
	struct executable *next, *same; /* same: the first one of this file */
	uint32_t number;
	char *path;
	uint8_t *file; /* NULL: it has no symbols */
	const struct elf_symbol *symbols;
	const char *names;
	uint64_t count, names_size;
} * executables;

/* A section's bytes; NULL: they are not in the file. */
static void *
section_data(const struct executable *p, uint64_t size, const struct elf_section *s)
{
	if (s->offset > size || s->size > size - s->offset || s->offset % 8 != 0)
		return NULL;
	return p->file + s->offset;
}

static void
find_symbols(struct executable *p, uint64_t size)
{
	const struct elf64_ehdr *h = (const void *)p->file;
	const struct elf_section *s, *strings;

	if (size < sizeof(*h) ||
	    memcmp(h->ident,
		   "\x7f"
		   "ELF\2\1",
		   6) != 0 ||
	    h->shentsize != sizeof(*s) || h->shoff % 8 != 0 || h->shoff > size ||
	    h->shnum > (size - h->shoff) / sizeof(*s))
		return;
	s = (const void *)(p->file + h->shoff);
	for (unsigned i = 0; i < h->shnum; i++) {
		if (s[i].type != SECTION_SYMTAB || s[i].link >= h->shnum)
			continue;
		strings = &s[s[i].link];
		if (strings->offset > size || strings->size > size - strings->offset ||
		    strings->size == 0 || p->file[strings->offset + strings->size - 1] != '\0')
			continue;
		p->symbols = section_data(p, size, &s[i]);
		p->count = p->symbols != NULL ? s[i].size / sizeof(*p->symbols) : 0;
		p->names = (const char *)p->file + strings->offset;
		p->names_size = strings->size;
	}
}

static struct executable *
find(uint32_t number)
{
	struct dif_program d = {.program = number};
	struct executable *p, *first;
	size_t size = 0;

	for (p = executables; p != NULL; p = p->next) {
		if (p->number == number)
			return p;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		err(1, "memory");
	p->number = number;
	p->path = strdup(consume_program(&d) ? d.path : "");
	if (p->path == NULL)
		err(1, "memory");
	for (first = executables; first != NULL && p->same == NULL; first = first->next) {
		if (strcmp(first->path, p->path) == 0)
			p->same = first->same;
	}
	if (p->same == NULL) {
		p->same = p;
		p->file = *p->path == '/' ? file_read(p->path, &size) : NULL;
		if (p->file != NULL)
			find_symbols(p, size);
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

	*object = slash != NULL ? slash + 1 : NULL;
	for (uint64_t i = 0; i < p->count; i++) {
		const struct elf_symbol *s = &p->symbols[i];

		if ((s->info & 15) == SYMBOL_FUNC && s->value <= address &&
		    (address - s->value < s->size || s->size == 0) && s->name < p->names_size &&
		    (best == NULL || s->value > best->value))
			best = s;
	}
	if (best == NULL)
		return NULL;
	*start = best->value;
	return p->names + best->name;
}

#define SEGMENT_LOAD 1
#define SEGMENT_EXEC 1

/* The offset of an address in the code. */
static bool
code_offset(const uint8_t *file, uint64_t size, uint64_t *address)
{
	const struct elf64_ehdr *h = (const void *)file;
	const struct elf_segment *p;

	if (size < sizeof(*h) || h->phoff % 8 != 0 || h->phoff > size ||
	    h->phnum > (size - h->phoff) / sizeof(*p))
		return false;
	p = (const void *)(file + h->phoff);
	for (unsigned i = 0; i < h->phnum; i++) {
		if (p[i].type == SEGMENT_LOAD && (p[i].flags & SEGMENT_EXEC) &&
		    *address >= p[i].vaddr && *address - p[i].vaddr < p[i].filesz) {
			*address += p[i].offset - p[i].vaddr;
			return true;
		}
	}
	return false;
}

void
usymbol_each(const char *path, void (*f)(const struct usymbol *s, void *arg), void *arg)
{
	struct executable p = {0};
	size_t size = 0;

	p.file = file_read(path, &size);
	if (p.file != NULL)
		find_symbols(&p, size);
	for (uint64_t i = 0; i < p.count; i++) {
		const struct elf_symbol *s = &p.symbols[i];
		struct usymbol u = {.offset = s->value, .size = s->size};

		if ((s->info & 15) != SYMBOL_FUNC || s->name >= p.names_size ||
		    !code_offset(p.file, size, &u.offset))
			continue;
		u.name = p.names + s->name;
		f(&u, arg);
	}
}

bool
usymbol_offset(const char *path, uint64_t *address)
{
	size_t size = 0;
	const uint8_t *file = file_read(path, &size);

	return file != NULL && code_offset(file, size, address);
}
