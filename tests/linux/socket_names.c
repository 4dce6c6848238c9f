/* socket_names.c - sockets of AF_UNIX with names: bind, listen, connect, accept. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PLACE         "/tmp/linux_sockets"
#define UNIX_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)
#define AT            offsetof(struct sockaddr_un, sun_path)

struct address {
	struct sockaddr_un un;
	socklen_t len;
};

/* A path; or, with '@' in the first place, an abstract name. */
static struct address
address(const char *name)
{
	struct address a = {.un.sun_family = AF_UNIX};

	strcpy(a.un.sun_path, name);
	a.len = (socklen_t)(AT + strlen(name) + (name[0] != '@'));
	if (name[0] == '@')
		a.un.sun_path[0] = '\0';
	return a;
}

static int
binds(int fd, const char *name)
{
	struct address a = address(name);

	return bind(fd, (struct sockaddr *)&a.un, a.len);
}

static int
connects(int fd, const char *name)
{
	struct address a = address(name);

	return connect(fd, (struct sockaddr *)&a.un, a.len);
}

static int
opens(int type)
{
	return socket(AF_UNIX, type, 0);
}

/* Is that the name of the socket, or of its peer? */
static bool
is_named(int fd, const char *name, bool peer)
{
	struct address a = address(name);
	struct sockaddr_un un;
	socklen_t len = sizeof(un);

	if ((peer ? getpeername : getsockname)(fd, (struct sockaddr *)&un, &len) != 0)
		return false;
	if (name[0] == '\0')
		return len == AT && un.sun_family == AF_UNIX;
	return len == a.len && memcmp(&un, &a.un, len) == 0;
}

static bool
listens(int *fd, int type, const char *name, int backlog)
{
	*fd = opens(type);
	return binds(*fd, name) == 0 && listen(*fd, backlog) == 0;
}

/* A path has a node, with the rights that the umask leaves; it stays when its socket is closed. */
static bool
paths_are_nodes(void)
{
	struct stat st;
	mode_t mask = umask(027);
	int s, other = opens(SOCK_STREAM), c = opens(SOCK_STREAM);
	bool good =
	    listens(&s, SOCK_STREAM, PLACE "/s", 5) && stat(PLACE "/s", &st) == 0 &&
	    st.st_mode == (S_IFSOCK | 0750) && is_named(s, PLACE "/s", false) &&
	    FAILS(binds(s, PLACE "/t"), EINVAL) && FAILS(binds(other, PLACE "/s"), EADDRINUSE) &&
	    FAILS(binds(other, PLACE "/no/s"), ENOENT) && FAILS(open(PLACE "/s", O_RDWR), ENXIO) &&
	    FAILS(connects(c, "/no"), ENOENT) && FAILS(connects(c, PLACE), ECONNREFUSED);

	umask(mask);
	good = good && link(PLACE "/s", PLACE "/hard") == 0 && connects(c, PLACE "/hard") == 0 &&
	       is_named(c, PLACE "/s", true) && is_named(c, "", false) &&
	       FAILS(connects(c, PLACE "/s"), EISCONN);
	close(c);
	c = opens(SOCK_DGRAM);
	good = good && FAILS(connects(c, PLACE "/s"), EPROTOTYPE);
	close(c);
	c = opens(SOCK_STREAM);
	good = good && close(s) == 0 && FAILS(connects(c, PLACE "/s"), ECONNREFUSED) &&
	       FAILS(binds(other, PLACE "/s"), EADDRINUSE) && unlink(PLACE "/s") == 0 &&
	       unlink(PLACE "/hard") == 0 && binds(other, PLACE "/s") == 0 &&
	       FAILS(connects(c, PLACE "/s"), ECONNREFUSED) && unlink(PLACE "/s") == 0 &&
	       listen(other, 1) == 0 && FAILS(connects(c, PLACE "/s"), ENOENT);
	close(c);
	close(other);
	return good;
}

