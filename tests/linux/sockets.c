/* sockets.c - sockets of AF_UNIX that have no name: what they move, and how they end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static char big[300000];

static bool
pair(int type, int fd[2])
{
	return socketpair(AF_UNIX, type, 0, fd) == 0;
}

static bool
close_pair(const int fd[2])
{
	return (close(fd[0]) | close(fd[1])) == 0;
}

static bool
has(int fd, const char *text)
{
	char buf[64] = "";

	return read(fd, buf, sizeof(buf)) == (ssize_t)strlen(text) && strcmp(buf, text) == 0;
}

static short
polled(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	poll(&p, 1, 0);
	return p.revents;
}

/* socket() and socketpair() make files, or say what is wrong. */
static bool
sockets_are_files(void)
{
	char path[64], text[64] = "", wanted[64];
	struct stat st;
	int fd[2], other = open("/dev/null", O_RDONLY), s;
	bool good = FAILS(socket(99, SOCK_STREAM, 0), EAFNOSUPPORT) &&
		    FAILS(socket(AF_UNIX, SOCK_RDM, 0), ESOCKTNOSUPPORT) &&
		    FAILS(socket(AF_UNIX, SOCK_STREAM | 0x100, 0), EINVAL) &&
		    FAILS(socket(AF_UNIX, 15, 0), EINVAL) &&
		    FAILS(socket(AF_UNIX, 0, 0), ESOCKTNOSUPPORT) &&
		    FAILS(socket(AF_UNIX, SOCK_STREAM, 77), EPROTONOSUPPORT) &&
		    FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, NOWHERE), EFAULT) &&
		    FAILS(listen(other, 1), ENOTSOCK) && FAILS(shutdown(63, 0), EBADF) &&
		    FAILS(send(other, "x", 1, 0), ENOTSOCK) && FAILS(recv(63, path, 1, 0), EBADF) &&
		    pair(SOCK_STREAM | SOCK_CLOEXEC, fd);

	good = good && fcntl(fd[0], F_GETFD) == FD_CLOEXEC && fcntl(fd[1], F_GETFL) == O_RDWR &&
	       fstat(fd[0], &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0777 &&
	       FAILS(lseek(fd[0], 0, SEEK_CUR), ESPIPE) &&
	       FAILS(pread(fd[0], text, 1, 0), ESPIPE) && FAILS(ftruncate(fd[0], 1), EINVAL) &&
	       FAILS(fsync(fd[0]), EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", st.st_ino);
	good = good && readlink(path, text, sizeof(text) - 1) == (ssize_t)strlen(wanted) &&
	       strcmp(text, wanted) == 0 && FAILS(open(path, O_RDWR), ENXIO);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	good = good && fcntl(s, F_GETFL) == (O_RDWR | O_NONBLOCK) &&
	       FAILS(send(s, "x", 1, 0), ENOTCONN) && FAILS(recv(s, text, 1, 0), EINVAL) &&
	       FAILS(shutdown(s, 3), EINVAL);
	close(s);
	close(other);
	return close_pair(fd) && good;
}

/* Bytes go both ways, whichever call moves them. */
static bool
streams_move_bytes(void)
{
	struct iovec v[2] = {{(char[]){"abc"}, 3}, {(char[]){"defg"}, 4}};
	struct iovec w[2] = {{(char[4]){0}, 2}, {(char[16]){0}, 15}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2}, r = {.msg_iov = w, .msg_iovlen = 2};
	char buf[16] = "";
	int fd[2], n = 0;
	bool good = pair(SOCK_STREAM, fd) && write(fd[0], "one", 3) == 3 &&
		    send(fd[0], "two", 3, 0) == 3 && has(fd[1], "onetwo") &&
		    writev(fd[1], v, 2) == 7 && has(fd[0], "abcdefg") &&
		    sendmsg(fd[1], &m, 0) == 7 && ioctl(fd[0], FIONREAD, &n) == 0 && n == 7 &&
		    recvmsg(fd[0], &r, 0) == 7 && memcmp(w[0].iov_base, "ab", 2) == 0 &&
		    memcmp(w[1].iov_base, "cdefg", 5) == 0 && r.msg_flags == 0;

	good = good && write(fd[0], "peeked", 6) == 6 && recv(fd[1], buf, 3, MSG_PEEK) == 3 &&
	       memcmp(buf, "pee", 3) == 0 && send(fd[0], "!", 1, 0) == 1 &&
	       recv(fd[1], buf, 16, MSG_PEEK) == 7 && recv(fd[1], buf, 2, 0) == 2 &&
	       recv(fd[1], buf, 16, 0) == 5 && memcmp(buf, "eked!", 5) == 0;
	good = good && FAILS(recv(fd[1], buf, 1, MSG_DONTWAIT), EAGAIN) &&
	       ioctl(fd[1], FIONBIO, &(int){1}) == 0 && FAILS(read(fd[1], buf, 1), EAGAIN) &&
	       ioctl(fd[1], FIONBIO, &(int){0}) == 0 && write(fd[0], "", 0) == 0 &&
	       read(fd[1], buf, 0) == 0 && FAILS(recv(fd[1], buf, 1, MSG_DONTWAIT), EAGAIN);
	good = good && FAILS(write(fd[0], NOWHERE, 5), EFAULT) && write(fd[0], "kept", 4) == 4 &&
	       FAILS(read(fd[1], NOWHERE, 4), EFAULT) && has(fd[1], "kept") &&
	       FAILS(sendto(fd[0], "x", 1, 0,
			    (struct sockaddr *)&(struct sockaddr_un){.sun_family = 1}, 2),
		     EISCONN) &&
	       FAILS(recv(fd[1], buf, 1, MSG_OOB), EINVAL);
	return close_pair(fd) && good;
}

static int
sends_slowly(void *arg)
{
	const int *fd = arg;

	for (int i = 0; i < 10; i++) {
		if (write(fd[0], "0123456789", 10) != 10)
			return 1;
		sched_yield();
	}
	return 0;
}

/* More than a sender may have on the way: what was read makes room for the rest. */
static bool
waits_for_much(void)
{
	struct timeval t = {60, 0};
	int fd[2], status;
	bool good =
	    pair(SOCK_STREAM, fd) && setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0;
	pid_t pid = fork();

	if (pid == 0) {
		close(fd[1]);
		_exit(write(fd[0], big, sizeof(big)) != sizeof(big));
	}
	good = good && recv(fd[1], big, sizeof(big), MSG_WAITALL) == sizeof(big);
	close_pair(fd);
	return waitpid(pid, &status, 0) == pid && status == 0 && good;
}

/* MSG_WAITALL waits for all bytes; what is there at the end of the stream is enough. */
static bool
waits_for_all(void)
{
	char buf[200];
	int fd[2], status;
	bool good = pair(SOCK_STREAM, fd);
	pid_t pid = fork();

	if (pid == 0)
		_exit(sends_slowly(fd));
	close(fd[0]);
	good = good && recv(fd[1], buf, 95, MSG_WAITALL) == 95 && buf[94] == '4' &&
	       recv(fd[1], buf, 200, MSG_WAITALL) == 5 && recv(fd[1], buf, 9, MSG_WAITALL) == 0;
	close(fd[1]);
	return waitpid(pid, &status, 0) == pid && status == 0 && good;
}

static int
dies_of_sigpipe(void *arg)
{
	const int *fd = arg;

	signal(SIGPIPE, SIG_DFL);
	return write(fd[0], "x", 1) == 1;
}

/* What shutdown() and close() say to the other end. */
static bool
streams_end(void)
{
	char buf[8];
	int fd[2];
	bool good = pair(SOCK_STREAM, fd) && write(fd[0], "last", 4) == 4 &&
		    shutdown(fd[0], SHUT_WR) == 0 && has(fd[1], "last") &&
		    read(fd[1], buf, 8) == 0 && read(fd[1], buf, 8) == 0 &&
		    FAILS(send(fd[0], "x", 1, MSG_NOSIGNAL), EPIPE) &&
		    write(fd[1], "back", 4) == 4 && has(fd[0], "back") &&
		    in_child(dies_of_sigpipe, fd) == 128 + SIGPIPE;

	good = good &&
	       polled(fd[1], POLLIN | POLLOUT | POLLRDHUP) == (POLLIN | POLLOUT | POLLRDHUP) &&
	       polled(fd[0], POLLIN | POLLRDHUP) == 0 && shutdown(fd[0], SHUT_RD) == 0 &&
	       polled(fd[0], 0) == POLLHUP && FAILS(send(fd[1], "x", 1, MSG_NOSIGNAL), EPIPE) &&
	       close_pair(fd);
	/* Closed with nothing unread, then with something. */
	good = good && pair(SOCK_STREAM, fd) && write(fd[0], "x", 1) == 1 && close(fd[0]) == 0 &&
	       polled(fd[1], POLLIN | POLLRDHUP) == (POLLIN | POLLRDHUP | POLLHUP) &&
	       has(fd[1], "x") && read(fd[1], buf, 8) == 0 &&
	       FAILS(send(fd[1], "x", 1, MSG_NOSIGNAL), EPIPE) && close(fd[1]) == 0;
	good = good && pair(SOCK_STREAM, fd) && write(fd[0], "x", 1) == 1 &&
	       write(fd[1], "y", 1) == 1 && close(fd[1]) == 0 && (polled(fd[0], 0) & POLLERR) &&
	       has(fd[0], "y") && FAILS(read(fd[0], buf, 8), ECONNRESET) &&
	       read(fd[0], buf, 8) == 0 && close(fd[0]) == 0;
	return good;
}

/* Messages keep their bounds. */
static bool
datagrams_keep_bounds(void)
{
	char buf[16] = "";
	struct iovec v = {buf, 3};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	int fd[2], n = 0;
	bool good = pair(SOCK_DGRAM, fd) && send(fd[0], "first", 5, 0) == 5 &&
		    write(fd[0], "", 0) == 0 && send(fd[0], "second", 6, 0) == 6 &&
		    ioctl(fd[1], FIONREAD, &n) == 0 && n == 5 && has(fd[1], "first") &&
		    read(fd[1], buf, 8) == 0 && recvmsg(fd[1], &m, MSG_PEEK) == 3 &&
		    m.msg_flags == MSG_TRUNC && recv(fd[1], buf, 2, MSG_TRUNC | MSG_PEEK) == 6 &&
		    recvmsg(fd[1], &m, MSG_TRUNC) == 6 && m.msg_flags == MSG_TRUNC &&
		    memcmp(buf, "sec", 3) == 0 && FAILS(recv(fd[1], buf, 1, MSG_DONTWAIT), EAGAIN);

	good = good && FAILS(send(fd[0], big, sizeof(big), 0), EMSGSIZE) &&
	       send(fd[0], big, 100000, 0) == 100000 &&
	       recv(fd[1], big, sizeof(big), 0) == 100000 && FAILS(listen(fd[0], 1), EOPNOTSUPP) &&
	       FAILS(accept(fd[0], NULL, NULL), EOPNOTSUPP) && shutdown(fd[0], SHUT_WR) == 0 &&
	       FAILS(send(fd[0], "x", 1, 0), EPIPE) && close(fd[1]) == 0 && close(fd[0]) == 0;
	good = good && pair(SOCK_DGRAM, fd) && close(fd[1]) == 0 &&
	       FAILS(send(fd[0], "x", 1, 0), ECONNREFUSED) &&
	       FAILS(send(fd[0], "x", 1, 0), ENOTCONN) && close(fd[0]) == 0;
	/* SOCK_SEQPACKET has an end, too. */
	good = good && pair(SOCK_SEQPACKET, fd) && send(fd[0], "one", 3, 0) == 3 &&
	       send(fd[0], "two", 3, 0) == 3 && has(fd[1], "one") && close(fd[0]) == 0 &&
	       FAILS(send(fd[1], "x", 1, 0), EPIPE) && has(fd[1], "two") &&
	       read(fd[1], buf, 8) == 0 && close(fd[1]) == 0;
	return good;
}

static int
option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 && len == sizeof(value) ? value
											   : -1;
}

