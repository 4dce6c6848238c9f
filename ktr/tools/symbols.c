/*
 * symbols.c - the functions and lines of a kernel. They are in one piece of memory, in the form of
 * the kernel's own table. An ELF symbol table is converted to that form. No number of the table is
 * trusted: each is checked before it is used as an index.
 */
#include "ktr/tools/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#ifdef KTRDUMP_HOST
#include <gelf.h>

#include "ktr/tools/core.h"
#else
#include <kestrel.h>
#endif

/* The table's layout: kernel/lib/ksyms.h. */
#define MAGIC 0x324d534bu /* "KSM2" */
struct table_header {
	uint32_t magic, sym_count, line_count, frame_count, file_count, reserved;
	uint64_t base, names_size;
};
struct table_symbol {
	uint32_t addr, name;
};
struct table_line {
	uint32_t addr;
	uint16_t file, line;
};

struct symbols {
	uint64_t base; /* addresses are relative to this */
	const struct table_symbol *syms;
	const struct table_line *lines;
	const uint32_t *files;
	const char *names;
	uint32_t sym_count, line_count, file_count;
	uint64_t names_size;
	void *memory;
};

/* The index of the last of n pairs, ordered by address, at or below addr; -1: none. */
static long
last_at_or_below(const void *pairs, uint32_t n, uint64_t addr)
{
	_Static_assert(sizeof(struct table_symbol) == 8 && sizeof(struct table_line) == 8, "pairs");
	const struct table_symbol *p = pairs;
	uint32_t low = 0, high = n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (p[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return (long)low - 1;
}

const char *
symbols_function(const struct symbols *s, uint64_t pc)
{
	if (s == NULL || pc - s->base > UINT32_MAX)
		return NULL;
	long i = last_at_or_below(s->syms, s->sym_count, pc - s->base);
	return i >= 0 && s->syms[i].name < s->names_size ? s->names + s->syms[i].name : NULL;
}

const char *
symbols_place(const struct symbols *s, uint64_t pc, char *buf, size_t size)
{
	buf[0] = '\0';
	if (s == NULL || pc - s->base > UINT32_MAX)
		return buf;
	long i = last_at_or_below(s->lines, s->line_count, pc - s->base);
	if (i >= 0 && s->lines[i].line != 0 && s->lines[i].file < s->file_count &&
	    s->files[s->lines[i].file] < s->names_size)
		snprintf(buf, size, "%s:%u", s->names + s->files[s->lines[i].file],
			 (unsigned)s->lines[i].line);
	return buf;
}

void
symbols_close(struct symbols *s)
{
	if (s != NULL)
		free(s->memory);
	free(s);
}

/* Takes over a table of size bytes. NULL: it is no such table, and its memory is freed. */
static struct symbols *
table_use(void *memory, size_t size)
{
	struct symbols *s = calloc(1, sizeof(*s));
	struct table_header h;
	if (s != NULL)
		s->memory = memory;
	else
		free(memory);
	if (s == NULL || size < sizeof(h))
		goto bad;
	memcpy(&h, memory, sizeof(h));
	uint64_t pairs = (uint64_t)h.sym_count + h.line_count + h.frame_count;
	uint64_t names = sizeof(h) + pairs * 8 + (uint64_t)h.file_count * 4;
	if (h.magic != MAGIC || h.names_size == 0 || names > size || h.names_size > size - names ||
	    h.sym_count == 0)
		goto bad;
	char *bytes = memory;
	s->base = h.base;
	s->syms = (const void *)(bytes + sizeof(h));
	s->sym_count = h.sym_count;
	s->lines = (const void *)(s->syms + h.sym_count);
	s->line_count = h.line_count;
	s->files = (const void *)(s->lines + h.line_count + h.frame_count);
	s->file_count = h.file_count;
	s->names = bytes + names;
	s->names_size = h.names_size;
	bytes[names + h.names_size - 1] = '\0';
	return s;
bad:
	symbols_close(s);
	return NULL;
}

#ifdef KTRDUMP_HOST
/* A copy of a section's contents. NULL: there is no such section, or no memory. */
static void *
section_copy(Elf *elf, const char *name, size_t *size)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t strings;
	if (elf_getshdrstrndx(elf, &strings) != 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *is =
		    gelf_getshdr(scn, &sh) != NULL ? elf_strptr(elf, strings, sh.sh_name) : NULL;
		Elf_Data *data =
		    is != NULL && strcmp(is, name) == 0 ? elf_rawdata(scn, NULL) : NULL;
		if (data == NULL || data->d_size == 0)
			continue;
		void *copy = malloc(data->d_size);
		if (copy != NULL)
			memcpy(copy, data->d_buf, data->d_size);
		*size = data->d_size;
		return copy;
	}
	return NULL;
}

static int
compare_symbols(const void *a, const void *b)
{
	const struct table_symbol *l = a, *r = b;
	return (l->addr > r->addr) - (l->addr < r->addr);
}

/* Makes a table without lines from the functions of an ELF symbol table. NULL: there are none. */
static struct symbols *
symtab_use(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;
	Elf_Data *data = NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		if (gelf_getshdr(scn, &sh) != NULL && sh.sh_type == SHT_SYMTAB)
			data = elf_getdata(scn, NULL);
		if (data != NULL)
			break;
	}
	Elf_Data *names = data != NULL ? elf_getdata(elf_getscn(elf, sh.sh_link), NULL) : NULL;
	if (names == NULL || names->d_size == 0 || sh.sh_entsize == 0)
		return NULL;
	size_t n = sh.sh_size / sh.sh_entsize, used = 0;
	struct symbols *s = calloc(1, sizeof(*s));
	struct table_symbol *syms = malloc(n * sizeof(*syms) + names->d_size);
	if (s == NULL || syms == NULL) {
		free(s);
		free(syms);
		return NULL;
	}
	s->base = UINT64_MAX;
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			if (gelf_getsym(data, (int)i, &sym) == NULL ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_value == 0)
				continue;
			if (pass == 0 && sym.st_value < s->base)
				s->base = sym.st_value;
			else if (pass == 1 && sym.st_value - s->base < UINT32_MAX)
				syms[used++] =
				    (struct table_symbol){(uint32_t)(sym.st_value - s->base),
							  sym.st_name};
		}
	}
	qsort(syms, used, sizeof(*syms), compare_symbols);
	char *text = (char *)(syms + n);
	memcpy(text, names->d_buf, names->d_size);
	text[names->d_size - 1] = '\0';
	s->memory = syms;
	s->syms = syms;
	s->sym_count = (uint32_t)used;
	s->names = text;
	s->names_size = names->d_size;
	return s;
}

