/*
 * tcp.c - streams: from socket() to close(). Locking: inet_private.h.
 *
 * A pcb may end before its socket, when the peer resets the connection, and after it, when what was
 * written is not acknowledged yet. lwIP calls pcb_gone() in both cases.
 */
#include <lwip/priv/tcp_priv.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/probe.h"
#include "ktr/ktr.h"

#define BACKLOG_MAX 255

/* ---- lwIP's callbacks ---- */

static void
pcb_gone(u8_t id, void *arg)
{
	struct inet_socket *s = arg;

	if (s == NULL)
		return;
	s->tcp.pcb = NULL;
	inet_release(s, s->tcp.unacked + sizeof(struct tcp_pcb));
	s->tcp.unacked = 0;
	inet_changed(s, POLLIN | POLLOUT);
	socket_unref(&s->so);
}

/* A connection has ended: an address that the user did not choose goes with it. */
static void
forget_local(struct inet_socket *s)
{
	if (!s->tcp.bound)
		memset(&s->tcp.local, 0, sizeof(s->tcp.local));
}

/* The connection was reset, or its peer does not answer. */
static void
tcp_failed(void *arg, err_t err)
{
	struct inet_socket *s = arg;
	int error = err == ERR_CLSD                    ? 0
		    : err != ERR_RST                   ? ETIMEDOUT
		    : s->tcp.connecting                ? ECONNREFUSED
		    : s->tcp.eof && !s->tcp.shut_write ? EPIPE
						       : ECONNRESET;

	CTR2(KTR_NET, "tcp failed: socket %p error %d", &s->so, error);
	if (error != 0)
		socket_set_error(&s->so, error);
	if (s->tcp.connecting)
		forget_local(s);
	s->tcp.connecting = false;
	s->tcp.eof = s->tcp.shut_write = true;
	inet_changed(s, POLLIN | POLLOUT);
}

static void
tcp_begin(struct inet_socket *s, const struct tcp_pcb *pcb)
{
	s->tcp.connecting = false;
	s->tcp.connected = true;
	s->tcp.local = inet_name(&pcb->local_ip, pcb->local_port);
	s->tcp.peer = inet_name(&pcb->remote_ip, pcb->remote_port);
}

static err_t
tcp_established(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct inet_socket *s = arg;

	inet_tcp_look(pcb);
	tcp_begin(s, pcb);
	inet_changed(s, POLLOUT);
	return ERR_OK;
}

static const struct tcp_ext_arg_callbacks pcb_callbacks = {.destroy = pcb_gone};

static void
pcb_attach(struct inet_socket *s, struct tcp_pcb *pcb)
{
	s->tcp.pcb = pcb;
	socket_ref(&s->so);
	tcp_arg(pcb, s);
	tcp_ext_arg_set_callbacks(pcb, EXT_ARG, &pcb_callbacks);
	tcp_ext_arg_set(pcb, EXT_ARG, s);
	inet_tcp_know(pcb);
	if (s->tcp.listening)
		return;
	tcp_recv(pcb, inet_tcp_received);
	tcp_sent(pcb, inet_tcp_sent);
	tcp_err(pcb, tcp_failed);
	inet_tcp_apply(s);
}

/* A peer's connection is complete. */
static err_t
tcp_arrived(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct inet_socket *s = arg, *new;
	struct socket *so;
	int error;

	if (pcb == NULL || err != ERR_OK)
		return ERR_VAL;
	inet_tcp_look(pcb);
	/* lwIP's own count forgets those that were reset while they waited. */
	if (s->tcp.queued >= pcb->listener->backlog)
		return ERR_MEM;
	so = socket_create_like(&s->so, &error);
	if (so == NULL)
		return ERR_MEM;
	new = inet_of(so);
	if (!inet_charge(new, sizeof(*pcb))) {
		socket_unref(so);
		return ERR_MEM;
	}
	new->pid = s->pid;
	new->tcp.nodelay = s->tcp.nodelay;
	new->tcp.keep_idle = s->tcp.keep_idle;
	new->tcp.keep_interval = s->tcp.keep_interval;
	new->tcp.keep_count = s->tcp.keep_count;
	new->tcp.ttl = s->tcp.ttl;
	new->tcp.tos = s->tcp.tos;
	pcb_attach(new, pcb);
	tcp_begin(new, pcb);
	tcp_backlog_delayed(pcb);
	list_append(&s->tcp.queue, &new->tcp.link);
	s->tcp.queued++;
	inet_changed(s, POLLIN);
	return ERR_OK;
}

