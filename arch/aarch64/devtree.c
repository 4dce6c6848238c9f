/*
 * devtree.c - the facts that this port takes from the device tree (Devicetree Specification 0.4;
 * the bindings in Linux's Documentation/devicetree).
 *
 * The tree is read once, on the boot tables. There is no console yet, so devtree_complain() reports
 * errors later.
 */
#include "arch/aarch64/a64.h"
#include "arch/machine.h"
#include "arch/mmu.h"
#include "kernel/lib/fdt.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"

#define BLOB_MAX   (2ul << 20) /* Linux Documentation/arm64/booting.rst, 2 */
#define GIB        (1ul << 30)
#define BOOT_REACH (512 * GIB) /* mapped by the one table that boot.S made for the direct map */

/* Cells of an interrupt (arm,gic bindings): kind, number within that kind, trigger. */
#define IRQ_SPI       0
#define IRQ_PPI       1
#define IRQ_EDGE_MASK 3

struct devtree_facts devtree;
extern uint64_t boot_direct_l1[512];
extern char __kernel_start[], __kernel_end[];

static const char *complaints[16];
static unsigned complaint_count;

static void
devtree_warn(const char *what)
{
	if (complaint_count < sizeof(complaints) / sizeof(complaints[0]))
		complaints[complaint_count++] = what;
}

void
devtree_complain(void)
{
	for (unsigned i = 0; i < complaint_count; i++)
		pr_warn("device tree: %s\n", complaints[i]);
}

static void
devtree_add_memory(uint64_t start, uint64_t size)
{
	uint64_t end = start + size;

	if (end < start) {
		devtree_warn("memory that ends before it begins is not used");
		return;
	}
	if (end > BOOT_REACH) {
		devtree_warn("memory above 512 GiB is not used");
		end = BOOT_REACH;
	}
	if (start >= end)
		return;
	boot_add_range(start, end - start, BOOT_RAM);
	for (uint64_t at = start & ~(GIB - 1); at < end; at += GIB)
		boot_direct_l1[at / GIB] = at | BOOT_BLOCK;
	arch_mmu_sync();
}

static void
devtree_read_memory(const struct fdt *f)
{
	uint64_t base, size;
	int node;

	for (node = fdt_find_device_type(f, -1, "memory"); node >= 0;
	     node = fdt_find_device_type(f, node, "memory"))
		for (unsigned i = 0; fdt_available(f, node) && fdt_reg(f, node, i, &base, &size);
		     i++)
			devtree_add_memory(base, size);
	for (unsigned i = 0; fdt_memreserve(f, i, &base, &size); i++)
		boot_reserve(base, size);
	node = fdt_path(f, "/reserved-memory");
	for (node = node >= 0 ? fdt_first_child(f, node) : -1; node >= 0;
	     node = fdt_next_sibling(f, node))
		for (unsigned i = 0; fdt_available(f, node) && fdt_reg(f, node, i, &base, &size);
		     i++)
			boot_reserve(base, size);
}

/* Value of a property of one or two cells. */
static bool
devtree_read_number(const struct fdt *f, int node, const char *name, uint64_t *v)
{
	uint32_t len;
	const uint8_t *p = fdt_prop(f, node, name, &len);

	if (p == NULL || (len != 4 && len != 8))
		return false;
	*v = 0;
	for (uint32_t i = 0; i < len; i++)
		*v = *v << 8 | p[i];
	return true;
}

static void
read_chosen(const struct fdt *f)
{
	int node = fdt_path(f, "/chosen");
	uint64_t start, end;
	const char *args;

	if (node < 0) {
		devtree_warn("no node /chosen: no command line, no RAM disk");
		return;
	}
	args = fdt_prop_string(f, node, "bootargs");
	if (args != NULL)
		boot_info.cmdline = args;
	if (!devtree_read_number(f, node, "linux,initrd-start", &start) ||
	    !devtree_read_number(f, node, "linux,initrd-end", &end))
		return;
	if (end <= start || end > BOOT_REACH) {
		devtree_warn("linux,initrd-start and -end are not a range of memory");
		return;
	}
	boot_add_module("initrd.cpio", start, end - start);
}

