/*
 * remote.h - `dtrace --target LINE`: /dev/dtrace is another kernel, at the end of a line
 * (ktr/DIF-WIRE.md). What comes from there is not trusted. One thread.
 *
 *	dtrace's ioctl() ──► device.c ──► remote.c ──► remote_line.c ──► a socket or a terminal
 *	                        │            └── remote_sound.c: are records and aggregations sound?
 *	                        └── remote_elf.c: the probes, types and symbols of the kernel's ELF
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/dtrace/engine.h"

/* ---- remote.c ---- */

/* Fails as errx(1, …) does, or by what was put here; does not return. */
extern void (*remote_failed)(const char *message);
_Noreturn void remote_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- remote_line.c ---- */

/* Opens unix:PATH, tcp:HOST:PORT or a terminal. */
void remote_line_open(const char *line);
/* Milliseconds, from some time on. */
uint64_t remote_line_time(void);
/* False: the other end has not read all within `ms`. */
bool remote_line_write(const uint8_t *bytes, size_t n, int ms);
/* Reads what has come, at most n bytes; waits until something comes. 0: not within `ms`. */
size_t remote_line_read(uint8_t *bytes, size_t n, int ms);

/* ---- remote_elf.c ---- */

/* Adds the probes of the kernel's ELF to the device. *sites, *sum: as DIF_LINE_HELLO answers. */
void remote_elf_open(const char *path, uint32_t *sites, uint32_t *sum);

/* ---- remote_sound.c ---- */

/* Are these records, and entries of aggregations, of the program? NULL; else what is wrong. */
const char *remote_unsound_records(const struct dif *d, const uint8_t *p, size_t size);
const char *remote_unsound_aggs(const struct dif *d, const uint8_t *p, size_t size);
