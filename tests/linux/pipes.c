/* pipes.c - pipes that have little room, pipes of the trace, and files that are opened again by
 * /proc/self/fd. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define SIZE 65536

static char text[SIZE], found[SIZE];

/* Two pipes: one holds 100 bytes, the other one has room for 50 more. */
static bool
begin(int in[2], int out[2])
{
	for (unsigned i = 0; i < SIZE; i++)
		text[i] = (char)(i * 7 + i / 256);
	return pipe(in) == 0 && pipe(out) == 0 && write(in[1], text, 100) == 100 &&
	       write(out[1], text, SIZE - 50) == SIZE - 50;
}

static bool
end(const int in[2], const int out[2], bool good)
{
	for (unsigned i = 0; i < 2; i++)
		good &= close(in[i]) == 0 && close(out[i]) == 0;
	return good;
}

static bool
little_room(void)
{
	int in[2], out[2];
	bool good = begin(in, out);

	/* What fits goes, and the rest stays. */
	good = good && splice(in[0], NULL, out[1], NULL, 100, 0) == 50 &&
	       FAILS(splice(in[0], NULL, out[1], NULL, 100, SPLICE_F_NONBLOCK), EAGAIN) &&
	       read(out[0], found, SIZE) == SIZE && memcmp(found + SIZE - 50, text, 50) == 0 &&
	       splice(in[0], NULL, out[1], NULL, 100, SPLICE_F_NONBLOCK) == 50 &&
	       read(out[0], found, SIZE) == 50 && memcmp(found, text + 50, 50) == 0;
	good = end(in, out, good) && begin(in, out) &&
	       tee(in[0], out[1], 100, SPLICE_F_NONBLOCK) == 50 &&
	       FAILS(tee(in[0], out[1], 100, SPLICE_F_NONBLOCK), EAGAIN) &&
	       read(in[0], found, SIZE) == 100;
	/* O_NONBLOCK of either end counts. */
	good = good && write(in[1], text, 100) == 100 && fcntl(out[1], F_SETFL, O_NONBLOCK) == 0 &&
	       FAILS(splice(in[0], NULL, out[1], NULL, 100, 0), EAGAIN) &&
	       FAILS(tee(in[0], out[1], 100, 0), EAGAIN) && read(out[0], found, SIZE) == SIZE &&
	       splice(in[0], NULL, out[1], NULL, SIZE, 0) == 100 &&
	       fcntl(out[1], F_SETFL, 0) == 0 && fcntl(in[0], F_SETFL, O_NONBLOCK) == 0 &&
	       FAILS(splice(in[0], NULL, out[1], NULL, 100, 0), EAGAIN);
	return end(in, out, good);
}

/* A file's bytes go into as much room as there is, less than a page, and no further. */
static bool
file_into_little_room(void)
{
	int in[2], out[2], fd = open("/tmp/linux_pipes", O_RDWR | O_CREAT, 0600);
	bool good = begin(in, out) && write(fd, text, 9000) == 9000;
	off_t off = 10;

	good = good && splice(fd, &off, out[1], NULL, 9000, SPLICE_F_NONBLOCK) == 50 && off == 60 &&
	       read(out[0], found, SIZE) == SIZE && memcmp(found + SIZE - 50, text + 10, 50) == 0;
	good = good && splice(fd, &off, out[1], NULL, 9000, 0) == 8940 && off == 9000 &&
	       splice(fd, &off, out[1], NULL, 1, 0) == 0 && read(out[0], found, SIZE) == 8940 &&
	       memcmp(found, text + 60, 8940) == 0 && write(out[1], text, SIZE) == SIZE;
	close(fd);
	unlink("/tmp/linux_pipes");
	return end(in, out, good);
}

