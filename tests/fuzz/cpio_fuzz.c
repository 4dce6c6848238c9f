/*
 * cpio_fuzz.c - the archive reader: each step advances, entries lie inside the archive, damage is
 * reported, and cpio_find() finds what a walk finds.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/fs/cpio.h"
#include "tests/fuzz/fuzz.h"

static void
check_entry(const struct cpio *c, const struct cpio_entry *e, size_t from)
{
	const unsigned char *name = (const unsigned char *)e->name, *data = e->data;

	FUZZ_CHECK(name >= c->bytes + from && name < c->bytes + c->size, "name at %td",
		   name - c->bytes);
	FUZZ_CHECK(memchr(name, 0, (size_t)(c->bytes + c->size - name)) != NULL, "no NUL");
	FUZZ_CHECK(e->name[0] != '/' && strncmp(e->name, "./", 2) != 0 && strcmp(e->name, ".") != 0,
		   "\"%s\"", e->name);
	FUZZ_CHECK(strcmp(e->name, "TRAILER!!!") != 0, "the trailer is no entry");
	FUZZ_CHECK(e->size == 0 || (data > name && data <= c->bytes + c->at &&
				    e->size <= (size_t)(c->bytes + c->at - data)),
		   "%zu bytes at %td, next at %zu", e->size, data - c->bytes, c->at);
}

/* The last regular file with this name, found by a walk. */
static const void *
last_of(const uint8_t *bytes, size_t size, const char *name, size_t *file_size)
{
	const void *found = NULL;
	struct cpio_entry e;
	struct cpio c;
	int got;

	cpio_init(&c, bytes, size);
	while ((got = cpio_next(&c, &e)) != 0) {
		if (got > 0 && (e.mode & 0170000) == 0100000 && strcmp(e.name, name) == 0) {
			found = e.data;
			*file_size = e.size;
		}
	}
	return found;
}

static void
check_find(const uint8_t *bytes, size_t size, const char *name)
{
	size_t expected_size = 0, found_size = 0;
	const void *expected = last_of(bytes, size, name, &expected_size);
	const char *found = NULL;
	bool is_there = cpio_find(bytes, size, name, &found, &found_size);

	FUZZ_CHECK(is_there == (expected != NULL), "\"%s\"", name);
	FUZZ_CHECK(!is_there || (found == expected && found_size == expected_size), "\"%s\"", name);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cpio c;
	struct cpio_entry e;
	unsigned archive = 0, entries = 0;
	int got;

	cpio_init(&c, data, size);
	for (size_t from = 0; (got = cpio_next(&c, &e)) != 0; from = c.at) {
		FUZZ_CHECK(c.at > from && c.at <= size, "from %zu to %zu of %zu", from, c.at, size);
		if (got < 0) {
			FUZZ_CHECK(c.expected != NULL && c.error_at >= from && c.error_at <= size,
				   "damage at %zu", c.error_at);
			continue;
		}
		check_entry(&c, &e, from);
		FUZZ_CHECK(e.archive >= archive, "archive %u after %u", e.archive, archive);
		archive = e.archive;
		if (entries++ < 4)
			check_find(data, size, e.name);
	}
	FUZZ_CHECK(c.at == size && cpio_next(&c, &e) == 0, "the end is not the end");
	check_find(data, size, "boot/loader.conf");
	return 0;
}
