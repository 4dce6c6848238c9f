/*
 * failing.c - acts of which each allocation of the kernel's fails in turn. Each time the act
 * succeeds, or fails with an error of want of memory; afterwards it succeeds, and the kernel has
 * all the memory that it had before.
 */
#include "tests/user/failing.h"

#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TURNS 400 /* more allocations than any act makes */
#define TRIES 8   /* of which one leaves no less memory than there was */
#define ROOM  "/tmp/failing"

/* An act returns 0, or the error of the first call that failed, and leaves nothing in either case.
 */
#define TRY(call)                      \
	do {                           \
		if ((call) < 0) {      \
			error = errno; \
			goto out;      \
		}                      \
	} while (0)

static uint64_t left; /* allocations that were not made until the one that was to fail */

static bool
fail_by(const char *name, unsigned n)
{
	char text[16], why[128];

	snprintf(text, sizeof(text), "%u", n);
	return sysctl_set(name, text, why, sizeof(why)) >= 0;
}

/* The nth allocation fails. 0: none. False: it cannot. */
static bool
fail_at(unsigned n)
{
	return fail_by("debug.ktest.fail_alloc", n);
}

/* From here on nothing fails: what takes back an act whose calls allocate. */
static void
fail_no_more(void)
{
	uint64_t n = 0;

	sysctl_get_u64("debug.ktest.fail_alloc", &n);
	if (n > 0)
		left = n;
	fail_at(0);
}

static void
close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int
act_pipe(void)
{
	int fd[2] = {-1, -1}, copy = -1, error = 0;
	char c = 'x';

	TRY(pipe(fd));
	TRY(write(fd[1], &c, 1));
	TRY(fcntl(fd[1], F_SETPIPE_SZ, 8192));
	TRY(read(fd[0], &c, 1));
	TRY(copy = fcntl(fd[0], F_DUPFD, 900));
out:
	close_if(fd[0]);
	close_if(fd[1]);
	close_if(copy);
	return error;
}

/* A message with a file in it, both ways. */
static int
act_unix(int type)
{
	char byte = 'x', room[64] __attribute__((aligned(16))) = "";
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = CMSG_SPACE(sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd[2] = {-1, -1}, got = -1, error = 0;

	TRY(socketpair(AF_UNIX, type, 0, fd));
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &fd[0], sizeof(int));
	TRY(sendmsg(fd[0], &m, MSG_DONTWAIT));
	TRY(recvmsg(fd[1], &m, MSG_DONTWAIT));
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL)
		memcpy(&got, CMSG_DATA(c), sizeof(int));
	else
		error = ENOMEM; /* MSG_CTRUNC says it */
out:
	close_if(got);
	close_if(fd[0]);
	close_if(fd[1]);
	return error;
}

static int
act_stream(void)
{
	return act_unix(SOCK_STREAM);
}

static int
act_datagram(void)
{
	return act_unix(SOCK_DGRAM);
}

static int
act_seqpacket(void)
{
	return act_unix(SOCK_SEQPACKET);
}

static int
act_unix_name(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = ROOM "/socket"};
	int l = -1, c = -1, s = -1, error = 0;

	TRY(l = socket(AF_UNIX, SOCK_STREAM, 0));
	TRY(bind(l, (struct sockaddr *)&at, sizeof(at)));
	TRY(listen(l, 4));
	TRY(c = socket(AF_UNIX, SOCK_STREAM, 0));
	TRY(connect(c, (struct sockaddr *)&at, sizeof(at)));
	TRY(s = accept(l, NULL, NULL));
out:
	unlink(at.sun_path);
	close_if(s);
	close_if(c);
	close_if(l);
	return error;
}

static const struct linger at_once = {1, 0}; /* a reset: the connection is not remembered */

/* Waits for what the loopback loses for want of memory, but not for ever. */
static int
within(int fd, short what)
{
	struct timeval t = {2, 0};

	return setsockopt(fd, SOL_SOCKET, what, &t, sizeof(t));
}

