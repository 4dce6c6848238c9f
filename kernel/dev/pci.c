/*
 * pci.c - scans the PCI buses of the host bridge that the port names (PCI Local Bus 3.0, chapter 6;
 * PCI Express Base 7.2.2, ECAM).
 *
 * Buses of bridges are scanned if firmware has numbered them. Otherwise, and on a machine started
 * without firmware, only the root bus is scanned. Boot, one CPU: no locks.
 */
#include "kernel/dev/pci.h"

#include "arch/pci.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "ktr/ktr.h"

enum { /* configuration registers, byte offsets */
       PCI_ID = 0x00,
       PCI_COMMAND = 0x04,
       PCI_CLASS = 0x08,  /* class, subclass, interface, revision */
       PCI_HEADER = 0x0c, /* header type in bits 16 to 23 */
       PCI_BAR0 = 0x10,
       PCI_BUSES = 0x18, /* of a bridge: primary, secondary, subordinate */
};

#define PCI_NONE           0xffffffffu
#define PCI_CLASS_16550    0x070002u
#define PCI_CLASS_BRIDGE   0x060400u
#define PCI_COMMAND_IO     1u
#define PCI_MULTI_FUNCTION (1u << 23)
#define PCI_BAR_IO         1u
#define PCI_BAR_IO_MASK    0xfffffffcu
#define PCI_BUS_SIZE       (1ul << 20)
#define PCI_DEVICES        32
#define PCI_FUNCTIONS      8

struct pci_host {
	struct arch_pci_host md;
	unsigned bus; /* the mapped bus */
	volatile char *config;
};

struct pci_function {
	unsigned bus, device, function;
};

static volatile uint32_t *
pci_reg(const struct pci_host *h, const struct pci_function *f, unsigned reg)
{
	return (volatile uint32_t *)(h->config + (f->device << 15 | f->function << 12 | reg));
}

/* Size of BAR 0's port range, found by writing ones (PCI Local Bus 3.0, 6.2.5.1). 0: none. */
static uint32_t
pci_io_size(const struct pci_host *h, const struct pci_function *f)
{
	volatile uint32_t *bar = pci_reg(h, f, PCI_BAR0);
	uint32_t old = *bar, sized;

	*bar = ~0u;
	sized = *bar;
	*bar = old;
	if (!(sized & PCI_BAR_IO) || (sized & PCI_BAR_IO_MASK) == 0)
		return 0;
	return ~((sized & PCI_BAR_IO_MASK) | 0xffff0000u) + 1;
}

static bool
pci_enable_16550(struct pci_host *h, const struct pci_function *f, uint16_t *port)
{
	volatile uint32_t *bar = pci_reg(h, f, PCI_BAR0), *command = pci_reg(h, f, PCI_COMMAND);
	uint32_t size, at;

	*command &= 0xffffu & ~PCI_COMMAND_IO; /* the upper half is status: zeroes change nothing */
	size = pci_io_size(h, f);
	if (size < 8) {
		warnk("pci: %02x:%02x.%u: a 16550 without 8 I/O ports, not used\n", f->bus,
		      f->device, f->function);
		return false;
	}
	at = *bar & PCI_BAR_IO_MASK;
	if (at == 0) { /* not assigned by firmware: port 0 is never valid */
		at = (h->md.io_first == 0 ? size : h->md.io_first + size - 1) & ~(size - 1);
		if (at + size > h->md.io_first + h->md.io_size || at + size > 65536) {
			warnk("pci: %02x:%02x.%u: no I/O ports left for a 16550\n", f->bus,
			      f->device, f->function);
			return false;
		}
		*bar = at;
	}
	*command = (*command & 0xffffu) | PCI_COMMAND_IO;
	printk("pci: %02x:%02x.%u: 16550 serial port, I/O ports %#x to %#x\n", f->bus, f->device,
	       f->function, at, at + size - 1);
	*port = (uint16_t)at;
	return true;
}

static bool
pci_map_bus(struct pci_host *h, unsigned bus)
{
	uint64_t off = (uint64_t)(bus - h->md.bus_first) * PCI_BUS_SIZE;

	if (bus < h->md.bus_first || bus > h->md.bus_last || off + PCI_BUS_SIZE > h->md.ecam_size)
		return false;
	h->bus = bus;
	h->config = entry_map_device(h->md.ecam + off, PCI_BUS_SIZE);
	return h->config != NULL;
}

/* Checks one function, and adds a bridge's bus to buses. True: the serial port, enabled. */
static bool
pci_look(struct pci_host *h, const struct pci_function *f, uint64_t buses[4], uint16_t *port)
{
	uint32_t id = *pci_reg(h, f, PCI_ID), class = *pci_reg(h, f, PCI_CLASS) >> 8;
	unsigned secondary;

	CTR5(KTR_DEV, "pci: bus %u device %u function %u id %#x class %#x", f->bus, f->device,
	     f->function, id, class);
	if (class == PCI_CLASS_16550)
		return pci_enable_16550(h, f, port);
	if (class == PCI_CLASS_BRIDGE) {
		secondary = *pci_reg(h, f, PCI_BUSES) >> 8 & 0xff;
		if (secondary > f->bus)
			buses[secondary / 64] |= 1ul << secondary % 64;
	}
	return false;
}

static bool
pci_scan_bus(struct pci_host *h, uint64_t buses[4], uint16_t *port)
{
	struct pci_function f = {.bus = h->bus};

	for (f.device = 0; f.device < PCI_DEVICES; f.device++) {
		unsigned functions = 1;

		for (f.function = 0; f.function < functions; f.function++) {
			if (*pci_reg(h, &f, PCI_ID) == PCI_NONE)
				continue;
			if (*pci_reg(h, &f, PCI_HEADER) & PCI_MULTI_FUNCTION)
				functions = PCI_FUNCTIONS;
			if (pci_look(h, &f, buses, port))
				return true;
		}
	}
	return false;
}

bool
pci_find_16550(uint16_t *port)
{
	struct pci_host h = {0};
	uint64_t buses[4] = {
	    0}; /* bit n: scan bus n; a bridge's secondary bus has a higher number */

	if (!arch_pci_host(&h.md))
		return false;
	buses[h.md.bus_first / 64] |= 1ul << h.md.bus_first % 64;
	for (unsigned bus = h.md.bus_first; bus <= h.md.bus_last; bus++)
		if ((buses[bus / 64] >> bus % 64 & 1) && pci_map_bus(&h, bus) &&
		    pci_scan_bus(&h, buses, port))
			return true;
	return false;
}
