/*
 * cpio.c - reader of cpio archives in the "newc" format.
 * Invariant: at <= size, no byte at or after size is read, and every call but the last advances
 * `at`.
 * Locking: none.
 */
#include "kernel/fs/cpio.h"

#include "kernel/lib/string.h"

#define HEADER_SIZE 110
#define MAGIC       "070701"
#define MAGIC_CRC   "070702" /* as MAGIC, with checksums of the data, which are not checked */
#define MAGIC_SIZE  6
#define NAME_LIMIT  1024
#define MODE_TYPE   0170000 /* S_IFMT and S_IFREG of the format, not of the kernel */
#define MODE_FILE   0100000
#define TRAILER     "TRAILER!!!"

/* Fields of eight hexadecimal digits, after the magic. */
enum {
	F_INO,
	F_MODE,
	F_UID,
	F_GID,
	F_NLINK,
	F_MTIME,
	F_FILESIZE,
	F_DEVMAJOR,
	F_DEVMINOR,
	F_RDEVMAJOR,
	F_RDEVMINOR,
	F_NAMESIZE,
	F_CHECK,
	F_COUNT
};

_Static_assert(MAGIC_SIZE + F_COUNT * 8 == HEADER_SIZE, "cpio(5), New ASCII Format");

void
cpio_init(struct cpio *c, const void *data, size_t size)
{
	*c = (struct cpio){.bytes = data, .size = size};
}

static int
cpio_note_damage(struct cpio *c, size_t at, const char *expected)
{
	c->error_at = at;
	c->expected = expected;
	return -1;
}

static bool
is_magic(const struct cpio *c, size_t at)
{
	return c->size - at >= MAGIC_SIZE && (memcmp(c->bytes + at, MAGIC, MAGIC_SIZE) == 0 ||
					      memcmp(c->bytes + at, MAGIC_CRC, MAGIC_SIZE) == 0);
}

/* Moves to the next magic after `at`, or to the end. */
static void
cpio_resync(struct cpio *c)
{
	for (c->at++; c->at < c->size && !is_magic(c, c->at); c->at++)
		;
}

static bool
hex_field(const unsigned char *p, uint32_t *v)
{
	*v = 0;
	for (unsigned i = 0; i < 8; i++) {
		unsigned char ch = p[i];
		unsigned digit;

		if (ch >= '0' && ch <= '9')
			digit = ch - '0';
		else if ((ch | 32) >= 'a' && (ch | 32) <= 'f')
			digit = (ch | 32) - 'a' + 10u;
		else
			return false;
		*v = *v << 4 | digit;
	}
	return true;
}

static size_t
cpio_align(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static const char *
plain_name(const char *name)
{
	for (;;) {
		if (name[0] == '/')
			name++;
		else if (name[0] == '.' && name[1] == '/')
			name += 2;
		else if (name[0] == '.' && name[1] == '\0')
			name++;
		else
			return name;
	}
}

/*
 * Reads the header at c->at with its name and data. If it is sound, returns 1 and moves `at` after
 * it. Otherwise returns -1.
 */
static int
take_entry(struct cpio *c, struct cpio_entry *e)
{
	const unsigned char *h = c->bytes + c->at;
	size_t left = c->size - c->at, data_at;
	uint32_t f[F_COUNT];

	if (!is_magic(c, c->at))
		return cpio_note_damage(c, c->at, "a header that begins with 070701");
	if (left < HEADER_SIZE)
		return cpio_note_damage(c, c->at, "a header of 110 bytes, but the archive ends");
	for (unsigned i = 0; i < F_COUNT; i++)
		if (!hex_field(h + MAGIC_SIZE + i * 8, &f[i]))
			return cpio_note_damage(c, c->at + MAGIC_SIZE + i * 8,
						"8 hexadecimal digits");
	if (f[F_NAMESIZE] == 0 || f[F_NAMESIZE] > NAME_LIMIT)
		return cpio_note_damage(c, c->at, "a name of 1 to 1023 characters");
	if (f[F_NAMESIZE] > left - HEADER_SIZE)
		return cpio_note_damage(c, c->at, "a whole name, but the archive ends");
	if (strnlen((const char *)h + HEADER_SIZE, f[F_NAMESIZE]) != f[F_NAMESIZE] - 1)
		return cpio_note_damage(c, c->at + HEADER_SIZE, "a name that ends with NUL");
	data_at = cpio_align(HEADER_SIZE + f[F_NAMESIZE]);
	if (f[F_FILESIZE] > 0 && (data_at > left || f[F_FILESIZE] > left - data_at))
		return cpio_note_damage(c, c->at, "the whole file, but the archive ends");
	*e = (struct cpio_entry){
	    .name = plain_name((const char *)h + HEADER_SIZE),
	    .data = h + data_at,
	    .size = f[F_FILESIZE],
	    .ino = f[F_INO],
	    .mode = f[F_MODE],
	    .uid = f[F_UID],
	    .gid = f[F_GID],
	    .nlink = f[F_NLINK],
	    .archive = c->archive,
	};
	data_at = cpio_align(data_at + f[F_FILESIZE]);
	c->at += data_at < left ? data_at : left;
	return 1;
}

int
cpio_next(struct cpio *c, struct cpio_entry *e)
{
	for (;;) {
		int got;

		while (c->at < c->size && c->bytes[c->at] == 0)
			c->at++;
		if (c->at == c->size)
			return 0;
		got = take_entry(c, e);
		if (got < 0)
			cpio_resync(c);
		if (got < 0 || strcmp(e->name, TRAILER) != 0)
			return got;
		c->archive++;
	}
}

bool
cpio_find(const void *data, size_t size, const char *name, const char **file, size_t *file_size)
{
	struct cpio_entry e;
	struct cpio c;
	bool found = false;
	int got;

	cpio_init(&c, data, size);
	while ((got = cpio_next(&c, &e)) != 0)
		if (got > 0 && (e.mode & MODE_TYPE) == MODE_FILE && strcmp(e.name, name) == 0) {
			*file = e.data;
			*file_size = e.size;
			found = true;
		}
	return found;
}
