/*
 * boot_info.c - collecting what a loader told; for the ports, before kernel_main(). One CPU.
 */
#include "kernel/boot_info.h"

#include "arch/mmu.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

struct boot_info boot_info = {.loader = "?", .cmdline = ""};

void
boot_add_range(uint64_t start, uint64_t size, enum boot_memory_kind kind)
{
	struct boot_info *bi = &boot_info;

	if (size == 0 || start + size < start)
		return;
	if (bi->range_count == BOOT_MAX_RANGES) {
		bi->ranges_cut = true;
		return;
	}
	bi->ranges[bi->range_count++] = (struct boot_range){start, start + size, kind};
}

void
boot_reserve(uint64_t start, uint64_t size)
{
	struct boot_info *bi = &boot_info;

	if (size == 0 || start + size < start)
		return;
	/* One is the page allocator's. What cannot be kept free must not be given out. */
	if (bi->reserved_count == BOOT_MAX_RESERVED - 1)
		panic("boot: more than %d reserved ranges", BOOT_MAX_RESERVED - 1);
	bi->reserved[bi->reserved_count++] = (struct boot_range){start, start + size, BOOT_RAM};
}

void
boot_add_module(const char *name, uint64_t start, uint64_t size)
{
	struct boot_info *bi = &boot_info;
	const char *slash = strrchr(name, '/');

	if (bi->module_count == BOOT_MAX_MODULES)
		return;
	bi->modules[bi->module_count++] =
	    (struct boot_module){slash != NULL ? slash + 1 : name, phys_to_virt(start), size};
}
