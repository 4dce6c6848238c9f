/*
 * socket.h - sockets: what all families share, and what a family supplies.
 *
 * In:  system calls (socket_syscalls.c, message_syscalls.c), and read, write, poll and ioctl of a
 *      file (socket.c).
 * Out: the operations of a family (struct socket_ops), which moves the data.
 *
 *   program ──► socket_syscalls.c ──┐
 *           ──► message_syscalls.c ─┼─► struct socket_ops ─┬─► unix.c …  AF_UNIX
 *   file.c  ──► socket.c ───────────┘                      └─► inet/…  AF_INET, over lwIP
 *
 * A socket is a file without a name, of which vnode.data is the struct socket. It may be there
 * before its file, when a connection waits for accept(), and after it, when others still refer to
 * it: it counts its references, of which its file is one.
 *
 * To read, in order: this file; socket.c; socket_syscalls.c; message_syscalls.c; control.c; then
 * unix_private.h and inet/inet_private.h, and the files that they name.
 *
 * Locking legend of struct socket:
 *   [c] constant after creation
 *   [a] atomic
 *   [l] `lock`, which is the family's: it is not held when an operation is called
 * Unless said otherwise, functions and operations: thread context, may sleep, no spin lock held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/socket.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/clock.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"

struct file;
struct sbuf;
struct socket;
struct uidinfo;
struct uio;
struct vnode;

/* A socket's address: the bytes of a struct sockaddr of some family. */
struct socket_name {
	uint32_t len; /* bytes of `data`: SOCKADDR_MAX at most; 0: none */
	union {
		uint16_t family; /* if len is 2 or more */
		char data[SOCKADDR_MAX];
	};
};

/* What goes through send() or receive(). */
struct socket_message {
	struct uio *uio; /* the bytes */
	/* send: where to; len 0, or NULL: nowhere. receive: gets from where; NULL: nobody asks. */
	struct socket_name *name;
	unsigned flags;      /* MSG_… of the call */
	unsigned told_flags; /* receive: MSG_TRUNC, MSG_CTRUNC, MSG_EOR … for the caller */
	bool nowait;         /* MSG_DONTWAIT, or the file is O_NONBLOCK */
	/* send: the control messages, a copy of control_len bytes. */
	const void *control;
	/* receive: where socket_put_control() puts them, and how much room is left there. */
	uint64_t ucontrol;
	size_t control_len;
};

/* Whose name? ACCEPTED: the peer's, also if the connection has ended since it was accepted. */
enum socket_end { SOCKET_OWN, SOCKET_PEER, SOCKET_ACCEPTED };

/*
 * What a family does. Results are 0, or what is said, or -errno; an operation that is NULL fails
 * with -EOPNOTSUPP. Those that wait do it with SLEEP_INTR until socket_deadline() of the
 * socket's timeout, and then return -EINTR or -EAGAIN.
 */
struct socket_ops {
	int (*bind)(struct socket *so, const struct socket_name *name);
	/* -EINPROGRESS: connecting goes on without the caller, which is not to wait. */
	int (*connect)(struct socket *so, const struct socket_name *name, bool nowait);
	int (*listen)(struct socket *so, int backlog);
	/* A connection's socket, with a reference that becomes its file's. NULL and *err. */
	struct socket *(*accept)(struct socket *so, bool nowait, int *err);
	/* The name of the socket or of its peer (-ENOTCONN: it has none). */
	int (*getname)(struct socket *so, struct socket_name *name, enum socket_end end);
	/* Bytes moved. -EPIPE of a stream also sends SIGPIPE (socket_send()). */
	int64_t (*send)(struct socket *so, struct socket_message *m);
	int64_t (*receive)(struct socket *so, struct socket_message *m);
	int (*shutdown)(struct socket *so, int how);
	unsigned (*poll)(struct socket *so);                                 /* POLL… */
	int64_t (*ioctl)(struct socket *so, unsigned request, uint64_t arg); /* NULL: -ENOTTY */
	/* Is the socket waiting for connections (SO_ACCEPTCONN)? NULL: no. */
	bool (*is_listening)(struct socket *so);
	/* Options of other levels than SOL_SOCKET. */
	int (*set_option)(struct socket *so, int level, int name, uint64_t uvalue, uint32_t len);
	int (*get_option)(struct socket *so, int level, int name, uint64_t uvalue, uint64_t ulen);
	/* An option of SOL_SOCKET, which the layer keeps, has changed. NULL: nothing to do. */
	void (*option_changed)(struct socket *so, int name);
	/* Who is at the other end (SO_PEERCRED). NULL: nobody is known. */
	void (*peer_credentials)(struct socket *so, struct ucred *cred);
	/* Connects two new sockets with each other. */
	int (*pair)(struct socket *so, struct socket *other);
	/* The file is closed: nobody uses the socket, but those who refer to it. */
	void (*release)(struct socket *so);
	/* The last reference is dropped: frees what the family has, but not *so. */
	void (*destroy)(struct socket *so);
};

struct socket_family {
	uint16_t domain; /* AF_… */
	size_t size;     /* of the family's own structure, which begins with struct socket */
	/*
	 * Makes a zeroed structure, of which type and protocol are set, a socket: sets `ops`.
	 * -EPROTONOSUPPORT, -ESOCKTNOSUPPORT, -EPERM …; then destroy is not called.
	 */
	int (*create)(struct socket *so);
};

