/* pci.h - what this kernel wants from PCI: one serial port. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the first serial port with a 16550's registers (class 0x0700, interface 2) by which I/O
 * ports are decoded, gives it some where firmware did not, and switches it on. False: there is
 * none. Boot, after arch_machine_init().
 */
bool pci_find_16550(uint16_t *port);
