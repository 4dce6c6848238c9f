/*
 * limits.c - getrlimit, setrlimit and prlimit64: what they refuse, and that each limit holds. Each
 * try is a child, whose exit status is the number of the first thing that was wrong.
 */
#include "tests/user/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"
#include "tests/user/raw.h"

#define MIB 1048576ul

/* Ends the child with the line's number when something is not so. */
#define WANT(condition)                                                             \
	do {                                                                        \
		if (!(condition))                                                   \
			_exit(__LINE__ % 250 + 1); /* never 0, and below signals */ \
	} while (0)

static void
set(int resource, unsigned long cur, unsigned long max)
{
	WANT(setrlimit(resource, &(struct rlimit){cur, max}) == 0);
}

static int
set_fails(int resource, unsigned long cur, unsigned long max)
{
	return setrlimit(resource, &(struct rlimit){cur, max}) == 0 ? 0 : errno;
}

static void
calls_agree(void)
{
	struct rlimit a, b, c;

	WANT(getrlimit(RLIMIT_NOFILE, &a) == 0 && a.rlim_cur == 1024 && a.rlim_max == 65536);
	WANT(getrlimit(RLIMIT_STACK, &a) == 0 && a.rlim_cur == 8 * MIB);
	WANT(getrlimit(RLIMIT_AS, &a) == 0 && a.rlim_cur == RLIM_INFINITY);
	a = (struct rlimit){5 * MIB, 9 * MIB};
	WANT(syscall_raw(NR_setrlimit, RLIMIT_FSIZE, (long)&a, 0, 0, 0, 0) == 0);
	WANT(syscall_raw(NR_getrlimit, RLIMIT_FSIZE, (long)&b, 0, 0, 0, 0) == 0);
	WANT(prlimit(getpid(), RLIMIT_FSIZE, NULL, &c) == 0);
	WANT(b.rlim_cur == 5 * MIB && b.rlim_max == 9 * MIB && c.rlim_cur == b.rlim_cur);
	/* The old value comes back when a new one is set. */
	WANT(prlimit(0, RLIMIT_FSIZE, &(struct rlimit){1, 2}, &c) == 0 && c.rlim_cur == 5 * MIB);
	WANT(getrlimit(RLIMIT_FSIZE, &c) == 0 && c.rlim_cur == 1 && c.rlim_max == 2);
}

static void
nonsense_is_refused(void)
{
	struct rlimit a;

	WANT(getrlimit(RLIMIT_NLIMITS, &a) < 0 && errno == EINVAL);
	WANT(getrlimit(-1, &a) < 0 && errno == EINVAL);
	WANT(prlimit(0x7fffffff, RLIMIT_AS, NULL, &a) < 0 && errno == ESRCH);
	WANT(syscall_raw(NR_prlimit64, 0, RLIMIT_AS, 8, 0, 0, 0) == -EFAULT);
	WANT(syscall_raw(NR_prlimit64, 0, RLIMIT_AS, 0, 8, 0, 0) == -EFAULT);
	WANT(syscall_raw(NR_getrlimit, RLIMIT_AS, 0, 0, 0, 0, 0) == -EFAULT);
	WANT(set_fails(RLIMIT_AS, 2, 1) == EINVAL);
	WANT(set_fails(RLIMIT_NOFILE, 64, 65537) == EPERM);
	WANT(set_fails(RLIMIT_RTTIME, 1, 1) == EINVAL); /* nothing counts that time */
	set(RLIMIT_CORE, 77, 78); /* there are no core files: any limit holds */
	WANT(getrlimit(RLIMIT_CORE, &a) == 0 && a.rlim_cur == 77 && a.rlim_max == 78);
}

static void
only_user_0_raises(void)
{
	struct rlimit a;
	pid_t parent = getpid(), child;
	int status;

	set(RLIMIT_AS, 100 * MIB, 200 * MIB);
	set(RLIMIT_AS, 100 * MIB, 300 * MIB);
	child = fork();
	if (child == 0) {
		WANT(setuid(1000) == 0);
		WANT(prlimit(parent, RLIMIT_AS, NULL, &a) < 0 && errno == EPERM);
		WANT(set_fails(RLIMIT_AS, 100 * MIB, 301 * MIB) == EPERM);
		set(RLIMIT_AS, 250 * MIB, 300 * MIB);
		set(RLIMIT_AS, 250 * MIB, 250 * MIB);
		WANT(set_fails(RLIMIT_AS, 250 * MIB, 300 * MIB) == EPERM);
		_exit(0);
	}
	WANT(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) != 0)
		_exit(WEXITSTATUS(status));
	/* User 0 may change a child's. */
	child = fork();
	if (child == 0) {
		for (;;)
			sleep(1);
	}
	WANT(prlimit(child, RLIMIT_AS, &(struct rlimit){MIB, MIB}, &a) == 0 &&
	     a.rlim_cur == 100 * MIB);
	WANT(prlimit(child, RLIMIT_AS, NULL, &a) == 0 && a.rlim_cur == MIB);
	kill(child, SIGKILL);
	WANT(waitpid(child, &status, 0) == child);
}

