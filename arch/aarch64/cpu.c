/*
 * cpu.c - set-up of one CPU: vectors, traps, protection. And thread contexts.
 */
#include "arch/aarch64/a64.h"
#include "arch/context.h"
#include "arch/machine.h"
#include "arch/smp.h"
#include "kernel/entry.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/ring.h"

#define OVERFLOW_STACK 8192

bool aarch64_pan;
const char arch_name[] = "aarch64";

extern struct pcpu aarch64_boot_pcpu;
extern char __boot_stack[];

static uint8_t boot_overflow_stack[OVERFLOW_STACK] __attribute__((aligned(16)));

/* Set statically: even the first instruction of C may record an event. */
struct pcpu aarch64_boot_pcpu = {
    .md = {.ktr_ring = &ktr_boot_ring.ring,
	   .kstack = (uintptr_t)__boot_stack,
	   .overflow_top = (uintptr_t)boot_overflow_stack + OVERFLOW_STACK},
    .online = true,
};

void
aarch64_cpu_init(void)
{
	uint64_t sctlr = READ_SYSREG(sctlr_el1);

	WRITE_SYSREG(vbar_el1, aarch64_vectors);
	WRITE_SYSREG(cpacr_el1, 0);   /* floating point and vectors trap (arch/fpu.h) */
	WRITE_SYSREG(cntkctl_el1, 2); /* EL0VCTEN: programs may read the virtual count */
	WRITE_SYSREG(mdscr_el1, 0);
	if ((READ_SYSREG(id_aa64dfr0_el1) >> 8 & 15) % 15 != 0) /* PMUVer: there are counters */
		WRITE_SYSREG(pmuserenr_el0, 0);
	WRITE_SYSREG(tpidrro_el0, 0);
	/* PAN (ID_AA64MMFR1_EL1, bits 23:20): every exception sets it, user copies clear it. */
	aarch64_pan = (READ_SYSREG(id_aa64mmfr1_el1) >> 20 & 15) != 0;
	if (aarch64_pan) {
		WRITE_SYSREG(sctlr_el1, sctlr & ~(uint64_t)SCTLR_SPAN);
		__asm__ volatile(".inst 0xd500419f" ::: "memory"); /* MSR PAN, #1 */
	}
	ISB();
	/* Unmask FIQ, SError and debug exceptions; IRQs stay masked. */
	__asm__ volatile("msr daifclr, #13" ::: "memory");
}

void
arch_pcpu_init(struct pcpu *pc)
{
	uint8_t *stack = entry_alloc(OVERFLOW_STACK);

	if (stack == NULL)
		panic("CPU %u: no memory for its overflow stack", pc->md.cpu);
	pc->md.overflow_top = (uintptr_t)stack + OVERFLOW_STACK;
}

void
arch_context_init(struct arch_context *c, void *stack, size_t size, void (*fn)(void *), void *arg)
{
	*c = (struct arch_context){
	    .x19_x29 = {(uint64_t)fn, (uint64_t)arg},
	    .sp = (uint64_t)arch_user_frame((uintptr_t)stack + size),
	    .pc = (uint64_t)aarch64_context_start,
	};
}

void
arch_context_prepare(uintptr_t stack_top, uint64_t tls)
{
	(void)tls; /* the program sets its thread pointer itself, and its trap frame keeps that */
	arch_this_pcpu()->kstack = stack_top - KSTACK_SIZE;
}

bool
arch_random(uint64_t *v)
{
	uint64_t flags;

	if (READ_SYSREG(id_aa64isar0_el1) >> 60 == 0)
		return false;
	/* RNDR; PSTATE.Z: there was no number in time. */
	__asm__ volatile("mrs %0, s3_3_c2_c4_0; mrs %1, nzcv" : "=r"(*v), "=r"(flags) : : "cc");
	return !(flags & 1ul << 30);
}

uint64_t
arch_hwcap(void)
{
	/* Linux's bits 0 and 1, FP and ASIMD, are one feature in ID_AA64PFR0_EL1; 15 is none. */
	uint64_t fp = (READ_SYSREG(id_aa64pfr0_el1) >> 16 & 15) != 15 ? 3 : 0;
	uint64_t atomics = READ_SYSREG(id_aa64isar0_el1) >> 20 & 15 ? 1ul << 8 : 0;

	return fp | atomics;
}

static const char *
core_name(uint64_t midr)
{
	/* Implementer and part (MIDR_EL1) of the CPUs that QEMU has. */
	static const struct {
		unsigned implementer, part;
		const char *name;
	} cores[] = {
	    {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd04, "Cortex-A35"}, {0x41, 0xd05, "Cortex-A55"},
	    {0x41, 0xd07, "Cortex-A57"},  {0x41, 0xd08, "Cortex-A72"}, {0x41, 0xd0b, "Cortex-A76"},
	    {0x41, 0xd0c, "Neoverse-N1"}, {0x46, 0x001, "A64FX"},      {0, 0x051, "QEMU max"},
	};

	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++)
		if (cores[i].implementer == (midr >> 24 & 0xff) &&
		    cores[i].part == (midr >> 4 & 0xfff))
			return cores[i].name;
	return "unknown core";
}

void
arch_cpu_describe(struct sbuf *out)
{
	uint64_t midr = READ_SYSREG(midr_el1), hwcap = arch_hwcap();

	sbuf_printf(out, "BogoMIPS\t: %lu.%02lu\nFeatures\t:%s%s%s\n", clock_hz() / 500000,
		    clock_hz() / 5000 % 100, hwcap & 1 ? " fp" : "", hwcap & 2 ? " asimd" : "",
		    hwcap & 1ul << 8 ? " atomics" : "");
	sbuf_printf(out,
		    "CPU implementer\t: 0x%02lx\nCPU architecture: 8\nCPU variant\t: 0x%lx\n"
		    "CPU part\t: 0x%03lx\nCPU revision\t: %lu\n",
		    midr >> 24 & 0xff, midr >> 20 & 15, midr >> 4 & 0xfff, midr & 15);
}

void
arch_machine_print(void)
{
	uint64_t midr = READ_SYSREG(midr_el1);

	printk("cpu: %s (MIDR %#lx), PXN%s, %u-bit ASIDs, GICv%u\n", core_name(midr), midr,
	       aarch64_pan ? " PAN" : "", (READ_SYSREG(id_aa64mmfr0_el1) >> 4 & 15) == 2 ? 16 : 8,
	       devtree.gic);
	if (devtree.model[0] != '\0')
		printk("machine: %s\n", devtree.model);
	devtree_complain();
}
