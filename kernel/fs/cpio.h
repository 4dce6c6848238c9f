/*
 * cpio.h - reader of cpio archives in the "newc" format (as `cpio -H newc` writes them; cpio(5)).
 *
 * A pure parser: it needs no kernel and allocates nothing. Any bytes are safe input. Archives may
 * follow each other, with zero bytes between them. Any context.
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
	uint32_t ino, mode, uid, gid, nlink;
	unsigned archive; /* number of the archive, from 0, when several follow each other */
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
 * Reads the next entry. 1: *e is filled. 0: the end. -1: damage, described by c->expected and
 * c->error_at; the next call goes on at the next header found after it.
 */
int cpio_next(struct cpio *c, struct cpio_entry *e);
/* Finds the last regular file with this name (no leading "/"). False: there is none. */
bool cpio_find(const void *data, size_t size, const char *name, const char **file,
	       size_t *file_size);
