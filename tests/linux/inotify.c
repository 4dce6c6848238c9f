/* inotify.c - what a program is told of files that it watches. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif

#define DIR_NAME "/tmp/linux_inotify"
#define F        DIR_NAME "/f"
#define G        DIR_NAME "/g"
#define S        DIR_NAME "/s"

/* Short names of events, by bit. */
static const char *const short_names[] = {"A", "M", "ATTR", "CW", "CN", "O",  "MF",   "MT",
					  "C", "D", "DS",   "MS", "?",  "UN", "OVER", "IGN"};

static void
add_event(char *text, size_t size, const struct inotify_event *e, uint32_t *cookie)
{
	size_t at = strlen(text);
	int bit = __builtin_ctz(e->mask);
	bool one = bit < 16 && (e->mask & ~IN_ISDIR) == 1u << bit;

	at += (size_t)snprintf(text + at, size - at, "%s%d%s%s", at > 0 ? " " : "", e->wd,
			       one ? short_names[bit] : "??", e->mask & IN_ISDIR ? "/" : "");
	if (e->len > 0)
		at += (size_t)snprintf(text + at, size - at, ":%s", e->name);
	/* Both events of a rename have one cookie, of which no other has any. */
	if (((e->mask & IN_MOVE) != 0) != (e->cookie != 0) ||
	    ((e->mask & IN_MOVED_TO) && *cookie != 0 && e->cookie != *cookie) ||
	    e->len % sizeof(*e) != 0)
		snprintf(text + at, size - at, "!cookie");
	*cookie = e->mask & IN_MOVED_FROM ? e->cookie : 0;
}

/* All that can be read now, as text: of each event the watch, what, a / for a directory, :NAME. */
static const char *
events(int fd)
{
	static char text[4096];
	char buf[4096] __attribute__((aligned(8)));
	uint32_t cookie = 0;
	ssize_t n;

	text[0] = '\0';
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buf + at);

			add_event(text, sizeof(text), e, &cookie);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	return text;
}

static bool
tells(int fd, const char *expected, int line)
{
	const char *found = events(fd);

	if (strcmp(found, expected) == 0)
		return true;
	printf("# inotify.c:%d: found \"%s\", expected \"%s\"\n", line, found, expected);
	return false;
}
#define TELLS(expected) tells(in, expected, __LINE__)

static int in; /* the file of inotify of this test */

/* An empty directory, in which nothing is watched yet. */
static bool
begin(void)
{
	in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return in >= 0 && mkdir(DIR_NAME, 0755) == 0;
}

static bool
end(bool good)
{
	unlink(F);
	unlink(G);
	unlink(S);
	rmdir(S);
	return close(in) == 0 && rmdir(DIR_NAME) == 0 && good;
}

/* Makes an empty file. */
static bool
make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	return fd >= 0 && close(fd) == 0;
}

static bool
lists(const char *path)
{
	DIR *d = opendir(path);
	bool good = d != NULL && readdir(d) != NULL;

	return d != NULL && closedir(d) == 0 && good;
}