static int
as_other_user(void *arg)
{
	int c = opens(SOCK_STREAM), d = opens(SOCK_DGRAM);
	struct address a = address(PLACE "/d");

	return setuid(1234) == 0 && FAILS(connects(c, PLACE "/s"), EACCES) &&
		       FAILS(sendto(d, "x", 1, 0, (struct sockaddr *)&a.un, a.len), EACCES) &&
		       FAILS(binds(c, PLACE "/mine"), EACCES) && chmod(PLACE "/s", 0777) == -1 &&
		       connects(c, PLACE "/open") == 0
		   ? 0
		   : 1;
}

/* To connect needs the right to write to the node. */
static bool
rights_are_needed(void)
{
	int s, o, d = opens(SOCK_DGRAM);
	bool good = listens(&s, SOCK_STREAM, PLACE "/s", 5) &&
		    listens(&o, SOCK_STREAM, PLACE "/open", 5) && chmod(PLACE "/s", 0700) == 0 &&
		    chmod(PLACE "/open", 0222) == 0 && binds(d, PLACE "/d") == 0 &&
		    chmod(PLACE "/d", 0755) == 0 && in_child(as_other_user, NULL) == 0;

	close(s);
	close(o);
	close(d);
	return unlink(PLACE "/s") == 0 && unlink(PLACE "/open") == 0 && unlink(PLACE "/d") == 0 &&
	       good;
}

/* Abstract names: every byte counts, also a NUL, and they are gone with their socket. */
static bool
names_are_abstract(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX}, got;
	socklen_t len = sizeof(got);
	int s, c = opens(SOCK_STREAM), d = opens(SOCK_STREAM);
	bool good = listens(&s, SOCK_STREAM, "@linux_test", 5) &&
		    is_named(s, "@linux_test", false) &&
		    FAILS(binds(d, "@linux_test"), EADDRINUSE) &&
		    FAILS(connects(c, "@linux_tes"), ECONNREFUSED) &&
		    FAILS(connects(c, "@linux_test2"), ECONNREFUSED) &&
		    connects(c, "@linux_test") == 0 && is_named(c, "@linux_test", true);

	close(s);
	good = good && binds(d, "@linux_test") == 0;
	close(d);
	close(c);
	/* The kernel chooses one. */
	c = opens(SOCK_STREAM);
	d = opens(SOCK_DGRAM);
	good = good && bind(c, (struct sockaddr *)&un, AT) == 0 &&
	       bind(d, (struct sockaddr *)&un, AT) == 0 &&
	       getsockname(c, (struct sockaddr *)&got, &len) == 0 && len == AT + 6 &&
	       got.sun_path[0] == '\0' && strspn(got.sun_path + 1, "0123456789abcdef") >= 5 &&
	       FAILS(bind(c, (struct sockaddr *)&un, 1), EINVAL) &&
	       FAILS(bind(c, (struct sockaddr *)&un, sizeof(un) + 1), EINVAL) &&
	       FAILS(connect(c, (struct sockaddr *)&un, AT), EINVAL) &&
	       FAILS(bind(c, NOWHERE, 8), EFAULT);
	close(c);
	close(d);
	return good;
}

/* A path of 108 bytes needs no NUL. */
static bool
paths_may_be_long(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX}, got;
	char dir[] = PLACE "/", path[UNIX_PATH_MAX + 1];
	socklen_t len = sizeof(got) + 1;
	int s = opens(SOCK_STREAM), c = opens(SOCK_STREAM);
	bool good;

	memset(path, 'x', UNIX_PATH_MAX);
	memcpy(path, dir, strlen(dir));
	path[UNIX_PATH_MAX] = '\0';
	memcpy(un.sun_path, path, UNIX_PATH_MAX);
	good = bind(s, (struct sockaddr *)&un, sizeof(un)) == 0 && listen(s, 1) == 0 &&
	       connect(c, (struct sockaddr *)&un, sizeof(un)) == 0 && access(path, F_OK) == 0 &&
	       getsockname(s, (struct sockaddr *)&got, &len) == 0 && len == sizeof(got) + 1;
	unlink(path);
	close(s);
	close(c);
	return good;
}