static void
files_are_limited(void)
{
	int fd;

	set(RLIMIT_NOFILE, 10, 65536);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		WANT(fd < 10);
	WANT(errno == EMFILE);
	WANT(fcntl(0, F_DUPFD, 10) < 0 && errno == EINVAL);
	WANT(dup2(0, 10) < 0 && errno == EBADF);
	set(RLIMIT_NOFILE, 11, 65536);
	WANT(dup2(0, 10) == 10);
	/* A file that is open above the limit stays usable. */
	set(RLIMIT_NOFILE, 4, 65536);
	WANT(fcntl(10, F_GETFD) >= 0 && close(10) == 0);
}

static long
brk_to(long end)
{
	return syscall_raw(NR_brk, end, 0, 0, 0, 0, 0);
}

static void
address_space_is_limited(void)
{
	long end = brk_to(0);
	char *p;

	p = mmap(NULL, 32 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	WANT(p != MAP_FAILED);
	set(RLIMIT_AS, 64 * MIB, RLIM_INFINITY);
	WANT(mmap(NULL, 64 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	WANT(errno == ENOMEM);
	WANT(brk_to(end + 64 * (long)MIB) == end); /* which is how it fails */
	WANT(brk_to(end + (long)MIB) == end + (long)MIB && brk_to(end) == end);
	/* What is unmapped may be mapped again, as often as you like; parts of an area, too. */
	for (int i = 0; i < 100; i++) {
		WANT(munmap(p + 8 * MIB, 16 * MIB) == 0);
		WANT(mmap(p + 8 * MIB, 16 * MIB, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 8 * MIB);
	}
	/* The child has the same limit, and has used as much of it. */
	if (fork() == 0) {
		p = mmap(NULL, 40 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		_exit(p == MAP_FAILED && errno == ENOMEM ? 0 : 1);
	} else {
		int status;

		WANT(wait(&status) > 0 && status == 0);
	}
}

static volatile int told;

static void
count_signal(int sig)
{
	told++;
}

static void
file_size_is_limited(void)
{
	char block[4096] = {0};
	int fd = open("/tmp/limit", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int large = open("/tmp/limit2", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	WANT(fd >= 0 && large >= 0 && ftruncate(large, 9000) == 0);
	signal(SIGXFSZ, count_signal);
	set(RLIMIT_FSIZE, 6000, 6000);
	WANT(write(fd, block, sizeof(block)) == 4096);
	WANT(write(fd, block, sizeof(block)) == 6000 - 4096); /* what fits */
	WANT(write(fd, block, 1) < 0 && errno == EFBIG && told == 1);
	WANT(ftruncate(fd, 6001) < 0 && errno == EFBIG && told == 2);
	WANT(syscall_raw(NR_fallocate, fd, 0, 0, 6001, 0, 0) == -EFBIG && told == 3);
	WANT(write(fd, block, 0) == 0);
	/* The limit is for files that grow. */
	WANT(ftruncate(large, 8000) == 0 &&
	     syscall_raw(NR_fallocate, large, 0, 0, 8000, 0, 0) == 0);
	WANT(ftruncate(large, 8001) < 0 && errno == EFBIG && told == 4);
	WANT(lseek(fd, 100, SEEK_SET) == 100 && write(fd, block, 10) == 10);
	WANT(lseek(fd, 0, SEEK_END) == 6000);
	WANT(unlink("/tmp/limit") == 0 && unlink("/tmp/limit2") == 0);
	signal(SIGXFSZ, SIG_DFL);
	write(fd, block, 1);
	_exit(1);
}

static void
processes_are_limited(void)
{
	pid_t child[8];
	int n = 0, status;

	WANT(setuid(1234) == 0);
	set(RLIMIT_NPROC, 4, 4);
	while (n < 8 && (child[n] = fork()) > 0)
		n++;
	if (n < 8 && child[n] == 0) {
		for (;;)
			sleep(1);
	}
	WANT(n == 3 && errno == EAGAIN); /* with this one */
	while (n-- > 0) {
		kill(child[n], SIGKILL);
		WANT(waitpid(child[n], &status, 0) == child[n]);
	}
}

void
limits_try(void (*is)(const char *what, long found, long expected))
{
	static const struct {
		const char *what;
		void (*fn)(void);
		int status; /* as wait() has it */
	} tries[] = {
	    {"getrlimit, setrlimit and prlimit64 agree", calls_agree, 0},
	    {"limits that make no sense are refused", nonsense_is_refused, 0},
	    {"only user 0 raises a limit, and changes another's", only_user_0_raises, 0},
	    {"RLIMIT_NOFILE holds", files_are_limited, 0},
	    {"RLIMIT_AS holds", address_space_is_limited, 0},
	    {"RLIMIT_FSIZE holds; SIGXFSZ ends a program that does not ignore it",
	     file_size_is_limited, SIGXFSZ},
	    {"RLIMIT_NPROC holds", processes_are_limited, 0},
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		pid_t child = fork();
		int status = -1;

		if (child == 0) {
			tries[i].fn();
			_exit(0);
		}
		waitpid(child, &status, 0);
		is(tries[i].what, status, tries[i].status);
	}
}
