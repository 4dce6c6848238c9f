/*
 * cpio.h - reader of cpio archives in the "newc" format (as `cpio -H newc` writes them; cpio(5)).
 *
 * A pure parser over bytes that come from anyone: no kernel, no memory, no assumption about what it
 * reads. Archives may follow each other, with zero bytes between. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpio_entry {
	const char *
	    name; /* in the archive, NUL-terminated, without leading "/" and "./"; "" is the root */
	const void *data; /* in the archive */
	size_t size;      /* bytes of data */
	uint32_t ino, mode, uid, nlink;
	unsigned archive; /* which of the archives that follow each other, from 0 */
};

struct cpio {
	const unsigned char *bytes;
	size_t size, at;
	unsigned archive;
	const char *expected; /* what was expected at error_at, after a -1 */
	size_t error_at;
};

void cpio_init(struct cpio *c, const void *data, size_t size);
/*
 * The next entry: 1. The end: 0. Damage: -1, told by c->expected and c->error_at; the next call
 * goes on with the next header that can be found behind it.
 */
int cpio_next(struct cpio *c, struct cpio_entry *e);
/* Finds the last regular file of that name (no leading "/"). False: there is none. */
bool cpio_find(const void *data, size_t size, const char *name, const char **file,
	       size_t *file_size);
