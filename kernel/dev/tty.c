/*
 * tty.c - what a terminal does: reading, writing, settings. Sessions and groups: tty_jobs.c.
 * Locking: tty.h. A writer that waits for its line holds no lock, only `writing`: signals interrupt
 * those that wait for it.
 */
#include "kernel/dev/tty.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

#define VTIME_NS 100000000ull

#define TTY_BACKGROUND 1 /* the process that would read is not in the foreground */

/* Echoes text, in the context in which the character arrived. t->lock held. */
static void
tty_echo(void *arg, const char *text, size_t n)
{
	struct tty *t = arg;

	t->line->echo(t, text, n);
}

void
tty_init(struct tty *t, const struct tty_line *line)
{
	spin_init(&t->lock, "tty");
	t->line = line;
	t->refs = 1;
	ldisc_init(&t->ldisc, tty_echo, t);
}

struct tty_key
tty_take_key(struct tty *t, char c)
{
	struct tty_key k = {.c = c, .sid = t->sid, .pgid = t->fg_pgid};

	k.sig = ldisc_input(&t->ldisc, c, &k.wake);
	if (k.sig != 0 && !(t->ldisc.t.c_lflag & NOFLSH))
		t->flushed |= TIOCPKT_FLUSHREAD | TIOCPKT_FLUSHWRITE;
	return k;
}

void
tty_tell_key(struct tty *t, const struct tty_key *k)
{
	CTR3(KTR_BUF, "tty input: char %#x wake %d sig %d", (uint8_t)k->c, k->wake, k->sig);
	if (k->wake) {
		wakeup(t);
		poll_notify(&t->news, POLLIN);
	}
	if (k->sig != 0 && k->pgid != 0) {
		unsigned n = proc_signal_group(k->sid, k->pgid, k->sig);

		CTR3(KTR_SIG, "tty signal: sig %d pgid %u processes %u", k->sig, k->pgid, n);
	}
}

void
tty_input(struct tty *t, char c)
{
	struct tty_key k;

	spin_lock(&t->lock);
	k = tty_take_key(t, c);
	spin_unlock(&t->lock);
	tty_tell_key(t, &k);
}

int
tty_open(struct file *f)
{
	struct tty *t = f->priv;
	bool hung;

	spin_lock(&t->lock);
	hung = t->hung;
	t->opens += !hung;
	t->opened = true;
	spin_unlock(&t->lock);
	if (hung)
		return -EIO;
	tty_ref(t);
	f->news = &t->news;
	if (!(f->flags & O_NOCTTY) && (f->flags & O_ACCMODE) != O_WRONLY)
		tty_adopt(t);
	return 0;
}

/* The other end may look again. */
static void
tell_line(struct tty *t)
{
	if (t->line->changed != NULL)
		t->line->changed(t);
}

void
tty_release(struct file *f)
{
	struct tty *t = f->priv;
	bool last;

	spin_lock(&t->lock);
	last = --t->opens == 0;
	spin_unlock(&t->lock);
	if (last)
		tell_line(t);
	tty_unref(t);
}

/*
 * Waits until a read of n bytes can return (in raw mode by termios' VMIN and VTIME). t->lock held.
 * 0, TTY_BACKGROUND, or -errno.
 */
static int
tty_wait(struct tty *t, const struct file *f, size_t n)
{
	uint64_t started = clock_ns();
	size_t seen = 0, want;
	int error;

	for (;;) {
		const struct termios *set = &t->ldisc.t;
		bool raw = !(set->c_lflag & ICANON);
		uint64_t deadline = DEADLINE_NEVER; /* what was there may be gone */

		/* Check each time: the foreground may have changed during the sleep. */
		if (!tty_foreground(t))
			return TTY_BACKGROUND;
		size_t ready = ldisc_ready(&t->ldisc);

		want = raw ? set->c_cc[VMIN] : 1;
		if (want == 0 && set->c_cc[VTIME] > 0)
			want = 1; /* none will do when the time is over */
		if (ready >= (want < n ? want : n))
			return 0;
		if (t->hung)
			return -EIO;
		if (f->flags & O_NONBLOCK)
			return ready > 0 ? 0 : -EAGAIN;
		if (raw && set->c_cc[VTIME] > 0) {
			/*
			 * With VMIN 0 the time counts from the start of the read, else from each
			 * byte.
			 */
			if (ready != seen)
				started = clock_ns();
			seen = ready;
			if (set->c_cc[VMIN] == 0 || ready > 0)
				deadline = started + set->c_cc[VTIME] * VTIME_NS;
		}
		error = sleep_on(t, &t->lock, "ttyin", SLEEP_INTR, deadline);
		if (error == -ETIMEDOUT)
			return 0;
		if (error < 0)
			return error;
	}
}