static void
read_cpus(const struct fdt *f)
{
	int cpus = fdt_path(f, "/cpus");
	uint64_t self = arch_this_pcpu()->mpidr, id, size;

	for (int node = cpus >= 0 ? fdt_first_child(f, cpus) : -1; node >= 0;
	     node = fdt_next_sibling(f, node)) {
		const char *type = fdt_prop_string(f, node, "device_type");
		const char *method = fdt_prop_string(f, node, "enable-method");

		if (type == NULL || strcmp(type, "cpu") != 0 || !fdt_available(f, node) ||
		    !fdt_reg(f, node, 0, &id, &size))
			continue;
		if (id != self && (method == NULL || strcmp(method, "psci") != 0)) {
			devtree_warn("a CPU without enable-method \"psci\" is not used");
			continue;
		}
		if (devtree.cpu_count < DEVTREE_CPUS)
			devtree.cpus[devtree.cpu_count++] = id & MPIDR_AFFINITY;
		else
			devtree_warn("more than 64 CPUs; the rest is not used");
	}
	if (devtree.cpu_count == 0)
		devtree.cpus[devtree.cpu_count++] = self;
}

static void
read_psci(const struct fdt *f)
{
	int node = fdt_find_compatible(f, -1, "arm,psci-0.2"); /* PSCI 1.0 has this string, too */
	const char *method;

	if (node < 0)
		node = fdt_find_compatible(f, -1, "arm,psci-1.0");
	method = node >= 0 ? fdt_prop_string(f, node, "method") : NULL;
	if (method == NULL || (strcmp(method, "hvc") != 0 && strcmp(method, "smc") != 0)) {
		devtree_warn("no PSCI 0.2 with method \"hvc\" or \"smc\": one CPU, no power-off");
		return;
	}
	devtree.psci = true;
	devtree.psci_smc = strcmp(method, "smc") == 0;
}

static bool
devtree_read_region(const struct fdt *f, int node, unsigned i, struct devtree_region *r)
{
	return fdt_reg(f, node, i, &r->base, &r->size) && r->size != 0;
}

static void
read_gic(const struct fdt *f)
{
	static const char *const gicv2[] = {"arm,gic-400", "arm,cortex-a15-gic",
					    "arm,cortex-a7-gic", "arm,cortex-a9-gic"};
	int node = fdt_find_compatible(f, -1, "arm,gic-v3");
	uint32_t regions = 1;

	if (node >= 0) {
		fdt_prop_u32(f, node, "#redistributor-regions", &regions);
		devtree_read_number(f, node, "redistributor-stride", &devtree.redist_stride);
		for (unsigned i = 0; i < regions && i < DEVTREE_REDIST; i++)
			if (devtree_read_region(f, node, i + 1, &devtree.redist[i]))
				devtree.redist_count++;
		if (devtree_read_region(f, node, 0, &devtree.gicd) && devtree.redist_count > 0)
			devtree.gic = 3;
		return;
	}
	for (unsigned i = 0; i < sizeof(gicv2) / sizeof(gicv2[0]) && node < 0; i++)
		node = fdt_find_compatible(f, -1, gicv2[i]);
	if (node >= 0 && devtree_read_region(f, node, 0, &devtree.gicd) &&
	    devtree_read_region(f, node, 1, &devtree.gicc))
		devtree.gic = 2;
}

/* Entry i of a node's interrupts. ARCH_NO_IRQ: not a level-sensitive interrupt of the GIC. */
static unsigned
devtree_interrupt(const struct fdt *f, int node, unsigned i)
{
	uint32_t cells[FDT_INTERRUPT_CELLS];
	unsigned count;
	int controller;

	if (!fdt_interrupt(f, node, i, cells, &count, &controller) || count < 3)
		return ARCH_NO_IRQ;
	if (cells[0] == IRQ_SPI && cells[1] < 988 && !(cells[2] & IRQ_EDGE_MASK))
		return 32 + cells[1];
	if (cells[0] == IRQ_PPI && cells[1] < 16)
		return 16 + cells[1];
	return ARCH_NO_IRQ;
}

static void
read_timer(const struct fdt *f)
{
	int node = fdt_find_compatible(f, -1, "arm,armv8-timer");

	/* The order is: secure physical, physical, virtual, hypervisor. */
	devtree.timer_intid = node >= 0 ? devtree_interrupt(f, node, 2) : ARCH_NO_IRQ;
	if (node >= 0)
		fdt_prop_u32(f, node, "clock-frequency", &devtree.timer_hz);
	if (devtree.timer_intid == ARCH_NO_IRQ) {
		devtree_warn("no arm,armv8-timer with a virtual timer: interrupt 27 is assumed");
		devtree.timer_intid = 27; /* Base System Architecture (DEN 0094), its PPI 11 */
	}
}

