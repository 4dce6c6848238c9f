/* inet.c - streams of AF_INET over the loopback: the same on Linux. Datagrams: datagrams.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define ALL    (POLLIN | POLLOUT | POLLRDHUP)
#define AMOUNT (2u << 20)
#define PIECE  8192

static char piece[PIECE];

struct sockaddr_in
inet_local(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = port,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int
inet_bound(int type, int backlog, struct sockaddr_in *name)
{
	int s = socket(AF_INET, type, 0);
	socklen_t len = sizeof(*name);

	*name = inet_local(0);
	if (s < 0 || bind(s, (void *)name, sizeof(*name)) != 0 ||
	    (backlog >= 0 && listen(s, backlog) != 0) || getsockname(s, (void *)name, &len) != 0)
		return -1;
	return s;
}

short
inet_polled(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = ALL};

	return poll(&p, 1, ms) < 0 ? -1 : p.revents;
}

int
inet_error(int s)
{
	int error = -1;
	socklen_t len = sizeof(error);

	return getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : -1;
}

bool
inet_connected(int end[2])
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 1, &name);

	end[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || connect(end[0], (void *)&name, sizeof(name)) != 0)
		return false;
	end[1] = accept(l, NULL, NULL);
	return end[1] >= 0 && close(l) == 0;
}

static bool
closed(const int end[2], bool good)
{
	return (close(end[0]) == 0) & (close(end[1]) == 0) & good;
}

static bool
names_and_data(void)
{
	struct sockaddr_in name, peer, mine, seen;
	socklen_t len = sizeof(name);
	int l = inet_bound(SOCK_STREAM, 5, &name), s = socket(AF_INET, SOCK_STREAM, 0), a, n = 0;
	char found[32] = "";
	bool good = l >= 0 && FAILS(getpeername(s, (void *)&peer, &len), ENOTCONN) &&
		    connect(s, (void *)&name, sizeof(name)) == 0;

	a = accept(l, (void *)&seen, &len);
	good = good && a >= 0 && len == sizeof(seen);
	good = good && getsockname(s, (void *)&mine, &len) == 0 && mine.sin_port == seen.sin_port &&
	       mine.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
	good = good && getpeername(s, (void *)&peer, &len) == 0 && peer.sin_port == name.sin_port &&
	       getsockname(a, (void *)&peer, &len) == 0 && peer.sin_port == name.sin_port;
	good = good && send(s, "first ", 6, 0) == 6 && write(s, "second", 6) == 6 &&
	       inet_polled(a, 5000) == (POLLIN | POLLOUT) && recv(a, found, 3, MSG_PEEK) == 3 &&
	       ioctl(a, FIONREAD, &n) == 0 && n == 12 && recv(a, found, 12, MSG_WAITALL) == 12 &&
	       strcmp(found, "first second") == 0;
	good = good && write(a, "back", 4) == 4 && read(s, found, 32) == 4 &&
	       FAILS(recv(s, found, 32, MSG_DONTWAIT), EAGAIN) &&
	       FAILS(connect(s, (void *)&name, sizeof(name)), EISCONN) &&
	       FAILS(listen(s, 1), EINVAL) && FAILS(accept(s, NULL, NULL), EINVAL);
	return closed((int[2]){s, a}, good) && close(l) == 0;
}

static bool
refused(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, -1, &name), s = socket(AF_INET, SOCK_STREAM, 0), n;
	bool good = FAILS(connect(s, (void *)&name, sizeof(name)), ECONNREFUSED);

	good = good && FAILS(connect(s, (void *)&name, sizeof(name)), ECONNREFUSED);
	n = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	good = good && FAILS(connect(n, (void *)&name, sizeof(name)), EINPROGRESS) &&
	       inet_polled(n, 5000) == (ALL | POLLERR | POLLHUP) && inet_error(n) == ECONNREFUSED &&
	       inet_error(n) == 0;
	/* Then somebody listens, and the same socket connects. */
	good = good && listen(l, 1) == 0 && connect(s, (void *)&name, sizeof(name)) == 0;
	return closed((int[2]){s, n}, good) && close(l) == 0;
}

