/*
 * tty.h - terminals: a line discipline each, a session whose terminal it is, and the process group
 * in the foreground.
 *
 * The console is one (console.c), the slave of a pseudo-terminal another (pty.c). A session has at
 * most one terminal, its controlling one: the first that its leader opens to read, without
 * O_NOCTTY, or that it asks for. In that session, only the foreground group may read. A read from
 * the background stops the reader's group with SIGTTIN; where that is impossible, it is EIO. Writes
 * from the background are allowed unless TOSTOP is set. Settings may be changed by the foreground
 * group, with CAP_SYS_ADMIN, by the user who chose the present foreground group or has a process in
 * it, by the parent of one, by all if that group is empty, and by other sessions; others get EPERM.
 * (On Linux all may who ignore or block SIGTTOU.) When the session's leader ends, the foreground
 * group gets SIGHUP. A new size is SIGWINCH for the foreground.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/dev/ldisc.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/list.h"
#include "kernel/sync/spinlock.h"

struct file;
struct tty;
struct uio;

#define TTY_PIECE 256 /* bytes that a writer moves at once */

/* What is at the other end. */
struct tty_line {
	/* Shows text. t->lock held; any context but NMI. */
	void (*echo)(struct tty *t, const char *text, size_t n);
	/*
	 * Sends text after output processing; waits for room, but not with O_NONBLOCK. Returns how
	 * many bytes of text went. *error, which is 0 at first: why not all. Thread context.
	 */
	size_t (*write)(struct tty *t, const struct file *f, const char *text, size_t n,
			int *error);
	/* Is there room to write? NULL: always. t->lock held. */
	bool (*room)(const struct tty *t);
	/* There is room for input, or the last file was closed. NULL: nobody waits for that. */
	void (*changed)(struct tty *t);
	/* The last reference is dropped. NULL: the terminal is there for ever. */
	void (*free)(struct tty *t);
};

/*
 * Locking: [c] constant; [l] `lock`, a spin lock, since input arrives in interrupts; [s] changed
 * with both that and the lock of all sessions (tty_jobs.c), the outer one; [a] atomic. No lock is
 * held while bytes move to or from user memory, nor while a signal is sent.
 */
struct tty {
	struct spinlock lock;
	const struct tty_line *line; /* [c] */
	uint64_t device;             /* [c] as of st_rdev */
	struct ldisc ldisc;          /* [l] */
	struct winsize size;         /* [l] */
	bool opened;                 /* [l] once at least */
	unsigned opens;              /* [l] open files */
	bool writing;                /* [l] a write() has not ended: others wait */
	bool refused;                /* [l] a write() that does not wait is told of the end */
	uint8_t flushed;             /* [l] TIOCPKT_FLUSH…, since the other end has read them */
	bool hung;                   /* [s] its other end is gone: new reads end, the rest is EIO */
	uint32_t sid;                /* [s] the session, which has a reference; 0: none */
	uint32_t fg_pgid;            /* [l] 0: none yet */
	uint32_t fg_uid;             /* [l] the user who chose it */
	uint32_t refs;               /* [a] */
	struct poll_source news;
	struct list link;    /* of all terminals (tty_jobs.c) */
	struct list session; /* of those that a session has */
};

/* ---- tty.c: what a terminal does ---- */

/* Fills a zeroed t, with one reference. */
void tty_init(struct tty *t, const struct tty_line *line);
/* Handles a received character. Any context but NMI. */
void tty_input(struct tty *t, char c);
/* What a character has done. */
struct tty_key {
	char c;
	bool wake;          /* there is something to read */
	int sig;            /* the key is this signal for the foreground; 0: none */
	uint32_t sid, pgid; /* which is that, of which session */
};
/* The two halves of tty_input(): t->lock held; and then without it. Any context but NMI. */
struct tty_key tty_take_key(struct tty *t, char c);
void tty_tell_key(struct tty *t, const struct tty_key *k);
/* The operations of an open file, f->priv of which is the terminal: as of struct dev_ops. */
int tty_open(struct file *f);
void tty_release(struct file *f);
int64_t tty_read(struct file *f, struct uio *u);
int64_t tty_write(struct file *f, struct uio *u);
unsigned tty_poll(struct file *f);
int64_t tty_ioctl(struct file *f, unsigned request, uint64_t arg);
/* A request that both ends answer. master: the other end asks. -ENOTTY: it is no such request. */
int64_t tty_request(struct tty *t, bool master, unsigned request, uint64_t arg);

/* ---- tty_jobs.c: sessions and process groups. Thread context, no lock held. ---- */

/* Makes /dev/tty. Once, after vfs_init(). */
void tty_jobs_init(void);
/* t is one of all terminals now, and has the lowest device number from `first` on that is free. */
void tty_join(struct tty *t, uint64_t first);
struct tty *tty_ref(struct tty *t);
void tty_unref(struct tty *t);
/* The device number of a session's terminal, and its foreground group. False: it has none. */
bool tty_of_session(uint32_t sid, uint64_t *device, uint32_t *fg_pgid);
/* A session's leader has opened t: makes it the session's terminal, if both have none. */
void tty_adopt(struct tty *t);
/* The other end is gone. Readers and writers go on, and the session's leader gets SIGHUP. */
void tty_hangup(struct tty *t);
/* Is the current process in the foreground, or in another session? t->lock held. */
bool tty_foreground(const struct tty *t);
/*
 * Waits until the current process may go on. 0 if it is in the foreground, or in another session;
 * -EINTR if sig stops it, after which the system call begins again; 1 if it is in the background,
 * and ignores or blocks sig; -EIO if nobody would continue it.
 */
int tty_await_foreground(struct tty *t, int sig);
/* May the current process change the terminal? 0, -EIO, -EINTR or -EPERM. */
int tty_may_change(struct tty *t);
/* The requests of sessions and groups; as tty_request(). */
int64_t tty_job_request(struct tty *t, bool master, unsigned request, uint64_t arg);