static bool
set_option(int fd, int name, int value)
{
	return setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)) == 0;
}

static bool
options_are_kept(void)
{
	struct timeval t = {1, 500000}, got = {0};
	struct linger l = {1, 7}, linger = {0};
	struct ucred cred;
	socklen_t len = sizeof(got);
	int fd[2];
	char c = 'x';
	bool good = pair(SOCK_SEQPACKET, fd) && option(fd[0], SO_TYPE) == SOCK_SEQPACKET &&
		    option(fd[0], SO_DOMAIN) == AF_UNIX && option(fd[0], SO_PROTOCOL) == 0 &&
		    option(fd[0], SO_ERROR) == 0 && option(fd[0], SO_ACCEPTCONN) == 0 &&
		    option(fd[0], SO_SNDBUF) == 212992 && option(fd[0], SO_RCVBUF) == 212992;

	good = good && set_option(fd[0], SO_SNDBUF, 10000) && option(fd[0], SO_SNDBUF) == 20000 &&
	       set_option(fd[0], SO_SNDBUF, 1) && option(fd[0], SO_SNDBUF) == 4608 &&
	       set_option(fd[0], SO_RCVBUF, 1) && option(fd[0], SO_RCVBUF) == 2304 &&
	       option(fd[0], SO_PASSCRED) == 0 && set_option(fd[0], SO_PASSCRED, 5) &&
	       option(fd[0], SO_PASSCRED) == 1 && set_option(fd[0], SO_KEEPALIVE, 1);
	good = good && setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0 &&
	       getsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &got, &len) == 0 && len == sizeof(got) &&
	       got.tv_sec == 1 && got.tv_usec == 500000;
	t.tv_usec = 1000000;
	good = good && FAILS(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), EDOM) &&
	       setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0;
	len = sizeof(linger);
	good = good && getsockopt(fd[0], SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
	       linger.l_linger == 7;
	len = sizeof(cred);
	good = good && getsockopt(fd[0], SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.pid == getpid() && cred.uid == geteuid() && cred.gid == getegid();
	len = 1;
	good = good && getsockopt(fd[0], SOL_SOCKET, SO_TYPE, &c, &len) == 0 &&
	       c == SOCK_SEQPACKET && len == 1;
	good = good && FAILS(setsockopt(fd[0], SOL_SOCKET, SO_TYPE, &l, 4), ENOPROTOOPT) &&
	       FAILS(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &l, 3), EINVAL) &&
	       FAILS(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, NOWHERE, 4), EFAULT) &&
	       FAILS(setsockopt(fd[0], SOL_SOCKET, 999, &l, 4), ENOPROTOOPT) &&
	       FAILS(setsockopt(fd[0], SOL_TCP, 1, &l, 4), EOPNOTSUPP) &&
	       FAILS(getsockopt(fd[0], SOL_TCP, 1, &l, &len), EOPNOTSUPP) &&
	       FAILS(getsockopt(fd[0], SOL_SOCKET, 999, &l, &len), ENOPROTOOPT);
	return close_pair(fd) && good;
}

