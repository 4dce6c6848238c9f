/*
 * pci.c - scans the PCI buses of the host bridge that the port names (PCI Local Bus 3.0, chapter 6;
 * PCI Express Base 7.2.2, ECAM).
 *
 * Buses of bridges are scanned if firmware has numbered them. Otherwise, and on a machine started
 * without firmware, only the root bus is scanned. Boot, one CPU: no locks.
 */
#include "kernel/dev/pci.h"

#include "arch/pio.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "ktr/ktr.h"

#define PCI_NONE           0xffffffffu
#define PCI_CLASS_16550    0x070002u
#define PCI_CLASS_BRIDGE   0x060400u
#define PCI_MULTI_FUNCTION (1u << 23)
#define PCI_BAR_IO         1u
#define PCI_BAR_64         4u
#define PCI_BAR_IO_MASK    0xfffffffcu
#define PCI_BAR_MASK       0xfffffff0u
#define PCI_BAR_MAX        (16ul << 20)
#define PCI_BUS_SIZE       (1ul << 20)
#define PCI_DEVICES        32
#define PCI_FUNCTIONS      8
#define PCI_PORT_ADDRESS   0xcf8
#define PCI_PORT_DATA      0xcfc

static volatile uint32_t *
pci_reg(const struct pci_function *f, unsigned reg)
{
	return (volatile uint32_t *)(f->host.config + (f->device << 15 | f->function << 12 | reg));
}

/* Configuration mechanism 1 (3.2.2.3.2): one port selects the register. */
static void
pci_select(const struct pci_function *f, unsigned reg)
{
	arch_pio_out32(PCI_PORT_ADDRESS,
		       1u << 31 | f->bus << 16 | f->device << 11 | f->function << 8 | (reg & 0xfc));
}

uint32_t
pci_read(const struct pci_function *f, unsigned reg)
{
	if (!f->host.md.ports)
		return *pci_reg(f, reg);
	pci_select(f, reg);
	return arch_pio_in32(PCI_PORT_DATA);
}

void
pci_write(const struct pci_function *f, unsigned reg, uint32_t v)
{
	if (!f->host.md.ports) {
		*pci_reg(f, reg) = v;
		return;
	}
	pci_select(f, reg);
	arch_pio_out32(PCI_PORT_DATA, v);
}

/* The bits of a BAR that can be set, found by writing ones (6.2.5.1). */
static uint32_t
pci_bar_bits(const struct pci_function *f, unsigned reg)
{
	uint32_t command = pci_read(f, PCI_COMMAND) & 0xffffu, old = pci_read(f, reg), bits;

	/* Meanwhile it answers to no address. */
	pci_write(f, PCI_COMMAND, command & ~(PCI_COMMAND_IO | PCI_COMMAND_MEMORY));
	pci_write(f, reg, ~0u);
	bits = pci_read(f, reg);
	pci_write(f, reg, old);
	pci_write(f, PCI_COMMAND, command);
	return bits;
}

/* Size of BAR 0's port range. 0: none. */
static uint32_t
pci_io_size(const struct pci_function *f)
{
	uint32_t sized = pci_bar_bits(f, PCI_BAR0);

	if (!(sized & PCI_BAR_IO) || (sized & PCI_BAR_IO_MASK) == 0)
		return 0;
	return ~((sized & PCI_BAR_IO_MASK) | 0xffff0000u) + 1;
}

static bool
pci_enable_16550(const struct pci_function *f, uint16_t *port)
{
	const struct arch_pci_host *md = &f->host.md;
	uint32_t size, at;

	size = pci_io_size(f);
	if (size < 8) {
		pr_warn("pci: %02x:%02x.%u: a 16550 without 8 I/O ports, not used\n", f->bus,
			f->device, f->function);
		return false;
	}
	at = pci_read(f, PCI_BAR0) & PCI_BAR_IO_MASK;
	if (at == 0) /* the firmware has assigned none: port 0 is never valid */
		at = (md->io_first == 0 ? size : md->io_first + size - 1) & ~(size - 1);
	if (at + size > 65536 ||
	    (md->io_size != 0 && (at < md->io_first || at + size > md->io_first + md->io_size))) {
		pr_warn("pci: %02x:%02x.%u: no I/O ports for a 16550\n", f->bus, f->device,
			f->function);
		return false;
	}
	pci_write(f, PCI_BAR0, at);
	pci_write(f, PCI_COMMAND, (pci_read(f, PCI_COMMAND) & 0xffffu) | PCI_COMMAND_IO);
	printk("pci: %02x:%02x.%u: 16550 serial port, I/O ports %#x to %#x\n", f->bus, f->device,
	       f->function, at, at + size - 1);
	*port = (uint16_t)at;
	return true;
}

static bool
pci_map_bus(struct pci_host *h, unsigned bus)
{
	static struct pci_host last; /* is mapped already; boot, one CPU */
	uint64_t off = (uint64_t)(bus - h->md.bus_first) * PCI_BUS_SIZE;

	h->bus = bus;
	if (h->md.ports)
		return true;
	if (last.config != NULL && last.bus == bus) {
		h->config = last.config;
		return true;
	}
	if (bus < h->md.bus_first || bus > h->md.bus_last || off + PCI_BUS_SIZE > h->md.ecam_size)
		return false;
	h->config = entry_map_device(h->md.ecam + off, PCI_BUS_SIZE);
	last = *h;
	return h->config != NULL;
}

/* What a search looks for: true, it is found. */
typedef bool pci_match_fn(const struct pci_function *f, void *arg);

