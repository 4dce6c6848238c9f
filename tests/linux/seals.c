/*
 * seals.c - what room files in memory have, and what nobody may do to them: blocks, holes, seals,
 * pipes of another size. The same on Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096l

static long
blocks_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (long)st.st_blocks : -1;
}

static off_t
size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_size : -1;
}

/* ---- blocks ---- */

static bool
blocks_are_pages(void)
{
	int fd = memfd_create("blocks", 0);
	bool good = blocks_of(fd) == 0 && ftruncate(fd, 1024 * PAGE) == 0 && blocks_of(fd) == 0 &&
		    pwrite(fd, "x", 1, 512 * PAGE) == 1 && blocks_of(fd) == 8 &&
		    pwrite(fd, "x", 1, 10) == 1 && blocks_of(fd) == 16 &&
		    posix_fallocate(fd, 0, 4 * PAGE) == 0 && blocks_of(fd) == 40 &&
		    ftruncate(fd, PAGE) == 0 && blocks_of(fd) == 8;

	close(fd);
	return good;
}

static bool
room_is_kept(void)
{
	int fd = memfd_create("room", 0);
	char byte = 1;
	bool good = pwrite(fd, "abc", 3, 0) == 3 &&
		    fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * PAGE) == 0 && size_of(fd) == 3 &&
		    blocks_of(fd) == 64 && pread(fd, &byte, 1, 3) == 0 &&
		    pwrite(fd, "d", 1, 2 * PAGE) == 1 && blocks_of(fd) == 64 &&
		    pread(fd, &byte, 1, PAGE) == 1 && byte == 0 && ftruncate(fd, 0) == 0 &&
		    blocks_of(fd) == 0;

	close(fd);
	return good;
}

static bool
room_outlives_errors(void)
{
	int fd = memfd_create("errors", MFD_ALLOW_SEALING);
	char byte = 1;
	bool good = pwrite(fd, "abc", 3, 0) == 3 &&
		    fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * PAGE) == 0 &&
		    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 &&
		    FAILS(pwrite(fd, "x", 1, 5 * PAGE), EPERM) && blocks_of(fd) == 64 &&
		    FAILS(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 16 * PAGE), EPERM) &&
		    blocks_of(fd) == 64 && pread(fd, &byte, 1, 3) == 0;

	close(fd);
	fd = memfd_create("errors", 0);
	good = good && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * PAGE) == 0 &&
	       FAILS(pwrite(fd, NOWHERE, 10, 4 * PAGE), EFAULT) && blocks_of(fd) == 64 &&
	       ftruncate(fd, 8 * PAGE) == 0 && pread(fd, &byte, 1, 4 * PAGE) == 1 && byte == 0;
	close(fd);
	return good;
}

/* In a tmpfs of 16 pages. */
static int
room_is_all_or_nothing(void *arg)
{
	const int keep = FALLOC_FL_KEEP_SIZE;
	char folder[] = "/tmp/seals.XXXXXX", path[64];
	int r = 1, fd;

	if (mkdtemp(folder) == NULL || mount("none", folder, "tmpfs", 0, "size=64k") != 0)
		return rmdir(folder) == 0 ? 0 : 1;
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd >= 0 && write(fd, "abc", 3) == 3 && fallocate(fd, keep, 4 * PAGE, 4 * PAGE) == 0 &&
	    blocks_of(fd) == 40 && FAILS(fallocate(fd, keep, 0, 32 * PAGE), ENOSPC) &&
	    blocks_of(fd) == 40 && fallocate(fd, keep, 4 * PAGE, 12 * PAGE) == 0 &&
	    blocks_of(fd) == 104 && ftruncate(fd, 64 * PAGE) == 0 &&
	    FAILS(fallocate(fd, 0, 0, 64 * PAGE), ENOSPC) && blocks_of(fd) == 104)
		r = 0;
	close(fd);
	return umount(folder) != 0 || rmdir(folder) != 0 ? 2 : r;
}

/* ---- holes ---- */

