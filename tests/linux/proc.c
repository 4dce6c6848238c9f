/*
 * proc.c - /proc, as Linux's programs read it: its files say what this process knows of itself. All
 * of it holds on Linux, too: `linux_test proc`.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define AREAS 10000

/* Reads a file. Its length, or -errno. NUL-terminated. */
static long
slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY);
	size_t n = 0;
	ssize_t r = 0;

	if (fd < 0)
		return -errno;
	while (n < size - 1 && (r = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)r;
	buf[n] = '\0';
	r = r < 0 ? -errno : (ssize_t)n;
	close(fd);
	return r;
}

/* The value of a line "KEY:\tVALUE". */
static const char *
value_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (; text != NULL; text = strchr(text, '\n') != NULL ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, key, n) == 0 && text[n] == ':')
			return text + n + 1 + strspn(text + n + 1, " \t");
	return "";
}

static bool
status_tells(void)
{
	char text[4096], stat[1024], comm[32];
	unsigned long utime, start, vsize;
	int ppid, pgrp, sid, pid, threads;
	char state;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	if (slurp("/proc/self/status", text, sizeof(text)) < 0 ||
	    slurp("/proc/self/stat", stat, sizeof(stat)) < 0)
		return false;
	signal(SIGUSR2, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	signal(SIGUSR2, SIG_DFL);
	if (sscanf(
		stat,
		"%d (%31[^)]) %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %lu %*u %*d %*d %*d %*d %d %*d %lu %lu",
		&pid, comm, &state, &ppid, &pgrp, &sid, &utime, &threads, &start, &vsize) != 10)
		return false;
	return pid == getpid() && ppid == getppid() && pgrp == getpgrp() && sid == getsid(0) &&
	       state == 'R' && threads >= 1 && vsize > 100000 && start > 0 &&
	       atoi(value_of(text, "Pid")) == pid && atoi(value_of(text, "PPid")) == ppid &&
	       atoi(value_of(text, "Threads")) == threads && value_of(text, "State")[0] == 'R' &&
	       (strtoul(value_of(text, "SigBlk"), NULL, 16) >> (SIGUSR2 - 1) & 1) &&
	       ((strtoul(value_of(text, "SigPnd"), NULL, 16) |
		 strtoul(value_of(text, "ShdPnd"), NULL, 16)) >>
		    (SIGUSR2 - 1) &
		1) &&
	       (unsigned)atoi(value_of(text, "Uid")) == getuid();
}

/* Time in the program and in the kernel, in ms. */
struct spent {
	long user, system;
};

static struct spent
of_rusage(const struct rusage *r)
{
	return (struct spent){r->ru_utime.tv_sec * 1000 + r->ru_utime.tv_usec / 1000,
			      r->ru_stime.tv_sec * 1000 + r->ru_stime.tv_usec / 1000};
}

static struct spent
by_rusage(int who)
{
	struct rusage r = {0};

	getrusage(who, &r);
	return of_rusage(&r);
}

/* From fields `at` and the next of a /proc file, in 1/100 s; the first is 1. */
static struct spent
by_file(const char *path, int at)
{
	char text[4096], *word;
	long ticks[2] = {-1, -1};

	if (slurp(path, text, sizeof(text)) < 0)
		return (struct spent){-1, -1};
	word = strtok(text, " ");
	for (int i = 1; word != NULL && i < at + 2; i++, word = strtok(NULL, " "))
		if (i >= at)
			ticks[i - at] = atol(word);
	return (struct spent){ticks[0] * 10, ticks[1] * 10};
}

/* Much of the one, and little of the other. */
static bool
is_mostly(struct spent from, struct spent to, bool system)
{
	long user = to.user - from.user, kernel = to.system - from.system;
	long much = system ? kernel : user, little = system ? user : kernel;

	if (much >= 80 && little <= much / 2)
		return true;
	printf("# user %ld ms, system %ld ms\n", user, kernel);
	return false;
}

/*
 * A host that gives the guest no CPU for a moment adds that to the one or the other: then this goes
 * on until it is little, but not for ever.
 */
static void
spend(bool system)
{
	static char bytes[1 << 16];
	struct spent from = by_rusage(RUSAGE_SELF), now;
	long user, kernel, much, little;
	int zero = open("/dev/zero", O_RDONLY);

	do {
		for (volatile unsigned i = 0; !system && i < 1000000; i++)
			;
		for (int i = 0; system && i < 20; i++)
			if (read(zero, bytes, sizeof(bytes)) < 0)
				_exit(1);
		now = by_rusage(RUSAGE_SELF);
		user = now.user - from.user;
		kernel = now.system - from.system;
		much = system ? kernel : user;
		little = system ? user : kernel;
	} while (much < 100 || (little > much / 4 && much + little < 10000));
	close(zero);
}

static struct spent
by_times(void)
{
	struct tms t;

	times(&t);
	return (struct spent){t.tms_utime * 10, t.tms_stime * 10};
}

/* All that tell it say the same of a program that computes, or has the kernel work. */
static bool
time_is_told_apart(bool system)
{
	struct spent a[4], b[4];

	for (int i = 0; i < 2; i++) {
		struct spent *to = i == 0 ? a : b;

		if (i == 1)
			spend(system);
		to[0] = by_rusage(RUSAGE_SELF);
		to[1] = by_rusage(RUSAGE_THREAD);
		to[2] = by_times();
		to[3] = by_file("/proc/self/stat", 14);
	}
	for (int i = 0; i < 4; i++)
		if (!is_mostly(a[i], b[i], system))
			return false;
	return true;
}

static bool
childrens_time_is_told_apart(bool system)
{
	struct spent from = by_rusage(RUSAGE_CHILDREN), none = {0, 0};
	struct rusage used = {0};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		spend(system);
		_exit(0);
	}
	return wait4(pid, &status, 0, &used) == pid && status == 0 &&
	       is_mostly(none, of_rusage(&used), system) &&
	       is_mostly(from, by_rusage(RUSAGE_CHILDREN), system);
}

