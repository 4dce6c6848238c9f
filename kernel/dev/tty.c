/*
 * tty.c - /dev/console: the console line with a line discipline and a foreground process group.
 *
 * Locking: tty.lock, a spin lock, guards everything; input arrives in interrupts. It is not held
 * while bytes move to or from user memory, nor while a signal is sent. Writers exclude each other
 * for one piece at a time, in console.c. A writer that waits for a slow line holds no lock, since
 * signals could not interrupt the others.
 */
#include "kernel/dev/tty.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/dev/console.h"
#include "kernel/dev/ldisc.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/poll.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

#define TTY_PIECE    256        /* bytes moved at once */
#define TTY_RETRY_NS 1000000ull /* a FIFO empties within 1.4 ms at 115200 baud */
#define VTIME_NS     100000000ull

#define TTY_BACKGROUND 1 /* the process that would read is not in the foreground */

static struct {
	struct spinlock lock;
	struct ldisc ldisc;
	uint32_t fg_pgid; /* 0: none yet */
	uint32_t fg_uid;  /* the user who chose it */
	uint32_t sid;     /* the session whose terminal it is: that of the first who opened it */
	struct winsize size;
} tty = {.lock = SPINLOCK_INIT("tty"), .size = {.ws_row = 24, .ws_col = 80}};

static struct poll_source tty_news;

/* Echoes text, in the context in which the character arrived. tty.lock held. */
static void
tty_echo(void *arg, const char *text, size_t n)
{
	console_echo(text, n);
}

void
tty_input(char c)
{
	bool wake;
	uint32_t pgid;
	int sig;

	spin_lock(&tty.lock);
	sig = ldisc_input(&tty.ldisc, c, &wake);
	pgid = tty.fg_pgid;
	spin_unlock(&tty.lock);
	CTR3(KTR_BUF, "tty input: char %#x wake %d sig %d", (uint8_t)c, wake, sig);
	if (wake) {
		wakeup(&tty);
		poll_notify(&tty_news, POLLIN);
	}
	if (sig != 0 && pgid != 0) {
		unsigned n = proc_signal_group(pgid, sig);

		CTR3(KTR_SIG, "tty signal: sig %d pgid %u processes %u", sig, pgid, n);
	}
}

static int
tty_open(struct file *f)
{
	struct proc *p = curproc();

	spin_lock(&tty.lock);
	if (tty.fg_pgid == 0 && p != NULL) {
		tty.fg_pgid = p->pgid;
		tty.fg_uid = p->uid;
		tty.sid = p->sid;
	}
	spin_unlock(&tty.lock);
	f->news = &tty_news;
	return 0;
}

/* Is the current process in the foreground? Kernel threads always are. tty.lock held. */
static bool
tty_foreground(void)
{
	struct proc *p = curproc();

	return p == NULL || tty.fg_pgid == 0 || p->pgid == tty.fg_pgid;
}

/*
 * Is the current process in the foreground? 0: it is. -EINTR: sig stops it, and then the system
 * call begins again. 1: it is not, and it ignores or blocks sig. -EIO: nobody would continue it.
 */
static int
tty_await_foreground(int sig)
{
	bool foreground;

	spin_lock(&tty.lock);
	foreground = tty_foreground();
	spin_unlock(&tty.lock);
	return foreground ? 0 : proc_stop_group(sig);
}

/* May the current process change the terminal? 0, -EIO or -EPERM. */
static int
tty_may_change(void)
{
	int error = tty_await_foreground(SIGTTOU);
	struct proc *p = curproc();

	if (error != 1)
		return error;
	return p->uid == 0 || p->uid == tty.fg_uid ? 0 : -EPERM;
}

/*
 * Waits until a read of n bytes can return (in raw mode by termios' VMIN and VTIME). tty.lock held.
 * 0, TTY_BACKGROUND, or -errno.
 */
