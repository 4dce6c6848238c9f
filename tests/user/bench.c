/*
 * bench.c - instructions of a system call, of encoding the stream, and of many maps. Runs in a
 * guest with one CPU under qemu/boot --icount, where a nanosecond is an instruction;
 * tests/bench/run does that.
 */
#include "tests/user/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS  1000u
#define ROUNDS 64u

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
print_row(const char *name, uint64_t total, uint64_t n)
{
	uint64_t hundredths = (total * 100 + n / 2) / n;

	printf("bench %s %lu.%02lu instructions\n", name, hundredths / 100, hundredths % 100);
}

static void
call_getppid(void)
{
	getppid();
}

static void
call_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
}

/* Returns the shortest of many rounds of n calls, which had no timer interrupt. */
static uint64_t
round_of_calls(unsigned n, void (*call)(void))
{
	uint64_t best = UINT64_MAX;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t start = now_ns(), took;

		for (unsigned i = 0; i < n; i++)
			call();
		took = now_ns() - start;
		if (took < best)
			best = took;
	}
	return best;
}

static int
bench_syscall(void)
{
	static const struct {
		const char *mask, *name;
	} rows[] = {{"NONE", "syscall_off"}, {"SYSC", "syscall_sysc"}};
	char why[128];

	for (unsigned i = 0; i < 2; i++) {
		if (sysctl_set("debug.ktr.mask", rows[i].mask, why, sizeof(why)) < 0) {
			fprintf(stderr, "bench: debug.ktr.mask=%s: %s\n", rows[i].mask, why);
			return 1;
		}
		print_row(rows[i].name, round_of_calls(CALLS, call_getppid), CALLS);
	}
	return 0;
}

static int file;

static void
call_pread(void)
{
	char page[4096];

	if (pread(file, page, sizeof(page), 0) != sizeof(page))
		abort();
}

/* Reads a page of a file that is in memory. */
static int
bench_file(const char *path, const char *row)
{
	static const char page[4096];

	file = open(path, O_RDWR | O_CREAT, 0644);
	if (file < 0 || write(file, page, sizeof(page)) != sizeof(page)) {
		fprintf(stderr, "bench: %s: %s\n", path, strerror(errno));
		return 1;
	}
	print_row(row, round_of_calls(CALLS, call_pread), CALLS);
	return 0;
}

#define ENTRIES 8000u

/* Lists a large directory. Returns how long that took; 0: it cannot. */
static uint64_t
list_directory(const char *path)
{
	static char buf[32768];
	uint64_t start = now_ns();
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	long n;

	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		;
	close(fd);
	return n == 0 ? now_ns() - start : 0;
}

static int
bench_calls(void)
{
	char path[64] = "/tmp/bench.d";
	uint64_t took;

	mkdir(path, 0755);
	for (unsigned i = 0; i < ENTRIES; i++) {
		snprintf(path, sizeof(path), "/tmp/bench.d/file%08u", i);
		close(creat(path, 0644));
	}
	took = list_directory("/tmp/bench.d");
	if (took == 0) {
		fprintf(stderr, "bench: /tmp/bench.d: %s\n", strerror(errno));
		return 1;
	}
	print_row("clock_gettime", round_of_calls(CALLS, call_clock), CALLS);
	print_row("readdir", took, ENTRIES);
	return 0;
}

#define BULK 65536u

static char bulk[BULK];

/* Reads, or writes, all of n bytes. False: it cannot. */
static bool
read_all(int fd, size_t n)
{
	for (ssize_t got; n > 0; n -= (size_t)got)
		if ((got = read(fd, bulk, n)) <= 0)
			return false;
	return true;
}

static bool
write_all(int fd, size_t n)
{
	for (ssize_t put; n > 0; n -= (size_t)put)
		if ((put = write(fd, bulk, n)) <= 0)
			return false;
	return true;
}

/*
 * Bytes go to another process, which answers with one byte: the shortest of several rounds of n.
 * fd: the parent's two, then those of the child.
 */
static int
bench_answer(const char *name, const int fd[4], size_t bytes, unsigned n)
{
	uint64_t best = UINT64_MAX;
	pid_t pid = fork();

	if (pid == 0) {
		close(fd[0]);
		while (read_all(fd[3], bytes) && write_all(fd[2], 1))
			;
		_exit(0);
	}
	for (unsigned round = 0; pid > 0 && round < ROUNDS; round++) {
		uint64_t start = now_ns(), took;

		for (unsigned i = 0; i < n; i++)
			if (!write_all(fd[0], bytes) || !read_all(fd[1], 1))
				return 1;
		took = now_ns() - start;
		best = took < best ? took : best;
	}
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		return 1;
	print_row(name, best, n);
	return 0;
}

static int
bench_echo(const char *name, const int fd[4])
{
	return bench_answer(name, fd, 1, CALLS / 10);
}

