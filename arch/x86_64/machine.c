/*
 * machine.c - the PC: ordered set-up, serial lines, power-off and reset.
 */
#include "arch/machine.h"
#include "arch/debug.h"
#include "arch/irq.h"
#include "arch/pci.h"
#include "arch/pio.h"
#include "arch/uaccess.h"
#include "arch/x86_64/x86.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"
#include "kernel/sched/thread.h"

#define PCI_MEM_FIRST 0xfd000000ul
#define PCI_MEM_END   0xfec00000ul

void
arch_machine_init(void)
{
	acpi_init(boot_info.firmware);
	lapic_map();
	lapic_init();
	ioapic_init();
}

struct arch_uart
arch_uart(unsigned n)
{
	/* COM1 and COM2: fixed since the PC/AT. */
	static const struct {
		uint16_t port;
		uint8_t line;
	} com[] = {{0x3f8, 4}, {0x2f8, 3}};

	if (n >= 2)
		return (struct arch_uart){.kind = ARCH_UART_NONE, .gsi = ARCH_NO_IRQ};
	return (struct arch_uart){.kind = ARCH_UART_16550,
				  .port = com[n].port,
				  .gsi = acpi.isa[com[n].line].gsi};
}

bool
arch_pci_host(struct arch_pci_host *h)
{
	/* Firmware has assigned all addresses, or, on microvm, none. Then those below the I/O
	 * APIC's are free, where no PC has memory. */
	*h = (struct arch_pci_host){.ports = true,
				    .bus_last = 255,
				    .mem_first = PCI_MEM_FIRST,
				    .mem_size = PCI_MEM_END - PCI_MEM_FIRST,
				    .mem_pa = PCI_MEM_FIRST};
	return true;
}

static void
machine_out16(uint16_t port, uint16_t v)
{
	__asm__ volatile("outw %0, %1" : : "a"(v), "Nd"(port));
}

void
arch_poweroff(unsigned status)
{
	arch_irq_disable();
	/*
	 * QEMU's isa-debug-exit ends the process with (value << 1) | 1. Add one, so that status 0
	 * differs from QEMU's own failures. On other machines this port does nothing.
	 */
	__asm__ volatile("outl %0, %w1" : : "a"(status + 1), "d"(0xf4));
	/* SLP_TYPa and SLP_EN (ACPI 4.8.3.2.1). */
	if (acpi.s5_known)
		machine_out16(acpi.pm1a_cnt, (uint16_t)(acpi.s5_typa << 10 | 1 << 13));
	for (;;)
		__asm__ volatile("cli; hlt");
}

void
arch_reboot(void)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) none = {0, 0};

	arch_irq_disable();
	if (acpi.reset_value != 0) {
		arch_pio_out8(acpi.reset_port, acpi.reset_value);
		clock_delay_ns(50000000);
	}
	arch_pio_out8(0x64, 0xfe); /* keyboard controller: pulse reset */
	clock_delay_ns(50000000);
	/* A fault with no interrupt table is a triple fault. */
	__asm__ volatile("lidt %0; int3" : : "m"(none));
	for (;;)
		__asm__ volatile("hlt");
}

void
arch_context_frame(const struct thread *t, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp)
{
	/* As saved by arch_context_switch(): r15 r14 r13 r12 rbx rbp, return address. */
	uint64_t saved[7];

	if (!arch_probe_copy(saved, (void *)t->ctx.sp, sizeof(saved)))
		memset(saved, 0, sizeof(saved));
	*fp = saved[5];
	*pc = saved[6];
	*sp = t->ctx.sp + sizeof(saved);
}
