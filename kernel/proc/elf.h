/* elf.h - reading what execve needs out of an ELF64 file, with every field checked. */
#pragma once

#include <stdint.h>

struct elf64_phdr {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

#define ELF_MAX_SEGMENTS 8

struct elf_segment {
	uint64_t vaddr, memsz, offset, filesz;
	unsigned prot; /* MMU_ bits */
};

struct elf_image {
	uint64_t entry;
	uint64_t phdr; /* address of the program headers in memory, 0: not loaded whole */
	unsigned phnum;
	unsigned count;
	struct elf_segment segments[ELF_MAX_SEGMENTS];
};

/*
 * Checks the headers in a file's first `size` bytes; the file has file_size. machine as in
 * e_machine. 0, or -ENOEXEC: not a static executable of that machine, or malformed (segments that
 * overlap, lie outside user space or the file, or are writable and executable; headers beyond
 * `size`). Any context.
 */
int elf_check(const void *data, uint64_t size, uint64_t file_size, unsigned machine,
	      struct elf_image *img);