/* Two ends of a TCP connection over the loopback. False: errno says why not. */
static bool
tcp_pair(int s[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	bool done = listener >= 0 && bind(listener, (struct sockaddr *)&at, len) == 0 &&
		    listen(listener, 1) == 0 &&
		    getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
		    (s[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0 &&
		    connect(s[0], (struct sockaddr *)&at, len) == 0 &&
		    (s[1] = accept(listener, NULL, NULL)) >= 0;

	for (unsigned i = 0; done && i < 2; i++)
		done = setsockopt(s[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
	if (listener >= 0)
		close(listener);
	return done;
}

static int
bench_echoes(void)
{
	int a[2], b[2], s[2];

	if (pipe(a) != 0 || pipe(b) != 0 ||
	    bench_echo("pipe_echo", (int[]){a[1], b[0], b[1], a[0]}))
		return 1;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0 ||
	    bench_echo("stream_echo", (int[]){s[0], s[0], s[1], s[1]}))
		return 1;
	if (bench_answer("stream_64k", (int[]){s[0], s[0], s[1], s[1]}, BULK, 10))
		return 1;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) != 0 ||
	    bench_echo("datagram_echo", (int[]){s[0], s[0], s[1], s[1]}))
		return 1;
	if (!tcp_pair(s))
		return errno != EAFNOSUPPORT; /* a kernel without lwIP has no such rows */
	return bench_echo("tcp_echo", (int[]){s[0], s[0], s[1], s[1]}) ||
	       bench_answer("tcp_64k", (int[]){s[0], s[0], s[1], s[1]}, BULK, 10);
}

/* A process whose calls and returns are traced, against one that is not. */
static int
bench_ktrace(void)
{
	static const char path[] = "/tmp/bench.ktrace";
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	char why[128];

	if (sysctl_set("debug.ktr.mask", "NONE", why, sizeof(why)) < 0) {
		fprintf(stderr, "bench: debug.ktr.mask=NONE: %s\n", why);
		return 1;
	}
	print_row("ktrace_off", round_of_calls(CALLS, call_getppid), CALLS);
	if (fd < 0 || ktrace(path, KTROP_SET, KTRFAC_SYSCALL | KTRFAC_SYSRET, getpid()) < 0) {
		fprintf(stderr, "bench: ktrace: %s\n", strerror(errno));
		return 1;
	}
	print_row("ktrace_on", round_of_calls(100, call_getppid), 100);
	if (ktrace(NULL, KTROP_CLEAR, KTRFAC_SYSCALL | KTRFAC_SYSRET, getpid()) < 0) {
		fprintf(stderr, "bench: ktrace: %s\n", strerror(errno));
		return 1;
	}
	print_row("ktrace_after", round_of_calls(CALLS, call_getppid), CALLS);
	return 0;
}

/* Number of events in the rings: the fourth column of debug.ktr.stats. 0 after an error. */
static uint64_t
events_resident(void)
{
	char *text = sysctl_get_text("debug.ktr.stats"), *line = text;
	uint64_t sum = 0;

	while (line != NULL && (line = strchr(line, '\n')) != NULL) {
		char *at = ++line;

		for (unsigned column = 0; column < 3; column++)
			strtoul(at, &at, 10);
		sum += strtoul(at, &at, 10);
	}
	free(text);
	return sum;
}

/* Reads all rings once through /dev/ktr, which encodes them as the flush thread does. */
static int
bench_encode(void)
{
	static char buf[65536];
	uint64_t events = events_resident(), bytes = 0, start, took;
	int fd = open("/dev/ktr", O_RDONLY);
	ssize_t n;

	if (fd < 0 || events == 0) {
		fprintf(stderr, "bench: /dev/ktr: %s; %lu events, expected some\n",
			fd < 0 ? strerror(errno) : "open", events);
		return 1;
	}
	start = now_ns();
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		bytes += (uint64_t)n;
	took = now_ns() - start;
	if (n < 0) {
		fprintf(stderr, "bench: reading /dev/ktr: %s\n", strerror(errno));
		return 1;
	}
	close(fd);
	print_row("encode", took, events);
	printf("bench encode_events %lu events\nbench encode_bytes %lu bytes\n", events, bytes);
	return 0;
}

static int polled[64], set;
static char *shared;

static void
call_poll(void)
{
	struct pollfd p[64];

	for (unsigned i = 0; i < 64; i++)
		p[i] = (struct pollfd){.fd = polled[i], .events = POLLIN};
	if (poll(p, 64, 0) != 0)
		abort();
}

static void
call_epoll(void)
{
	struct epoll_event ev;

	if (epoll_wait(set, &ev, 1, 0) != 1)
		abort();
}

/* Reads all of a file of /proc. */
static void
read_whole(const char *path)
{
	static char buf[65536];
	int fd = open(path, O_RDONLY);

	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

static void
call_stat_file(void)
{
	read_whole("/proc/self/stat");
}

static void
call_maps_file(void)
{
	read_whole("/proc/self/maps");
}

static void
call_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

static void
call_exec(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "user_test", "bench", "nothing", NULL);
		_exit(1);
	}
	if (waitpid(pid, NULL, 0) != pid)
		abort();
}

#define SHARED_PAGES 256u

/* Reads a byte of each page of a file that is in memory and was not mapped. */
static void
call_shared(void)
{
	shared = mmap(NULL, SHARED_PAGES * 4096, PROT_READ, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		abort();
	for (unsigned i = 0; i < SHARED_PAGES; i++)
		(void)*(volatile char *)(shared + i * 4096);
	munmap(shared, SHARED_PAGES * 4096);
}

/* What processes do most. Linux prints these rows, too. */
static int
bench_kernel(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int end[2];

	for (unsigned i = 0; i < 64; i++) {
		if (pipe(end) != 0)
			return 1;
		polled[i] = end[0];
	}
	print_row("poll_64", round_of_calls(100, call_poll), 100);
	set = epoll_create1(0);
	if (pipe(end) != 0 || epoll_ctl(set, EPOLL_CTL_ADD, end[0], &ev) != 0 ||
	    !write_all(end[1], 1))
		return 1;
	print_row("epoll_wait", round_of_calls(CALLS, call_epoll), CALLS);
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	print_row("fork", round_of_calls(1, call_fork), 1);
	print_row("fork_exec", round_of_calls(1, call_exec), 1);
	print_row("proc_stat", round_of_calls(10, call_stat_file), 10);
	print_row("proc_maps", round_of_calls(10, call_maps_file), 10);
	file = open("/dev/zero", O_RDONLY);
	print_row("dev_zero", round_of_calls(CALLS, call_pread), CALLS);
	file = open("/tmp/bench.shared", O_RDWR | O_CREAT, 0600);
	for (unsigned i = 0; i < SHARED_PAGES * 4096 / BULK; i++)
		if (!write_all(file, BULK))
			return 1;
	print_row("shared_fault", round_of_calls(1, call_shared), SHARED_PAGES);
	return 0;
}

/* A process without a terminal is looked at, beside none of others, and beside many. */
static int
bench_terminals(void)
{
	if (setsid() < 0)
		return 1;
	print_row("stat_alone", round_of_calls(10, call_stat_file), 10);
	for (unsigned i = 0; i < 400; i++)
		if (open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0)
			return 1;
	print_row("stat_terminals", round_of_calls(10, call_stat_file), 10);
	return 0;
}

#define STRIDE 8192 /* so that each page is an area of its own, with a hole after it */

static void
map_page(char *at, int flags)
{
	char *p =
	    mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "bench: mmap: %s\n", strerror(errno));
		exit(1);
	}
}

