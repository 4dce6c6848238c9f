/*
 * elf.h - the image of a linked kernel, for programs of the build: its sections and symbols.
 */
#pragma once

#include <elfutils/libdw.h>
#include <err.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>

static Dwarf *dwarf;
static Elf *elf;

/* Opens an image, with open()'s flags. Its descriptor. */
static inline int
elf_open(const char *path, int flags)
{
	int fd = open(path, flags);

	dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (dwarf == NULL)
		errx(1, "%s: cannot read its debug information", path);
	elf = dwarf_getelf(dwarf);
	return fd;
}

static inline Elf_Data *
elf_section(const char *name, GElf_Shdr *header)
{
	size_t names;

	elf_getshdrstrndx(elf, &names);
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) != NULL;)
		if (gelf_getshdr(s, header) != NULL &&
		    strcmp(elf_strptr(elf, names, header->sh_name), name) == 0)
			return elf_getdata(s, NULL);
	errx(1, "no section %s in the image", name);
}

/* Symbol i, and its name; NULL: there are no more. */
static inline const char *
elf_symbol(size_t i, GElf_Sym *sym)
{
	static GElf_Shdr header;
	static Elf_Data *all;
	static const Elf *of;

	if (of != elf)
		all = elf_section(".symtab", &header);
	of = elf;
	return gelf_getsym(all, (int)i, sym) != NULL ? elf_strptr(elf, header.sh_link, sym->st_name)
						     : NULL;
}
