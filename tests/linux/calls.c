/* calls.c - the auxiliary vector, and system calls that glibc and simple programs make. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define FILE_NAME "/tmp/linux_test"

int
auxv_as_executed(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
	int sum = 0;

	if (random == NULL || path == NULL || strcmp(path, "/bin/linux_test") != 0)
		return 1;
	if (getauxval(AT_PAGESZ) != 4096 || getauxval(AT_CLKTCK) != 100 || getauxval(AT_PHNUM) == 0)
		return 2;
	if (getauxval(AT_UID) != getuid() || getauxval(AT_EGID) != getegid() ||
	    getauxval(AT_SECURE) != 0 || getauxval(AT_HWCAP) == 0)
		return 3;
	for (int i = 0; i < 16; i++)
		sum = (sum * 31 + random[i]) % 100;
	return 10 + sum;
}

#define LETTERS 100

/* What arguments() executes: the arguments from the third on are texts of LETTERS letters. */
int
arguments_as_executed(int argc, char *argv[])
{
	for (int i = 2; i < argc; i++)
		if (strlen(argv[i]) != LETTERS || argv[i][0] != 'a' + i % 26 ||
		    argv[i][LETTERS - 1] != 'a' + i % 26)
			return 1;
	return argc == 2 + 10000 && strcmp(getenv("LAST"), "here") == 0 ? 0 : 2;
}

/* Executes a program with n such arguments, or a script, whose path is the first of them. */
static int
execute_with(const char *path, bool script, int n)
{
	static char texts[26][LETTERS + 1];
	char *env[] = {"LAST=here", NULL};
	char **argv = calloc((size_t)n + 3, sizeof(*argv));
	int at = 0;

	for (int i = 0; i < 26; i++)
		memset(texts[i], 'a' + i, LETTERS);
	argv[at++] = "ignored";
	if (!script)
		argv[at++] = "arguments";
	for (int i = script ? 3 : 2; i < n + 2; i++)
		argv[at++] = texts[i % 26];
	execve(path, argv, env);
	return 100 + errno;
}

static int
executes_many(void *arg)
{
	return execute_with(linux_test_path(), false, *(int *)arg);
}

/* The interpreter, its argument and the script's path come first; the path has LETTERS letters. */
static int
executes_script(void *arg)
{
	char path[LETTERS + 1];
	FILE *f;

	memset(path, 'c', LETTERS);
	path[LETTERS] = '\0';
	memcpy(path, "c/", 2);
	if (chdir("/tmp") != 0 || (mkdir("c", 0700) != 0 && errno != EEXIST) ||
	    (f = fopen(path, "w")) == NULL)
		return 99;
	fprintf(f, "#!%s arguments\n", linux_test_path());
	fclose(f);
	chmod(path, 0700);
	return execute_with(path, true, 10000);
}

/* Of some executions, at least two must differ. */
static bool
auxv_is_right(void)
{
	int first = execute_self("auxv"), differ = 0;

	for (int i = 0; i < 8; i++) {
		int next = execute_self("auxv");
		if (next < 10 || next >= 110)
			return false;
		differ += next != first;
	}
	return first >= 10 && differ > 0;
}

static bool
random_differs(void)
{
	unsigned char a[300] = {0}, b[300] = {0};
	unsigned zeroes = 0;

	if (getrandom(a, sizeof(a), 0) != sizeof(a) ||
	    getrandom(b, sizeof(b), GRND_NONBLOCK) != 300)
		return false;
	for (unsigned i = 0; i < sizeof(a); i++)
		zeroes += a[i] == 0;
	return memcmp(a, b, sizeof(a)) != 0 && zeroes < 20 &&
	       syscall(SYS_getrandom, a, 1, 0x80) == -1 && errno == EINVAL &&
	       syscall(SYS_getrandom, -4096L, 1, 0) == -1 && errno == EFAULT;
}

static bool
clocks_go_on(void)
{
	struct timespec a, b, ms = {0, 3000000}, cpu, res;
	struct timeval tv;
	struct rusage usage;
	struct tms tms;

	if (clock_gettime(CLOCK_MONOTONIC, &a) != 0 ||
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL) != 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &b) != 0)
		return false;
	if ((b.tv_sec - a.tv_sec) * 1000000000l + b.tv_nsec - a.tv_nsec < 3000000)
		return false;
	b.tv_nsec += 1000000; /* an absolute time, perhaps with a carry */
	b.tv_sec += b.tv_nsec / 1000000000;
	b.tv_nsec %= 1000000000;
	if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &b, NULL) != 0 ||
	    clock_gettime(CLOCK_MONOTONIC, &a) != 0 || a.tv_sec < b.tv_sec ||
	    (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec))
		return false;
	return gettimeofday(&tv, NULL) == 0 && tv.tv_sec > 1600000000 &&
	       labs(time(NULL) - tv.tv_sec) <= 1 && clock_getres(CLOCK_REALTIME, &res) == 0 &&
	       res.tv_nsec == 1 && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0 &&
	       cpu.tv_sec + cpu.tv_nsec > 0 && getrusage(RUSAGE_SELF, &usage) == 0 &&
	       usage.ru_utime.tv_sec + usage.ru_utime.tv_usec > 0 &&
	       getrusage(RUSAGE_CHILDREN, &usage) == 0 &&
	       usage.ru_utime.tv_sec + usage.ru_utime.tv_usec > 0 && times(&tms) > 0 &&
	       clock_gettime(12345, &a) == -1 && errno == EINVAL;
}

