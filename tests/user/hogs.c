/*
 * hogs.c - programs that take all they can get of one resource: names, memory, processes, ...
 *
 * Names are under /tmp/hog, for the one who cleans up. Where taking all gets a process killed
 * (memory), a child takes and its parent reports.
 */
#include "tests/user/hogs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

static _Noreturn void
stay(void)
{
	for (;;)
		sleep(1000);
}

/* Files with the longest names possible. */
static unsigned
take_names(void)
{
	char name[200];
	unsigned n = 0;

	for (;; n++) {
		int fd;

		snprintf(name, sizeof(name), "/tmp/hog/%0180u", n);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			return n;
		close(fd);
	}
}

/* Nested directories. */
static unsigned
take_depth(void)
{
	unsigned n = 0;

	if (chdir("/tmp/hog") < 0)
		return 0;
	while (mkdir("d", 0700) == 0 && chdir("d") == 0)
		n++;
	return n;
}

/* Removes them from the innermost: rm -r names each directory by its whole path, which is too long.
 */
int
hog_leave_depth(void)
{
	if (chdir("/tmp/hog") < 0)
		return 1;
	while (chdir("d") == 0)
		;
	while (chdir("..") == 0 && rmdir("d") == 0)
		;
	return errno != ENOENT;
}

static unsigned
take_file(void)
{
	static char block[65536];
	int fd = open("/tmp/hog/file", O_WRONLY | O_CREAT, 0600);
	unsigned n = 0;

	while (write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		n++;
	return n;
}

/* Sparse files: the array of page pointers is much larger than the contents. */
static unsigned
take_holes(void)
{
	char name[64];

	for (unsigned n = 0;; n++) {
		int fd;

		snprintf(name, sizeof(name), "/tmp/hog/%u", n);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0 || lseek(fd, 1000 * (off_t)MIB, SEEK_SET) < 0 || write(fd, "x", 1) != 1)
			return n;
		close(fd);
	}
}

/* Writes to one byte in every `step` bytes until it is killed. */
static void
touch(size_t step)
{
	for (;;) {
		char *p = mmap(NULL, 64 * step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			_exit(errno);
		for (size_t at = 0; at < 64 * step; at += step)
			p[at] = 1;
	}
}

/* Returns the signal that ended a child that touches memory; errno is its exit status. */
static unsigned
child_touches(void (*how)(size_t step), size_t step)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		how(step);
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return (unsigned)WTERMSIG(status);
}

/* Maps a file that has no pages yet. */
static void
touch_file(size_t step)
{
	int fd = open("/tmp/hog/mapped", O_RDWR | O_CREAT, 0600);
	char *p = ftruncate(fd, 64 * MIB) == 0
		      ? mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		      : MAP_FAILED;

	if (p == MAP_FAILED)
		_exit(errno);
	for (size_t at = 0; at < 64 * MIB; at += step)
		p[at] = 1;
	_exit(0);
}

static unsigned
take_mapped(void)
{
	return child_touches(touch_file, 4096);
}

static unsigned
take_memory(void)
{
	return child_touches(touch, 4096);
}

static unsigned
take_tables(void)
{
	return child_touches(touch, 2 * MIB);
}

/* Areas that cannot be merged. */
static unsigned
take_maps(void)
{
	unsigned n = 0;

	while (mmap(NULL, 4096, n % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		n++;
	return n;
}

/* As many children as possible, which call `more` and stay. */
static unsigned
take_children(void (*more)(void))
{
	unsigned n = 0;

	for (;; n++) {
		pid_t pid = fork();

		if (pid < 0)
			return n;
		if (pid == 0) {
			more();
			stay();
		}
	}
}

static void
nothing(void)
{
}

static unsigned
take_processes(void)
{
	return take_children(nothing);
}

static void
leave(void)
{
	_exit(0);
}

static unsigned
take_zombies(void)
{
	return take_children(leave);
}

static void
open_pipes(void)
{
	int fds[2];

	while (pipe(fds) == 0)
		if (write(fds[1], "x", 1) != 1)
			return;
}

static unsigned
take_pipes(void)
{
	return take_children(open_pipes);
}

/* Sockets whose queues are full. */
static void
open_sockets(void)
{
	static char bytes[4096];
	int fds[2];

	while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0)
		for (unsigned i = 0; i < 2; i++)
			while (write(fds[i], bytes, sizeof(bytes)) > 0)
				;
}

static unsigned
take_sockets(void)
{
	return take_children(open_sockets);
}

/* Sockets that are in each other's queue: messages hold them when the processes have ended. */
static void
send_sockets(void)
{
	char control[CMSG_SPACE(2 * sizeof(int))] = {0}, byte = 'x';
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fds[2];

	while (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0) {
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fds)),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
		sendmsg(fds[0], &m, MSG_DONTWAIT);
		sendmsg(fds[1], &m, MSG_DONTWAIT);
	}
}

static unsigned
take_flight(void)
{
	return take_children(send_sockets);
}

static void *
thread_stays(void *arg)
{
	stay();
}

/* Threads of one process. */
static unsigned
take_threads(void)
{
	pthread_t t;
	unsigned n = 0;

	while ((errno = pthread_create(&t, NULL, thread_stays, NULL)) == 0)
		n++;
	return n;
}

static void
make_threads(void)
{
	take_threads();
}

/* Processes of as many threads as each can get. */
static unsigned
take_all_threads(void)
{
	return take_children(make_threads);
}

static void *
thread_touches(void *arg)
{
	touch((size_t)(uintptr_t)arg);
	return NULL;
}

/* Memory, by several threads of a process at once. */
static void
touch_in_threads(size_t step)
{
	pthread_t t;

	for (unsigned i = 0; i < 7; i++)
		pthread_create(&t, NULL, thread_touches, (void *)(uintptr_t)step);
	touch(step);
}

static unsigned
take_by_threads(void)
{
	return child_touches(touch_in_threads, 4096);
}

int
hog_main(const char *what)
{
	static const struct {
		const char *name;
		unsigned (*take)(void);
	} hogs[] = {{"names", take_names},
		    {"depth", take_depth},
		    {"file", take_file},
		    {"holes", take_holes},
		    {"mapped", take_mapped},
		    {"memory", take_memory},
		    {"tables", take_tables},
		    {"maps", take_maps},
		    {"pipes", take_pipes},
		    {"sockets", take_sockets},
		    {"flight", take_flight},
		    {"processes", take_processes},
		    {"zombies", take_zombies},
		    {"threads", take_threads},
		    {"threads_of_processes", take_all_threads},
		    {"memory_of_threads", take_by_threads}};

	for (unsigned i = 0; i < sizeof(hogs) / sizeof(hogs[0]); i++) {
		unsigned n;

		if (strcmp(what, hogs[i].name) != 0)
			continue;
		mkdir("/tmp/hog", 0755);
		n = hogs[i].take();
		printf("full: %s %u errno %d\n", what, n, errno);
		fflush(stdout);
		stay();
	}
	return 2;
}
