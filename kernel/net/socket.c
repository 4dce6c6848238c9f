/*
 * socket.c - sockets as files, their families, and their references. Locking: socket.h.
 */
#include "kernel/net/socket.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/fasync.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

#define BUFFER_DEFAULT 212992 /* as Linux's net.core.wmem_default and rmem_default */
#define TYPE_MAX       10

/* All families, and a NULL; the last family may be missing. */
static const struct socket_family *const families[] = {
    &unix_family,
    &inet_family,
    NULL,
};

static const struct socket_family *
family_find(unsigned domain)
{
	const struct socket_family *const *f = families;

	while (*f != NULL && (*f)->domain != domain)
		f++;
	return *f;
}

static struct socket *
socket_make(const struct socket_family *family, unsigned type, unsigned protocol,
	    struct uidinfo *ui, int *err)
{
	struct socket *so = uidinfo_alloc(ui, family->size);

	*err = -ENOMEM;
	if (so == NULL)
		return NULL;
	so->refs = 1;
	so->family = family;
	so->type = (uint16_t)type;
	so->protocol = (uint16_t)protocol;
	so->ui = ui;
	so->sndbuf = so->rcvbuf = BUFFER_DEFAULT;
	so->rcvlowat = 1;
	mutex_init(&so->lock, "socket");
	*err = family->create(so);
	if (*err == 0)
		return so;
	uidinfo_free(ui, so);
	return NULL;
}

struct socket *
socket_create(unsigned domain, unsigned type, unsigned protocol, int *err)
{
	const struct socket_family *family = family_find(domain);

	*err = domain < AF_MAX && type > TYPE_MAX ? -EINVAL : -EAFNOSUPPORT;
	if (family == NULL || *err == -EINVAL)
		return NULL;
	*err = -EPROTONOSUPPORT;
	if (protocol > UINT16_MAX)
		return NULL;
	return socket_make(family, type, protocol, proc_uidinfo(), err);
}

struct socket *
socket_create_like(struct socket *so, int *err)
{
	struct socket *new = socket_make(so->family, so->type, so->protocol, so->ui, err);

	if (new == NULL)
		return NULL;
	new->options = __atomic_load_n(&so->options, __ATOMIC_RELAXED);
	new->sndbuf = __atomic_load_n(&so->sndbuf, __ATOMIC_RELAXED);
	new->rcvbuf = __atomic_load_n(&so->rcvbuf, __ATOMIC_RELAXED);
	new->sndtimeo = __atomic_load_n(&so->sndtimeo, __ATOMIC_RELAXED);
	new->rcvtimeo = __atomic_load_n(&so->rcvtimeo, __ATOMIC_RELAXED);
	new->priority = so->priority;
	mutex_lock(&so->lock);
	new->linger = so->linger;
	mutex_unlock(&so->lock);
	return new;
}

struct socket *
socket_ref(struct socket *so)
{
	__atomic_fetch_add(&so->refs, 1, __ATOMIC_RELAXED);
	return so;
}

