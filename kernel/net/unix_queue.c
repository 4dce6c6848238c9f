/*
 * unix_queue.c - messages of AF_UNIX, and how senders wait until some were read.
 *
 * Before a sender sleeps, it counts itself among those that wait, and then looks for room. Whoever
 * frees a message changes `queued`, or `messages`, and then reads that count. So one of the two
 * sees the other. Locking: unix_private.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/uio.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/unix_private.h"
#include "kernel/proc/proc.h"

#define FIRST_MAX (PAGE_SIZE - sizeof(struct unix_message)) /* bytes of the first piece */
#define PIECE_MAX (PAGE_SIZE - sizeof(struct unix_piece))

#define SPARE_MAX 256 /* bytes of memory of a message that its sender keeps for the next one */

/* Allocates memory, not zeroed. NULL: no memory, or the user's limit. */
static void *
buffer_alloc(struct uidinfo *ui, size_t size)
{
	void *p = kmalloc(size);

	if (p == NULL || uidinfo_charge(ui, UIDINFO_KMEM, kmalloc_size(p)))
		return p;
	kfree(p);
	return NULL;
}

/*
 * Allocates a message with room for `first` bytes in its first piece, or takes the one that the
 * socket keeps, if it is large enough. Sets its `ui` and `charge`. NULL if there is no memory, or
 * the user has too much.
 */
static struct unix_message *
message_alloc(struct unix_socket *us, size_t first)
{
	struct uidinfo *ui = proc_uidinfo();
	struct unix_message *msg = __atomic_exchange_n(&us->spare, NULL, __ATOMIC_ACQUIRE);

	if (msg != NULL && (msg->ui != ui || msg->charge < sizeof(*msg) + first)) {
		uidinfo_free(msg->ui, msg);
		msg = NULL;
	}
	if (msg != NULL)
		return msg;
	msg = buffer_alloc(ui, sizeof(*msg) + first);
	if (msg != NULL) {
		msg->ui = ui;
		msg->charge = (uint32_t)kmalloc_size(msg);
	}
	return msg;
}

/* Makes room for len bytes more after the last piece. 0 or -ENOMEM. */
static int
add_pieces(struct unix_message *msg, size_t len)
{
	struct unix_piece *last = &msg->first;

	while (len > 0) {
		size_t n = len < PIECE_MAX ? len : PIECE_MAX;
		struct unix_piece *p = buffer_alloc(msg->ui, sizeof(*p) + n);

		if (p == NULL)
			return -ENOMEM;
		p->next = NULL;
		p->at = 0;
		p->end = (uint32_t)n;
		msg->charge += (uint32_t)kmalloc_size(p);
		last->next = p;
		last = p;
		len -= n;
	}
	return 0;
}

