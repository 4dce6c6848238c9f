/*
 * port.h - functions that a kernel may define for the program engine. A kernel that has the engine
 * from dif.c finds a weak one of each name there (default.c), and replaces which it likes.
 * Kestrel's own are in place.c.
 *
 * Programs call these with interrupts off, in any context: no lock, no sleep, no allocation, unless
 * it is said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ktr_firing;

/* Zeroed memory, aligned to 64 bytes; NULL: none. Thread context, or who calls dif_serve(). */
void *dif_port_alloc(size_t size);
/* Frees what is not NULL of n blocks; all at once costs less. The same context. */
void dif_port_free_all(void *const *p, unsigned n);
/* Copies from the kernel's RAM. False: it is not RAM, not mapped, or not the kernel's. */
bool dif_port_load(void *dst, uint64_t addr, size_t n);
/* Copies from the current user's memory as far as it is present. */
bool dif_port_user_load(void *dst, uint64_t addr, size_t n);
/* Stores at most max return addresses, the probe's place first. Returns how many. */
unsigned dif_port_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max);

/* The rest is asked by dif.c only. */

/* The number of the current process. */
uint32_t dif_port_pid(void);
/* The name of the current process: in memory that programs may read, or in buf, which has room. */
#define DIF_PORT_NAME 32u
const char *dif_port_name(char buf[DIF_PORT_NAME]);
/* Writes to the line whose bytes come to dif_serve(). Not called by programs: it may wait. */
void dif_port_send(const void *bytes, size_t n);
