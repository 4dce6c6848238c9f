/*
 * misc.c - calls that advise, lock and restrict. They do the same on Linux (word "misc").
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/membarrier.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define DIR  "/tmp/linux_test.misc"
#define PAGE 4096ul

static bool
advice_is_checked(void)
{
	int fd = open("/tmp", O_RDONLY), ends[2], file = memfd_create("advice", 0);
	bool good;

	good = pipe(ends) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL) == 0 &&
	       posix_fadvise(file, 10, 100, POSIX_FADV_NOREUSE) == 0 &&
	       posix_fadvise(file, 0, 0, 6) == EINVAL && posix_fadvise(file, 0, -1, 0) == EINVAL &&
	       posix_fadvise(ends[0], 0, 0, 0) == ESPIPE && posix_fadvise(999, 0, 0, 0) == EBADF &&
	       syncfs(fd) == 0 && FAILS(syncfs(999), EBADF);
	close(fd);
	close(file);
	close(ends[0]);
	close(ends[1]);
	return good;
}

/* What is read, the disk's counts tell: misc_read_ahead(). */
static bool
readahead_is_checked(void)
{
	int dir = open("/tmp", O_RDONLY), ends[2], file = memfd_create("ahead", 0);
	int writer = open(DIR ".ahead", O_WRONLY | O_CREAT, 0600), place = open("/tmp", O_PATH);
	bool good = pipe(ends) == 0 && ftruncate(file, 3 * PAGE) == 0;

	good = good && readahead(file, 0, PAGE) == 0 && readahead(file, 100, 0) == 0 &&
	       readahead(file, 10 * PAGE, PAGE) == 0 && readahead(file, -1, PAGE) == 0 &&
	       readahead(file, INT64_MAX, INT64_MAX) == 0 &&
	       FAILS(readahead(file, 0, SIZE_MAX), EINVAL) &&
	       FAILS(readahead(dir, 0, PAGE), EINVAL) &&
	       FAILS(readahead(ends[0], 0, PAGE), EINVAL) &&
	       FAILS(readahead(writer, 0, PAGE), EBADF) &&
	       FAILS(readahead(place, 0, PAGE), EBADF) && FAILS(readahead(999, 0, PAGE), EBADF);
	close(dir);
	close(place);
	close(writer);
	close(file);
	close(ends[0]);
	close(ends[1]);
	return unlink(DIR ".ahead") == 0 && good;
}

/* Of a file of 8 pages, reads all but the first; and what is after its end, which is nothing. */
int
misc_read_ahead(const char *path)
{
	int fd = open(path, O_RDONLY);

	return readahead(fd, (off_t)PAGE + 100, 2 * PAGE) == 0 && readahead(fd, 4 * PAGE, 0) == 0 &&
		       readahead(fd, 100 * PAGE, PAGE) == 0
		   ? 0
		   : 1;
}

/* A number of smaps, of the area with that address. -1: it has none. */
static long
smaps_number(const void *at, const char *word)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, end, found = 0;
	char line[512], name[32];
	long n = -1, kb;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			found = start <= (uintptr_t)at && (uintptr_t)at < end;
		else if (found && sscanf(line, "%31s %ld kB", name, &kb) == 2 &&
			 strcmp(name, word) == 0)
			n = kb;
	}
	if (f != NULL)
		fclose(f);
	return n;
}