/* Frees the message's memory, or leaves it to the sender for the next message. */
static void
message_release(struct unix_socket *us, struct unix_message *msg)
{
	struct unix_piece *p = msg->first.next;
	struct unix_message *none = NULL;

	if (msg->charge <= SPARE_MAX && p == NULL &&
	    __atomic_compare_exchange_n(&us->spare, &none, msg, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		return;

	while (p != NULL) {
		struct unix_piece *next = p->next;

		uidinfo_free(msg->ui, p);
		p = next;
	}
	uidinfo_free(msg->ui, msg);
}

static int
fill_pieces(struct unix_message *msg, struct uio *u)
{
	int error = 0;

	for (struct unix_piece *p = &msg->first; p != NULL && error == 0; p = p->next)
		error = uio_take(u, p->data, p->end);
	return error;
}

/* Real ids, as Linux sends them. */
static struct ucred
unix_sender_cred(void)
{
	const struct proc *p = curproc();

	return p != NULL ? (struct ucred){p->pid, p->ruid, p->rgid} : (struct ucred){0, 0, 0};
}

struct unix_message *
unix_message_make(struct unix_socket *us, struct uio *u, size_t len, int *err)
{
	size_t first = len < FIRST_MAX ? len : FIRST_MAX;
	struct unix_message *msg = message_alloc(us, first);

	*err = -ENOMEM;
	if (msg == NULL)
		return NULL;
	*msg = (struct unix_message){.ui = msg->ui,
				     .cred = unix_sender_cred(),
				     .charge = msg->charge,
				     .left = len,
				     .piece = &msg->first,
				     .first = {.end = (uint32_t)first}};
	if (len > first && add_pieces(msg, len - first) != 0) {
		message_release(us, msg);
		return NULL;
	}
	*err = fill_pieces(msg, u);
	if (*err != 0) {
		message_release(us, msg);
		return NULL;
	}
	msg->from = unix_ref(us);
	__atomic_fetch_add(&us->queued, msg->charge, __ATOMIC_SEQ_CST);
	return msg;
}

/* Has a sender so much memory in queues that a writer waits? It goes on at a half. */
static bool
writer_is_full(const struct unix_socket *us)
{
	return __atomic_load_n(&us->queued, __ATOMIC_SEQ_CST) * 2 >
	       __atomic_load_n(&us->so.sndbuf, __ATOMIC_RELAXED);
}

/* May a socket send that has so much memory in queues? */
static bool
is_writable_at(const struct unix_socket *us, size_t queued)
{
	return queued * 4 <= __atomic_load_n(&us->so.sndbuf, __ATOMIC_RELAXED);
}

bool
unix_is_writable(const struct unix_socket *us)
{
	return is_writable_at(us, __atomic_load_n(&us->queued, __ATOMIC_SEQ_CST));
}

void
unix_message_free(struct unix_message *msg)
{
	struct unix_socket *from = msg->from;
	struct unix_rights *rights = msg->rights;
	size_t charge = msg->charge;
	/* Others may add or take memory meanwhile: exactly one of them tells of each step. */
	size_t was = __atomic_fetch_sub(&from->queued, charge, __ATOMIC_SEQ_CST);

	message_release(from, msg);
	if (__atomic_load_n(&from->writers, __ATOMIC_SEQ_CST) != 0 && !writer_is_full(from))
		wakeup(&from->queued);
	if (!is_writable_at(from, was) && is_writable_at(from, was - charge))
		poll_notify(&from->so.news, POLLOUT);
	unix_unref(from);
	if (rights != NULL)
		unix_rights_free(rights);
}

void
unix_queue_free(struct unix_queue *q)
{
	while (q->head != NULL) {
		struct unix_message *msg = q->head;

		q->head = msg->next;
		unix_message_free(msg);
	}
}

void
unix_queue_append(struct unix_socket *us, struct unix_message *msg)
{
	msg->next = NULL;
	if (us->queue.head == NULL)
		us->queue.head = msg;
	else
		us->queue.tail->next = msg;
	us->queue.tail = msg;
	us->bytes += msg->left;
	__atomic_store_n(&us->messages, us->messages + 1, __ATOMIC_SEQ_CST);
	cond_broadcast(&us->readable);
}

struct unix_message *
unix_queue_take(struct unix_socket *us)
{
	struct unix_message *msg = us->queue.head;

	us->queue.head = msg->next;
	us->bytes -= msg->left;
	__atomic_store_n(&us->messages, us->messages - 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&us->senders, __ATOMIC_SEQ_CST) != 0)
		wakeup(&us->messages);
	return msg;
}

int
unix_message_copy(const struct unix_message *msg, size_t skip, struct uio *u)
{
	int error = 0;

	for (const struct unix_piece *p = msg->piece; p != NULL && error == 0; p = p->next) {
		size_t n = p->end - p->at;

		if (skip < n)
			error = uio_put(u, p->data + p->at + skip, n - skip);
		skip -= skip < n ? skip : n;
	}
	return error;
}

void
unix_message_consume(struct unix_message *msg, size_t n)
{
	msg->left -= n;
	while (n > 0) {
		struct unix_piece *p = msg->piece;
		size_t part = p->end - p->at;

		part = part < n ? part : n;
		p->at += (uint32_t)part;
		n -= part;
		if (p->at == p->end && p->next != NULL)
			msg->piece = p->next;
	}
}

/* ---- waiting ---- */

struct unix_wait {
	const struct unix_socket *us, *to;
};

static bool
waits_to_write(void *arg)
{
	const struct unix_wait *w = arg;

	return writer_is_full(w->us) && !(unix_shut(w->us) & UNIX_SHUT_WRITE) &&
	       !unix_is_dead(w->to) && !(unix_shut(w->to) & UNIX_SHUT_READ);
}

static bool
waits_for_queue(void *arg)
{
	const struct unix_socket *to = arg;

	return __atomic_load_n(&to->messages, __ATOMIC_SEQ_CST) > UNIX_MESSAGES_MAX &&
	       !unix_is_dead(to) && !(unix_shut(to) & UNIX_SHUT_READ);
}

/* Sleeps on chan. 0, -EINTR, or -EAGAIN at the deadline. */
static int
wait_to_send(const void *chan, uint32_t *waiters, bool (*still)(void *), void *arg,
	     uint64_t deadline)
{
	int error;

	__atomic_fetch_add(waiters, 1, __ATOMIC_SEQ_CST);
	error = sleepq_wait(&(struct sleep_request){.chan = chan,
						    .still = still,
						    .arg = arg,
						    .wmesg = "unixwr",
						    .flags = SLEEP_INTR,
						    .deadline_ns = deadline});
	__atomic_fetch_sub(waiters, 1, __ATOMIC_SEQ_CST);
	return error == -ETIMEDOUT ? -EAGAIN : error;
}

int
unix_wait_write(struct unix_socket *us, const struct unix_socket *to, bool nowait,
		uint64_t deadline)
{
	struct unix_wait w = {us, to};
	int error = 0;

	if (__atomic_load_n(&us->queued, __ATOMIC_SEQ_CST) <
	    __atomic_load_n(&us->so.sndbuf, __ATOMIC_RELAXED))
		return 0;
	while (error == 0 && waits_to_write(&w))
		error = nowait
			    ? -EAGAIN
			    : wait_to_send(&us->queued, &us->writers, waits_to_write, &w, deadline);
	return error == -EINTR && !waits_to_write(&w) ? 0 : error;
}

bool
unix_queue_is_full(const struct unix_socket *to, const struct unix_socket *from)
{
	return __atomic_load_n(&to->messages, __ATOMIC_RELAXED) > UNIX_MESSAGES_MAX &&
	       __atomic_load_n(&to->peer, __ATOMIC_RELAXED) != from;
}

int
unix_wait_queue(struct unix_socket *to, bool nowait, uint64_t deadline)
{
	return nowait ? -EAGAIN
		      : wait_to_send(&to->messages, &to->senders, waits_for_queue, to, deadline);
}

void
unix_queue_has_room(const struct unix_socket *us)
{
	mutex_lock(&unix_lock);
	list_for_each_entry (struct unix_socket, sender, &us->from, toward)
		poll_notify(&sender->so.news, POLLOUT);
	mutex_unlock(&unix_lock);
}

void
unix_wake_senders(struct unix_socket *us)
{
	if (__atomic_load_n(&us->writers, __ATOMIC_SEQ_CST) != 0)
		wakeup(&us->queued);
	if (__atomic_load_n(&us->senders, __ATOMIC_SEQ_CST) != 0)
		wakeup(&us->messages);
}
