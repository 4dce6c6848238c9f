/*
 * pty.c - pseudo-terminals. Who opens /dev/ptmx gets a master; its slave, a terminal, is
 * /dev/pts/N. What is written to the master is the terminal's input. What programs write to the
 * terminal, and its echo, the master reads.
 *
 * Locking: the terminal's lock guards the ring, too. A master that waits sleeps on the pty, as
 * readers of its terminal do. A slave that waits for room sleeps on the ring.
 */
#include "kernel/dev/pty.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/statfs.h"
#include "kernel/dev/tty.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"

#define PTY_FIRST DEVICE(136, 0) /* as Linux: the first of eight majors */
#define PTYS_MAX  2048u          /* 256 of each major */
#define PTYS_KEPT 512u           /* of all, for CAP_SYS_ADMIN only */
#define RING_SIZE 65536u         /* a power of two */

struct pty {
	struct tty tty;
	struct uidinfo *ui;      /* the user who is charged */
	struct vnode *vn;        /* of the slave, a reference; the master's */
	bool locked;             /* nobody may open the slave */
	bool packet;             /* each read of the master begins with what has happened */
	uint64_t head, tail;     /* total bytes written, read; tail <= head <= tail + RING_SIZE */
	char *ring;              /* RING_SIZE bytes */
	struct poll_source news; /* of the master */
};

static struct vnode *pts_dir; /* constant after boot */

static struct pty *
pty_of(struct tty *t)
{
	return list_entry(t, struct pty, tty);
}

/* ---- the line of the slave ---- */

static void
tell_master(struct tty *t)
{
	struct pty *p = pty_of(t);

	wakeup(p);
	poll_notify(&p->news, POLLIN | POLLOUT);
}

static size_t
pty_ring_room(const struct pty *p)
{
	return RING_SIZE - (p->head - p->tail);
}

/* Puts as much as there is room for. Without the lock, the caller tells the master afterwards. */
static void
pty_put(struct tty *t, const char *text, size_t n)
{
	struct pty *p = pty_of(t);

	for (size_t i = 0; i < n && pty_ring_room(p) > 0; i++)
		p->ring[p->head++ % RING_SIZE] = text[i];
}

static bool
pty_has_room(const struct tty *t)
{
	return pty_ring_room(list_entry(t, const struct pty, tty)) > 1; /* a newline is two bytes */
}

static size_t
pty_send(struct tty *t, const struct file *f, const char *text, size_t n, int *error)
{
	struct pty *p = pty_of(t);
	char out[TTY_PIECE];
	size_t used = 0, told = 0;

	spin_lock(&t->lock);
	while (used < n && *error == 0) {
		size_t now = n - used, room = pty_ring_room(p);
		size_t made = ldisc_output(&t->ldisc.t, text + used, &now, out,
					   room < sizeof(out) ? room : sizeof(out));

		if (t->hung) {
			*error = -EIO;
		} else if (now > 0) {
			pty_put(t, out, made);
			used += now;
		} else if (f->flags & O_NONBLOCK) {
			*error = -EAGAIN;
		} else {
			if (told < used)
				tell_master(t);
			told = used;
			*error = sleep_on(&p->ring, &t->lock, "ttyout", SLEEP_INTR, DEADLINE_NEVER);
		}
	}
	spin_unlock(&t->lock);
	if (told < used)
		tell_master(t);
	return used;
}

static void
pty_free(struct tty *t)
{
	struct pty *p = pty_of(t);
	struct uidinfo *ui = p->ui;

	uidinfo_free(ui, p->ring);
	uidinfo_free(ui, p);
}

static const struct tty_line pty_line = {
    .echo = pty_put,
    .write = pty_send,
    .room = pty_has_room,
    .changed = tell_master,
    .free = pty_free,
};

/* ---- the slave ---- */

static int
pts_open(struct file *f)
{
	struct pty *p = f->vn->data;

	f->priv = &p->tty;
	return p->locked ? -EIO : tty_open(f);
}

static int64_t
pts_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	return tty_read(f, u);
}

static int64_t
pts_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	return tty_write(f, u);
}

static void
pts_destroy(struct vnode *vn)
{
	struct pty *p = vn->data;

	tty_unref(&p->tty);
}

