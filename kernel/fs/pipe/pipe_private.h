/*
 * pipe_private.h - between pipe.c, for who reads and writes, and pipe_splice.c, for splice().
 *
 * Invariants: tail <= head, and head + kept <= tail + size. A reader sleeps only while the ring is
 * empty and a writer exists, or bytes that may come back are taken. A writer sleeps only while
 * there is too little room and a reader exists. Locking: the vnode's mutex guards everything, also
 * while bytes move to and from user memory or a file, which may take long. So poll() does not ask
 * for it, but only for `ready`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fs/wait/poll.h"
#include "kernel/sched/mutex.h"

struct uidinfo;
struct uio;
struct vnode;

struct pipe {
	struct uidinfo *ui;  /* the user who made it pays for it, not the owner of a FIFO's name */
	char *ring;          /* `size` bytes */
	size_t size;         /* a power of two */
	uint64_t head, tail; /* total bytes written, read */
	size_t kept;         /* bytes of room for splice() calls that go on */
	bool taken;          /* the first bytes: pipe_take(); nobody else reads */
	unsigned readers, writers; /* open files of each kind; O_RDWR is both */
	uint64_t reads, writes;    /* how often a FIFO was opened for reading, and for writing */
	uint64_t ready;            /* atomic: what poll() tells (pipe_publish_ready()) */
	struct cond can_read, can_write;
	struct poll_source news;
};

static inline size_t
pipe_used(const struct pipe *p)
{
	return p->head - p->tail;
}

static inline size_t
pipe_room(const struct pipe *p)
{
	return p->size - pipe_used(p) - p->kept;
}

/* Where a byte is in the ring. */
static inline size_t
pipe_at(const struct pipe *p, uint64_t n)
{
	return n & (p->size - 1);
}

/* Tells poll() of a change. Call it after each, before others have the lock or hear of the
 * change. The lock is held. */
void pipe_publish_ready(struct pipe *p);
/* Waits for data. 1: there is some. 0: end of file. -EAGAIN (nowait), -EINTR. The lock is held. */
int pipe_wait_data(struct vnode *vn, bool nowait);
/*
 * Waits until `room` bytes fit. moved: this call has written some bytes already. 0; -EAGAIN
 * (nowait); -EPIPE; -EINTR, even if there is room, when there is a signal and some bytes have
 * moved. The lock is held.
 */
int pipe_wait_room(struct vnode *vn, bool nowait, size_t room, bool moved);
/* Stores what there is room for. 0, or -EFAULT. The lock is held. */
int pipe_fill(struct pipe *p, struct uio *u);
