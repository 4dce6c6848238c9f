/* links.c - hard and symbolic links. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define ROOM "/tmp/linux_links"

/* Makes an empty directory and goes there. */
static bool
enter_room(void)
{
	return mkdir(ROOM, 0755) == 0 && chdir(ROOM) == 0;
}

static bool
leave_room(void)
{
	return chdir("/") == 0 && rmdir(ROOM) == 0;
}

static bool
holds(const char *path, const char *expected)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);
	bool good = fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, expected) == 0;

	close(fd);
	return good;
}

static bool
store(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | flags, 0644);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return good;
}

static bool
fails(int got, int error)
{
	return got == -1 && errno == error;
}

/* How many links the file at `path` has, -1: none is there. */
static long
links_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? (long)st.st_nlink : -1;
}

static bool
hard_links_work(void)
{
	struct stat a, b;
	int fd;
	bool good = enter_room() && store("a", O_CREAT, "one") && link("a", "b") == 0 &&
		    stat("a", &a) == 0 && stat("b", &b) == 0 && a.st_ino == b.st_ino &&
		    a.st_nlink == 2;

	good = good && store("b", O_TRUNC, "two") && holds("a", "two");
	good = good && fails(link("a", "b"), EEXIST) && fails(link("none", "c"), ENOENT) &&
	       fails(link(".", "c"), EPERM) && fails(link("a", "/dev/c"), EXDEV) &&
	       fails(link("/dev/null", "c"), EXDEV) && fails(link("a", "c/"), ENOENT);
	/* Two names of one file: nothing is renamed. */
	good = good && rename("a", "b") == 0 && links_of("a") == 2 && links_of("b") == 2;
	good = good && unlink("a") == 0 && links_of("b") == 1 && holds("b", "two");
	fd = open("b", O_RDONLY);
	good = good && unlink("b") == 0 && fstat(fd, &a) == 0 && a.st_nlink == 0;
	close(fd);
	return leave_room() && good;
}

static bool
symbolic_links_lead(void)
{
	char text[32] = "";
	struct stat st;
	bool good = enter_room() && mkdir("d", 0755) == 0 && store("d/f", O_CREAT, "deep") &&
		    symlink("d", "to_d") == 0 && symlink("to_d/../to_d/f", "to_f") == 0 &&
		    symlink(ROOM "/to_f", "d/back") == 0;

	good = good && holds("to_f", "deep") && holds("to_d/back", "deep") &&
	       stat("to_d", &st) == 0 && S_ISDIR(st.st_mode) && lstat("to_d", &st) == 0 &&
	       S_ISLNK(st.st_mode) && st.st_size == 1 && lstat("to_d/", &st) == 0 &&
	       S_ISDIR(st.st_mode);
	good = good && readlink("to_f", text, sizeof(text)) == 14 &&
	       strcmp(text, "to_d/../to_d/f") == 0 && readlink("to_f", text, 4) == 4 &&
	       fails((int)readlink("d/f", text, 4), EINVAL) &&
	       fails((int)readlink("to_f", text, 0), EINVAL);
	/* A name of the link itself is removed, renamed and linked to; where it leads stays. */
	good = good && link("to_f", "hard") == 0 && links_of("to_f") == 2 &&
	       linkat(AT_FDCWD, "to_f", AT_FDCWD, "real", AT_SYMLINK_FOLLOW) == 0 &&
	       links_of("d/f") == 2 && unlink("real") == 0 && unlink("hard") == 0;
	good = good && rename("to_f", "moved") == 0 && holds("moved", "deep") &&
	       unlink("moved") == 0 && holds("d/f", "deep") && fails(rmdir("to_d"), ENOTDIR) &&
	       fails(rmdir("to_d/"), ENOTDIR) && chdir("to_d") == 0 && holds("f", "deep") &&
	       getcwd(text, sizeof(text)) != NULL && strcmp(text, ROOM "/d") == 0 &&
	       chdir("..") == 0;
	good = good && unlink("to_d") == 0 && unlink("d/back") == 0 && unlink("d/f") == 0 &&
	       rmdir("d") == 0;
	return leave_room() && good;
}