/* Instructions of each step over n areas, one after the other; for n and for ten times n. */
static int
bench_maps(void)
{
	static const char *const steps[] = {"up",      "down",  "scattered", "holes",
					    "protect", "touch", "unmap"};
	char *base = (char *)0x600000000000;

	for (uint64_t n = 2500; n <= 25000; n *= 10) {
		for (unsigned step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
			char row[40];
			uint64_t start = now_ns();

			for (uint64_t i = 0; i < n; i++) {
				char *up = base + i * STRIDE, *down = base + (n - 1 - i) * STRIDE;
				char *scattered = base + i * 7919 % n * STRIDE; /* a prime */

				if (step == 0)
					map_page(up, MAP_FIXED);
				else if (step == 1)
					map_page(down, MAP_FIXED); /* replaces */
				else if (step == 2)
					map_page(scattered, MAP_FIXED);
				else if (step == 3)
					map_page(NULL, 0); /* where the kernel finds room */
				else if (step == 4)
					mprotect(scattered, 4096, PROT_READ);
				else if (step == 5)
					(void)*(volatile char *)(scattered);
				else
					munmap(scattered, 4096);
			}
			snprintf(row, sizeof(row), "maps_%s_%lu", steps[step], n);
			print_row(row, now_ns() - start, n);
		}
	}
	return 0;
}

int
bench_main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "syscall") == 0)
		return bench_calls() != 0 || bench_syscall() != 0;
	if (argc == 2 && strcmp(argv[1], "kernel") == 0)
		return bench_kernel();
	if (argc == 2 && strcmp(argv[1], "terminals") == 0)
		return bench_terminals();
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "echo") == 0)
		return bench_echoes();
	if (argc == 4 && strcmp(argv[1], "file") == 0)
		return bench_file(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "ktrace") == 0)
		return bench_ktrace();
	if (argc == 2 && strcmp(argv[1], "encode") == 0)
		return bench_encode();
	if (argc == 2 && strcmp(argv[1], "maps") == 0)
		return bench_maps();
	fprintf(stderr,
		"usage: user_test bench syscall|echo|kernel|file PATH ROW|ktrace|encode|maps\n");
	return 2;
}
