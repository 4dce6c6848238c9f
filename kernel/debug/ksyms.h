/*
 * ksyms.h - the kernel's own symbols, lines and frames.
 *
 * kernel/debug/mksyms.py writes them into section .ksyms after the first link; the final link adds
 * them behind everything else, so no address moves. Any context; nothing is locked or changed.
 *
 * The section, little endian: struct ksyms_header; syms (by address); lines (by address; line 0
 * ends a run of code that has lines); frames (by address); offsets of file names; names,
 * NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KSYMS_MAGIC 0x324d534bu /* "KSM2" */

struct ksyms_header {
	uint32_t magic, sym_count, line_count, frame_count, file_count, reserved;
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

#define KSYMS_CFA_FROM_FP 0x8000u

/*
 * Where the caller's registers are, from the compiler's call frame information: the CFA is what the
 * caller's stack pointer will be.
 */
struct ksyms_frame {
	uint32_t addr;
	uint16_t cfa; /* 8 bytes each, plus one, from sp or (KSYMS_CFA_FROM_FP) fp; 0: not known */
	uint8_t ra;   /* return address: at CFA - 8 * ra; 0: in the link register */
	uint8_t fp;   /* caller's frame pointer: at CFA - 8 * fp; 0: still in its register */
};

/* The function that pc lies in; *offset gets pc's distance from its start. NULL: unknown. */
const char *ksym_lookup(uintptr_t pc, uintptr_t *offset);
/* Source file and line of the instruction at pc. False: unknown. */
bool ksym_line(uintptr_t pc, const char **file, unsigned *line);
/* How to leave the frame of the code at pc. False: unknown, as in assembly. */
bool ksym_frame(uintptr_t pc, struct ksyms_frame *frame);
/* Address of a function or object by name; 0: none. */
uintptr_t ksym_address(const char *name);
