/* nodes.c - mknod: FIFOs and devices; chroot. It changes the machine, so only the guest runs it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PLACE "/tmp/linux_nodes"
#define FIFO  PLACE "/fifo"

static bool
makes_nodes(void)
{
	struct stat st, null;
	mode_t mask = umask(022);
	bool good = mknod(PLACE "/file", 0666, 0) == 0 && stat(PLACE "/file", &st) == 0 &&
		    st.st_mode == (S_IFREG | 0644) && mkfifo(FIFO, 0660) == 0 &&
		    stat(FIFO, &st) == 0 && st.st_mode == (S_IFIFO | 0640) &&
		    stat("/dev/null", &null) == 0;
	char c = 'x';
	int fd;

	good = good && mknod(PLACE "/null", S_IFCHR | 0600, null.st_rdev) == 0 &&
	       stat(PLACE "/null", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == null.st_rdev;
	fd = open(PLACE "/null", O_RDWR);
	good = good && write(fd, &c, 1) == 1 && read(fd, &c, 1) == 0;
	close(fd);
#ifdef SYS_mknod
	good = good && syscall(SYS_mknod, PLACE "/old", S_IFIFO | 0600, 0) == 0 &&
	       unlink(PLACE "/old") == 0;
#endif
	/* What no device has, and what cannot be opened. */
	good = good && mknod(PLACE "/none", S_IFCHR | 0600, makedev(77, 7)) == 0 &&
	       FAILS(open(PLACE "/none", O_RDONLY), ENXIO) && unlink(PLACE "/none") == 0 &&
	       mknod(PLACE "/none", S_IFBLK | 0600, null.st_rdev) == 0 &&
	       FAILS(open(PLACE "/none", O_RDONLY), ENXIO) && unlink(PLACE "/none") == 0 &&
	       mknod(PLACE "/none", S_IFSOCK | 0600, 0) == 0 &&
	       FAILS(open(PLACE "/none", O_RDWR), ENXIO) && unlink(PLACE "/none") == 0;
	good =
	    good && FAILS(mkfifo(FIFO, 0600), EEXIST) &&
	    FAILS(mknod(PLACE "/d", S_IFDIR | 0700, 0), EPERM) &&
	    FAILS(mknod(PLACE "/d", S_IFLNK | 0700, 0), EINVAL) &&
	    FAILS(mknod(PLACE "/no/x", S_IFIFO, 0), ENOENT) &&
	    FAILS(mknod("/dev/x", S_IFIFO, 0), EPERM) &&
	    FAILS(mknodat(63, "x", S_IFIFO, 0), EBADF) &&
	    FAILS(mknod(NOWHERE, S_IFIFO, 0), EFAULT) && FAILS(mknod(NOWHERE, S_IFDIR, 0), EPERM) &&
	    FAILS(mknod(PLACE "/no/", S_IFIFO, 0), ENOENT) &&
	    FAILS(mknod(PLACE "/no/", 0600, 0), ENOENT) &&
	    FAILS(mknod(FIFO "/", S_IFIFO, 0), EEXIST) &&
	    FAILS(mknod(PLACE "/", S_IFIFO, 0), EEXIST) &&
	    FAILS(mknod(PLACE "/..", S_IFIFO, 0), EEXIST) && FAILS(mknod("", S_IFIFO, 0), ENOENT) &&
	    FAILS(open(PLACE "/no/", O_CREAT | O_RDWR, 0600), EISDIR) &&
	    FAILS(open(PLACE "/no/", O_CREAT | O_EXCL | O_RDWR, 0600), EISDIR) &&
	    link(FIFO, PLACE "/second") == 0 && unlink(FIFO) == 0 &&
	    rename(PLACE "/second", FIFO) == 0;
	umask(mask);
	return unlink(PLACE "/file") == 0 && unlink(PLACE "/null") == 0 && unlink(FIFO) == 0 &&
	       good;
}