/* Waits, and takes at most n bytes at once: no other reader gets a part of the line. */
static int64_t
tty_read_some(struct tty *t, const struct file *f, char *buf, size_t n)
{
	size_t got = 0;
	int error;

	do {
		error = tty_await_foreground(t, SIGTTIN);
		if (error != 0)
			return error == -EINTR ? error : -EIO;
		spin_lock(&t->lock);
		error = tty_wait(t, f, n);
		if (error == 0)
			got = ldisc_read(&t->ldisc, buf, n);
		spin_unlock(&t->lock);
	} while (error == TTY_BACKGROUND);
	CTR2(KTR_BUF, "tty read: bytes %lu error %d", got, -error);
	if (error != 0)
		return error;
	tell_line(t); /* an end of file, too, has made room */
	return (int64_t)got;
}

int64_t
tty_read(struct file *f, struct uio *u)
{
	struct tty *t = f->priv;
	size_t n = u->resid < LDISC_SIZE ? u->resid : LDISC_SIZE;
	char *buf;
	int64_t got;

	if (n == 0 || t->hung)
		return 0;
	buf = kmalloc(n);
	if (buf == NULL)
		return -ENOMEM;
	got = tty_read_some(t, f, buf, n);
	if (got > 0) {
		int error = uio_put(u, buf, (size_t)got);

		got = error < 0 ? error : got;
	}
	kfree(buf);
	return got;
}

static size_t
send_line(const struct file *f, const char *text, size_t n, int *error)
{
	struct tty *t = f->priv;

	return t->line->write(t, f, text, n, error);
}

/* No other write's bytes come between those of one. 0, -EAGAIN or -EINTR. */
static int
tty_begin_write(struct tty *t, const struct file *f)
{
	int error = 0;

	spin_lock(&t->lock);
	if (!t->writing) {
		t->writing = true;
	} else if (f->flags & O_NONBLOCK) {
		t->refused = true;
		error = -EAGAIN;
	} else { /* who is woken has the turn, so that nobody who comes later takes it */
		error = sleep_on(&t->writing, &t->lock, "ttywrite", SLEEP_INTR, DEADLINE_NEVER);
	}
	spin_unlock(&t->lock);
	return error;
}

static void
tty_end_write(struct tty *t)
{
	bool tell;

	spin_lock(&t->lock);
	t->writing = wakeup_one(&t->writing) != 0;
	tell = t->refused && !t->writing;
	t->refused &= t->writing;
	spin_unlock(&t->lock);
	if (tell)
		poll_notify(&t->news, POLLOUT);
}

int64_t
tty_write(struct file *f, struct uio *u)
{
	struct tty *t = f->priv;
	size_t done;
	int error = 0;

	/* A process that ignores or blocks SIGTTOU may write. */
	if (t->ldisc.t.c_lflag & TOSTOP)
		error = tty_await_foreground(t, SIGTTOU);
	if (error >= 0)
		error = tty_begin_write(t, f);
	if (error < 0)
		return error;
	done = dev_send(f, u, send_line, &error);
	tty_end_write(t);
	CTR2(KTR_BUF, "tty write: bytes %lu error %d", done, -error);
	return done > 0 ? (int64_t)done : error;
}

/* Would a read that asks for enough return? t->lock held. */
static bool
is_readable(const struct tty *t)
{
	const struct termios *set = &t->ldisc.t;
	bool counts = !(set->c_lflag & ICANON) && set->c_cc[VTIME] == 0 && set->c_cc[VMIN] > 0;

	return ldisc_ready(&t->ldisc) >= (counts ? set->c_cc[VMIN] : 1u);
}

unsigned
tty_poll(struct file *f)
{
	struct tty *t = f->priv;
	unsigned found = 0;

	spin_lock(&t->lock);
	if (t->line->room == NULL || t->line->room(t))
		found |= POLLOUT;
	if (is_readable(t))
		found |= POLLIN;
	if (t->hung)
		found |= POLLIN | POLLOUT | POLLERR | POLLHUP;
	spin_unlock(&t->lock);
	return found;
}

/* System V's flags replace the low halves of *set. -EFAULT. */
static int
tty_take_old(struct termios *set, uint64_t arg)
{
	struct termio old;

	if (copy_in(&old, arg, sizeof(old)) < 0)
		return -EFAULT;
	set->c_iflag = (set->c_iflag & 0xffff0000) | old.c_iflag;
	set->c_oflag = (set->c_oflag & 0xffff0000) | old.c_oflag;
	set->c_cflag = (set->c_cflag & 0xffff0000) | old.c_cflag;
	set->c_lflag = (set->c_lflag & 0xffff0000) | old.c_lflag;
	set->c_line = old.c_line;
	memcpy(set->c_cc, old.c_cc, sizeof(old.c_cc));
	return 0;
}

