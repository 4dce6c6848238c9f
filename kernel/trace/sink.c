/*
 * sink.c - where the trace stream goes: a port of virtio-serial, the second serial line, or a file.
 * Locking: the caller's; a sink has one user. `burst` is atomic.
 */
#include "arch/irq.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/dev/serial_dev.h"
#include "kernel/dev/uart.h"
#include "kernel/dev/virtio/serial.h"
#include "kernel/fs/file.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"
#include "kernel/trace/flush.h"
#include "kernel/trace/trace_private.h"
#include "ktr/stream.h"

#define SERIAL       "/dev/ttyS1"
#define PORT         "/dev/vport"
#define DEV          "/dev/"
#define PORT_NAME    "trace"      /* the host gives this name to the port for the stream */
#define SERIAL_BURST 16u          /* characters: a FIFO of the chip */
#define SETTLE_NS    500000000ull /* longest wait for a burst to end; emulators are slow */

static bool burst; /* atomic: characters are being written that are not counted yet */

static bool
is_port(const char *path)
{
	return strncmp(path, PORT, strlen(PORT)) == 0;
}

const char *
trace_sink_default(void)
{
	static char path[sizeof(DEV) + sizeof(((struct vport *)NULL)->file)];
	const struct vport *p = vport_find(NULL, PORT_NAME);

	if (p == NULL)
		return SERIAL;
	snprintf(path, sizeof(path), DEV "%s", p->file);
	return path;
}

const char *
trace_sink_missing(const char *path)
{
	return is_port(path)               ? "this machine has no such port of virtio-serial"
	       : strcmp(path, SERIAL) == 0 ? "this machine has no second serial line"
					   : NULL;
}

bool
trace_sink_is_line(const struct trace_sink *k)
{
	return k->port != NULL || k->uart != NULL;
}

int
trace_sink_open(struct trace_sink *k, const char *path)
{
	*k = (struct trace_sink){0};
	if (is_port(path)) {
		k->port = vport_find(path + strlen(DEV), NULL);
		if (k->port != NULL)
			vport_take(k->port);
		return k->port != NULL ? 0 : -ENXIO;
	}
	if (strcmp(path, SERIAL) == 0) {
		k->uart = serial_take();
		return k->uart != NULL ? 0 : -ENXIO;
	}
	return file_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0600, &k->file);
}

void
trace_sink_close(struct trace_sink *k)
{
	if (k->port != NULL)
		vport_give(k->port);
	if (k->uart != NULL)
		serial_give();
	file_unref(k->file);
	*k = (struct trace_sink){0};
}

/* Sends what the line takes at once. */
static int64_t
send_burst(struct trace_sink *k, const uint8_t *bytes, size_t len)
{
	if (k->port != NULL)
		return vport_send(k->port, bytes, len);
	return (int64_t)uart_write_some(k->uart, bytes, len < SERIAL_BURST ? len : SERIAL_BURST);
}

/*
 * Before a burst to a line. The machine must not stop between writing characters and counting them,
 * or the stream would go on at a wrong byte. So whoever stops the machine waits for the end of the
 * burst. False: somebody stops it already, and nothing is to be written.
 */
static bool
burst_begin(void)
{
	irq_push();
	__atomic_store_n(&burst, true, __ATOMIC_RELAXED);
	/* pairs with the fence in ktr_flush_settle(): one of the two at least sees the other */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !stop_active() || stop_inside();
}

static void
burst_end(void)
{
	__atomic_store_n(&burst, false, __ATOMIC_RELEASE);
	irq_pop();
}

int64_t
trace_sink_write(struct trace_sink *k, struct ktr_stream *s, const uint8_t *bytes, size_t len)
{
	int64_t n = 0;

	if (!trace_sink_is_line(k)) {
		n = k->file != NULL ? file_write(k->file, bytes, len) : -EBADF;
		if (n > 0)
			ktr_stream_taken(s, (size_t)n);
		return n == -EAGAIN ? 0 : n;
	}
	if (burst_begin())
		n = send_burst(k, bytes, len);
	if (n > 0)
		ktr_stream_taken(s, (size_t)n);
	burst_end();
	return n;
}

void
trace_sink_let_go(struct trace_sink *k, struct ktr_stream *s)
{
	if (k->port == NULL)
		return;
	if (burst_begin())
		ktr_stream_taken(s, vport_let_go(k->port));
	burst_end();
}

void
ktr_flush_settle(void)
{
	uint64_t start_ns = clock_ns();

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the one in burst_begin() */
	while (__atomic_load_n(&burst, __ATOMIC_ACQUIRE) && clock_ns() - start_ns < SETTLE_NS)
		arch_relax();
}
