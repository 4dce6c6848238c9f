/*
 * intc.c - local APICs (SDM vol. 3A, chapter 11) and I/O APICs (Intel 82093AA data sheet).
 *
 * Locking: only a CPU itself writes its local APIC, with interrupts off. NMI handlers send
 * interrupts, too: see lapic_send(). I/O APIC registers are indirect; one CPU writes them, at boot
 * only.
 */
#include "arch/intc.h"
#include "arch/irq.h"
#include "arch/pci.h"
#include "arch/pio.h"
#include "arch/x86_64/x86.h"
#include "kernel/abi/errno.h"
#include "kernel/entry.h"
#include "kernel/lib/panic.h"

enum { /* local APIC registers, byte offsets */
       LAPIC_ID = 0x20,
       LAPIC_TPR = 0x80,
       LAPIC_EOI = 0xb0,
       LAPIC_SVR = 0xf0,
       LAPIC_ICR_LOW = 0x300,
       LAPIC_ICR_HIGH = 0x310,
       LAPIC_LVT_TIMER = 0x320,
       LAPIC_LVT_LINT0 = 0x350,
       LAPIC_LVT_LINT1 = 0x360,
       LAPIC_LVT_ERROR = 0x370,
       LAPIC_TIMER_INITIAL = 0x380,
       LAPIC_TIMER_CURRENT = 0x390,
       LAPIC_TIMER_DIVIDE = 0x3e0,
};

#define LVT_MASKED   (1u << 16)
#define LVT_NMI      (4u << 8)
#define ICR_PENDING  (1u << 12)
#define DIVIDE_BY_16 3
#define MSI_FIRST    128 /* lines from here on are no I/O APIC's: devices send them */

static volatile uint32_t *lapic;
static volatile uint32_t *ioapics[8];

static uint32_t
lapic_read(unsigned reg)
{
	return lapic[reg / 4];
}

static void
lapic_write(unsigned reg, uint32_t v)
{
	lapic[reg / 4] = v;
}

void
lapic_map(void)
{
	lapic = entry_map_device(acpi.lapic_pa ? acpi.lapic_pa : 0xfee00000, 4096);
	if (lapic == NULL)
		panic("no memory to map the local APIC");
}

void
lapic_init(void)
{
	/*
	 * Enable the APIC in xAPIC mode, which can be reached from x2APIC only through "disabled"
	 * (SDM 11.12.5).
	 */
	uint64_t base = rdmsr(MSR_APIC_BASE);
	if (base & 1 << 10)
		wrmsr(MSR_APIC_BASE, base & ~(3ul << 10));
	wrmsr(MSR_APIC_BASE, (base & ~(1ul << 10)) | 1 << 11);
	lapic_write(LAPIC_SVR, 0x100 | VEC_SPURIOUS);
	lapic_write(LAPIC_LVT_LINT0, LVT_MASKED);
	/* The machine's NMI line reaches every CPU at once. One CPU is enough. */
	lapic_write(LAPIC_LVT_LINT1, arch_cpu() == 0 ? LVT_NMI : LVT_MASKED);
	lapic_write(LAPIC_LVT_ERROR, LVT_MASKED);
	lapic_write(LAPIC_TIMER_DIVIDE, DIVIDE_BY_16);
	lapic_write(LAPIC_LVT_TIMER, VEC_TIMER);
	lapic_write(LAPIC_TIMER_INITIAL, 0);
	lapic_write(LAPIC_TPR, 0);
	lapic_write(LAPIC_EOI, 0);
}

uint32_t
lapic_id(void)
{
	return lapic_read(LAPIC_ID) >> 24;
}

void
lapic_eoi(void)
{
	lapic_write(LAPIC_EOI, 0);
}

static void
icr_wait_idle(void)
{
	while (lapic_read(LAPIC_ICR_LOW) & ICR_PENDING)
		arch_relax();
}

/*
 * The high half of the interrupt command register holds the destination. The write of the low half
 * sends (SDM vol. 3A, 10.6.1). An NMI may come between the two writes, and its handler sends too.
 * So each sender restores the high half, and waits until the register is idle.
 */