static int
act_tcp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int l = -1, c = -1, s = -1, error = 0;
	static char text[9000];

	TRY(l = socket(AF_INET, SOCK_STREAM, 0));
	TRY(within(l, SO_RCVTIMEO));
	TRY(bind(l, (struct sockaddr *)&at, len));
	TRY(listen(l, 4));
	TRY(getsockname(l, (struct sockaddr *)&at, &len));
	TRY(c = socket(AF_INET, SOCK_STREAM, 0));
	TRY(within(c, SO_SNDTIMEO));
	TRY(setsockopt(c, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	TRY(connect(c, (struct sockaddr *)&at, len));
	TRY(s = accept(l, NULL, NULL));
	TRY(setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	TRY(within(s, SO_RCVTIMEO));
	TRY(write(c, text, sizeof(text)));
	for (size_t n = 0; n < sizeof(text);) {
		ssize_t got = read(s, text, sizeof(text) - n);

		TRY(got);
		n += (size_t)got;
	}
out:
	close_if(s);
	close_if(c);
	close_if(l);
	return error;
}

static int
act_udp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	static char text[9000];
	int r = -1, s = -1, error = 0;

	TRY(r = socket(AF_INET, SOCK_DGRAM, 0));
	TRY(bind(r, (struct sockaddr *)&at, len));
	TRY(getsockname(r, (struct sockaddr *)&at, &len));
	TRY(s = socket(AF_INET, SOCK_DGRAM, 0));
	TRY(sendto(s, text, sizeof(text), 0, (struct sockaddr *)&at, len));
	if (recv(r, text, sizeof(text), MSG_DONTWAIT) != sizeof(text))
		error = ENOBUFS; /* a datagram may be lost */
out:
	close_if(r);
	close_if(s);
	return error;
}

static int
act_events(void)
{
	struct itimerspec later = {.it_value = {100, 0}};
	struct epoll_event e = {.events = EPOLLIN};
	int ep = -1, fd[3] = {-1, -1, -1}, error = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	TRY(ep = epoll_create1(0));
	TRY(fd[0] = eventfd(0, 0));
	TRY(fd[1] = timerfd_create(CLOCK_MONOTONIC, 0));
	TRY(fd[2] = signalfd(-1, &set, 0));
	TRY(timerfd_settime(fd[1], 0, &later, NULL));
	for (unsigned i = 0; i < 3; i++)
		TRY(epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e));
	TRY(epoll_wait(ep, &e, 1, 0));
out:
	for (unsigned i = 0; i < 3; i++)
		close_if(fd[i]);
	close_if(ep);
	return error;
}

static int
act_watch(void)
{
	char buf[512];
	int in = -1, fd = -1, error = 0;

	TRY(in = inotify_init1(IN_NONBLOCK));
	TRY(inotify_add_watch(in, ROOM, IN_ALL_EVENTS));
	TRY(fd = open(ROOM "/seen", O_RDWR | O_CREAT, 0600));
	TRY(read(in, buf, sizeof(buf)));
out:
	close_if(fd);
	close_if(in);
	unlink(ROOM "/seen");
	return error == EAGAIN ? ENOMEM : error;
}

static int
act_names(void)
{
	int fd = -1, error = 0;
	char buf[256];

	TRY(mkdir(ROOM "/d", 0700));
	TRY(fd = open(ROOM "/d/a", O_RDWR | O_CREAT | O_EXCL, 0600));
	TRY(write(fd, "text", 4));
	TRY(link(ROOM "/d/a", ROOM "/d/b"));
	TRY(symlink("a", ROOM "/d/l"));
	TRY(readlink(ROOM "/d/l", buf, sizeof(buf)));
	TRY(rename(ROOM "/d/b", ROOM "/c"));
	TRY(rename(ROOM "/d", ROOM "/e"));
	TRY(setxattr(ROOM "/e/a", "user.x", "text", 4, 0));
	TRY(truncate(ROOM "/e/l", 100000));
	TRY(unlink(ROOM "/c"));
out:
	close_if(fd);
	for (const char *const *p =
		 (const char *const[]){ROOM "/c", ROOM "/d/a", ROOM "/d/b", ROOM "/d/l",
				       ROOM "/e/a", ROOM "/e/b", ROOM "/e/l", NULL};
	     *p != NULL; p++)
		unlink(*p);
	rmdir(ROOM "/d");
	rmdir(ROOM "/e");
	return error;
}

static int
act_locks(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 100};
	int fd = -1, error = 0;

	TRY(fd = open(ROOM "/lock", O_RDWR | O_CREAT, 0600));
	TRY(flock(fd, LOCK_EX));
	TRY(fcntl(fd, F_SETLK, &l));
	l.l_type = F_UNLCK;
	l.l_start = 50;
	l.l_len = 10;
	TRY(fcntl(fd, F_SETLK, &l));
out:
	close_if(fd);
	unlink(ROOM "/lock");
	return error;
}