static bool
tells_of_names(void)
{
	bool good = begin() && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 1;
	char c[4];
	int fd = open(F, O_RDWR | O_CREAT, 0644), path;

	good = good && fd >= 0 && TELLS("1C:f 1O:f");
	good = good && write(fd, "ab", 2) == 2 && write(fd, "c", 1) == 1 && TELLS("1M:f");
	good = good && pread(fd, c, 2, 0) == 2 && pread(fd, c, 4, 3) == 0 && TELLS("1A:f");
	good = good && fchmod(fd, 0600) == 0 && ftruncate(fd, 1) == 0 && TELLS("1ATTR:f 1M:f");
	good = good && fallocate(fd, 0, 0, 10) == 0 && fchown(fd, getuid(), getgid()) == 0 &&
	       TELLS("1M:f 1ATTR:f");
	path = open(F, O_PATH);
	good = good && path >= 0 && close(path) == 0 && TELLS("");
	good = good && close(fd) == 0 && TELLS("1CW:f");
	fd = open(F, O_RDONLY);
	good = good && fd >= 0 && close(fd) == 0 && TELLS("1O:f 1CN:f");
	fd = open(F, O_WRONLY | O_TRUNC);
	good = good && fd >= 0 && close(fd) == 0 && TELLS("1O:f 1M:f 1CW:f");
	good = good && truncate(F, 5) == 0 && TELLS("1M:f");
	good = good && link(F, G) == 0 && unlink(G) == 0 && TELLS("1C:g 1D:g");
	good = good && rename(F, G) == 0 && TELLS("1MF:f 1MT:g");
	good = good && rename(G, "/tmp/linux_inotify_out") == 0 && TELLS("1MF:g");
	good = good && rename("/tmp/linux_inotify_out", G) == 0 && TELLS("1MT:g");
	good = good && mkdir(S, 0700) == 0 && lists(S) && TELLS("1C/:s 1O/:s 1A/:s 1CN/:s");
	good = good && lists(DIR_NAME) && TELLS("1O/ 1A/ 1CN/");
	good = good && chmod(S, 0755) == 0 && rmdir(S) == 0 && TELLS("1ATTR/:s 1D/:s");
	good = good && symlink("g", S) == 0 && unlink(S) == 0 && TELLS("1C:s 1D:s");
	good = good && mkfifo(S, 0600) == 0 && unlink(S) == 0 && TELLS("1C:s 1D:s");
	good = good && chmod(DIR_NAME, 0700) == 0 && unlink(G) == 0 && TELLS("1ATTR/ 1D:g");
	return end(good);
}

static bool
tells_of_itself(void)
{
	bool good = begin() && make(F) && inotify_add_watch(in, F, IN_ALL_EVENTS) == 1;
	int fd = open(F, O_RDWR);

	good = good && write(fd, "a", 1) == 1 && link(F, G) == 0 && TELLS("1O 1M 1ATTR");
	good = good && unlink(G) == 0 && rename(F, G) == 0 && TELLS("1ATTR 1MS");
	/* The last name; then the last use. */
	good = good && unlink(G) == 0 && TELLS("1ATTR") && close(fd) == 0 && TELLS("1CW 1DS 1IGN");
	good = good && make(F) && inotify_add_watch(in, F, IN_ALL_EVENTS) == 2 && unlink(F) == 0 &&
	       TELLS("2ATTR 2DS 2IGN");
	/* Another file takes its name. */
	good = good && make(F) && make(G) && inotify_add_watch(in, F, IN_ALL_EVENTS) == 3 &&
	       rename(G, F) == 0 && TELLS("3ATTR 3DS 3IGN");
	good = good && mkdir(S, 0700) == 0 && inotify_add_watch(in, S, IN_ALL_EVENTS) == 4 &&
	       rename(S, G) == 0 && rename(G, S) == 0 && TELLS("4MS") && rmdir(S) == 0 &&
	       TELLS("4DS 4IGN");
	/* Both it and its directory, which comes first; with two names of which one is watched. */
	good = good && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 5 &&
	       inotify_add_watch(in, F, IN_ALL_EVENTS) == 6 && chmod(F, 0600) == 0 &&
	       TELLS("5ATTR:f 6ATTR");
	good = good && rename(F, G) == 0 && TELLS("5MF:f 5MT:g 6MS");
	good = good && unlink(G) == 0 && TELLS("6ATTR 6DS 6IGN 5D:g");
	return end(good);
}

