/*
 * message_syscalls.c - system calls that move data through sockets: sendto, recvmsg and their like.
 * Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/name.h"
#include "kernel/net/socket.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define CONTROL_MAX 20480 /* bytes, as Linux's net.core.optmem_max */
#define CONTROL_FEW 64    /* bytes that need no heap */

/* ---- names ---- */

int
socket_name_take(struct socket_name *name, uint64_t uname, uint64_t len)
{
	if ((uint32_t)len > SOCKADDR_MAX)
		return -EINVAL;
	name->len = (uint32_t)len;
	return copy_in(name->data, uname, name->len);
}

int
socket_name_give(const struct socket_name *name, uint64_t uname, uint64_t ulen)
{
	int32_t room;

	if (copy_in(&room, ulen, sizeof(room)) != 0)
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	if ((uint32_t)room > name->len)
		room = (int32_t)name->len;
	if (room > 0 && copy_out(uname, name->data, (uint32_t)room) != 0)
		return -EFAULT;
	return copy_out(ulen, &name->len, sizeof(name->len));
}

/* ---- control messages for the receiver ---- */

size_t
socket_control_room(const struct socket_message *m)
{
	return m->control_len > sizeof(struct cmsghdr) ? m->control_len - sizeof(struct cmsghdr)
						       : 0;
}

bool
socket_put_control(struct socket_message *m, int level, int type, const void *data, size_t len)
{
	struct cmsghdr h = {sizeof(h) + len, level, type};
	size_t step;

	if (h.cmsg_len > m->control_len) {
		m->told_flags |= MSG_CTRUNC;
		h.cmsg_len = m->control_len;
	}
	if (h.cmsg_len < sizeof(h) || copy_out(m->ucontrol, &h, sizeof(h)) != 0 ||
	    copy_out(m->ucontrol + sizeof(h), data, h.cmsg_len - sizeof(h)) != 0)
		return false;
	step = CMSG_ALIGN(h.cmsg_len);
	step = step < m->control_len ? step : m->control_len;
	m->ucontrol += step;
	m->control_len -= step;
	return true;
}

/* A message of these bytes, through the file f. name: where its address is, or NULL. */
static struct socket_message
message_of(struct uio *u, struct socket_name *name, unsigned flags, const struct file *f)
{
	return (struct socket_message){.uio = u,
				       .name = name,
				       .flags = flags,
				       .nowait = (flags & MSG_DONTWAIT) || (f->flags & O_NONBLOCK)};
}

/* ---- one piece ---- */

SOCKET_CALL(sendto)
{
	struct socket_name name;
	struct socket_message m;
	struct uio_vec v;
	struct uio u;
	int error;

	uio_init(&u, &v, UIO_USER, (const void *)a[1], a[2] < UIO_MAX ? a[2] : UIO_MAX);
	m = message_of(&u, NULL, (unsigned)a[3], f);
	if (a[4] != 0) {
		error = socket_name_take(&name, a[4], a[5]);
		if (error != 0)
			return error;
		m.name = &name;
	}
	return socket_send(so, &m);
}

SOCKET_CALL(recvfrom)
{
	struct socket_name name;
	struct socket_message m;
	struct uio_vec v;
	struct uio u;
	int error;
	int64_t n;

	name.len = 0;
	uio_init(&u, &v, UIO_USER, (const void *)a[1], a[2] < UIO_MAX ? a[2] : UIO_MAX);
	m = message_of(&u, a[4] != 0 ? &name : NULL, (unsigned)a[3], f);
	n = socket_receive(so, &m);
	if (n >= 0 && a[4] != 0) {
		error = socket_name_give(&name, a[4], a[5]);
		if (error != 0)
			return error;
	}
	return n;
}

/* ---- struct msghdr ---- */

/* A message of a program's struct msghdr, and what it is made of. */
struct user_message {
	struct socket_message m;
	struct socket_name name;
	struct uio u;
	struct uio_vec few[UIO_FEW];
	struct msghdr h;
	struct uidinfo *ui;
	char *control; /* NULL: few_control, or none */
	char few_control[CONTROL_FEW];
};

/* Copies the header, and describes the pieces. */
static int
message_take_header(struct user_message *um, uint64_t umsg, unsigned flags, const struct file *f)
{
	int error;

	if (copy_in(&um->h, umsg, sizeof(um->h)) != 0)
		return -EFAULT;
	if (um->h.msg_name == 0)
		um->h.msg_namelen = 0;
	if (um->h.msg_namelen < 0)
		return -EINVAL;
	if (um->h.msg_namelen > SOCKADDR_MAX)
		um->h.msg_namelen = SOCKADDR_MAX;
	if (um->h.msg_iovlen > UIO_PIECES)
		return -EMSGSIZE;
	error = uio_import(&um->u, um->few, um->h.msg_iov, um->h.msg_iovlen);
	if (error != 0)
		return error;
	um->name.len = 0;
	um->control = NULL;
	um->m = message_of(&um->u, um->h.msg_name != 0 ? &um->name : NULL, flags, f);
	return 0;
}