void
lapic_send(uint32_t apic_id, uint32_t icr_low)
{
	bool on = arch_irq_enabled();
	uint32_t interrupted;

	arch_irq_disable();
	icr_wait_idle();
	interrupted = lapic_read(LAPIC_ICR_HIGH);
	lapic_write(LAPIC_ICR_HIGH, apic_id << 24);
	lapic_write(LAPIC_ICR_LOW, icr_low);
	icr_wait_idle();
	lapic_write(LAPIC_ICR_HIGH, interrupted);
	if (on)
		arch_irq_enable();
}

uint32_t
lapic_timer_read(void)
{
	return lapic_read(LAPIC_TIMER_CURRENT);
}

void
lapic_timer_start(uint32_t count)
{
	lapic_write(LAPIC_TIMER_INITIAL, count);
}

static void
ioapic_write(volatile uint32_t *io, unsigned reg, uint32_t v)
{
	io[0] = reg;
	io[4] = v;
}

static uint32_t
ioapic_read(volatile uint32_t *io, unsigned reg)
{
	io[0] = reg;
	return io[4];
}

static unsigned
ioapic_lines(volatile uint32_t *io)
{
	return (ioapic_read(io, 1) >> 16 & 0xff) + 1;
}

void
ioapic_init(void)
{
	/*
	 * Move the legacy controllers off the exception vectors, then mask them (8259A data sheet).
	 */
	static const struct {
		uint16_t port;
		uint8_t v;
	} pic[] = {{0x20, 0x11}, {0xa0, 0x11}, {0x21, 0xe0}, {0xa1, 0xe8}, {0x21, 4},
		   {0xa1, 2},    {0x21, 1},    {0xa1, 1},    {0x21, 0xff}, {0xa1, 0xff}};
	for (unsigned i = 0; i < sizeof(pic) / sizeof(pic[0]); i++)
		arch_pio_out8(pic[i].port, pic[i].v);

	for (unsigned i = 0; i < acpi.ioapic_count; i++) {
		ioapics[i] = entry_map_device(acpi.ioapics[i].pa, 4096);
		for (unsigned n = 0; ioapics[i] != NULL && n < ioapic_lines(ioapics[i]); n++)
			ioapic_write(ioapics[i], 0x10 + 2 * n, LVT_MASKED);
	}
}

int
arch_irq_unmask(unsigned gsi)
{
	for (unsigned i = 0; i < acpi.ioapic_count; i++) {
		unsigned n = gsi - acpi.ioapics[i].gsi_base;
		uint32_t mode = 0;

		if (ioapics[i] == NULL || gsi < acpi.ioapics[i].gsi_base ||
		    n >= ioapic_lines(ioapics[i]) || VEC_GSI + gsi >= VEC_GSI_END)
			continue;
		/* ISA lines are edge, high, unless an override says low (3) or level (3 << 2). */
		for (unsigned l = 0; l < 16; l++)
			if (acpi.isa[l].gsi == gsi)
				mode = ((acpi.isa[l].flags & 3) == 3 ? 1u << 13 : 0) |
				       ((acpi.isa[l].flags >> 2 & 3) == 3 ? 1u << 15 : 0);
		ioapic_write(ioapics[i], 0x11 + 2 * n, acpi.apic_ids[0] << 24);
		ioapic_write(ioapics[i], 0x10 + 2 * n, mode | (VEC_GSI + gsi));
		return 0;
	}
	return gsi >= MSI_FIRST && VEC_GSI + gsi < VEC_GSI_END ? 0 : -EINVAL;
}

int
arch_pci_msi(uint64_t *address, uint32_t *data)
{
	static unsigned line = MSI_FIRST;

	if (VEC_GSI + line >= VEC_GSI_END)
		return -1;
	/* To the boot CPU, edge, fixed (SDM vol. 3A, 11.11). */
	*address = 0xfee00000 | acpi.apic_ids[0] << 12;
	*data = VEC_GSI + line;
	return (int)line++;
}

int
arch_pci_intx(unsigned device, unsigned pin)
{
	return -1; /* ACPI says it in code, which this port does not run */
}