/* ---- operations ---- */

/* Ends the connection at once, and its peer is told. */
static void
tcp_cut(struct inet_socket *s)
{
	struct tcp_pcb *pcb = s->tcp.pcb;

	tcp_err(pcb, NULL);
	tcp_abort(pcb);
}

/* A pcb for a socket that has none, with the address to which it is bound. 0 or -errno. */
static int
pcb_make(struct inet_socket *s)
{
	struct tcp_pcb *pcb;
	ip_addr_t ip;
	int error = 0;

	if (s->tcp.pcb != NULL)
		return 0;
	if (!inet_charge(s, sizeof(*pcb)))
		return -ENOBUFS;
	pcb = tcp_new();
	if (pcb == NULL) {
		inet_release(s, sizeof(*pcb));
		return -ENOBUFS;
	}
	s->tcp.eof = s->tcp.shut_read = s->tcp.shut_write = s->tcp.connected = false;
	pcb_attach(s, pcb);
	ip_addr_set_ip4_u32_val(ip, s->tcp.local.sin_addr);
	if (s->tcp.bound)
		error = inet_errno(tcp_bind(pcb, &ip, lwip_ntohs(s->tcp.local.sin_port)));
	if (error != 0)
		tcp_cut(s);
	return error;
}

/* Does another socket wait for connections there? SO_REUSEADDR does not allow that. */
static bool
is_listened(const ip_addr_t *ip, uint16_t port)
{
	for (const struct tcp_pcb_listen *l = tcp_listen_pcbs.listen_pcbs; l != NULL; l = l->next)
		if (port != 0 && l->local_port == port &&
		    (ip_addr_isany(ip) || ip_addr_isany(&l->local_ip) ||
		     ip_addr_cmp(ip, &l->local_ip)))
			return true;
	return false;
}

static int
tcp_bind_locked(struct inet_socket *s, const ip_addr_t *ip, uint16_t port)
{
	int error = inet_check_local(ip, port);

	if (error == 0 && s->tcp.local.sin_port != 0)
		error = -EINVAL;
	if (error == 0 && is_listened(ip, port))
		error = -EADDRINUSE;
	if (error == 0)
		error = pcb_make(s);
	if (error == 0)
		error = inet_tcp_bind_pcb(s->tcp.pcb, ip, port);
	if (error != 0)
		return error;
	s->tcp.local = inet_name(&s->tcp.pcb->local_ip, s->tcp.pcb->local_port);
	s->tcp.bound = port != 0;
	return 0;
}

static int
inet_tcp_bind(struct socket *so, const struct socket_name *name)
{
	return inet_bind(so, name, tcp_bind_locked);
}

static int
tcp_listen_locked(struct inet_socket *s, int backlog)
{
	uint8_t n = backlog < BACKLOG_MAX ? (uint8_t)(backlog + 1) : BACKLOG_MAX;
	ip_addr_t ip = {s->tcp.local.sin_addr};
	struct tcp_pcb *pcb;
	err_t err;
	int error;

	if (s->tcp.listening) {
		tcp_backlog_set(s->tcp.pcb, n);
		return 0;
	}
	if (s->tcp.connecting || s->tcp.connected)
		return -EINVAL;
	if (s->tcp.local.sin_port == 0)
		error = tcp_bind_locked(s, IP4_ADDR_ANY, 0);
	else if (is_listened(&ip, lwip_ntohs(s->tcp.local.sin_port)))
		error = -EADDRINUSE; /* somebody has called listen() since this one's bind() */
	else
		error = pcb_make(s);
	if (error != 0)
		return error;
	/* The listening pcb is another one. */
	tcp_ext_arg_set(s->tcp.pcb, EXT_ARG, NULL);
	tcp_ext_arg_set(s->tcp.pcb, EXT_SELF, NULL);
	pcb = tcp_listen_with_backlog_and_err(s->tcp.pcb, n, &err);
	if (pcb == NULL) {
		tcp_ext_arg_set(s->tcp.pcb, EXT_ARG, s);
		tcp_ext_arg_set(s->tcp.pcb, EXT_SELF, s->tcp.pcb);
		return inet_errno(err);
	}
	s->tcp.listening = true;
	pcb_attach(s, pcb);
	socket_unref(&s->so); /* for the pcb before */
	tcp_accept(pcb, tcp_arrived);
	return 0;
}

