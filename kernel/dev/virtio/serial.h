/*
 * serial.h - a console of virtio with several ports (Virtio 1.2, 5.3): lines to the host that take
 * many bytes at once. The first device only. Port M of it is the file /dev/vport0pM, as on Linux
 * (vport.c); the trace's stream goes to the one that the host names `trace` (kernel/trace/sink.c).
 *
 * The driver waits for nothing. What is sent lies in the port's buffers. Their bytes count as sent
 * when the device has returned all buffers, and the other end was not closed meanwhile: if it is
 * closed, the device also returns buffers that it did not send, and QEMU forgets the one of which
 * it has sent a part.
 *
 * Locking: the queues of a port have one user at a time, its lock or vport_take() says who. A spin
 * lock guards the control queues, and which ports there are; interrupts use only these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/dev/virtio/control.h"
#include "kernel/dev/virtio/ring.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/sched/mutex.h"

#define VPORT_MAX        4  /* ports */
#define VPORT_TX_BUFFERS 16 /* pages */
#define VPORT_RX_BUFFERS 4

struct vport {
	unsigned number;
	char file[12];               /* "vport0p1"; constant */
	char name[VIRTIO_PORT_NAME]; /* [s] the host's */
	bool there;                  /* [s] atomic: the device has it */
	bool host_open;              /* [s] atomic: somebody is at the other end */
	unsigned taken;              /* [m] vport_take() calls without vport_give() */
	unsigned opens;              /* [m] atomic: of the guest's side */
	bool told;                   /* [s] what the host was told last of `opens` */
	unsigned events;             /* atomic: counts what happened to it */
	unsigned closings;           /* [s] atomic: of the host's end */
	struct mutex lock;           /* [m] */
	struct virtio_ring rx, tx;   /* of who has the port */
	char *rx_buffer[VPORT_RX_BUFFERS],
	    *tx_buffer[VPORT_TX_BUFFERS]; /* NULL before it is there */
	unsigned tx_out;                  /* buffers of the batch that the device has */
	size_t tx_batch;                  /* bytes in them that the sender has not been told of */
	unsigned tx_closings;             /* up to which the buffers of tx are looked through */
	bool
	    tx_old[VPORT_TX_BUFFERS]; /* a closing fell upon it; the device may have forgotten it */
	int rx_at;                    /* the buffer that is being read; -1: none */
	uint32_t rx_pos, rx_end;
	struct poll_source news;
};

/* Port n, or NULL: the device has no such number, or there is no device. Any context. */
struct vport *vport_get(unsigned n);
/* The port /dev/FILE; file NULL: the first that the host has named so. NULL: it is not there. Any
 * context, after the boot's hooks `unpacked`. */
struct vport *vport_find(const char *file, const char *name);

/*
 * Takes the sending side for the kernel's own bytes: until each vport_take() is matched by a
 * vport_give(), programs that write to the port get -EBUSY. One sends at a time; who takes it while
 * another has it sends after the other has given it. Thread context; both may sleep.
 */
void vport_take(struct vport *p);
void vport_give(struct vport *p);

/* Is somebody at the other end? Any context. */
bool vport_is_open(const struct vport *p);
/* The guest has 1 more opener of the port, or -1. Thread context; its lock held. */
void vport_count_openers(struct vport *p, int more);

/*
 * Sends the first of len bytes. Returns how many of them the device has sent by now. 0 while it
 * still has some, or nobody is at the other end, or if the end was closed before all were sent:
 * call again, with the same bytes first. -EIO if the port or the device is lost. Never waits. For
 * who has the port; any context.
 */
int64_t vport_send(struct vport *p, const void *bytes, size_t len);
/* Lets go of the bytes that the device still has, so that the next vport_send() may have others.
 * Returns how many of the last call's bytes may still be sent. Context as for vport_send(). */
size_t vport_let_go(struct vport *p);
/*
 * Finds bytes that have come, and sets *bytes to them. Returns how many there are, 0, or -EIO. Then
 * call vport_received() with the number of bytes that were used, at most as many. The caller has
 * the port's lock for both.
 */
int64_t vport_peek(struct vport *p, const char **bytes);
void vport_received(struct vport *p, size_t n);
/*
 * True if vport_send() can send now, or would fail. Otherwise `events` changes when it is worth
 * another try. For who has the port's lock.
 */
bool vport_await_room(struct vport *p);

/* vport.c: makes the files. Boot. */
void vport_make_files(unsigned ports);