static const struct vnode_ops pts_ops = {
    .open = pts_open,
    .release = tty_release,
    .read = pts_read,
    .write = pts_write,
    .poll = tty_poll,
    .ioctl = tty_ioctl,
    .destroy = pts_destroy,
};

/* ---- the master ---- */

/* Gives the slave its name. */
static int
pts_add(struct pty *p)
{
	unsigned number = (unsigned)(p->tty.device - PTY_FIRST);
	char name[16];
	int error;

	if (number >= PTYS_MAX - (capable(CAP_SYS_ADMIN) ? 0 : PTYS_KEPT))
		return -ENOSPC;
	snprintf(name, sizeof(name), "%u", number);
	p->vn = vnode_add(pts_dir, name, S_IFCHR | 0600, &pts_ops, p, &error);
	if (p->vn == NULL)
		return error;
	p->vn->rdev = p->tty.device;
	tty_ref(&p->tty);
	return 0;
}

static int
ptmx_open(struct file *f)
{
	struct uidinfo *ui = proc_uidinfo();
	struct pty *p = uidinfo_alloc(ui, sizeof(*p));
	int error;

	if (p == NULL)
		return -ENOMEM;
	p->ring = uidinfo_alloc(ui, RING_SIZE);
	if (p->ring == NULL) {
		uidinfo_free(ui, p);
		return -ENOMEM;
	}
	p->ui = ui;
	p->locked = true;
	tty_init(&p->tty, &pty_line);
	tty_join(&p->tty, PTY_FIRST);
	error = pts_add(p);
	if (error < 0)
		tty_unref(&p->tty);
	f->priv = p;
	f->news = &p->news;
	return error;
}

static void
ptmx_release(struct file *f)
{
	struct pty *p = f->priv;

	tty_hangup(&p->tty);
	wakeup(&p->ring);
	vnode_remove_name(p->vn);
	vnode_unref(p->vn);
	tty_unref(&p->tty);
}

/* Were all files of the slave closed? The terminal's lock held. */
static bool
is_left(const struct pty *p)
{
	return p->tty.opened && p->tty.opens == 0;
}

/* Has something happened that a master in packet mode is told? The terminal's lock held. */
static bool
pty_has_news(const struct pty *p)
{
	return p->packet && p->tty.flushed != 0;
}

/*
 * Takes at most n bytes, at least one. *packet becomes: are they a packet? NULL: these come after
 * others that were none. 0: no slave, or -errno.
 */
static int64_t
ptmx_take(struct pty *p, bool nowait, char *buf, size_t n, bool *packet)
{
	size_t got = 0;
	int error = 0;

	spin_lock(&p->tty.lock);
	while (p->head == p->tail && !(packet != NULL && pty_has_news(p)) && error == 0) {
		if (is_left(p))
			error = -EIO;
		else if (nowait || packet == NULL)
			error = -EAGAIN;
		else
			error = sleep_on(p, &p->tty.lock, "ptmxin", SLEEP_INTR, DEADLINE_NEVER);
	}
	if (packet != NULL)
		*packet = p->packet;
	if (packet != NULL && pty_has_news(p)) {
		buf[got++] = (char)p->tty.flushed;
		p->tty.flushed = 0;
		n = 1;
	} else if (packet != NULL && *packet && p->tail != p->head) { /* also after a signal */
		buf[got++] = 0;
	}
	while (got < n && p->tail != p->head)
		buf[got++] = p->ring[p->tail++ % RING_SIZE];
	spin_unlock(&p->tty.lock);
	if (got == 0)
		return error;
	wakeup(&p->ring);
	poll_notify(&p->tty.news, POLLOUT);
	return (int64_t)got;
}

static int64_t
ptmx_read(struct file *f, struct uio *u)
{
	size_t start = u->resid;
	bool packet = false;
	char buf[TTY_PIECE];
	int64_t n = 0;

	while (u->resid > 0 && !packet) {
		n = ptmx_take(f->priv, f->flags & O_NONBLOCK, buf,
			      u->resid < sizeof(buf) ? u->resid : sizeof(buf),
			      u->resid == start ? &packet : NULL);
		if (n > 0)
			n = uio_put(u, buf, (size_t)n);
		if (n < 0 || (u->resid > 0 && proc_signal_pending()))
			break;
	}
	return start != u->resid ? (int64_t)(start - u->resid) : n;
}

