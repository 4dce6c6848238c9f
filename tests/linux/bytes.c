/* bytes.c - which bytes of a file a call moves, and what it changes if it moves none. The same on
 * Linux (word "bytes"). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define NAME  "/tmp/linux_test.bytes"
#define PAGE  4096
#define SIZE  (8 << 20)
#define TIMES 20

/* The end of a page, after which nothing is mapped; NULL. */
static char *
end_of_memory(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && munmap(p + 2 * PAGE, PAGE) == 0 ? p + 2 * PAGE : NULL;
}

/* All bytes of `p` are c. */
static bool
all_are(const char *p, size_t n, char c)
{
	while (n > 0 && p[n - 1] == c)
		n--;
	return n == 0;
}

/* Of memory that ends, what is there moves, to a file and from it; and nothing else is left. */
static bool
memory_ends(void)
{
	static char found[5 * PAGE];
	char *end = end_of_memory();
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct iovec v[2] = {{end - PAGE - 5, 5}, {end - 2 * PAGE + 1, 3 * PAGE}};
	struct stat st;
	bool good = end != NULL && fd >= 0;

	if (!good)
		return false;
	memset(end - 2 * PAGE, 'x', 2 * PAGE);
	/* nothing, far after the end; newer versions of Linux have made ext4's file larger then */
	good = FAILS(pwrite(fd, end, 10, 2 * PAGE), EFAULT) && fstat(fd, &st) == 0 &&
	       st.st_size <= 2 * PAGE;
	good = good && pwrite(fd, end - 3096, PAGE, 2 * PAGE) == 3096 && fstat(fd, &st) == 0 &&
	       st.st_size == 2 * PAGE + 3096 && ftruncate(fd, 4 * PAGE) == 0 &&
	       pread(fd, found, sizeof(found), 0) == 4 * PAGE && all_are(found, 2 * PAGE, 0) &&
	       all_are(found + 2 * PAGE, 3096, 'x') &&
	       all_are(found + 2 * PAGE + 3096, 2 * PAGE - 3096, 0);
	/* from the middle of a page, in pieces, over several pages */
	good = good && ftruncate(fd, 0) == 0 && pwritev(fd, v, 2, 100) == 2 * PAGE + 4 &&
	       pread(fd, found, sizeof(found), 0) == 2 * PAGE + 104 && all_are(found, 100, 0) &&
	       all_are(found + 100, 2 * PAGE + 4, 'x');
	good = good && pread(fd, end - 10, PAGE, 100) == 10 && pread(fd, end - 10, 20, 0) == 10 &&
	       all_are(end - 10, 10, 0) && FAILS(pread(fd, end, 1, 0), EFAULT);
	/* from a hole */
	good = good && ftruncate(fd, 0) == 0 && ftruncate(fd, 4 * PAGE) == 0 &&
	       pread(fd, end - 700, 2000, 50) == 700 && all_are(end - 700, 700, 0);
	munmap(end - 2 * PAGE, 2 * PAGE);
	return close(fd) == 0 && good;
}

/* Into a pipe goes all that would go there together, or nothing, and nothing is lost of it. */
static bool
pipes_take_all_or_nothing(void)
{
	char *end = end_of_memory(), text[64];
	int ends[2];
	bool good = end != NULL && pipe2(ends, O_NONBLOCK) == 0;

	if (!good)
		return false;
	good = FAILS(write(ends[1], end - 10, 20), EFAULT) &&
	       FAILS(read(ends[0], text, sizeof(text)), EAGAIN) &&
	       write(ends[1], "0123456789", 10) == 10 &&
	       FAILS(read(ends[0], end - 5, 10), EFAULT) &&
	       read(ends[0], text, sizeof(text)) == 10 && memcmp(text, "0123456789", 10) == 0;
	close(ends[0]);
	close(ends[1]);
	munmap(end - 2 * PAGE, 2 * PAGE);
	return good;
}

/* A signal that has a handler does not end a read or write of a file: all of it moves. */
static bool
signals_wait_for_files(void)
{
	char *p = malloc(SIZE);
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool good = p != NULL && fd >= 0;

	memset(p, 'x', SIZE);
	on_alarm(SA_RESTART);
	send_alarms(true);
	for (unsigned i = 0; good && (i < 2 || signals_seen < TIMES); i++)
		good = pwrite(fd, p, SIZE, 0) == SIZE && pread(fd, p, SIZE, 0) == SIZE;
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	free(p);
	return close(fd) == 0 && good;
}

static bool
is_as(const struct stat *old, mode_t mode)
{
	struct stat st;

	return stat(NAME, &st) == 0 && (st.st_mode & 07777) == mode &&
	       st.st_mtim.tv_sec == old->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
}

