/*
 * ksyms.h - the kernel's own symbols, lines and frames.
 *
 * After a first link, kernel/host/mksyms.c writes them into section .ksyms. The final link
 * puts this section after all others, so no address changes. Any context; no locks: the data is
 * constant, but for which of two names a function was last asked for.
 *
 * The section, little-endian: struct ksyms_header; syms (by address; of two names of one function,
 * the second is its own, and the first what Linux calls it); lines (by address; line 0
 * ends a run of code that has lines); frames (by address); offsets of file names; names,
 * NUL-terminated; from the next multiple of 4 bytes on, a hash table with linear probing: numbers
 * of syms + 1, 0 for a free slot. It has the first power of 2 of slots that is twice sym_count or
 * more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KSYMS_MAGIC 0x324d534bu /* "KSM2" */
#define KSYMS_MAX   16384u      /* symbols; mksyms.c sees to it */

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

#define KSYMS_CFA_FROM_FP 0x8000u /* the CFA is given from fp, else from sp */
#define KSYMS_SAVED_FROM_BASE \
	0x4000u /* ra and fp are given from that register, else from the CFA */
#define KSYMS_CFA_WORDS 0x3fffu

/*
 * Where to find the caller's registers, from the compiler's call frame information. The CFA
 * (canonical frame address) is the stack pointer of the caller after the return.
 */
struct ksyms_frame {
	uint32_t addr;
	uint16_t cfa; /* flags; words from the register to the CFA, + 1; 0: unknown */
	/* Return address, and caller's frame pointer: words from the CFA down, or from the register
	 * up, + 1. 0: still in its own register. */
	uint8_t ra, fp;
};

/* The function that contains pc; *offset is the distance of pc from its start. NULL: unknown. */
const char *ksym_lookup(uintptr_t pc, uintptr_t *offset);
/* What Linux calls the function that begins at pc, if that is another name. NULL: it is not. */
const char *ksym_alias(uintptr_t pc);
/* Somebody asks for the function at pc by its own name, by the other one, or by both: if only by
 * the other one, ksym_lookup() gives it that from now on. Thread context. */
void ksym_ask(uintptr_t pc, bool own, bool other);
/* The other name of a function that was last asked for by both. NULL: it was not. */
const char *ksym_also(uintptr_t pc);
/* Source file and line of the instruction at pc. False: unknown. */
bool ksym_line(uintptr_t pc, const char **file, unsigned *line);
/* The frame of the code at pc. False: unknown, as in assembly. */
bool ksym_frame(uintptr_t pc, struct ksyms_frame *frame);
/* Function or object number i, in order of addresses, and its address; of two names of a function
 * first the one that ksym_lookup() gives it. NULL: there are not so many. */
const char *ksym_at(uint32_t i, uintptr_t *address);
/* Address of the first function or object of that name. 0: none. */
uintptr_t ksym_address(const char *name);
/* Makes /dev/ksyms, the section as it is. 0 or -errno. Thread context, after vfs_init(). */
int ksyms_dev_init(void);