/* splice() keeps room for a page, and gives back what it has not filled: that is told. */
static bool
room_comes_back(void)
{
	int p[2], s[2], set = epoll_create1(0), status = -1;
	bool good = pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 &&
		    write(p[1], text, SIZE - 5000) == SIZE - 5000 &&
		    watch(set, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET, 0) == 0 &&
		    told(set) == EPOLLOUT && told(set) == 0;
	pid_t pid = good ? fork() : -1;

	if (pid == 0)
		_exit(splice(s[0], NULL, p[1], NULL, 4096, 0) != 10);
	good = good && await_sleep(pid, 0) && poll(&(struct pollfd){p[1], POLLOUT, 0}, 1, 0) == 0 &&
	       told(set) == 0 && write(s[1], text, 10) == 10 && waitpid(pid, &status, 0) == pid &&
	       status == 0 && told(set) == EPOLLOUT && told(set) == 0;
	close(set);
	return end(p, s, good);
}

/* An eventfd takes 8 bytes at a time: the others stay in the pipe, in their order. */
static bool
nothing_is_lost(void)
{
	uint64_t n[3] = {5, 6, 0x0807060504030201}, full[3] = {0};
	int in[2], out[2], event = eventfd(0, EFD_NONBLOCK);
	bool good = begin(in, out) && read(in[0], found, 100) == 100;

	good = good && write(in[1], n, sizeof(n)) == sizeof(n) &&
	       splice(in[0], NULL, event, NULL, sizeof(n), 0) == 8 &&
	       splice(in[0], NULL, event, NULL, 8, 0) == 8 && read(event, full, 8) == 8 &&
	       full[0] == 11;
	full[0] = UINT64_MAX - 1;
	good = good && write(event, full, 8) == 8 &&
	       FAILS(splice(in[0], NULL, event, NULL, 8, 0), EAGAIN) &&
	       read(in[0], full, sizeof(full)) == 8 && full[0] == n[2];
	/* All the room is there again. */
	good = good && write(in[1], text, SIZE) == SIZE && read(in[0], found, SIZE) == SIZE &&
	       memcmp(text, found, SIZE) == 0;
	close(event);
	return end(in, out, good);
}

static int
open_again(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static bool
both_ends_in_one(void)
{
	int ends[2];
	struct pollfd p;
	bool good = pipe(ends) == 0;

	p = (struct pollfd){open_again(ends[0], O_RDWR), POLLIN | POLLOUT, 0};
	good = good && p.fd >= 0 && close(ends[0]) == 0 && close(ends[1]) == 0 &&
	       write(p.fd, "kestrel", 7) == 7 && poll(&p, 1, 0) == 1 &&
	       p.revents == (POLLIN | POLLOUT) && read(p.fd, found, SIZE) == 7 &&
	       memcmp(found, "kestrel", 7) == 0 && poll(&p, 1, 0) == 1 && p.revents == POLLOUT &&
	       fcntl(p.fd, F_SETFL, O_NONBLOCK) == 0 && FAILS(read(p.fd, found, 1), EAGAIN);
	return close(p.fd) == 0 && good;
}

/* Files of the kernel that have no name, and one reader: they cannot be opened again. */
static bool
some_open_once(void)
{
	sigset_t none;
	int fds[4];
	bool good = true;

	sigemptyset(&none);
	fds[0] = eventfd(0, 0);
	fds[1] = timerfd_create(CLOCK_MONOTONIC, 0);
	fds[2] = epoll_create1(0);
	fds[3] = signalfd(-1, &none, 0);
	for (unsigned i = 0; i < 4; i++) {
		good &= FAILS(open_again(fds[i], O_RDONLY), ENXIO) &&
			FAILS(open_again(fds[i], O_RDWR), ENXIO) &&
			FAILS(open_again(fds[i], O_WRONLY | O_TRUNC), ENXIO);
		good &= close(fds[i]) == 0;
	}
	return good;
}

#define TRACING "/sys/kernel/tracing/instances/polled/"

static bool
is_ready(const struct pollfd *p, int wait_ms)
{
	struct pollfd one = *p;

	return poll(&one, 1, wait_ms) == 1 && one.revents == POLLIN;
}

static bool
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	return close(fd) == 0 && good;
}