static int
changes_only_with_bytes(void *arg)
{
	const struct timespec old[2] = {{1000, 0}, {1000, 0}};
	const struct rlimit few = {1000, 1000};
	struct stat st;
	int fd, ends;

	signal(SIGXFSZ, SIG_IGN);
	if ((getuid() == 0 && (setgid(4711) != 0 || setuid(4711) != 0)) ||
	    setrlimit(RLIMIT_FSIZE, &few) != 0)
		return 1;
	umask(0);
	fd = open(NAME, O_RDWR | O_CREAT | O_EXCL, 0600);
	ends = open(NAME, O_WRONLY | O_APPEND);
	if (fd < 0 || ends < 0 || write(fd, "text", 4) != 4 || fchmod(fd, 06755) != 0 ||
	    futimens(fd, old) != 0 || stat(NAME, &st) != 0)
		return 2;
	/* no bytes, also from nowhere and to where no byte may be */
	if (write(fd, "x", 0) != 0 || pwrite(fd, "x", 0, 5000) != 0 || write(ends, "x", 0) != 0 ||
	    lseek(ends, 0, SEEK_CUR) != 0 || !is_as(&st, 06755))
		return 3;
	/* what the limit forbids */
	if (!FAILS(pwrite(fd, "x", 1, 1000), EFBIG) || !FAILS(ftruncate(fd, 1001), EFBIG) ||
	    !is_as(&st, 06755))
		return 4;
	/* what was begun */
	if (!FAILS(pwrite(fd, NOWHERE, 1, 0), EFAULT) || stat(NAME, &st) != 0 ||
	    (st.st_mode & 07777) != 0755 || st.st_mtim.tv_sec == 1000)
		return 5;
	if (fchmod(fd, 06755) != 0 || write(fd, "x", 1) != 1 || stat(NAME, &st) != 0 ||
	    (st.st_mode & 07777) != 0755)
		return 6;
	if (fchmod(fd, 06755) != 0 || futimens(fd, old) != 0 || ftruncate(fd, 2) != 0 ||
	    stat(NAME, &st) != 0 || (st.st_mode & 07777) != 0755 || st.st_mtim.tv_sec == 1000)
		return 7;
	close(ends);
	return close(fd) == 0 ? 0 : 8;
}

static bool
copies_regular_files(void)
{
	static const char *const other[] = {"/dev/zero", "/dev/null", "/dev/vda"};
	off_t off = 0;
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool good = write(fd, "text", 4) == 4;

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		int in = open(other[i], O_RDONLY);

		good &= in < 0 || (FAILS(copy_file_range(in, &off, fd, NULL, 512, 0), EINVAL) &&
				   FAILS(copy_file_range(in, NULL, fd, NULL, 512, 0), EINVAL));
		close(in);
	}
	int null = open("/dev/null", O_WRONLY);
	good &= FAILS(copy_file_range(fd, &off, null, NULL, 1, 0), EINVAL);
	close(null);
	return close(fd) == 0 && good;
}

/* Within one file, a copy ends where the file does before it. */
static bool
copies_within_a_file(void)
{
	off_t from = 0, to = 10, begin = 0, middle = 5;
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char found[32] = "";
	bool good = write(fd, "0123456789", 10) == 10 &&
		    copy_file_range(fd, &from, fd, &to, SIZE, 0) == 10 && from == 10 && to == 20 &&
		    pread(fd, found, sizeof(found), 0) == 20 &&
		    memcmp(found, "01234567890123456789", 20) == 0;

	good = good && FAILS(copy_file_range(fd, &begin, fd, &middle, SIZE, 0), EINVAL) &&
	       FAILS(copy_file_range(fd, &middle, fd, &begin, 6, 0), EINVAL) &&
	       copy_file_range(fd, &to, fd, &begin, 1, 0) == 0;
	return close(fd) == 0 && good;
}

/* Returns when the process waits, for whatever, or has ended. */
static void
await_rest(pid_t pid)
{
	while (state_of(pid, 0) == 'R')
		sched_yield();
}

static bool
fill(int s)
{
	static char much[4096];

	for (size_t n = sizeof(much); n > 0; n = n > 1 ? 1 : 0)
		while (send(s, much, n, MSG_DONTWAIT) > 0)
			;
	return errno == EAGAIN;
}

/*
 * A splice() of so many of 8 bytes of a pipe waits for room in a socket, and is killed. Who reads
 * meanwhile gets all 8, in their order, and not the end.
 */
static bool
spliced_bytes_come_back(size_t n)
{
	int p[2], s[2], status = -1;
	char found[8];
	bool good = pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && fill(s[0]) &&
		    write(p[1], "abcdefgh", 8) == 8 && close(p[1]) == 0;
	pid_t splicer, reader;

	splicer = good ? fork() : -1;
	if (splicer == 0)
		_exit(splice(p[0], NULL, s[0], NULL, n, 0) < 0);
	good = good && await_sleep(splicer, 0);
	reader = good ? fork() : -1;
	if (reader == 0)
		_exit(read(p[0], found, 8) != 8 || memcmp(found, "abcdefgh", 8) != 0);
	if (good)
		await_rest(reader);
	good = good && kill(splicer, SIGKILL) == 0 && waitpid(splicer, &status, 0) == splicer &&
	       WIFSIGNALED(status) && waitpid(reader, &status, 0) == reader && status == 0;
	close(p[0]);
	return (close(s[0]) == 0) & (close(s[1]) == 0) & good;
}

void
test_bytes(void)
{
	unlink(NAME);
	result(memory_ends(), "a read or write of a file moves what of the memory is there");
	result(pipes_take_all_or_nothing(), "a pipe neither takes nor loses a part of what faults");
	result(signals_wait_for_files(), "a signal does not cut short the read or write of a file");
	unlink(NAME);
	result(in_child(changes_only_with_bytes, NULL) == 0,
	       "a write of nothing changes neither time nor set-id bits");
	result(copies_regular_files(), "copy_file_range copies between regular files only");
	result(copies_within_a_file(), "copy_file_range within a file ends at its end");
	result(spliced_bytes_come_back(4), "a pipe's bytes stay in order while some are spliced");
	result(spliced_bytes_come_back(8), "a pipe has no end while its bytes are spliced");
	unlink(NAME);
}