static void
read_console(const struct fdt *f)
{
	int chosen = fdt_path(f, "/chosen");
	const char *path = chosen >= 0 ? fdt_prop_string(f, chosen, "stdout-path") : NULL;
	int node = path != NULL ? fdt_path(f, path) : -1;
	struct devtree_region r;

	if (node < 0 || !fdt_compatible(f, node, "arm,pl011"))
		node = fdt_find_compatible(f, -1, "arm,pl011");
	devtree.console_intid = ARCH_NO_IRQ;
	if (node < 0 || !fdt_available(f, node) || !devtree_read_region(f, node, 0, &r))
		return; /* there is no console for a message */
	devtree.console_pa = r.base;
	devtree.console_intid = devtree_interrupt(f, node, 0);
}

static void
read_rtc(const struct fdt *f)
{
	int node = fdt_find_compatible(f, -1, "arm,pl031");
	struct devtree_region r;

	if (node >= 0 && fdt_available(f, node) && devtree_read_region(f, node, 0, &r))
		devtree.rtc_pa = r.base;
}

/* Which interrupts the pins of PCI devices are. */
static void
read_pci_map(const struct fdt *f, int node)
{
	uint32_t cells[FDT_INTERRUPT_CELLS], hi, pin, len;
	const uint8_t *mask = fdt_prop(f, node, "interrupt-map-mask", &len);
	unsigned count;

	/* Takes a map of which only the lowest 2 bits of a device's number, and the pin, count. */
	if (mask == NULL || len != 16 || fdt_cell(mask) != 3u << 11 || fdt_cell(mask + 12) != 7)
		return;
	for (unsigned i = 0; fdt_interrupt_map(f, node, i, &hi, &pin, cells, &count); i++)
		if (pin >= 1 && pin <= 4 && count == 3 && cells[0] == IRQ_SPI && cells[1] < 988 &&
		    !(cells[2] & IRQ_EDGE_MASK))
			devtree.pci_intid[hi >> 11 & 3][pin - 1] = 32 + cells[1];
}

static void
read_pci(const struct fdt *f)
{
	int node = fdt_find_compatible(f, -1, "pci-host-ecam-generic");
	struct fdt_range r;
	uint32_t len;
	const uint8_t *bus;

	if (node < 0 || !fdt_available(f, node) || !devtree_read_region(f, node, 0, &devtree.ecam))
		return;
	devtree.bus_last = (uint8_t)((devtree.ecam.size >> 20) - 1);
	bus = fdt_prop(f, node, "bus-range", &len);
	if (bus != NULL && len == 8) {
		devtree.bus_first = bus[3];
		devtree.bus_last = bus[7];
	}
	read_pci_map(f, node);
	for (unsigned i = 0; fdt_range(f, node, i, &r); i++) {
		/* Space code of the first cell: 1 is I/O, 2 is memory (IEEE 1275 PCI
		 * binding, 2.2.1.1). */
		if ((r.child_hi >> 24 & 3) == 2 && r.child < 1ul << 32) {
			devtree.pci_mem = (struct devtree_region){r.parent, r.size};
			devtree.pci_mem_first = r.child;
		}
		if ((r.child_hi >> 24 & 3) != 1 || r.child >= 65536)
			continue;
		devtree.pci_io_pa = r.parent;
		devtree.pci_io_first = (uint32_t)r.child;
		devtree.pci_io_size =
		    (uint32_t)(r.size < 65536 - r.child ? r.size : 65536 - r.child);
	}
}

void
devtree_init(const void *blob)
{
	const char *model;
	struct fdt f;
	int error;

	boot_reserve(aarch64_kernel_phys, (uint64_t)(__kernel_end - __kernel_start));
	boot_info.mapped_end = BOOT_REACH;
	error = fdt_open(&f, blob, BLOB_MAX);
	if (error != 0)
		panic("no device tree at %#lx", virt_to_phys(blob));
	boot_reserve(virt_to_phys(blob), f.size);
	model = fdt_prop_string(&f, fdt_root(&f), "model");
	if (model != NULL)
		strlcpy(devtree.model, model, sizeof(devtree.model));
	read_console(&f);
	devtree_read_memory(&f);
	read_chosen(&f);
	read_cpus(&f);
	read_psci(&f);
	read_gic(&f);
	read_timer(&f);
	read_rtc(&f);
	read_pci(&f);
}