static int
reads_all(void *arg)
{
	const int *fd = arg;
	ssize_t n, sum = 0;

	close(fd[0]);
	while ((n = read(fd[1], big, sizeof(big))) > 0)
		sum += n;
	return n == 0 && sum == 1 + 1000000 ? 0 : 1;
}

/* A sender has a bound, and waits for readers. */
static bool
senders_are_bounded(int type)
{
	int fd[2], status;
	size_t sent = 0;
	bool good = pair(type | SOCK_NONBLOCK, fd) && set_option(fd[0], SO_SNDBUF, 8192);
	pid_t pid;

	while (good && send(fd[0], big, 1000, MSG_NOSIGNAL) == 1000)
		sent += 1000;
	good =
	    good && errno == EAGAIN && sent >= 4000 && sent < 40000 && polled(fd[0], POLLOUT) == 0;
	while (good && sent > 0)
		sent -= (size_t)recv(fd[1], big, 1000, 0);
	good = good && polled(fd[0], POLLOUT) == POLLOUT && polled(fd[1], POLLIN) == 0;
	fcntl(fd[0], F_SETFL, 0);
	fcntl(fd[1], F_SETFL, 0);
	if (type == SOCK_DGRAM)
		return close_pair(fd) && good;
	pid = fork();
	if (pid == 0)
		_exit(reads_all(fd));
	close(fd[1]);
	good = good && write(fd[0], big, 1) == 1;
	for (int i = 0; i < 1000; i++)
		good = good && write(fd[0], big, 1000) == 1000;
	close(fd[0]);
	return waitpid(pid, &status, 0) == pid && status == 0 && good;
}

