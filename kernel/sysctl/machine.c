/*
 * machine.c - sysctls about the kernel's version, the machine and its memory.
 * Locking: none; each value comes from its owner.
 */
#include "arch/machine.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"

static void
get_ostype(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, "Kestrel");
}
SYSCTL_TEXT(kern_ostype, "kern.ostype", 0, get_ostype, NULL, "name of the operating system");

static void
get_version(const struct sysctl *s, struct sbuf *out)
{
	sbuf_printf(out, "Kestrel, %s, compiled by GCC %s", arch_name, __VERSION__);
}
SYSCTL_TEXT(kern_version, "kern.version", 0, get_version, NULL,
	    "architecture and compiler of the kernel");

static void
get_machine(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, arch_name);
}
SYSCTL_TEXT(hw_machine, "hw.machine", 0, get_machine, NULL,
	    "architecture that the kernel is built for");

static uint64_t
machine_pagesize(void)
{
	return PAGE_SIZE;
}

static uint64_t
machine_physmem(void)
{
	return page_count_total() * PAGE_SIZE;
}

static uint64_t
heap_used(void)
{
	return heap_bytes_used();
}

SYSCTL_U64_CALL(hw_pagesize, "hw.pagesize", 0, machine_pagesize, NULL, "bytes of a page");
SYSCTL_U64_CALL(hw_physmem, "hw.physmem", 0, machine_physmem, NULL,
		"bytes of memory that the page allocator manages");
SYSCTL_U64_CALL(vm_pages_total, "vm.pages.total", 0, page_count_total, NULL,
		"pages that the page allocator manages");
SYSCTL_U64_CALL(vm_pages_free, "vm.pages.free", 0, page_count_free, NULL, "free pages");
SYSCTL_U64_CALL(vm_heap_used, "vm.heap.used", 0, heap_used, NULL,
		"bytes allocated from the kernel heap");
