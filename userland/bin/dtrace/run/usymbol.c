/*
 * usymbol.c - functions of executables and libraries, from the symbols in their files.
 *
 * A file is read when its number is first seen, which is soon after it was recorded: the kernel
 * forgets old numbers. One file may have several. What an ELF file says of itself is not trusted.
 */
#include "userland/bin/dtrace/run/run.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/abi/elf.h"
#include "ktr/glob.h"
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
#define SECTION_VERSYM 0x6fffffff
#define VERSION_HIDDEN 0x8000
#define SYMBOL_FUNC    2
#define SYMBOL_LOCAL   0
#define SEGMENT_LOAD   1
#define SEGMENT_INTERP 3
#define SEGMENT_EXEC   1
#define PAGE_BITS      12
#define MISSES         64

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
	const uint16_t *versions; /* of each symbol that is exported; NULL: there are none */
} * executables;

/* The libraries that a process has mapped, while it executed a program. */
static struct process {
	struct process *next;
	uint64_t program; /* DIF_B_PROGRAM */
	struct object *objects;
	uint64_t missed[MISSES]; /* pages of addresses that were in none when it was looked last */
	unsigned misses;         /* where the next one goes */
} * processes;

/* The bytes of a table of `count` elements; NULL: they are not in the file. */
static const void *
table(const struct executable *p, uint64_t offset, uint64_t count, uint64_t element)
{
	if (offset > p->size || count > (p->size - offset) / element ||
	    offset % (element % 8 == 0 ? 8 : element) != 0)
		return NULL;
	return p->file + offset;
}

/* Those that the linker left, or, in a file that was stripped, those that it exports. */
static void
find_symbols(struct executable *p)
{
	const struct elf64_ehdr *h = (const void *)p->file;
	const struct elf_section *s = table(p, h->shoff, h->shnum, sizeof(*s)), *strings;
	unsigned from = 0;

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
		from = i;
	}
	for (unsigned i = 0; p->count > 0 && i < h->shnum; i++)
		if (s[i].type == SECTION_VERSYM && s[i].link == from)
			p->versions = table(p, s[i].offset, p->count, sizeof(*p->versions));
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

/* The next segment of a type after *i. NULL: none. */
static const struct elf_segment *
next_segment(const struct executable *p, uint32_t type, unsigned *i)
{
	const struct elf64_ehdr *h = (const void *)p->file;
	const struct elf_segment *s = h != NULL ? table(p, h->phoff, h->phnum, sizeof(*s)) : NULL;

	while (s != NULL && *i < h->phnum)
		if (s[(*i)++].type == type)
			return &s[*i - 1];
	return NULL;
}

/* Makes an address of the file its offset in the file. False: it is not in the file's code. */
static bool
code_offset(const struct executable *p, uint64_t *address)
{
	const struct elf_segment *s;
	unsigned i = 0;

	while ((s = next_segment(p, SEGMENT_LOAD, &i)) != NULL)
		if ((s->flags & SEGMENT_EXEC) && *address - s->vaddr < s->filesz) {
			*address += s->offset - s->vaddr;
			return true;
		}
	return false;
}