/* epoll tells each event once with EPOLLET, and the end with EPOLLRDHUP. */
static bool
epoll_tells(void)
{
	const uint32_t in = EPOLLIN | EPOLLET | EPOLLRDHUP;
	char buf[8];
	int fd[2], set = epoll_create1(0);
	bool good = pair(SOCK_STREAM, fd) && watch(set, EPOLL_CTL_ADD, fd[1], in, 1) == 0 &&
		    told(set) == 0 && write(fd[0], "a", 1) == 1 && told(set) == EPOLLIN &&
		    told(set) == 0 && write(fd[0], "b", 1) == 1 && told(set) == EPOLLIN &&
		    told(set) == 0 && read(fd[1], buf, 8) == 2 && told(set) == 0 &&
		    shutdown(fd[0], SHUT_WR) == 0 && told(set) == (EPOLLIN | EPOLLRDHUP) &&
		    told(set) == 0 && close(fd[0]) == 0 &&
		    told(set) == (EPOLLIN | EPOLLRDHUP | EPOLLHUP) && close(fd[1]) == 0;

	/* There is room again. */
	good = good && pair(SOCK_STREAM | SOCK_NONBLOCK, fd) &&
	       watch(set, EPOLL_CTL_ADD, fd[0], EPOLLOUT | EPOLLET, 2) == 0 &&
	       told(set) == EPOLLOUT && told(set) == 0;
	while (good && write(fd[0], big, 30000) > 0)
		;
	good = good && told(set) == 0;
	while (good && read(fd[1], big, sizeof(big)) > 0)
		;
	good = good && told(set) == EPOLLOUT && told(set) == 0;
	close(set);
	return close_pair(fd) && good;
}

