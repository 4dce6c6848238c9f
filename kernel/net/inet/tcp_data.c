/*
 * tcp_data.c - the bytes of streams. What arrives stays in lwIP's buffers until it is read; only
 * then the peer may send more. Locking: inet_private.h.
 */
#include <lwip/priv/tcp_priv.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/proc/proc.h"

/*
 * Bounds of the memory for bytes that were not read. Small segments take several times the memory
 * of their bytes. When there are many, they are gathered in buffers of our own, so that whatever
 * fits into the window is accepted.
 */
#define HELD_MAX    (4 * TCP_WND)
#define GATHER_FROM 16384
#define GATHER      3840 /* bytes of such a buffer */
#define GATHER_COST (GATHER + PACKET_OVERHEAD)
#define GATHERED    0x40u /* among its flags; lwIP has others */
#define SMALL       1024  /* bytes of a packet's buffer, which has fewer */
#define FEW         256   /* bytes that need no heap */
#define PIECE       4096
#define QUEUE_FULL  (TCP_SND_QUEUELEN - 16)

/*
 * Has the peer sent its end of the stream? The end may have come with the last bytes. If the
 * connection ends meanwhile, lwIP does not offer these bytes again.
 */
static bool
peer_has_ended(const struct tcp_pcb *pcb)
{
	return pcb->state == CLOSE_WAIT || pcb->state == CLOSING || pcb->state == LAST_ACK ||
	       pcb->state == TIME_WAIT;
}

/* A reader that peeks for more gets what there is: nothing comes until something is read. */
static err_t
tcp_refuse_data(struct inet_socket *s)
{
	if (!s->tcp.refused)
		inet_changed(s, POLLIN);
	s->tcp.refused = true;
	return ERR_MEM; /* lwIP tries again, at the latest when something is read */
}

/* Appends buffers to what is to be read. */
static void
tcp_hold_buffers(struct inet_socket *s, struct pbuf *p)
{
	if (s->tcp.in == NULL)
		s->tcp.in = p;
	else
		s->tcp.in_last->next = p;
	for (s->tcp.in_last = p; s->tcp.in_last->next != NULL;)
		s->tcp.in_last = s->tcp.in_last->next;
	s->tcp.room = 0;
}

/* Appends an empty buffer, unless the user or the connection has too much. */
static void
tcp_gather_begin(struct inet_socket *s)
{
	struct pbuf *p;

	if (s->tcp.held + GATHER_COST > HELD_MAX || !inet_charge(s, GATHER_COST))
		return;
	p = pbuf_alloc(PBUF_RAW, GATHER, PBUF_RAM);
	if (p == NULL) {
		inet_release(s, GATHER_COST);
		return;
	}
	p->len = 0;
	p->flags |= GATHERED;
	tcp_hold_buffers(s, p);
	s->tcp.held += GATHER_COST;
	s->tcp.room = GATHER;
}

/* Takes the bytes of p, and frees it, if they fit into a buffer of ours. */
static bool
tcp_gather_data(struct inet_socket *s, struct pbuf *p)
{
	uint16_t n = p->tot_len;

	if (n > s->tcp.room && n <= GATHER && n < SMALL * pbuf_clen(p) &&
	    s->tcp.held >= GATHER_FROM)
		tcp_gather_begin(s);
	if (n > s->tcp.room)
		return false;
	pbuf_copy_partial(p, (char *)s->tcp.in_last->payload + s->tcp.in_last->len, n, 0);
	s->tcp.in_last->len = (uint16_t)(s->tcp.in_last->len + n);
	s->tcp.room = (uint16_t)(s->tcp.room - n);
	pbuf_free(p);
	return true;
}

/* Takes p for the reader. False: there is too much. */
static bool
tcp_accept_data(struct inet_socket *s, const struct tcp_pcb *pcb, struct pbuf *p)
{
	uint32_t n = p->tot_len + PACKET_OVERHEAD * pbuf_clen(p);

	if (tcp_gather_data(s, p))
		return true;
	if (peer_has_ended(pcb))
		uidinfo_charge_anyway(s->so.ui, UIDINFO_KMEM, n); /* a window's segments at most */
	else if (s->tcp.held + n > HELD_MAX || !inet_charge(s, n))
		return false;
	s->tcp.held += n;
	tcp_hold_buffers(s, p);
	return true;
}

