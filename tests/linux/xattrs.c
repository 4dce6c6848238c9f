/* xattrs.c - extended attributes, of files in memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

/* On the host, too, this is a tmpfs. */
#define PLACE "/dev/shm/linux_xattrs"
#define F     PLACE "/f"
#define LINK  PLACE "/link"
#define PIPE  PLACE "/pipe"

static int fd;

static bool
begin(void)
{
	fd = mkdir(PLACE, 0777) == 0 && chmod(PLACE, 0777) == 0 ? open(F, O_RDWR | O_CREAT, 0644)
								: -1;
	return fd >= 0 && symlink("f", LINK) == 0 && mkfifo(PIPE, 0666) == 0;
}

static bool
end(bool good)
{
	close(fd);
	return unlink(F) == 0 && unlink(LINK) == 0 && unlink(PIPE) == 0 && rmdir(PLACE) == 0 &&
	       good;
}

static bool
has(const char *path, const char *name, const char *value)
{
	char buf[64];

	return getxattr(path, name, NULL, 0) == (ssize_t)strlen(value) &&
	       getxattr(path, name, buf, sizeof(buf)) == (ssize_t)strlen(value) &&
	       memcmp(buf, value, strlen(value)) == 0;
}

/* Has it these names, and no other? In any order; each with a blank after it. */
static bool
lists(const char *path, const char *names)
{
	char buf[256], one[64];
	ssize_t n = listxattr(path, buf, sizeof(buf));

	if (n != (ssize_t)strlen(names) || llistxattr(path, NULL, 0) != n)
		return false;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(buf + at) + 1) {
		snprintf(one, sizeof(one), "%s ", buf + at);
		if (strstr(names, one) == NULL)
			return false;
	}
	return true;
}

static bool
keeps_values(void)
{
	bool good = begin();
	char buf[8];

	good = good && lists(F, "") && FAILS(getxattr(F, "user.a", NULL, 0), ENODATA) &&
	       setxattr(F, "user.b", "two", 3, 0) == 0 && setxattr(F, "user.a", "", 0, 0) == 0 &&
	       setxattr(F, "user.ab", "three", 5, 0) == 0;
	good = good && has(F, "user.a", "") && has(F, "user.b", "two") &&
	       lists(F, "user.a user.b user.ab ");
	good = good && FAILS(setxattr(F, "user.b", "x", 1, XATTR_CREATE), EEXIST) &&
	       FAILS(setxattr(F, "user.c", "x", 1, XATTR_REPLACE), ENODATA) &&
	       FAILS(setxattr(F, "user.b", "x", 1, XATTR_CREATE | XATTR_REPLACE), EEXIST) &&
	       setxattr(F, "user.c", "x", 1, XATTR_CREATE) == 0 &&
	       setxattr(F, "user.c", "longer", 6, XATTR_REPLACE) == 0 && has(F, "user.c", "longer");
	good = good && FAILS(getxattr(F, "user.c", buf, 5), ERANGE) &&
	       FAILS(listxattr(F, buf, 8), ERANGE) &&
	       FAILS(getxattr(F, "user.c", NOWHERE, 6), EFAULT) &&
	       getxattr(F, "user.a", NOWHERE, 6) == 0;
	good = good && removexattr(F, "user.b") == 0 && FAILS(removexattr(F, "user.b"), ENODATA) &&
	       lists(F, "user.a user.c user.ab ");
	/* By its link, and by an open file. */
	good = good && has(LINK, "user.c", "longer") && fgetxattr(fd, "user.c", buf, 8) == 6 &&
	       fsetxattr(fd, "user.d", "4", 1, 0) == 0 &&
	       setxattr(LINK, "user.e", "5", 1, 0) == 0 && fremovexattr(fd, "user.c") == 0 &&
	       flistxattr(fd, NULL, 0) == 29 && lists(F, "user.a user.ab user.d user.e ");
	good = good && setxattr(PLACE, "user.x", "dir", 3, 0) == 0 && has(PLACE, "user.x", "dir");
	return end(good);
}