/* Checks one function, and adds a bridge's bus to buses. */
static bool
pci_look(const struct pci_function *f, uint64_t buses[4], pci_match_fn *match, void *arg)
{
	uint32_t class = pci_read(f, PCI_CLASS) >> 8;
	unsigned secondary;

	CTR5(KTR_DEV, "pci: bus %u device %u function %u id %#x class %#x", f->bus, f->device,
	     f->function, pci_read(f, PCI_ID), class);
	if (class == PCI_CLASS_BRIDGE) {
		secondary = pci_read(f, PCI_BUSES) >> 8 & 0xff;
		if (secondary > f->bus)
			buses[secondary / 64] |= 1ul << secondary % 64;
	}
	return match(f, arg);
}

static bool
pci_scan_bus(struct pci_function *f, uint64_t buses[4], pci_match_fn *match, void *arg)
{
	f->bus = f->host.bus;
	for (f->device = 0; f->device < PCI_DEVICES; f->device++) {
		unsigned functions = 1;

		for (f->function = 0; f->function < functions; f->function++) {
			if (pci_read(f, PCI_ID) == PCI_NONE)
				continue;
			if (pci_read(f, PCI_HEADER) & PCI_MULTI_FUNCTION)
				functions = PCI_FUNCTIONS;
			if (pci_look(f, buses, match, arg))
				return true;
		}
	}
	return false;
}

/* Finds the first function that matches: it is *f. */
static bool
pci_scan(struct pci_function *f, pci_match_fn *match, void *arg)
{
	/* bit n: scan bus n; a bridge's secondary bus has a higher number */
	uint64_t buses[4] = {0};

	*f = (struct pci_function){0};
	if (!arch_pci_host(&f->host.md))
		return false;
	buses[f->host.md.bus_first / 64] |= 1ul << f->host.md.bus_first % 64;
	for (unsigned bus = f->host.md.bus_first; bus <= f->host.md.bus_last; bus++)
		if ((buses[bus / 64] >> bus % 64 & 1) && pci_map_bus(&f->host, bus) &&
		    pci_scan_bus(f, buses, match, arg))
			return true;
	return false;
}

static bool
pci_is_16550(const struct pci_function *f, void *port)
{
	return pci_read(f, PCI_CLASS) >> 8 == PCI_CLASS_16550 && pci_enable_16550(f, port);
}

bool
pci_find_16550(uint16_t *port)
{
	struct pci_function f;

	return pci_scan(&f, pci_is_16550, port);
}

static struct pci_function known[PCI_DEVICES]; /* what a scan has found */
static uint32_t known_id[PCI_DEVICES];

static bool
pci_remember(const struct pci_function *f, void *arg)
{
	unsigned *found = arg;

	if (*found < PCI_DEVICES) {
		known_id[*found] = pci_read(f, PCI_ID);
		known[*found] = *f;
	}
	++*found;
	return false;
}

static bool
pci_has_id(const struct pci_function *f, void *id)
{
	return pci_read(f, PCI_ID) == *(uint32_t *)id;
}

bool
pci_find(uint32_t id, struct pci_function *f)
{
	static unsigned found;

	if (found == 0) /* one scan, however many drivers ask */
		pci_scan(f, pci_remember, &found);
	for (unsigned i = 0; i < found && i < PCI_DEVICES; i++)
		if (known_id[i] == id) {
			*f = known[i];
			return true;
		}
	return found > PCI_DEVICES && pci_scan(f, pci_has_id, &id);
}

/* Assigns addresses to a BAR: the next of the window. 0: none are left. */
static uint64_t
pci_assign(const struct pci_function *f, unsigned reg, uint64_t size)
{
	static uint64_t next; /* of the window's first address on */
	const struct arch_pci_host *md = &f->host.md;
	uint64_t at = (md->mem_first + next + size - 1) & ~(size - 1);

	if (md->mem_size == 0 || at + size > md->mem_first + md->mem_size)
		return 0;
	next = at + size - md->mem_first;
	pci_write(f, reg, (uint32_t)at);
	return at;
}

volatile void *
pci_map_bar(const struct pci_function *f, unsigned bar, uint64_t *size)
{
	unsigned reg = PCI_BAR0 + 4 * bar;
	uint32_t low = bar < PCI_BARS ? pci_read(f, reg) : PCI_BAR_IO, bits;
	bool wide = (low & 6) == PCI_BAR_64 && bar + 1 < PCI_BARS;
	uint64_t at = (low & PCI_BAR_MASK) | (wide ? (uint64_t)pci_read(f, reg + 4) << 32 : 0);
	const struct arch_pci_host *md = &f->host.md;

	bits = low & PCI_BAR_IO ? 0 : pci_bar_bits(f, reg) & PCI_BAR_MASK;
	*size = (uint32_t)(~bits + 1);
	if (at == 0 && bits != 0)
		at = pci_assign(f, reg, *size);
	if (bits == 0 || at == 0 || *size > PCI_BAR_MAX) {
		pr_warn("pci: %02x:%02x.%u: BAR %u has no addresses\n", f->bus, f->device,
			f->function, bar);
		return NULL;
	}
	pci_write(f, PCI_COMMAND,
		  (pci_read(f, PCI_COMMAND) & 0xffffu & ~PCI_COMMAND_INTX) | PCI_COMMAND_MEMORY |
		      PCI_COMMAND_MASTER);
	if (at >= md->mem_first && at - md->mem_first < md->mem_size)
		at += md->mem_pa - md->mem_first;
	return entry_map_device(at, *size);
}
