/* socket_rights.c - files and credentials in messages of AF_UNIX. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define MANY 253

/* A message of one byte with control messages. */
struct packet {
	struct msghdr m;
	struct iovec v;
	char byte;
	union {
		struct cmsghdr align;
		char
		    control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(MANY * sizeof(int)) + 64];
	};
};

static struct msghdr *
packet_init(struct packet *p, size_t control)
{
	memset(p, 0, sizeof(*p));
	p->byte = 'x';
	p->v = (struct iovec){&p->byte, 1};
	p->m = (struct msghdr){.msg_iov = &p->v,
			       .msg_iovlen = 1,
			       .msg_control = p->control,
			       .msg_controllen = control};
	return &p->m;
}

static ssize_t
send_control(int s, int type, const void *data, size_t len)
{
	struct packet p;
	struct cmsghdr *c = CMSG_FIRSTHDR(packet_init(&p, CMSG_SPACE(len)));

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	return sendmsg(s, &p.m, MSG_NOSIGNAL);
}

static bool
send_file(int s, int fd)
{
	return send_control(s, SCM_RIGHTS, &fd, sizeof(fd)) == 1;
}

/* Receives files, up to `room` of them. Their number, or -1; *flags: those of the message. */
static int
receive_files(int s, int *fds, int room, int how, int *flags)
{
	struct packet p;
	struct cmsghdr *c;
	int n = 0;

	packet_init(&p, room > 0 ? CMSG_LEN((size_t)room * sizeof(int)) : 0);
	if (recvmsg(s, &p.m, how) != 1)
		return -1;
	for (c = CMSG_FIRSTHDR(&p.m); c != NULL; c = CMSG_NXTHDR(&p.m, c)) {
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
	}
	*flags = p.m.msg_flags;
	return n;
}