/* Without user 0's rights: FIFOs, but no devices. */
static int
as_user(void *arg)
{
	return setuid(1000) == 0 && FAILS(mknod(PLACE "/x", S_IFCHR | 0600, 0x103), EPERM) &&
		       FAILS(mknod(NOWHERE, S_IFCHR | 0600, 0x103), EFAULT) &&
		       FAILS(mknod(PLACE, S_IFCHR | 0600, 0x103), EEXIST) &&
		       FAILS(mknod("/boot/x", S_IFCHR | 0600, 0x103), EACCES) &&
		       FAILS(mknod(PLACE "/no/x", S_IFCHR | 0600, 0x103), ENOENT) &&
		       FAILS(mknod(PLACE "/x", S_IFBLK | 0600, 0x103), EPERM) &&
		       FAILS(chroot(PLACE), EPERM) && FAILS(chroot(PLACE "/no"), ENOENT) &&
		       mkfifo(PLACE "/mine", 0600) == 0 && unlink(PLACE "/mine") == 0
		   ? 0
		   : 1;
}

/* Opens the other end; writes or reads what the word says. */
static int
other_end(void *how)
{
	char c = 'k';
	int fd = open(FIFO, *(int *)how);

	if (*(int *)how == O_WRONLY)
		return fd >= 0 && write(fd, &c, 1) == 1 ? 0 : 1;
	return fd >= 0 && read(fd, &c, 1) == 1 && c == 'm' ? 0 : 1;
}

static pid_t
begin_child(int (*fn)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(arg));
	return pid;
}

static bool
fifos_meet(void)
{
	int writes = O_WRONLY, reads = O_RDONLY, status = 1, fd, wr;
	struct pollfd p;
	char c = 0;
	pid_t pid;
	bool good = mkfifo(FIFO, 0600) == 0;

	/* Each end waits for the other one. */
	pid = begin_child(other_end, &writes);
	fd = open(FIFO, O_RDONLY);
	good = good && fd >= 0 && read(fd, &c, 1) == 1 && c == 'k' && read(fd, &c, 1) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0;
	close(fd);
	pid = begin_child(other_end, &reads);
	fd = open(FIFO, O_WRONLY);
	good = good && fd >= 0 && write(fd, "m", 1) == 1 && waitpid(pid, &status, 0) == pid &&
	       status == 0;
	close(fd);
	/* A signal ends the wait, and leaves no end open. */
	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(open(FIFO, O_RDONLY), EINTR) && FAILS(open(FIFO, O_WRONLY), EINTR);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	/* Without waiting: a reader sees no end before it has had a writer. */
	good = good && FAILS(open(FIFO, O_WRONLY | O_NONBLOCK), ENXIO);
	fd = open(FIFO, O_RDONLY | O_NONBLOCK);
	p = (struct pollfd){fd, POLLIN, 0};
	good = good && fd >= 0 && poll(&p, 1, 0) == 0 && read(fd, &c, 1) == 0;
	wr = open(FIFO, O_WRONLY | O_NONBLOCK);
	good = good && wr >= 0 && FAILS(read(fd, &c, 1), EAGAIN) && write(wr, "x", 1) == 1 &&
	       poll(&p, 1, 0) == 1 && p.revents == POLLIN && read(fd, &c, 1) == 1 &&
	       close(wr) == 0 && poll(&p, 1, 0) == 1 && p.revents == POLLHUP;
	close(fd);
	/* What nobody has read goes with the last open file; O_RDWR does not wait. */
	fd = open(FIFO, O_RDWR);
	good = good && fd >= 0 && write(fd, "lost", 4) == 4 && close(fd) == 0;
	fd = open(FIFO, O_RDWR | O_NONBLOCK);
	good = good && fd >= 0 && FAILS(read(fd, &c, 1), EAGAIN) && unlink(FIFO) == 0 &&
	       write(fd, "kept", 4) == 4 && read(fd, &c, 1) == 1 && c == 'k';
	close(fd);
	return good;
}

static pid_t opener;

static void *
opens_fifo(void *fd)
{
	__atomic_store_n(&opener, gettid(), __ATOMIC_SEQ_CST);
	*(int *)fd = open(FIFO, O_RDONLY);
	return NULL;
}