err_t
inet_tcp_received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct inet_socket *s = arg;
	uint32_t n;

	if (p == NULL) {
		s->tcp.eof = true;
		inet_changed(s, POLLIN);
		return ERR_OK;
	}
	/*
	 * lwIP answers each acknowledgement while its window is 0: two ends whose windows are both
	 * 0 would never stop. So the last byte of it stays, though the peer is not told.
	 */
	if (pcb->rcv_wnd == 0)
		pcb->rcv_wnd = 1;
	if (s->tcp.shut_read) {
		tcp_recved(pcb, p->tot_len);
		pbuf_free(p);
		return ERR_OK;
	}
	n = p->tot_len;
	if (!tcp_accept_data(s, pcb, p))
		return tcp_refuse_data(s);
	s->tcp.refused = false;
	s->tcp.unread += n;
	/* A reader that answers sends the acknowledgement with the answer; others at once. */
	if (!s->tcp.answers && n < pcb->mss)
		tcp_ack_now(pcb);
	s->tcp.answers = false;
	inet_changed(s, POLLIN);
	return ERR_OK;
}

err_t
inet_tcp_sent(void *arg, struct tcp_pcb *pcb, uint16_t len)
{
	struct inet_socket *s = arg;
	uint32_t n = len < s->tcp.unacked ? len : s->tcp.unacked;

	s->tcp.unacked -= n;
	inet_release(s, n);
	if (inet_tcp_writable(s) || s->tcp.unacked == 0)
		inet_changed(s, POLLOUT);
	return ERR_OK;
}

/* Bytes that may be written now. */
static uint32_t
tcp_room(const struct inet_socket *s)
{
	const struct tcp_pcb *pcb = s->tcp.pcb;
	uint32_t most = s->so.sndbuf;

	if (pcb == NULL || s->tcp.shut_write || pcb->snd_queuelen >= QUEUE_FULL ||
	    (pcb->state != ESTABLISHED && pcb->state != CLOSE_WAIT) || s->tcp.unacked >= most)
		return 0;
	return most - s->tcp.unacked < pcb->snd_buf ? most - s->tcp.unacked : pcb->snd_buf;
}

/* Is there enough room to wake somebody for? */
bool
inet_tcp_writable(const struct inet_socket *s)
{
	uint32_t most = s->so.sndbuf < TCP_SND_BUF ? s->so.sndbuf : TCP_SND_BUF;

	return tcp_room(s) >= most / 3;
}

/* Frees the first buffer of a list. */
static void
free_first(struct pbuf **list)
{
	struct pbuf *p = *list;

	*list = p->next;
	p->next = NULL;
	p->tot_len = p->len;
	pbuf_free(p);
}

/* The memory of n bytes of the first buffer of `in`, and of itself if it has no others. */
static uint32_t
memory_of_first(const struct inet_socket *s, uint32_t n)
{
	const struct pbuf *p = s->tcp.in;
	bool gathered = p->flags & GATHERED;

	return (gathered ? 0 : n) + (p->len > n ? 0 : gathered ? GATHER_COST : PACKET_OVERHEAD);
}

/* Drops n bytes of `in`, which has as many at least, and buffers that have none left. */
static void
drop_bytes(struct inet_socket *s, uint32_t n)
{
	uint32_t memory = 0;

	s->tcp.unread -= n;
	while (s->tcp.in != NULL) {
		struct pbuf *p = s->tcp.in;
		uint16_t part = n < p->len ? (uint16_t)n : p->len;

		memory += memory_of_first(s, part);
		p->payload = (char *)p->payload + part;
		p->len = (uint16_t)(p->len - part);
		n -= part;
		if (p->len > 0)
			break;
		if (p == s->tcp.in_last)
			s->tcp.room = 0;
		free_first(&s->tcp.in);
	}
	s->tcp.held -= memory;
	inet_release(s, memory);
}

void
inet_tcp_discard(struct inet_socket *s)
{
	drop_bytes(s, s->tcp.unread);
}

/* Drops n bytes, which were read, and lets the peer send as many. */
static void
drop_read(struct inet_socket *s, uint32_t n)
{
	struct tcp_pcb *pcb = s->tcp.pcb;

	drop_bytes(s, n);
	s->tcp.refused = false;
	for (; n > 0 && pcb != NULL; n -= n < TCP_WND ? n : TCP_WND)
		tcp_recved(pcb, (uint16_t)(n < TCP_WND ? n : TCP_WND));
	if (pcb != NULL && pcb->refused_data != NULL)
		tcp_process_refused_data(pcb);
}

