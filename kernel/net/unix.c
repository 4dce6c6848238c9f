/*
 * unix.c - AF_UNIX: the life of a socket, and of a connection.
 *
 * connect() makes the other end of a connection, and puts it into the list of the socket that
 * listens; accept() takes it out and gives it a file. The ends refer to each other until each one's
 * file is closed. Locking: unix_private.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/unix_private.h"
#include "kernel/proc/task.h"
#include "ktr/ktr.h"

struct mutex unix_lock = MUTEX_INIT("unix");
/* Innermost; held also while `peer` of any socket changes, so that poll() may look at the peer. */
static struct spinlock peer_lock = SPINLOCK_INIT("unixpeer");

/* Who calls: the ids that count. */
static struct ucred
unix_own_cred(void)
{
	return (struct ucred){proc_pid(), proc_effective_user(), proc_effective_group()};
}

/* ---- what ends ---- */

/* Adds bits to `shut`, and an error; everyone who waits looks again. unix_lock held. */
static void
shut_down(struct unix_socket *us, uint8_t how, int error)
{
	mutex_lock(&us->so.lock);
	if (error != 0)
		socket_set_error(&us->so, error);
	__atomic_store_n(&us->shut, us->shut | how, __ATOMIC_SEQ_CST); /* after what poll() adds */
	cond_broadcast(&us->readable);
	mutex_unlock(&us->so.lock);
	cond_broadcast(&us->connected);
	cond_broadcast(&us->accepted);
	unix_wake_senders(us);
	poll_notify(&us->so.news, POLLIN | POLLOUT);
}

/* What a socket leaves to be freed when nobody uses it any more, or when it loses its peer. */
struct remains {
	struct unix_queue queue;
	struct unix_socket *peer; /* a reference, or NULL */
	bool was_full;            /* somebody may poll for room in the queue */
};

/* Takes what us has not read; its files are no longer in flight. unix_lock and so.lock held. */
static void
take_unread(struct unix_socket *us, struct remains *r)
{
	r->queue = us->queue;
	r->was_full = !unix_connects(us) && us->messages > UNIX_MESSAGES_MAX;
	us->queue = (struct unix_queue){0};
	us->bytes = 0;
	__atomic_store_n(&us->messages, 0, __ATOMIC_SEQ_CST);
	for (struct unix_message *msg = r->queue.head; msg != NULL; msg = msg->next)
		if (msg->rights != NULL)
			unix_rights_land(msg->rights);
}

/* No lock is held. */
static void
drop_remains(const struct unix_socket *us, struct remains *r)
{
	if (r->was_full)
		unix_queue_has_room(us);
	unix_queue_free(&r->queue);
	unix_unref(r->peer);
}

/* ---- connections ---- */

/* us has this peer from now on. NULL: none. Both locks held. */
static void
peer_set(struct unix_socket *us, struct unix_socket *peer)
{
	if (us->peer != NULL)
		list_remove(&us->toward);
	if (peer != NULL)
		list_append(&peer->from, &us->toward);
	spin_lock(&peer_lock);
	/* release: pairs with the acquire in stream_peer() */
	__atomic_store_n(&us->peer, peer, __ATOMIC_RELEASE);
	spin_unlock(&peer_lock);
}

/* us has this peer, to which the caller gives a reference. unix_lock held. */
static void
unix_join(struct unix_socket *us, struct unix_socket *peer, struct ucred cred)
{
	mutex_lock(&us->so.lock);
	us->peer_cred = cred;
	peer_set(us, peer);
	/* release: pairs with the acquire in receive */
	__atomic_store_n(&us->state, UNIX_CONNECTED, __ATOMIC_RELEASE);
	mutex_unlock(&us->so.lock);
}

static int
unix_pair(struct socket *so, struct socket *other)
{
	struct unix_socket *a = unix_of(so), *b = unix_of(other);

	mutex_lock(&unix_lock);
	unix_join(a, unix_ref(b), unix_own_cred());
	unix_join(b, unix_ref(a), unix_own_cred());
	mutex_unlock(&unix_lock);
	return 0;
}

static int
unix_listen(struct socket *so, int backlog)
{
	struct unix_socket *us = unix_of(so);
	int error = 0;

	if (!unix_connects(us))
		return -EOPNOTSUPP;
	mutex_lock(&unix_lock);
	mutex_lock(&so->lock);
	if (us->name == NULL || us->state == UNIX_CONNECTED) {
		error = -EINVAL;
	} else {
		__atomic_store_n(&us->state, UNIX_LISTENING, __ATOMIC_RELEASE);
		us->backlog = (unsigned)backlog;
		us->peer_cred = unix_own_cred();
		cond_broadcast(&us->accepted);
	}
	mutex_unlock(&so->lock);
	mutex_unlock(&unix_lock);
	return error;
}

