/* devs.c - /dev/fd and its like, /dev/shm, scripts whose interpreter is a script. The same on
 * Linux.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define TMPFS 0x01021994

static bool
is_link(const char *path, const char *to)
{
	char text[64] = "";

	return readlink(path, text, sizeof(text) - 1) == (ssize_t)strlen(to) &&
	       strcmp(text, to) == 0;
}

static bool
descriptors_open(void)
{
	char name[32], c;
	int end[2], fd;
	bool good = is_link("/dev/fd", "/proc/self/fd") &&
		    is_link("/dev/stdin", "/proc/self/fd/0") &&
		    is_link("/dev/stdout", "/proc/self/fd/1") &&
		    is_link("/dev/stderr", "/proc/self/fd/2") && pipe(end) == 0;

	/* One more file of the pipe, for either end. */
	snprintf(name, sizeof(name), "/dev/fd/%d", end[0]);
	fd = open(name, O_WRONLY);
	good = good && fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0 &&
	       read(end[0], &c, 1) == 1 && c == 'x';
	fd = open(name, O_RDONLY | O_NONBLOCK);
	good = good && fd >= 0 && FAILS(read(fd, &c, 1), EAGAIN) && close(end[1]) == 0 &&
	       read(fd, &c, 1) == 0;
	close(fd);
	close(end[0]);
	return good && FAILS(open(name, O_RDONLY), ENOENT);
}

/* A semaphore that has a name wakes another process. */
static int
posts(void *arg)
{
	sem_t *s = sem_open("/linux_test", 0);

	return s != SEM_FAILED && sem_post(s) == 0 ? 0 : 1;
}

static bool
memory_is_shared(void)
{
	struct statfs fs;
	struct stat st;
	sem_t *s;
	int fd;
	bool good = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS &&
		    stat("/dev/shm", &st) == 0 && st.st_mode == (S_IFDIR | S_ISVTX | 0777);

	shm_unlink("/linux_test");
	fd = shm_open("/linux_test", O_RDWR | O_CREAT | O_EXCL, 0600);
	good = good && fd >= 0 && ftruncate(fd, 8192) == 0 &&
	       access("/dev/shm/linux_test", F_OK) == 0 && shm_unlink("/linux_test") == 0;
	close(fd);
	sem_unlink("/linux_test");
	s = sem_open("/linux_test", O_CREAT | O_EXCL, 0600, 0);
	good = good && s != SEM_FAILED && in_child(posts, NULL) == 0 && sem_wait(s) == 0 &&
	       sem_unlink("/linux_test") == 0;
	return good;
}

static bool
write_script(unsigned n, const char *interpreter, const char *arg)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/linux_script%u", n);
	f = fopen(path, "w");
	if (f == NULL)
		return false;
	fprintf(f, "#!%s %s\n", interpreter, arg);
	return fclose(f) == 0 && chmod(path, 0700) == 0;
}

/* What a program prints that script n leads to; or the error of executing it. */
static int
run_script(unsigned n, char *out, size_t size)
{
	char path[32];
	int end[2], status;
	ssize_t got;
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/linux_script%u", n);
	if (pipe(end) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(end[1], 1);
		execl(path, "zero", "last", NULL);
		_exit(errno);
	}
	close(end[1]);
	got = read(end[0], out, size - 1);
	out[got > 0 ? got : 0] = '\0';
	close(end[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool
scripts_nest(void)
{
	char out[256];
	bool good = write_script(0, linux_test_path(), "words");

	for (unsigned i = 1; i < 6; i++) {
		char before[32], arg[8];

		snprintf(before, sizeof(before), "/tmp/linux_script%u", i - 1);
		snprintf(arg, sizeof(arg), "arg%u", i);
		good &= write_script(i, before, arg);
	}
	good = good && run_script(2, out, sizeof(out)) == 0 &&
	       strcmp(out, "/tmp/linux_script0 arg1 /tmp/linux_script1 arg2 /tmp/linux_script2 "
			   "last\n") == 0;
	good = good && run_script(4, out, sizeof(out)) == 0 &&
	       run_script(5, out, sizeof(out)) == ELOOP;
	for (unsigned i = 0; i < 6; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/tmp/linux_script%u", i);
		good &= unlink(path) == 0;
	}
	return good;
}

/* Where a device's bytes are the same everywhere, an offset is taken, and is always 0. */
static bool
offsets_mean_nothing(void)
{
	static const char *const any[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					  "/dev/urandom"};
	char c[8] = "";
	bool good = true;

	for (unsigned i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		int fd = open(any[i], O_RDWR);

		good &= fd >= 0 && lseek(fd, 5, SEEK_SET) == 0 && lseek(fd, 0, SEEK_END) == 0 &&
			pread(fd, c, 4, 1000) == (i == 0 ? 0 : 4) && lseek(fd, 0, SEEK_CUR) == 0 &&
			FAILS(lseek(fd, 0, 99), EINVAL) &&
			(i == 2 ? FAILS(pwrite(fd, c, 4, 7), ENOSPC) : pwrite(fd, c, 4, 7) == 4) &&
			FAILS(pread(fd, c, 4, -1), EINVAL);
		close(fd);
	}
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	good &=
	    fd >= 0 && FAILS(lseek(fd, 0, SEEK_SET), ESPIPE) && FAILS(pread(fd, c, 4, 0), ESPIPE);
	close(fd);
	/* one more node of the device */
	if (mknod("/tmp/linux_zero", S_IFCHR | 0600, makedev(1, 5)) == 0) {
		fd = open("/tmp/linux_zero", O_RDWR);
		good &= fd < 0 || (pread(fd, c, 4, 1 << 20) == 4 && lseek(fd, 3, SEEK_SET) == 0);
		close(fd);
		unlink("/tmp/linux_zero");
	}
	return good;
}

/* A read whose second piece is not mapped says how much it moved, and the next one goes on there.
 */
static bool
the_log_is_read_in_pieces(void)
{
	static char whole[1 << 16], pieces[1 << 16];
	struct iovec v[2] = {{pieces, 100}, {NOWHERE, 100}};
	int a = open("/dev/ktr", O_RDONLY), b = open("/dev/ktr", O_RDONLY);
	ssize_t n = read(a, whole, 1000), m;

	if (access("/dev/ktr", F_OK) != 0)
		return true;
	m = readv(b, v, 2);
	while (m > 0 && m < n) {
		ssize_t more = read(b, pieces + m, (size_t)(n - m));

		m = more > 0 ? m + more : -1;
	}
	close(a);
	close(b);
	return n > 200 && m == n && memcmp(whole, pieces, (size_t)n) == 0;
}

void
test_devs(void)
{
	result(descriptors_open(), "/dev/fd, stdin, stdout and stderr lead to a process's files");
	result(memory_is_shared(), "/dev/shm has memory and semaphores with names");
	result(offsets_mean_nothing(), "/dev/null, zero, full and random are read at any offset");
	result(the_log_is_read_in_pieces(), "/dev/ktr loses nothing if a page is missing");
	result(scripts_nest(), "a script's interpreter may be a script, five deep");
}