/*
 * A process that has a CPU for itself, and so is never switched out, is seen to use it; and so is
 * the CPU.
 */
static bool
a_hog_is_seen(void)
{
	struct spent from = by_file("/proc/stat", 2), to;
	char path[64];
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do
		usleep(10000);
	while (by_file(path, 14).user < 100);
	to = by_file("/proc/stat", 2);
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid && to.user - from.user >= 80;
}

static bool
arguments_are_there(void)
{
	char text[8192], path[256], self[256];
	long n = slurp("/proc/self/cmdline", text, sizeof(text));
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	struct stat a, b;

	if (n <= 0 || text[n - 1] != '\0' || length <= 0)
		return false;
	path[length] = '\0';
	realpath(linux_test_path(), self);
	return strcmp(path, self) == 0 && stat("/proc/self/exe", &a) == 0 && stat(self, &b) == 0 &&
	       a.st_ino == b.st_ino && slurp("/proc/self/environ", text, sizeof(text)) > 0 &&
	       strstr(text, "=") != NULL;
}

static void *
named_thread(void *arg)
{
	char path[64], text[64];
	int fd;

	prctl(PR_SET_NAME, "other");
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", gettid());
	if (slurp(path, text, sizeof(text)) != 6 || strcmp(text, "other\n") != 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/task/%d/maps", gettid()); /* gdb reads this one */
	if (slurp(path, text, sizeof(text)) <= 0 || strchr(text, '-') == NULL)
		return NULL;
	fd = open("/proc/thread-self/comm", O_WRONLY);
	if (fd < 0 || write(fd, "a name that is too long", 23) != 23)
		return NULL;
	close(fd);
	prctl(PR_GET_NAME, text);
	*(bool *)arg = strcmp(text, "a name that is ") == 0;
	return NULL;
}

static bool
threads_have_names(void)
{
	pthread_t thread;
	bool good = false;
	char text[64], name[16];
	int fd;

	if (pthread_create(&thread, NULL, named_thread, &good) != 0)
		return false;
	pthread_join(thread, NULL);
	fd = open("/proc/1/comm", O_WRONLY);
	if (fd >= 0 && (write(fd, "x", 1) != -1 || errno != EINVAL))
		return false;
	close(fd);
	prctl(PR_GET_NAME, name);
	return good && slurp("/proc/self/comm", text, sizeof(text)) > (long)strlen(name) &&
	       strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '\n';
}

/* What ls does: once from the start, once more from the middle on. */
static bool
directories_list(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool self = false, stat_file = false, one = false;
	unsigned n = 0, again = 0;
	long middle = 0;

	while (d != NULL && (e = readdir(d)) != NULL) {
		self |= strcmp(e->d_name, "self") == 0 && e->d_type == DT_LNK;
		stat_file |= strcmp(e->d_name, "stat") == 0 && e->d_type == DT_REG;
		one |= strcmp(e->d_name, "1") == 0 && e->d_type == DT_DIR;
		if (++n == 10)
			middle = telldir(d);
	}
	if (d == NULL)
		return false;
	for (seekdir(d, middle); readdir(d) != NULL;)
		again++;
	closedir(d);
	return self && stat_file && one && n > 15 && again + 10 == n;
}

static bool
links_lead_to_files(void)
{
	int ends[2], fd = open("/tmp/linux_proc", O_RDWR | O_CREAT | O_TRUNC, 0600), again;
	char path[64], to[64], text[32] = "";
	struct stat a, b;
	ssize_t n;

	if (fd < 0 || pipe(ends) != 0 || write(fd, "kept", 4) != 4)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	if (strcmp(to, "/tmp/linux_proc") != 0 || lstat(path, &a) != 0 ||
	    (a.st_mode & 0777) != 0700)
		return false;
	unlink("/tmp/linux_proc");
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	again = open(path, O_RDONLY); /* has no name any more */
	if (again < 0 || read(again, text, sizeof(text)) != 4 || strstr(to, " (deleted)") == NULL)
		return false;
	close(again);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	again = open(path, O_WRONLY);
	if (again < 0 || write(again, "p", 1) != 1 || read(ends[0], text, 9) != 1 ||
	    stat(path, &a) != 0 || fstat(ends[0], &b) != 0 || a.st_ino != b.st_ino)
		return false;
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	snprintf(text, sizeof(text), "pipe:[%lu]", a.st_ino);
	close(again);
	close(ends[0]);
	close(ends[1]);
	close(fd);
	return strcmp(to, text) == 0 && readlink(path, to, sizeof(to)) == -1 && errno == ENOENT &&
	       chdir("/proc/self/task/..") == 0 && getcwd(to, sizeof(to)) != NULL &&
	       atoi(to + 6) == getpid() && chdir("/proc/self/cwd/../..") == 0 &&
	       getcwd(to, sizeof(to)) != NULL && strcmp(to, "/") == 0;
}

static bool
fdinfo_tells(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char path[64], text[1024];

	if (fd < 0 || read(fd, text, 7) != 7)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return slurp(path, text, sizeof(text)) > 0 && close(fd) == 0 &&
	       atoi(value_of(text, "pos")) == 7 &&
	       (strtol(value_of(text, "flags"), NULL, 8) & (O_CLOEXEC | O_ACCMODE)) == O_CLOEXEC;
}

/* So many areas that their text is megabytes, read by pieces of odd sizes. */
static bool
maps_of_any_size(void)
{
	const unsigned areas = how_often(AREAS);
	size_t length = areas * 2 * 4096ul, n = 0, lines = 0;
	char *at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = malloc(8 << 20), line[128];
	int fd = open("/proc/self/maps", O_RDONLY);
	ssize_t r;

	if (at == MAP_FAILED || text == NULL || fd < 0)
		return false;
	for (size_t i = 0; i < areas; i++)
		mprotect(at + 2 * i * 4096, 4096, PROT_READ | PROT_WRITE);
	while ((r = read(fd, text + n, 777 + n % 5000)) > 0)
		n += (size_t)r;
	close(fd);
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	text[n] = '\0';
	snprintf(line, sizeof(line), "\n%lx-%lx rw-p 00000000 00:00 0 \n",
		 (unsigned long)at + areas * 4096ul, (unsigned long)at + (areas + 1) * 4096ul);
	r = strstr(text, line) != NULL && strstr(text, "[stack]") != NULL && lines >= 2 * areas;
	munmap(at, length);
	free(text);
	return r;
}

/* Fields 28 and 45 to 51 of a stat file: where the stack begins, the heap, and the arguments. */
static bool
has_addresses(const char *path)
{
	unsigned long at[8] = {0};
	char text[1024], *word = NULL, *rest = NULL;

	if (slurp(path, text, sizeof(text)) > 0)
		word = strtok_r(text, " ", &rest);
	for (int i = 1, n = 0; word != NULL && n < 8; i++, word = strtok_r(NULL, " ", &rest))
		if (i == 28 || i >= 45)
			at[n++] = strtoul(word, NULL, 10);
	for (int n = 1; n < 8; n++)
		at[0] |= at[n];
	return at[0] != 0;
}

static int
as_stranger(void *arg)
{
	char text[1024], path[64];
	int fd = open("/proc/self/environ", O_RDONLY);

	close(fd);
	if (slurp("/proc/1/wchan", text, sizeof(text)) <= 1 || !has_addresses("/proc/1/stat") ||
	    !has_addresses("/proc/self/stat"))
		return 6;
	if (fd < 0 || setgid(1000) != 0 || setuid(1000) != 0)
		return 1;
	if (slurp("/proc/1/environ", text, sizeof(text)) != -EACCES ||
	    opendir("/proc/1/fd") != NULL || errno != EACCES ||
	    readlink("/proc/1/exe", text, sizeof(text)) != -1 || errno != EACCES ||
	    chdir("/proc/1/cwd") == 0 || errno != EACCES ||
	    slurp("/proc/1/maps", text, sizeof(text)) != -EACCES)
		return 2;
	if (slurp("/proc/1/status", text, sizeof(text)) <= 0 ||
	    open("/proc/sys/kernel/hostname", O_WRONLY) >= 0 || errno != EACCES)
		return 3;
	if (slurp("/proc/1/wchan", text, sizeof(text)) != 1 || text[0] != '0' ||
	    slurp("/proc/1/task/1/wchan", text, sizeof(text)) != 1 || text[0] != '0' ||
	    slurp("/proc/1/stat", text, sizeof(text)) <= 0 || has_addresses("/proc/1/stat") ||
	    has_addresses("/proc/1/task/1/stat") || !has_addresses("/proc/self/stat"))
		return 7;
	if (slurp("/proc/kallsyms", text, sizeof(text)) <= 0 ||
	    strncmp(text, "0000000000000000 ", 17))
		return 4;
	snprintf(path, sizeof(path), "/proc/%d/comm", getppid());
	return open(path, O_WRONLY) < 0 && errno == EACCES ? 0 : 5;
}

/* A process that ends while its files are open: ESRCH; its directory is empty. */
static bool
the_dead_tell_nothing(void)
{
	char path[64], text[4096];
	pid_t pid = fork();
	int stat_fd, dir, status;
	bool good;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d", pid);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	stat_fd = openat(dir, "stat", O_RDONLY);
	kill(pid, SIGKILL);
	do
		good = pread(stat_fd, text, sizeof(text), 0) > 0;
	while (good && strstr(text, ") Z ") == NULL);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	good = good && slurp(path, text, sizeof(text)) == 0;
	waitpid(pid, &status, 0);
	good = good && pread(stat_fd, text, sizeof(text), 0) == -1 && errno == ESRCH;
	good = good && openat(dir, "stat", O_RDONLY) == -1 && (errno == ENOENT || errno == ESRCH);
	close(stat_fd);
	close(dir);
	return good;
}

/* Kilobytes in a row of /proc/meminfo. */
static long
meminfo(const char *row)
{
	char text[4096] = "";
	const char *value;

	if (slurp("/proc/meminfo", text, sizeof(text)) <= 0)
		return -1;
	value = value_of(text, row);
	return value != NULL ? strtol(value, NULL, 10) : -1;
}

/* A page in each of many tables: in AnonPages and in PageTables. */
static bool
meminfo_tells_whose(void)
{
	enum { TABLES = 64, KB = 4 * TABLES };
	const size_t apart = 2 << 20, size = TABLES * apart;
	const long anon = meminfo("AnonPages"), tables = meminfo("PageTables");
	const long stacks = meminfo("KernelStack"), mapped = meminfo("VmallocUsed");
	long more_anon, more_tables;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	for (size_t at = 0; at < size; at += apart)
		p[at] = 1;
	more_anon = meminfo("AnonPages") - anon;
	more_tables = meminfo("PageTables") - tables;
	munmap(p, size);
	printf("# %d kB written: AnonPages %+ld kB, PageTables %+ld kB\n", KB, more_anon,
	       more_tables);
	return anon > 0 && tables > 0 && stacks > 0 && mapped >= stacks && more_anon >= KB &&
	       more_anon < 2 * KB && more_tables > KB / 2 && more_tables < 2 * KB &&
	       meminfo("AnonPages") - anon < KB / 2;
}

static bool
machine_tells(void)
{
	char text[65536];
	unsigned long total, left, user, idle;
	double up, rest, loads[3];

	if (slurp("/proc/meminfo", text, sizeof(text)) <= 0)
		return false;
	total = strtoul(value_of(text, "MemTotal"), NULL, 10);
	left = strtoul(value_of(text, "MemFree"), NULL, 10);
	if (total == 0 || left == 0 || left > total)
		return false;
	if (slurp("/proc/stat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "cpu  %lu %*u %*u %lu", &user, &idle) != 2 ||
	    strstr(text, "\ncpu0 ") == NULL || strstr(text, "\nctxt ") == NULL ||
	    strstr(text, "\nbtime ") == NULL)
		return false;
	return slurp("/proc/uptime", text, sizeof(text)) > 0 &&
	       sscanf(text, "%lf %lf\n", &up, &rest) == 2 && up > 0 &&
	       slurp("/proc/loadavg", text, sizeof(text)) > 0 &&
	       sscanf(text, "%lf %lf %lf %*u/%*u %*u\n", &loads[0], &loads[1], &loads[2]) == 3 &&
	       slurp("/proc/cpuinfo", text, sizeof(text)) > 0 &&
	       strncmp(text, "processor\t: 0\n", 14) == 0 &&
	       /* What needs XSAVE is there where the kernel has switched that on. */
	       (strstr(text, " osxsave") != NULL ||
		(strstr(text, " xsave") == NULL && strstr(text, " avx") == NULL &&
		 strstr(text, " fma") == NULL && strstr(text, " f16c") == NULL)) &&
	       slurp("/proc/mounts", text, sizeof(text)) > 0 &&
	       strstr(text, " /proc proc ") != NULL &&
	       slurp("/proc/filesystems", text, sizeof(text)) > 0 &&
	       strstr(text, "nodev\tproc\n") != NULL;
}

/* ---- all of /proc, again and again, while processes come and go ---- */

static bool
expected(int error)
{
	return error == ENOENT || error == ESRCH || error == EACCES || error == EINVAL ||
	       error == ENOTDIR || error == EPERM || error == EIO || error == ENOMEM;
}

/* Reads all in dir, whose name is known to be no link. False: an error that is not expected. */
static bool
read_all(int at, const char *name, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	char text[512], to[256];
	struct dirent *e;
	bool good = true;
	DIR *d;

	if (fd < 0)
		return expected(errno);
	d = fdopendir(fd);
	while (d != NULL && good && (errno = 0, e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || (depth == 0 && e->d_type == DT_REG))
			continue; /* of the machine's files some do not end */
		if (depth == 0 && strcmp(e->d_name, "sys") == 0)
			continue;
		if (e->d_type == DT_LNK) {
			good = readlinkat(fd, e->d_name, to, sizeof(to)) >= 0 || expected(errno);
		} else if (e->d_type == DT_DIR) {
			good = depth > 3 || read_all(fd, e->d_name, depth + 1);
		} else if (strcmp(e->d_name, "maps") == 0 || strcmp(e->d_name, "environ") == 0 ||
			   strncmp(e->d_name, "stat", 4) == 0 ||
			   strcmp(e->d_name, "cmdline") == 0 || strcmp(e->d_name, "comm") == 0 ||
			   depth == 2) {
			int file = openat(fd, e->d_name, O_RDONLY | O_NONBLOCK);

			good = file >= 0 || expected(errno);
			while (file >= 0 && read(file, text, sizeof(text)) > 0)
				;
			close(file);
		}
	}
	good = good && (errno == 0 || expected(errno));
	if (d != NULL)
		closedir(d);
	return good;
}

static int
come_and_go(void *arg)
{
	for (unsigned i = 0; i < how_often(60); i++) {
		pid_t pid = fork();

		if (pid == 0 && i % 4 == 1)
			execl(linux_test_path(), linux_test_path(), "nothing", NULL);
		if (pid == 0)
			_exit(close(open("/dev/null", O_RDONLY)) != 0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int
read_often(void *arg)
{
	unsigned *stop = arg, rounds = 0;

	do
		if (!read_all(AT_FDCWD, "/proc", 0))
			return 1;
	while (++rounds < 3 || !__atomic_load_n(stop, __ATOMIC_RELAXED));
	return 0;
}

static bool
all_is_read_while_processes_end(void)
{
	unsigned *stop =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t readers[2];
	int status, bad = 0;
	pid_t makers[2];

	for (unsigned i = 0; i < 2; i++) {
		if ((readers[i] = fork()) == 0)
			_exit(read_often(stop));
		if ((makers[i] = fork()) == 0)
			_exit(come_and_go(NULL));
	}
	for (unsigned i = 0; i < 2; i++)
		bad += waitpid(makers[i], &status, 0) != makers[i] || status != 0;
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		bad += waitpid(readers[i], &status, 0) != readers[i] || status != 0;
	munmap(stop, 4096);
	return bad == 0;
}

/* A child that was waited for is not in /proc, also while its thread is still ending. */
static bool
the_gone_are_gone(void)
{
	char path[64];
	bool good = true;

	for (unsigned i = 0; good && i < how_often(400); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		snprintf(path, sizeof(path), "/proc/%d", pid);
		good = waitpid(pid, NULL, 0) == pid && FAILS(access(path, F_OK), ENOENT);
	}
	return good;
}

void
test_proc(void)
{
	result(status_tells(),
	       "/proc/self/stat and status say who the process is and what it blocks");
	result(time_is_told_apart(false), "time in the program counts as its own");
	result(time_is_told_apart(true), "time in system calls counts as the kernel's");
	result(childrens_time_is_told_apart(false) && childrens_time_is_told_apart(true),
	       "the same of children that were waited for");
	result(a_hog_is_seen(), "the time of a process that never loses its CPU is told");
	result(arguments_are_there(), "/proc/self/cmdline, environ and exe are the program's");
	result(threads_have_names(),
	       "a thread reads and writes its name in /proc, but not another's");
	result(directories_list(), "/proc lists processes and files, also from the middle on");
	result(links_lead_to_files(),
	       "links in /proc/self/fd and cwd lead to the files themselves");
	result(fdinfo_tells(), "/proc/self/fdinfo tells offset and flags");
	result(maps_of_any_size(), "/proc/self/maps lists 20,000 areas");
	result(in_child(as_stranger, NULL) == 0,
	       "of others' processes a user sees what Linux shows");
	result(the_dead_tell_nothing(), "files of a process that has ended fail with ESRCH");
	result(the_gone_are_gone(), "a process that was waited for is gone");
	result(
	    meminfo_tells_whose(),
	    "/proc/meminfo tells which memory is programs', page tables, stacks and the kernel's");
	result(machine_tells(),
	       "/proc/stat, meminfo, uptime, loadavg, cpuinfo and mounts are well-formed");
	result(all_is_read_while_processes_end(),
	       "all of /proc is read while processes come and go");
}