struct socket {
	uint32_t refs;                      /* [a] */
	const struct socket_family *family; /* [c] */
	const struct socket_ops *ops;       /* [c] */
	uint16_t type, protocol;            /* [c] SOCK_…; the protocol may be 0 */
	struct uidinfo *ui;                 /* [c] the user to whom it is counted */
	struct poll_source news;
	struct mutex lock;
	uint64_t ino; /* [a] the file's; 0: there is none yet, or (AF_INET) no file any more */
	/* Of SOL_SOCKET. */
	int32_t error;               /* [a] what SO_ERROR gives, an errno; 0: none */
	uint64_t options;            /* [a] bit n: the option number n, which is yes or no, is on */
	uint32_t sndbuf, rcvbuf;     /* [a] bytes that may wait, twice what setsockopt() said */
	uint64_t sndtimeo, rcvtimeo; /* [a] ns; 0: it waits for ever */
	uint32_t priority, rcvlowat; /* [a] kept, no effect */
	struct linger linger;        /* [l] kept for the family */
};

/* The operations of a socket's file. */
extern const struct vnode_ops socket_file_ops;
/*
 * The socket of a file. NULL if the file is no socket, or was opened with O_PATH: such a file is
 * only a place, and keeps no socket. Any context.
 */
struct socket *socket_of(const struct file *f);
/* The socket of a descriptor of the current process, for as long as filetable_get() says. NULL,
 * and *err: -EBADF, -ENOTSOCK. */
struct socket *socket_get(uint64_t fd, struct file **f, int *err);
/*
 * Begins the definition of the system call `name`, whose first argument is the descriptor of a
 * socket. Its body has the socket as `so`, and the file as `f`.
 */
#define SOCKET_CALL(name)                                                                         \
	static inline __attribute__((always_inline))                                              \
	int64_t socket_call_##name(struct socket *so, const struct file *f, const uint64_t a[6]); \
	int64_t sys_##name(const uint64_t a[6])                                                   \
	{                                                                                         \
		struct file *f;                                                                   \
		int error;                                                                        \
		struct socket *so = socket_get(a[0], &f, &error);                                 \
                                                                                                  \
		return so != NULL ? socket_call_##name(so, f, a) : error;                         \
	}                                                                                         \
	static inline __attribute__((always_inline))                                              \
	int64_t socket_call_##name(struct socket *so, const struct file *f, const uint64_t a[6])

/* A socket without a file. NULL: -EAFNOSUPPORT, -EINVAL, -ENOMEM, or create()'s error. */
struct socket *socket_create(unsigned domain, unsigned type, unsigned protocol, int *err);
/* Makes a socket with the family, type, protocol, user and options of another. NULL if there is
 * no memory. */
struct socket *socket_create_like(struct socket *so, int *err);
struct socket *socket_ref(struct socket *so);
void socket_unref(struct socket *so);
/* A file for a socket. flags: O_NONBLOCK or 0. NULL: -ENFILE, -ENOMEM. */
struct file *socket_file_alloc(int flags, int *err);
/* Makes a file so's, and takes over the reference. Before anybody else knows the file. */
void socket_file_attach(struct file *f, struct socket *so);

/*
 * Call the operation of the same name. A call that was interrupted begins again only if its socket
 * has no timeout (signal(7)).
 */
int64_t socket_send(struct socket *so, struct socket_message *m);
int64_t socket_receive(struct socket *so, struct socket_message *m);
int socket_connect(struct socket *so, const struct socket_name *name, bool nowait);
struct socket *socket_accept(struct socket *so, bool nowait, int *err);
/*
 * Adds a control message for the receiver; what does not fit is cut off, and MSG_CTRUNC told.
 * False: nothing is added, since there is no room, or by a fault of the program's memory.
 */
bool socket_put_control(struct socket_message *m, int level, int type, const void *data,
			size_t len);
/* Bytes of data that a control message may have now. */
size_t socket_control_room(const struct socket_message *m);

/* Is an option of SOL_SOCKET that is yes or no on? Any context. */
static inline bool
socket_has(const struct socket *so, int option)
{
	return __atomic_load_n(&so->options, __ATOMIC_RELAXED) >> option & 1;
}

/* When a wait with a timeout, sndtimeo or rcvtimeo, ends: a time of clock_ns(). */
static inline uint64_t
socket_deadline(uint64_t timeout)
{
	return timeout == 0 ? DEADLINE_NEVER : clock_ns() + timeout;
}

/* Takes the pending error, as -errno; 0: there is none. Any context. */
int socket_take_error(struct socket *so);
void socket_set_error(struct socket *so, int error);

/* setsockopt() and getsockopt(). uvalue, ulen: addresses. */
int socket_set_option(struct socket *so, int level, int name, uint64_t uvalue, uint32_t len);
int socket_get_option(struct socket *so, int level, int name, uint64_t uvalue, uint64_t ulen);
/* Stores an option's value, cut off at the length that *ulen says, and the length. 0 or -errno. */
int socket_put_option(uint64_t uvalue, uint64_t ulen, const void *value, uint32_t size);

/* The families; the address of inet_family is NULL in a kernel that was built without lwIP. */
extern const struct socket_family unix_family;
extern const struct socket_family inet_family __attribute__((weak));
/* Requests on interfaces and routes; NULL as inet_family. */
__attribute__((weak)) int64_t inet_interface_ioctl(unsigned request, uint64_t arg);
/*
 * Is the current thread dropping the files of messages that nobody has received? Then the thread
 * did not ask for the SO_LINGER of a socket that is closed so. Any context but NMI.
 */
bool unix_rights_are_dropped(void);
/* Prints all sockets of AF_UNIX, as Linux's /proc/net/unix does. 0 or -ENOMEM. */
int unix_print(struct sbuf *out);
