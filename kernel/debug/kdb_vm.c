/*
 * kdb_vm.c - the commands show map and show page: address spaces and pages of the stopped machine.
 * All memory is read by probes. No locks.
 */
#include "arch/mmu.h"
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/page_descriptor.h"
#include "kernel/mm/pagetable.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/vm/vm.h"

#define AREAS_MAX 65536

extern const char __text_start[], __text_end[], __rodata_start[], __rodata_end[], __data_start[],
    __bss_end[], __ksyms_start[], __ksyms_end[];

static void
print_area(uint64_t start, uint64_t end, unsigned prot, const char *what)
{
	kdb_printf("%016lx-%016lx %c%c%c %8lu KiB %s\n", start, end, prot & MMU_READ ? 'r' : '-',
		   prot & MMU_WRITE ? 'w' : '-', prot & MMU_EXEC ? 'x' : '-', (end - start) / 1024,
		   what);
}

static void
show_kernel_map(void)
{
	uintptr_t start = 0, end;

	print_area(ARCH_DIRECT_BASE, ARCH_VMALLOC_BASE, MMU_READ | MMU_WRITE, "all memory");
	while (!kdb.quit && kmap_next_unlocked(&start, &end)) {
		print_area(start, end, MMU_READ | MMU_WRITE, "kmap");
		start = end;
	}
	print_area((uintptr_t)__text_start, (uintptr_t)__text_end, MMU_READ | MMU_EXEC, "text");
	print_area((uintptr_t)__rodata_start, (uintptr_t)__rodata_end, MMU_READ, "read-only data");
	print_area((uintptr_t)__data_start, (uintptr_t)__bss_end, MMU_READ | MMU_WRITE, "data");
	print_area((uintptr_t)__ksyms_start, (uintptr_t)__ksyms_end, MMU_READ, "symbols");
}

void
kdb_show_map(char *args)
{
	uint64_t start = 0, end;
	unsigned prot;
	static struct proc p; /* too large for the stack */

	while (*args == ' ')
		args++;
	if (strcmp(args, "kernel") == 0) {
		show_kernel_map();
		return;
	}
	if (!kdb_proc_find("show map", args, &p))
		return;
	if (p.vm == NULL) {
		kdb_printf("show map: process %u has no address space any more\n", p.pid);
		return;
	}
	kdb_printf("process %u, %lu pages resident, table at %#lx\n", p.pid, vm_resident(p.vm),
		   vm_root(p.vm));
	for (unsigned n = 0; n < AREAS_MAX && !kdb.quit; n++) {
		if (!vm_next_unlocked(p.vm, &start, &end, &prot))
			return;
		print_area(start, end, prot, "");
		start = end;
	}
}

static const char *const owners[PAGE_OWNERS] = {"other", "slab",    "heap", "mapped",
						"table", "program", "file"};

static void
print_page(const void *va)
{
	struct page *at = page_of(va), p;

	if (at == NULL || !arch_probe_copy(&p, at, sizeof(p))) {
		kdb_printf("  not managed by the page allocator\n");
		return;
	}
	kdb_printf("  descriptor %p: %s, order %u, references %u, %s\n", at,
		   p.free ? "free" : "in use", p.order, p.refs,
		   p.owner < PAGE_OWNERS ? owners[p.owner] : "?");
	if (p.owner == PAGE_SLAB && !p.free)
		kdb_printf("  size class %u, objects in use %u, first free %p\n", p.class, p.used,
			   p.objects);
}

static void
show_translation(uint64_t va)
{
	struct thread *t = curthread();
	uint64_t root = kmap_root(), pte;
	unsigned level;
	static struct proc p; /* too large for the stack */

	if (va < ARCH_USER_END && t != NULL && t->proc != NULL &&
	    arch_probe_copy(&p, t->proc, sizeof(p)) && p.vm != NULL)
		root = vm_root(p.vm);
	pte = pagetable_lookup(root, va, &level);
	if (pte == 0) {
		kdb_printf("%#lx is not mapped\n", va);
		return;
	}
	kdb_printf("%#lx: physical %#lx, %s, %s%s, entry %#lx\n", va,
		   arch_pte_pa(pte) + (va & (level == 0 ? PAGE_SIZE - 1 : (2ul << 20) - 1)),
		   level == 0 ? "a page" : "a block of 2 MiB",
		   arch_pte_writable(pte) ? "writable" : "read-only",
		   arch_pte_executable(pte) ? ", executable" : "", pte);
	va = (uintptr_t)phys_to_virt(arch_pte_pa(pte) +
				     (va & (level == 0 ? 0 : (2ul << 20) - PAGE_SIZE)));
	print_page((void *)va);
}

void
kdb_show_page(char *args)
{
	const char *text = args;
	uint64_t va;

	if (!kdb_more_words(&text)) {
		kdb_printf("%lu pages, %lu free\n", page_count_total(), page_count_free());
		for (unsigned i = 0; i < PAGE_OWNERS; i++)
			kdb_printf("%8lu %s\n", page_count_of(i), owners[i]);
	} else if (kdb_expr(&text, &va)) {
		show_translation(va);
	}
}