/*
 * Finds the socket that listens at that name and has room for a connection. 1: it had no room, and
 * may have some now: try again. unix_lock held.
 */
static int
find_listener(const struct unix_socket *us, const struct socket_name *name, bool nowait,
	      uint64_t deadline, struct unix_socket **to)
{
	int error;
	struct unix_socket *l = unix_find(name, us->so.type, &error);

	if (us->state != UNIX_FRESH)
		error = us->state == UNIX_CONNECTED ? -EISCONN : -EINVAL;
	if (l == NULL)
		return error;
	*to = l;
	if (error == 0 && (l->state != UNIX_LISTENING || l->dead || (l->shut & UNIX_SHUT_READ)))
		error = -ECONNREFUSED;
	if (error == 0 && l->npending <= l->backlog)
		return 0;
	if (error == 0)
		error = nowait
			    ? -EAGAIN
			    : cond_wait(&l->accepted, &unix_lock, "unixcon", SLEEP_INTR, deadline);
	*to = NULL;
	mutex_unlock(&unix_lock);
	unix_unref(l);
	mutex_lock(&unix_lock);
	return error == 0 ? 1 : error == -ETIMEDOUT ? -EAGAIN : error;
}

/* Makes `new` the other end of a connection of us to l. unix_lock held. */
static void
connection_enter(struct unix_socket *us, struct unix_socket *l, struct unix_socket *new)
{
	new->name = unix_name_ref(l->name);
	unix_join(new, unix_ref(us), unix_own_cred());
	unix_join(us, unix_ref(new), l->peer_cred);
	list_append(&l->pending, &new->pending);
	__atomic_store_n(&l->npending, l->npending + 1, __ATOMIC_SEQ_CST);
	cond_broadcast(&l->connected);
}

static int
connect_stream(struct unix_socket *us, const struct socket_name *name, bool nowait)
{
	uint64_t deadline = socket_deadline(us->so.sndtimeo);
	struct unix_socket *l = NULL;
	int error = unix_autobind(us);
	struct socket *new =
	    error == 0 ? socket_create(AF_UNIX, us->so.type, us->so.protocol, &error) : NULL;

	if (new == NULL)
		return error;
	mutex_lock(&unix_lock);
	do
		error = find_listener(us, name, nowait, deadline, &l);
	while (error == 1);
	if (error == 0)
		connection_enter(us, l, unix_of(new));
	mutex_unlock(&unix_lock);
	if (error == 0) {
		poll_notify(&l->so.news, POLLIN);
		poll_notify(&us->so.news, POLLIN | POLLOUT);
		unix_unref(l);
	} else {
		socket_unref(new);
	}
	return error;
}

int
unix_change_peer(struct unix_socket *us, struct unix_socket *to)
{
	struct remains r = {.peer = to};
	bool changes = to == NULL || to->peer == NULL || to->peer == us;

	mutex_lock(&us->so.lock);
	if (changes) {
		r.peer = us->peer;
		peer_set(us, to);
		__atomic_store_n(&us->state, to != NULL ? UNIX_CONNECTED : UNIX_FRESH,
				 __ATOMIC_RELEASE);
		if (r.peer != NULL && r.peer != to)
			take_unread(us, &r);
	}
	mutex_unlock(&us->so.lock);
	if (r.queue.head != NULL) {
		unix_wake_senders(us);
		if (!r.peer->dead && r.peer->peer == us)
			shut_down(r.peer, 0, ECONNRESET);
	}
	mutex_unlock(&unix_lock);
	drop_remains(us, &r);
	if (changes)
		poll_notify(&us->so.news, POLLOUT);
	mutex_lock(&unix_lock);
	return changes ? 0 : -EPERM;
}

static int
connect_datagram(struct unix_socket *us, const struct socket_name *name)
{
	struct unix_socket *to = NULL;
	int error = name->len < sizeof(name->family) ? -EINVAL : 0;

	if (error == 0 && name->family != AF_UNSPEC)
		error = unix_autobind(us);
	if (error != 0)
		return error;
	mutex_lock(&unix_lock);
	if (name->family != AF_UNSPEC)
		to = unix_find(name, us->so.type, &error);
	if (error == 0)
		error = unix_change_peer(us, to);
	mutex_unlock(&unix_lock);
	return error;
}

static int
unix_connect(struct socket *so, const struct socket_name *name, bool nowait)
{
	struct unix_socket *us = unix_of(so);

	return unix_connects(us) ? connect_stream(us, name, nowait) : connect_datagram(us, name);
}

