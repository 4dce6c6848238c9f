/*
 * devfs.c - /dev: registered devices as vnodes; null, zero, full, random and urandom; links to a
 * process's own files.
 * Invariant: /dev is fixed, so its vnodes live for ever, and so do their struct dev.
 * Locking: the VFS's. The list of all devices only grows, at its head; it is read without a lock.
 */
#include "kernel/fs/devfs.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/random.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define DEV_PIECE 256 /* bytes moved at once */

#define ZERO_PIECE 65536u /* bytes moved before the next check for a signal */

struct dev {
	const char *name;
	const struct dev_ops *ops;
	void *arg;
	uint64_t number; /* as of st_rdev */
	struct dev *next;
};

/* The state of kernel/lib/random.c. */
static int random_bits = 256;
SYSCTL_INT(kernel_random_entropy_avail, "kernel.random.entropy_avail", 0, &random_bits, 0, 0,
	   "random bits in the state of /dev/random");
SYSCTL_INT(kernel_random_poolsize, "kernel.random.poolsize", 0, &random_bits, 0, 0,
	   "bits of the state of /dev/random");

static struct vnode *devfs_dir;
static struct dev *devices;  /* atomic */
static uint64_t devfs_count; /* atomic; minor numbers */

static int
devfs_open(struct file *f)
{
	const struct dev *d = f->vn->data;
	int error;

	f->priv = d->arg;
	error = d->ops->open != NULL ? d->ops->open(f) : 0;
	CTR3(KTR_DEV, "device open: name %s flags %#x error %d", d->name, f->flags, -error);
	return error;
}

static void
devfs_release(struct file *f)
{
	const struct dev *d = f->vn->data;

	CTR1(KTR_DEV, "device release: name %s", d->name);
	if (d->ops->release != NULL)
		d->ops->release(f);
}

static int64_t
dev_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	const struct dev *d = vn->data;

	return d->ops->read != NULL ? d->ops->read(f, u) : -EINVAL;
}

static int64_t
dev_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	const struct dev *d = vn->data;

	return d->ops->write != NULL ? d->ops->write(f, u) : -EINVAL;
}

static unsigned
dev_poll(struct file *f)
{
	const struct dev *d = f->vn->data;

	return d->ops->poll(f);
}

static int64_t
devfs_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	const struct dev *d = f->vn->data;

	CTR2(KTR_DEV, "device ioctl: name %s request %#x", d->name, request);
	return d->ops->ioctl != NULL ? d->ops->ioctl(f, request, arg) : -ENOTTY;
}

#define DEV_OPS                                                                             \
	.open = devfs_open, .release = devfs_release, .read = dev_read, .write = dev_write, \
	.ioctl = devfs_ioctl

static const struct vnode_ops *
dev_choose_ops(const struct dev *d)
{
	static const struct vnode_ops ops[2][2] = {
	    {{DEV_OPS}, {DEV_OPS, .poll = dev_poll}},
	    {{DEV_OPS, .nowait = true}, {DEV_OPS, .nowait = true, .poll = dev_poll}},
	};

	return &ops[d->ops->nowait][d->ops->poll != NULL];
}

size_t
dev_send(struct file *f, struct uio *u,
	 size_t (*send)(const struct file *f, const char *text, size_t n, int *error), int *error)
{
	char buf[DEV_PIECE];
	size_t done = 0;

	while (u->resid > 0 && *error == 0) {
		size_t n = u->resid < sizeof(buf) ? u->resid : sizeof(buf);

		*error = uio_take(u, buf, n);
		if (*error == 0)
			done += send(f, buf, n, error);
		if (*error == 0 && u->resid > 0 && proc_signal_pending())
			*error = -EINTR; /* on a fast line the writer never sleeps: check here */
	}
	return done;
}