static int
act_memory(void)
{
	char *p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *q = MAP_FAILED;
	int error = 0;

	if (p == MAP_FAILED)
		return errno;
	p[0] = p[4096 * 9] = 1;
	TRY(mprotect(p + 4096 * 8, 4096, PROT_READ));
	TRY(munmap(p + 4096 * 20, 4096));
	TRY(madvise(p + 4096 * 30, 4096, MADV_DONTNEED));
	q = mremap(p + 4096 * 40, 4096, 8192, MREMAP_MAYMOVE);
	if (q == MAP_FAILED)
		error = errno;
	else if (munmap(q, 8192) < 0) /* one area with its neighbour, as may be: then it is split */
		error = errno;
out:
	fail_no_more();
	if (q != MAP_FAILED)
		munmap(q, 8192);
	munmap(p, 64 * 4096);
	return error;
}

static int
act_fork(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : waitpid(pid, &status, 0) == pid && status == 0 ? 0 : ENOMEM;
}

static void *
in_thread(void *arg)
{
	return arg;
}

static int
act_thread(void)
{
	pthread_t t;
	int error = pthread_create(&t, NULL, in_thread, NULL);

	return error != 0 ? error : pthread_join(t, NULL);
}

static int
act_exec(void)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		execl("/bin/busybox", "true", NULL);
		_exit(1);
	}
	return pid < 0 ? errno : waitpid(pid, &status, 0) == pid && status == 0 ? 0 : ENOMEM;
}

static int
act_trace(void)
{
	static const char path[] = ROOM "/ktrace";
	int fd = -1, error = 0;

	TRY(fd = open(path, O_RDWR | O_CREAT, 0600));
	TRY(ktrace(path, KTROP_SET, KTRFAC_SYSCALL | KTRFAC_INHERIT, getpid()));
	TRY(getppid());
out:
	fail_no_more();
	ktrace(NULL, KTROP_CLEAR, 0x7fffffff, getpid());
	close_if(fd);
	unlink(path);
	return error;
}

static int
act_terminal(void)
{
	int m = -1, s = -1, error = 0;
	char *name;

	TRY(m = posix_openpt(O_RDWR | O_NOCTTY));
	TRY(grantpt(m));
	TRY(unlockpt(m));
	name = ptsname(m);
	if (name == NULL)
		error = errno;
	else
		TRY(s = open(name, O_RDWR | O_NOCTTY));
out:
	close_if(s);
	close_if(m);
	return error;
}

/* Writes a text to a file. */
static int
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND), error = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		error = errno;
	close_if(fd);
	return error;
}

#define TRACING "/sys/kernel/tracing/"

static int
act_kprobe(void)
{
	int error = put(TRACING "kprobe_events", "p:failing sys_getppid\n");

	if (error == 0)
		error = put(TRACING "events/kprobes/failing/enable", "1");
	fail_no_more();
	put(TRACING "events/kprobes/failing/enable", "0");
	put(TRACING "kprobe_events", "-:failing\n");
	return error;
}

static int
act_hist(void)
{
	static const char path[] = TRACING "events/sched/sched_switch/trigger";
	int error = put(path, "hist:keys=prev_comm,next_pid:vals=hitcount if prev_prio > 1");

	fail_no_more();
	put(path, "!hist:keys=prev_comm,next_pid:vals=hitcount if prev_prio > 1");
	return error;
}

static int
act_filter(void)
{
	static const char path[] = TRACING "events/sched/sched_switch/filter";
	int error = put(path, "prev_prio > 1 && next_comm ~ \"x*\"");

	fail_no_more();
	put(path, "0");
	return error;
}

static int
act_instance(void)
{
	int error = 0;

	TRY(mkdir(TRACING "instances/failing", 0755));
	error = put(TRACING "instances/failing/events/sched/enable", "1");
out:
	fail_no_more();
	rmdir(TRACING "instances/failing");
	return error;
}

static int
act_mount(void)
{
	int error = 0;

	TRY(mkdir(ROOM "/m", 0700));
	TRY(mount("tmpfs", ROOM "/m", "tmpfs", 0, NULL));
	TRY(umount(ROOM "/m"));
out:
	fail_no_more();
	umount(ROOM "/m");
	rmdir(ROOM "/m");
	return error;
}