static void *
connects_later(void *arg)
{
	int *fd = arg;

	return connects(*fd, "@backlog") == 0 ? NULL : fd;
}

/* listen()'s backlog bounds those that wait; accept() takes them in their order. */
static bool
connections_wait(void)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int s, a, c[4], blocked = opens(SOCK_STREAM);
	pthread_t t;
	void *r = &a;
	char b[2];
	bool good = listens(&s, SOCK_STREAM | SOCK_NONBLOCK, "@backlog", 1) &&
		    FAILS(accept(s, NULL, NULL), EAGAIN);

	for (int i = 0; i < 4; i++)
		c[i] = opens(SOCK_STREAM | SOCK_NONBLOCK);
	good = good && connects(c[0], "@backlog") == 0 && connects(c[1], "@backlog") == 0 &&
	       FAILS(connects(c[2], "@backlog"), EAGAIN) && write(c[0], "0", 1) == 1 &&
	       write(c[1], "1", 1) == 1;
	good = good && pthread_create(&t, NULL, connects_later, &blocked) == 0;
	a = accept4(s, (struct sockaddr *)&un, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	good = good && a >= 0 && len == AT && read(a, b, 2) == 1 && b[0] == '0' &&
	       fcntl(a, F_GETFD) == FD_CLOEXEC && fcntl(a, F_GETFL) == (O_RDWR | O_NONBLOCK) &&
	       is_named(a, "@backlog", false) && is_named(a, "", true) &&
	       pthread_join(t, &r) == 0 && r == NULL;
	close(a);
	fcntl(s, F_SETFL, 0);
	a = accept(s, NULL, NULL);
	good = good && a >= 0 && read(a, b, 2) == 1 && b[0] == '1' && close(a) == 0;
	/* The last one is never accepted. */
	good = good && close(s) == 0 && FAILS(read(blocked, b, 1), ECONNRESET) &&
	       FAILS(send(blocked, b, 1, MSG_NOSIGNAL), EPIPE) &&
	       FAILS(connects(c[2], "@backlog"), ECONNREFUSED);
	for (int i = 0; i < 4; i++)
		close(c[i]);
	close(blocked);
	return good;
}

static bool
is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = (short)(events | POLLOUT | POLLIN)};

	return poll(&p, 1, 0) >= 0 && p.revents == events;
}

static bool
listeners_are_polled(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int s, a, value = 0, c = opens(SOCK_SEQPACKET);
	bool good = is_ready(c, POLLOUT | POLLHUP) && FAILS(listen(c, 1), EINVAL) &&
		    FAILS(accept(c, NULL, NULL), EINVAL) &&
		    listens(&s, SOCK_SEQPACKET, "@ready", 5) && is_ready(s, 0) &&
		    connects(c, "@ready") == 0 && is_ready(s, POLLIN) && is_ready(c, POLLOUT);

	len = sizeof(value);
	good = good && getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) == 0 && value == 1;
	len = sizeof(cred);
	good = good && getsockopt(c, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.pid == getpid() && cred.uid == geteuid();
	a = accept(s, NULL, NULL);
	good = good && is_ready(s, 0) && send(a, "one", 3, 0) == 3 &&
	       is_ready(c, POLLIN | POLLOUT) && FAILS(connects(s, "@ready"), EINVAL) &&
	       FAILS(send(s, "x", 1, 0), ENOTCONN) && FAILS(recv(s, &value, 1, 0), ENOTCONN);
	close(s);
	close(a);
	close(c);
	return good;
}