static bool
refuses(void)
{
	static char big[65537], name[300] = "user.";
	bool good = begin();
	int path = open(F, O_PATH);

	memset(name + 5, 'n', 250);
	good = good && setxattr(F, name, "x", 1, 0) == 0 && removexattr(F, name) == 0;
	name[255] = 'n';
	good = good && FAILS(setxattr(F, name, "x", 1, 0), ERANGE) &&
	       FAILS(getxattr(F, name, NULL, 0), ERANGE) && FAILS(removexattr(F, name), ERANGE) &&
	       FAILS(setxattr(F, "", "x", 1, 0), ERANGE);
	good = good && FAILS(setxattr(F, "user.a", "x", 1, 4), EINVAL) &&
	       FAILS(setxattr(F, "user.", "x", 1, 0), EINVAL) &&
	       FAILS(setxattr(F, "nosuch.a", "x", 1, 0), EOPNOTSUPP) &&
	       FAILS(setxattr(F, "user", "x", 1, 0), EOPNOTSUPP) &&
	       FAILS(getxattr(F, "nosuch.a", NULL, 0), EOPNOTSUPP) &&
	       FAILS(removexattr(F, "nosuch.a"), EOPNOTSUPP) &&
	       FAILS(setxattr(F, "user.a", big, 65537, 0), E2BIG) &&
	       FAILS(setxattr(F, "user.a", NOWHERE, 1, 0), EFAULT) &&
	       FAILS(setxattr(F, NOWHERE, "x", 1, 0), EFAULT) &&
	       FAILS(setxattr(PLACE "/none", "user.a", "x", 1, 0), ENOENT) &&
	       FAILS(fsetxattr(999, "user.a", "x", 1, 0), EBADF) &&
	       FAILS(fgetxattr(path, "user.a", NULL, 0), EBADF);
	good = good && setxattr(F, "user.a", big, 60000, 0) == 0 &&
	       syscall(SYS_getxattr, F, "user.a", big, 1ul << 30) == 60000;
	/* What has no bytes of its own has none of these. */
	good = good && FAILS(lsetxattr(LINK, "user.a", "x", 1, 0), EPERM) &&
	       FAILS(lgetxattr(LINK, "user.a", NULL, 0), ENODATA) &&
	       FAILS(setxattr(PIPE, "user.a", "x", 1, 0), EPERM) &&
	       FAILS(getxattr(PIPE, "user.a", NULL, 0), ENODATA) &&
	       FAILS(lremovexattr(LINK, "user.a"), EPERM);
	/* Nor has what is not kept. */
	good = good && FAILS(getxattr("/proc/self/stat", "user.a", NULL, 0), EOPNOTSUPP) &&
	       listxattr("/proc/self/stat", NULL, 0) == 0;
	close(path);
	return end(good);
}

/* As a user without rights. */
static int
as_nobody(void *arg)
{
	bool good = setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;

	good = good && FAILS(setxattr(F, "trusted.a", "x", 1, 0), EPERM) &&
	       FAILS(getxattr(F, "trusted.t", NULL, 0), ENODATA) &&
	       FAILS(removexattr(F, "trusted.t"), EPERM) && lists(F, "user.u security.s ");
	good = good && FAILS(setxattr(F, "security.a", "x", 1, 0), EPERM) &&
	       has(F, "security.s", "sec") && FAILS(removexattr(F, "security.s"), EPERM);
	/* The file is only read, and the directory another's, but sticky. */
	good = good && has(F, "user.u", "use") && FAILS(setxattr(F, "user.a", "x", 1, 0), EACCES) &&
	       FAILS(removexattr(F, "user.u"), EACCES) &&
	       FAILS(setxattr(PLACE, "user.a", "x", 1, 0), EPERM) && chdir(PLACE) == 0;
	return !good;
}

static int
as_reader(void *arg)
{
	return !(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 &&
		 FAILS(getxattr(F, "user.u", NULL, 0), EACCES) && has(F, "security.s", "sec") &&
		 lists(F, "user.u security.s ") && setxattr(PLACE, "user.a", "x", 1, 0) == 0);
}

static bool
knows_rights(void)
{
	bool good = begin();

	if (getuid() != 0)
		return end(good);
	good = good && setxattr(F, "trusted.t", "tru", 3, 0) == 0 &&
	       setxattr(F, "security.s", "sec", 3, 0) == 0 &&
	       setxattr(F, "user.u", "use", 3, 0) == 0 && chmod(PLACE, 01777) == 0 &&
	       lists(F, "user.u security.s trusted.t ") && has(F, "trusted.t", "tru");
	good = good && lsetxattr(LINK, "trusted.l", "link", 4, 0) == 0 &&
	       lists(F, "user.u security.s trusted.t ") &&
	       setxattr(PIPE, "security.p", "p", 1, 0) == 0 && has(PIPE, "security.p", "p");
	good = good && in_child(as_nobody, NULL) == 0 && chmod(F, 0) == 0 &&
	       chmod(PLACE, 0777) == 0 && in_child(as_reader, NULL) == 0;
	return end(good);
}

static bool
goes_with_files(void)
{
	int in = inotify_init1(IN_NONBLOCK), memory = memfd_create("m", 0);
	struct inotify_event e[4];
	char buf[8];
	bool good = begin() && inotify_add_watch(in, F, IN_ATTRIB) == 1;

	good = good && setxattr(F, "user.a", "1", 1, 0) == 0 && read(in, e, sizeof(e)) == 16 &&
	       removexattr(F, "user.a") == 0 && read(in, e, sizeof(e)) == 16 &&
	       FAILS(removexattr(F, "user.a"), ENODATA) && FAILS(read(in, e, sizeof(e)), EAGAIN);
	good = good && setxattr(F, "user.a", "1", 1, 0) == 0 && rename(F, PLACE "/g") == 0 &&
	       has(PLACE "/g", "user.a", "1") && link(PLACE "/g", F) == 0 &&
	       has(F, "user.a", "1") && unlink(PLACE "/g") == 0 && has(F, "user.a", "1");
	good = good && fsetxattr(memory, "user.m", "mem", 3, 0) == 0 &&
	       fgetxattr(memory, "user.m", buf, 8) == 3;
	close(memory);
	close(in);
	return end(good);
}

void
test_xattrs(void)
{
	result(keeps_values(), "extended attributes are kept, listed, replaced and removed");
	result(refuses(), "names, sizes and files that cannot be are refused");
	result(knows_rights(), "user., trusted. and security. have the rights of Linux");
	result(goes_with_files(), "they go with the file, and who watches it is told");
}
