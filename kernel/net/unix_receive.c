/*
 * unix_receive.c - AF_UNIX: receiving bytes and datagrams.
 *
 * Who takes a message with files holds unix_lock until they are no longer in flight
 * (unix_rights.c). Locking: unix_private.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/uio.h"
#include "kernel/net/unix_private.h"
#include "ktr/ktr.h"

/* What a receive has found, to be told when no lock is held. */
struct found {
	bool any;
	struct ucred cred;          /* of the first message's sender */
	struct unix_socket *from;   /* the sender, with a reference; NULL: nobody asked for it */
	struct unix_rights *rights; /* NULL: none */
	struct unix_queue read;     /* messages to be freed */
	bool has_room;              /* the queue was full before */
};

/*
 * Takes the locks that the first message needs: *all says whether unix_lock is one of them. Returns
 * the message, or NULL. All locks stay taken.
 */
static struct unix_message *
lock_first(struct unix_socket *us, bool *all)
{
	*all = false;
	mutex_lock(&us->so.lock);
	if (us->queue.head == NULL || us->queue.head->rights == NULL)
		return us->queue.head;
	mutex_unlock(&us->so.lock);
	*all = true;
	mutex_lock(&unix_lock);
	mutex_lock(&us->so.lock);
	return us->queue.head;
}

static void
unlock_all(struct unix_socket *us, bool all)
{
	mutex_unlock(&us->so.lock);
	if (all)
		mutex_unlock(&unix_lock);
}

/* Says why nothing can be read now. 0: it is the end; 1: more may come; or -errno. so.lock held. */
static int
why_empty(struct unix_socket *us, bool nowait)
{
	int error = socket_take_error(&us->so);

	if (error != 0 || us->dead)
		return error;
	if ((us->shut & UNIX_SHUT_READ) && !(nowait && !unix_connects(us)))
		return 0;
	return nowait ? -EAGAIN : 1;
}

/*
 * As lock_first(), after a message has come. NULL: *err says why there is none: 0 at the end, or
 * -errno. All locks stay taken.
 */
static struct unix_message *
await_first(struct unix_socket *us, bool nowait, uint64_t deadline, bool *all, int *err)
{
	struct unix_message *msg;

	while ((msg = lock_first(us, all)) == NULL) {
		*err = why_empty(us, nowait);
		if (*err != 1)
			break;
		if (!*all) {
			*err =
			    cond_wait(&us->readable, &us->so.lock, "unixrd", SLEEP_INTR, deadline);
			msg = us->queue.head;
			if ((msg != NULL && msg->rights == NULL) || (msg == NULL && *err < 0))
				break;
		}
		unlock_all(us, *all);
	}
	if (*err == -ETIMEDOUT)
		*err = -EAGAIN;
	return msg;
}

/* Takes note of a message of which something is read. */
static void
found_note(struct found *f, struct unix_message *msg, struct socket_message *m)
{
	if (!f->any) {
		f->any = true;
		f->cred = msg->cred;
		f->from = m->name != NULL ? unix_ref(msg->from) : NULL;
	}
	if (msg->rights == NULL)
		return;
	if (m->flags & MSG_PEEK) {
		f->rights = unix_rights_copy(msg->rights);
		if (f->rights == NULL)
			m->told_flags |= MSG_CTRUNC;
		return;
	}
	unix_rights_land(msg->rights);
	f->rights = msg->rights;
	msg->rights = NULL;
}

/* Tells the receiver what was found. No lock is held. */
static void
found_tell(const struct unix_socket *us, struct found *f, struct socket_message *m)
{
	unix_queue_free(&f->read);
	if (f->has_room)
		unix_queue_has_room(us);
	if (f->any && socket_has(&us->so, SO_PASSCRED))
		socket_put_control(m, SOL_SOCKET, SCM_CREDENTIALS, &f->cred, sizeof(f->cred));
	if (f->rights != NULL)
		unix_rights_give(f->rights, m);
	if (f->from == NULL)
		return;
	unix_name_copy(f->from, m->name);
	if (m->name->len == sizeof(uint16_t))
		m->name->len = 0; /* the sender has no name */
	unix_unref(f->from);
}

/* ---- streams ---- */

