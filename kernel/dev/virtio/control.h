/*
 * control.h - messages of the control queues of a console of virtio (Virtio 1.2, 5.3.6.2): a pure
 * parser.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIRTIO_PORT_NAME 32 /* bytes of a port's name, with the zero byte */

enum virtio_control_event {
	VIRTIO_CONSOLE_DEVICE_READY,
	VIRTIO_CONSOLE_DEVICE_ADD,
	VIRTIO_CONSOLE_DEVICE_REMOVE,
	VIRTIO_CONSOLE_PORT_READY,
	VIRTIO_CONSOLE_CONSOLE_PORT,
	VIRTIO_CONSOLE_RESIZE,
	VIRTIO_CONSOLE_PORT_OPEN,
	VIRTIO_CONSOLE_PORT_NAME,
};

/* A control message, as it is in a buffer. A name follows. */
struct virtio_control {
	uint32_t port;
	uint16_t event, value;
};

_Static_assert(sizeof(struct virtio_control) == 8, "struct virtio_console_control");

/*
 * Reads a message of `length` bytes. name becomes the name in a PORT_NAME message, cut to printable
 * characters, and "" for others. False if the message is too short, or is about no port below
 * `ports`; only a DEVICE_ADD may be about any number. Any context.
 */
bool virtio_control_read(const volatile void *bytes, uint32_t length, unsigned ports,
			 struct virtio_control *m, char name[VIRTIO_PORT_NAME]);
