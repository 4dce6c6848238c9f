/*
 * boot_info.c - collects the loader's information. For the ports, before kernel_main(). One CPU.
 */
#include "kernel/mm/boot_info.h"

#include "arch/mmu.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"

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
	/* page_init() needs one more entry. Panic rather than allocate memory that is in use. */
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

bool
boot_in_use(const struct boot_info *bi, uint64_t start, uint64_t end, struct boot_range *r)
{
	for (unsigned i = 0; i < bi->reserved_count + bi->module_count; i++) {
		uint64_t s, e;

		if (i < bi->reserved_count) {
			s = bi->reserved[i].start;
			e = bi->reserved[i].end;
		} else {
			s = virt_to_phys(bi->modules[i - bi->reserved_count].data);
			e = s + bi->modules[i - bi->reserved_count].size;
		}
		s = page_round_down(s);
		e = page_round_up(e);
		if (s < end && e > start) {
			*r = (struct boot_range){s, e, BOOT_RAM};
			return true;
		}
	}
	return false;
}