static bool
in_progress(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 1, &name),
	    s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), a;
	bool good = inet_polled(s, 0) == (POLLOUT | POLLHUP) &&
		    fcntl(l, F_SETFL, O_NONBLOCK) == 0 && FAILS(accept(l, NULL, NULL), EAGAIN) &&
		    inet_polled(l, 0) == 0 &&
		    FAILS(connect(s, (void *)&name, sizeof(name)), EINPROGRESS);

	good = good && inet_polled(s, 5000) == POLLOUT && inet_error(s) == 0 &&
	       connect(s, (void *)&name, sizeof(name)) == 0 &&
	       FAILS(connect(s, (void *)&name, sizeof(name)), EISCONN) &&
	       inet_polled(l, 5000) == POLLIN;
	a = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	good = good && a >= 0 && (fcntl(a, F_GETFL) & O_NONBLOCK) &&
	       fcntl(a, F_GETFD) == FD_CLOEXEC && FAILS(read(a, piece, 1), EAGAIN);
	return closed((int[2]){s, a}, good) && close(l) == 0;
}

static bool
half_closed(void)
{
	int end[2] = {-1, -1};
	bool good = inet_connected(end);

	signal(SIGPIPE, SIG_IGN);
	good = good && write(end[0], "last", 4) == 4 && shutdown(end[0], SHUT_WR) == 0 &&
	       inet_polled(end[1], 5000) != 0;
	good = good && read(end[1], piece, 10) == 4 && read(end[1], piece, 10) == 0 &&
	       read(end[1], piece, 10) == 0 && inet_polled(end[1], 0) == ALL;
	good = good && write(end[1], "still", 5) == 5 && read(end[0], piece, 10) == 5 &&
	       FAILS(write(end[0], "no", 2), EPIPE) &&
	       FAILS(send(end[0], "no", 2, MSG_NOSIGNAL), EPIPE);
	good = good && shutdown(end[1], SHUT_WR) == 0 && read(end[0], piece, 10) == 0 &&
	       inet_polled(end[1], 5000) == (ALL | POLLHUP);
	signal(SIGPIPE, SIG_DFL);
	return closed(end, good);
}

static int
write_after_shutdown(void *arg)
{
	int end[2] = {-1, -1};

	return !inet_connected(end) || shutdown(end[0], SHUT_WR) != 0 || write(end[0], "x", 1) != 0;
}