static bool
holes_are_punched(void)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int fd = memfd_create("holes", 0);
	char *page = malloc((size_t)PAGE), *shared, *private, *code;
	bool good = true;

	memset(page, 'x', (size_t)PAGE);
	for (int i = 0; i < 8; i++)
		good = good && write(fd, page, (size_t)PAGE) == PAGE;
	shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	private = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	code = mmap(NULL, 8 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	private[3 * PAGE] = 'p';
	good = good && shared[3 * PAGE] == 'x' && private[2 * PAGE] == 'x' &&
	       private[PAGE] == 'x' && code != MAP_FAILED && code[2 * PAGE] == 'x' &&
	       fallocate(fd, punch, PAGE + 100, 4 * PAGE) == 0 && size_of(fd) == 8 * PAGE &&
	       blocks_of(fd) == 40;
	good = good && shared[PAGE + 99] == 'x' && shared[PAGE + 100] == 0 &&
	       shared[3 * PAGE] == 0 && shared[5 * PAGE + 99] == 0 &&
	       shared[5 * PAGE + 100] == 'x' && private[3 * PAGE] == 'p' &&
	       private[2 * PAGE] == 0 && private[PAGE] == 'x' && code[2 * PAGE] == 0;
	shared[3 * PAGE] = 'y'; /* the file has it */
	good = good && pread(fd, page, 1, 3 * PAGE) == 1 && page[0] == 'y' && blocks_of(fd) == 56;
	/* Inside one page, and beyond the end. */
	good = good && fallocate(fd, punch, 6 * PAGE + 10, 10) == 0 &&
	       shared[6 * PAGE + 9] == 'x' && shared[6 * PAGE + 10] == 0 &&
	       shared[6 * PAGE + 20] == 'x' && blocks_of(fd) == 56 &&
	       fallocate(fd, punch, 7 * PAGE, 1000 * PAGE) == 0 && size_of(fd) == 8 * PAGE &&
	       blocks_of(fd) == 48;
	good = good && FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE), EOPNOTSUPP) &&
	       FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE), EOPNOTSUPP) &&
	       FAILS(fallocate(fd, punch, 0, 0), EINVAL) &&
	       FAILS(fallocate(fd, punch, -1, 1), EINVAL);
	good = good && fallocate(fd, punch, PAGE, INT64_MAX - 2 * PAGE) == 0 &&
	       fallocate(fd, punch, INT64_MAX - PAGE, PAGE) == 0 && blocks_of(fd) == 8 &&
	       shared[0] == 'x' && shared[PAGE] == 0;
	munmap(shared, 8 * PAGE);
	munmap(private, 8 * PAGE);
	munmap(code, 8 * PAGE);
	free(page);
	close(fd);
	return good;
}

/* ---- seals ---- */

static int
sealed(const char *text, int seals)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);

	if (write(fd, text, strlen(text)) < 0 || fcntl(fd, F_ADD_SEALS, seals) != 0)
		return -1;
	return fd;
}

static bool
seals_are_told(void)
{
	int fd = memfd_create("free", MFD_ALLOW_SEALING), other = memfd_create("closed", 0),
	    ends[2];
	char path[64];
	int reader;
	bool good = fcntl(fd, F_GET_SEALS) == 0 && fcntl(other, F_GET_SEALS) == F_SEAL_SEAL &&
		    FAILS(fcntl(other, F_ADD_SEALS, F_SEAL_WRITE), EPERM) &&
		    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 &&
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0 &&
		    fcntl(fd, F_GET_SEALS) == (F_SEAL_GROW | F_SEAL_SHRINK) &&
		    FAILS(fcntl(fd, F_ADD_SEALS, 0x4000), EINVAL);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY);
	good = good && reader >= 0 && FAILS(fcntl(reader, F_ADD_SEALS, F_SEAL_WRITE), EPERM) &&
	       fcntl(reader, F_GET_SEALS) == (F_SEAL_GROW | F_SEAL_SHRINK) &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) == 0 &&
	       FAILS(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM) && pipe(ends) == 0 &&
	       FAILS(fcntl(ends[1], F_GET_SEALS), EINVAL);
	close(reader);
	close(fd);
	close(other);
	close(ends[0]);
	close(ends[1]);
	return good;
}

