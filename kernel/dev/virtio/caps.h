/* caps.h - where a device of virtio has its registers (Virtio 1.2, 4.1.4): a pure parser. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum virtio_cfg { VIRTIO_COMMON = 1, VIRTIO_NOTIFY, VIRTIO_ISR, VIRTIO_DEVICE, VIRTIO_CFGS };

struct virtio_place {
	bool found;
	uint8_t bar;
	uint32_t offset, length; /* offset + length is no more than 2^32 */
};

struct virtio_caps {
	struct virtio_place cfg[VIRTIO_CFGS]; /* by enum virtio_cfg */
	uint32_t notify_multiplier;
	struct virtio_place msix; /* its table */
	unsigned msix_control; /* offset of the register with the control word, in bytes; 0: none */
	unsigned msix_vectors;
};

/*
 * Reads the 256 bytes of configuration space. False: what every device has is missing, or too
 * small. Any context.
 */
bool virtio_caps_parse(const uint8_t config[256], struct virtio_caps *caps);