static bool
tells_of_exchanges(void)
{
	bool good = begin() && make(F) && mkdir(S, 0700) == 0 &&
		    inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 1 &&
		    inotify_add_watch(in, S, IN_MOVE_SELF | IN_MOVED_TO | IN_MOVED_FROM) == 2;

	good = good && renameat2(AT_FDCWD, F, AT_FDCWD, S, RENAME_EXCHANGE) == 0 &&
	       TELLS("1MF:f 1MT:s 1MF/:s 1MT/:f 2MS");
	good = good && rename(S, F "/x") == 0 && TELLS("1MF:s 2MT:x") && rename(F "/x", G) == 0 &&
	       TELLS("2MF:x 1MT:g") && rename(G, G) == 0 && TELLS("");
	good = good && FAILS(renameat2(AT_FDCWD, F, AT_FDCWD, G, RENAME_NOREPLACE), EEXIST) &&
	       FAILS(rename(G, F), EISDIR) && TELLS("") && rename(F, S) == 0 &&
	       TELLS("1MF/:f 1MT/:s 2MS");
	return end(good);
}

static bool
tells_of_times(void)
{
	struct timespec both[2] = {{0}}, modified[2] = {{.tv_nsec = UTIME_OMIT}, {0}},
			accessed[2] = {{0}, {.tv_nsec = UTIME_OMIT}},
			none[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
	bool good = begin() && make(F) && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 1;

	good = good && utimensat(AT_FDCWD, F, both, 0) == 0 && TELLS("1ATTR:f");
	good = good && utimensat(AT_FDCWD, F, NULL, 0) == 0 && TELLS("1ATTR:f");
	good = good && utimensat(AT_FDCWD, F, modified, 0) == 0 && TELLS("1M:f");
	good = good && utimensat(AT_FDCWD, F, accessed, 0) == 0 && TELLS("1A:f");
	good = good && utimensat(AT_FDCWD, F, none, 0) == 0 && TELLS("");
	good = good && chown(F, (uid_t)-1, (gid_t)-1) == 0 && TELLS("");
	return end(good);
}

static bool
tells_of_copies(void)
{
	bool good = begin() && make(F) && make(G) && truncate(F, 100) == 0;
	int from = open(F, O_RDONLY), to = open(G, O_WRONLY), ends[2];

	good = good && inotify_add_watch(in, DIR_NAME, IN_ACCESS | IN_MODIFY) == 1 &&
	       sendfile(to, from, NULL, 50) == 50 && TELLS("1A:f 1M:g");
	good = good && copy_file_range(from, NULL, to, NULL, 50, 0) == 50 && TELLS("1A:f 1M:g");
	good = good && pipe(ends) == 0 && write(ends[1], "abc", 3) == 3 &&
	       splice(ends[0], NULL, to, NULL, 3, 0) == 3 && TELLS("1M:g");
	close(ends[0]);
	close(ends[1]);
	close(from);
	close(to);
	return end(good);
}

static bool
tells_of_programs(void)
{
	bool good = begin() && inotify_add_watch(in, linux_test_path(),
						 IN_OPEN | IN_ACCESS | IN_CLOSE | IN_MODIFY) == 1;

	good = good && execute_self("inotify-executed") == 7 && TELLS("1O 1A 1CN");
	return end(good);
}

int
inotify_as_executed(void)
{
	return 7;
}

static bool
forgets_removed_names(void)
{
	bool good =
	    begin() && make(F) && make(G) && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 1;
	int fd = open(F, O_RDWR);

	/* As long as it is open, its events have the name that it had. */
	good = good && unlink(F) == 0 && TELLS("1O:f 1D:f") && write(fd, "a", 1) == 1 &&
	       TELLS("1M:f") && close(fd) == 0 && TELLS("1CW:f");
	fd = open(G, O_RDWR);
	good = good && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS | IN_EXCL_UNLINK) == 1 &&
	       write(fd, "a", 1) == 1 && unlink(G) == 0 && TELLS("1O:g 1M:g 1D:g") &&
	       write(fd, "a", 1) == 1 && close(fd) == 0 && TELLS("");
	return end(good);
}