/* Waits for a connection. 0, or -errno. unix_lock held. */
static int
await_connection(struct unix_socket *us, bool nowait, uint64_t deadline)
{
	while (us->npending == 0) {
		int error;

		if (us->shut & UNIX_SHUT_READ)
			return -EINVAL;
		if (nowait)
			return -EAGAIN;
		error = cond_wait(&us->connected, &unix_lock, "unixacc", SLEEP_INTR, deadline);
		if (error != 0)
			return error == -ETIMEDOUT ? -EAGAIN : error;
	}
	return 0;
}

/* Takes the first connection that waits. unix_lock held. */
static struct unix_socket *
take_pending(struct unix_socket *us)
{
	struct unix_socket *new = list_entry(us->pending.next, struct unix_socket, pending);

	list_remove(&new->pending);
	__atomic_store_n(&us->npending, us->npending - 1, __ATOMIC_SEQ_CST);
	cond_broadcast(&us->accepted);
	return new;
}

static struct socket *
unix_accept(struct socket *so, bool nowait, int *err)
{
	struct unix_socket *us = unix_of(so), *new = NULL;
	uint64_t deadline = socket_deadline(so->rcvtimeo);

	if (!unix_connects(us)) {
		*err = -EOPNOTSUPP;
		return NULL;
	}
	mutex_lock(&unix_lock);
	*err = us->state == UNIX_LISTENING ? await_connection(us, nowait, deadline) : -EINVAL;
	if (*err == 0)
		new = take_pending(us);
	mutex_unlock(&unix_lock);
	if (new == NULL)
		return NULL;
	if (socket_has(so, SO_PASSCRED))
		__atomic_fetch_or(&new->so.options, 1ul << SO_PASSCRED, __ATOMIC_RELAXED);
	return &new->so;
}

/* ---- the end ---- */

static int
unix_shutdown(struct socket *so, int how)
{
	static const uint8_t bits[] = {UNIX_SHUT_READ, UNIX_SHUT_WRITE, UNIX_SHUT_BOTH};
	static const uint8_t peer_bits[] = {UNIX_SHUT_WRITE, UNIX_SHUT_READ, UNIX_SHUT_BOTH};
	struct unix_socket *us = unix_of(so);

	mutex_lock(&unix_lock);
	shut_down(us, bits[how], 0);
	if (unix_connects(us) && us->peer != NULL)
		shut_down(us->peer, peer_bits[how], 0);
	mutex_unlock(&unix_lock);
	return 0;
}

/* Tells the peer that nobody will use us any more. unix_lock held. */
static void
unix_bury(struct unix_socket *us, struct remains *r)
{
	bool reset;

	unix_name_forget(us);
	mutex_lock(&us->so.lock);
	__atomic_store_n(&us->dead, true, __ATOMIC_SEQ_CST);
	take_unread(us, r);
	r->peer = us->peer;
	peer_set(us, NULL);
	mutex_unlock(&us->so.lock);
	shut_down(us, UNIX_SHUT_BOTH, 0);
	/* Bytes are lost, or the connection is, which was not accepted. */
	reset = r->queue.head != NULL || us->so.ino == 0;
	if (unix_connects(us) && r->peer != NULL)
		shut_down(r->peer, UNIX_SHUT_BOTH, reset ? ECONNRESET : 0);
}

/* Drops the connections that nobody will accept. unix_lock held. */
static void
reset_pending(struct unix_socket *us)
{
	while (!list_empty(&us->pending)) {
		struct unix_socket *new = take_pending(us);
		struct remains r;

		unix_bury(new, &r);
		mutex_unlock(&unix_lock);
		drop_remains(new, &r);
		unix_unref(new);
		mutex_lock(&unix_lock);
	}
}

static void
unix_release(struct socket *so)
{
	struct unix_socket *us = unix_of(so);
	struct remains r;

	mutex_lock(&unix_lock);
	unix_bury(us, &r);
	if (us->state == UNIX_LISTENING)
		reset_pending(us);
	mutex_unlock(&unix_lock);
	drop_remains(us, &r);
	CTR1(KTR_NET, "unix close: socket %p", us);
	unix_rights_closed();
}

static void
unix_destroy(struct socket *so)
{
	struct unix_socket *us = unix_of(so);

	mutex_lock(&unix_lock);
	list_remove(&us->all);
	mutex_unlock(&unix_lock);
	unix_name_unref(us->name);
	if (us->spare != NULL)
		uidinfo_free(us->spare->ui, us->spare);
}

/* ---- looking at it ---- */

static bool
unix_is_listening(struct socket *so)
{
	return __atomic_load_n(&unix_of(so)->state, __ATOMIC_RELAXED) == UNIX_LISTENING;
}