static int
act_proc(void)
{
	static const char *const files[] = {
	    "/proc/self/maps",  "/proc/self/status", "/proc/self/stat",
	    "/proc/mounts",     "/proc/meminfo",     "/proc/self/cmdline",
	    "/proc/interrupts", "/proc/net/tcp",     NULL};
	static char buf[4096];
	int fd = -1, error = 0;

	for (unsigned i = 0; files[i] != NULL; i++) {
		TRY(fd = open(files[i], O_RDONLY));
		TRY(read(fd, buf, sizeof(buf)));
		close(fd);
		fd = -1;
	}
out:
	close_if(fd);
	return error;
}

static int
act_signals(void)
{
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	sigset_t set;
	timer_t t;
	int error = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	TRY(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1}));
	TRY(timer_create(CLOCK_MONOTONIC, &e, &t));
	timer_delete(t);
out:
	sigtimedwait(&set, NULL, &(struct timespec){0, 0});
	return error;
}

/* Files without names, and what moves their bytes. */
static int
act_moves(void)
{
	struct pollfd p[40];
	int a = -1, b = -1, fd[2] = {-1, -1}, error = 0;

	TRY(a = memfd_create("a", 0));
	TRY(b = memfd_create("b", 0));
	TRY(ftruncate(a, 40000));
	TRY(ftruncate(b, 8192));
	TRY(sendfile(b, a, NULL, 20000));
	TRY(pipe(fd));
	TRY(splice(a, NULL, fd[1], NULL, 4096, 0));
	for (unsigned i = 0; i < 40; i++)
		p[i] = (struct pollfd){fd[i % 2], POLLIN | POLLOUT, 0};
	TRY(poll(p, 40, 0));
out:
	close_if(a);
	close_if(b);
	close_if(fd[0]);
	close_if(fd[1]);
	return error;
}

