/* control.c - reads a message of a control queue (control.h). Each byte may be wrong. */
#include "kernel/dev/virtio/control.h"

bool
virtio_control_read(const volatile void *bytes, uint32_t length, unsigned ports,
		    struct virtio_control *m, char name[VIRTIO_PORT_NAME])
{
	const volatile uint8_t *p = bytes;
	unsigned n = 0;

	name[0] = '\0';
	if (length < sizeof(*m))
		return false;
	m->port = p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
	m->event = (uint16_t)(p[4] | p[5] << 8);
	m->value = (uint16_t)(p[6] | p[7] << 8);
	if (m->event == VIRTIO_CONSOLE_PORT_NAME)
		for (uint32_t i = sizeof(*m); i < length && n < VIRTIO_PORT_NAME - 1; i++) {
			uint8_t c = p[i];

			if (c < ' ' || c > '~') /* it may end in a zero byte */
				break;
			name[n++] = (char)c;
		}
	name[n] = '\0';
	return m->event == VIRTIO_CONSOLE_DEVICE_ADD || m->port < ports;
}