/* May a socket send to its peer, as far as the peer is concerned? */
static bool
peer_has_room(const struct unix_socket *us)
{
	const struct unix_socket *peer;
	bool full;

	if (unix_connects(us))
		return true;
	spin_lock(&peer_lock);
	peer = us->peer; /* who takes it away drops its reference afterwards */
	full = peer != NULL && unix_queue_is_full(peer, us);
	spin_unlock(&peer_lock);
	return !full;
}

/* No mutex: its owner may copy bytes to memory that comes from a disk, and who polls holds the lock
 * of all sets of epoll. Each field is atomic; `shut` is read first, since it is written last. */
static unsigned
unix_poll(struct socket *so)
{
	struct unix_socket *us = unix_of(so);
	uint8_t shut = unix_shut(us);
	enum unix_state state = __atomic_load_n(&us->state, __ATOMIC_ACQUIRE);
	unsigned found = 0;

	if (__atomic_load_n(&so->error, __ATOMIC_RELAXED) != 0)
		found |= POLLERR;
	if (shut == UNIX_SHUT_BOTH || (unix_connects(us) && state == UNIX_FRESH))
		found |= POLLHUP;
	if (shut & UNIX_SHUT_READ)
		found |= POLLRDHUP | POLLIN;
	if (__atomic_load_n(&us->messages, __ATOMIC_SEQ_CST) > 0 ||
	    __atomic_load_n(&us->npending, __ATOMIC_SEQ_CST) > 0)
		found |= POLLIN;
	if (state != UNIX_LISTENING && unix_is_writable(us) && peer_has_room(us))
		found |= POLLOUT;
	return found;
}

static int64_t
unix_ioctl(struct socket *so, unsigned request, uint64_t arg)
{
	struct unix_socket *us = unix_of(so);
	int32_t n;

	if (request != FIONREAD && request != TIOCOUTQ)
		return -ENOTTY;
	mutex_lock(&so->lock);
	if (us->state == UNIX_LISTENING)
		n = -EINVAL;
	else if (request == TIOCOUTQ)
		n = (int32_t)__atomic_load_n(&us->queued, __ATOMIC_RELAXED);
	else if (unix_connects(us))
		n = (int32_t)us->bytes;
	else
		n = us->queue.head != NULL ? (int32_t)us->queue.head->left : 0;
	mutex_unlock(&so->lock);
	return n < 0 ? n : copy_out(arg, &n, sizeof(n));
}

static void
unix_option_changed(struct socket *so, int name)
{
	if (name != SO_SNDBUF && name != SO_SNDBUFFORCE)
		return;
	unix_wake_senders(unix_of(so));
	poll_notify(&so->news, POLLOUT);
}

static void
unix_peer_credentials(struct socket *so, struct ucred *cred)
{
	struct unix_socket *us = unix_of(so);

	mutex_lock(&unix_lock);
	*cred = us->peer_cred;
	mutex_unlock(&unix_lock);
}

/* The operations; streams and datagrams differ in how they are sent and received. */
#define UNIX_OPS(sends, receives)                                                                 \
	{                                                                                         \
		.bind = unix_bind, .connect = unix_connect, .listen = unix_listen,                \
		.accept = unix_accept, .getname = unix_getname, .send = sends,                    \
		.receive = receives, .shutdown = unix_shutdown, .poll = unix_poll,                \
		.ioctl = unix_ioctl, .is_listening = unix_is_listening,                           \
		.option_changed = unix_option_changed, .peer_credentials = unix_peer_credentials, \
		.pair = unix_pair, .release = unix_release, .destroy = unix_destroy,              \
	}

static const struct socket_ops stream_ops = UNIX_OPS(unix_stream_send, unix_stream_receive);
static const struct socket_ops datagram_ops = UNIX_OPS(unix_datagram_send, unix_datagram_receive);

/* SOCK_RAW is a datagram socket, as in Linux. */
static int
unix_create(struct socket *so)
{
	struct unix_socket *us = unix_of(so);

	if (so->protocol != 0 && so->protocol != AF_UNIX)
		return -EPROTONOSUPPORT;
	if (so->type == SOCK_RAW)
		so->type = SOCK_DGRAM;
	if (so->type != SOCK_STREAM && so->type != SOCK_DGRAM && so->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	so->ops = so->type == SOCK_STREAM ? &stream_ops : &datagram_ops;
	so->protocol = 0;
	us->peer_cred = (struct ucred){0, UINT32_MAX, UINT32_MAX};
	list_init(&us->pending);
	list_init(&us->from);
	mutex_lock(&unix_lock);
	list_append(&unix_all, &us->all);
	mutex_unlock(&unix_lock);
	return 0;
}

const struct socket_family unix_family = {
    .domain = AF_UNIX,
    .size = sizeof(struct unix_socket),
    .create = unix_create,
};