static bool
same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static int
open_count(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool
files_are_sent(int type)
{
	int s[2], fd = open("/dev/null", O_RDWR), got[4], flags, before = open_count();
	struct packet p;
	bool good = socketpair(AF_UNIX, type, 0, s) == 0 && send_file(s[0], fd) &&
		    receive_files(s[1], got, 4, 0, &flags) == 1 && flags == 0 && got[0] != fd &&
		    same_file(got[0], fd) && fcntl(got[0], F_GETFD) == 0 && close(got[0]) == 0;

	/* MSG_PEEK gives it, and leaves it there. */
	good = good && send_file(s[0], fd) && receive_files(s[1], got, 4, MSG_PEEK, &flags) == 1 &&
	       same_file(got[0], fd) && close(got[0]) == 0 &&
	       receive_files(s[1], got, 4, MSG_CMSG_CLOEXEC, &flags) == 1 &&
	       flags == MSG_CMSG_CLOEXEC && fcntl(got[0], F_GETFD) == FD_CLOEXEC &&
	       close(got[0]) == 0;
	/* Who fails gets none. */
	packet_init(&p, CMSG_SPACE(sizeof(int)));
	p.v.iov_base = NOWHERE;
	good = good && send_file(s[0], fd) && FAILS(recvmsg(s[1], &p.m, MSG_PEEK), EFAULT) &&
	       open_count() == before + 2 && receive_files(s[1], got, 4, 0, &flags) == 1 &&
	       close(got[0]) == 0;
	/* Without room it is closed. */
	good = good && send_file(s[0], fd) && receive_files(s[1], got, 0, 0, &flags) == 0 &&
	       flags == MSG_CTRUNC &&
	       send_control(s[0], SCM_RIGHTS, (int[3]){fd, 0, fd}, 12) == 1 &&
	       receive_files(s[1], got, 2, 0, &flags) == 2 && flags == MSG_CTRUNC &&
	       same_file(got[0], fd) && close(got[0]) == 0 && close(got[1]) == 0 &&
	       send_file(s[0], fd) && read(s[1], got, 1) == 1;
	good = good && FAILS(send_control(s[0], SCM_RIGHTS, (int[2]){fd, 999}, 8), EBADF) &&
	       FAILS(send_control(s[0], 77, (int[2]){fd, fd}, 8), EINVAL) &&
	       FAILS(recv(s[1], got, 1, MSG_DONTWAIT), EAGAIN) && open_count() == before + 2;
	close(s[0]);
	close(s[1]);
	close(fd);
	return good;
}

/* The sender may close the file, and end, before it is received. */
static bool
files_outlive_senders(void)
{
	int s[2], p[2], got[1], flags, status;
	char c = 0;
	bool good = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && pipe(p) == 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(!send_file(s[0], p[1]));
	close(p[1]);
	close(s[0]);
	good = good && waitpid(pid, &status, 0) == pid && status == 0 &&
	       receive_files(s[1], got, 1, 0, &flags) == 1 && write(got[0], "y", 1) == 1 &&
	       read(p[0], &c, 1) == 1 && c == 'y' && close(got[0]) == 0 && read(p[0], &c, 1) == 0;
	close(s[1]);
	close(p[0]);
	return good;
}

/* A place in /proc/self/fd, in a message that is dropped when the socket there has gone, and others
 * have its memory. */
static bool
places_are_sent(void)
{
	struct linger l = {1, 7}, now;
	socklen_t len = sizeof(now);
	int gone = -1, s[2], other[400], place;
	char path[64];
	bool good = socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0;

	/* They take what is free before, and its neighbours' memory. */
	for (int i = 0; i < 200; i++) {
		other[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (i == 190)
			gone = socket(AF_UNIX, SOCK_STREAM, 0);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", gone);
	place = open(path, O_PATH);
	good = good && place >= 0 && send_file(s[0], place) && close(place) == 0 &&
	       close(s[0]) == 0 && close(gone) == 0;
	for (int i = 0; i < 400; i++) {
		other[i] = i < 200 ? other[i] : socket(AF_UNIX, SOCK_STREAM, 0);
		good = setsockopt(other[i], SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0 && good;
	}
	good = close(s[1]) == 0 && good;
	for (int i = 0; i < 400; i++)
		good = getsockopt(other[i], SOL_SOCKET, SO_LINGER, &now, &len) == 0 &&
		       now.l_onoff == 1 && close(other[i]) == 0 && good;
	return good;
}

/* Bytes of a stream before and after files are not read together with those of others. */
static bool
files_divide_streams(void)
{
	char buf[16];
	struct iovec v = {buf, sizeof(buf)};
	struct packet p;
	int s[2], fd = open("/dev/null", O_RDWR);
	bool good = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && write(s[0], "a", 1) == 1 &&
		    send_file(s[0], fd) && send_file(s[0], fd) && write(s[0], "b", 1) == 1;

	packet_init(&p, CMSG_SPACE(sizeof(int)))->msg_iov = &v;
	good = good && recvmsg(s[1], &p.m, 0) == 2 && memcmp(buf, "ax", 2) == 0 &&
	       CMSG_FIRSTHDR(&p.m) != NULL && close(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&p.m))) == 0;
	packet_init(&p, CMSG_SPACE(sizeof(int)))->msg_iov = &v;
	good = good && recvmsg(s[1], &p.m, MSG_WAITALL) == 1 && CMSG_FIRSTHDR(&p.m) != NULL &&
	       close(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&p.m))) == 0 && read(s[1], buf, 8) == 1 &&
	       buf[0] == 'b';
	close(s[0]);
	close(s[1]);
	close(fd);
	return good;
}

/* 253 files in one message at most; a receiver gets those for which it has descriptors. */
static bool
files_are_limited(void)
{
	struct rlimit old, few;
	int s[2], fd = open("/dev/null", O_RDWR), fds[MANY + 1], got[MANY], flags, n;
	bool good =
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 && getrlimit(RLIMIT_NOFILE, &old) == 0;

	for (int i = 0; i <= MANY; i++)
		fds[i] = fd;
	good = good && FAILS(send_control(s[0], SCM_RIGHTS, fds, sizeof(fds)), EINVAL) &&
	       send_control(s[0], SCM_RIGHTS, fds, MANY * sizeof(int)) == 1 &&
	       receive_files(s[1], got, MANY, 0, &flags) == MANY && flags == 0;
	for (int i = 0; i < MANY && good; i++)
		good = same_file(got[i], fd) && close(got[i]) == 0;
	few = (struct rlimit){(rlim_t)fd + 3, old.rlim_max};
	good = good && send_control(s[0], SCM_RIGHTS, fds, 5 * sizeof(int)) == 1 &&
	       setrlimit(RLIMIT_NOFILE, &few) == 0;
	n = good ? receive_files(s[1], got, 5, 0, &flags) : 0;
	good =
	    good && n >= 0 && n < 3 && flags == MSG_CTRUNC && setrlimit(RLIMIT_NOFILE, &old) == 0;
	for (int i = 0; i < n; i++)
		close(got[i]);
	close(s[0]);
	close(s[1]);
	close(fd);
	return good;
}

