/* pci.h - contract: the PCI host bridge. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arch_pci_host {
	uint64_t ecam, ecam_size;    /* configuration space (PCI Express Base 7.2.2), physical */
	uint8_t bus_first, bus_last; /* bus_first is at ecam */
	uint32_t io_first, io_size;  /* I/O ports that may be assigned; 0: none */
};

/* False: this machine has none that drivers must scan. After arch_machine_init(). */
bool arch_pci_host(struct arch_pci_host *h);
