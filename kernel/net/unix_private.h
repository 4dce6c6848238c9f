/*
 * unix_private.h - sockets of one machine, AF_UNIX: unix(7).
 *
 * What is sent is a message in the receiver's queue until it is read. A stream is a queue of
 * messages, too, of which a reader takes bytes. The sender waits while more than its SO_SNDBUF is
 * unread, so that the memory of a socket is bounded; it is counted to the sending user.
 *
 *   send ──► struct unix_message ──► the receiver's queue ──► receive
 *              └ struct unix_rights: files, which are "in flight"
 *
 * Files, in order: unix.c (states: listen, connect, accept, close), unix_name.c, unix_queue.c
 * (messages, and how senders and receivers wait), unix_send.c, unix_receive.c, unix_rights.c (files
 * in flight, and those that nobody can receive any more).
 *
 * Locking legend of struct unix_socket; unix_lock comes first, then the socket's own lock. Both may
 * be held while bytes go to a user's memory, which takes the lock of its space, and may wait for a
 * disk; so poll() takes neither. Nobody holds the locks of two sockets.
 *   [u] unix_lock, one mutex
 *   [l] socket.lock
 *   [ul] written under both, read under either
 *   [a] atomic
 */
#pragma once

#include "kernel/lib/list.h"
#include "kernel/net/control.h"
#include "kernel/net/socket.h"

struct vnode;

extern struct mutex unix_lock;

/* A name; it does not change. */
struct unix_name {
	uint32_t refs; /* [a] */
	struct uidinfo *ui;
	struct vnode *vn; /* of a path, with a reference; NULL: an abstract name */
	uint32_t len;     /* of the address, with its family */
	union {
		struct sockaddr_un address;
		char bytes[sizeof(struct sockaddr_un) + 1]; /* a path has its NUL */
	};
};

/* FRESH: also a datagram socket without a peer. */
enum unix_state { UNIX_FRESH, UNIX_LISTENING, UNIX_CONNECTED };

#define UNIX_SHUT_READ  1
#define UNIX_SHUT_WRITE 2
#define UNIX_SHUT_BOTH  3

struct unix_piece {
	struct unix_piece *next;
	uint32_t at, end; /* bytes of `data` that are not read: from, to */
	char data[];
};

/* Files that a message carries, each with a reference. */
struct unix_rights {
	struct unix_rights *next; /* while they wait to be dropped */
	struct uidinfo *ui;       /* whose they are in flight */
	unsigned count;
	struct file *files[];
};

struct unix_message {
	struct unix_message *next;
	struct unix_socket *from;   /* a reference */
	struct uidinfo *ui;         /* to whom its memory is counted */
	struct unix_rights *rights; /* [ul] of the socket in whose queue it is; NULL: none */
	struct ucred cred;
	uint32_t charge;          /* bytes of memory, which count in from->queued */
	size_t left;              /* bytes that are not read */
	struct unix_piece *piece; /* the first that is not wholly read: */
	struct unix_piece first;  /* this one, or one that follows it */
};

struct unix_queue {
	struct unix_message *head, *tail;
};

struct unix_socket {
	struct socket so;
	enum unix_state state;  /* [ul], [a] */
	uint8_t shut;           /* [ul], [a] UNIX_SHUT_… */
	bool dead;              /* [ul], [a] its file is closed */
	struct unix_name *name; /* [ul], [a] with a reference; set once */
	/* [ul], and peer_lock (unix.c); a reference. A connection's is set once, and becomes NULL
	 * when the file is closed. The peer may be dead. */
	struct unix_socket *peer;
	struct ucred peer_cred;        /* [u] the peer's; while the socket listens, its own */
	struct list from;              /* [u] sockets whose peer this one is */
	struct list toward;            /* [u] this one, in its peer's `from` */
	struct list all;               /* [u] */
	struct unix_socket *same_hash; /* [u] the next with an abstract name (unix_name.c) */
	bool hashed;                   /* [u] it is among them */
	bool naming;                   /* [u] a thread makes its name */
	/* While it listens: connections that wait, with a reference each. */
	struct list pending;        /* [u] also: where it waits itself */
	unsigned npending, backlog; /* [u]; npending: [a] */
	struct cond connected;      /* [u] a connection more waits, or none will any more */
	struct cond accepted;       /* [u] there is room for one more */
	/* What it may read. */
	struct unix_queue queue; /* [l] */
	uint32_t messages;       /* [l] in the queue; [a] */
	size_t bytes;            /* [l] in the queue, unread */
	struct cond readable;    /* [l] */
	uint32_t senders;        /* [a] how many wait for room in the queue, on `messages` */
	/* What it has sent. */
	size_t queued;              /* [a] memory of its messages in all queues */
	struct unix_message *spare; /* [a] memory of a small message that was read; NULL: none */
	uint32_t writers;           /* [a] how many wait, on `queued`, until it falls */
	/* While its file is in flight (unix_rights.c). */
	struct file *file;    /* [u] */
	unsigned in_flight;   /* [u] how often */
	struct list flight;   /* [u] */
	bool candidate;       /* [u] */
	unsigned unexplained; /* [u] */
};

static inline struct unix_socket *
unix_of(struct socket *so)
{
	return (struct unix_socket *)so;
}

static inline struct unix_socket *
unix_ref(struct unix_socket *us)
{
	return unix_of(socket_ref(&us->so));
}

static inline void
unix_unref(struct unix_socket *us)
{
	if (us != NULL)
		socket_unref(&us->so);
}

