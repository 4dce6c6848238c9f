/*
 * core.h - reads the log out of a memory dump: an ELF core of physical memory, as QEMU's
 * dump-guest-memory makes it. The kernel in it may have run, hung or died.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct Elf;

#define CORE_BUILD_ID 41u /* bytes of a build id in hexadecimal, with the NUL */

/**
 * Was an ELF file made by the build that a kernel tells of itself? 1: yes; 0: no; -1: the kernel
 * tells no build id. id becomes the file's own build id, "" if it has none.
 */
int core_build_is(struct Elf *elf, const char *build, char id[CORE_BUILD_ID]);

/**
 * Opens a dump. kernel is the ELF file of the kernel that was dumped, and is checked against the
 * dump; with NULL there is no such check. Returns NULL when that fails; err then says what was
 * found and what was expected.
 */
struct core *core_open(const char *path, const char *kernel, char *err, size_t errlen);

/**
 * Does the file end before the memory that its headers promise? Then the stream is damaged or
 * incomplete.
 */
bool core_is_cut(const struct core *c);

/** The log's stream (ktr/WIRE.md): up to len bytes. Returns how many; 0: it has ended. */
size_t core_read(struct core *c, void *buf, size_t len);

void core_close(struct core *c);