/* Returns when that thread waits. Run by a child, whose descriptors are its own: the parent's
 * lowest one is the FIFO's. */
static int
opener_waits(void *arg)
{
	return await_sleep(getppid(), opener) ? 0 : 1;
}

static bool
await_opener(void)
{
	while (__atomic_load_n(&opener, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	return in_child(opener_waits, NULL) == 0;
}

/* A FIFO that waits has its descriptor already; who gets none does not wait, nor make a file. */
static int
descriptors_first(void *arg)
{
	struct rlimit l;
	int fd, low = dup(0), waits = -1;
	pthread_t t;
	char path[32];

	if (mkfifo(FIFO, 0600) != 0 || getrlimit(RLIMIT_NOFILE, &l) != 0 || close(low) != 0)
		return 1;
	if (pthread_create(&t, NULL, opens_fifo, &waits) != 0)
		return 2;
	if (!await_opener())
		return 6;
	fd = dup(0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", low);
	if (fd != low + 1 || !FAILS(dup2(0, low), EBUSY) || !FAILS(close(low), EBADF) ||
	    !FAILS(access(path, F_OK), ENOENT) || close(fd) != 0)
		return 3;
	l.rlim_cur = (rlim_t)low + 1;
	if (setrlimit(RLIMIT_NOFILE, &l) != 0 || !FAILS(open(FIFO, O_RDONLY), EMFILE) ||
	    !FAILS(open(PLACE "/made", O_CREAT | O_RDWR, 0600), EMFILE) ||
	    !FAILS(access(PLACE "/made", F_OK), ENOENT))
		return 4;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	fd = open(FIFO, O_WRONLY);
	pthread_join(t, NULL);
	return fd == low + 1 && waits == low && close(low) == 0 && unlink(FIFO) == 0 ? 0 : 5;
}

/* Both ends are opened and closed again and again by four processes. */
static int
open_often(void *how)
{
	for (int i = 0; i < (int)how_often(300); i++) {
		int fd = open(FIFO, *(int *)how | (i % 2 ? O_NONBLOCK : 0));
		char c = 'x';

		if (fd < 0 && errno != ENXIO)
			return 1;
		if (fd >= 0 && *(int *)how == O_WRONLY && write(fd, &c, 1) != 1 && errno != EPIPE &&
		    errno != EAGAIN)
			return 2;
		if (fd >= 0 && *(int *)how == O_RDONLY)
			(void)!read(fd, &c, 1);
		close(fd);
	}
	return 0;
}

static bool
fifos_are_opened_at_once(void)
{
	int how[2] = {O_RDONLY, O_WRONLY}, status, fd;
	bool good = mkfifo(FIFO, 0600) == 0;
	pid_t pid[4];

	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 4; i++)
		pid[i] = begin_child(open_often, &how[i % 2]);
	/* An end that waits for others, which have ended, gets one. */
	for (int ended = 0; ended < 4;) {
		pid_t p = waitpid(pid[ended], &status, WNOHANG);

		good &= p >= 0 && (p == 0 || status == 0);
		ended += p != 0;
		if (p != 0 && status != 0)
			printf("# process %d: status %#x\n", pid[ended - 1], status);
		fd = open(FIFO, O_RDWR | O_NONBLOCK);
		good &= fd >= 0 && write(fd, "x", 1) == 1;
		usleep(1000);
		close(fd);
	}
	signal(SIGPIPE, SIG_DFL);
	return unlink(FIFO) == 0 && good && pid[3] > 0;
}

/* Does a link in this directory lead there? */
static bool
shows(int dir, const char *link, const char *to)
{
	char text[256] = "";

	return readlinkat(dir, link, text, sizeof(text) - 1) > 0 && strcmp(text, to) == 0;
}

static int
in_root(void *arg)
{
	int fd, proc = open("/proc/self", O_RDONLY | O_DIRECTORY),
		out = open(PLACE "/outside", O_CREAT | O_RDWR, 0600);
	char text[256], link[32];
	struct stat a, b;

	snprintf(link, sizeof(link), "fd/%d", out);

	/* The directory stays outside until it changes; then there is no way back. */
	if (chdir(PLACE) != 0 || mkdir("root", 0755) != 0 || mkdir("root/d", 0755) != 0 ||
	    symlink("/d", "root/link") != 0 || symlink("../../..", "root/d/up") != 0 ||
	    stat("root", &a) != 0 || chroot("root") != 0)
		return 1;
	/* getcwd() of the kernel says so; links of /proc are whole paths. */
	if (syscall(SYS_getcwd, text, sizeof(text)) != sizeof("(unreachable)" PLACE) ||
	    strcmp(text, "(unreachable)" PLACE) != 0 || !shows(proc, "cwd", PLACE) ||
	    !shows(proc, "root", "/") || !shows(proc, "exe", linux_test_path()) ||
	    !shows(proc, link, PLACE "/outside"))
		return 7;
	if (getcwd(text, sizeof(text)) != NULL || errno != ENOENT ||
	    !FAILS(access("/tmp", F_OK), ENOENT) || stat("..", &b) != 0 || chdir("/") != 0)
		return 2;
	if (stat("/", &b) != 0 || a.st_ino != b.st_ino || stat("/..", &b) != 0 ||
	    a.st_ino != b.st_ino || stat("../../../d/../..", &b) != 0 || a.st_ino != b.st_ino ||
	    stat("/d/up", &b) != 0 || a.st_ino != b.st_ino)
		return 3;
	if (chdir("link") != 0 || getcwd(text, sizeof(text)) == NULL || strcmp(text, "/d") != 0 ||
	    !FAILS(chroot("/d/none"), ENOENT))
		return 4;
	fd = open("/f", O_CREAT | O_RDWR, 0600);
	if (fd < 0 || !FAILS(chroot("/f"), ENOTDIR) || unlink("/f") != 0)
		return 5;
	/* Children have the root, and its root. */
	return fork() == 0 ? access("/link/up/d", F_OK) : wait(&fd) > 0 && fd == 0 ? 0 : 6;
}

static int
root_is_shown(void *fds)
{
	const int *end = fds, *ready = end + 2;
	char c;

	if (chroot(PLACE) != 0 || chdir("/") != 0)
		return 1;
	close(end[1]);
	return write(ready[1], "x", 1) == 1 && read(end[0], &c, 1) == 0 ? 0 : 2;
}

static bool
roots_change(void)
{
	int fds[4], status;
	char path[64], text[256];
	struct stat a, b;
	ssize_t n;
	pid_t pid;
	bool good = in_child(in_root, NULL) == 0 && unlink(PLACE "/root/link") == 0 &&
		    unlink(PLACE "/root/d/up") == 0 && unlink(PLACE "/outside") == 0 &&
		    rmdir(PLACE "/root/d") == 0 && rmdir(PLACE "/root") == 0;

	/* Others see it in /proc. */
	good = good && pipe(fds) == 0 && pipe(fds + 2) == 0;
	pid = begin_child(root_is_shown, fds);
	good = good && read(fds[2], text, 1) == 1;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	good = good && stat(path, &a) == 0 && stat(PLACE, &b) == 0 && a.st_ino == b.st_ino;
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	good = good && strcmp(text, PLACE) == 0 && readlink("/proc/self/root", text, 8) == 1 &&
	       text[0] == '/';
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	return waitpid(pid, &status, 0) == pid && status == 0 && good;
}

void
test_nodes(void)
{
	if (access("/sys/kernel/tracing/README", F_OK) != 0 || access("/dev/ktr", F_OK) != 0)
		return;
	mkdir(PLACE, 0777);
	chmod(PLACE, 0777);
	result(makes_nodes(), "mknod makes files, FIFOs and devices");
	result(in_child(as_user, NULL) == 0, "users make FIFOs, and no devices");
	result(fifos_meet(), "a FIFO's reader and writer wait for each other");
	result(in_child(descriptors_first, NULL) == 0,
	       "open() takes its descriptor before it waits");
	result(fifos_are_opened_at_once(), "a FIFO is opened and closed by four processes at once");
	result(roots_change(), "chroot: paths begin at the new root, and end there");
	rmdir(PLACE);
}