static int
inet_tcp_listen(struct socket *so, int backlog)
{
	int error;

	inet_lock();
	error = tcp_listen_locked(inet_of(so), backlog);
	inet_unlock();
	return error;
}

/* Begins a connection. 0 or -errno. */
static int
connect_begin(struct inet_socket *s, const ip_addr_t *to, uint16_t port)
{
	ip_addr_t ip = *to;
	int error = pcb_make(s);
	uint8_t options;

	if (error != 0)
		return error;
	if (ip_addr_isany(&ip))
		ip_addr_set_loopback(false, &ip); /* as Linux does */
	if (port == 0 || ip_addr_ismulticast(&ip))
		return port == 0 ? -ECONNREFUSED : -ENETUNREACH;
	error = inet_check_way(&s->tcp.pcb->local_ip, &ip);
	if (error == 0)
		socket_set_error(&s->so, 0); /* that of the attempt before */
	if (error == 0)
		error = inet_tcp_bind_pcb(s->tcp.pcb, &s->tcp.pcb->local_ip, 0);
	/* Only a socket with this option is asked whether there is such a connection already. */
	options = s->tcp.pcb->so_options;
	ip_set_option(s->tcp.pcb, SOF_REUSEADDR);
	if (error == 0)
		error = inet_errno(tcp_connect(s->tcp.pcb, &ip, port, tcp_established));
	s->tcp.pcb->so_options = options;
	if (error != 0) { /* the socket may have an address that its user has not chosen */
		if (s->tcp.local.sin_port == 0)
			tcp_cut(s);
		else
			ip_addr_set_ip4_u32_val(s->tcp.pcb->local_ip, s->tcp.local.sin_addr);
		return error == -EADDRINUSE ? -EADDRNOTAVAIL : error;
	}
	s->tcp.connecting = s->tcp.untold = true;
	s->tcp.local = inet_name(&s->tcp.pcb->local_ip, s->tcp.pcb->local_port);
	return 0;
}

/* Takes the first connection that waits for accept(). */
static struct inet_socket *
take_first(struct inet_socket *s)
{
	struct inet_socket *new = list_entry(s->tcp.queue.next, struct inet_socket, tcp.link);

	list_remove(&new->tcp.link);
	s->tcp.queued--;
	return new;
}

/* Waits for no more connections; those that wait are reset. */
static void
listen_end(struct inet_socket *s)
{
	while (!list_empty(&s->tcp.queue)) {
		struct inet_socket *new = take_first(s);

		if (new->tcp.pcb != NULL)
			tcp_cut(new);
		inet_tcp_discard(new);
		socket_unref(&new->so);
	}
	s->tcp.listening = false;
	tcp_close(s->tcp.pcb);
}

/* Makes the socket as new. One that is only bound stays so. */
static void
tcp_disconnect(struct inet_socket *s)
{
	if (s->tcp.listening)
		listen_end(s);
	else if (!s->tcp.connecting && !s->tcp.connected && !s->tcp.untold)
		return;
	else if (s->tcp.pcb != NULL)
		tcp_cut(s);
	if (s->tcp.connecting)
		socket_set_error(&s->so, ECONNRESET); /* until the next connect() */
	inet_tcp_discard(s);
	s->tcp.connecting = s->tcp.connected = s->tcp.untold = false;
	forget_local(s);
}