static bool
reset_by_peer(void)
{
	struct linger none = {1, 0};
	int end[2] = {-1, -1};
	bool good = inet_connected(end) &&
		    setsockopt(end[0], SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0 &&
		    close(end[0]) == 0 && inet_polled(end[1], 5000) == (ALL | POLLERR | POLLHUP) &&
		    FAILS(read(end[1], piece, 1), ECONNRESET) && read(end[1], piece, 1) == 0 &&
		    FAILS(send(end[1], "x", 1, MSG_NOSIGNAL), EPIPE) && close(end[1]) == 0;

	/* Who closes and has not read all resets, too. */
	good = good && inet_connected(end) && write(end[1], "unread", 6) == 6 &&
	       inet_polled(end[0], 5000) == (POLLIN | POLLOUT) && close(end[0]) == 0 &&
	       (inet_polled(end[1], 5000) & POLLERR) && inet_error(end[1]) == ECONNRESET;
	return close(end[1]) == 0 && good;
}

/* Byte number i of a stream. */
static char
byte_of(size_t i)
{
	return (char)(i ^ i >> 8 ^ i >> 16);
}

/* Writes until nothing more fits. How many bytes. */
static size_t
fill(int fd)
{
	size_t done = 0;
	ssize_t n;

	do {
		for (size_t i = 0; i < PIECE; i++)
			piece[i] = byte_of(done + i);
		n = send(fd, piece, PIECE, MSG_DONTWAIT);
		done += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return n < 0 && errno == EAGAIN ? done : 0;
}

static bool
drain(int fd, size_t from, size_t size)
{
	while (from < size) {
		ssize_t n = read(fd, piece, PIECE);

		for (ssize_t i = 0; i < n; i++)
			if (piece[i] != byte_of(from + (size_t)i))
				return false;
		if (n <= 0)
			return false;
		from += (size_t)n;
	}
	return true;
}

static bool
flow_control(void)
{
	int end[2] = {-1, -1};
	bool good = inet_connected(end);
	size_t n = good ? fill(end[0]) : 0;

	good = n > 30000 && inet_polled(end[0], 0) == 0 && drain(end[1], 0, n) &&
	       inet_polled(end[0], 5000) == POLLOUT && fill(end[0]) > 30000;
	return closed(end, good);
}

static bool
much_data(void)
{
	int end[2] = {-1, -1};
	bool good = inet_connected(end);
	pid_t pid = good ? fork() : -1;

	if (pid == 0) {
		for (size_t at = 0; at < AMOUNT; at += PIECE) {
			for (size_t i = 0; i < PIECE; i++)
				piece[i] = byte_of(at + i);
			if (write(end[0], piece, PIECE) != PIECE)
				_exit(1);
		}
		_exit(0);
	}
	close(end[0]);
	good = good && drain(end[1], 0, AMOUNT) && read(end[1], piece, 1) == 0;
	return close(end[1]) == 0 && waitpid(pid, NULL, 0) == pid && good;
}

static bool
ports(void)
{
	struct sockaddr_in name, other = inet_local(0), far = inet_local(0);
	int l = inet_bound(SOCK_STREAM, 1, &name), s = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	int end[2] = {socket(AF_INET, SOCK_STREAM, 0), -1};
	bool good;

	far.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, which nobody has (RFC 5737) */
	other.sin_family = AF_UNIX;
	good = FAILS(bind(s, (void *)&name, sizeof(name)), EADDRINUSE) &&
	       FAILS(bind(s, (void *)&far, sizeof(far)), EADDRNOTAVAIL) &&
	       FAILS(bind(s, (void *)&other, sizeof(other)), EAFNOSUPPORT) &&
	       FAILS(bind(s, (void *)&name, 4), EINVAL) &&
	       FAILS(bind(l, (void *)&name, sizeof(name)), EINVAL);
	/* A connection that this end closes first is remembered, and its port is taken. */
	good = good && setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	       connect(end[0], (void *)&name, sizeof(name)) == 0;
	end[1] = accept(l, NULL, NULL);
	good = good && close(end[1]) == 0 && read(end[0], piece, 1) == 0 && close(end[0]) == 0 &&
	       close(l) == 0 && FAILS(bind(s, (void *)&name, sizeof(name)), EADDRINUSE) &&
	       setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	       bind(s, (void *)&name, sizeof(name)) == 0 && listen(s, 1) == 0;
	return close(s) == 0 && good;
}

/* Two may be bound to a port, at the same address or not, but one listens there. */
static bool
one_listens(uint32_t at, uint32_t also)
{
	struct sockaddr_in name = inet_local(0);
	socklen_t len = sizeof(name);
	int s[2] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)}, yes = 1;
	bool good = setsockopt(s[0], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		    setsockopt(s[1], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0;

	name.sin_addr.s_addr = htonl(at);
	good = good && bind(s[0], (void *)&name, sizeof(name)) == 0 &&
	       getsockname(s[0], (void *)&name, &len) == 0;
	name.sin_addr.s_addr = htonl(also);
	good = good && bind(s[1], (void *)&name, sizeof(name)) == 0 && listen(s[1], 1) == 0 &&
	       FAILS(listen(s[0], 1), EADDRINUSE) &&
	       setsockopt(s[0], SOL_SOCKET, SO_REUSEADDR, &(int){0}, sizeof(int)) == 0 &&
	       FAILS(listen(s[0], 1), EADDRINUSE) && close(s[1]) == 0 && listen(s[0], 1) == 0;
	return close(s[0]) == 0 && good;
}

/*
 * A connection is there once, also for who takes SO_REUSEADDR back before he connects. Then he may
 * connect to another machine, if there is a network.
 */
static bool
connections_differ(void)
{
	struct sockaddr_in to, mine = inet_local(0), far = inet_local(htons(9));
	socklen_t len = sizeof(mine);
	int l = inet_bound(SOCK_STREAM, 2, &to), yes = 1, no = 0;
	int end[2] = {socket(AF_INET, SOCK_STREAM, 0), -1}, s = socket(AF_INET, SOCK_STREAM, 0);
	bool good = setsockopt(end[0], SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		    bind(end[0], (void *)&mine, sizeof(mine)) == 0 &&
		    getsockname(end[0], (void *)&mine, &len) == 0 &&
		    connect(end[0], (void *)&to, sizeof(to)) == 0;

	end[1] = accept(l, NULL, NULL);
	mine.sin_addr.s_addr = htonl(INADDR_ANY);
	far.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, which nobody has (RFC 5737) */
	good = good && setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	       bind(s, (void *)&mine, sizeof(mine)) == 0 &&
	       setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &no, sizeof(no)) == 0 &&
	       FAILS(connect(s, (void *)&to, sizeof(to)), EADDRNOTAVAIL) &&
	       fcntl(s, F_SETFL, O_NONBLOCK) == 0 && connect(s, (void *)&far, sizeof(far)) < 0 &&
	       (errno == EINPROGRESS || errno == ENETUNREACH) && write(end[0], "x", 1) == 1 &&
	       read(end[1], piece, 9) == 1;
	return closed(end, good) && close(s) == 0 && close(l) == 0;
}

/* Who wants any port gets one that cannot be guessed from those before; connect() gives one, too.
 */
static bool
ports_differ(int type, bool by_connect)
{
	struct sockaddr_in to, name;
	socklen_t len = sizeof(name);
	int l = inet_bound(type, type == SOCK_STREAM ? 16 : -1, &to), s[8], last = 0, next = 0;
	bool good = l >= 0;

	for (unsigned i = 0; i < 8; i++) {
		s[i] = by_connect ? socket(AF_INET, type, 0) : inet_bound(type, -1, &name);
		good = good && (!by_connect || connect(s[i], (void *)&to, sizeof(to)) == 0) &&
		       getsockname(s[i], (void *)&name, &len) == 0 && name.sin_port != 0;
		next += ntohs(name.sin_port) == last + 1;
		last = ntohs(name.sin_port);
	}
	for (unsigned i = 0; i < 8; i++)
		close(s[i]);
	return close(l) == 0 && good && next < 7;
}

/* Any socket knows the interfaces, as if_nametoindex() of glibc and musl expect. */
static bool
interfaces(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int s = socket(AF_UNIX, SOCK_DGRAM, 0), i = socket(AF_INET, SOCK_DGRAM, 0);
	bool good = ioctl(s, SIOCGIFINDEX, &r) == 0 && r.ifr_ifindex == 1 &&
		    if_nametoindex("lo") == 1 && FAILS(ioctl(s, TIOCGWINSZ, &r), ENOTTY) &&
		    FAILS(ioctl(i, TIOCGWINSZ, &r), ENOTTY) && ioctl(i, SIOCGIFINDEX, &r) == 0;

	/* What it does not do, Kestrel refuses. */
	good = good && (!is_kestrel() ||
			FAILS(setsockopt(i, SOL_SOCKET, SO_REUSEPORT, &(int){1}, 4), ENOPROTOOPT));
	strcpy(r.ifr_name, "none");
	return FAILS(ioctl(s, SIOCGIFINDEX, &r), ENODEV) && good && close(s) == 0 && close(i) == 0;
}

static int
port_of_root(void *arg)
{
	struct sockaddr_in name = inet_local(htons(1023));
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (geteuid() == 0 && setresuid(1000, 1000, 1000) != 0)
		return 1;
	return !FAILS(bind(s, (void *)&name, sizeof(name)), EACCES) ||
	       !FAILS(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM);
}

static bool
times_out(void)
{
	struct timeval t = {0, 20000};
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 1, &name), end[2] = {-1, -1};
	bool good = inet_connected(end) &&
		    setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0 &&
		    setsockopt(end[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) == 0 &&
		    setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) == 0;

	good = good && FAILS(read(end[0], piece, 1), EAGAIN) &&
	       FAILS(accept(l, NULL, NULL), EAGAIN) && fill(end[0]) > 0 &&
	       FAILS(send(end[0], piece, PIECE, 0), EAGAIN);
	return closed(end, good) && close(l) == 0;
}

static bool
edges(void)
{
	int set = epoll_create1(0), end[2] = {-1, -1};
	bool good = inet_connected(end) && watch(set, EPOLL_CTL_ADD, end[1],
						 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1) == 0;
	size_t n;

	good = good && told(set) == EPOLLOUT && told(set) == 0 && write(end[0], "a", 1) == 1 &&
	       (told(set) & EPOLLIN) && told(set) == 0 && write(end[0], "b", 1) == 1 &&
	       (told(set) & EPOLLIN) && told(set) == 0 && read(end[1], piece, 2) == 2;
	n = good ? fill(end[1]) : 0;
	good = n > 0 && told(set) == 0 && drain(end[0], 0, n) && (told(set) & EPOLLOUT);
	good = good && shutdown(end[0], SHUT_WR) == 0 &&
	       (told(set) & (EPOLLIN | EPOLLRDHUP)) == (EPOLLIN | EPOLLRDHUP) && told(set) == 0;
	return closed(end, good) && close(set) == 0;
}

static bool
options(void)
{
	int end[2], value = 0, nodelay = 1, idle = 77;
	struct tcp_info info = {0};
	socklen_t len = sizeof(value), info_len = sizeof(info);
	bool good = inet_connected(end) &&
		    getsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &value, &len) == 0 && value == 0 &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay)) == 0 &&
		    getsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &value, &len) == 0 && value == 1;

	good = good && setsockopt(end[0], IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) == 0 &&
	       getsockopt(end[0], IPPROTO_TCP, TCP_KEEPIDLE, &value, &len) == 0 && value == 77 &&
	       FAILS(setsockopt(end[0], IPPROTO_TCP, TCP_KEEPIDLE, &(int){0}, 4), EINVAL) &&
	       FAILS(setsockopt(end[0], IPPROTO_TCP, 999, &idle, 4), ENOPROTOOPT) &&
	       FAILS(setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, &idle, 2), EINVAL) &&
	       FAILS(setsockopt(end[0], IPPROTO_TCP, TCP_NODELAY, NOWHERE, 4), EFAULT);
	good = good && getsockopt(end[0], IPPROTO_TCP, TCP_INFO, &info, &info_len) == 0 &&
	       info.tcpi_state == TCP_ESTABLISHED && info.tcpi_snd_mss > 500;
	good =
	    good && getsockopt(end[0], SOL_SOCKET, SO_ACCEPTCONN, &value, &len) == 0 && value == 0;
	good = good && setsockopt(end[0], IPPROTO_IP, IP_TTL, &idle, sizeof(idle)) == 0 &&
	       getsockopt(end[0], IPPROTO_IP, IP_TTL, &value, &len) == 0 && value == 77;
	return closed(end, good);
}

