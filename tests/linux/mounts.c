/* mounts.c - file systems that a program mounts. On the host in a space of their own, if it may. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PLACE "/tmp/linux_mounts"

/* May this process mount, and nobody else see it? */
static bool
may_mount(void)
{
	if (is_kestrel())
		return true;
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Of 64 KiB. */
static bool
has_a_size(void)
{
	char page[4096] = "x";
	struct statvfs s;
	bool good = mount("x", PLACE, "tmpfs", 0, "mode=0700,size=64k") == 0;
	int fd = open(PLACE "/f", O_RDWR | O_CREAT, 0600);

	for (int i = 0; i < 16; i++)
		good = good && pwrite(fd, page, sizeof(page), 2l * i * 4096) == sizeof(page);
	good = good && FAILS(pwrite(fd, page, sizeof(page), 1l << 20), ENOSPC) &&
	       statvfs(PLACE, &s) == 0 && s.f_blocks == 16 && s.f_bavail == 0 &&
	       pwrite(fd, page, sizeof(page), 0) == sizeof(page) && ftruncate(fd, 4096) == 0 &&
	       statvfs(PLACE, &s) == 0 && s.f_bfree == 15 &&
	       pwrite(fd, page, sizeof(page), 1l << 20) == sizeof(page);
	close(fd);
	good = good && unlink(PLACE "/f") == 0 && statvfs(PLACE, &s) == 0 && s.f_bfree == 16;
	good = umount(PLACE) == 0 && good;
	return good && FAILS(mount("x", PLACE, "tmpfs", 0, "size=12q"), EINVAL);
}

static bool
ends_watches(void)
{
	int in = inotify_init1(IN_NONBLOCK);
	struct inotify_event e[16];
	bool good = mount("x", PLACE, "tmpfs", 0, NULL) == 0 && mkdir(PLACE "/d", 0700) == 0 &&
		    mkdir(PLACE "/d/e", 0700) == 0 && inotify_add_watch(in, PLACE, IN_OPEN) == 1 &&
		    inotify_add_watch(in, PLACE "/d/e", IN_CREATE) == 2 && umount(PLACE) == 0;
	unsigned unmounted = 0, ignored = 0;

	good = good && read(in, e, sizeof(e)) == 4 * 16;
	for (int i = 0; good && i < 4; i++) {
		unmounted |= e[i].mask == (IN_UNMOUNT | IN_ISDIR) ? 1u << e[i].wd : 0;
		ignored |= e[i].mask == IN_IGNORED ? 1u << e[i].wd : 0;
	}
	close(in);
	return good && unmounted == 6 && ignored == 6;
}

/* Has a line of the file these words, of the mount at PLACE? options: up to a comma or a blank. */
static bool
says(const char *file, const char *format, const char *options)
{
	char line[512], start[128], *at;
	bool found = false;
	FILE *f = fopen(file, "r");

	snprintf(start, sizeof(start), format, options);
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		found |=
		    (at = strstr(line, start)) != NULL && strchr(", ", at[strlen(start)]) != NULL;
	if (f != NULL)
		fclose(f);
	if (!found)
		printf("# no \"%s\" in %s\n", start, file);
	return found;
}

static bool
mounted(unsigned long flags, const char *options)
{
	struct statvfs s;

	return statvfs(PLACE, &s) == 0 && (s.f_flag & 15) == flags &&
	       says("/proc/mounts", PLACE " tmpfs %s", options) &&
	       says("/proc/self/mountinfo", " / " PLACE " %s", options);
}

static bool
remount(unsigned long flags)
{
	return mount("x", PLACE, "tmpfs", MS_REMOUNT | flags, NULL) == 0;
}

static bool
copies_itself(const char *path)
{
	int from = open(linux_test_path(), O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0755);
	ssize_t n;

	while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
		;
	return close(from) == 0 && close(to) == 0 && n == 0;
}

/* Executes the copy of this program. Its exit status; 100 + errno. */
static int
executes(void *arg)
{
	execl(PLACE "/p", "p", "mounts-executed", NULL);
	return 100 + errno;
}

static int
executes_as_other(void *arg)
{
	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 1;
	return executes(arg);
}

int
mounts_as_executed(void)
{
	return geteuid() == 0 ? 50 : 60;
}

static bool
executes_nothing(void)
{
	bool good = mount("x", PLACE, "tmpfs", MS_NOEXEC | MS_NOSUID, "mode=755") == 0 &&
		    mounted(MS_NOEXEC | MS_NOSUID, "rw,nosuid,noexec") && copies_itself(PLACE "/p");
	int fd = open(PLACE "/p", O_RDONLY), script = open(PLACE "/s", O_WRONLY | O_CREAT, 0755);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	good = good && in_child(executes, NULL) == 100 + EACCES && access(PLACE, X_OK) == 0 &&
	       FAILS(access(PLACE "/p", X_OK), EACCES) && access(PLACE "/p", R_OK) == 0;
	good = good && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED &&
	       errno == EPERM && at != MAP_FAILED &&
	       FAILS(mprotect(at, 4096, PROT_READ | PROT_EXEC), EACCES) &&
	       mprotect(at, 4096, PROT_READ | PROT_WRITE) == 0;
	good = good && write(script, "#!/bin/true\n", 12) == 12 && close(script) == 0;
	/* Then it may; what was mapped before still may not. */
	good = good && remount(0) && mounted(0, "rw") && in_child(executes, NULL) == 50 &&
	       FAILS(mprotect(at, 4096, PROT_READ | PROT_EXEC), EACCES) && munmap(at, 4096) == 0;
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	good = good && at != MAP_FAILED && munmap(at, 4096) == 0;
	close(fd);
	return good && umount(PLACE) == 0;
}

static bool
gives_no_ids(void)
{
	bool good = mount("x", PLACE, "tmpfs", 0, "mode=755") == 0 && copies_itself(PLACE "/p") &&
		    chmod(PLACE "/p", 04755) == 0;

	good = good && in_child(executes_as_other, NULL) == 50 && remount(MS_NOSUID) &&
	       mounted(MS_NOSUID, "rw,nosuid") && in_child(executes_as_other, NULL) == 60;
	return good && umount(PLACE) == 0;
}

static bool
opens_no_devices(void)
{
	bool good = mount("x", PLACE, "tmpfs", MS_NODEV, NULL) == 0 &&
		    mounted(MS_NODEV, "rw,nodev") &&
		    mknod(PLACE "/null", S_IFCHR | 0666, makedev(1, 3)) == 0;
	int fd;

	good = good && FAILS(open(PLACE "/null", O_RDWR), EACCES) &&
	       access(PLACE "/null", R_OK) == 0 && (fd = open(PLACE "/null", O_PATH)) >= 0 &&
	       close(fd) == 0;
	good = good && remount(0) && (fd = open(PLACE "/null", O_RDWR)) >= 0 &&
	       write(fd, "a", 1) == 1 && close(fd) == 0;
	return good && umount(PLACE) == 0;
}

static bool
changes_nothing(void)
{
	bool good = mount("x", PLACE, "tmpfs", 0, NULL) == 0 && mkdir(PLACE "/d", 0700) == 0;
	int fd = open(PLACE "/f", O_RDWR | O_CREAT, 0644);
	char *at;

	/* Not while a file is open for writing, or mapped so. */
	good = good && write(fd, "text", 4) == 4 && !remount(MS_RDONLY) && errno == EBUSY;
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	good = good && close(fd) == 0 && at != MAP_FAILED && !remount(MS_RDONLY) &&
	       errno == EBUSY && munmap(at, 4096) == 0 && mounted(0, "rw") && remount(MS_RDONLY) &&
	       mounted(MS_RDONLY, "ro");
	good = good && FAILS(open(PLACE "/g", O_RDWR | O_CREAT, 0600), EROFS) &&
	       FAILS(open(PLACE "/f", O_RDWR), EROFS) && FAILS(mkdir(PLACE "/e", 0700), EROFS) &&
	       FAILS(mkdir(PLACE "/d", 0700), EEXIST) && FAILS(rmdir(PLACE "/d"), EROFS) &&
	       FAILS(unlink(PLACE "/f"), EROFS) && FAILS(unlink(PLACE "/none"), EROFS) &&
	       FAILS(rename(PLACE "/f", PLACE "/g"), EROFS) &&
	       FAILS(link(PLACE "/f", PLACE "/g"), EROFS) && FAILS(symlink("f", PLACE "/g"), EROFS);
	good = good && FAILS(chmod(PLACE "/f", 0600), EROFS) &&
	       FAILS(truncate(PLACE "/f", 1), EROFS) && FAILS(chown(PLACE "/f", 1, 1), EROFS) &&
	       FAILS(utimensat(AT_FDCWD, PLACE "/f", NULL, 0), EROFS) &&
	       FAILS(setxattr(PLACE "/f", "trusted.a", "x", 1, 0), EROFS) &&
	       FAILS(access(PLACE "/f", W_OK), EROFS) && FAILS(access(PLACE, W_OK), EROFS);
	fd = open(PLACE "/f", O_RDONLY | O_CREAT, 0600);
	good = good && fd >= 0 && fchmod(fd, 0600) == -1 && errno == EROFS && close(fd) == 0;
	good = good && remount(0) && mounted(0, "rw") && unlink(PLACE "/f") == 0;
	good = good && umount(PLACE) == 0 && mount("x", PLACE, "tmpfs", MS_RDONLY, NULL) == 0 &&
	       mounted(MS_RDONLY, "ro") && FAILS(mkdir(PLACE "/d", 0700), EROFS);
	/* A file that is open outlives the mount, and what that says of it. */
	fd = open(PLACE, O_RDONLY);
	return good && umount2(PLACE, MNT_DETACH) == 0 && fchmod(fd, 0700) == -1 &&
	       errno == EROFS && close(fd) == 0;
}

/* What has no name any more is in use, too: an open file, a directory that somebody stands in. */
static bool
is_busy_without_names(void)
{
	bool good = mount("x", PLACE, "tmpfs", 0, NULL) == 0 && mkdir(PLACE "/d", 0700) == 0;
	int fd = open(PLACE "/f", O_RDONLY | O_CREAT, 0600), here = open("/", O_PATH);

	good = good && fd >= 0 && unlink(PLACE "/f") == 0 && FAILS(umount(PLACE), EBUSY) &&
	       !remount(MS_RDONLY) && errno == EBUSY && close(fd) == 0 && remount(MS_RDONLY) &&
	       remount(0);
	good = good && chdir(PLACE "/d") == 0 && rmdir(PLACE "/d") == 0 &&
	       FAILS(umount(PLACE), EBUSY) && !remount(MS_RDONLY) && errno == EBUSY &&
	       fchdir(here) == 0;
	/* one of two names is enough */
	fd = open(PLACE "/f", O_RDONLY | O_CREAT, 0600);
	good = good && link(PLACE "/f", PLACE "/g") == 0 && unlink(PLACE "/f") == 0 &&
	       remount(MS_RDONLY) && remount(0) && FAILS(umount(PLACE), EBUSY) && close(fd) == 0 &&
	       rename(PLACE "/g", PLACE "/h") == 0 && mkdir(PLACE "/e", 0700) == 0 &&
	       mkdir(PLACE "/i", 0700) == 0 && rename(PLACE "/i", PLACE "/e") == 0;
	close(here);
	return umount(PLACE) == 0 && good;
}

static bool
keeps_atimes(void)
{
	struct statvfs s;
	bool good =
	    mount("x", PLACE, "tmpfs", MS_NOATIME | MS_NODIRATIME, NULL) == 0 &&
	    mounted(0, "rw,noatime,nodiratime") && statvfs(PLACE, &s) == 0 &&
	    (s.f_flag & (ST_NOATIME | ST_NODIRATIME | ST_RELATIME)) == (ST_NOATIME | ST_NODIRATIME);

	good = good && remount(MS_NOSUID) && mounted(MS_NOSUID, "rw,nosuid,noatime,nodiratime");
	good = good && remount(MS_RELATIME) && mounted(0, "rw,relatime") &&
	       statvfs(PLACE, &s) == 0 &&
	       (s.f_flag & (ST_NOATIME | ST_NODIRATIME | ST_RELATIME)) == ST_RELATIME;
	good = good && remount(MS_STRICTATIME) && mounted(0, "rw") && statvfs(PLACE, &s) == 0 &&
	       (s.f_flag & (ST_NOATIME | ST_NODIRATIME | ST_RELATIME)) == 0;
	return umount(PLACE) == 0 && good;
}

static int
mounts_as_other(void *arg)
{
	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 1;
	return FAILS(mount("x", PLACE, "tmpfs", 0, NULL), EPERM) &&
		       FAILS(mount("x", PLACE "/none", "tmpfs", 0, NULL), ENOENT) &&
		       FAILS(mount("x", PLACE, NOWHERE, 0, NULL), EFAULT)
		   ? 0
		   : 2;
}

static bool
says_what_is_wrong(void)
{
	return FAILS(mount("x", PLACE, NOWHERE, 0, NULL), EFAULT) &&
	       FAILS(mount(NOWHERE, PLACE, "tmpfs", 0, NULL), EFAULT) &&
	       FAILS(mount("x", PLACE, "tmpfs", 0, NOWHERE), EFAULT) &&
	       FAILS(mount("x", NOWHERE, "tmpfs", 0, NULL), EFAULT) &&
	       FAILS(mount("x", PLACE, NULL, 0, NULL), EINVAL) &&
	       FAILS(mount("x", PLACE, "no such type", 0, NULL), ENODEV) &&
	       FAILS(mount(NULL, PLACE, "ext2", 0, NULL), EINVAL) &&
	       FAILS(mount("", PLACE, "ext2", 0, NULL), EINVAL) &&
	       FAILS(mount("/none", PLACE, "ext2", 0, NULL), ENOENT) &&
	       FAILS(mount("/dev/null", PLACE, "ext2", 0, NULL), ENOTBLK) &&
	       FAILS(mount("x", PLACE "/none", NULL, 0, NULL), ENOENT) &&
	       in_child(mounts_as_other, NULL) == 0 && mount(NULL, PLACE, "tmpfs", 0, NULL) == 0 &&
	       says("/proc/mounts", "none %s", PLACE) && umount(PLACE) == 0;
}

static int
opens_below(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH, .resolve = resolve};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Does the path lead to the same file as another one? */
static bool
leads_to(int dir, const char *path, uint64_t resolve, const char *other)
{
	int fd = opens_below(dir, path, resolve);
	struct stat a, b;
	bool good = fd >= 0 && fstat(fd, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino;

	close(fd);
	return good;
}

/* Where a path begins stays its root, also when something is mounted there. */
static bool
keeps_paths_below(void)
{
	int dir;
	bool good = mkdir(PLACE "/d", 0755) == 0 && mkdir(PLACE "/d/e", 0755) == 0;

	dir = open(PLACE "/d", O_PATH);
	good = good && mount("x", PLACE "/d", "tmpfs", 0, NULL) == 0 &&
	       mkdir(PLACE "/d/over", 0755) == 0;
	good = good && faccessat(dir, "./e", F_OK, 0) == 0 &&
	       FAILS(faccessat(dir, "over", F_OK, 0), ENOENT) &&
	       leads_to(dir, "e/../over", 0, PLACE "/d/over");
	good = good && FAILS(opens_below(dir, "./..", RESOLVE_BENEATH), EXDEV) &&
	       FAILS(opens_below(dir, "./../..", RESOLVE_BENEATH), EXDEV) &&
	       FAILS(opens_below(dir, "e/../..", RESOLVE_BENEATH), EXDEV) &&
	       leads_to(dir, "e/..", RESOLVE_BENEATH, PLACE "/d") &&
	       leads_to(dir, "e/../..", RESOLVE_IN_ROOT, PLACE "/d") &&
	       leads_to(dir, "./../../over", RESOLVE_IN_ROOT, PLACE "/d/over");
	close(dir);
	return umount(PLACE "/d") == 0 && rmdir(PLACE "/d/e") == 0 && rmdir(PLACE "/d") == 0 &&
	       good;
}

/* Does /proc tell of a map of that file, by these numbers? */
static bool
maps_tell(const char *path, const struct stat *st)
{
	int fd = open(path, O_RDONLY);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], expected[64];
	bool found = false;

	snprintf(expected, sizeof(expected), " %02x:%02x %lu ", major(st->st_dev),
		 minor(st->st_dev), (unsigned long)st->st_ino);
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		found |= strstr(line, expected) != NULL;
	if (f != NULL)
		fclose(f);
	close(fd);
	return at != MAP_FAILED && munmap(at, 4096) == 0 && found;
}

/* The number has two parts, of which the lower one is a byte in the old calls. */
static bool
tells_its_number(void)
{
	struct statx sx;
	struct stat st;
	bool good = true;
	unsigned n = is_kestrel() ? 256 : 1;

	for (unsigned i = 0; good && i < n; i++)
		good = mount("x", PLACE, "tmpfs", 0, NULL) == 0 && stat(PLACE, &st) == 0 &&
		       statx(AT_FDCWD, PLACE, 0, STATX_BASIC_STATS, &sx) == 0 &&
		       sx.stx_dev_major == major(st.st_dev) &&
		       sx.stx_dev_minor == minor(st.st_dev) &&
		       (i + 1 < n || (close(creat(PLACE "/f", 0600)) == 0 &&
				      stat(PLACE "/f", &st) == 0 && maps_tell(PLACE "/f", &st))) &&
		       umount(PLACE) == 0;
	return good;
}

/* Who has a file open for writing writes on, while remounts are refused. */
static bool
refuses_while_written(void)
{
	bool good = mount("x", PLACE, "tmpfs", 0, NULL) == 0;
	int fd = creat(PLACE "/f", 0600), status;
	pid_t pid = fork();

	if (pid == 0) {
		while (pwrite(fd, "x", 1, 0) == 1)
			;
		_exit(1);
	}
	for (unsigned i = 0; i < 500; i++)
		good =
		    good && FAILS(mount("x", PLACE, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), EBUSY);
	good = kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       good;
	return close(fd) == 0 && umount(PLACE) == 0 && good;
}

/* In a directory that is covered, "." is what is mounted there. */
static bool
stacks_on_dot(void)
{
	bool good = chdir(PLACE) == 0 && mount("x", PLACE, "tmpfs", 0, NULL) == 0 &&
		    close(creat(PLACE "/f", 0600)) == 0 && access("f", F_OK) == -1 &&
		    mount("x", ".", "tmpfs", 0, NULL) == 0 && access(PLACE "/f", F_OK) == -1 &&
		    umount(PLACE) == 0 && access(PLACE "/f", F_OK) == 0 && umount(PLACE) == 0;

	return good && FAILS(umount(PLACE), EINVAL);
}

/* What is open of a file system that was detached is no directory that was removed. */
static bool
lists_what_is_detached(void)
{
	char buf[1024];
	bool good = mount("x", PLACE, "tmpfs", 0, NULL) == 0 && mkdir(PLACE "/d", 0700) == 0 &&
		    mkdir(PLACE "/gone", 0700) == 0;
	int root = open(PLACE, O_RDONLY), d = open(PLACE "/d", O_RDONLY),
	    gone = open(PLACE "/gone", O_RDONLY);

	good = rmdir(PLACE "/gone") == 0 && umount2(PLACE, MNT_DETACH) == 0 && good &&
	       syscall(SYS_getdents64, root, buf, sizeof(buf)) > 0 &&
	       syscall(SYS_getdents64, d, buf, sizeof(buf)) > 0 &&
	       FAILS(syscall(SYS_getdents64, gone, buf, sizeof(buf)), ENOENT);
	return (close(root) == 0) & (close(d) == 0) & (close(gone) == 0) & good;
}

static const struct {
	bool (*test)(void);
	const char *promise;
} mounts[] = {
    {executes_nothing, "MS_NOEXEC: no program is executed or mapped to be"},
    {gives_no_ids, "MS_NOSUID: a program does not get its file's owner"},
    {opens_no_devices, "MS_NODEV: no device is opened"},
    {changes_nothing, "MS_RDONLY: a file system in memory is not changed"},
    {is_busy_without_names, "what is open without a name keeps a file system in use"},
    {keeps_atimes, "MS_NOATIME, MS_NODIRATIME and MS_RELATIME are told, and a remount keeps them"},
    {says_what_is_wrong, "mount() says what is wrong with its arguments"},
    {has_a_size, "a tmpfs with size= takes no more"},
    {keeps_paths_below,
     "a path of openat2() stays below where it begins, and what is mounted there"},
    {tells_its_number, "stat(), statx() and /proc tell the same number of a file system"},
    {refuses_while_written, "a remount that is refused disturbs no writes"},
    {stacks_on_dot, "mount() in a directory that is covered covers what is on top"},
    {lists_what_is_detached, "open directories of what was detached can be listed"},
    {ends_watches, "what is unmounted is not watched any more, and inotify says so"},
};

static int
mount_alone(void *arg)
{
	if (!may_mount())
		return 0;
	return !mounts[*(const unsigned *)arg].test();
}

void
test_mounts(void)
{
	mkdir(PLACE, 0755);
	for (unsigned i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
		result(in_child(mount_alone, &i) == 0, mounts[i].promise);
	rmdir(PLACE);
}
