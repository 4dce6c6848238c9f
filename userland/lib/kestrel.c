/* kestrel.c - sysctls, tracing and shutdown: Kestrel's own system calls as C functions. */
#include <errno.h>
#include <kestrel.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/abi/syscall.h"

static ssize_t
sysctl_call(int op, const char *name, char *buf, size_t len)
{
	ssize_t n = syscall(NR_sysctl, op, name, buf, len, NULL, 0);

	if (n >= 0 && len > 0)
		buf[(size_t)n < len ? (size_t)n : len - 1] = '\0';
	return n;
}

ssize_t
sysctl_get(const char *name, char *buf, size_t len)
{
	return sysctl_call(SYSCTL_GET, name, buf, len);
}

ssize_t
sysctl_next(const char *name, char *buf, size_t len)
{
	return sysctl_call(SYSCTL_NEXT, name, buf, len);
}

ssize_t
sysctl_info(const char *name, char *buf, size_t len)
{
	return sysctl_call(SYSCTL_INFO, name, buf, len);
}

char *
sysctl_get_text(const char *name)
{
	size_t size = 512;
	char *buf = NULL;

	/* Such texts (the message buffer, processes) grow between two calls: leave room, try again.
	 */
	for (;;) {
		char *bigger = realloc(buf, size);
		ssize_t n;

		if (bigger == NULL) {
			free(buf);
			return NULL;
		}
		buf = bigger;
		n = sysctl_get(name, buf, size);
		if (n < 0) {
			free(buf);
			return NULL;
		}
		if ((size_t)n < size)
			return buf;
		size = (size_t)n + (size_t)n / 4 + 64;
	}
}

int
sysctl_get_u64(const char *name, uint64_t *value)
{
	char buf[32], *end;
	ssize_t n = sysctl_get(name, buf, sizeof(buf));

	if (n < 0)
		return -1;
	*value = strtoull(buf, &end, 0);
	if (end == buf || (*end != '\0' && *end != '\n')) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

int
sysctl_set(const char *name, const char *value, char *why, size_t why_len)
{
	char sentence[512] = "";

	if (syscall(NR_sysctl, SYSCTL_SET, name, sentence, sizeof(sentence), value,
		    strlen(value)) >= 0)
		return 0;
	if (why_len > 0) {
		sentence[sizeof(sentence) - 1] = '\0';
		strlcpy(why, sentence[0] != '\0' ? sentence : strerror(errno), why_len);
	}
	return -1;
}

int
ktrace(const char *file, int ops, uint32_t facs, pid_t pid)
{
	return (int)syscall(NR_ktrace, file, ops, facs, pid);
}

int
utrace(const void *data, size_t len)
{
	return (int)syscall(NR_utrace, data, len);
}

int
machine_shutdown(int how, int status)
{
	return (int)syscall(NR_machine_shutdown, how, status);
}