/* The inverse; also of what is before the segment in its first page, which is mapped with it. */
static bool
code_address(const struct executable *p, uint64_t *offset)
{
	const struct elf_segment *s;
	unsigned i = 0;

	while ((s = next_segment(p, SEGMENT_LOAD, &i)) != NULL) {
		uint64_t before = s->offset % (1u << PAGE_BITS);

		if ((s->flags & SEGMENT_EXEC) &&
		    *offset - s->offset + before < s->filesz + before) {
			*offset += s->vaddr - s->offset;
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

/* What speaks against a name: it is local, it is there for old programs only, it begins with
 * underscores, it is long. */
static uint64_t
name_faults(const struct executable *p, const struct elf_symbol *s)
{
	const char *name = p->names + s->name;
	bool local = s->info >> 4 == SYMBOL_LOCAL;
	bool old = p->versions != NULL && (p->versions[s - p->symbols] & VERSION_HIDDEN) != 0;

	return (uint64_t)local << 63 | (uint64_t)old << 62 |
	       (uint64_t)(uint16_t)strspn(name, "_") << 32 | (uint32_t)strlen(name);
}

/* Is a's name the better one for their address? If nothing else tells: the first in the alphabet.
 */
static bool
is_better(const struct executable *p, const struct elf_symbol *a, const struct elf_symbol *b)
{
	uint64_t x = name_faults(p, a), y = name_faults(p, b);

	return x != y ? x < y : strcmp(p->names + a->name, p->names + b->name) < 0;
}

/* The file of a path; a program has a number. */
static struct executable *
find_file(uint32_t number, const char *path)
{
	struct executable *p = executables, *same;

	while (p != NULL && strcmp(p->path, path) != 0)
		p = p->next;
	same = p != NULL ? p->same : NULL;
	if (same != NULL && (number == 0 || same->number == 0)) {
		if (number != 0)
			same->number = number; /* it was a library only, until now */
		return same;
	}
	p = dt_alloc(sizeof(*p));
	p->number = number;
	p->path = dt_format("%s", path);
	p->same = same != NULL ? same : p;
	if (same == NULL)
		open_file(p, p->path);
	p->next = executables;
	executables = p;
	return p;
}

static struct executable *
find(uint32_t number)
{
	struct dif_program d = {.program = number};
	struct executable *p;

	for (p = executables; p != NULL; p = p->next)
		if (p->number == number && number != 0)
			return p;
	return find_file(number, consume_program(&d) ? d.path : "");
}

uint32_t
usymbol_program(uint32_t program)
{
	return find(program)->same->number;
}

static const struct object *
object_at(const struct object *o, uint64_t address)
{
	while (o != NULL && (address < o->start || address >= o->end))
		o = o->next;
	return o;
}

/* Where an address is in its file, by its libraries. NULL: nowhere. */
static const struct object *
find_object(uint64_t program, const char *path, uint64_t address)
{
	struct process *p = processes;
	const struct object *o;
	struct object *now;

	while (p != NULL && p->program != program)
		p = p->next;
	if (p == NULL) {
		p = dt_alloc(sizeof(*p));
		*p = (struct process){.next = processes, .program = program};
		processes = p;
	}
	o = object_at(p->objects, address);
	for (unsigned i = 0; i < MISSES && o == NULL; i++)
		if (p->missed[i] == (address >> PAGE_BITS) + 1)
			return NULL;
	if (o != NULL)
		return o;
	now = object_mapped((uint32_t)program, path); /* it may have mapped more */
	o = object_at(now, address);
	if (o == NULL) {
		/* Most are no addresses of code at all, and come again with the next stack. */
		p->missed[p->misses++ % MISSES] = (address >> PAGE_BITS) + 1;
		object_free(now);
		return NULL;
	}
	memset(p->missed, 0, sizeof(p->missed));
	object_free(p->objects);
	p->objects = now;
	return o;
}

/* The file whose code has an address, and where there. NULL: none. */
static const struct executable *
find_code(uint64_t program, uint64_t *address, const struct object **library)
{
	const struct executable *p = find((uint32_t)(program >> 32))->same;
	uint64_t here = *address - p->base, offset = here;
	const char *path = p->path;

	*library = NULL;
	if (*address == USYMBOL_ANY || code_offset(p, &offset)) {
		*address = here;
		return p;
	}
	*library = find_object(program, path, *address);
	if (*library == NULL)
		return p->file == NULL ? p
				       : NULL; /* that cannot be read: it may be the program's */
	*address += (*library)->offset - (*library)->start;
	p = find_file(0, (*library)->path);
	return code_address(p, address) ? p : NULL;
}

uint64_t
usymbol_object(uint64_t program, uint64_t address)
{
	const struct object *library;

	find_code(program, &address, &library);
	return library != NULL ? library->start : USYMBOL_ANY;
}

const char *
usymbol_at(uint64_t program, uint64_t address, uint64_t *start, const char **object)
{
	const struct object *library;
	uint64_t here = address;
	const struct executable *p = find_code(program, &here, &library);
	const struct elf_symbol *best = NULL;
	const char *slash = p != NULL ? strrchr(p->path, '/') : NULL;

	*object = slash != NULL ? slash + 1 : NULL;
	for (uint64_t i = 0; *object != NULL && i < p->count; i++) {
		const struct elf_symbol *s = &p->symbols[i];

		if (function_name(p, s) != NULL && s->value <= here &&
		    (best == NULL || s->value > best->value ||
		     (s->value == best->value &&
		      (s->size > best->size || (s->size == best->size && is_better(p, s, best))))))
			best = s;
	}
	/* A symbol without a size ends where the next one begins. */
	if (best == NULL || (best->size != 0 && here - best->value >= best->size))
		return NULL;
	*start = address - (here - best->value);
	return p->names + best->name;
}

static bool
is_meant(const char *glob, const char *name)
{
	return name != NULL && (*glob == '\0' || ktr_glob(glob, name));
}

void
usymbol_each(const char *path, const char *glob, void (*f)(const struct usymbol *s, void *arg),
	     void *arg)
{
	const struct executable *p = find_file(0, path);

	for (uint64_t i = 0; i < p->count; i++) {
		const struct elf_symbol *s = &p->symbols[i], *best = s, *best_match = s;
		struct usymbol u = {function_name(p, s), NULL, s->value, s->size};

		if (!is_meant(glob, u.name) || !code_offset(p, &u.offset))
			continue;
		for (uint64_t j = 0; j < p->count; j++) {
			const struct elf_symbol *t = &p->symbols[j];

			if (t->value != s->value || function_name(p, t) == NULL)
				continue;
			if (is_better(p, t, best))
				best = t;
			if (is_better(p, t, best_match) && is_meant(glob, p->names + t->name))
				best_match = t;
		}
		u.called =
		    s->info >> 4 == SYMBOL_LOCAL || *u.name == '_' ? p->names + best->name : u.name;
		if (best_match == s)
			f(&u, arg);
	}
}

bool
usymbol_offset(const char *path, uint64_t *address)
{
	return code_offset(find_file(0, path), address);
}

const char *
usymbol_linker(const char *path)
{
	const struct executable *p = find_file(0, path);
	unsigned i = 0;
	const struct elf_segment *s = next_segment(p, SEGMENT_INTERP, &i);

	return s != NULL && s->filesz > 0 && s->offset < p->size && s->filesz <= p->size - s->offset
		   ? dt_strndup((const char *)p->file + s->offset, s->filesz - 1)
		   : NULL;
}