static bool
size_is_sealed(void)
{
	int grow = sealed("four", F_SEAL_GROW), shrink = sealed("four", F_SEAL_SHRINK);
	bool good = FAILS(pwrite(grow, "x", 1, 4), EPERM) && FAILS(ftruncate(grow, 5), EPERM) &&
		    FAILS(fallocate(grow, 0, 0, PAGE), EPERM) &&
		    FAILS(fallocate(grow, FALLOC_FL_KEEP_SIZE, 0, PAGE), EPERM) &&
		    pwrite(grow, "F", 1, 0) == 1 && ftruncate(grow, 4) == 0 &&
		    ftruncate(grow, 2) == 0 && size_of(grow) == 2;

	good = good && FAILS(ftruncate(shrink, 3), EPERM) && ftruncate(shrink, 4) == 0 &&
	       ftruncate(shrink, 10) == 0 && pwrite(shrink, "x", 1, 20) == 1 &&
	       size_of(shrink) == 21;
	close(grow);
	close(shrink);
	return good;
}

/* Of 2 pages and 100 bytes. */
static bool
sealed_end_cuts_writes(void)
{
	int fd = memfd_create("end", MFD_ALLOW_SEALING);
	char *bytes = calloc(3, (size_t)PAGE);
	bool good = pwrite(fd, bytes, 2 * PAGE + 100, 0) == 2 * PAGE + 100 &&
		    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 &&
		    pwrite(fd, bytes, 3 * PAGE, 10) == 2 * PAGE - 10 &&
		    pwrite(fd, bytes, 2 * PAGE, 100) == 2 * PAGE &&
		    FAILS(pwrite(fd, bytes, PAGE, 2 * PAGE), EPERM) &&
		    FAILS(pwrite(fd, bytes, 100, 2 * PAGE + 50), EPERM) &&
		    pwrite(fd, bytes, 100, 2 * PAGE) == 100 && size_of(fd) == 2 * PAGE + 100;

	free(bytes);
	close(fd);
	return good;
}