static bool
same_sender(const struct ucred *a, const struct ucred *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

/*
 * Reads from the first message; *n becomes the number of bytes. 1: read on; 0: no more. The locks
 * of lock_first() are held.
 */
static int
read_first(struct unix_socket *us, struct unix_message *msg, struct socket_message *m,
	   struct found *f, size_t *n)
{
	size_t before = m->uio->resid;
	int error;
	bool last;

	*n = 0;
	if (f->any && socket_has(&us->so, SO_PASSCRED) && !same_sender(&f->cred, &msg->cred))
		return 0;
	error = unix_message_copy(msg, 0, m->uio);
	*n = before - m->uio->resid;
	if (*n == 0)
		return error;
	last = msg->rights != NULL;
	found_note(f, msg, m);
	unix_message_consume(msg, *n);
	us->bytes -= *n;
	if (msg->left == 0) {
		unix_queue_take(us);
		msg->next = f->read.head;
		f->read.head = msg;
	}
	return error != 0 ? error : !last && m->uio->resid > 0;
}

/* Looks at what can be read. 1: there was something; or as await_first(). Locks held. */
static int
peek_all(struct unix_socket *us, struct unix_message *msg, struct socket_message *m,
	 struct found *f)
{
	size_t before;
	int error = 0;

	for (; msg != NULL && m->uio->resid > 0 && error == 0; msg = msg->next) {
		if (f->any &&
		    ((socket_has(&us->so, SO_PASSCRED) && !same_sender(&f->cred, &msg->cred)) ||
		     msg->rights != NULL))
			break;
		before = m->uio->resid;
		error = unix_message_copy(msg, 0, m->uio);
		if (m->uio->resid < before)
			found_note(f, msg, m);
	}
	return error;
}

int64_t
unix_stream_receive(struct socket *so, struct socket_message *m)
{
	struct unix_socket *us = unix_of(so);
	uint64_t deadline = socket_deadline(so->rcvtimeo);
	struct found f = {0};
	size_t start = m->uio->resid, n;
	bool all;
	int r = 1;

	if (m->flags & MSG_OOB)
		return -EINVAL; /* there is none */
	if (__atomic_load_n(&us->state, __ATOMIC_ACQUIRE) != UNIX_CONNECTED)
		return -EINVAL;
	while (r > 0 && (m->uio->resid > 0 || !f.any)) {
		struct unix_message *msg;

		if (f.any && !(m->flags & MSG_WAITALL))
			msg = lock_first(us, &all);
		else
			msg = await_first(us, m->nowait, deadline, &all, &r);
		if (msg == NULL)
			r = r < 0 ? r : 0;
		else if (start == 0)
			r = 0;
		else if (m->flags & MSG_PEEK)
			r = peek_all(us, msg, m, &f);
		else
			r = read_first(us, msg, m, &f, &n);
		unlock_all(us, all);
		unix_queue_free(&f.read); /* the sender may have to go on */
	}
	found_tell(us, &f, m);
	CTR3(KTR_NET, "unix receive: socket %p bytes %lu result %d", so, start - m->uio->resid, r);
	return start != m->uio->resid ? (int64_t)(start - m->uio->resid) : r;
}

/* ---- datagrams, and SOCK_SEQPACKET ---- */

/* Reads the first message. Its length, or -errno. Locks of lock_first() held. */
static int64_t
read_datagram(struct unix_socket *us, struct unix_message *msg, struct socket_message *m,
	      struct found *f)
{
	size_t room = m->uio->resid, len = msg->left;
	int error = unix_message_copy(msg, 0, m->uio);

	if (error != 0)
		return error;
	found_note(f, msg, m);
	if (len > room)
		m->told_flags |= MSG_TRUNC;
	if (!(m->flags & MSG_PEEK)) {
		unix_queue_take(us);
		f->has_room = !unix_connects(us) && us->messages == UNIX_MESSAGES_MAX;
		msg->next = NULL;
		f->read.head = msg;
	}
	return (int64_t)(len > room && !(m->flags & MSG_TRUNC) ? room : len);
}

int64_t
unix_datagram_receive(struct socket *so, struct socket_message *m)
{
	struct unix_socket *us = unix_of(so);
	uint64_t deadline = socket_deadline(so->rcvtimeo);
	struct unix_message *msg;
	struct found f = {0};
	int64_t n;
	bool all;
	int error = 0;

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (so->type == SOCK_SEQPACKET &&
	    __atomic_load_n(&us->state, __ATOMIC_ACQUIRE) != UNIX_CONNECTED)
		return -ENOTCONN;
	msg = await_first(us, m->nowait, deadline, &all, &error);
	n = msg != NULL ? read_datagram(us, msg, m, &f) : error;
	unlock_all(us, all);
	found_tell(us, &f, m);
	CTR2(KTR_NET, "unix receive: socket %p result %ld", so, n);
	return n;
}