static bool
names_are_told(void)
{
	struct utsname u;
	char name[16] = "";

	return uname(&u) == 0 && strcmp(u.sysname, "Linux") == 0 &&
	       strcmp(u.release, "6.1.0-kestrel") == 0 && strchr(u.machine, '6') != NULL &&
	       prctl(PR_SET_NAME, "renamed") == 0 && prctl(PR_GET_NAME, name) == 0 &&
	       strcmp(name, "renamed") == 0;
}

static int
begin_session(void *arg)
{
	if (getsid(0) == getpid() || setsid() != getpid())
		return 1;
	if (getsid(0) != getpid() || getpgrp() != getpid())
		return 2;
	return setsid() == -1 && errno == EPERM && setpgid(0, 0) == -1 && errno == EPERM ? 0 : 3;
}

static bool
ids_are_told(void)
{
	uid_t u[3];
	gid_t g[3];

	return getresuid(&u[0], &u[1], &u[2]) == 0 && u[0] == getuid() && u[2] == u[0] &&
	       getresgid(&g[0], &g[1], &g[2]) == 0 && g[1] == getegid() && getgroups(0, NULL) == 0;
}

static bool
cpus_are_told(void)
{
	cpu_set_t set;
	unsigned cpu;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 1 &&
	       CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN) && getcpu(&cpu, NULL) == 0 &&
	       CPU_ISSET(cpu, &set);
}

static bool
moves_at_offsets(void)
{
	char a[4] = "", b[4] = "";
	struct iovec pieces[] = {{a, 3}, {b, 3}};
	int pipes[2], fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || pwrite(fd, "abcdef", 6, 2) != 6 || lseek(fd, 0, SEEK_CUR) != 0 ||
	    pread(fd, a, 3, 4) != 3 || strcmp(a, "cde") != 0 || fsync(fd) != 0)
		return false;
	if (lseek(fd, 2, SEEK_SET) != 2 || readv(fd, pieces, 2) != 6 || strcmp(a, "abc") != 0 ||
	    strcmp(b, "def") != 0 || pread(fd, a, 1, -1) != -1 || errno != EINVAL)
		return false;
	if (pipe2(pipes, O_CLOEXEC) != 0 || pread(pipes[0], a, 1, 0) != -1 || errno != ESPIPE)
		return false;
	if (fcntl(fd, F_DUPFD_CLOEXEC, 20) != 20 || fcntl(20, F_GETFD) != FD_CLOEXEC)
		return false;
	return close(fd) == 0 && close(20) == 0 && close(pipes[0]) == 0 && close(pipes[1]) == 0;
}

static bool
paths_work(void)
{
	struct stat st;
	char to[100];
	int dir;

	umask(027);
	if (mkdir("/tmp/linux_dir", 0777) != 0 || lstat("/tmp/linux_dir", &st) != 0 ||
	    (st.st_mode & 0777) != 0750 || umask(022) != 027 || st.st_gid != getgid())
		return false;
	dir = open("/tmp/linux_dir", O_RDONLY | O_DIRECTORY);
	if (dir < 0 || fchdir(dir) != 0 || getcwd(to, sizeof(to)) == NULL ||
	    strcmp(to, "/tmp/linux_dir") != 0 || chdir("/") != 0 || close(dir) != 0)
		return false;
	return access(FILE_NAME, R_OK | W_OK) == 0 && access(FILE_NAME, X_OK) == -1 &&
	       errno == EACCES && access("/nothing", F_OK) == -1 && errno == ENOENT &&
	       faccessat(AT_FDCWD, "/tmp", F_OK, AT_EACCESS) == 0 &&
	       readlink(FILE_NAME, to, sizeof(to)) == -1 && errno == EINVAL &&
	       rmdir("/tmp/linux_dir") == 0 && unlink(FILE_NAME) == 0;
}

void
test_calls(void)
{
	result(in_child(executes_many, &(int){10000}) == 0 &&
		   in_child(executes_many, &(int){30000}) == 100 + E2BIG,
	       "exec: arguments and the pointers to them, up to 2 MiB");
	result(in_child(executes_script, NULL) == 0, "a script gets as many arguments");
	result(auxv_is_right(), "the auxiliary vector tells path, page size, ids, random bytes");
	result(random_differs(), "getrandom gives bytes that differ");
	result(clocks_go_on(), "clocks go on, and sleeps end after their time");
	result(names_are_told(), "uname and prctl tell names");
	result(in_child((int (*)(void *))begin_session, NULL) == 0, "setsid begins a session");
	result(ids_are_told(), "user and group numbers are told");
	result(cpus_are_told(), "the CPUs are told");
	result(moves_at_offsets(), "pread, pwrite and readv move bytes");
	result(paths_work(), "umask, access, fchdir and readlink do what Linux's do");
	result(syscall(SYS_rseq, 0, 0, 0, 0) == -1 && errno == ENOSYS, "an unknown call: ENOSYS");
}
