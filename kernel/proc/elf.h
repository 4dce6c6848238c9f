/* elf.h - reads what execve needs from an ELF64 file, and checks every field. */
#pragma once

#include <stdbool.h>
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
	uint64_t phdr; /* address of the program headers in memory; 0: no segment holds them all */
	unsigned phnum;
	bool movable; /* it may be loaded anywhere: all addresses are relative to that place */
	/* Where in the file the path is, with its NUL, of the program that loads this one. size
	 * 0: there is none. */
	uint64_t interp_offset, interp_size;
	unsigned stack_prot; /* MMU_ bits; the file may ask for a stack that can be executed */
	unsigned count;
	struct elf_segment segments[ELF_MAX_SEGMENTS];
};

/*
 * Checks the headers in the first `size` bytes of a file of file_size bytes, for a machine (a value
 * of e_machine). 0; or -ENOEXEC if it is no executable for that machine, or wrong: segments
 * overlap, or lie outside user space or the file, or headers lie beyond `size`. Any context.
 */
int elf_check(const void *data, uint64_t size, uint64_t file_size, unsigned machine,
	      struct elf_image *img);