int
devfs_register(const char *name, const struct dev_ops *ops, void *arg)
{
	struct dev *d = kzalloc(sizeof(*d));
	struct vnode *vn;
	int error;

	if (d == NULL)
		return -ENOMEM;
	*d = (struct dev){name, ops, arg, ops->device, NULL};
	if (d->number == 0)
		d->number = DEVICE(10, __atomic_add_fetch(&devfs_count, 1, __ATOMIC_RELAXED));
	vn = vnode_add(devfs_dir, name, S_IFCHR | (ops->mode & 0777), dev_choose_ops(d), d, &error);
	if (vn == NULL) {
		kfree(d);
		return error;
	}
	vn->root_only = ops->root_only;
	vn->any_off = ops->any_off;
	vn->rdev = d->number;
	d->next = __atomic_load_n(&devices, __ATOMIC_RELAXED);
	/* release: pairs with the acquire in devfs_make_node() */
	while (!__atomic_compare_exchange_n(&devices, &d->next, d, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	CTR1(KTR_DEV, "device register: name %s", name);
	vnode_unref(vn);
	return 0;
}

struct vnode *
devfs_mkdir(const char *name)
{
	int error;
	struct vnode *vn = vnode_add(devfs_dir, name, S_IFDIR | 0755, NULL, NULL, &error);

	if (vn != NULL)
		vn->fixed = true;
	return vn;
}

static int
no_device(struct file *f)
{
	return -ENXIO;
}

void
devfs_make_node(struct vnode *vn)
{
	static const struct vnode_ops none = {.open = no_device};
	struct dev *d = __atomic_load_n(&devices, __ATOMIC_ACQUIRE);

	while (d != NULL && (!S_ISCHR(vn->mode) || d->number != vn->rdev))
		d = d->next;
	vn->data = d;
	vn->ops = d != NULL ? dev_choose_ops(d) : &none;
	vn->root_only = d != NULL && d->ops->root_only;
	vn->any_off = d != NULL && d->ops->any_off;
}

static int64_t
null_read(struct file *f, struct uio *u)
{
	return 0;
}

static int64_t
null_write(struct file *f, struct uio *u)
{
	size_t n = u->resid;

	u->resid = 0;
	return (int64_t)n;
}

static int64_t
zero_read(struct file *f, struct uio *u)
{
	size_t start = u->resid;
	int error = 0;

	while (u->resid > 0 && error == 0) {
		error = uio_put_zero(u, ZERO_PIECE);
		if (error == 0 && u->resid > 0 && proc_signal_pending())
			error = -EINTR;
	}
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static int64_t
random_read(struct file *f, struct uio *u)
{
	size_t start = u->resid;
	char piece[256];
	int error = 0;

	while (u->resid > 0 && error == 0) {
		random_bytes(piece, sizeof(piece));
		error = uio_put(u, piece, u->resid < sizeof(piece) ? u->resid : sizeof(piece));
		if (error == 0 && u->resid > 0 && proc_signal_pending())
			error = -EINTR;
	}
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static unsigned
random_poll(struct file *f)
{
	return POLLIN;
}

static int64_t
random_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	return request == RNDGETENTCNT ? copy_out(arg, &random_bits, sizeof(random_bits)) : -EINVAL;
}

static int64_t
full_write(struct file *f, struct uio *u)
{
	return -ENOSPC;
}

static void
add_links(void)
{
	static const struct vnode_ops ops = {0}; /* the text is never freed */
	static const char *const links[][2] = {
	    {"fd", "/proc/self/fd"},
	    {"stdin", "/proc/self/fd/0"},
	    {"stdout", "/proc/self/fd/1"},
	    {"stderr", "/proc/self/fd/2"},
	};

	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		int error;
		struct vnode *vn = vnode_add(devfs_dir, links[i][0], S_IFLNK | 0777, &ops,
					     (void *)(uintptr_t)links[i][1], &error);

		if (vn == NULL)
			panic("devfs: no memory for /dev/%s", links[i][0]);
		vnode_unref(vn);
	}
}

void
devfs_init(struct vnode *dir)
{
	static const struct {
		const char *name;
		struct dev_ops ops;
	} first[] = {
	    {"null",
	     {.read = null_read,
	      .write = null_write,
	      .mode = 0666,
	      .device = DEVICE(1, 3),
	      .nowait = true,
	      .any_off = true}},
	    {"zero",
	     {.read = zero_read,
	      .write = null_write,
	      .mode = 0666,
	      .device = DEVICE(1, 5),
	      .nowait = true,
	      .any_off = true}},
	    {"full",
	     {.read = zero_read,
	      .write = full_write,
	      .mode = 0666,
	      .device = DEVICE(1, 7),
	      .any_off = true}},
	    {"random",
	     {.read = random_read,
	      .write = null_write,
	      .poll = random_poll,
	      .ioctl = random_ioctl,
	      .mode = 0666,
	      .device = DEVICE(1, 8),
	      .nowait = true,
	      .any_off = true}},
	    {"urandom",
	     {.read = random_read,
	      .write = null_write,
	      .ioctl = random_ioctl,
	      .mode = 0666,
	      .device = DEVICE(1, 9),
	      .nowait = true,
	      .any_off = true}},
	};

	devfs_dir = dir;
	for (unsigned i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (devfs_register(first[i].name, &first[i].ops, NULL) < 0)
			panic("devfs: no memory for /dev/%s", first[i].name);
	add_links();
}
