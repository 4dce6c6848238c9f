/* pio.h - contract: I/O ports, directly or through the window of a PCI bridge. Any context. */
#pragma once

#include <stdint.h>

static inline uint8_t arch_pio_in8(uint16_t port);
static inline void arch_pio_out8(uint16_t port, uint8_t v);
static inline uint32_t arch_pio_in32(uint16_t port);
static inline void arch_pio_out32(uint16_t port, uint32_t v);

#include <md/pio.h>
