/*
 * sink.c - where the trace stream goes: the second serial line, or a file.
 * Locking: the caller's; a sink has one user.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/dev/uart.h"
#include "kernel/fs/file.h"
#include "kernel/lib/string.h"
#include "kernel/trace/trace_private.h"

#define TRACE_UART 1

int
trace_sink_open(struct trace_sink *k, const char *path)
{
	*k = (struct trace_sink){0};
	if (strcmp(path, TRACE_SINK_SERIAL) == 0) {
		k->uart = uart_get(TRACE_UART);
		return k->uart != NULL ? 0 : -ENXIO;
	}
	return file_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0600, &k->file);
}

void
trace_sink_close(struct trace_sink *k)
{
	file_unref(k->file);
	*k = (struct trace_sink){0};
}

int64_t
trace_sink_write(struct trace_sink *k, const void *buf, size_t len)
{
	int64_t n;

	if (k->uart != NULL)
		return (int64_t)uart_write_some(k->uart, buf, len);
	n = k->file != NULL ? file_write(k->file, buf, len) : -EBADF;
	return n == -EAGAIN ? 0 : n;
}
