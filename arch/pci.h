/* pci.h - contract: the PCI host bridge. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_pci_host {
	/* Configuration space is reached through I/O ports (PCI Local Bus 3.0, 3.2.2.3.2), and not
	 * at ecam. */
	bool ports;
	uint64_t ecam, ecam_size;    /* configuration space (PCI Express Base 7.2.2), physical */
	uint8_t bus_first, bus_last; /* bus_first is at ecam */
	uint32_t io_first, io_size;  /* I/O ports that may be assigned; 0: none */
	/* Addresses on the bus that may be assigned, below 4 GiB, and the first one's physical
	 * address; 0: none */
	uint64_t mem_first, mem_size, mem_pa;
};

/* Finds the PCI host. False: there is none to scan. After arch_machine_init(). */
bool arch_pci_host(struct arch_pci_host *h);
/*
 * A line that is raised by writing *data to *address, as MSI-X does. Each call gives another one.
 * -1: there is none. Boot, one CPU.
 */
int arch_pci_msi(uint64_t *address, uint32_t *data);
/* The line, level-sensitive, of a device's pin 1 to 4 on the first bus. -1: not known. */
int arch_pci_intx(unsigned device, unsigned pin);
