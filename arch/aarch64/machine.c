/*
 * machine.c - the board: ordered set-up, serial lines, the PCI host bridge, power-off and reset.
 */
#include "arch/machine.h"
#include "arch/aarch64/a64.h"
#include "arch/debug.h"
#include "arch/fixup.h"
#include "arch/irq.h"
#include "arch/pci.h"
#include "kernel/entry.h"
#include "kernel/sched/thread.h"

volatile uint8_t *aarch64_pio;

void
arch_machine_init(void)
{
	intc_init();
	if (devtree.pci_io_size != 0) {
		volatile uint8_t *window = entry_map_device(devtree.pci_io_pa, devtree.pci_io_size);
		if (window != NULL)
			aarch64_pio = window - devtree.pci_io_first;
	}
}

struct arch_uart
arch_uart(unsigned n)
{
	struct arch_uart u = {.kind = ARCH_UART_NONE, .gsi = ARCH_NO_IRQ};

	if (n == 0 && devtree.console_pa != 0) {
		u.kind = ARCH_UART_PL011;
		u.regs = aarch64_map_early(devtree.console_pa);
		u.gsi = devtree.console_intid;
	}
	return u;
}

bool
arch_pci_host(struct arch_pci_host *h)
{
	*h = (struct arch_pci_host){
	    .ecam = devtree.ecam.base,
	    .ecam_size = devtree.ecam.size,
	    .bus_first = devtree.bus_first,
	    .bus_last = devtree.bus_last,
	    .io_first = devtree.pci_io_first,
	    .io_size = aarch64_pio != NULL ? devtree.pci_io_size : 0,
	    .mem_first = devtree.pci_mem_first,
	    .mem_size = devtree.pci_mem.size,
	    .mem_pa = devtree.pci_mem.base,
	};
	return h->ecam_size != 0;
}

int
arch_pci_msi(uint64_t *address, uint32_t *data)
{
	return -1; /* no MSI: interrupts by pins work with every GIC */
}

int
arch_pci_intx(unsigned device, unsigned pin)
{
	unsigned intid = pin >= 1 && pin <= 4 ? devtree.pci_intid[device % 4][pin - 1] : 0;

	return intid != 0 ? (int)intid : -1;
}

/*
 * SYS_EXIT_EXTENDED (Semihosting for AArch32 and AArch64, 5.2): the emulator exits with this
 * status. If no emulator answers, HLT is undefined, and the fix-up continues after it.
 */
static void
semihosting_exit(uint64_t status)
{
	uint64_t block[2] = {0x20026 /* ADP_Stopped_ApplicationExit */, status};
	register uint64_t x0 __asm__("x0") = 0x20;
	register uint64_t x1 __asm__("x1") = (uint64_t)block;

	__asm__ volatile("1:\thlt #0xf000\n"
			 "2:\n" ARCH_FIXUP("1b", "2b")
			 : "+r"(x0)
			 : "r"(x1)
			 : "memory");
}

void
arch_poweroff(unsigned status)
{
	arch_irq_disable();
	/* Add two, since QEMU itself exits with 0 and 1. */
	semihosting_exit(status + 2);
	psci_system_off();
	for (;;)
		__asm__ volatile("wfi");
}

void
arch_reboot(void)
{
	arch_irq_disable();
	psci_system_reset();
	for (;;)
		__asm__ volatile("wfi");
}

void
arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp)
{
	*pc = t->ctx.pc;
	*sp = t->ctx.sp;
	*fp = t->ctx.x19_x29[10];
}