/* What waits with TCP_CORK goes when it is taken away. */
static bool
corked(void)
{
	int end[2], yes = 1, no = 0;
	bool good = inet_connected(end) &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_CORK, &yes, 4) == 0 &&
		    write(end[0], "head", 4) == 4 && inet_polled(end[1], 0) == POLLOUT &&
		    setsockopt(end[0], IPPROTO_TCP, TCP_CORK, &no, 4) == 0 &&
		    inet_polled(end[1], 5000) == (POLLIN | POLLOUT) && read(end[1], piece, 9) == 4;

	return closed(end, good);
}

static bool
from_files(void)
{
	int end[2], p[2], fd = open("/tmp/linux_inet", O_RDWR | O_CREAT | O_TRUNC, 0600);
	off_t off = 100;
	bool good = inet_connected(end) && pipe(p) == 0;

	for (size_t i = 0; i < 30000; i++)
		piece[i % PIECE] = byte_of(i),
			  good &= i % PIECE != PIECE - 1 || write(fd, piece, PIECE) == PIECE;
	good = good && sendfile(end[0], fd, &off, 20000) == 20000 && off == 20100 &&
	       drain(end[1], 100, 20100);
	good = good && write(end[0], "spliced", 7) == 7 &&
	       splice(end[1], NULL, p[1], NULL, 100, 0) == 7 && read(p[0], piece, 100) == 7 &&
	       memcmp(piece, "spliced", 7) == 0;
	good = good && write(p[1], "piped", 5) == 5 &&
	       splice(p[0], NULL, end[1], NULL, 5, 0) == 5 && read(end[0], piece, 100) == 5 &&
	       memcmp(piece, "piped", 5) == 0;
	unlink("/tmp/linux_inet");
	return closed(end, good) & closed(p, true) & (close(fd) == 0);
}