/* Datagrams to names, and from names. */
static bool
datagrams_have_names(void)
{
	struct address to = address("@receiver");
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	struct pollfd p;
	char buf[8];
	int r = opens(SOCK_DGRAM), s = opens(SOCK_DGRAM), t = opens(SOCK_DGRAM | SOCK_NONBLOCK),
	    n = 0;
	bool good = FAILS(sendto(s, "x", 1, 0, (struct sockaddr *)&to.un, to.len), ECONNREFUSED) &&
		    FAILS(send(s, "x", 1, 0), ENOTCONN) && binds(r, "@receiver") == 0 &&
		    sendto(s, "one", 3, 0, (struct sockaddr *)&to.un, to.len) == 3 &&
		    recvfrom(r, buf, 8, 0, (struct sockaddr *)&from, &len) == 3 && len == 0;

	len = sizeof(from);
	good = good && binds(s, "@sender") == 0 && connects(s, "@receiver") == 0 &&
	       send(s, "two", 3, 0) == 3 &&
	       recvfrom(r, buf, 8, 0, (struct sockaddr *)&from, &len) == 3 && len == AT + 7 &&
	       memcmp(from.sun_path, "\0sender", 7) == 0 && is_named(s, "@receiver", true);
	/* Who is connected hears its peer only. */
	good = good && connects(r, "@sender") == 0 && FAILS(connects(t, "@receiver"), EPERM) &&
	       FAILS(sendto(t, "x", 1, 0, (struct sockaddr *)&to.un, to.len), EPERM);
	from.sun_family = AF_UNSPEC;
	good = good && connect(r, (struct sockaddr *)&from, sizeof(from)) == 0 &&
	       FAILS(getpeername(r, (struct sockaddr *)&from, &len), ENOTCONN) &&
	       connects(t, "@receiver") == 0;
	/* A queue has room for some. */
	while (good && n < 1000 && send(t, "x", 1, 0) == 1)
		n++;
	p = (struct pollfd){.fd = t, .events = POLLOUT};
	good = good && errno == EAGAIN && n >= 10 && n < 1000 && poll(&p, 1, 0) == 0 &&
	       recv(r, buf, 8, 0) == 1 && poll(&p, 1, 0) == 1 && send(t, "x", 1, 0) == 1;
	close(r);
	good =
	    good && FAILS(send(t, "x", 1, 0), ECONNREFUSED) && FAILS(send(t, "x", 1, 0), ENOTCONN);
	close(s);
	close(t);
	return good;
}

/* What a socket has not read of its old peer is lost, and that one is told. */
static bool
peers_change(void)
{
	struct address to = address("@peer_a");
	int a = opens(SOCK_DGRAM), b = opens(SOCK_DGRAM), c = opens(SOCK_DGRAM);
	char buf[8];
	bool good = binds(a, "@peer_a") == 0 && binds(b, "@peer_b") == 0 &&
		    binds(c, "@peer_c") == 0 && connects(a, "@peer_b") == 0 &&
		    connects(b, "@peer_a") == 0 && send(b, "lost", 4, 0) == 4 &&
		    connects(a, "@peer_c") == 0 && FAILS(recv(a, buf, 8, MSG_DONTWAIT), EAGAIN) &&
		    FAILS(recv(b, buf, 8, MSG_DONTWAIT), ECONNRESET);

	/* The same peer once more: nothing is lost. */
	good = good && sendto(c, "kept", 4, 0, (struct sockaddr *)&to.un, to.len) == 4 &&
	       connects(a, "@peer_c") == 0 && recv(a, buf, 8, MSG_DONTWAIT) == 4;
	/* It has gone, which a send finds out. */
	good = good && sendto(c, "lost", 4, 0, (struct sockaddr *)&to.un, to.len) == 4 &&
	       close(c) == 0 && FAILS(send(a, "x", 1, 0), ECONNREFUSED) &&
	       FAILS(recv(a, buf, 8, MSG_DONTWAIT), EAGAIN);
	return (close(a) == 0) & (close(b) == 0) & good;
}