/* Where Kestrel's build puts a kernel, seen from build/host/ktrdump. */
static bool
default_path(const char *arch, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	path[n > 0 ? n : 0] = '\0';
	for (unsigned up = 0; up < 2; up++) {
		char *slash = strrchr(path, '/');
		if (slash == NULL)
			return false;
		*slash = '\0';
	}
	n = (ssize_t)strlen(path);
	return snprintf(path + n, size - (size_t)n, "/%.20s/kestrel", arch) <
	       (int)(size - (size_t)n);
}

struct symbols *
symbols_open(const char *kernel, const struct ktr_decode_header *h)
{
	struct symbols *s = NULL;
	char path[4096];
	size_t size;
	bool same = false;
	if (kernel == NULL &&
	    (strchr(h->arch, '/') != NULL || !default_path(h->arch, path, sizeof(path))))
		return NULL;
	elf_version(EV_CURRENT);
	int fd = open(kernel != NULL ? kernel : path, O_RDONLY);
	int error = errno;
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	if (elf != NULL && elf_kind(elf) == ELF_K_ELF) {
		char id[CORE_BUILD_ID];
		int is = core_build_is(elf, h->build, id);
		same = is < 0 ? kernel != NULL : is != 0;
	}
	void *table = same ? section_copy(elf, ".ksyms", &size) : NULL;
	if (table != NULL)
		s = table_use(table, size);
	if (s == NULL && same)
		s = symtab_use(elf);
	if (s == NULL && kernel != NULL)
		fprintf(stderr, "ktrdump: %s: %s: addresses are shown without names\n", kernel,
			fd < 0 ? strerror(error)
			: same ? "no symbols are in it"
			       : "not the kernel that made the trace");
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return s;
}
#else
struct symbols *
symbols_open(const char *kernel, const struct ktr_decode_header *h)
{
	char *build = sysctl_get_text("kern.build");
	size_t size = 0, room = 0;
	ssize_t n = 0;
	char *bytes = NULL;
	bool same = build != NULL && strcmp(build, h->build) == 0;
	free(build);
	int fd = same ? open("/dev/ksyms", O_RDONLY) : -1;
	while (fd >= 0) {
		if (!MEMORY_ROOM(bytes, room, size + 65536))
			break;
		n = read(fd, bytes + size, room - size);
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	return bytes != NULL ? table_use(bytes, size) : NULL;
}
#endif