/* What is locked is counted. As root, whose memory may be locked. */
static int
locked_memory_is_told(void *arg)
{
	char *p = mmap(NULL, 10 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = status_number(getpid(), "VmLck:"), most;
	pid_t pid;
	int status;

	p += PAGE; /* its neighbours are others, so no area is joined with it */
	if (before != 0 || status_number(getpid(), "VmPin:") != 0 ||
	    mprotect(p, 8 * PAGE, PROT_READ | PROT_WRITE) != 0 || mprotect(p, PAGE, PROT_NONE) != 0)
		return 1;
	if (mlock(p + PAGE, 3 * PAGE) != 0 || status_number(getpid(), "VmLck:") != 12 ||
	    smaps_number(p + PAGE, "Locked:") != 12 || smaps_number(p + PAGE, "Rss:") != 12 ||
	    smaps_number(p + PAGE, "Size:") != 12 || smaps_number(p + 4 * PAGE, "Rss:") != 0 ||
	    smaps_number(p + 4 * PAGE, "Locked:") != 0 || smaps_number(p, "Size:") != 4)
		return 2;
	pid = fork();
	if (pid == 0)
		_exit(status_number(getpid(), "VmLck:") != 0);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 3;
	if (munlock(p + 2 * PAGE, PAGE) != 0 || status_number(getpid(), "VmLck:") != 8 ||
	    munmap(p + 3 * PAGE, PAGE) != 0 || status_number(getpid(), "VmLck:") != 4)
		return 4;
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		return 5;
	most = status_number(getpid(), "VmLck:");
	if (most < 24 ||
	    mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ||
	    status_number(getpid(), "VmLck:") != most + 8)
		return 6;
	if (munlockall() != 0 || status_number(getpid(), "VmLck:") != 0)
		return 7;
	p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED,
		 -1, 0);
	if (p == MAP_FAILED || status_number(getpid(), "VmLck:") != 12)
		return 8;
	/* The old place, which stays, is locked no more. Newer Linux counts it all the same. */
	return mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) == MAP_FAILED ||
	       (is_kestrel() && status_number(getpid(), "VmLck:") != 12);
}

static unsigned
count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	while (f != NULL && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f != NULL)
		fclose(f);
	return n;
}