/* Directories in each other, each open while it is removed: what they keep goes with the last. */
static bool
forgets_deep_directories(void)
{
	enum { DEEP = 300 };
	int fds[DEEP], n = 0, top;
	bool good = begin() && inotify_add_watch(in, DIR_NAME, IN_DELETE) == 1;

	for (top = fds[0] = open(DIR_NAME, O_RDONLY); good && n < DEEP - 1; n++)
		good = mkdirat(fds[n], "s", 0700) == 0 &&
		       (fds[n + 1] = openat(fds[n], "s", O_RDONLY)) >= 0;
	for (int i = n; good && i > 0; i--)
		good = unlinkat(fds[i - 1], "s", AT_REMOVEDIR) == 0;
	for (int i = 1; i <= n; i++)
		close(fds[i]);
	close(top);
	return end(good && TELLS("1D/:s"));
}

/* Has the file's fdinfo such a line? */
static bool
fdinfo_says(int wd, unsigned mask)
{
	char path[64], line[256], start[64], has[64];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", in);
	snprintf(start, sizeof(start), "inotify wd:%x ino:", (unsigned)wd);
	snprintf(has, sizeof(has), " mask:%x ignored_mask:0 ", mask);
	f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		found |= strncmp(line, start, strlen(start)) == 0 && strstr(line, has) != NULL;
	if (f != NULL)
		fclose(f);
	return found;
}

static bool
changes_watches(void)
{
	bool good = begin() && make(F) && symlink("f", S) == 0;

	good = good && inotify_add_watch(in, F, IN_OPEN | IN_ATTRIB) == 1 &&
	       inotify_add_watch(in, S, IN_MODIFY) == 1 && chmod(F, 0600) == 0 && TELLS("");
	good = good && inotify_add_watch(in, F, IN_ATTRIB | IN_MASK_ADD) == 1 &&
	       chmod(F, 0644) == 0 && truncate(F, 1) == 0 && TELLS("1ATTR 1M");
	good = good && FAILS(inotify_add_watch(in, F, IN_ATTRIB | IN_MASK_CREATE), EEXIST) &&
	       FAILS(inotify_add_watch(in, F, IN_ATTRIB | IN_MASK_ADD | IN_MASK_CREATE), EINVAL);
	good = good && inotify_add_watch(in, S, IN_ALL_EVENTS | IN_DONT_FOLLOW) == 2 &&
	       FAILS(inotify_add_watch(in, F, IN_OPEN | IN_ONLYDIR), ENOTDIR) &&
	       inotify_add_watch(in, DIR_NAME, IN_DELETE | IN_ONLYDIR | IN_ONESHOT) == 3;
	good = good && fdinfo_says(1, IN_MODIFY | IN_ATTRIB) && fdinfo_says(2, IN_ALL_EVENTS) &&
	       fdinfo_says(3, IN_DELETE | IN_ONESHOT) && !fdinfo_says(4, IN_OPEN);
	good = good && unlink(S) == 0 && TELLS("2ATTR 2DS 2IGN 3D:s 3IGN") && make(G) &&
	       unlink(G) == 0 && TELLS("");
	good = good && inotify_rm_watch(in, 1) == 0 && TELLS("1IGN") && chmod(F, 0600) == 0 &&
	       TELLS("") && FAILS(inotify_rm_watch(in, 1), EINVAL) &&
	       FAILS(inotify_rm_watch(in, 3), EINVAL);
	/* Numbers are not given again. */
	good = good && inotify_add_watch(in, F, IN_ATTRIB) == 4 && inotify_rm_watch(in, 4) == 0 &&
	       inotify_add_watch(in, F, IN_ATTRIB) == 5 && TELLS("4IGN");
	return end(good);
}

static int
watch_as_nobody(void *arg)
{
	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 2;
	return !(FAILS(inotify_add_watch(in, F, IN_OPEN), EACCES) &&
		 inotify_add_watch(in, G, IN_OPEN) == 1);
}