static int
tty_wait(const struct file *f, size_t n)
{
	uint64_t started = clock_ns(), deadline = DEADLINE_NEVER;
	size_t seen = 0, want;
	int error;

	for (;;) {
		const struct termios *t = &tty.ldisc.t;
		bool raw = !(t->c_lflag & ICANON);

		/* Check each time: the foreground may have changed during the sleep. */
		if (!tty_foreground())
			return TTY_BACKGROUND;
		size_t ready = ldisc_ready(&tty.ldisc);

		want = raw ? t->c_cc[VMIN] : 1;
		if (ready >= (want < n ? want : n))
			return 0;
		if (f->flags & O_NONBLOCK)
			return ready > 0 ? 0 : -EAGAIN;
		if (raw && t->c_cc[VTIME] > 0) {
			/*
			 * With VMIN 0 the time counts from the start of the read, else from each
			 * byte.
			 */
			if (ready != seen)
				started = clock_ns();
			seen = ready;
			if (want == 0 || ready > 0)
				deadline = started + t->c_cc[VTIME] * VTIME_NS;
		}
		error = sleep_on(&tty, &tty.lock, "ttyin", SLEEP_INTR, deadline);
		if (error == -ETIMEDOUT)
			return 0;
		if (error < 0)
			return error;
	}
}

static int64_t
tty_read(struct file *f, struct uio *u)
{
	char buf[TTY_PIECE];
	size_t n = u->resid < sizeof(buf) ? u->resid : sizeof(buf);
	size_t got = 0;
	int64_t error;

	if (n == 0)
		return 0;
	do {
		error = tty_await_foreground(SIGTTIN);
		if (error != 0)
			return error == -EINTR ? error : -EIO;
		spin_lock(&tty.lock);
		error = tty_wait(f, n);
		if (error == 0)
			got = ldisc_read(&tty.ldisc, buf, n);
		spin_unlock(&tty.lock);
	} while (error == TTY_BACKGROUND);
	CTR2(KTR_BUF, "tty read: bytes %lu error %d", got, (int)-error);
	if (error == 0)
		error = uio_put(u, buf, got);
	return error < 0 ? error : (int64_t)got;
}

/* Sends all of text, and sleeps while the line is full. 0, or -EINTR with *done bytes sent. */
static int
tty_send(const char *text, size_t n, size_t *done)
{
	int error = 0;

	*done = 0;
	while (*done < n && error == 0) {
		size_t some = console_write_some(text + *done, n - *done);

		*done += some;
		if (some == 0)
			error = thread_sleep_ns(TTY_RETRY_NS, SLEEP_INTR, "ttyout");
	}
	return error;
}

/*
 * Writes one piece of at most TTY_PIECE bytes. Returns how many bytes of text were sent completely.
 * A signal sets *error.
 */
static size_t
tty_write_piece(const char *text, size_t n, int *error)
{
	char out[TTY_PIECE];
	size_t used = 0;

	while (used < n && *error == 0) {
		size_t now = n - used, made, sent;

		spin_lock(&tty.lock);
		made = ldisc_output(&tty.ldisc, text + used, &now, out, sizeof(out));
		spin_unlock(&tty.lock);
		*error = tty_send(out, made, &sent);
		if (*error == 0)
			used += now;
		else
			used +=
			    sent < now ? sent : now; /* an estimate, never more than was begun */
	}
	return used;
}

static int64_t
tty_write(struct file *f, struct uio *u)
{
	char buf[TTY_PIECE];
	size_t done = 0;
	int error = 0;

	/* A process that ignores or blocks SIGTTOU may write. */
	if (tty.ldisc.t.c_lflag & TOSTOP)
		error = tty_await_foreground(SIGTTOU);
	if (error < 0)
		return error;
	error = 0;
	while (u->resid > 0 && error == 0) {
		size_t n = u->resid < sizeof(buf) ? u->resid : sizeof(buf);

		error = uio_take(u, buf, n);
		if (error == 0)
			done += tty_write_piece(buf, n, &error);
		if (error == 0 && u->resid > 0 && proc_signal_pending())
			error = -EINTR;
	}
	CTR2(KTR_BUF, "tty write: bytes %lu error %d", done, -error);
	return done > 0 ? (int64_t)done : error;
}