/* Areas that differ in their locks only are one again. */
static int
unlocked_mappings_join(void *arg)
{
	char *p = mmap(NULL, 66 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned before;

	p += PAGE; /* its neighbours are others */
	if (mprotect(p, 64 * PAGE, PROT_READ | PROT_WRITE) != 0)
		return 3;
	memset(p, 1, 64 * PAGE); /* before Linux has several areas for them */
	count_mappings();        /* now the heap is there */
	before = count_mappings();
	for (int i = 1; i < 64; i += 2)
		if (mlock(p + i * PAGE, PAGE) != 0)
			return 1;
	if (count_mappings() < before + 62)
		return 2;
	return munlockall() != 0 || count_mappings() != before;
}

/* The first page of a file, which is in its cache, and the second, which is not, are mapped for the
 * first time, by this user. */
static int
cached_pages(void *user)
{
	int fd = open("/tmp/linux_mincore", O_RDONLY);
	unsigned char there[2] = {0, 0};
	char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	bool good = setresuid(*(uid_t *)user, *(uid_t *)user, *(uid_t *)user) == 0 &&
		    p != MAP_FAILED && mincore(p, 2 * PAGE, there) == 0;

	return good ? (there[0] & 1) | (there[1] & 1) << 1 : 4;
}

static bool
mincore_knows_the_cache(void)
{
	int fd = open("/tmp/linux_mincore", O_RDWR | O_CREAT, 0644);
	uid_t self = geteuid(), other = 1000;
	bool good = fd >= 0 && pwrite(fd, "x", 1, 0) == 1 && ftruncate(fd, 2 * PAGE) == 0;

	/* Who could not write to it is told that all is there. */
	good = good && in_child(cached_pages, &self) == 1 &&
	       (self != 0 || in_child(cached_pages, &other) == 3);
	return close(fd) == 0 && unlink("/tmp/linux_mincore") == 0 && good;
}

static bool
memory_is_locked(void)
{
	char *p = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char there[6];
	bool good;

	if (p == MAP_FAILED)
		return false;
	p[PAGE] = 1;
	good = mincore(p, 6 * PAGE, there) == 0 && !(there[0] & 1) && (there[1] & 1) &&
	       !(there[2] & 1) && mlock(p + 2 * PAGE + 1, PAGE) == 0 &&
	       mincore(p, 6 * PAGE, there) == 0 && (there[2] & 1) && (there[3] & 1) &&
	       !(there[4] & 1) && mlock2(p + 4 * PAGE, PAGE, MLOCK_ONFAULT) == 0 &&
	       mincore(p + 4 * PAGE, 1, there) == 0 && !(there[0] & 1) &&
	       munlock(p, 6 * PAGE) == 0 && FAILS(mincore(p + 1, PAGE, there), EINVAL) &&
	       FAILS(mincore(NULL, ~0ul, there), ENOMEM) &&
	       FAILS(mincore(p, PAGE, NOWHERE), EFAULT) && FAILS(mlock2(p, PAGE, 2), EINVAL) &&
	       FAILS(mlockall(0), EINVAL) && FAILS(mlockall(8), EINVAL) &&
	       FAILS(mlockall(MCL_ONFAULT), EINVAL) &&
	       (mlockall(MCL_CURRENT) == 0 || (errno == ENOMEM && geteuid() != 0)) &&
	       munlockall() == 0;
	munmap(p + 5 * PAGE, PAGE);
	good &= FAILS(mlock(p + 4 * PAGE, 2 * PAGE), ENOMEM) &&
		FAILS(munlock(p + 4 * PAGE, 2 * PAGE), ENOMEM) &&
		FAILS(mincore(p + 4 * PAGE, 2 * PAGE, there), ENOMEM);
	munmap(p, 5 * PAGE);
	return good;
}

static int
locking_is_limited(void *arg)
{
	struct rlimit two = {2 * PAGE, 2 * PAGE}, none = {0, 0};
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (setrlimit(RLIMIT_MEMLOCK, &two) != 0 || (getuid() == 0 && setuid(4711) != 0))
		return 1;
	if (mlock(p, 2 * PAGE) != 0 || munlock(p, 2 * PAGE) != 0 ||
	    !FAILS(mlock(p, 3 * PAGE), ENOMEM))
		return 2;
	/* All that is locked counts, and each page once. */
	if (mlock(p, PAGE) != 0 || mlock(p + PAGE, PAGE) != 0 || mlock(p, 2 * PAGE) != 0 ||
	    !FAILS(mlock(p + 2 * PAGE, PAGE), ENOMEM) || !FAILS(mlockall(MCL_CURRENT), ENOMEM) ||
	    mremap(p + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED || errno != EAGAIN ||
	    mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) !=
		MAP_FAILED ||
	    errno != EAGAIN)
		return 4;
	if (mlockall(MCL_FUTURE) != 0 ||
	    mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    errno != EAGAIN || sbrk(16 * PAGE) != (void *)-1 ||
	    status_number(getpid(), "VmLck:") != 8 || munlockall() != 0 || sbrk(PAGE) == (void *)-1)
		return 5;
	if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || munlock(p, 3 * PAGE) != 0 ||
	    !FAILS(mlock(p, 1), EPERM) || !FAILS(mlockall(MCL_FUTURE), EPERM))
		return 3;
	return 0;
}

static long
barrier(int command, int flags)
{
	return syscall(SYS_membarrier, command, flags, 0);
}

