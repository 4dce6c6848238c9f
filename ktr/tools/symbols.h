/*
 * symbols.h - which function of the kernel, and which line, an address is in.
 *
 * On the host they come from the kernel's ELF file: Kestrel's own table of lines (section .ksyms,
 * kernel/debug/ksyms.h), or the symbols of any other kernel. In the guest they come from
 * /dev/ksyms, which is that table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/decode.h"

struct symbols;

/**
 * Those of the kernel that made the stream. kernel: its ELF file, or NULL: the host looks for it
 * where Kestrel's build puts it. A file of another build is not used, and is reported when it was
 * named. NULL: there are none.
 */
struct symbols *symbols_open(const char *kernel, const struct ktr_decode_header *h);
void symbols_close(struct symbols *s);

/** NULL: not known. s may be NULL. */
const char *symbols_function(const struct symbols *s, uint64_t pc);
/** The text `file:line` in buf, or "" when it is not known. s may be NULL. */
const char *symbols_place(const struct symbols *s, uint64_t pc, char *buf, size_t size);