static bool
timeouts_end_waits(void)
{
	struct timeval t = {0, 20000};
	char c;
	int fd[2], n = 0;
	bool good = pair(SOCK_STREAM, fd) &&
		    setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0 &&
		    setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) == 0 &&
		    FAILS(read(fd[0], &c, 1), EAGAIN);

	while (good && n < 1000 && write(fd[0], big, 30000) > 0)
		n++;
	return close_pair(fd) && good && errno == EAGAIN && n < 1000;
}

/* Signals restart a call with SA_RESTART, but not of a socket with a timeout. */
static int
signals_interrupt(void *arg)
{
	struct timeval t = {100, 0};
	const int *fd = arg;
	char c;
	bool good;
	pid_t pid, parent = getpid();

	on_alarm(0);
	send_alarms(true);
	good = FAILS(read(fd[0], &c, 1), EINTR);
	send_alarms(false);
	on_alarm(SA_RESTART);
	pid = fork();
	if (pid == 0) {
		while (!await_sleep(parent, 0))
			;
		for (int i = 0; i < 3; i++) {
			kill(parent, SIGALRM);
			await_sleep(parent, 0);
		}
		_exit(write(fd[1], "x", 1) != 1);
	}
	good = good && read(fd[0], &c, 1) == 1 && waitpid(pid, NULL, 0) == pid &&
	       signals_seen > 0 && setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0;
	send_alarms(true);
	good = good && FAILS(recv(fd[0], &c, 1, 0), EINTR);
	send_alarms(false);
	return good ? 0 : 1;
}