static int
barriers(void *arg)
{
	long known = barrier(MEMBARRIER_CMD_QUERY, 0);

	if (known < 0 || !(known & MEMBARRIER_CMD_GLOBAL) ||
	    !(known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	    !(known & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		return 1;
	return FAILS(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0), EPERM) &&
		       barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
		       barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0 &&
		       barrier(MEMBARRIER_CMD_GLOBAL, 0) == 0 &&
		       FAILS(barrier(1 << 30, 0), EINVAL) &&
		       FAILS(barrier(MEMBARRIER_CMD_GLOBAL, 77), EINVAL)
		   ? 0
		   : 2;
}

static long
set_ioprio(int which, int who, int prio)
{
	return syscall(SYS_ioprio_set, which, who, prio);
}

static long
get_ioprio(int which, int who)
{
	return syscall(SYS_ioprio_get, which, who);
}

static int
has_ioprio(void *prio)
{
	return get_ioprio(IOPRIO_WHO_PROCESS, 0) == *(long *)prio ? 0 : 1;
}

static int
io_priorities(void *arg)
{
	long prio = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6), idle = IOPRIO_CLASS_IDLE << 13;

	setpgid(0, 0);
	if (set_ioprio(IOPRIO_WHO_PROCESS, 0, (int)prio) != 0 || has_ioprio(&prio) != 0 ||
	    in_child(has_ioprio, &prio) != 0 || get_ioprio(IOPRIO_WHO_PGRP, 0) != prio)
		return 1;
	if (set_ioprio(IOPRIO_WHO_PGRP, getpid(), (int)idle) != 0 || has_ioprio(&idle) != 0)
		return 2;
	return FAILS(set_ioprio(9, 0, (int)prio), EINVAL) &&
		       FAILS(set_ioprio(IOPRIO_WHO_PROCESS, 0, 5 << 13), EINVAL) &&
		       FAILS(get_ioprio(0, 0), EINVAL) &&
		       FAILS(get_ioprio(IOPRIO_WHO_PROCESS, 0x3ffffff), ESRCH)
		   ? 0
		   : 3;
}

static int
nothing_is_unshared(void *arg)
{
	struct clone_args time = {.flags = CLONE_NEWTIME, .exit_signal = SIGCHLD};

	if (unshare(0) != 0 || unshare(CLONE_FS) != 0 ||
	    unshare(CLONE_FILES | CLONE_SYSVSEM) != 0 || !FAILS(unshare(1), EINVAL) ||
	    (getuid() == 0 && setuid(4711) != 0))
		return 1;
	return FAILS(unshare(CLONE_NEWNS), EPERM) && FAILS(unshare(CLONE_NEWPID), EPERM) &&
		       FAILS(syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0), EPERM) &&
		       FAILS(unshare(CLONE_NEWUTS | CLONE_FS), EPERM) &&
		       FAILS(syscall(SYS_clone3, &time, sizeof(time)), EPERM) &&
		       FAILS(syscall(SYS_clone, CLONE_NEWNS | CLONE_FS | SIGCHLD, 0, 0, 0, 0),
			     EINVAL)
		   ? 0
		   : 2;
}

static int
runs_on_its_stack(void *arg)
{
	struct clone_args c = {.flags = CLONE_PARENT_SETTID, .exit_signal = SIGCHLD};
	pid_t tid = 0, pid;
	int status;

	c.parent_tid = (uintptr_t)&tid;
	pid = (pid_t)syscall(SYS_clone3, &c, sizeof(c));
	if (pid == 0)
		_exit(11);
	if (pid < 0 || tid != pid || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 11)
		return 1;
	if (!FAILS(syscall(SYS_clone3, &c, 63), EINVAL) ||
	    !FAILS(syscall(SYS_clone3, &c, 5000), E2BIG) ||
	    !FAILS(syscall(SYS_clone3, NOWHERE, sizeof(c)), EFAULT))
		return 2;
	c.stack_size = 4096;
	if (!FAILS(syscall(SYS_clone3, &c, sizeof(c)), EINVAL))
		return 3;
	c = (struct clone_args){.exit_signal = 65};
	if (!FAILS(syscall(SYS_clone3, &c, sizeof(c)), EINVAL))
		return 4;
	c = (struct clone_args){.flags = CLONE_DETACHED, .exit_signal = SIGCHLD};
	if (!FAILS(syscall(SYS_clone3, &c, sizeof(c)), EINVAL))
		return 5;
	c = (struct clone_args){.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
					 CLONE_THREAD,
				.exit_signal = SIGCHLD};
	return FAILS(syscall(SYS_clone3, &c, sizeof(c)), EINVAL) ? 0 : 6;
}

/* ---- openat2() ---- */

static int
open2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static bool
opens(int dir, const char *path, uint64_t resolve)
{
	int fd = open2(dir, path, O_RDONLY, resolve);

	return fd >= 0 && close(fd) == 0;
}

