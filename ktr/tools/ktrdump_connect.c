/* ktrdump_connect.c - an input that is a connection of TCP: tcp:HOST:PORT. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ktr/tools/ktrdump.h"

static const char prefix[] = "tcp:";

bool
dump_is_connection(const char *input)
{
	return strncmp(input, prefix, sizeof(prefix) - 1) == 0;
}

/* Tries one address after the other. -1: errno says why the last one failed. */
static int
connect_any(const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		int error = errno;
		if (fd >= 0)
			close(fd);
		errno = error;
	}
	return -1;
}

static bool
is_port(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' &&
	       strtoul(text, NULL, 10) - 1 < 65535;
}

int
dump_connect(const char *input, char *err, size_t errlen)
{
	const struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	const char *host = input + sizeof(prefix) - 1, *colon = strrchr(host, ':');
	char name[256] = "localhost"; /* tcp::PORT */
	struct addrinfo *found;
	size_t n = colon != NULL ? (size_t)(colon - host) : 0;
	if (colon == NULL || n >= sizeof(name) || !is_port(colon + 1)) {
		snprintf(err, errlen, "expected tcp:HOST:PORT");
		return -1;
	}
	if (n > 1 && host[0] == '[' && host[n - 1] == ']') { /* an address of IPv6 */
		host++;
		n -= 2;
	}
	if (n > 0) {
		memcpy(name, host, n);
		name[n] = '\0';
	}
	int problem = getaddrinfo(name, colon + 1, &want, &found);
	if (problem != 0) {
		snprintf(err, errlen, "%s", gai_strerror(problem));
		return -1;
	}
	int fd = connect_any(found);
	if (fd < 0)
		snprintf(err, errlen, "%s", strerror(errno));
	freeaddrinfo(found);
	return fd;
}
