/*
 * start.c - the first C code: translates the device tree into boot_info, and calls kernel_main().
 */
#include "arch/aarch64/a64.h"
#include "arch/mmu.h"
#include "kernel/entry.h"
#include "kernel/mm/boot_info.h"

uint64_t aarch64_kernel_phys;

void aarch64_start(uint64_t tree_pa, uint64_t kernel_pa);

void
aarch64_start(uint64_t tree_pa, uint64_t kernel_pa)
{
	aarch64_kernel_phys = kernel_pa;
	boot_info.loader = "device tree";
	boot_info.firmware = tree_pa;
	arch_this_pcpu()->mpidr = READ_SYSREG(mpidr_el1) & MPIDR_AFFINITY;
	/* There is no console without these facts: boot.S reports an exception in here. */
	devtree_init(phys_to_virt(tree_pa));
	aarch64_cpu_init();
	kernel_main();
}
