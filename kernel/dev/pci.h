/* pci.h - what this kernel wants from PCI: one serial port. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the first serial port with a 16550's registers (class 0x0700, interface 2) in I/O ports,
 * assigns ports if firmware did not, and enables it. *port: its first port. False: there is none.
 * Boot, after arch_machine_init().
 */
bool pci_find_16550(uint16_t *port);