static bool
refuses_watches(void)
{
	bool good = begin() && make(F) && make(G) && chmod(F, 0600) == 0;
	int other = open(F, O_RDONLY), instance;

	good = good && FAILS(inotify_add_watch(in, F, 0), EINVAL) &&
	       FAILS(inotify_add_watch(in, F, IN_OPEN | 0x1000), EINVAL) &&
	       FAILS(inotify_add_watch(in, F, IN_OPEN | 0x08000000), EINVAL) &&
	       FAILS(inotify_add_watch(999, F, IN_OPEN), EBADF) &&
	       FAILS(inotify_add_watch(other, F, IN_OPEN), EINVAL) &&
	       FAILS(inotify_add_watch(in, S, IN_OPEN), ENOENT) &&
	       FAILS(inotify_add_watch(in, "", IN_OPEN), ENOENT) &&
	       FAILS(inotify_add_watch(in, NOWHERE, IN_OPEN), EFAULT) &&
	       FAILS(inotify_rm_watch(999, 1), EBADF) &&
	       FAILS(inotify_rm_watch(other, 1), EINVAL) &&
	       FAILS(inotify_rm_watch(in, 1), EINVAL) && FAILS(inotify_init1(2), EINVAL);
	good = good && in_child(watch_as_nobody, NULL) == (getuid() == 0 ? 0 : 2);
	good = good && FAILS(write(in, "a", 1), EBADF) &&
	       (fcntl(in, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_NONBLOCK &&
	       fcntl(in, F_GETFD) == FD_CLOEXEC;
#ifdef SYS_inotify_init
	instance = (int)syscall(SYS_inotify_init);
#else
	instance = inotify_init1(0);
#endif
	good = good && instance >= 0 && fcntl(instance, F_GETFL) == O_RDONLY &&
	       fcntl(instance, F_GETFD) == 0;
	close(instance);
	close(other);
	return end(good);
}

static bool
reads_events(void)
{
	struct pollfd p;
	struct inotify_event e[4];
	char *names = (char *)e;
	bool good = begin() && make(F) && inotify_add_watch(in, DIR_NAME, IN_ALL_EVENTS) == 1;
	int set = epoll_create1(0), n = -1;

	p = (struct pollfd){.fd = in, .events = POLLIN | POLLOUT};
	good = good && FAILS(read(in, e, sizeof(e)), EAGAIN) && poll(&p, 1, 0) == 0 &&
	       ioctl(in, FIONREAD, &n) == 0 && n == 0 && FAILS(ioctl(in, TIOCGWINSZ, &n), ENOTTY);
	good = good && watch(set, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLET, 0) == 0 && told(set) == 0;
	good = good && chmod(DIR_NAME, 0700) == 0 && told(set) == EPOLLIN && told(set) == 0 &&
	       chmod(F, 0600) == 0 && told(set) == EPOLLIN && poll(&p, 1, 0) == 1 &&
	       p.revents == POLLIN && ioctl(in, FIONREAD, &n) == 0 && n == 16 + 32;
	/* What does not fit waits: the first one without a name, the other with 16 bytes of it. */
	good = good && FAILS(read(in, e, 15), EINVAL) && FAILS(read(in, e, 0), EINVAL) &&
	       read(in, e, 47) == 16 && FAILS(read(in, e, 31), EINVAL) &&
	       FAILS(read(in, NOWHERE, 32), EFAULT) && chmod(F, 0644) == 0;
	memset(e, 0x55, sizeof(e));
	good = good && read(in, e, sizeof(e)) == 32 && e[0].wd == 1 && e[0].mask == IN_ATTRIB &&
	       e[0].cookie == 0 && e[0].len == 16 &&
	       memcmp(names + 16, "f\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) == 0;
	/* Equal events that follow each other are one, and others are not. */
	good = good && chmod(F, 0600) == 0 && chmod(F, 0644) == 0 && truncate(F, 9) == 0 &&
	       chmod(F, 0600) == 0 && TELLS("1ATTR:f 1M:f 1ATTR:f");
	close(set);
	return end(good);
}

static int
change_later(void *arg)
{
	return !await_sleep(getppid(), 0) || chmod(F, 0600) != 0;
}

static bool
waits_for_events(void)
{
	bool good = begin() && make(F) && inotify_add_watch(in, F, IN_ATTRIB) == 1 &&
		    fcntl(in, F_SETFL, 0) == 0;
	struct inotify_event e[2];
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(change_later(NULL));
	good = good && read(in, e, sizeof(e)) == 16 && e[0].mask == IN_ATTRIB;
	good = good && waitpid(pid, &status, 0) == pid && status == 0;
	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(read(in, e, sizeof(e)), EINTR) && signals_seen > 0;
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	return end(good);
}

static unsigned
limit(const char *name)
{
	char path[64], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	return (unsigned)strtoul(text, NULL, 10);
}

static bool
limits_events(void)
{
	static struct inotify_event e[1024];
	unsigned max = limit("max_queued_events"), n = 0, over = 0;
	bool good = begin() && make(F) && inotify_add_watch(in, F, IN_ATTRIB | IN_MODIFY) == 1;
	int fd = open(F, O_RDWR);
	ssize_t got;

	for (unsigned i = 0; good && i < max + 10; i++)
		good = i % 2 == 0 ? fchmod(fd, 0600) == 0 : write(fd, "a", 1) == 1;
	while (good && (got = read(in, e, sizeof(e))) > 0) {
		for (ssize_t i = 0; i < got / 16; i++, n++) {
			over += e[i].mask == IN_Q_OVERFLOW && e[i].wd == -1 && e[i].len == 0 &&
				n == max;
			good = good && (n == max || e[i].mask == (n % 2 ? IN_MODIFY : IN_ATTRIB));
		}
	}
	good = good && n == max + 1 && over == 1 && fchmod(fd, 0600) == 0 && TELLS("1ATTR");
	close(fd);
	return end(good);
}

static bool
limits_files(void)
{
	unsigned max = limit("max_user_instances"), n = 0;
	bool good = max > 0 && max < 4096 && limit("max_user_watches") >= 8192;
	static int fds[4096];

	while (n <= max && (fds[n] = inotify_init1(0)) >= 0)
		n++;
	good = good && n > 0 && n <= max && errno == EMFILE;
	while (n > 0)
		close(fds[--n]);
	fds[0] = inotify_init1(0);
	return fds[0] >= 0 && close(fds[0]) == 0 && good;
}

/* A link of /proc is watched, and has the last reference to a pipe that is watched, too. */
static bool
ends_with_links(void)
{
	char link[40];
	int p[2];
	bool good = begin() && pipe(p) == 0;

	for (int last = 0; good && last < 2; last++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", p[0]);
		good = inotify_add_watch(in, link, IN_ATTRIB | IN_DONT_FOLLOW) == 1 + 2 * last &&
		       inotify_add_watch(in, link, IN_ATTRIB) == 2 + 2 * last;
		close(p[0]);
		close(p[1]);
		if (last == 0)
			good = good && inotify_rm_watch(in, 1) == 0 && pipe(p) == 0;
	}
	return end(good);
}

/* A file's newest name is removed: it has the older one again. */
static bool
tells_older_names(void)
{
	bool good = begin() && make(F) && link(F, G) == 0 && unlink(G) == 0 &&
		    inotify_add_watch(in, DIR_NAME, IN_OPEN | IN_ATTRIB) == 1;

	good = good && make(F) && chmod(F, 0600) == 0 && TELLS("1O:f 1ATTR:f");
	return end(good);
}

/* The same while it is open by the older one, which nobody looks for meanwhile. */
static bool
keeps_older_names(void)
{
	char link_name[32], path[64] = "";
	bool good = begin() && make(F);
	int fd = open(F, O_WRONLY);

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	good = good && link(F, G) == 0 && unlink(G) == 0 &&
	       inotify_add_watch(in, DIR_NAME, IN_MODIFY) == 1 && write(fd, "x", 1) == 1 &&
	       TELLS("1M:f") && readlink(link_name, path, sizeof(path) - 1) > 0 &&
	       strcmp(path, F) == 0;
	/* also after its names have changed places with another file's */
	good = good && link(F, S) == 0 && make(G) &&
	       renameat2(AT_FDCWD, F, AT_FDCWD, G, RENAME_EXCHANGE) == 0 && unlink(S) == 0 &&
	       write(fd, "x", 1) == 1 && TELLS("1M:g") && rename(G, F) == 0 &&
	       write(fd, "x", 1) == 1 && TELLS("1M:f");
	close(fd);
	return end(good);
}

/* ---- many at once ---- */

static volatile bool stop;

static void *
rename_often(void *arg)
{
	while (!stop) {
		make(F);
		rename(F, G);
		unlink(G);
		mkdir(S, 0700);
		rmdir(S);
	}
	return NULL;
}

static void *
watch_often(void *arg)
{
	while (!stop) {
		int fd = inotify_init1(IN_NONBLOCK);
		char buf[512] __attribute__((aligned(8)));

		inotify_add_watch(fd, F, IN_ALL_EVENTS);
		inotify_add_watch(fd, S, IN_ALL_EVENTS | IN_ONESHOT);
		inotify_add_watch(fd, DIR_NAME, IN_ALL_EVENTS);
		inotify_rm_watch(fd, 1);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	return NULL;
}

/* Of the first thread: each name is made before it is removed, and moved in between. */
static bool
many_at_once(void)
{
	const uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVE;
	bool good = begin() && inotify_add_watch(in, DIR_NAME, mask) == 1;
	char buf[4096] __attribute__((aligned(8)));
	pthread_t threads[3];
	unsigned n = 0, at = 0;

	stop = false;
	for (unsigned i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, i == 0 ? rename_often : watch_often, NULL);
	while (good && n < how_often(2000)) {
		static const uint32_t order[] = {
		    IN_CREATE, IN_MOVED_FROM,        IN_MOVED_TO,
		    IN_DELETE, IN_CREATE | IN_ISDIR, IN_DELETE | IN_ISDIR};
		ssize_t got = read(in, buf, sizeof(buf));

		for (ssize_t i = 0; good && i < got; n++) {
			const struct inotify_event *e = (const void *)(buf + i);

			if (e->mask == IN_Q_OVERFLOW)
				at = UINT32_MAX;
			else if (at == UINT32_MAX)
				at = e->mask == (IN_DELETE | IN_ISDIR) ? 0 : at;
			else
				good = e->mask == order[at++ % 6];
			i += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	stop = true;
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return end(good);
}

void
test_inotify(void)
{
	result(tells_of_names(),
	       "inotify tells what happens to the files of a directory, with names");
	result(tells_of_itself(), "and to what is watched itself, until it is gone");
	result(tells_of_exchanges(), "both names of a rename, in pairs");
	result(tells_of_times(), "utimensat() is a change of attributes, of data, or an access");
	result(tells_of_copies(),
	       "sendfile() and copy_file_range() read one file and write another");
	result(tells_of_programs(), "a program that is executed is opened, read and closed");
	result(forgets_removed_names(), "an open file has its last name, but for IN_EXCL_UNLINK");
	result(forgets_deep_directories(), "removed directories that are open let each other go");
	result(changes_watches(), "watches are changed, added to, removed, and end with one event");
	result(ends_with_links(), "watches of links of /proc, and of what they lead to, end");
	result(tells_older_names(), "a file whose newest name is removed is told by another one");
	result(keeps_older_names(), "also while it is open");
	result(refuses_watches(), "inotify refuses what Linux refuses");
	result(reads_events(), "events come whole, and equal ones once");
	result(waits_for_events(), "a read waits for an event, or a signal");
	if (how_often(20) > 1) /* the queue is long */
		result(limits_events(), "a queue that is full ends with one IN_Q_OVERFLOW");
	result(limits_files(), "a user has max_user_instances files of inotify");
	result(many_at_once(), "events keep their order while watches come and go");
}