/* Types text. Returns how much of it; *error: why not all. */
static size_t
ptmx_type(const struct file *f, const char *text, size_t n, int *error)
{
	struct pty *p = f->priv;
	struct tty *t = &p->tty;

	for (size_t i = 0; i < n; i++) {
		struct tty_key k;
		uint64_t before;
		bool tell;

		spin_lock(&t->lock);
		while (!ldisc_room(&t->ldisc) && *error == 0)
			*error = f->flags & O_NONBLOCK
				     ? -EAGAIN
				     : sleep_on(p, &t->lock, "ptmxout", SLEEP_INTR, DEADLINE_NEVER);
		before = p->head;
		if (*error == 0)
			k = tty_take_key(t, text[i]);
		tell = p->head != before || pty_has_news(p);
		spin_unlock(&t->lock);
		if (*error != 0)
			return i;
		if (tell)
			tell_master(t);
		tty_tell_key(t, &k);
	}
	return n;
}

static int64_t
ptmx_write(struct file *f, struct uio *u)
{
	int error = 0;
	size_t done = dev_send(f, u, ptmx_type, &error);

	return done > 0 ? (int64_t)done : error;
}

static unsigned
ptmx_poll(struct file *f)
{
	struct pty *p = f->priv;
	unsigned found;

	spin_lock(&p->tty.lock);
	found = (p->head != p->tail ? POLLIN : 0) | (is_left(p) ? POLLHUP : 0) |
		(pty_has_news(p) ? POLLIN | POLLPRI : 0) |
		(ldisc_room(&p->tty.ldisc) ? POLLOUT : 0);
	spin_unlock(&p->tty.lock);
	return found;
}

static int64_t
open_peer(struct pty *p, int flags)
{
	struct file *f;
	int error;

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	error = file_open_vnode(vnode_ref(p->vn), flags, &f);
	if (error == 0)
		return filetable_install(f, flags & O_CLOEXEC);
	vnode_unref(p->vn);
	return error;
}

static int64_t
ptmx_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct pty *p = f->priv;
	int32_t value;

	switch (request) {
	case TIOCGPTN:
		value = (int32_t)(p->tty.device - PTY_FIRST);
		return copy_out(arg, &value, sizeof(value));
	case TIOCGPTLCK:
		value = p->locked;
		return copy_out(arg, &value, sizeof(value));
	case TIOCSPTLCK:
		if (copy_in(&value, arg, sizeof(value)) != 0)
			return -EFAULT;
		p->locked = value != 0;
		return 0;
	case TIOCGPKT:
		value = p->packet;
		return copy_out(arg, &value, sizeof(value));
	case TIOCPKT:
		if (copy_in(&value, arg, sizeof(value)) != 0)
			return -EFAULT;
		spin_lock(&p->tty.lock);
		if (value != 0 && !p->packet)
			p->tty.flushed = 0; /* that was before */
		p->packet = value != 0;
		spin_unlock(&p->tty.lock);
		return 0;
	case TIOCGPTPEER:
		return open_peer(p, (int)arg);
	case FIONREAD:
		spin_lock(&p->tty.lock);
		value = (int32_t)(p->head - p->tail);
		spin_unlock(&p->tty.lock);
		return copy_out(arg, &value, sizeof(value));
	default:
		return tty_request(&p->tty, true, request, arg);
	}
}

void
pty_init(void)
{
	static const struct vfs_type devpts = {.name = "devpts", .magic = DEVPTS_MAGIC};
	static const struct dev_ops ptmx = {
	    .open = ptmx_open,
	    .release = ptmx_release,
	    .read = ptmx_read,
	    .write = ptmx_write,
	    .poll = ptmx_poll,
	    .ioctl = ptmx_ioctl,
	    .mode = 0666,
	    .device = DEVICE(5, 2),
	};

	pts_dir = devfs_mkdir("pts");
	if (pts_dir == NULL || devfs_register("ptmx", &ptmx, NULL) < 0)
		panic("no memory for /dev/ptmx");
	vfs_mount_at_boot(pts_dir, &devpts);
}