/* A connection goes on, or is there, or has failed. */
static int
connect_end(struct inet_socket *s, bool nowait)
{
	uint64_t deadline = socket_deadline(s->so.sndtimeo);
	int error = 0;

	if (s->tcp.connecting && nowait)
		return -EALREADY;
	while (s->tcp.connecting && error == 0)
		error = inet_wait(&s->changed, "connect", deadline);
	if (s->tcp.connecting)
		return error == -ETIMEDOUT ? -EINPROGRESS : error;
	s->tcp.untold = false;
	error = socket_take_error(&s->so);
	return error != 0 || s->tcp.connected ? error : -ECONNABORTED;
}

static int
tcp_connect_locked(struct inet_socket *s, const ip_addr_t *ip, uint16_t port, bool nowait)
{
	int error;

	if (s->tcp.listening)
		return -EISCONN;
	if (s->tcp.untold)
		return connect_end(s, nowait);
	if (s->tcp.connected)
		return -EISCONN; /* also after its end: what was not read still can be */
	error = connect_begin(s, ip, port);
	if (error != 0)
		return error;
	return nowait ? -EINPROGRESS : connect_end(s, false);
}

static int
inet_tcp_connect(struct socket *so, const struct socket_name *name, bool nowait)
{
	struct inet_socket *s = inet_of(so);
	ip_addr_t ip;
	uint16_t port;
	int error;

	inet_lock();
	if (inet_name_is_unspec(name)) {
		if ((error = inet_tcp_readers_end(s, false, DEADLINE_NEVER)) == 0)
			tcp_disconnect(s);
	} else {
		error = inet_name_parse(name, &ip, &port);
		if (error == 0)
			error = tcp_connect_locked(s, &ip, port, nowait);
	}
	inet_unlock();
	return error;
}

static struct socket *
inet_tcp_accept(struct socket *so, bool nowait, int *err)
{
	struct inet_socket *s = inet_of(so), *new = NULL;
	uint64_t deadline = socket_deadline(so->rcvtimeo);

	*err = 0;
	inet_lock();
	while (*err == 0 && s->tcp.listening && list_empty(&s->tcp.queue))
		*err = nowait ? -EAGAIN : inet_wait(&s->changed, "accept", deadline);
	if (!s->tcp.listening) {
		*err = -EINVAL;
	} else if (!list_empty(&s->tcp.queue)) {
		new = take_first(s);
		if (new->tcp.pcb != NULL)
			tcp_backlog_accepted(new->tcp.pcb);
	}
	inet_unlock();
	if (new != NULL)
		return &new->so;
	if (*err == -ETIMEDOUT)
		*err = -EAGAIN;
	return NULL;
}

static int
inet_tcp_getname(struct socket *so, struct socket_name *name, enum socket_end end)
{
	struct inet_socket *s = inet_of(so);
	struct sockaddr_in in = {.sin_family = AF_INET};
	int error = 0;

	inet_lock();
	if (end != SOCKET_OWN && (!s->tcp.connected || (end == SOCKET_PEER && s->tcp.pcb == NULL)))
		error = -ENOTCONN;
	else if (end != SOCKET_OWN)
		in = s->tcp.peer;
	else if (s->tcp.local.sin_port != 0)
		in = s->tcp.local;
	inet_unlock();
	inet_name_set(name, &in);
	return error;
}

static int
inet_tcp_shutdown(struct socket *so, int how)
{
	struct inet_socket *s = inet_of(so);
	int error = 0;

	inet_lock();
	if (s->tcp.connecting || (s->tcp.listening && how != SHUT_WR)) {
		tcp_disconnect(s);
	} else if (!s->tcp.connected) {
		error = s->tcp.listening ? 0 : -ENOTCONN; /* a listening one writes nothing */
	} else {
		if (how != SHUT_WR)
			s->tcp.shut_read = true;
		if (how != SHUT_RD && !s->tcp.shut_write) {
			s->tcp.shut_write = true;
			if (s->tcp.pcb != NULL) {
				inet_tcp_watch(s->tcp.pcb);
				tcp_shutdown(s->tcp.pcb, 0, 1);
			}
		}
	}
	inet_changed(s, POLLIN | POLLOUT);
	inet_unlock();
	return error;
}

