/* unix_send.c - AF_UNIX: sending bytes and datagrams. Locking: unix_private.h. */
#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/uio.h"
#include "kernel/net/unix_private.h"
#include "kernel/proc/proc.h"
#include "ktr/ktr.h"

#define PART_MAX 32768u /* the most bytes that one message of a stream has */

/* What a send adds to its first message: files, and who sends. */
struct extra {
	struct unix_rights *rights;
	struct ucred cred;
	bool has_cred;
};

static bool
is_own_user(const struct proc *p, uint32_t uid)
{
	return uid == p->ruid || uid == p->uid || uid == p->suid || capable(CAP_SETUID);
}

static bool
is_own_group(const struct proc *p, uint32_t gid)
{
	return gid == p->rgid || gid == p->gid || gid == p->sgid || capable(CAP_SETGID);
}

/* May the current process say that it is the process in these credentials? */
static int
check_cred(const struct ucred *cred)
{
	const struct proc *p = curproc();
	bool is_there;

	if (p == NULL)
		return 0;
	if ((cred->pid != p->pid && !capable(CAP_SYS_ADMIN)) || !is_own_user(p, cred->uid) ||
	    !is_own_group(p, cred->gid))
		return -EPERM;
	spin_lock(&proc_lock);
	is_there = proc_find(cred->pid) != NULL;
	spin_unlock(&proc_lock);
	return is_there ? 0 : -ESRCH;
}

static int
take_extra(const struct socket_message *m, struct extra *x)
{
	struct unix_control c;
	int error;

	*x = (struct extra){0};
	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (m->control_len == 0)
		return 0;
	error = unix_control_parse(m->control, m->control_len, &c);
	if (error == 0 && c.has_cred)
		error = check_cred(&c.cred);
	if (error != 0)
		return error;
	x->has_cred = c.has_cred;
	x->cred = c.cred;
	x->rights = unix_rights_take(&c, &error);
	return error;
}

/* The message gets what the send adds, which is gone from *x. */
static void
give_extra(struct unix_message *msg, struct extra *x)
{
	msg->rights = x->rights;
	x->rights = NULL;
	if (x->has_cred)
		msg->cred = x->cred;
}

/* May `us` put something into the queue of `to`? -EAGAIN: not now. to's lock held. */
static int
may_deliver(const struct unix_socket *us, const struct unix_socket *to)
{
	if (to->dead)
		return unix_connects(us) ? -EPIPE : -ECONNREFUSED;
	if (to->shut & UNIX_SHUT_READ)
		return -EPIPE;
	if (unix_connects(us))
		return 0;
	if (to->peer != NULL && to->peer != us)
		return -EPERM;
	return unix_queue_is_full(to, us) ? -EAGAIN : 0;
}

/* Puts the message into the queue of `to`, or leaves it to the caller. */
static int
try_deliver(const struct unix_socket *us, struct unix_socket *to, struct unix_message *msg)
{
	bool flies = msg->rights != NULL;
	size_t bytes = msg->left;
	int error;

	if (flies)
		mutex_lock(&unix_lock);
	mutex_lock(&to->so.lock);
	error = may_deliver(us, to);
	if (error == 0 && flies)
		error = unix_rights_fly(msg->rights);
	if (error == 0)
		unix_queue_append(to, msg);
	mutex_unlock(&to->so.lock);
	if (flies)
		mutex_unlock(&unix_lock);
	if (error == 0)
		poll_notify(&to->so.news, POLLIN);
	CTR4(KTR_NET, "unix send: socket %p to %p bytes %lu error %d", us, to, bytes, -error);
	return error;
}

/* Delivers as try_deliver(), but files that are in flight for nobody do not count. */
static int
unix_deliver(const struct unix_socket *us, struct unix_socket *to, struct unix_message *msg)
{
	int error = try_deliver(us, to, msg);

	if (error != -ETOOMANYREFS)
		return error;
	unix_collect();
	return try_deliver(us, to, msg);
}

/* ---- streams ---- */

/* Sends the next part of a stream. 0 or -errno. */
static int
send_part(struct unix_socket *us, struct unix_socket *to, struct socket_message *m, struct extra *x,
	  uint64_t deadline)
{
	size_t len = m->uio->resid < PART_MAX ? m->uio->resid : PART_MAX;
	struct unix_message *msg;
	int error;

	if (unix_shut(us) & UNIX_SHUT_WRITE)
		return -EPIPE;
	error = unix_wait_write(us, to, m->nowait, deadline);
	if (error != 0)
		return error;
	msg = unix_message_make(us, m->uio, len, &error);
	if (msg == NULL)
		return error;
	give_extra(msg, x);
	error = unix_deliver(us, to, msg);
	if (error != 0)
		unix_message_free(msg);
	return error;
}