/* Who does not wait for events is traced between one read() and the next. */
static bool
reader_is_traced(void)
{
	int lines = open(TRACING "trace_pipe", O_RDONLY | O_NONBLOCK);
	bool good = lines >= 0 && put(TRACING "events/syscalls/sys_enter_getppid/enable", "1");

	for (unsigned i = 0; i < 3 && good; i++) {
		ssize_t n = syscall(SYS_getppid) >= 0 ? read(lines, found, SIZE - 1) : -1;

		good = n > 0 && memmem(found, (size_t)n, "sys_getppid()", 13) != NULL &&
		       FAILS(read(lines, found, SIZE), EAGAIN);
	}
	good &= put(TRACING "events/syscalls/sys_enter_getppid/enable", "0");
	return close(lines) == 0 && good;
}

/* The calls that its reading makes are not something to read, but for the first one. */
static bool
reading_makes_no_calls(const char *instance, const char *tracer)
{
	int here = open(".", O_RDONLY), lines = -1;
	char me[12];
	unsigned seen = 0;
	ssize_t n = 0;
	bool good = chdir(instance) == 0 && sprintf(me, "%d", getpid()) > 0 &&
		    put("set_ftrace_pid", me) && put("set_ftrace_filter", "trace_pipe_read") &&
		    put("set_ftrace_filter", "*_read") && put("current_tracer", tracer);

	lines = open("trace_pipe", O_RDONLY | O_NONBLOCK);
	for (unsigned i = 0; i < 20 && good; i++) {
		n = read(lines, found, SIZE);
		good = n > 0 || (n == -1 && errno == EAGAIN);
		seen += n > 0 && memmem(found, (size_t)n, "trace_pipe_read", 15) != NULL;
	}
	good = good && seen == 1;
	good = close(lines) == 0 && good; /* and then it is traced again */
	lines = open("trace_pipe", O_RDONLY | O_NONBLOCK);
	good = good && read(lines, found, SIZE) > 0;
	good &= put("current_tracer", "nop") && put("set_ftrace_pid", " ") &&
		put("set_ftrace_filter", " ");
	return close(lines) == 0 && fchdir(here) == 0 && close(here) == 0 && good;
}

/* But what interrupts it is: there is something to read again and again. */
static bool
interrupts_are_traced(void)
{
	int here = open(".", O_RDONLY), lines = -1;
	time_t start = time(NULL);
	char me[12];
	ssize_t n = 0;
	bool good = chdir(TRACING) == 0 && sprintf(me, "%d", getpid()) > 0 &&
		    put("set_ftrace_pid", me) && put("set_ftrace_filter", "timer_interrupt") &&
		    put("current_tracer", "function");

	lines = open("trace_pipe", O_RDONLY | O_NONBLOCK);
	while (good && read(lines, found, SIZE) > 0) { /* until it is silent */
	}
	good = good && errno == EAGAIN;
	while (good && n <= 0 && time(NULL) - start < 60)
		n = read(lines, found, SIZE);
	good = good && n > 0 && memmem(found, (size_t)n, "timer_interrupt", 15) != NULL;
	good &= put("current_tracer", "nop") && put("set_ftrace_pid", " ") &&
		put("set_ftrace_filter", " ");
	return close(lines) == 0 && fchdir(here) == 0 && close(here) == 0 && good;
}

/* A child waits in read(): it returns when somebody sets O_NONBLOCK. */
static bool
waiting_ends(void)
{
	int lines = open(TRACING "trace_pipe", O_RDONLY), status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(!FAILS(read(lines, found, SIZE), EAGAIN));
	return await_sleep(pid, 0) && fcntl(lines, F_SETFL, O_NONBLOCK) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0 && close(lines) == 0;
}

