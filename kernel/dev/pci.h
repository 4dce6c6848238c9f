/*
 * pci.h - devices on PCI: finding them, their registers, their memory.
 *
 * Boot, after arch_machine_init(), one CPU: no locks. Later only a driver writes a register of its
 * own device, under a lock of its own: virtio_stop().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arch/pci.h"

/* Registers of configuration space, byte offsets (PCI Local Bus 3.0, chapter 6). */
enum {
	PCI_ID = 0x00,
	PCI_COMMAND = 0x04, /* and status, in the upper half: zeroes written there change nothing */
	PCI_CLASS = 0x08,   /* class, subclass, interface, revision */
	PCI_HEADER = 0x0c,  /* header type in bits 16 to 23 */
	PCI_BAR0 = 0x10,
	PCI_BUSES = 0x18, /* of a bridge: primary, secondary, subordinate */
	PCI_CAPABILITIES = 0x34,
	PCI_INTERRUPT = 0x3c, /* the pin in bits 8 to 15 */
};

#define PCI_CONFIG_SIZE 256
#define PCI_BARS        6

#define PCI_COMMAND_IO     1u
#define PCI_COMMAND_MEMORY 2u
#define PCI_COMMAND_MASTER 4u
#define PCI_COMMAND_INTX   0x400u /* its pin does not interrupt */

struct pci_host {
	struct arch_pci_host md;
	unsigned bus; /* the mapped bus */
	volatile char *config;
};

struct pci_function {
	struct pci_host host;
	unsigned bus, device, function;
};

uint32_t pci_read(const struct pci_function *f, unsigned reg);
void pci_write(const struct pci_function *f, unsigned reg, uint32_t v);
/* Finds the first function with this PCI_ID: the device's number in the upper half. False: none. */
bool pci_find(uint32_t id, struct pci_function *f);
/*
 * Maps the memory of a BAR, 0 to 5; assigns addresses if firmware did not. *size: bytes. NULL,
 * after a message: it is no memory, none is left, or it has more than 16 MiB.
 */
volatile void *pci_map_bar(const struct pci_function *f, unsigned bar, uint64_t *size);
/*
 * Finds the first serial port with a 16550's registers (class 0x0700, interface 2) in I/O ports,
 * assigns ports if firmware did not, and enables it. *port: its first port. False: there is none.
 */
bool pci_find_16550(uint16_t *port);
