/*
 * symbols.h - finds the function of the kernel, and the source line, that an address is in.
 *
 * On the host, they are in the kernel's ELF file: for Kestrel in its own table (section .ksyms,
 * kernel/lib/ksyms.h), for other kernels in the symbol table, which has no lines. In the guest,
 * Kestrel's table is /dev/ksyms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ktr/decode.h"

struct symbols;

/**
 * Reads the symbols of the kernel that made the stream. `kernel` is its ELF file; if it is NULL,
 * the host looks where Kestrel's build puts the kernel. A file of another build is not used; if it
 * was named, a message says so. NULL: there are no symbols.
 */
struct symbols *symbols_open(const char *kernel, const struct ktr_decode_header *h);
void symbols_close(struct symbols *s);

/** The name of the function that pc is in. NULL: not known. s may be NULL. */
const char *symbols_function(const struct symbols *s, uint64_t pc);
/** Puts `file:line` into buf, or "" if it is not known. Returns buf. s may be NULL. */
const char *symbols_place(const struct symbols *s, uint64_t pc, char *buf, size_t size);
