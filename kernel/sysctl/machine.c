/*
 * machine.c - sysctls that say what kernel this is, and how its memory is doing.
 * Locking: none; each value is read from its owner.
 */
#include "arch/machine.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"

static void
get_ostype(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, "Kestrel");
}
SYSCTL_PROC(kern_ostype, "kern.ostype", SYSCTL_TYPE_TEXT, 0, get_ostype, NULL,
	    "name of the operating system");

static void
get_version(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "Kestrel, %s, compiled by GCC %s", arch_name, __VERSION__);
}
SYSCTL_PROC(kern_version, "kern.version", SYSCTL_TYPE_TEXT, 0, get_version, NULL,
	    "what the kernel says of itself");

static void
get_machine(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_puts(out, arch_name);
}
SYSCTL_PROC(hw_machine, "hw.machine", SYSCTL_TYPE_TEXT, 0, get_machine, NULL,
	    "architecture that the kernel is built for");

static void
get_pagesize(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%lu", PAGE_SIZE);
}
SYSCTL_PROC(hw_pagesize, "hw.pagesize", SYSCTL_TYPE_INT, 0, get_pagesize, NULL, "bytes of a page");

static void
get_pages_total(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%lu", page_count_total());
}
SYSCTL_PROC(vm_pages_total, "vm.pages.total", SYSCTL_TYPE_U64, 0, get_pages_total, NULL,
	    "pages that the page allocator has");

static void
get_pages_free(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%lu", page_count_free());
}
SYSCTL_PROC(vm_pages_free, "vm.pages.free", SYSCTL_TYPE_U64, 0, get_pages_free, NULL,
	    "pages that nobody uses");

static void
get_heap_used(const struct sysctl *s, struct sbuf *out)
{
	(void)s;
	sbuf_printf(out, "%zu", heap_bytes_used());
}
SYSCTL_PROC(vm_heap_used, "vm.heap.used", SYSCTL_TYPE_U64, 0, get_heap_used, NULL,
	    "bytes of the kernel heap that are handed out");
