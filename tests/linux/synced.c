/* synced.c - programs that write files of a disk for ever, until the machine is reset
 * (tests/attack/torture). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define NAMES 40
#define WORD  16 /* bytes of contents that say which file, and where in it */
#define SYNCED_MAX \
	70000u /* of a file that is synced: with a block of pointers, for blocks of 1 KiB */
#define SCRIBBLE  200000u
#define SCRIBBLES 2000
#define STEP      1000003u

/* Writes the file, so that it is there after fsync(). */
static int
write_synced(const char *name, const char *buf, size_t n)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	bool good = fd >= 0 && write(fd, buf, n) == (ssize_t)n && fsync(fd) == 0;

	return good && close(fd) == 0 ? 0 : 1;
}

static int
sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY);

	return fd >= 0 && fsync(fd) == 0 && close(fd) == 0 ? 0 : 1;
}

/*
 * Prints "B NAME" before a file is written or replaced, and "S NAME SIZE SEED" when it is synced.
 * Every third is written in place, the others take the place of the old one.
 */
int
synced_write(const char *dir, unsigned id)
{
	static char buf[SYNCED_MAX + WORD];
	char name[64], new[64];

	for (unsigned i = 0;; i++) {
		unsigned seed = id * STEP + i * 7919;
		size_t n = 1 + seed % SYNCED_MAX;

		for (unsigned k = 0; k <= n / WORD; k++)
			snprintf(buf + (size_t)k * WORD, WORD + 1, "%08x%08x", seed, k);
		snprintf(name, sizeof(name), "%s/f%u", dir, i % NAMES);
		snprintf(new, sizeof(new), "%s/new%u", dir, i % NAMES);
		printf("B %s\n", name);
		fflush(stdout);
		if (write_synced(i % 3 == 0 ? name : new, buf, n) != 0 ||
		    (i % 3 != 0 && rename(new, name) != 0) || sync_dir(dir) != 0) {
			printf("ERROR %s: %s\n", name, strerror(errno));
			return 1;
		}
		printf("S %s %zu %08x\n", name, n, seed);
		fflush(stdout);
	}
}

/* Writes, cuts, maps and reads a file as fsx does; what it reads must be what it has written. */
int
synced_scribble(const char *path, unsigned seed)
{
	static char model[SCRIBBLE], got[SCRIBBLE];
	size_t size = 0;
	int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);

	srandom(seed);
	for (unsigned i = 0; i < SCRIBBLES; i++) {
		size_t at = (size_t)random() % SCRIBBLE, n = 1 + (size_t)random() % 20000;
		bool good = true;
		char *map;

		n = n < SCRIBBLE - at ? n : SCRIBBLE - at;
		switch (random() % 4) {
		case 0:
			size = at < size || random() % 2 == 0 ? at : size;
			memset(model + size, 0, SCRIBBLE - size);
			good = ftruncate(fd, (off_t)size) == 0;
			break;
		case 1:
			memset(model + at, (int)i, n);
			size = at + n > size ? at + n : size;
			good = pwrite(fd, model + at, n, (off_t)at) == (ssize_t)n;
			break;
		case 2:
			map = size > 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
				       : NULL;
			if (map == NULL || at >= size)
				break;
			n = n < size - at ? n : size - at;
			memset(model + at, (int)i, n);
			memset(map + at, (int)i, n);
			good = munmap(map, size) == 0;
			break;
		default:
			good = pread(fd, got, SCRIBBLE, 0) == (ssize_t)size &&
			       memcmp(got, model, size) == 0;
		}
		if (!good) {
			printf("ERROR %s: step %u of seed %u: %s\n", path, i, seed,
			       strerror(errno));
			return 1;
		}
	}
	close(fd);
	return unlink(path) != 0;
}