static bool
contents_are_sealed(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = memfd_create("contents", MFD_ALLOW_SEALING);
	char *map, byte;
	bool good;

	if (write(fd, "text", 4) != 4)
		return false;
	map = mmap(NULL, 4, rw, MAP_SHARED, fd, 0);
	good = map != MAP_FAILED && FAILS(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY) &&
	       fcntl(fd, F_GET_SEALS) == 0 && pwrite(fd, "T", 1, 0) == 1 && munmap(map, 4) == 0 &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0 && FAILS(pwrite(fd, "t", 1, 0), EPERM) &&
	       FAILS(pwrite(fd, "t", 1, 100), EPERM) && pwrite(fd, "t", 0, 0) == 0 &&
	       FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1), EPERM) &&
	       mmap(NULL, 4, rw, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM;
	map = good ? mmap(NULL, 4, rw, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	good = good && map != MAP_FAILED && map[0] == 'T';
	if (good)
		map[0] = 'x';
	good = good && pread(fd, &byte, 1, 0) == 1 && byte == 'T' && munmap(map, 4) == 0;
	close(fd);
	return good;
}

static bool
later_writes_are_sealed(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = memfd_create("later", MFD_ALLOW_SEALING);
	char *old, *map, byte = 0;
	bool good;

	if (write(fd, "text", 4) != 4)
		return false;
	old = mmap(NULL, 4, rw, MAP_SHARED, fd, 0);
	good = old != MAP_FAILED && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 &&
	       FAILS(pwrite(fd, "t", 1, 0), EPERM) &&
	       mmap(NULL, 4, rw, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM;
	if (good)
		old[0] = 'O'; /* what is mapped stays so */
	map = good ? mmap(NULL, 4, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	good = good && map != MAP_FAILED && map[0] == 'O' && FAILS(mprotect(map, 4, rw), EACCES) &&
	       pread(fd, &byte, 1, 0) == 1 && byte == 'O';
	close(fd);
	return good;
}

/* ---- pipes ---- */

static bool
pipes_have_another_size(void)
{
	char bytes[3000], back[3000];
	size_t written = 0, taken = 0;
	int ends[2];
	bool good = pipe2(ends, O_NONBLOCK) == 0 && fcntl(ends[0], F_GETPIPE_SZ) == 65536 &&
		    fcntl(ends[1], F_SETPIPE_SZ, 100000) == 131072 &&
		    fcntl(ends[0], F_GETPIPE_SZ) == 131072;

	/* What it has stays in order, also where it goes round the end. */
	for (unsigned round = 0; good && round < 50; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)((written + i) % 251);
		good = write(ends[1], bytes, sizeof(bytes)) == sizeof(bytes);
		written += sizeof(bytes);
		if (round < 30 && good) {
			good = read(ends[0], back, sizeof(back)) == sizeof(back);
			taken += sizeof(back);
		}
	}
	good = good && FAILS(fcntl(ends[1], F_SETPIPE_SZ, 4096), EBUSY) &&
	       fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20;
	while (good && taken < written) {
		ssize_t n = read(ends[0], back, sizeof(back));

		for (ssize_t i = 0; i < n; i++)
			good = good && back[i] == (char)((taken + (size_t)i) % 251);
		taken += n > 0 ? (size_t)n : 1;
	}
	good = good && fcntl(ends[0], F_SETPIPE_SZ, 1) == 4096 &&
	       fcntl(ends[0], F_GETPIPE_SZ) == 4096 &&
	       FAILS(fcntl(ends[0], F_SETPIPE_SZ, 0xffffffffu), EINVAL);
	close(ends[0]);
	close(ends[1]);
	return good;
}

/* Who waits for edges is not told of what has not changed. */
static bool
size_is_told_quietly(void)
{
	struct epoll_event e = {.events = EPOLLOUT | EPOLLET}, found;
	int ends[2], ep = epoll_create1(0);
	bool good = pipe(ends) == 0 && epoll_ctl(ep, EPOLL_CTL_ADD, ends[1], &e) == 0 &&
		    epoll_wait(ep, &found, 1, 0) == 1 && epoll_wait(ep, &found, 1, 0) == 0 &&
		    fcntl(ends[0], F_GETPIPE_SZ) == 65536 && epoll_wait(ep, &found, 1, 0) == 0;

	close(ends[0]);
	close(ends[1]);
	close(ep);
	return good;
}

static int
pipe_as_user(void *arg)
{
	int ends[2];

	if (setuid(65534) != 0 || pipe(ends) != 0)
		return 1;
	return fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) != 1 << 20 ||
	       !FAILS(fcntl(ends[0], F_SETPIPE_SZ, (1 << 20) + 1), EPERM);
}

void
test_seals(void)
{
	result(blocks_are_pages(), "st_blocks counts the pages that a file has");
	result(room_is_kept(), "fallocate with KEEP_SIZE makes room beyond the end");
	result(room_outlives_errors(), "which it keeps when a write, or fallocate, fails");
	result(geteuid() != 0 || in_child(room_is_all_or_nothing, NULL) == 0,
	       "fallocate that fails gives back what it took, and no more");
	result(holes_are_punched(), "and with PUNCH_HOLE a hole, for who maps the file, too");
	result(seals_are_told(), "a memfd has the seals that it was given, with MFD_ALLOW_SEALING");
	result(size_is_sealed(), "F_SEAL_GROW and F_SEAL_SHRINK keep its size");
	result(sealed_end_cuts_writes(), "a write beyond such an end writes the whole pages");
	result(contents_are_sealed(), "F_SEAL_WRITE keeps its contents, unless somebody maps it");
	result(later_writes_are_sealed(), "F_SEAL_FUTURE_WRITE leaves who maps it alone");
	result(pipes_have_another_size(), "F_SETPIPE_SZ changes what a pipe has room for");
	result(size_is_told_quietly(), "F_GETPIPE_SZ wakes nobody");
	result(geteuid() != 0 || in_child(pipe_as_user, NULL) == 0, "users get up to 1 MiB");
}
