/* elf.h - the header of an ELF file: System V ABI, ELF-64 Object File Format 1.5. */
#pragma once

#include <stdint.h>

struct elf64_ehdr {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, phoff, shoff;
	uint32_t flags;
	uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