static int
message_take_control(struct user_message *um)
{
	size_t len = um->h.msg_controllen;
	char *to = um->few_control;

	if (len > INT32_MAX || len > CONTROL_MAX)
		return -ENOBUFS;
	if (len > CONTROL_FEW) {
		um->ui = proc_uidinfo();
		to = um->control = uidinfo_alloc(um->ui, len);
		if (to == NULL)
			return -ENOMEM;
	}
	um->m.control = to;
	um->m.control_len = len;
	return copy_in(to, um->h.msg_control, len);
}

static void
message_done(struct user_message *um)
{
	uio_release(&um->u, um->few);
	if (um->control != NULL)
		uidinfo_free(um->ui, um->control);
}

static int64_t
send_message(struct socket *so, const struct file *f, uint64_t umsg, unsigned flags)
{
	struct user_message um;
	int64_t n = message_take_header(&um, umsg, flags & ~(unsigned)MSG_CMSG_CLOEXEC, f);

	if (n != 0)
		return n;
	if (um.h.msg_namelen > 0)
		n = socket_name_take(&um.name, um.h.msg_name, (uint32_t)um.h.msg_namelen);
	if (n == 0 && um.h.msg_controllen > 0)
		n = message_take_control(&um);
	if (n == 0)
		n = socket_send(so, &um.m);
	message_done(&um);
	return n;
}

/* Stores what recvmsg() tells of a message. */
static int
message_give_header(const struct user_message *um, uint64_t umsg)
{
	uint32_t flags = um->m.told_flags | (um->m.flags & MSG_CMSG_CLOEXEC);
	uint64_t used = um->h.msg_controllen - um->m.control_len;
	uint64_t ulen = umsg + offsetof(struct msghdr, msg_namelen);

	if (um->m.name != NULL && socket_name_give(&um->name, um->h.msg_name, ulen) != 0)
		return -EFAULT;
	if (copy_out(umsg + offsetof(struct msghdr, msg_flags), &flags, sizeof(flags)) != 0 ||
	    copy_out(umsg + offsetof(struct msghdr, msg_controllen), &used, sizeof(used)) != 0)
		return -EFAULT;
	return 0;
}

static int64_t
receive_message(struct socket *so, const struct file *f, uint64_t umsg, unsigned flags)
{
	struct user_message um;
	int64_t n = message_take_header(&um, umsg, flags, f);

	if (n != 0)
		return n;
	um.m.ucontrol = um.h.msg_control;
	um.m.control_len = um.h.msg_controllen;
	n = socket_receive(so, &um.m);
	if (n >= 0 && message_give_header(&um, umsg) != 0)
		n = -EFAULT;
	message_done(&um);
	return n;
}

SOCKET_CALL(sendmsg)
{
	return send_message(so, f, a[1], (unsigned)a[2]);
}

SOCKET_CALL(recvmsg)
{
	return receive_message(so, f, a[1], (unsigned)a[2]);
}

/* ---- several messages ---- */

/* Stores how long the i-th message was. */
static int
give_length(uint64_t umsgs, unsigned i, int64_t n)
{
	uint32_t len = (uint32_t)n;

	return copy_out(umsgs + i * sizeof(struct mmsghdr) + offsetof(struct mmsghdr, msg_len),
			&len, sizeof(len));
}

SOCKET_CALL(sendmmsg)
{
	unsigned count = (unsigned)a[2] < UIO_PIECES ? (unsigned)a[2] : UIO_PIECES, i;
	int64_t n = 0;

	for (i = 0; i < count; i++) {
		n = send_message(so, f, a[1] + i * sizeof(struct mmsghdr), (unsigned)a[3]);
		if (n >= 0)
			n = give_length(a[1], i, n);
		if (n < 0)
			break;
	}
	return i > 0 ? (int64_t)i : n;
}

/* Receives up to count messages. */
static int64_t
receive_messages(struct socket *so, const struct file *f, const uint64_t a[6], uint64_t deadline)
{
	unsigned count = (unsigned)a[2] < UIO_PIECES ? (unsigned)a[2] : UIO_PIECES, i;
	unsigned flags = (unsigned)a[3] & ~(unsigned)MSG_WAITFORONE;
	int64_t n = 0;

	for (i = 0; i < count; i++) {
		n = receive_message(so, f, a[1] + i * sizeof(struct mmsghdr), flags);
		if (n >= 0)
			n = give_length(a[1], i, n);
		if (n < 0)
			break;
		if (a[3] & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (deadline != DEADLINE_NEVER && clock_ns() >= deadline) {
			i++;
			break;
		}
	}
	if (i > 0 && n < 0 && n != -EAGAIN && n != -EINTR)
		socket_set_error(so, (int)n); /* the next call tells it */
	return i > 0 ? (int64_t)i : n;
}

SOCKET_CALL(recvmmsg)
{
	uint64_t deadline, now;
	struct timespec rest;
	int error;
	int64_t n;

	error = poll_take_deadline(a[4], &deadline);
	if (error == 0)
		error = socket_take_error(so);
	if (error != 0)
		return error;
	n = receive_messages(so, f, a, deadline);
	if (n <= 0 || a[4] == 0 || deadline == DEADLINE_NEVER)
		return n;
	now = clock_ns();
	now = now < deadline ? deadline - now : 0;
	rest = (struct timespec){(int64_t)(now / 1000000000), (int64_t)(now % 1000000000)};
	return copy_out(a[4], &rest, sizeof(rest)) == 0 ? n : -EFAULT;
}