/* A listening socket that is closed, or shut down, resets who waits, and wakes who accepts. */
static bool
listener_ends(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 1, &name), s = socket(AF_INET, SOCK_STREAM, 0);
	bool good = connect(s, (void *)&name, sizeof(name)) == 0 && close(l) == 0 &&
		    (inet_polled(s, 5000) & POLLERR) && inet_error(s) == ECONNRESET;
	pid_t pid;
	int status = -1;

	l = inet_bound(SOCK_STREAM, 1, &name);
	pid = fork();
	if (pid == 0)
		_exit(!FAILS(accept(l, NULL, NULL), EINVAL));
	good = good && await_sleep(pid, 0) && shutdown(l, SHUT_RD) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0;
	return close(s) == 0 && close(l) == 0 && good;
}

static bool
interrupted(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 1, &name), end[2] = {-1, -1};
	bool good = l >= 0 && inet_connected(end);

	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(accept(l, NULL, NULL), EINTR) && FAILS(read(end[0], piece, 1), EINTR);
	send_alarms(false);
	return closed(end, good) && close(l) == 0;
}

static bool
many_connections(void)
{
	struct sockaddr_in name;
	int l = inet_bound(SOCK_STREAM, 8, &name);
	bool good = l >= 0;

	for (unsigned i = how_often(400); good && i > 0; i--) {
		int s = socket(AF_INET, SOCK_STREAM, 0), a;

		good = connect(s, (void *)&name, sizeof(name)) == 0 && write(s, "x", 1) == 1;
		a = accept(l, NULL, NULL);
		good = good && a >= 0 && read(a, piece, 9) == 1 && close(s) == 0 &&
		       read(a, piece, 9) == 0 && close(a) == 0;
	}
	return close(l) == 0 && good;
}

