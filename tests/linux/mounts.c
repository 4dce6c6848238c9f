/* mounts.c - file systems that a program mounts. On the host in a space of their own, if it may. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PLACE "/tmp/linux_mounts"

/* May this process mount, and nobody else see it? */
static bool
may_mount(void)
{
	struct utsname u;

	if (uname(&u) == 0 && strcmp(u.sysname, "Kestrel") == 0)
		return true;
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
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

static const struct {
	bool (*test)(void);
	const char *promise;
} mounts[] = {
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