/* Who waits for room in a peer's queue is told when another queue counts, and when that one ends.
 */
static bool
room_is_told(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	int to = opens(SOCK_DGRAM), s[2], set[2], n = 0;
	bool good = binds(to, "@full") == 0;

	for (int i = 0; i < 2; i++) {
		s[i] = opens(SOCK_DGRAM | SOCK_NONBLOCK);
		set[i] = epoll_create1(0);
		good = connects(s[i], "@full") == 0 &&
		       watch(set[i], EPOLL_CTL_ADD, s[i], EPOLLOUT | EPOLLET, 1) == 0 &&
		       told(set[i]) == EPOLLOUT && good;
	}
	while (good && n < 1000 && send(s[0], "x", 1, 0) == 1)
		n++;
	good = good && n < 1000 && FAILS(send(s[1], "x", 1, 0), EAGAIN) && told(set[0]) == 0 &&
	       connect(s[0], &none, sizeof(none)) == 0 && told(set[0]) == EPOLLOUT &&
	       told(set[1]) == 0 && close(to) == 0 && told(set[1]) == EPOLLOUT;
	for (int i = 0; i < 2; i++)
		good = close(s[i]) == 0 && close(set[i]) == 0 && good;
	return good;
}

/* /proc/net/unix lists them. */
static bool
proc_lists_them(void)
{
	static char text[100000];
	char line[64];
	struct stat st;
	int s, fd = open("/proc/net/unix", O_RDONLY);
	ssize_t n = 0, got;
	bool good = listens(&s, SOCK_STREAM, "@listed", 5) && fstat(s, &st) == 0;

	while ((got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	text[n] = '\0';
	snprintf(line, sizeof(line), " 00000000 00010000 0001 01 %5lu @listed\n", st.st_ino);
	good = good && strstr(text, "Inode Path\n") != NULL && strstr(text, line) != NULL;
	close(fd);
	close(s);
	return good;
}

static int
accepts_more(void *arg)
{
	int s = *(int *)arg, c = opens(SOCK_STREAM), a;
	char b;

	if (connects(c, "@inherited") != 0 || (a = accept(s, NULL, NULL)) < 0)
		return 1;
	return write(c, "x", 1) == 1 && read(a, &b, 1) == 1 ? 0 : 2;
}

/* A child has its parent's sockets; the name stays until both have closed it. */
static bool
children_inherit(void)
{
	int s, c = opens(SOCK_STREAM);
	bool good = listens(&s, SOCK_STREAM, "@inherited", 5);
	pid_t pid = fork();

	if (pid == 0)
		_exit(accepts_more(&s) != 0 || accepts_more(&s) != 0);
	close(s);
	good = good && waitpid(pid, &s, 0) == pid && s == 0 &&
	       FAILS(connects(c, "@inherited"), ECONNREFUSED);
	close(c);
	return good;
}

void
test_socket_names(void)
{
	mkdir(PLACE, 0755);
	result(paths_are_nodes(), "a socket with a path is a node");
	result(geteuid() != 0 || rights_are_needed(), "who connects needs the right to write");
	result(names_are_abstract(), "abstract names, also some that the kernel chooses");
	result(paths_may_be_long(), "a path of 108 bytes");
	result(connections_wait(), "connections wait for accept, as many as the backlog says");
	result(listeners_are_polled(), "poll tells of connections; SO_ACCEPTCONN, SO_PEERCRED");
	result(datagrams_have_names(), "datagrams go to names, and tell whose they are");
	result(room_is_told(),
	       "who waits for room in a queue is told that another one counts, or of its end");
	result(peers_change(),
	       "a datagram socket has another peer, and what waits for the one before is lost");
	result(proc_lists_them(), "/proc/net/unix lists sockets");
	result(children_inherit(), "a child has its parent's sockets");
	rmdir(PLACE);
}
