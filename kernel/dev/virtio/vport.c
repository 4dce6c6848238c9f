/*
 * vport.c - /dev/vport0pM: the bytes of a port of virtio-serial, unchanged, to the host and from
 * it.
 *
 * Who reads sleeps until bytes have come; the end of the file is when nobody is at the other end.
 * Who writes sleeps while the device has not sent what was written before, or nobody is at the
 * other end; a signal ends both. While the kernel itself sends (vport_take()), writers get -EBUSY.
 *
 * Locking: the port's lock, never while asleep. Whoever sleeps has read `events` before he looked,
 * so that he misses no change.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/dev/virtio/serial.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

static int
vport_open(struct file *f)
{
	struct vport *p = f->priv;

	if (!__atomic_load_n(&p->there, __ATOMIC_ACQUIRE))
		return -ENXIO;
	mutex_lock(&p->lock);
	vport_count_openers(p, 1);
	mutex_unlock(&p->lock);
	f->news = &p->news;
	return 0;
}

static void
vport_release(struct file *f)
{
	struct vport *p = f->priv;

	mutex_lock(&p->lock);
	vport_count_openers(p, -1);
	mutex_unlock(&p->lock);
}

struct vport_wait {
	const struct vport *p;
	unsigned seen; /* of p->events */
};

static bool
nothing_happened(void *arg)
{
	const struct vport_wait *w = arg;

	return __atomic_load_n(&w->p->events, __ATOMIC_SEQ_CST) == w->seen;
}

/* Sleeps until more has happened to the port than the caller has seen. 0 or -EINTR. */
static int
wait_for_port(struct vport *p, unsigned seen, const char *wmesg)
{
	struct vport_wait w = {p, seen};
	const struct sleep_request r = {.chan = p,
					.still = nothing_happened,
					.arg = &w,
					.wmesg = wmesg,
					.flags = SLEEP_INTR,
					.deadline_ns = DEADLINE_NEVER};

	return sleepq_wait(&r);
}

/* Sends bytes of the kernel's buffer. Returns how many the device has taken; if these are not
 * all, *error says why. */
static size_t
send_some(const struct file *f, const char *buf, size_t n, int *error)
{
	struct vport *p = f->priv;
	size_t done = 0;

	while (done < n && *error == 0) {
		unsigned seen = __atomic_load_n(&p->events, __ATOMIC_SEQ_CST);
		bool again = false;
		int64_t some;

		mutex_lock(&p->lock);
		some = p->taken > 0 ? -EBUSY : vport_send(p, buf + done, n - done);
		if (some == 0 && p->tx_batch > 0) { /* they are copied, and on their way */
			some = (int64_t)p->tx_batch;
			p->tx_batch = 0;
		} else if (some == 0) {
			again = vport_await_room(p);
		}
		mutex_unlock(&p->lock);
		if (some < 0)
			*error = (int)some;
		else if (some == 0 && !again && (f->flags & O_NONBLOCK))
			*error = -EAGAIN;
		else if (some == 0 && !again)
			*error = wait_for_port(p, seen, "vportout");
		done += some > 0 ? (size_t)some : 0;
	}
	return done;
}

static int64_t
vport_write(struct file *f, struct uio *u)
{
	int error = 0;
	size_t done = dev_send(f, u, send_some, &error);

	CTR2(KTR_DEV, "vport write: bytes %lu error %d", done, -error);
	return done > 0 ? (int64_t)done : error;
}

/* Takes bytes that have come, n at most. 0: nobody is at the other end; or -errno. */
static int64_t
take_some(struct vport *p, bool nowait, char *buf, size_t n)
{
	int64_t there;

	for (;;) {
		unsigned seen = __atomic_load_n(&p->events, __ATOMIC_SEQ_CST);
		bool open = vport_is_open(p);
		const char *bytes;

		mutex_lock(&p->lock);
		there = vport_peek(p, &bytes);
		if (there > 0) {
			there = there < (int64_t)n ? there : (int64_t)n;
			memcpy(buf, bytes, (size_t)there);
			vport_received(p, (size_t)there);
		}
		mutex_unlock(&p->lock);
		if (there != 0 || !open)
			return there;
		if (nowait)
			return -EAGAIN;
		there = wait_for_port(p, seen, "vportin");
		if (there < 0)
			return there;
	}
}

static int64_t
vport_read(struct file *f, struct uio *u)
{
	size_t start = u->resid;
	char buf[512];
	int64_t n = 0;

	while (u->resid > 0) {
		n = take_some(f->priv, (f->flags & O_NONBLOCK) || u->resid < start, buf,
			      u->resid < sizeof(buf) ? u->resid : sizeof(buf));
		if (n <= 0)
			break;
		n = uio_put(u, buf, (size_t)n);
		if (n < 0 || proc_signal_pending())
			break;
	}
	CTR2(KTR_DEV, "vport read: bytes %lu error %d", start - u->resid, n < 0 ? (int)-n : 0);
	return start != u->resid ? (int64_t)(start - u->resid) : n;
}

static unsigned
vport_poll(struct file *f)
{
	struct vport *p = f->priv;
	const char *bytes;
	unsigned found;
	int64_t there;

	mutex_lock(&p->lock);
	there = vport_peek(p, &bytes);
	found =
	    (there > 0 ? POLLIN : 0) | (there < 0 ? POLLERR : 0) | (vport_is_open(p) ? 0 : POLLHUP);
	if (p->taken == 0 && vport_await_room(p))
		found |= POLLOUT;
	mutex_unlock(&p->lock);
	return found;
}

void
vport_make_files(unsigned ports)
{
	static const struct dev_ops ops = {
	    .open = vport_open,
	    .release = vport_release,
	    .read = vport_read,
	    .write = vport_write,
	    .poll = vport_poll,
	    .mode = 0600,
	    .root_only = true,
	};

	for (unsigned i = 0; i < ports; i++) {
		struct vport *p = vport_get(i);
		int error = devfs_register(p->file, &ops, p);

		if (error < 0)
			pr_warn("virtio-serial: /dev/%s: error %d\n", p->file, -error);
	}
}
