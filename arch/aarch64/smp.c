/*
 * smp.c - starts the other CPUs, one at a time: `start` belongs to the one being started.
 */
#include "arch/smp.h"
#include "arch/aarch64/a64.h"
#include "kernel/entry.h"
#include "kernel/lib/printf.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"

/* Read by boot.S with caches off, so it has a cache line of its own. */
static struct aarch64_secondary {
	uint64_t root; /* physical */
	struct pcpu *pcpu;
	uintptr_t stack_top;
} start __attribute__((aligned(2048)));

_Static_assert(offsetof(struct aarch64_secondary, pcpu) == 8, "boot.S");

void aarch64_start_secondary(void);

unsigned
arch_cpu_probe(unsigned max)
{
	/* The boot CPU is number 0, at whatever position the tree lists it. */
	for (unsigned i = 1; i < devtree.cpu_count; i++)
		if (devtree.cpus[i] == pcpus[0]->md.mpidr) {
			devtree.cpus[i] = devtree.cpus[0];
			devtree.cpus[0] = pcpus[0]->md.mpidr;
		}
	if (devtree.gic == 2 && max > 8)
		max = 8; /* GICv2 has 8 CPU interfaces */
	return devtree.cpu_count < max ? devtree.cpu_count : max;
}

void
aarch64_start_secondary(void)
{
	aarch64_cpu_init();
	aarch64_mmu_init_cpu();
	intc_init_cpu();
	aarch64_timer_init_cpu();
	entry_secondary();
}

bool
arch_cpu_start(unsigned n, struct pcpu *pc, uintptr_t stack_top)
{
	uint64_t image = aarch64_image_phys(aarch64_secondary_entry);
	int error;

	pc->md.mpidr = devtree.cpus[n];
	pc->md.kstack = stack_top - KSTACK_SIZE;
	start = (struct aarch64_secondary){entry_kernel_root(), pc, stack_top};
	/* Write it to memory: a CPU with its caches off reads it there. */
	__asm__ volatile("dsb sy\n\tdc civac, %0\n\tdsb sy" : : "r"(&start) : "memory");
	error = psci_cpu_on(pc->md.mpidr, image, aarch64_image_phys(&start));
	if (error != 0) {
		pr_warn("smp: CPU %u (affinity %#lx): PSCI error %d\n", n, pc->md.mpidr, error);
		return false;
	}
	return entry_wait_online(pc);
}