/* A child writes into the trace, or ends waiting reads, again and again, until it is killed. */
static pid_t
again_and_again(int mark, int raw)
{
	pid_t pid = fork();

	while (pid == 0) {
		if (mark >= 0 ? write(mark, "x", 1) != 1 : ioctl(raw, 0, 0) != 0)
			_exit(1);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return pid;
}

static bool
is_killed(pid_t pid)
{
	int status;

	return pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status);
}

/* While tracing is off an empty pipe that was read has ended, but for who does not wait. */
static bool
is_at_its_end(int pipe)
{
	int on = open(TRACING "tracing_on", O_WRONLY);
	bool good = on >= 0 && write(on, "0", 1) == 1 && fcntl(pipe, F_SETFL, O_NONBLOCK) == 0;

	good = good && FAILS(read(pipe, found, 8), EAGAIN) && fcntl(pipe, F_SETFL, 0) == 0;
	return close(on) == 0 && good && read(pipe, found, 8) == 0;
}

/* A splice that must not wait does not, though a read() would. */
static bool
splice_is_refused(int raw)
{
	int ends[2];
	bool good = pipe(ends) == 0 &&
		    FAILS(splice(raw, NULL, ends[1], NULL, 4096, SPLICE_F_NONBLOCK), EAGAIN);

	return close(ends[0]) == 0 && close(ends[1]) == 0 && good;
}

static bool
trace_is_polled(void)
{
	int mark = open(TRACING "trace_marker", O_WRONLY);
	struct pollfd lines = {open(TRACING "trace_pipe", O_RDONLY), POLLIN, 0};
	int raw = open(TRACING "per_cpu/cpu0/trace_pipe_raw", O_RDONLY);
	struct pollfd page = {raw, POLLIN, 0};
	bool good = mark >= 0 && lines.fd >= 0 && raw >= 0;
	pid_t pid;

	good = good && !is_ready(&lines, 0) && !is_ready(&page, 20) && write(mark, "a", 1) == 1 &&
	       is_ready(&lines, 0) && read(lines.fd, found, 8) == 8 && is_ready(&lines, 0) &&
	       read(lines.fd, found, SIZE) > 8 && !is_ready(&lines, 20);
	pid = again_and_again(mark, -1);
	good = good && is_ready(&lines, -1);
	good &= is_killed(pid);
	while (good && is_ready(&lines, 0))
		good = read(lines.fd, found, SIZE) > 0;
	/* Nothing comes any more: only the ioctl() ends this. */
	pid = again_and_again(-1, raw);
	good = good && read(raw, found, SIZE) == 0;
	good &= is_killed(pid);
	good = good && FAILS(ioctl(raw, 1, 0), ENOTTY) && splice_is_refused(raw) &&
	       is_at_its_end(lines.fd);
	return close(raw) == 0 && close(lines.fd) == 0 && close(mark) == 0 && good;
}

void
test_pipes(void)
{
	result(little_room(), "splice and tee fill the room that a pipe has, and wait for some");
	result(file_into_little_room(), "splice moves no more of a file than the pipe takes");
	result(room_comes_back(), "the room that splice does not fill is told to who waits for it");
	result(nothing_is_lost(), "splice leaves in the pipe what the other file does not take");
	result(both_ends_in_one(), "a pipe that is opened with O_RDWR is both ends");
	result(some_open_once(), "an eventfd and its like cannot be opened again: ENXIO");
	if (geteuid() == 0 && mkdir(TRACING, 0755) == 0) {
		result(reader_is_traced(), "who reads trace_pipe with O_NONBLOCK is traced");
		result(!is_kestrel() ||
			   (reading_makes_no_calls(TRACING, "function") &&
			    reading_makes_no_calls("/sys/kernel/tracing", "function_graph")),
		       "the functions that it calls are not");
		result(!is_kestrel() || interrupts_are_traced(), "those of its interrupts are");
		result(!is_kestrel() || waiting_ends(), "O_NONBLOCK ends a read() that waits");
		result(trace_is_polled(), "trace_pipe and trace_pipe_raw are polled");
		rmdir(TRACING);
	}
}