static unsigned
poll_connected(const struct inet_socket *s)
{
	const struct inet_tcp *t = &s->tcp;
	bool ended = t->eof || t->shut_read, over = ended && t->shut_write;

	if (t->connecting)
		return 0;
	if (!t->connected && !ended)
		return POLLOUT | POLLHUP;
	return (t->unread > 0 || ended ? POLLIN : 0) | (ended ? POLLRDHUP : 0) |
	       (over ? POLLHUP : 0) | (over || t->shut_write || inet_tcp_writable(s) ? POLLOUT : 0);
}

static unsigned
inet_tcp_poll(struct socket *so)
{
	const struct inet_socket *s = inet_of(so);
	unsigned found;

	inet_lock();
	found = s->tcp.listening ? (list_empty(&s->tcp.queue) ? 0 : POLLIN) : poll_connected(s);
	inet_unlock();
	return found | (__atomic_load_n(&so->error, __ATOMIC_RELAXED) != 0 ? POLLERR : 0);
}

static bool
inet_tcp_is_listening(struct socket *so)
{
	return inet_of(so)->tcp.listening;
}

/* Waits until the peer has acknowledged all bytes, or for the time of SO_LINGER. */
static void
tcp_linger(struct inet_socket *s, uint64_t seconds)
{
	uint64_t deadline = clock_ns() + seconds * 1000000000;
	int error = 0;

	if (s->tcp.pcb != NULL)
		tcp_output(s->tcp.pcb);
	while (error == 0 && s->tcp.pcb != NULL && s->tcp.unacked > 0)
		error = inet_wait(&s->changed, "linger", deadline);
}

static void
close_connection(struct inet_socket *s, struct linger how)
{
	/* A program that has not read all resets the connection, below. */
	if (how.l_onoff && how.l_linger > 0 && s->tcp.connected && s->tcp.unread == 0 &&
	    !unix_rights_are_dropped())
		tcp_linger(s, (uint64_t)how.l_linger);
	if (s->tcp.pcb == NULL)
		return;
	/* After shutdown(SHUT_WR), lwIP would end it without a word. */
	if (s->tcp.connected && (s->tcp.unread > 0 || (how.l_onoff && how.l_linger == 0))) {
		tcp_cut(s);
		return;
	}
	tcp_err(s->tcp.pcb, NULL);
	tcp_recv(s->tcp.pcb, NULL);
	inet_tcp_watch(s->tcp.pcb);
	if (tcp_close(s->tcp.pcb) != ERR_OK)
		tcp_abort(s->tcp.pcb);
}

static void
inet_tcp_release(struct socket *so)
{
	struct inet_socket *s = inet_of(so);
	struct linger how;

	mutex_lock(&so->lock);
	how = so->linger;
	mutex_unlock(&so->lock);
	inet_lock();
	if (s->tcp.listening)
		listen_end(s);
	else
		close_connection(s, how);
	inet_tcp_discard(s);
	__atomic_store_n(&so->ino, 0, __ATOMIC_RELAXED);
	inet_unlock();
}

static int64_t
inet_tcp_ioctl(struct socket *so, unsigned request, uint64_t arg)
{
	struct inet_socket *s = inet_of(so);
	int32_t n = -1;

	if (request != FIONREAD && request != TIOCOUTQ)
		return -ENOTTY;
	inet_lock();
	if (!s->tcp.listening)
		n = (int32_t)(request == FIONREAD ? s->tcp.unread : s->tcp.unacked);
	inet_unlock();
	return n < 0 ? -EINVAL : copy_out(arg, &n, sizeof(n));
}

static void
inet_tcp_destroy(struct socket *so)
{
	/* There is no pcb, and release() or listen_end() has dropped what was not read. */
}

const struct socket_ops inet_tcp_ops = {
    .bind = inet_tcp_bind,
    .connect = inet_tcp_connect,
    .listen = inet_tcp_listen,
    .accept = inet_tcp_accept,
    .getname = inet_tcp_getname,
    .send = inet_tcp_send,
    .receive = inet_tcp_receive,
    .shutdown = inet_tcp_shutdown,
    .poll = inet_tcp_poll,
    .ioctl = inet_tcp_ioctl,
    .is_listening = inet_tcp_is_listening,
    .set_option = inet_set_option,
    .get_option = inet_get_option,
    .option_changed = inet_option_changed,
    .release = inet_tcp_release,
    .destroy = inet_tcp_destroy,
};