static int
act_ptrace(void)
{
	pid_t pid = fork();
	int status, error = 0;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (pid < 0)
		return errno;
	TRY(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	TRY(waitpid(pid, &status, 0));
	errno = 0;
	ptrace(PTRACE_PEEKDATA, pid, (void *)act_ptrace, NULL);
	error = errno;
out:
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return error;
}

static int
act_uprobe(void)
{
	int error = put(TRACING "uprobe_events", "p:failing /bin/user_test:0x1000\n");

	fail_no_more();
	put(TRACING "uprobe_events", "-:failing\n");
	return error;
}

static int
act_synthetic(void)
{
	int error = put(TRACING "synthetic_events", "failing u64 a; char b[16]\n");

	if (error == 0)
		error =
		    put(TRACING "dynamic_events", "e:failed sched/sched_switch pid=$prev_pid\n");
	fail_no_more();
	put(TRACING "dynamic_events", "-:failed\n");
	put(TRACING "synthetic_events", "!failing\n");
	return error;
}

static const struct act {
	const char *name;
	int (*fn)(void);
} acts[] = {
    {"pipes", act_pipe},
    {"streams with files", act_stream},
    {"datagrams with files", act_datagram},
    {"packets with files", act_seqpacket},
    {"names of sockets", act_unix_name},
    {"TCP", act_tcp},
    {"UDP", act_udp},
    {"epoll, eventfd, timerfd, signalfd", act_events},
    {"inotify", act_watch},
    {"names of files", act_names},
    {"locks of files", act_locks},
    {"memory", act_memory},
    {"fork", act_fork},
    {"threads", act_thread},
    {"exec", act_exec},
    {"ktrace", act_trace},
    {"terminals", act_terminal},
    {"kprobes", act_kprobe},
    {"histograms", act_hist},
    {"filters", act_filter},
    {"instances", act_instance},
    {"mounts", act_mount},
    {"texts of /proc", act_proc},
    {"signals and timers", act_signals},
    {"memfd, splice, poll", act_moves},
    {"ptrace", act_ptrace},
    {"uprobes", act_uprobe},
    {"synthetic events and eprobes", act_synthetic},
};

static uint64_t
heap_used(void)
{
	uint64_t n = 0;

	sysctl_get_u64("vm.heap.used", &n);
	return n;
}

static bool
is_want(int error)
{
	return error == 0 || error == ENOMEM || error == ENOBUFS || error == EAGAIN ||
	       error == ENOSPC || error == ENFILE || error == ENOLCK || error == EINPROGRESS ||
	       error == ECONNRESET;
}

/* The act's nth allocation fails, and then none. False: it was said what is wrong. */
static bool
act_turn(const struct act *a, unsigned n)
{
	int error;

	left = 0;
	if (!fail_at(n))
		return false;
	error = a->fn();
	fail_no_more();
	if (!is_want(error)) {
		printf("# %s, allocation %u: %s\n", a->name, n, strerror(error));
		return false;
	}
	error = a->fn();
	if (error != 0)
		printf("# %s, after allocation %u had failed: %s\n", a->name, n, strerror(error));
	return error == 0;
}

/*
 * Each allocation of the act fails. What is missing of the kernel's memory afterwards is missing
 * each time: others take some, too, and what ends is freed later.
 */
static bool
act_try(const struct act *a)
{
	unsigned n;

	for (unsigned i = 0; i < 2; i++)
		if (a->fn() != 0) {
			printf("# %s: fails before any allocation does\n", a->name);
			return false;
		}
	left = 0;
	for (n = 1; n < TURNS && left == 0; n++) {
		uint64_t before = 0, after = 1;

		for (unsigned i = 0; i < TRIES && after > before; i++) {
			usleep(i * 2000);
			before = heap_used();
			if (!act_turn(a, n))
				return false;
			usleep(i * 2000); /* a thread of the kernel may be about to end */
			after = heap_used();
		}
		if (after > before) {
			printf("# %s, allocation %u: %lu bytes are missing\n", a->name, n,
			       after - before);
			return false;
		}
	}
	printf("# %s: %u allocations\n", a->name, n - 2);
	return left > 0;
}

/* ---- histograms that go ---- */

#define COUNTS TRACING "events/syscalls/sys_enter_getpgid/"
#define GOES   TRACING "events/syscalls/sys_enter_getsid/"

/* What the histogram of COUNTS has counted. */
static unsigned long
hist_hits(void)
{
	static char text[65536];
	int fd = open(COUNTS "hist", O_RDONLY);
	ssize_t n = 0, got = 0;
	const char *at;

	while (fd >= 0 && (got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	close_if(fd);
	text[n] = '\0';
	at = strstr(text, "    Hits: ");
	return at != NULL ? strtoul(at + 10, NULL, 10) : 0;
}

/*
 * Two histograms have one program, since they have variables. All allocations from the nth on fail
 * when one of them is removed: the other one counts on, or who wrote that has heard of it.
 */
static bool
hist_goes(unsigned n, uint64_t *more)
{
	static const char text[] = "!hist:keys=common_pid:t1=common_timestamp";
	bool good = put(COUNTS "trigger", "hist:keys=common_pid:t0=common_timestamp") == 0 &&
		    put(GOES "trigger", text + 1) == 0;
	int fd = open(GOES "trigger", O_WRONLY | O_APPEND), error;
	unsigned long before;

	good &= fd >= 0 && fail_by("debug.ktest.fail_allocs", n);
	error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	setpgid(0, getpgid(getppid())); /* for whom none fails */
	sysctl_get_u64("debug.ktest.fail_allocs", more);
	fail_at(0);
	setpgid(0, 0);
	close_if(fd);
	before = hist_hits();
	getpgid(0);
	if (!good || (error == 0 && hist_hits() <= before) || !is_want(error)) {
		printf("# allocation %u and later: %s, %s\n", n, strerror(error),
		       hist_hits() > before ? "it counts" : "it does not count");
		good = false;
	}
	put(GOES "trigger", text);
	put(COUNTS "trigger", "!hist:keys=common_pid:t0=common_timestamp");
	return good;
}

static bool
hists_go(void)
{
	uint64_t more = 1;
	bool good = true;

	for (unsigned n = 1; n < TURNS && good && more == 1; n++)
		good = hist_goes(n, &more);
	return good && more > 1;
}

int
failing_main(int argc, char **argv)
{
	unsigned n = sizeof(acts) / sizeof(acts[0]), failures = 0;

	setpgid(0, 0); /* those of this group fail, and of nobody else */
	mkdir(ROOM, 0700);
	for (unsigned i = 0; i < n; i++) {
		bool good =
		    (argc > 1 && strstr(acts[i].name, argv[1]) == NULL) || act_try(&acts[i]);

		printf("%sok %u - %s: each allocation fails in turn\n", good ? "" : "not ", i + 1,
		       acts[i].name);
		failures += !good;
	}
	rmdir(ROOM);
	if (argc == 1) {
		bool good = hists_go();

		printf("%sok %u - a histogram that goes stops no other unheard\n",
		       good ? "" : "not ", ++n);
		failures += !good;
	}
	printf("1..%u\n", n);
	return failures != 0;
}
