/*
 * socket_syscalls.c - system calls on sockets, but for those that move data. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/name.h"
#include "kernel/net/socket.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

/* Has a type other flags than these two? */
static bool
bad_flags(int flags)
{
	return flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Makes a new socket with its file. NULL: *err. */
static struct file *
open_socket(const uint64_t a[6], int *err)
{
	int type = (int)a[1];
	struct socket *so;
	struct file *f;

	*err = -EINVAL;
	if (bad_flags(type & ~SOCK_TYPE_MASK))
		return NULL;
	f = socket_file_alloc(type, err);
	if (f == NULL)
		return NULL;
	so = socket_create((uint32_t)a[0], (unsigned)type & SOCK_TYPE_MASK, (uint32_t)a[2], err);
	if (so != NULL) {
		socket_file_attach(f, so);
		return f;
	}
	file_unref(f);
	return NULL;
}

int64_t
sys_socket(const uint64_t a[6])
{
	int error;
	struct file *f = open_socket(a, &error);

	return f != NULL ? filetable_install(f, (int)a[1]) : error;
}

int64_t
sys_socketpair(const uint64_t a[6])
{
	struct file *f[2];
	struct socket *so;
	int fd[2], error;

	f[0] = open_socket(a, &error);
	if (f[0] == NULL)
		return error;
	f[1] = open_socket(a, &error);
	if (f[1] != NULL) {
		so = socket_of(f[0]);
		error = so->ops->pair != NULL ? so->ops->pair(so, socket_of(f[1])) : -EOPNOTSUPP;
	}
	if (error == 0)
		return filetable_give_pair(f, fd, a[3], (int)a[1]);
	file_unref(f[0]);
	file_unref(f[1]);
	return error;
}

SOCKET_CALL(bind)
{
	struct socket_name name;
	int error = socket_name_take(&name, a[1], a[2]);

	if (error == 0)
		error = so->ops->bind != NULL ? so->ops->bind(so, &name) : -EOPNOTSUPP;
	CTR2(KTR_NET, "bind: socket %p error %d", so, -error);
	return error;
}

SOCKET_CALL(listen)
{
	unsigned backlog = (unsigned)a[1] < SOMAXCONN ? (unsigned)a[1] : SOMAXCONN;
	int error = so->ops->listen != NULL ? so->ops->listen(so, (int)backlog) : -EOPNOTSUPP;

	CTR3(KTR_NET, "listen: socket %p backlog %u error %d", so, backlog, -error);
	return error;
}

SOCKET_CALL(connect)
{
	struct socket_name name;
	int error = socket_name_take(&name, a[1], a[2]);

	if (error == 0)
		error = socket_connect(so, &name, f->flags & O_NONBLOCK);
	CTR2(KTR_NET, "connect: socket %p error %d", so, -error);
	return error;
}

/* Takes a connection into the file f, and gives its peer's name. 0 or -errno. */
static int
accept_into(struct file *f, struct socket *so, bool nowait, uint64_t uname, uint64_t ulen)
{
	struct socket_name name;
	int error;
	struct socket *new = socket_accept(so, nowait, &error);

	if (new == NULL)
		return error;
	socket_file_attach(f, new);
	CTR2(KTR_NET, "accept: socket %p by %p", new, so);
	if (uname == 0)
		return 0;
	error = new->ops->getname(new, &name, SOCKET_ACCEPTED);
	return error == 0 ? socket_name_give(&name, uname, ulen) : -ECONNABORTED;
}

/* Takes a descriptor and a file first, so that no connection is taken in vain. */
static int64_t
do_accept(const uint64_t a[6], int flags)
{
	struct file *f, *new;
	int error, fd;
	struct socket *so = socket_get(a[0], &f, &error);

	if (so == NULL || bad_flags(flags))
		return so == NULL ? error : -EINVAL;
	fd = filetable_reserve();
	if (fd < 0)
		return fd;
	new = socket_file_alloc(flags, &error);
	if (new != NULL)
		error = accept_into(new, so, f->flags & O_NONBLOCK, a[1], a[2]);
	if (error != 0) {
		file_unref(new);
		new = NULL;
	}
	filetable_fill((unsigned)fd, new, flags);
	return error == 0 ? fd : error;
}

SYSCALL_IS(accept, do_accept(a, 0))
SYSCALL_IS(accept4, do_accept(a, (int)a[3]))

static int64_t
give_name_of(const uint64_t a[6], enum socket_end end)
{
	struct socket_name name;
	struct file *f;
	int error;
	struct socket *so = socket_get(a[0], &f, &error);

	if (so == NULL)
		return error;
	error = so->ops->getname(so, &name, end);
	return error == 0 ? socket_name_give(&name, a[1], a[2]) : error;
}

SYSCALL_IS(getsockname, give_name_of(a, SOCKET_OWN))
SYSCALL_IS(getpeername, give_name_of(a, SOCKET_PEER))

SOCKET_CALL(shutdown)
{
	int how = (int)a[1], error;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	error = so->ops->shutdown != NULL ? so->ops->shutdown(so, how) : -EOPNOTSUPP;
	CTR3(KTR_NET, "shutdown: socket %p how %d error %d", so, how, -error);
	return error;
}

SOCKET_CALL(setsockopt)
{
	return socket_set_option(so, (int)a[1], (int)a[2], a[3], (uint32_t)a[4]);
}

SOCKET_CALL(getsockopt)
{
	return socket_get_option(so, (int)a[1], (int)a[2], a[3], a[4]);
}