/* The peer of a connection, which stays while its file is open. NULL: there is none. */
static struct unix_socket *
stream_peer(struct unix_socket *us)
{
	/* acquire: pairs with the release in unix_join() */
	return __atomic_load_n(&us->peer, __ATOMIC_ACQUIRE);
}

int64_t
unix_stream_send(struct socket *so, struct socket_message *m)
{
	struct unix_socket *us = unix_of(so), *to = stream_peer(us);
	uint64_t deadline = socket_deadline(so->sndtimeo);
	size_t start = m->uio->resid;
	struct extra x;
	int error = take_extra(m, &x);
	size_t sent = 0;

	if (error != 0)
		return error;
	if (m->name != NULL && m->name->len > 0)
		error = to != NULL ? -EISCONN : -EOPNOTSUPP;
	else if (to == NULL)
		error = unix_shut(us) & UNIX_SHUT_WRITE ? -EPIPE : -ENOTCONN;
	else if (start == 0 && (unix_shut(us) & UNIX_SHUT_WRITE))
		error = -EPIPE;
	while (error == 0 && sent < start) {
		size_t before = m->uio->resid;

		/* With a fast reader there is always room: a killed writer stops here. */
		if (sent > 0 && proc_signal_pending())
			break;
		error = send_part(us, to, m, &x, deadline);
		if (error == 0)
			sent += before - m->uio->resid;
	}
	unix_rights_free(x.rights);
	return sent > 0 ? (int64_t)sent : error;
}

/* ---- datagrams, and SOCK_SEQPACKET ---- */

/* Where a datagram goes, with a reference. */
static struct unix_socket *
unix_find_receiver(struct unix_socket *us, const struct socket_message *m, int *err)
{
	struct unix_socket *to;

	*err = 0;
	if (m->name != NULL && m->name->len > 0 && !unix_connects(us)) {
		mutex_lock(&unix_lock);
		to = unix_find(m->name, us->so.type, err);
		mutex_unlock(&unix_lock);
		return to;
	}
	mutex_lock(&us->so.lock);
	to = us->peer != NULL ? unix_ref(us->peer) : NULL;
	mutex_unlock(&us->so.lock);
	if (to == NULL)
		*err = -ENOTCONN;
	return to;
}

/* The peer of a datagram socket was closed: the socket has no peer any more. */
static void
unix_forget_peer(struct unix_socket *us, struct unix_socket *peer)
{
	mutex_lock(&unix_lock);
	if (us->peer == peer)
		unix_change_peer(us, NULL);
	mutex_unlock(&unix_lock);
}

/* Delivers a datagram, and waits for room. Whatever happens, the message is not the caller's. */
static int
deliver_datagram(struct unix_socket *us, struct unix_socket *to, struct unix_message *msg,
		 bool nowait, uint64_t deadline)
{
	int error, waited = 0;

	while ((error = unix_deliver(us, to, msg)) == -EAGAIN && waited == 0)
		waited = unix_wait_queue(to, nowait, deadline);
	if (error == -EAGAIN)
		error = waited;
	if (error != 0)
		unix_message_free(msg);
	if (error == -ECONNREFUSED)
		unix_forget_peer(us, to);
	return error;
}

static int
send_datagram(struct unix_socket *us, struct unix_socket *to, struct socket_message *m,
	      struct extra *x)
{
	uint64_t deadline = socket_deadline(us->so.sndtimeo);
	struct unix_message *msg;
	int error;

	if (unix_shut(us) & UNIX_SHUT_WRITE)
		return -EPIPE;
	if (m->uio->resid + 32 > __atomic_load_n(&us->so.sndbuf, __ATOMIC_RELAXED))
		return -EMSGSIZE;
	error = unix_wait_write(us, to, m->nowait, deadline);
	if (error != 0)
		return error;
	msg = unix_message_make(us, m->uio, m->uio->resid, &error);
	if (msg == NULL)
		return error;
	give_extra(msg, x);
	return deliver_datagram(us, to, msg, m->nowait, deadline);
}

int64_t
unix_datagram_send(struct socket *so, struct socket_message *m)
{
	struct unix_socket *us = unix_of(so), *to;
	size_t len = m->uio->resid;
	struct extra x;
	int error = take_extra(m, &x);

	if (error == 0)
		error = unix_autobind(us);
	to = error == 0 ? unix_find_receiver(us, m, &error) : NULL;
	if (to != NULL)
		error = send_datagram(us, to, m, &x);
	unix_unref(to);
	unix_rights_free(x.rights);
	return error == 0 ? (int64_t)len : error;
}