/* An ordinary user may send while it has not more files in flight than it may have open. */
static int
sends_too_many(void *arg)
{
	struct rlimit few = {64, 64};
	int s[2], n = 0;

	if (setuid(4321) != 0 || setrlimit(RLIMIT_NOFILE, &few) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
		return 1;
	while (n < 1000 && send_file(s[0], s[0]))
		n++;
	return errno == ETOOMANYREFS && n == 65 ? 0 : 2;
}

/* ---- who sends ---- */

static bool
receive_cred(int s, struct ucred *cred)
{
	struct packet p;
	struct cmsghdr *c;

	packet_init(&p, CMSG_SPACE(sizeof(*cred)));
	if (recvmsg(s, &p.m, 0) != 1)
		return false;
	c = CMSG_FIRSTHDR(&p.m);
	if (c == NULL || c->cmsg_type != SCM_CREDENTIALS || c->cmsg_len != CMSG_LEN(sizeof(*cred)))
		return false;
	memcpy(cred, CMSG_DATA(c), sizeof(*cred));
	return true;
}

/* Arguments: a socket. Says who it is, and tries to say what it is not. */
static int
says_who(void *arg)
{
	struct ucred me = {getpid(), getuid(), getgid()}, other = me;
	int s = *(int *)arg;

	if (write(s, "x", 1) != 1 || send_control(s, SCM_CREDENTIALS, &me, sizeof(me)) != 1)
		return 1;
	if (getuid() != 0)
		return 0;
	other.uid = 4321;
	if (send_control(s, SCM_CREDENTIALS, &other, sizeof(other)) != 1 || setuid(4321) != 0)
		return 2;
	me.pid = getppid();
	other.uid = 0;
	me.uid = 4321;
	return FAILS(send_control(s, SCM_CREDENTIALS, &me, sizeof(me)), EPERM) &&
		       FAILS(send_control(s, SCM_CREDENTIALS, &other, sizeof(other)), EPERM) &&
		       FAILS(send_control(s, SCM_CREDENTIALS, &other, 4), EINVAL)
		   ? 0
		   : 3;
}

static bool
senders_are_known(int type)
{
	struct ucred cred;
	int s[2], status;
	bool good = socketpair(AF_UNIX, type, 0, s) == 0 &&
		    setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) == 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(says_who(&s[0]));
	good = waitpid(pid, &status, 0) == pid && status == 0 && good;
	for (int i = 0; good && i < 2; i++)
		good = receive_cred(s[1], &cred) && cred.pid == pid && cred.uid == getuid() &&
		       cred.gid == getgid();
	if (getuid() == 0)
		good = good && receive_cred(s[1], &cred) && cred.pid == pid && cred.uid == 4321;
	good = good && FAILS(recv(s[1], &status, 1, MSG_DONTWAIT), EAGAIN);
	/* Bytes of two senders are not read together. */
	if (type == SOCK_STREAM && good) {
		pid = fork();
		if (pid == 0)
			_exit(write(s[0], "xx", 2) != 2);
		good = waitpid(pid, &status, 0) == pid && write(s[0], "y", 1) == 1 &&
		       read(s[1], &status, 4) == 2 && read(s[1], &status, 4) == 1;
	}
	close(s[0]);
	close(s[1]);
	return good;
}

/* ---- sockets that only messages hold ---- */

/* Is there a socket of this type with this abstract name? */
static bool
is_there(const char *name, int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, type, 0);
	bool there;

	strcpy(un.sun_path + 1, name);
	there = bind(s, (struct sockaddr *)&un,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) != 0;
	close(s); /* this collects */
	return there;
}

static bool
give_name(int s, const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	strcpy(un.sun_path + 1, name);
	return bind(s, (struct sockaddr *)&un,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0;
}

/* A thread collects them, which may sleep for long when the host has stopped it at work. */
static bool
goes_away(const char *name, int type)
{
	time_t deadline = time(NULL) + 60;

	while (is_there(name, type)) {
		if (time(NULL) > deadline)
			return false;
		sched_yield();
	}
	return true;
}

/* Two that hold each other, and themselves, with the files that others are. */
static bool
make_cycle(const char *name, int also)
{
	int a[2], b[2];
	bool good = socketpair(AF_UNIX, SOCK_DGRAM, 0, a) == 0 &&
		    socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0 && give_name(a[0], name) &&
		    send_file(a[0], b[0]) && send_file(a[1], a[1]) && send_file(b[0], a[0]) &&
		    send_file(b[1], b[1]) && send_file(b[0], a[1]) &&
		    (also < 0 || send_file(a[1], also));

	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	return good;
}

/* A connection that nobody accepts holds the socket that listens. */
static bool
make_listening_cycle(const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0), d;
	bool good = give_name(s, name) && listen(s, 5) == 0;

	strcpy(un.sun_path + 1, name);
	good = good && connect(c, (struct sockaddr *)&un, len) == 0 && send_file(c, s) &&
	       send_file(c, c);
	d = socket(AF_UNIX, SOCK_DGRAM, 0);
	close(s);
	close(c);
	close(d);
	return good;
}

