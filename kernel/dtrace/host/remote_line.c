/*
 * remote_line.c - the line to another kernel: a socket, or a terminal at the speed that is set. Of
 * a terminal's settings those that would change bytes, or wait for a modem, are off meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "kernel/dtrace/host/remote.h"

static int line = -1;
static const char *name;
static struct termios before; /* the terminal's settings */

static int
open_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(to.sun_path))
		remote_fail("%s: found a path of %zu characters, expected at most %zu", name,
			    strlen(path), sizeof(to.sun_path) - 1);
	strcpy(to.sun_path, path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		remote_fail("%s: %s", name, strerror(errno));
	return fd;
}

static int
open_tcp(const char *text)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	struct addrinfo *found;
	char host[256];
	int fd = -1, error;

	if (colon == NULL || colon[1] == '\0' || (size_t)(colon - text) >= sizeof(host))
		remote_fail("%s: expected tcp:HOST:PORT", name);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	error = getaddrinfo(host, colon + 1, &hints, &found);
	if (error != 0)
		remote_fail("%s: %s", name, gai_strerror(error));
	errno = 0;
	for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, a->ai_protocol);
		if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			continue;
		error = errno;
		close(fd);
		errno = error;
		fd = -1;
	}
	freeaddrinfo(found);
	if (fd < 0)
		remote_fail("%s: %s", name, strerror(errno));
	return fd;
}

static void
restore(void)
{
	tcsetattr(line, TCSANOW, &before);
}

static int
open_terminal(const char *path)
{
	int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct termios t;

	if (fd < 0)
		remote_fail("%s: %s", name, strerror(errno));
	if (tcgetattr(fd, &before) < 0)
		remote_fail(
		    "%s: found no terminal, expected unix:PATH, tcp:HOST:PORT or a terminal", name);
	t = before;
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL; /* no modem is waited for */
	if (tcsetattr(fd, TCSANOW, &t) < 0)
		remote_fail("%s: %s", name, strerror(errno));
	atexit(restore);
	return fd;
}

void
remote_line_open(const char *text)
{
	name = text;
	if (strncmp(text, "unix:", 5) == 0)
		line = open_unix(text + 5);
	else if (strncmp(text, "tcp:", 4) == 0)
		line = open_tcp(text + 4);
	else
		line = open_terminal(text);
	if (fcntl(line, F_SETFL, O_NONBLOCK) < 0)
		remote_fail("%s: %s", name, strerror(errno));
}

static void
check_end(ssize_t n)
{
	if (n == 0)
		remote_fail("%s: the kernel's end was closed", name);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		remote_fail("%s: %s", name, strerror(errno));
}

uint64_t
remote_line_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool
remote_line_write(const uint8_t *bytes, size_t n, int ms)
{
	struct pollfd p = {.fd = line, .events = POLLOUT};
	uint64_t end = remote_line_time() + (unsigned)ms;
	ssize_t done;

	while (n > 0 && remote_line_time() < end) {
		done = send(line, bytes, n, MSG_NOSIGNAL);
		if (done < 0 && errno == ENOTSOCK)
			done = write(line, bytes, n);
		check_end(done < 0 ? -1 : 1);
		if (done < 0) {
			poll(&p, 1, ms);
			continue;
		}
		bytes += done;
		n -= (size_t)done;
	}
	return n == 0;
}

size_t
remote_line_read(uint8_t *bytes, size_t n, int ms)
{
	struct pollfd p = {.fd = line, .events = POLLIN};
	ssize_t done;

	if (poll(&p, 1, ms) <= 0)
		return 0;
	done = read(line, bytes, n);
	check_end(done);
	return done > 0 ? (size_t)done : 0;
}