/* sendmmsg() and recvmmsg(). */
static bool
several_messages(void)
{
	struct iovec v[3] = {{(char[]){"a"}, 1}, {(char[]){"bb"}, 2}, {(char[]){"ccc"}, 3}};
	char buf[4][8];
	struct iovec w[4] = {{buf[0], 8}, {buf[1], 8}, {buf[2], 8}, {buf[3], 8}};
	struct mmsghdr out[3], in[4];
	struct timespec t = {0, 0};
	int fd[2];
	bool good = pair(SOCK_DGRAM, fd);

	memset(out, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	for (int i = 0; i < 4; i++)
		in[i].msg_hdr = (struct msghdr){.msg_iov = &w[i], .msg_iovlen = 1};
	for (int i = 0; i < 3; i++)
		out[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
	good = good && sendmmsg(fd[0], out, 3, 0) == 3 && out[2].msg_len == 3 &&
	       recvmmsg(fd[1], in, 2, 0, NULL) == 2 && in[1].msg_len == 2 &&
	       recvmmsg(fd[1], in, 4, MSG_WAITFORONE, NULL) == 1 && in[0].msg_len == 3 &&
	       FAILS(recvmmsg(fd[1], in, 4, MSG_DONTWAIT, NULL), EAGAIN) &&
	       sendmmsg(fd[0], out, 3, 0) == 3 && recvmmsg(fd[1], in, 4, 0, &t) == 1 &&
	       sendmmsg(fd[0], out, 0, 0) == 0 && FAILS(sendmmsg(fd[0], NOWHERE, 1, 0), EFAULT);
	return close_pair(fd) && good;
}

/* splice and sendfile move bytes into sockets, and out of them. */
static bool
spliced(void)
{
	char buf[16] = "";
	int fd[2], p[2], file = open(linux_test_path(), O_RDONLY);
	off_t off = 1;
	bool good = pair(SOCK_STREAM, fd) && pipe(p) == 0 && sendfile(fd[0], file, &off, 3) == 3 &&
		    off == 4 && has(fd[1], "ELF") && write(p[1], "through", 7) == 7 &&
		    splice(p[0], NULL, fd[0], NULL, 7, 0) == 7 && has(fd[1], "through") &&
		    write(fd[0], "back", 4) == 4 && splice(fd[1], NULL, p[1], NULL, 16, 0) == 4 &&
		    read(p[0], buf, 16) == 4 && memcmp(buf, "back", 4) == 0 &&
		    FAILS(splice(fd[1], NULL, p[1], NULL, 16, SPLICE_F_NONBLOCK), EAGAIN);

	close(file);
	close(p[0]);
	close(p[1]);
	return close_pair(fd) && good;
}

int
sockets_among(unsigned others)
{
	struct rlimit many = {others + 100, others + 100};
	bool good = setrlimit(RLIMIT_NOFILE, &many) == 0;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(name);
	int to = socket(AF_UNIX, SOCK_DGRAM, 0), s = socket(AF_UNIX, SOCK_DGRAM, 0);

	while (good && others-- > 0)
		good = socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
	good = good && bind(to, (void *)&name, 2) == 0 &&
	       getsockname(to, (void *)&name, &len) == 0 && connect(s, (void *)&name, len) == 0;
	while (good && send(s, "x", 1, MSG_DONTWAIT) == 1)
		;
	return good && errno == EAGAIN && recv(to, big, 1, 0) == 1 && send(s, "x", 1, 0) == 1 ? 0
											      : 1;
}

void
test_sockets(void)
{
	int fd[2];

	pair(SOCK_STREAM, fd);
	result(sockets_are_files(), "sockets are files without a name");
	result(streams_move_bytes(), "a stream moves bytes, and peeks");
	result(waits_for_all(), "MSG_WAITALL waits for all bytes");
	result(waits_for_much(), "MSG_WAITALL waits for more than fits into a queue");
	result(streams_end(), "the end of a stream: shutdown, EPIPE, ECONNRESET");
	result(datagrams_keep_bounds(), "datagrams and SOCK_SEQPACKET keep the bounds of messages");
	result(options_are_kept(), "options of sockets are kept");
	result(senders_are_bounded(SOCK_STREAM), "who sends bytes waits when SO_SNDBUF is full");
	result(senders_are_bounded(SOCK_DGRAM), "who sends datagrams waits when SO_SNDBUF is full");
	result(senders_are_bounded(SOCK_SEQPACKET), "who sends packets waits, too");
	result(epoll_tells(), "epoll tells what happens to a socket, each event once");
	result(timeouts_end_waits(), "SO_RCVTIMEO and SO_SNDTIMEO end waits");
	result(in_child(signals_interrupt, fd) == 0,
	       "signals restart calls on sockets without a timeout");
	result(several_messages(), "sendmmsg and recvmmsg");
	result(spliced(), "splice and sendfile know sockets");
	close_pair(fd);
	test_socket_names();
	test_socket_rights();
	test_socket_threads();
}
