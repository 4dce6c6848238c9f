/*
 * ksyms.h - the kernel's own symbols and lines.
 *
 * kernel/debug/mksyms.py writes them into section .ksyms after the first link; the final link adds
 * them behind everything else, so no address moves. Any context; nothing is locked or changed.
 *
 * The section, little endian: struct ksyms_header; syms (by address); lines (by address; line 0
 * ends a run of code that has lines); offsets of file names; names, NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KSYMS_MAGIC 0x4d59534bu /* "KSYM" */

struct ksyms_header {
	uint32_t magic, sym_count, line_count, file_count;
	uint64_t base; /* addresses below are relative to this */
	uint64_t names_size;
};

struct ksyms_sym {
	uint32_t addr, name; /* offset of the name */
};

struct ksyms_line {
	uint32_t addr;
	uint16_t file, line;
};

/* The function that pc lies in; *offset gets pc's distance from its start. NULL: unknown. */
const char *ksym_lookup(uintptr_t pc, uintptr_t *offset);
/* Source file and line of the instruction at pc. False: unknown. */
bool ksym_line(uintptr_t pc, const char **file, unsigned *line);
/* Address of a function or object by name; 0: none. */
uintptr_t ksym_address(const char *name);
