/*
 * ktraced.c - programs for ktrace to watch. `calls` prints what it asked of the kernel and what it
 * got, for comparison with the trace; the others leave marks by utrace().
 */
#include "tests/user/ktraced.h"

#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/user/raw.h"

static char logged[16384];
static size_t used;

/* Makes a system call, and writes it down as `call NAME RESULT ARGUMENT…`. */
static long
logged_call(const char *name, long nr, unsigned narg, long a, long b, long c, long d)
{
	const long args[] = {a, b, c, d};
	long r = syscall_raw(nr, a, b, c, d, 0, 0);

	used += (size_t)snprintf(logged + used, sizeof(logged) - used, "call %s %ld", name, r);
	for (unsigned i = 0; i < narg; i++)
		used += (size_t)snprintf(logged + used, sizeof(logged) - used, " %lu", args[i]);
	used += (size_t)snprintf(logged + used, sizeof(logged) - used, "\n");
	return r;
}

#define CALL4(name, n, a, b, c, d) \
	logged_call(#name, NR_##name, n, (long)(a), (long)(b), (long)(c), (long)(d))
#define CALL3(name, a, b, c) CALL4(name, 3, a, b, c, 0)
#define CALL2(name, a, b)    CALL4(name, 2, a, b, 0, 0)
#define CALL1(name, a)       CALL4(name, 1, a, 0, 0, 0)
#define CALL0(name)          CALL4(name, 0, 0, 0, 0, 0)

struct piece {
	const void *base;
	uint64_t len;
};

/* Calls with results and errors of many kinds, between two marks. */
static int
calls(void)
{
	static const char path[] = "/tmp/ktraced";
	static char buf[] = "first contents of the buffer\n", in[64];
	struct piece pieces[] = {{"one\0", 4}, {"", 0}, {"three", 5}};
	struct timespec ts, nap = {0, 1001};
	struct rlimit limit;
	struct stat st;
	int fds[2];
	long fd, pid = getpid();

	utrace("begin", 5);
	CALL0(getppid);
	fd = CALL4(openat, 4, AT_FDCWD, path, O_CREAT | O_TRUNC | O_RDWR, 0640);
	CALL3(write, fd, buf, strlen(buf));
	memset(buf, 'x', strlen(buf)); /* the trace has what was there before */
	CALL3(writev, fd, pieces, 3);
	CALL3(lseek, fd, 6, SEEK_SET);
	CALL3(read, fd, in, 8);
	CALL3(read, fd, in, sizeof(in));
	CALL3(read, fd, in, sizeof(in));
	CALL2(fstat, fd, &st);
	CALL4(newfstatat, 4, AT_FDCWD, "/etc/motd", &st, 0);
	CALL4(newfstatat, 4, AT_FDCWD, "/nothing", &st, 0);
	CALL4(openat, 4, AT_FDCWD, 8, O_RDONLY, 0); /* no address */
	CALL3(write, 99, buf, 1);
	CALL3(write, fd, 8, 10);
	CALL1(close, fd);
	CALL1(close, fd);
	CALL3(mkdirat, AT_FDCWD, "/tmp/dir", 0700);
	CALL4(renameat, 4, AT_FDCWD, "/tmp/dir", AT_FDCWD, "/tmp/other");
	CALL3(unlinkat, AT_FDCWD, "/tmp/other", AT_REMOVEDIR);
	CALL1(chdir, "/tmp");
	CALL2(pipe2, fds, O_CLOEXEC);
	CALL3(write, fds[1], "through a pipe", 14);
	CALL3(read, fds[0], in, sizeof(in));
	CALL2(kill, pid, 0);
	CALL2(kill, -12345, SIGTERM);
	CALL4(wait4, 4, -1, NULL, WNOHANG, 0);
	CALL2(setpgid, 0, 0);
	CALL0(sched_yield);
	CALL2(clock_gettime, CLOCK_MONOTONIC, &ts);
	CALL2(nanosleep, &nap, NULL);
	CALL4(prlimit64, 4, 0, RLIMIT_NOFILE, NULL, &limit);
	logged_call("unknown", 777, 0, 1, 2, 3, 4);
	utrace("end", 3);
	fputs(logged, stdout);
	fflush(stdout);
	return 0;
}

/* Marks itself and makes children, until there are n processes. Each waits for its own. */
static void
tree(unsigned node, unsigned n)
{
	char mark[32];
	unsigned children = 0;

	utrace(mark, (size_t)snprintf(mark, sizeof(mark), "node %u", node));
	for (unsigned child = 2 * node; child <= 2 * node + 1; child++) {
		if (child > n)
			break;
		children++;
		if (fork() == 0) {
			tree(child, n);
			_exit(0);
		}
	}
	while (children-- > 0)
		wait(NULL);
	utrace(mark, (size_t)snprintf(mark, sizeof(mark), "leaf %u", node));
}

/* n marks with numbers. 0: until it is killed. */
static void
count(unsigned n)
{
	for (unsigned i = 0; i < n || n == 0; i++) {
		char mark[16];

		utrace(mark, (size_t)snprintf(mark, sizeof(mark), "%u", i));
		if (i % 16 == 15)
			SYSCALL0(sched_yield); /* others that count take turns */
	}
}

int
ktraced_join_crowd(void)
{
	static const char file[] = "/tmp/crowd";
	int fd = open(file, O_CREAT | O_WRONLY, 0600);

	return fd < 0 || ktrace(file, KTROP_SET, KTRFAC_USER, getpid()) != 0 ? -1 : fd;
}

void
ktraced_crowd(int fd)
{
	for (unsigned n = 0;; n++) {
		utrace("mark", 4);
		if (n % 512 == 0)
			ftruncate(fd, 0);
	}
}

/* Is traced, writes a byte to `told` then, and makes marks. */
static int
crowd(int told)
{
	int fd = ktraced_join_crowd();

	if (fd < 0 || write(told, "", 1) != 1)
		return 1;
	ktraced_crowd(fd);
}

/* Processes that count at the same time. */
static int
many(unsigned processes, unsigned n)
{
	for (unsigned i = 0; i < processes; i++) {
		if (fork() == 0) {
			count(n);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int go[2], has_vforked[2];

/* Its child ends when it is told to. On aarch64, vfork() of this C library is a fork(). */
static void *
thread_vforks(void *arg)
{
	static char c;
	pid_t pid = vfork();

	if (pid == 0) {
		write(has_vforked[1], "", 1);
		read(go[0], &c, 1);
		utrace("of vfork", 8);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return NULL;
}

/* Makes children that leave a mark: without the C library's fork(), which lets one thread fork. */
static void *
thread_forks(void *arg)
{
	for (unsigned n = *(unsigned *)arg; n > 0; n--) {
		long pid = SYSCALL4(clone, SIGCHLD, 0, 0, 0);

		if (pid == 0) {
			utrace("of thread", 9);
			_exit(0);
		}
		waitpid((pid_t)pid, NULL, 0);
	}
	return NULL;
}

/* One thread makes a child while another waits in vfork(); then all make n at the same time. */
static int
threads(unsigned count, unsigned n)
{
	pthread_t t[8];
	pid_t pid;
	char c;

	if (count > 8 || pipe(go) != 0 || pipe(has_vforked) != 0 ||
	    pthread_create(&t[0], NULL, thread_vforks, NULL) != 0)
		return 1;
	read(has_vforked[0], &c, 1);
	pid = fork();
	if (pid == 0) {
		utrace("of fork", 7);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	write(go[1], "", 1);
	pthread_join(t[0], NULL);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&t[i], NULL, thread_forks, &n) != 0)
			return 1;
	for (unsigned i = 0; i < count; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* Reads into so many pages that are not there, in one system call. */
static int
faults(unsigned pages)
{
	size_t size = (size_t)pages * 4096;
	char *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDONLY);

	if (to == MAP_FAILED || fd < 0)
		return 1;
	return read(fd, to, size) == (ssize_t)size ? 0 : 1;
}

static int
expect(const char *what, long found, long expected)
{
	if (found == expected)
		return 0;
	printf("%s: found %ld, expected %ld\n", what, found, expected);
	return 1;
}

static void
on_signal(int sig)
{
	raise(SIGTERM);
}

/* Gets a signal that it catches, and one that ends it. */
static int
caught(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return 1;
}

/* What ktrace() and utrace() refuse. */
static int
refused(void)
{
	static char big[KTR_USER_MAXLEN + 1];
	static const char file[] = "/tmp/refused";
	int bad = 0, fd = open(file, O_CREAT | O_WRONLY, 0600);

#define EXPECT(call, error) bad |= expect(#call, (call) < 0 ? errno : 0, error)
	EXPECT(utrace(big, sizeof(big)), 0); /* it is not traced */
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_GENIO, getpid()), 0);
	EXPECT(utrace((void *)8, 1), 0); /* nor is it for this */
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, getpid()), 0);
	EXPECT(utrace(big, sizeof(big)), EINVAL);
	EXPECT(utrace((void *)8, 1), EFAULT);
	EXPECT(utrace((void *)-1l, 1), EFAULT);
	EXPECT(utrace(big, sizeof(big) - 1), 0);
	EXPECT(utrace(big, 0), 0);
	EXPECT(ktrace(file, 3, KTRFAC_USER, getpid()), EINVAL);
	EXPECT(ktrace(file, 8, KTRFAC_USER, getpid()), EINVAL);
	EXPECT(ktrace(file, KTROP_SET, 0, getpid()), EINVAL);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_INHERIT, getpid()), EINVAL);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER | KTRFAC_ROOT, getpid()), EINVAL);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, 0), ESRCH);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, 12345), ESRCH);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, -12345), ESRCH);
	EXPECT(ktrace((char *)8, KTROP_SET, KTRFAC_USER, getpid()), EFAULT);
	EXPECT(ktrace("/nothing", KTROP_SET, KTRFAC_USER, getpid()), ENOENT);
	EXPECT(ktrace("/tmp", KTROP_SET, KTRFAC_USER, getpid()), EISDIR);
	EXPECT(ktrace("/dev/null", KTROP_SET, KTRFAC_USER, getpid()), EACCES);
	EXPECT(ktrace(NULL, KTROP_CLEAR, KTRFAC_USER, getpid()), 0);
	EXPECT(ktrace(file, KTROP_CLEARFILE, 0, 0), 0);
	close(fd);
	puts(bad ? "refused: bad" : "refused: ok");
	return bad;
}