void
socket_unref(struct socket *so)
{
	/* release and acquire: all users' accesses come before the socket is freed */
	if (so == NULL || __atomic_sub_fetch(&so->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	CTR1(KTR_NET, "socket free: socket %p", so);
	so->ops->destroy(so);
	uidinfo_free(so->ui, so);
}

/* ---- operations ---- */

int
socket_take_error(struct socket *so)
{
	if (__atomic_load_n(&so->error, __ATOMIC_RELAXED) == 0)
		return 0;
	return -__atomic_exchange_n(&so->error, 0, __ATOMIC_RELAXED);
}

void
socket_set_error(struct socket *so, int error)
{
	__atomic_store_n(&so->error, error < 0 ? -error : error, __ATOMIC_RELAXED);
}

/* Signals end a call for good if its socket has a timeout. Returns r. */
static inline int64_t
end_call(int64_t r, const uint64_t *timeout)
{
	if (r == -EINTR && __atomic_load_n(timeout, __ATOMIC_RELAXED) != 0)
		proc_call_final(DEADLINE_NEVER);
	return r;
}

int64_t
socket_send(struct socket *so, struct socket_message *m)
{
	int64_t n = so->ops->send(so, m);

	if (n == -EPIPE && so->type == SOCK_STREAM && !(m->flags & MSG_NOSIGNAL))
		proc_signal_self(SIGPIPE);
	return end_call(n, &so->sndtimeo);
}

int64_t
socket_receive(struct socket *so, struct socket_message *m)
{
	return end_call(so->ops->receive(so, m), &so->rcvtimeo);
}

int
socket_connect(struct socket *so, const struct socket_name *name, bool nowait)
{
	if (so->ops->connect == NULL)
		return -EOPNOTSUPP;
	return (int)end_call(so->ops->connect(so, name, nowait), &so->sndtimeo);
}

struct socket *
socket_accept(struct socket *so, bool nowait, int *err)
{
	struct socket *new;

	*err = -EOPNOTSUPP;
	if (so->ops->accept == NULL)
		return NULL;
	new = so->ops->accept(so, nowait, err);
	if (new == NULL)
		end_call(*err, &so->rcvtimeo);
	return new;
}

/* ---- the file ---- */

static int64_t
socket_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct socket *so = vn->data;
	struct socket_message m = {.uio = u, .nowait = u->nowait || (f->flags & O_NONBLOCK)};

	return u->resid > 0 ? socket_receive(so, &m) : 0;
}

static int64_t
socket_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct socket_message m = {.uio = u, .nowait = u->nowait || (f->flags & O_NONBLOCK)};

	return socket_send(vn->data, &m);
}

static unsigned
socket_poll(struct file *f)
{
	struct socket *so = f->vn->data;

	return so->ops->poll(so);
}

static int64_t
socket_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct socket *so = f->vn->data;
	int32_t n = 0; /* nothing is ever sent out of band */
	int64_t r;

	switch (request) {
	case FIOSETOWN:
	case SIOCSPGRP:
		return copy_in(&n, arg, sizeof(n)) != 0 ? -EFAULT
							: fasync_fcntl(f, F_SETOWN, (uint32_t)n);
	case FIOGETOWN:
	case SIOCGPGRP:
		n = (int32_t)fasync_fcntl(f, F_GETOWN, 0);
		return copy_out(arg, &n, sizeof(n));
	case SIOCATMARK:
		if (so->type == SOCK_STREAM)
			return copy_out(arg, &n, sizeof(n));
	}
	r = so->ops->ioctl != NULL ? so->ops->ioctl(so, request, arg) : -ENOTTY;

	/* Programs ask about interfaces on whatever socket they have. */
	return r == -ENOTTY && inet_interface_ioctl != NULL ? inet_interface_ioctl(request, arg)
							    : r;
}

static void
socket_release(struct file *f)
{
	struct socket *so = f->vn->data;

	if (so == NULL)
		return;
	so->ops->release(so);
	socket_unref(so);
}

const struct vnode_ops socket_file_ops = {
    .release = socket_release,
    .read = socket_read,
    .write = socket_write,
    .nowait = true,
    .poll = socket_poll,
    .ioctl = socket_ioctl,
};

struct file *
socket_file_alloc(int flags, int *err)
{
	struct vnode *vn = vnode_alloc(S_IFSOCK | 0777, &socket_file_ops, NULL);
	struct file *f;

	*err = -ENOMEM;
	if (vn == NULL)
		return NULL;
	*err = file_open_vnode(vn, O_RDWR | (flags & O_NONBLOCK), &f);
	if (*err == 0)
		return f;
	vnode_unref(vn);
	return NULL;
}

void
socket_file_attach(struct file *f, struct socket *so)
{
	f->vn->data = f->priv = so;
	f->news = &so->news;
	__atomic_store_n(&so->ino, f->vn->ino, __ATOMIC_RELAXED);
	CTR5(KTR_NET, "socket: socket %p ino %lu domain %u type %u protocol %u", so, f->vn->ino,
	     so->family->domain, so->type, so->protocol);
}

struct socket *
socket_of(const struct file *f)
{
	return f->vn->ops == &socket_file_ops && !(f->flags & O_PATH) ? f->vn->data : NULL;
}

struct socket *
socket_get(uint64_t fd, struct file **f, int *err)
{
	struct socket *so;

	*f = filetable_get(proc_files(), (uint32_t)fd);
	so = *f != NULL ? socket_of(*f) : NULL;
	*err = *f == NULL ? -EBADF : so == NULL ? -ENOTSOCK : 0;
	return so;
}