static bool
cycles_are_collected(void)
{
	int p[2], s[2], got[4] = {-1, -1}, flags;
	char c;
	bool good = pipe(p) == 0;

	for (unsigned i = 0; good && i < how_often(100); i++)
		good = make_cycle("cycle", -1) && goes_away("cycle", SOCK_DGRAM) &&
		       make_listening_cycle("listens") && goes_away("listens", SOCK_STREAM);
	/* What the cycle held is closed. */
	good = good && make_cycle("cycle", p[1]) && close(p[1]) == 0 &&
	       goes_away("cycle", SOCK_DGRAM) && read(p[0], &c, 1) == 0;
	close(p[0]);
	/* What somebody can still receive stays, however deep. */
	good = good && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 && pipe(p) == 0;
	for (int i = 0; good && i < 300; i++) {
		int next[2];

		good = socketpair(AF_UNIX, SOCK_DGRAM, 0, next) == 0 &&
		       send_file(next[0], i == 0 ? p[1] : s[0]) &&
		       send_file(next[0], i == 0 ? p[1] : s[1]) &&
		       close(i == 0 ? p[1] : s[0]) == 0 && (i == 0 || close(s[1]) == 0);
		if (i == 0)
			close(s[0]), close(s[1]);
		s[0] = next[0];
		s[1] = next[1];
	}
	good = good && !is_there("nobody", SOCK_DGRAM);
	for (int i = 0; good && i < 299; i++) {
		good = receive_files(s[1], got, 1, 0, &flags) == 1 &&
		       receive_files(s[1], got + 1, 1, 0, &flags) == 1 && close(s[0]) == 0 &&
		       close(s[1]) == 0;
		s[0] = got[0];
		s[1] = got[1];
	}
	good = good && receive_files(s[1], got, 1, 0, &flags) == 1 && write(got[0], "z", 1) == 1 &&
	       read(p[0], &c, 1) == 1 && c == 'z';
	close(got[0]);
	close(s[0]);
	close(s[1]); /* the pipe's last writer was in its queue */
	good = good && read(p[0], &c, 1) == 0;
	close(p[0]);
	return good;
}

/* A long chain of sockets, each in the queue of the next, is closed at once. */
static bool
chains_are_closed(void)
{
	int s[2], p[2];
	char c;
	bool good = pipe(p) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 &&
		    send_file(s[0], p[1]) && close(p[1]) == 0 && close(s[0]) == 0;
	int held = s[1];

	for (int i = 0; good && i < 1000; i++) {
		good = socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 && send_file(s[0], held) &&
		       close(held) == 0 && close(s[0]) == 0;
		held = s[1];
	}
	close(held);
	good = good && read(p[0], &c, 1) == 0;
	close(p[0]);
	return good;
}

void
test_socket_rights(void)
{
	result(files_are_sent(SOCK_STREAM), "files are sent through streams");
	result(files_are_sent(SOCK_DGRAM), "files are sent in datagrams");
	result(files_are_sent(SOCK_SEQPACKET), "files are sent in packets");
	result(files_outlive_senders(), "a file in flight outlives its sender");
	result(places_are_sent(), "a file of O_PATH is sent, which keeps no socket");
	result(files_divide_streams(), "files divide a stream");
	result(files_are_limited(),
	       "a message has 253 files at most, a receiver what it has room for");
	result(geteuid() != 0 || in_child(sends_too_many, NULL) == 0,
	       "a user's files in flight are limited");
	result(senders_are_known(SOCK_STREAM), "SO_PASSCRED tells who sent the bytes of a stream");
	result(senders_are_known(SOCK_DGRAM), "SO_PASSCRED tells who sent a datagram");
	result(cycles_are_collected(), "sockets that only messages hold are closed");
	result(chains_are_closed(), "a long chain of sockets in each other's queue is closed");
}
