/*
 * serial_dev.c - /dev/ttyS1: writes bytes unchanged to the second serial line.
 *
 * While the line is full, a writer sleeps until a signal; with O_NONBLOCK it gets -EAGAIN. While
 * the kernel itself uses the line (serial_take()), writers get -EBUSY, since the two streams would
 * mix.
 *
 * Locking: serial_lock, for each piece and for serial_take(). A writer that waits for the line does
 * not hold it: the next writer could not be interrupted.
 */
#include "kernel/dev/serial_dev.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/dev/uart.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/printf.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

#define SERIAL_RETRY_NS 1000000ull

#define SERIAL_LINE 1

static struct mutex serial_lock = MUTEX_INIT("ttyS1");
static unsigned serial_taken; /* [serial_lock] serial_take() calls without serial_give() */

struct uart *
serial_take(void)
{
	struct uart *u = uart_get(SERIAL_LINE);

	mutex_lock(&serial_lock);
	serial_taken += u != NULL;
	mutex_unlock(&serial_lock);
	return u;
}

void
serial_give(void)
{
	mutex_lock(&serial_lock);
	serial_taken--;
	mutex_unlock(&serial_lock);
}

static int
serial_open(struct file *f)
{
	f->priv = uart_get(SERIAL_LINE);
	return f->priv != NULL ? 0 : -ENXIO;
}

/* Sends bytes of buf. Returns how many; if not all, *error says why. */
static size_t
serial_send(const struct file *f, const char *buf, size_t n, int *error)
{
	size_t done = 0;

	while (done < n && *error == 0) {
		size_t some = 0;
		bool busy;

		mutex_lock(&serial_lock);
		busy = serial_taken > 0;
		if (!busy)
			some = uart_write_some(f->priv, buf + done, n - done);
		mutex_unlock(&serial_lock);
		done += some;
		if (busy)
			*error = -EBUSY;
		else if (some == 0 && (f->flags & O_NONBLOCK))
			*error = -EAGAIN;
		else if (some == 0)
			*error = thread_sleep_ns(SERIAL_RETRY_NS, SLEEP_INTR, "ttyout");
	}
	return done;
}

static int64_t
serial_write(struct file *f, struct uio *u)
{
	int error = 0;
	size_t done = dev_send(f, u, serial_send, &error);

	CTR2(KTR_DEV, "serial write: bytes %lu error %d", done, -error);
	return done > 0 ? (int64_t)done : error;
}

void
serial_dev_init(void)
{
	static const struct dev_ops ops = {
	    .open = serial_open,
	    .write = serial_write,
	    .mode = 0200,
	    .root_only = true,
	};
	int error;

	uart_get(SERIAL_LINE); /* finds the line now, while there is one thread */
	error = devfs_register("ttyS1", &ops, NULL);
	if (error < 0)
		pr_warn("serial: /dev/ttyS1: error %d\n", -error);
}
