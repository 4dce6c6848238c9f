/* names.c - where paths lead, and what may be renamed. The same on Linux (word "names"). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define ROOM "/tmp/linux_test.names"

/* A path that leads to a link by /proc ends there: the link itself is not followed. */
static bool
links_that_are_open_are_ends(void)
{
	struct stat st;
	char path[64], more[80], text[16] = "";
	bool good = symlink("nowhere", ROOM "/link") == 0;
	int place = open(ROOM "/link", O_PATH | O_NOFOLLOW), same;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	snprintf(more, sizeof(more), "%s/", path);
	good = good && place >= 0 && stat(path, &st) == 0 && S_ISLNK(st.st_mode) &&
	       FAILS(stat(more, &st), ENOTDIR) && FAILS(open(path, O_RDONLY), ELOOP) &&
	       FAILS(open(path, O_RDWR | O_CREAT, 0600), ELOOP) && FAILS(chdir(path), ENOTDIR);
	snprintf(more, sizeof(more), "%s/more", path);
	good = good && FAILS(stat(more, &st), ENOTDIR) &&
	       FAILS(open(more, O_RDWR | O_CREAT, 0600), ENOTDIR);
	snprintf(more, sizeof(more), "%s/more/and/more", path);
	good = good && FAILS(stat(more, &st), ENOTDIR);
	/* a link to that one */
	good = good && symlink(path, ROOM "/to_link") == 0 && stat(ROOM "/to_link", &st) == 0 &&
	       S_ISLNK(st.st_mode) && FAILS(stat(ROOM "/to_link/more", &st), ENOTDIR);
	same = open(path, O_PATH);
	good = good && same >= 0 && readlinkat(same, "", text, sizeof(text)) == 7 &&
	       strcmp(text, "nowhere") == 0;
	close(same);
	close(place);
	return unlink(ROOM "/link") == 0 && unlink(ROOM "/to_link") == 0 && good;
}

/* Its ".." changes when it gets another parent, which is a write to it. */
static int
moves_as_another(void *arg)
{
	if (setgid(4711) != 0 || setuid(4711) != 0)
		return 1;
	if (!FAILS(rename(ROOM "/a/locked", ROOM "/b/locked"), EACCES))
		return 2;
	if (!FAILS(rename(ROOM "/a/locked", ROOM "/b/full"), EACCES))
		return 3;
	if (rename(ROOM "/a/locked", ROOM "/a/other") != 0 ||
	    rename(ROOM "/a/other", ROOM "/a/locked") != 0)
		return 4;
	if (!FAILS(renameat2(AT_FDCWD, ROOM "/a/file", AT_FDCWD, ROOM "/b/locked", RENAME_EXCHANGE),
		   EACCES) ||
	    !FAILS(renameat2(AT_FDCWD, ROOM "/b/locked", AT_FDCWD, ROOM "/a/file", RENAME_EXCHANGE),
		   EACCES))
		return 5;
	/* A file has no parent that it knows, and what is replaced goes. */
	if (rename(ROOM "/a/file", ROOM "/b/file") != 0)
		return 6;
	return rename(ROOM "/a/free", ROOM "/b/locked") == 0 ? 0 : 7;
}

static bool
make_owned(const char *path, mode_t mode)
{
	return mkdir(path, 0700) == 0 && chown(path, 4711, 4711) == 0 && chmod(path, mode) == 0;
}

static bool
directories_move_by_their_owners(void)
{
	bool good = make_owned(ROOM "/a", 0700) && make_owned(ROOM "/b", 0700) &&
		    make_owned(ROOM "/a/locked", 0500) && make_owned(ROOM "/a/free", 0700) &&
		    make_owned(ROOM "/b/locked", 0500) && make_owned(ROOM "/b/full", 0700) &&
		    make_owned(ROOM "/b/full/in", 0700);
	int fd = good ? open(ROOM "/a/file", O_WRONLY | O_CREAT | O_EXCL, 0400) : -1;

	good = good && close(fd) == 0 && chown(ROOM "/a/file", 4711, 4711) == 0 &&
	       chmod(ROOM, 0755) == 0 && in_child(moves_as_another, NULL) == 0;
	for (const char *const *p =
		 (const char *const[]){ROOM "/b/full/in", ROOM "/b/full", ROOM "/b/locked",
				       ROOM "/b/file", ROOM "/b", ROOM "/a/locked", ROOM "/a",
				       NULL};
	     *p != NULL; p++)
		good = remove(*p) == 0 && good;
	return good;
}

void
test_names(void)
{
	mkdir(ROOM, 0755);
	result(links_that_are_open_are_ends(), "a link that is open as a place is not followed");
	if (geteuid() == 0)
		result(directories_move_by_their_owners(),
		       "a directory gets another parent by who may write to it");
	rmdir(ROOM);
}
