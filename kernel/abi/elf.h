/* elf.h - the header of an ELF file: System V ABI, ELF-64 Object File Format 1.5. */
#pragma once

#include <stdint.h>

/* Where the kernel loads a program that may be loaded anywhere: the address that is 0 in its file.
 */
#define ELF_PROGRAM_BASE 0x0000555555554000ul
#define ELF_TYPE_DYN     3 /* such a program, or a library */

struct elf64_ehdr {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, phoff, shoff;
	uint32_t flags;
	uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