void
test_inet(void)
{
	result(names_and_data(), "inet: a connection has two names, and carries bytes both ways");
	result(refused(), "inet: who connects where nobody listens is refused, and may try again");
	result(in_progress(), "inet: a connection is made while the program goes on");
	result(half_closed(), "inet: one direction may end before the other");
	result(in_child(write_after_shutdown, NULL) == 128 + SIGPIPE,
	       "inet: a write after the end sends SIGPIPE");
	result(reset_by_peer(), "inet: a connection that its peer resets says so once");
	result(flow_control(), "inet: who does not read stops who writes");
	result(much_data(), "inet: megabytes arrive as they were sent");
	result(ports(), "inet: an address is in use, or nobody's, or remembered");
	result(one_listens(INADDR_ANY, INADDR_ANY) && one_listens(INADDR_LOOPBACK, INADDR_ANY) &&
		   one_listens(INADDR_ANY, INADDR_LOOPBACK),
	       "inet: one socket listens at an address");
	result(connections_differ(), "inet: a connection is made once");
	result(ports_differ(SOCK_STREAM, false) && ports_differ(SOCK_DGRAM, false) &&
		   ports_differ(SOCK_STREAM, true) && ports_differ(SOCK_DGRAM, true),
	       "inet: any port is one that nobody guesses");
	result(interfaces(), "inet: each socket is asked about interfaces, and no port is shared");
	result(in_child(port_of_root, NULL) == 0, "inet: small ports and raw sockets want rights");
	result(times_out(), "inet: a wait ends at its timeout");
	result(edges(), "inet: epoll tells each change once, if it is asked to");
	result(options(), "inet: options of TCP and IP");
	result(corked(), "inet: what is corked waits");
	result(from_files(), "inet: sendfile and splice");
	result(listener_ends(), "inet: a listening socket ends");
	result(interrupted(), "inet: signals interrupt accept and read");
	result(many_connections(), "inet: one connection after the other");
}
