/*
 * smp.c - starts the other CPUs; interprocessor interrupts; the NMI.
 *
 * CPUs are started one at a time: ap_pcpu, ap_root and ap_stack_top belong to the one being
 * started.
 */
#include "arch/smp.h"
#include "arch/clock.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"

#define AP_PAGE 0x8000ul /* as in boot.S; the first MiB is never allocated */

extern struct pcpu *ap_pcpu;
extern uintptr_t ap_stack_top;
extern uint64_t ap_root;
extern char ap_code[], ap_code_end[];
void x86_start_secondary(void);

/*
 * The turns of check_tsc(), atomic: 0, the new CPU is on its way; odd, the boot CPU reads its
 * counter next; even, the new CPU.
 */
static uint32_t tsc_turn;
static uint64_t tsc_theirs;

#define TSC_ROUNDS 4
#define ARRIVE_MS  1000
#define TURN_US    1000000

unsigned
arch_cpu_probe(unsigned max)
{
	uint32_t self = lapic_id();

	/* The boot CPU is number 0, at whatever position the table lists it. */
	for (unsigned i = 1; i < acpi.cpu_count; i++)
		if (acpi.apic_ids[i] == self) {
			acpi.apic_ids[i] = acpi.apic_ids[0];
			acpi.apic_ids[0] = self;
		}
	if (acpi.cpu_count == 0) {
		acpi.apic_ids[0] = self;
		acpi.cpu_count = 1;
	}
	return acpi.cpu_count < max ? acpi.cpu_count : max;
}

/* Sleeps until the new CPU runs. False: it does not come. */
static bool
new_cpu_arrived(void)
{
	for (unsigned i = 0; i < ARRIVE_MS; i++) {
		if (__atomic_load_n(&tsc_turn, __ATOMIC_ACQUIRE) != 0)
			return true;
		thread_sleep_ns(1000000, 0, "cpustart");
	}
	return false;
}

static bool
wait_turn(uint32_t turn)
{
	for (unsigned i = 0; i < TURN_US; i++) {
		if (__atomic_load_n(&tsc_turn, __ATOMIC_ACQUIRE) == turn)
			return true;
		clock_delay_ns(1000);
	}
	return false;
}

/*
 * Each reading of the new CPU must lie between two readings of this CPU, taken before and after it.
 */
static void
check_tsc(unsigned n)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < TSC_ROUNDS; i++) {
		uint64_t before = arch_clock_read(), after;

		__atomic_store_n(&tsc_turn, 2 * i + 2, __ATOMIC_RELEASE);
		if (!wait_turn(2 * i + 3))
			return;
		after = arch_clock_read();
		if (tsc_theirs < before && before - tsc_theirs > worst)
			worst = before - tsc_theirs;
		if (tsc_theirs > after && tsc_theirs - after > worst)
			worst = tsc_theirs - after;
	}
	if (worst != 0)
		pr_warn(
		    "smp: CPU %u: time-stamp counter is off by %lu ticks: times of different CPUs do "
		    "not compare\n",
		    n, worst);
}

void
x86_start_secondary(void)
{
	struct pcpu *pc = (struct pcpu *)arch_this_pcpu();

	x86_cpu_init(pc->md.x86);
	lapic_init();
	__atomic_store_n(&tsc_turn, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < TSC_ROUNDS; i++) {
		while (__atomic_load_n(&tsc_turn, __ATOMIC_ACQUIRE) != 2 * i + 2)
			arch_relax();
		tsc_theirs = arch_clock_read();
		__atomic_store_n(&tsc_turn, 2 * i + 3, __ATOMIC_RELEASE);
	}
	entry_secondary();
}

bool
arch_cpu_start(unsigned n, struct pcpu *pc, uintptr_t stack_top)
{
	uint32_t id = acpi.apic_ids[n];

	memcpy(phys_to_virt(AP_PAGE), ap_code, (size_t)(ap_code_end - ap_code));
	pc->md.apic_id = id;
	ap_root = entry_kernel_root();
	ap_pcpu = pc;
	ap_stack_top = stack_top;
	__atomic_store_n(&tsc_turn, 0, __ATOMIC_RELEASE);

	/* INIT, 10 ms, STARTUP twice (SDM vol. 3A, 8.4.4.1). */
	lapic_send(id, ICR_INIT | ICR_ASSERT);
	thread_sleep_ns(10000000, 0, "cpustart");
	for (unsigned i = 0; i < 2; i++) {
		lapic_send(id, ICR_STARTUP | ICR_ASSERT | (AP_PAGE >> 12));
		clock_delay_ns(200000);
	}
	if (new_cpu_arrived())
		check_tsc(n);
	if (entry_wait_online(pc))
		return true;
	/* Back to waiting for a STARTUP, so that the CPU does not join later. */
	lapic_send(id, ICR_INIT | ICR_ASSERT);
	return false;
}

void
arch_ipi_send(unsigned cpu, enum arch_ipi ipi)
{
	lapic_send(acpi.apic_ids[cpu], ICR_FIXED | ICR_ASSERT | (VEC_IPI + ipi));
}

bool
arch_nmi_send(unsigned cpu)
{
	__atomic_store_n(&pcpus[cpu]->nmi_sent, true, __ATOMIC_RELEASE);
	lapic_send(acpi.apic_ids[cpu], ICR_NMI | ICR_ASSERT);
	return true;
}