/* A child that has become user 1000 may have secrets of user 0. */
static int
child_of_root(void)
{
	static const char file[] = "/tmp/of1000";
	int bad = 0, status = 1;

	if (fork() == 0) {
		EXPECT(setuid(1000), 0);
		EXPECT(open(file, O_CREAT | O_WRONLY, 0600), 0);
		EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, getpid()), EPERM);
		_exit(bad);
	}
	wait(&status);
	return status != 0;
}

/* Changes its own tracing as user 1000, after user 0 has set it. */
static int
dropped(void)
{
	static const char file[] = "/tmp/dropped";
	int bad = child_of_root(), fd = open(file, O_CREAT | O_WRONLY, 0666);

	close(fd);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, getpid()), 0);
	EXPECT(setuid(1000), 0);
	EXPECT(ktrace(NULL, KTROP_CLEAR, KTRFAC_USER, getpid()), EPERM);
	EXPECT(ktrace(file, KTROP_SET, KTRFAC_USER, getpid()), EACCES);
	EXPECT(ktrace(NULL, KTROP_CLEAR, KTRFAC_USER, 1), EPERM);
	utrace("still traced", 12);
	puts(bad ? "dropped: bad" : "dropped: ok");
	return bad;
}

int
ktraced_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (strcmp(what, "calls") == 0)
		return calls();
	if (strcmp(what, "tree") == 0)
		tree(1, n);
	else if (strcmp(what, "count") == 0)
		count(n);
	else if (strcmp(what, "many") == 0)
		return many(n, argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0);
	else if (strcmp(what, "crowd") == 0)
		return crowd((int)n);
	else if (strcmp(what, "threads") == 0)
		return threads(n, argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0);
	else if (strcmp(what, "faults") == 0)
		return faults(n);
	else if (strcmp(what, "caught") == 0)
		return caught();
	else if (strcmp(what, "refused") == 0)
		return refused();
	else if (strcmp(what, "dropped") == 0)
		return dropped();
	else {
		fprintf(
		    stderr,
		    "usage: user_test ktrace calls|tree N|count N|many P N|crowd|threads P N|faults N|"
		    "caught|refused|dropped\n");
		return 2;
	}
	return 0;
}