static inline uint8_t
unix_shut(const struct unix_socket *us)
{
	return __atomic_load_n(&us->shut, __ATOMIC_SEQ_CST);
}

static inline bool
unix_is_dead(const struct unix_socket *us)
{
	return __atomic_load_n(&us->dead, __ATOMIC_SEQ_CST);
}

/* Has the socket connections, as streams and SOCK_SEQPACKET? */
static inline bool
unix_connects(const struct unix_socket *us)
{
	return us->so.type != SOCK_DGRAM;
}

/* ---- unix.c ---- */

/*
 * Changes the peer of a datagram socket to `to`, of which it takes a reference, or to nobody
 * (NULL). If it had another peer, its unread messages are lost, and the old peer is told if it
 * talks to us. 0 or -EPERM. unix_lock held; released for some time.
 */
int unix_change_peer(struct unix_socket *us, struct unix_socket *to);

/* ---- unix_name.c ---- */

/* Gives the socket a name. 0, -EINVAL, -EADDRINUSE, or an error of the path. */
int unix_bind(struct socket *so, const struct socket_name *name);
/* Gives a socket that has no name, and wants credentials, one of its own. 0 or -errno. */
int unix_autobind(struct unix_socket *us);
/*
 * Finds the socket of that name, with a reference, if the user may write to it. NULL, and *err:
 * -EINVAL, -ECONNREFUSED, -EPROTOTYPE, -EACCES, or an error of the path. unix_lock held; released
 * while a path is walked.
 */
struct unix_socket *unix_find(const struct socket_name *name, uint16_t type, int *err);
int unix_getname(struct socket *so, struct socket_name *name, enum socket_end end);
/* Stores the name of a socket. */
void unix_name_copy(const struct unix_socket *us, struct socket_name *name);
struct unix_name *unix_name_ref(struct unix_name *name);
void unix_name_unref(struct unix_name *name);
/* Nobody finds the socket by its name any more. unix_lock held. */
void unix_name_forget(struct unix_socket *us);

extern struct list unix_all; /* unix_lock */

/* ---- unix_queue.c ---- */

/*
 * Makes a message of the next len bytes of u, which counts for the current user and in us->queued.
 * NULL, and *err: -ENOMEM, -EFAULT.
 */
struct unix_message *unix_message_make(struct unix_socket *us, struct uio *u, size_t len, int *err);
/* Drops its files, too. */
void unix_message_free(struct unix_message *msg);
void unix_queue_free(struct unix_queue *q);
/* socket.lock held. */
void unix_queue_append(struct unix_socket *us, struct unix_message *msg);
/* Takes the first message. socket.lock held; if the message has rights, unix_lock, too. */
struct unix_message *unix_queue_take(struct unix_socket *us);
/* Copies unread bytes, from `skip` on, to u. 0 or -EFAULT. */
int unix_message_copy(const struct unix_message *msg, size_t skip, struct uio *u);
/* The next n bytes of a message are read. */
void unix_message_consume(struct unix_message *msg, size_t n);
/* Waits until a socket may send more. `to`: the receiver. 0, -EAGAIN, -EINTR. */
int unix_wait_write(struct unix_socket *us, const struct unix_socket *to, bool nowait,
		    uint64_t deadline);
/* Waits until there is room for a datagram in the queue of `to`. */
int unix_wait_queue(struct unix_socket *to, bool nowait, uint64_t deadline);
/* Have datagrams of `from` to wait for room in the queue of `to`? to's lock held, or a guess. */
bool unix_queue_is_full(const struct unix_socket *to, const struct unix_socket *from);
/* Tells those who poll sockets that are connected to this datagram socket that its queue is no
 * longer full. No lock held. */
void unix_queue_has_room(const struct unix_socket *us);
#define UNIX_MESSAGES_MAX 10 /* in the queue, as Linux's net.unix.max_dgram_qlen */
/* May it send more (poll)? */
bool unix_is_writable(const struct unix_socket *us);
/* All who wait to send, or for what us sends, look again. */
void unix_wake_senders(struct unix_socket *us);

/* ---- unix_send.c, unix_receive.c ---- */

int64_t unix_stream_send(struct socket *so, struct socket_message *m);
int64_t unix_datagram_send(struct socket *so, struct socket_message *m);
int64_t unix_stream_receive(struct socket *so, struct socket_message *m);
int64_t unix_datagram_receive(struct socket *so, struct socket_message *m);

/* ---- unix_rights.c ---- */

/* Takes the files that control data names. NULL and *err: 0: none; -EBADF, -EINVAL, -ENOMEM. */
struct unix_rights *unix_rights_take(const struct unix_control *c, int *err);
/* These files are in flight from now on, or no longer. -ETOOMANYREFS. unix_lock held. */
int unix_rights_fly(struct unix_rights *r);
void unix_rights_land(struct unix_rights *r);
/* A second list of the same files, which are not in flight for it. NULL: no memory. */
struct unix_rights *unix_rights_copy(const struct unix_rights *r);
/* Gives the files to the receiver, and frees r. */
void unix_rights_give(struct unix_rights *r, struct socket_message *m);
/* Drops the references to the files, and frees r. NULL is allowed. No lock held. */
void unix_rights_free(struct unix_rights *r);
/* Closes files that are in flight only to each other. No lock held. */
void unix_collect(void);
/* A socket is closed: looks for files that are now in flight only to each other. No lock held. */
void unix_rights_closed(void);