static unsigned
tty_poll(struct file *f)
{
	bool input;

	spin_lock(&tty.lock);
	input = ldisc_ready(&tty.ldisc) > 0;
	spin_unlock(&tty.lock);
	return POLLOUT | (input ? POLLIN : 0);
}

static int64_t
tty_set(unsigned request, uint64_t arg)
{
	struct termios t;
	int error = tty_may_change();

	if (error < 0)
		return error;
	if (copy_in(&t, arg, sizeof(t)) < 0)
		return -EFAULT;
	spin_lock(&tty.lock);
	if (request == TCSETSF)
		ldisc_flush(&tty.ldisc);
	ldisc_set(&tty.ldisc, &t);
	spin_unlock(&tty.lock);
	wakeup(&tty); /* a reader waits by the old settings */
	CTR2(KTR_BUF, "tty set: lflag %#o iflag %#o", t.c_lflag, t.c_iflag);
	return 0;
}

static int64_t
tty_set_group(uint64_t arg)
{
	int32_t pgid;
	int error = tty_may_change();

	if (error < 0)
		return error;
	if (copy_in(&pgid, arg, sizeof(pgid)) < 0)
		return -EFAULT;
	if (pgid <= 0)
		return -EINVAL;
	if (proc_signal_group((uint32_t)pgid, 0) == 0)
		return -EPERM;
	spin_lock(&tty.lock);
	tty.fg_pgid = (uint32_t)pgid;
	tty.fg_uid = curproc()->uid;
	spin_unlock(&tty.lock);
	wakeup(&tty); /* a reader may now be in the background */
	CTR1(KTR_BUF, "tty foreground: pgid %d", pgid);
	return 0;
}

/* Tells the foreground of a new size. */
static int64_t
tty_set_size(uint64_t arg)
{
	struct winsize size;
	uint32_t pgid = 0;

	if (copy_in(&size, arg, sizeof(size)) < 0)
		return -EFAULT;
	spin_lock(&tty.lock);
	if (memcmp(&size, &tty.size, sizeof(size)) != 0)
		pgid = tty.fg_pgid;
	tty.size = size;
	spin_unlock(&tty.lock);
	if (pgid != 0)
		proc_signal_group(pgid, SIGWINCH);
	return 0;
}

static int64_t
tty_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct termios t;
	struct winsize size;
	int32_t pgid;

	spin_lock(&tty.lock);
	t = tty.ldisc.t;
	pgid = (int32_t)tty.fg_pgid;
	size = tty.size;
	spin_unlock(&tty.lock);
	switch (request) {
	case TCGETS:
		return copy_out(arg, &t, sizeof(t));
	case TCSETS:
	case TCSETSW: /* output is never buffered, so there is nothing to wait for */
	case TCSETSF:
		return tty_set(request, arg);
	case TIOCGPGRP:
		return copy_out(arg, &pgid, sizeof(pgid));
	case TIOCSPGRP:
		return tty_set_group(arg);
	case TIOCGWINSZ:
		return copy_out(arg, &size, sizeof(size));
	case TIOCSWINSZ:
		return tty_set_size(arg);
	default:
		return -ENOTTY;
	}
}

/* /dev/tty: the terminal of the process's session. */
static int
tty_open_own(struct file *f)
{
	const struct proc *p = curproc();

	return p == NULL || p->sid == tty.sid ? tty_open(f) : -ENXIO;
}

void
tty_init(void)
{
	static const struct dev_ops console = {
	    .open = tty_open,
	    .read = tty_read,
	    .write = tty_write,
	    .poll = tty_poll,
	    .ioctl = tty_ioctl,
	    .mode = 0600, /* programs inherit it open */
	};
	static struct dev_ops own; /* constant after this */
	int error;

	own = console;
	own.open = tty_open_own;
	own.mode = 0666;
	ldisc_init(&tty.ldisc, tty_echo, NULL);
	error = devfs_register("console", &console, NULL);
	if (error == 0)
		error = devfs_register("tty", &own, NULL);
	if (error < 0)
		panic("tty: /dev/console: error %d", -error);
}