/*
 * Copies what is there to the reader, without the lock: its memory may have to be made first. While
 * it is `reading`, others only append to `in`, and nothing to the buffers that are in it. MSG_PEEK:
 * leaves it there; MSG_TRUNC: counts only. 0 or -EFAULT.
 */
static int
tcp_take(struct inet_socket *s, struct uio *u, unsigned flags)
{
	bool peek = flags & MSG_PEEK;
	uint32_t unread = s->tcp.unread, bytes = 0;
	const struct pbuf *p = s->tcp.in, *last = s->tcp.in_last;
	uint16_t room = s->tcp.room;
	int error = 0;

	s->tcp.reading = true;
	s->tcp.room = 0;
	inet_unlock();
	while (error == 0 && u->resid > 0 && bytes < unread) {
		size_t before = u->resid, n = p->len < before ? p->len : before;

		if (flags & MSG_TRUNC)
			u->resid -= n; /* in the whole call, nothing is copied */
		else
			error = uio_put(u, p->payload, n);
		bytes += (uint32_t)(before - u->resid);
		if (bytes < unread)
			p = p->next;
	}
	inet_lock();
	s->tcp.reading = false;
	if (s->tcp.in_last == last)
		s->tcp.room = room;
	if (!peek)
		drop_read(s, bytes);
	/* A thread that was turned away waits for news, though there was something before. */
	inet_changed(s, s->tcp.turned_away || (s->tcp.unread > 0 && !peek) ? POLLIN : 0);
	s->tcp.turned_away = false;
	return error;
}

int
inet_tcp_readers_end(struct inet_socket *s, bool nowait, uint64_t deadline)
{
	int error = 0;

	while (s->tcp.reading && error == 0)
		error = nowait ? -ETIMEDOUT : inet_wait(&s->changed, "tcpread", deadline);
	s->tcp.turned_away |= s->tcp.reading && error == -ETIMEDOUT;
	return error == -ETIMEDOUT ? -EAGAIN : error;
}

/* Says why there is not more to read. 0: it is the end; 1: more may come; or -errno. */
static int
why_no_more(struct inet_socket *s, bool nowait)
{
	int error = s->tcp.unread == 0 ? socket_take_error(&s->so) : 0;

	if (error != 0)
		return error;
	if (s->tcp.eof || s->tcp.shut_read || (s->tcp.connected && s->tcp.pcb == NULL))
		return 0;
	if (!s->tcp.connected && !s->tcp.connecting)
		return -ENOTCONN;
	return nowait ? -EAGAIN : 1;
}

/* Waits for that many bytes. 1: they are there, or some and no more come; 0 at the end; -errno. */
static int
await_data(struct inet_socket *s, size_t want, bool nowait, uint64_t deadline)
{
	int r = 1, error = 0;

	while (r == 1 && error == 0 && (s->tcp.unread < want || s->tcp.reading)) {
		if (s->tcp.refused && s->tcp.unread > 0 && !s->tcp.reading)
			break;
		if (s->tcp.reading)
			error = inet_tcp_readers_end(s, nowait, deadline);
		else if ((r = why_no_more(s, nowait)) == 1)
			error = inet_wait(&s->changed, "tcprecv", deadline);
	}
	if (s->tcp.unread > 0 && !s->tcp.reading)
		return 1;
	return error == 0 ? r : error == -ETIMEDOUT ? -EAGAIN : error;
}

int64_t
inet_tcp_receive(struct socket *so, struct socket_message *m)
{
	struct inet_socket *s = inet_of(so);
	uint64_t deadline = socket_deadline(so->rcvtimeo);
	size_t start = m->uio->resid, want = 1;
	bool all = m->flags & MSG_WAITALL, peek = m->flags & MSG_PEEK;
	int r;

	if (m->flags & MSG_ERRQUEUE)
		return -EAGAIN; /* there is never anything */
	if (m->flags & MSG_OOB)
		return -EINVAL;
	if (peek && all)
		want = start < TCP_WND ? start : TCP_WND; /* what is not read ends at the window */
	inet_lock();
	do {
		r = await_data(s, want, m->nowait, deadline);
		if (r > 0) {
			int error = tcp_take(s, m->uio, m->flags);

			r = error != 0 ? error : r;
		}
	} while (r > 0 && all && !peek && m->uio->resid > 0);
	inet_unlock();
	return start != m->uio->resid ? (int64_t)(start - m->uio->resid) : r < 0 ? r : 0;
}

