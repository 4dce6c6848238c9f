/* file.c - a workload on files. */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "userland/bin/load/load.h"

#define BLOCK  4096u
#define BLOCKS 4u

/* Writes or reads one block. False: a message was printed. */
static bool
move_block(int fd, bool in, uint8_t *block, uint64_t seed, const char *path)
{
	ssize_t n;

	if (!in)
		load_fill(block, BLOCK, seed);
	n = in ? read(fd, block, BLOCK) : write(fd, block, BLOCK);
	if (n < 0)
		warn("%s", path);
	else if (n != BLOCK)
		warnx("%s: %zd bytes were moved, expected %u", path, n, BLOCK);
	return n == BLOCK && (!in || load_check(block, BLOCK, seed));
}

/* Closes the file. */
static bool
pass(int fd, const char *path, bool in, uint64_t seed)
{
	uint8_t block[BLOCK];
	bool ok = fd >= 0;

	if (!ok)
		warn("%s", path);
	for (uint64_t i = 0; ok && i < BLOCKS; i++)
		ok = move_block(fd, in, block, seed + i, path);
	if (fd >= 0)
		close(fd);
	return ok;
}

bool
load_file(uint64_t job, uint64_t n, void *arg)
{
	bool ok = true;

	for (uint64_t i = 0; ok && i < n; i++) {
		char path[] = "/tmp/load.XXXXXX";
		int fd = mkstemp(path);

		if (fd < 0) {
			warn("%s", path);
			return false;
		}
		ok = pass(fd, path, false, job + i) &&
		     pass(open(path, O_RDONLY), path, true, job + i);
		if (unlink(path) < 0) {
			warn("%s", path);
			ok = false;
		}
	}
	return ok;
}