static bool
paths_are_restricted(void)
{
	struct {
		struct open_how how;
		uint64_t more;
	} longer = {{.flags = O_RDONLY}, 0};
	int dir, fd, fds;
	char number[16];
	bool good;

	mkdir(DIR, 0755);
	mkdir(DIR "/d", 0755);
	close(creat(DIR "/d/f", 0644));
	symlink("f", DIR "/d/link");
	symlink("/etc", DIR "/d/absolute");
	symlink("../d/f", DIR "/d/up");
	dir = open(DIR "/d", O_RDONLY | O_DIRECTORY);
	fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	snprintf(number, sizeof(number), "%d", dir);
	good = opens(dir, "f", 0) && opens(dir, "link", 0) && opens(dir, "absolute", 0) &&
	       FAILS(open2(dir, "link", 0, RESOLVE_NO_SYMLINKS), ELOOP) &&
	       FAILS(open2(dir, "absolute/passwd", 0, RESOLVE_NO_SYMLINKS), ELOOP) &&
	       opens(dir, "f", RESOLVE_NO_SYMLINKS) &&
	       FAILS(open2(AT_FDCWD, "/proc/self/fd/0", 0, RESOLVE_NO_MAGICLINKS), ELOOP);
	good &= opens(dir, "link", RESOLVE_BENEATH) && opens(dir, "./f", RESOLVE_BENEATH) &&
		FAILS(open2(dir, "..", 0, RESOLVE_BENEATH), EXDEV) &&
		FAILS(open2(dir, "../d/f", 0, RESOLVE_BENEATH), EXDEV) &&
		FAILS(open2(dir, "up", 0, RESOLVE_BENEATH), EXDEV) &&
		FAILS(open2(dir, "absolute", 0, RESOLVE_BENEATH), EXDEV) &&
		FAILS(open2(dir, "/etc", 0, RESOLVE_BENEATH), EXDEV);
	good &= opens(dir, "/f", RESOLVE_IN_ROOT) && opens(dir, "../../f", RESOLVE_IN_ROOT) &&
		FAILS(open2(dir, "absolute", 0, RESOLVE_IN_ROOT), ENOENT) &&
		FAILS(open2(AT_FDCWD, "/proc/self", 0, RESOLVE_NO_XDEV), EXDEV) &&
		opens(dir, "f", RESOLVE_NO_XDEV) && opens(fds, number, 0) &&
		FAILS(open2(fds, number, 0, RESOLVE_NO_XDEV), EXDEV);
	close(fds);
	good &= FAILS(open2(dir, "f", 1ull << 40, 0), EINVAL) &&
		FAILS(open2(dir, "f", 0, 0x100), EINVAL) &&
		FAILS(open2(dir, "f", 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT), EINVAL) &&
		FAILS(syscall(SYS_openat2, dir, "f", &longer, 8), EINVAL);
	fd = (int)syscall(SYS_openat2, dir, "f", &longer, sizeof(longer));
	good &= fd >= 0;
	close(fd);
	longer.more = 1;
	good &= FAILS(syscall(SYS_openat2, dir, "f", &longer, sizeof(longer)), E2BIG);
	longer.how.mode = 0600;
	good &= FAILS(syscall(SYS_openat2, dir, "f", &longer, sizeof(longer.how)), EINVAL);
	fd = open2(dir, "f", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	good &= fd >= 0 && close(fd) == 0 && FAILS(open2(dir, "f", O_PATH | O_RDWR, 0), EINVAL) &&
		FAILS(open2(dir, ".", O_PATH | O_TMPFILE | O_RDWR, 0), EINVAL) &&
		FAILS(open2(dir, "f", O_PATH | O_CREAT, 0), EINVAL);
	close(dir);
	unlink(DIR "/d/link");
	unlink(DIR "/d/absolute");
	unlink(DIR "/d/up");
	unlink(DIR "/d/f");
	rmdir(DIR "/d");
	rmdir(DIR);
	return good;
}

/* ---- files ---- */

/* What sets times does so with these for a file that is another user's; 0: it does. */
static int
time_error(const char *path, const struct timespec *t)
{
	return utimensat(AT_FDCWD, path, t, 0) == 0 ? 0 : errno;
}

static const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
static const struct timespec omit[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
static const struct timespec half[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
static const struct timespec wrong[2] = {{.tv_nsec = 1000000000}, {5, 0}};

/* As a user who may write to DIR/open, and not to DIR/shut. */
static int
is_another_user(void *arg)
{
	if (setgid(4711) != 0 || setuid(4711) != 0)
		return 1;
	if (time_error(DIR "/open", NULL) != 0 || time_error(DIR "/open", now) != 0)
		return 2;
	if (time_error(DIR "/open", half) != EPERM || time_error(DIR "/open", omit) != 0)
		return 3;
	if (time_error(DIR "/shut", NULL) != EACCES || time_error(DIR "/shut", now) != EACCES)
		return 4;
	if (!FAILS(open(DIR "/shut", O_RDONLY | O_TRUNC), EACCES))
		return 5;
	return close(open(DIR "/open", O_RDONLY | O_TRUNC)) == 0 ? 0 : 6;
}

static bool
times_are_checked(void)
{
	const struct timespec old[2] = {{5, 0}, {-1, 0}};
	struct stat st;
	int fd;
	bool good = mkdir(DIR, 0755) == 0;

	umask(0);
	fd = open(DIR "/open", O_WRONLY | O_CREAT, 0666);
	good = good && close(fd) == 0 && close(open(DIR "/shut", O_WRONLY | O_CREAT, 0444)) == 0;
	umask(022);
	good = good && time_error(DIR "/open", wrong) == EINVAL &&
	       time_error(DIR "/none", wrong) == ENOENT && time_error(DIR "/none", omit) == 0 &&
	       time_error(DIR "/shut", now) == 0;
	good = good && FAILS(utimensat(AT_FDCWD, DIR "/open", now, 0x10000), EINVAL) &&
	       FAILS(fchownat(AT_FDCWD, DIR "/open", -1, -1, 0x10000), EINVAL) &&
	       FAILS(syscall(SYS_utimensat, AT_FDCWD, NULL, now, 0), EFAULT);
	good = good && time_error(DIR "/open", old) == 0 && stat(DIR "/open", &st) == 0 &&
	       st.st_mtim.tv_sec <= 0;
	good = good && (geteuid() != 0 || in_child(is_another_user, NULL) == 0);
	unlink(DIR "/open");
	unlink(DIR "/shut");
	return rmdir(DIR) == 0 && good;
}

#define OLDER "/tmp/linux-test-older"

#ifdef SYS_futimesat
/* Has the file these times, in us? */
static bool
times_are(long atime_us, long mtime_us)
{
	struct stat st;

	return stat(OLDER, &st) == 0 &&
	       st.st_atim.tv_sec * 1000000 + st.st_atim.tv_nsec / 1000 == atime_us &&
	       st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000 == mtime_us;
}

#endif

/* Calls that not each architecture has, and that the C library makes of others. */
static bool
older_calls_set_times(void)
{
	int fd = open(OLDER, O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool good = fd >= 0;
#ifdef SYS_futimesat
	const struct timeval tv[2] = {{5, 6}, {7, 8}}, bad[2] = {{5, 6}, {7, 1000000}};
	const long seconds[2] = {11, 12};

	good = good && syscall(SYS_utimes, OLDER, tv) == 0 && times_are(5000006, 7000008) &&
	       syscall(SYS_utime, OLDER, seconds) == 0 && times_are(11000000, 12000000) &&
	       syscall(SYS_futimesat, fd, NULL, tv) == 0 && times_are(5000006, 7000008) &&
	       syscall(SYS_utime, OLDER, NULL) == 0 && !times_are(5000006, 7000008) &&
	       syscall(SYS_futimesat, AT_FDCWD, OLDER, tv) == 0 && times_are(5000006, 7000008);
	good = good && FAILS(syscall(SYS_utimes, OLDER, bad), EINVAL) &&
	       FAILS(syscall(SYS_utimes, OLDER, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_utime, OLDER, NOWHERE), EFAULT) &&
	       FAILS(syscall(SYS_utime, OLDER "/x", NULL), ENOTDIR) &&
	       FAILS(syscall(SYS_utimes, NULL, tv), EFAULT) &&
	       FAILS(syscall(SYS_futimesat, 99, NULL, tv), EBADF);
#endif
	close(fd);
	return unlink(OLDER) == 0 && good;
}

static bool
ranges_are_synced(void)
{
	int fd = open(OLDER, O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
	bool good = fd >= 0 && pipe(ends) == 0 && write(fd, "x", 1) == 1;

	good = good && sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0 &&
	       sync_file_range(fd, 0, 10, 7) == 0 && sync_file_range(fd, 5, 0, 0) == 0 &&
	       FAILS(sync_file_range(fd, 0, 1, 8), EINVAL) &&
	       FAILS(sync_file_range(fd, -1, 1, 1), EINVAL) &&
	       FAILS(sync_file_range(fd, 0, -1, 1), EINVAL) &&
	       FAILS(sync_file_range(fd, INT64_MAX, 1, 1), EINVAL) &&
	       FAILS(sync_file_range(ends[1], 0, 1, 1), ESPIPE);
	close(ends[0]);
	close(ends[1]);
	close(fd);
	return unlink(OLDER) == 0 && good && FAILS(sync_file_range(fd, 0, 1, 1), EBADF);
}

static bool
truncates_for_readers(void)
{
	struct stat st;
	int fd, left;
	bool good = mkdir(DIR, 0755) == 0;

	fd = open(DIR "/f", O_RDWR | O_CREAT, 0600);
	good = good && write(fd, "text", 4) == 4 && lseek(fd, 1, SEEK_SET) == 1 &&
	       ioctl(fd, FIONREAD, &left) == 0 && left == 3 && lseek(fd, 6, SEEK_SET) == 6 &&
	       ioctl(fd, FIONREAD, &left) == 0 && left == -2;
	good = good && close(open(DIR "/f", O_RDONLY | O_TRUNC)) == 0 && fstat(fd, &st) == 0 &&
	       st.st_size == 0 && FAILS(open(DIR, O_RDONLY | O_TRUNC), EISDIR);
	close(fd);
	unlink(DIR "/f");
	return rmdir(DIR) == 0 && good;
}

static bool
removed_directories_have_no_list(void)
{
	char list[256];
	int fd;
	bool good = mkdir(DIR, 0755) == 0;

	fd = open(DIR, O_RDONLY);
	good = good && syscall(SYS_getdents64, fd, list, sizeof(list)) > 0 &&
	       lseek(fd, 0, SEEK_SET) == 0 && rmdir(DIR) == 0 &&
	       FAILS(syscall(SYS_getdents64, fd, list, sizeof(list)), ENOENT);
	return close(fd) == 0 && good;
}

void
test_misc(void)
{
	result(advice_is_checked(), "posix_fadvise and syncfs do nothing, to files that are there");
	result(readahead_is_checked(), "readahead is for files that can be read");
	result(mincore_knows_the_cache(),
	       "mincore tells what of a file is in memory, to who may write");
	result(memory_is_locked(), "mlock fetches pages, and mincore tells which are there");
	result(in_child(locking_is_limited, NULL) == 0, "RLIMIT_MEMLOCK limits mlock");
	result(getuid() != 0 || in_child(locked_memory_is_told, NULL) == 0,
	       "VmLck in status, and smaps, tell what is locked");
	result(in_child(unlocked_mappings_join, NULL) == 0, "munlockall joins what mlock split");
	result(in_child(barriers, NULL) == 0, "membarrier");
	result(in_child(io_priorities, NULL) == 0,
	       "ioprio_set's priorities are told, and inherited");
	result(in_child(nothing_is_unshared, NULL) == 0, "unshare gives no namespaces");
	result(in_child(runs_on_its_stack, NULL) == 0,
	       "clone3 makes a child, and checks its arguments");
	result(paths_are_restricted(), "openat2 keeps paths where they are to stay");
	result(times_are_checked(), "utimensat is for owners, and of the time now for writers");
	result(older_calls_set_times(), "utime, utimes and futimesat set times, too");
	result(ranges_are_synced(), "sync_file_range");
	result(truncates_for_readers(), "O_TRUNC is for writers, however the file is opened");
	result(removed_directories_have_no_list(), "a directory that was removed has no list");
}