/* Waits for room. 0 or -errno; the socket's error stays. */
static int
await_room(struct inet_socket *s, bool nowait, uint64_t deadline)
{
	bool waited = false;
	int error;

	for (;;) {
		error = __atomic_load_n(&s->so.error, __ATOMIC_RELAXED);
		if (error != 0)
			return -error;
		if (s->tcp.shut_write || (!s->tcp.connecting && s->tcp.pcb == NULL) ||
		    (!s->tcp.connecting && !s->tcp.connected))
			return -EPIPE;
		if (waited ? inet_tcp_writable(s) : tcp_room(s) > 0)
			return 0;
		if (nowait)
			return -EAGAIN;
		if (s->tcp.pcb != NULL)
			tcp_output(s->tcp.pcb);
		waited = true;
		error = inet_wait(&s->changed, "tcpsend", deadline);
		if (error != 0)
			return error == -ETIMEDOUT ? -EAGAIN : error;
	}
}

/* Writes what fits of n bytes. How many, or -errno. */
static int
write_piece(struct inet_socket *s, const char *piece, uint32_t n, bool more)
{
	err_t err;

	if (n > tcp_room(s)) {
		n = tcp_room(s);
		more = true;
	}
	if (!inet_charge(s, n))
		return -ENOBUFS;
	/*
	 * lwIP makes segments no larger than half of the peer's largest window so far, or of any
	 * size while that is 0; and it asserts that this limit never falls. So a window of 0 counts
	 * as two segments here, and the limit stays.
	 */
	if (s->tcp.pcb->snd_wnd_max < 2)
		s->tcp.pcb->snd_wnd_max = (tcpwnd_size_t)(2 * s->tcp.pcb->mss);
	err = tcp_write(s->tcp.pcb, piece, (uint16_t)n,
			TCP_WRITE_FLAG_COPY | (more ? TCP_WRITE_FLAG_MORE : 0));
	if (err != ERR_OK) {
		inet_release(s, n);
		return inet_errno(err);
	}
	s->tcp.unacked += n;
	s->tcp.answers = true;
	return (int)n;
}

/* Sends what is written, unless the program has said that more comes. */
static void
send_written(struct inet_socket *s, const struct socket_message *m)
{
	if (s->tcp.pcb != NULL && s->tcp.connected && !s->tcp.cork && !(m->flags & MSG_MORE))
		tcp_output(s->tcp.pcb);
}

/* Waits for room again and again, until all of a piece is written. How many bytes, or -errno. */
static int
send_piece(struct inet_socket *s, const struct socket_message *m, const char *piece, uint32_t n,
	   uint64_t deadline)
{
	bool more = m->uio->resid > 0;
	uint32_t done = 0;
	int r = 0;

	inet_lock();
	while (done < n && r >= 0) {
		r = await_room(s, m->nowait, deadline);
		if (r == 0)
			r = write_piece(s, piece + done, n - done, more);
		done += r > 0 ? (uint32_t)r : 0;
	}
	if (!more || r < 0)
		send_written(s, m);
	inet_unlock();
	return done > 0 ? (int)done : r;
}

int64_t
inet_tcp_send(struct socket *so, struct socket_message *m)
{
	struct inet_socket *s = inet_of(so);
	uint64_t deadline = socket_deadline(so->sndtimeo);
	size_t start = m->uio->resid, size = start <= FEW ? FEW : PIECE, done = 0;
	char few[FEW], *piece = few;
	int32_t told;
	int r = 0;

	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (size > FEW && (piece = kmalloc(size)) == NULL)
		return -ENOMEM;
	while (done < start && r >= 0) {
		size_t n = start - done < size ? start - done : size;

		r = uio_take(m->uio, piece, n);
		if (r == 0)
			r = send_piece(s, m, piece, (uint32_t)n, deadline);
		done += r > 0 ? (size_t)r : 0;
		if (r >= 0 && ((size_t)r < n || proc_signal_pending()))
			break; /* the rest of the piece does not fit */
	}
	if (piece != few)
		kfree(piece);
	if (done > 0 && done < start) { /* the next piece does not come */
		inet_lock();
		send_written(s, m);
		inet_unlock();
	}
	/* If it is the socket's error, it is told now. */
	told = -r;
	if (done == 0 && r < 0)
		__atomic_compare_exchange_n(&so->error, &told, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	return done > 0 ? (int64_t)done : r;
}
