/*
 * net.h - a network card of virtio (Virtio 1.2, 5.1): frames out, frames in. The first card only.
 *
 * Locking: the caller's, one for all functions. But for virtio_net_open(): thread context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIRTIO_NET_FRAME 1514 /* bytes of a frame at most: the header of Ethernet and 1500 */

/*
 * Finds the card and starts it. arrived() is called in interrupt context when frames may have come.
 * False: there is none, or it is not used, after a message. Boot, one CPU.
 */
bool virtio_net_open(uint8_t mac[6], void (*arrived)(void *));
/* Returns room for the next frame to send, VIRTIO_NET_FRAME bytes. NULL while all room holds
 * frames on their way, or if the card is broken. */
void *virtio_net_room(void);
/* Sends `length` bytes of the room. */
void virtio_net_send(uint32_t length);
/* Takes the frames that have come: calls take(arg, frame, length) for each; length is at most
 * VIRTIO_NET_FRAME. True if there may be more: call it again, soon. */
bool virtio_net_receive(void (*take)(void *arg, const void *frame, uint32_t length), void *arg);
