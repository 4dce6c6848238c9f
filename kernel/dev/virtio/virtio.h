/*
 * virtio.h - devices of virtio on PCI, by the modern transport (Virtio 1.2, 4.1): features, rings,
 * interrupts.
 *
 * Reading order: caps.h, ring.h, transport.c, net.c, blk.c, serial.h. Functions: boot, one CPU, but
 * for virtio_notify(), virtio_stop() and virtio_await_reset().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/dev/pci.h"
#include "kernel/dev/virtio/caps.h"
#include "kernel/dev/virtio/ring.h"

#define VIRTIO_VENDOR 0x1af4u
#define VIRTIO_ID(n)  ((0x1040u + (n)) << 16 | VIRTIO_VENDOR) /* PCI_ID of device type n */
/* PCI_ID of a transitional device of type 1, 2, 3 or 9 (4.1.2.1). */
#define VIRTIO_TRANSITIONAL_ID(n) ((0x1000u + (n) - ((n) < 3)) << 16 | VIRTIO_VENDOR)
#define VIRTIO_NET                1
#define VIRTIO_BLK                2
#define VIRTIO_CONSOLE            3
#define VIRTIO_9P                 9
#define VIRTIO_RINGS              10 /* of a device at most */
#define VIRTIO_F_MODERN           (1ul << 32)

struct virtio {
	struct pci_function pci;
	const char *name;                   /* read-only data */
	volatile uint8_t *cfg[VIRTIO_CFGS]; /* by enum virtio_cfg */
	uint32_t notify_length, notify_multiplier;
	uint32_t device_length;           /* bytes of cfg[VIRTIO_DEVICE] */
	uint64_t notify_at[VIRTIO_RINGS]; /* of each ring */
	uint64_t features;
	bool msix;
	int line;
	void (*interrupt)(void *arg);
	void *arg;
};

/*
 * Finds the first device of type n and begins to set it up. `wanted` are the features that the
 * driver knows: those that the device offers are accepted. False if there is none, or it cannot be
 * used; a message says so.
 */
bool virtio_open(struct virtio *v, unsigned n, const char *name, uint64_t wanted);
/*
 * Has fn(arg) called in interrupt context when the device interrupts. Before virtio_start(). False,
 * after a message, if it cannot interrupt.
 */
bool virtio_interrupt(struct virtio *v, void (*fn)(void *), void *arg);
/* Makes ring i, without buffers. interrupts: it has the device's. False, after a message. */
bool virtio_ring_open(struct virtio *v, unsigned i, struct virtio_ring *r, bool interrupts);
/* From now on the device may use its rings. */
void virtio_start(struct virtio *v);
/*
 * Ends the use of a device, after a message: has it reset itself, and takes the bus from it.
 * Returns false. Any time; any context but NMI.
 */
bool virtio_stop(const struct virtio *v, const char *why);
/*
 * Waits until a device that was stopped says that it is reset (2.4, 4.1.4.3.2), a second at most.
 * False: it may still use the memory of its buffers. Any context but NMI, no lock held.
 */
bool virtio_await_reset(const struct virtio *v);
/* Tells the device of new buffers in ring i. Any context; the ring's lock. */
void virtio_notify(const struct virtio *v, unsigned i);
