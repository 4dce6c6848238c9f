/*
 * mmu.c - translation tables, address space numbers, and flushing the TLB.
 *
 * Each address space has a number, kept in the last entry of its top-level table, which no user
 * address reaches. Each CPU remembers, for each of its ASIDs, the number of the space that used it
 * last. When a space loses a translation, it gets a new number. Then this CPU flushes the page;
 * another CPU finds no ASID with the new number when it runs the space next, and takes a flushed
 * one. CPUs that run the space at the same time, for other threads of a process, are told to flush
 * by the caller, after this.
 *
 * Locking: only a CPU itself uses its struct arch_pcpu, with interrupts off. The number of a space
 * is changed only on CPUs that run it.
 */
#include "arch/mmu.h"
#include "arch/aarch64/a64.h"
#include "arch/irq.h"

#define NUMBER_ENTRY 511
#define DEVICE_ENTRY 510 /* of the kernel's top-level table; as in boot.S */
#define DEVICE_BASE  0xffffff0000000000ul
#define GIB          (1ul << 30)

extern uint64_t boot_l0[512], boot_device_l1[512];
void aarch64_replace_ttbr1(uint64_t root, uint64_t empty);

static const uint64_t no_user[512] __attribute__((aligned(4096))); /* TTBR0 of kernel threads */
static uint64_t kernel_root;
static uint64_t numbers; /* atomic: last number; even, so that the table entry is invalid */

static uint64_t
new_number(void)
{
	return __atomic_add_fetch(&numbers, 2, __ATOMIC_RELAXED);
}

uint64_t
arch_kernel_phys(void)
{
	return aarch64_kernel_phys;
}

void
arch_mmu_user_root(uint64_t *root, const uint64_t *kernel)
{
	(void)kernel; /* the kernel's half has its own register, TTBR1 */
	root[NUMBER_ENTRY] = new_number();
}

static void
set_ttbr0(uint64_t root, unsigned asid)
{
	WRITE_SYSREG(ttbr0_el1, root | (uint64_t)asid << 48);
	ISB();
}

static void
switch_to_user(struct arch_pcpu *p, uint64_t root)
{
	uint64_t number = ((uint64_t *)phys_to_virt(root))[NUMBER_ENTRY];

	p->root = root;
	for (unsigned i = 0; i < AARCH64_SPACES; i++)
		if (p->space[i] == number) {
			p->asid = i + 1;
			set_ttbr0(root, p->asid);
			return;
		}
	p->last_asid = p->asid = p->last_asid % AARCH64_SPACES + 1;
	p->space[p->asid - 1] = number;
	/*
	 * Flush the ASID's old translations, after the old table, which could reload them, is gone.
	 */
	set_ttbr0(root, p->asid);
	__asm__ volatile("tlbi aside1, %0" : : "r"((uint64_t)p->asid << 48) : "memory");
	DSB(nsh);
	ISB();
}

/* Leaves the boot tables by way of an empty one, since their blocks overlap the new pages. */
static void
leave_boot_tables(uint64_t root)
{
	void (*replace)(uint64_t, uint64_t) =
	    (void (*)(uint64_t, uint64_t))aarch64_image_phys((const void *)aarch64_replace_ttbr1);

	((uint64_t *)phys_to_virt(root))[DEVICE_ENTRY] = boot_l0[DEVICE_ENTRY];
	kernel_root = root;
	DSB(ishst);
	replace(root, aarch64_image_phys(no_user));
	/* The identity map of TTBR0 is global: flush it, so that programs do not see it. */
	set_ttbr0(aarch64_image_phys(no_user), 0);
	arch_tlb_flush_all();
}

void
arch_mmu_switch(uint64_t root)
{
	struct arch_pcpu *p = arch_this_pcpu();

	if (kernel_root == 0)
		leave_boot_tables(root);
	if (root == kernel_root) {
		p->root = 0;
		set_ttbr0(aarch64_image_phys(no_user), 0);
	} else if (root != p->root) {
		switch_to_user(p, root);
	}
}

void
aarch64_mmu_init_cpu(void)
{
	set_ttbr0(aarch64_image_phys(no_user), 0);
	arch_tlb_flush_all();
}

void
arch_tlb_flush_page(uintptr_t va)
{
	bool on = arch_irq_enabled();
	struct arch_pcpu *p;

	arch_irq_disable();
	p = arch_this_pcpu();
	DSB(ishst);
	__asm__ volatile("tlbi vaae1, %0" : : "r"(va >> 12 & 0xfffffffffff) : "memory");
	DSB(nsh);
	ISB();
	if (va < ARCH_USER_END && p->root != 0) {
		uint64_t number = new_number();

		((uint64_t *)phys_to_virt(p->root))[NUMBER_ENTRY] = number;
		p->space[p->asid - 1] = number;
	}
	if (on)
		arch_irq_enable();
}

void
arch_tlb_flush_all(void)
{
	DSB(ishst);
	__asm__ volatile("tlbi vmalle1" ::: "memory");
	DSB(nsh);
	ISB();
}

/* CTR_EL0 holds the sizes of cache lines, as powers of two, in words. */
void
arch_icache_sync(const void *va, uint64_t size)
{
	uint64_t ctr = READ_SYSREG(ctr_el0);
	uint64_t dline = 4ul << (ctr >> 16 & 15), iline = 4ul << (ctr & 15);
	uintptr_t start = (uintptr_t)va, end = start + size;

	/* B2.4.4: clean to the point of unification, then invalidate, both for all CPUs. */
	for (uintptr_t at = start & ~(dline - 1); at < end; at += dline)
		__asm__ volatile("dc cvau, %0" : : "r"(at) : "memory");
	DSB(ish);
	/* By address only in a physically tagged instruction cache: L1Ip says PIPT (D17.2.34). */
	if ((ctr >> 14 & 3) != 3)
		__asm__ volatile("ic ialluis" ::: "memory");
	else
		for (uintptr_t at = start & ~(iline - 1); at < end; at += iline)
			__asm__ volatile("ic ivau, %0" : : "r"(at) : "memory");
	DSB(ish);
	ISB();
}

volatile void *
aarch64_map_early(uint64_t pa)
{
	uint64_t block = pa & ~(GIB - 1);

	/* One block of 1 GiB in the kernel's half, for good. */
	boot_device_l1[0] = block | BOOT_DEVICE | A64_PTE_PXN | A64_PTE_UXN;
	arch_mmu_sync();
	return (volatile void *)(DEVICE_BASE + (pa - block));
}