static bool
dangling_links_end(void)
{
	char name[16], long_text[4200];
	bool good = enter_room() && symlink("made", "hole") == 0 && symlink("loop", "loop") == 0;

	good = good && fails(open("hole", O_RDONLY), ENOENT) &&
	       fails(mkdir("hole", 0755), EEXIST) &&
	       fails(open("hole", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST) &&
	       store("hole", O_CREAT, "new") && holds("made", "new") && unlink("made") == 0;
	good = good && fails(open("hole", O_CREAT | O_WRONLY | O_NOFOLLOW, 0644), ELOOP) &&
	       links_of("made") == -1 && symlink("none/file", "deep") == 0 &&
	       fails(open("deep", O_CREAT | O_WRONLY, 0644), ENOENT) && links_of("none") == -1 &&
	       unlink("deep") == 0 && fails(unlink("."), EISDIR) && fails(rmdir("."), EINVAL) &&
	       fails(rmdir(".."), ENOTEMPTY) && fails((int)readlink("", name, 4), ENOENT);
	good = good && fails(open("loop", O_RDONLY), ELOOP) && fails(chdir("loop/x"), ELOOP) &&
	       fails(open("hole", O_RDONLY | O_NOFOLLOW), ELOOP) &&
	       fails(symlink("", "empty"), ENOENT) && fails(symlink("x", "hole"), EEXIST);
	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	good = good && fails(symlink(long_text, "long"), ENAMETOOLONG);
	/* A chain of 40 links is followed, of 41 is not. */
	good = good && store("l0", O_CREAT, "end");
	for (int i = 1; good && i <= 41; i++) {
		char from[16];

		snprintf(from, sizeof(from), "l%d", i - 1);
		snprintf(name, sizeof(name), "l%d", i);
		good = symlink(from, name) == 0;
	}
	good = good && holds("l40", "end") && fails(open("l41", O_RDONLY), ELOOP);
	for (int i = 0; i <= 41; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		unlink(name);
	}
	unlink("hole");
	unlink("loop");
	return leave_room() && good;
}

static bool
links_are_listed(void)
{
	bool good = enter_room() && symlink("x", "link") == 0, seen = false;
	DIR *d = opendir(".");

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		seen = seen || (strcmp(e->d_name, "link") == 0 && e->d_type == DT_LNK);
	closedir(d);
	unlink("link");
	return leave_room() && good && seen;
}

static bool
renameat2_keeps(void)
{
	bool good = enter_room() && store("a", O_CREAT, "a") && store("b", O_CREAT, "b");

	good = good && fails(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE), EEXIST) &&
	       holds("b", "b") && renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE) == 0 &&
	       renameat2(AT_FDCWD, "c", AT_FDCWD, "b", 0) == 0 && holds("b", "a") &&
	       fails(renameat2(AT_FDCWD, "b", AT_FDCWD, "c", 1 << 7), EINVAL);
	unlink("b");
	return leave_room() && good;
}

/* Gives an open file a name, as open(2) says. */
static int
name_file(int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int
names_nothing(void *fd)
{
	return setresuid(1000, 1000, 1000) == 0 &&
		       fails(linkat(*(int *)fd, "", AT_FDCWD, "c", AT_EMPTY_PATH), ENOENT) &&
		       fails(open("/", O_TMPFILE | O_RDWR, 0600), EACCES)
		   ? 0
		   : 1;
}

static bool
unnamed_files(void)
{
	bool good = enter_room() && store("file", O_CREAT, "f"), root = geteuid() == 0;
	int fd = open(".", O_TMPFILE | O_RDWR, 04646);
	struct stat st, named;
	mode_t mask = umask(0);

	umask(mask);
	good = good && fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 0 &&
	       st.st_mode == (S_IFREG | (04646 & ~mask)) && write(fd, "text", 4) == 4 &&
	       (!root || in_child(names_nothing, &fd) == 0) && name_file(fd, "a") == 0 &&
	       holds("a", "text") && fstat(fd, &st) == 0 && st.st_nlink == 1 &&
	       stat("a", &named) == 0 && named.st_ino == st.st_ino && named.st_dev == st.st_dev;
	/* After its last name is gone, it gets no other. */
	good = good && name_file(fd, "b") == 0 && unlink("a") == 0 && unlink("b") == 0 &&
	       fails(name_file(fd, "a"), ENOENT) && close(fd) == 0;
	fd = open(ROOM, O_TMPFILE | O_WRONLY, 0600);
	good = good && fd >= 0 && write(fd, "more", 4) == 4 &&
	       (!root || (linkat(fd, "", AT_FDCWD, "a", AT_EMPTY_PATH) == 0 && holds("a", "more") &&
			  unlink("a") == 0)) &&
	       close(fd) == 0;
	fd = open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600);
	good = good && fd >= 0 && fails(name_file(fd, "a"), ENOENT) && pwrite(fd, "x", 1, 9) == 1 &&
	       lseek(fd, 0, SEEK_END) == 10 && close(fd) == 0;
	/* It is written to, in a directory, of a file system that can. */
	good = good && fails(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL) &&
	       fails(open(".", O_TMPFILE | O_CREAT | O_RDWR, 0600), EINVAL) &&
	       fails(open(".", (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600), EINVAL) &&
	       fails(open("file", O_TMPFILE | O_RDWR, 0600), ENOTDIR) &&
	       fails(open("none", O_TMPFILE | O_RDWR, 0600), ENOENT) &&
	       fails(open("/proc", O_TMPFILE | O_RDWR, 0600), root ? EOPNOTSUPP : EACCES);
	unlink("file");
	return leave_room() && good;
}

void
test_links(void)
{
	result(hard_links_work(), "hard links: one file with several names");
	result(symbolic_links_lead(),
	       "symbolic links lead through paths, and can be named themselves");
	result(dangling_links_end(),
	       "links to nothing, in circles and too many end with their errno");
	result(links_are_listed(), "readdir tells a symbolic link");
	result(renameat2_keeps(), "renameat2 with RENAME_NOREPLACE");
	result(unnamed_files(),
	       "O_TMPFILE: a file without a name, which it may get once by its descriptor");
}
