/* md/pio.h - aarch64: the window of the PCI host bridge, once machine.c has mapped it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern volatile uint8_t *aarch64_pio; /* NULL: no bridge; then every port reads as all ones */

static inline uint8_t
arch_pio_in8(uint16_t port)
{
	return aarch64_pio != NULL ? aarch64_pio[port] : 0xff;
}

static inline void
arch_pio_out8(uint16_t port, uint8_t v)
{
	if (aarch64_pio != NULL)
		aarch64_pio[port] = v;
}

static inline uint32_t
arch_pio_in32(uint16_t port)
{
	return aarch64_pio != NULL ? *(volatile uint32_t *)(aarch64_pio + port) : ~0u;
}

static inline void
arch_pio_out32(uint16_t port, uint32_t v)
{
	if (aarch64_pio != NULL)
		*(volatile uint32_t *)(aarch64_pio + port) = v;
}