static int64_t
tty_give_old(const struct termios *set, uint64_t arg)
{
	struct termio old;

	memset(&old, 0, sizeof(old)); /* its last byte is no member's */
	old.c_iflag = (uint16_t)set->c_iflag;
	old.c_oflag = (uint16_t)set->c_oflag;
	old.c_cflag = (uint16_t)set->c_cflag;
	old.c_lflag = (uint16_t)set->c_lflag;
	old.c_line = set->c_line;
	memcpy(old.c_cc, set->c_cc, sizeof(old.c_cc));
	return copy_out(arg, &old, sizeof(old));
}

/* t->lock held. */
static void
tty_flush_input(struct tty *t)
{
	ldisc_flush(&t->ldisc);
	t->flushed |= TIOCPKT_FLUSHREAD;
}

/* set: the settings until now. */
static int64_t
tty_set(struct tty *t, unsigned request, struct termios set, uint64_t arg)
{
	int error = tty_may_change(t);

	if (error < 0)
		return error;
	if (request >= TCSETA ? tty_take_old(&set, arg) < 0 : copy_in(&set, arg, sizeof(set)) < 0)
		return -EFAULT;
	spin_lock(&t->lock);
	if (request == TCSETSF || request == TCSETAF)
		tty_flush_input(t);
	ldisc_set(&t->ldisc, &set);
	spin_unlock(&t->lock);
	wakeup(t); /* a reader waits by the old settings */
	poll_notify(&t->news, POLLIN | POLLOUT);
	tell_line(t);
	CTR2(KTR_BUF, "tty set: lflag %#o iflag %#o", set.c_lflag, set.c_iflag);
	return 0;
}

/* Tells the foreground of a new size. */
static int64_t
tty_set_size(struct tty *t, uint64_t arg)
{
	struct winsize size;
	uint32_t pgid = 0, sid;

	if (copy_in(&size, arg, sizeof(size)) < 0)
		return -EFAULT;
	spin_lock(&t->lock);
	if (memcmp(&size, &t->size, sizeof(size)) != 0)
		pgid = t->fg_pgid;
	t->size = size;
	sid = t->sid;
	spin_unlock(&t->lock);
	if (pgid != 0)
		proc_signal_group(sid, pgid, SIGWINCH);
	return 0;
}

/* tcflush(): output is at the other end already, which need not tell itself. */
static int64_t
tty_flush(struct tty *t, bool master, uint64_t queue)
{
	int error = tty_may_change(t);
	uint8_t before;

	if (error < 0)
		return error;
	if (queue > TCIOFLUSH)
		return -EINVAL;
	spin_lock(&t->lock);
	before = t->flushed;
	if (queue != TCOFLUSH)
		tty_flush_input(t);
	if (queue != TCIFLUSH)
		t->flushed |= TIOCPKT_FLUSHWRITE;
	if (master)
		t->flushed = before;
	spin_unlock(&t->lock);
	tell_line(t);
	return 0;
}

int64_t
tty_request(struct tty *t, bool master, unsigned request, uint64_t arg)
{
	struct termios set;
	struct winsize size;
	int32_t ready;

	spin_lock(&t->lock);
	set = t->ldisc.t;
	size = t->size;
	ready = request == FIONREAD ? (int32_t)ldisc_text(&t->ldisc) : 0;
	spin_unlock(&t->lock);
	switch (request) {
	case TCGETS:
		return copy_out(arg, &set, sizeof(set));
	case TCSETS:
	case TCSETSW: /* output is never kept back, so there is nothing to wait for */
	case TCSETSF:
	case TCSETA:
	case TCSETAW:
	case TCSETAF:
		return tty_set(t, request, set, arg);
	case TCGETA:
		return tty_give_old(&set, arg);
	case TCFLSH:
		return tty_flush(t, master, arg);
	case TCSBRK: /* tcdrain() */
		return arg != 0 ? tty_may_change(t) : 0;
	case FIONREAD:
		return copy_out(arg, &ready, sizeof(ready));
	case TIOCGWINSZ:
		return copy_out(arg, &size, sizeof(size));
	case TIOCSWINSZ:
		return tty_set_size(t, arg);
	default:
		return tty_job_request(t, master, request, arg);
	}
}

int64_t
tty_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct tty *t = f->priv;

	/* This needs the right to read: /dev/tty opens a session's terminal for reading, too. */
	if (request == TIOCSCTTY && (f->flags & O_ACCMODE) == O_WRONLY && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	return t->hung ? -EIO : tty_request(t, false, request, arg);
}
