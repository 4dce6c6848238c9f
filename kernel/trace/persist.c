/*
 * persist.c - where in memory the log is that survives a reset, and what the boot before left.
 *
 * A region begins at any multiple of 1 MiB of RAM: the next boot looks at all of them, so that it
 * need not know what this one had in mind. A reset keeps RAM as it was; firmware and loader take
 * the ends of it, as far as they need, before the kernel runs. So the region is put in the upper
 * half, well below the end, and what is found there is not believed before it is checked.
 *
 * Locking: written early in the boot.
 */
#include "kernel/trace/persist.h"

#include <stdbool.h>
#include <stdint.h>

#include "arch/mmu.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/page.h"
#include "kernel/trace/flush.h"
#include "kernel/trace/trace_private.h"
#include "ktr/control.h"
#include "ktr/image.h"
#include "ktr/persist.h"

#define MIB        (1ul << 20)
#define REGION_MIN (4 * MIB)
#define REGION_MAX (64 * MIB)

extern const char __rodata_start[], __rodata_end[];

static int region_mib = -1;
SYSCTL_INT(debug_ktr_region, "debug.ktr.region", SYSCTL_TUN, &region_mib, -1, 4096,
	   "MiB for rings that survive a reset; 0 none; at boot: -1 a sixteenth of memory");

static struct ktr_persist *prev; /* the newest region of another boot */
static bool prev_own;            /* loader and firmware put nothing into it */

/* The RAM of range n that the boot tables reach. */
static bool
ram_range(unsigned n, uint64_t *start, uint64_t *end)
{
	const struct boot_range *r = &boot_info.ranges[n];

	*start = (r->start + MIB - 1) & ~(MIB - 1);
	*end = r->end < boot_info.mapped_end ? r->end : boot_info.mapped_end;
	return r->kind == BOOT_RAM && *start < *end;
}

/* The newest region stays; older ones are never found again. */
static void
find_prev(void)
{
	uint64_t start, end;

	for (unsigned i = 0; i < boot_info.range_count; i++) {
		if (!ram_range(i, &start, &end))
			continue;
		for (uint64_t at = start; at + PAGE_SIZE <= end; at += KTR_PERSIST_ALIGN) {
			struct ktr_persist *p = phys_to_virt(at), *old = p;
			struct boot_range r;

			if (boot_in_use(&boot_info, at, at + PAGE_SIZE, &r) ||
			    !ktr_persist_valid(p, at, end - at))
				continue;
			if (prev == NULL || p->boot > prev->boot) {
				old = prev;
				prev = p;
			}
			if (old != NULL)
				memset(old->magic, 0, sizeof(old->magic));
		}
	}
}

/* Size of this boot's region: as told, else of all memory. */
static uint64_t
region_size(void)
{
	uint64_t start, end, sum = 0, size;

	if (region_mib >= 0)
		return (uint64_t)region_mib * MIB;
	for (unsigned i = 0; i < boot_info.range_count; i++)
		if (ram_range(i, &start, &end))
			sum += end - start;
	size = (sum / 16 + MIB / 2) & ~(MIB - 1);
	return size < REGION_MIN ? REGION_MIN : size > REGION_MAX ? REGION_MAX : size;
}

/* The highest place in seven eighths of the largest range; 0: none is free. */
static uint64_t
region_place(uint64_t size)
{
	uint64_t start, end, low = 0, high = 0;
	struct boot_range r;

	for (unsigned i = 0; i < boot_info.range_count; i++)
		if (ram_range(i, &start, &end) && end - start > high - low) {
			low = start;
			high = end;
		}
	if (high - low < 4 * size)
		return 0;
	for (uint64_t at = (high - (high - low) / 8 - size) & ~(MIB - 1); at > low; at -= MIB)
		if (!boot_in_use(&boot_info, at, at + size, &r))
			return at;
	return 0;
}

void
trace_persist_init(void)
{
	const struct ktr_persist_text rodata = {__rodata_start,
						(size_t)(__rodata_end - __rodata_start)};
	uint64_t size = region_size(), at;

	ktr_image_add_text(rodata.start, rodata.size);
	find_prev();
	if (prev != NULL) {
		prev_own = !boot_in_use(&boot_info, prev->phys, prev->phys + prev->size,
					&(struct boot_range){0});
		boot_reserve(prev->phys, prev->size);
	}
	region_mib = 0;
	if (size == 0)
		return;
	at = region_place(size);
	if (at == 0 || !ktr_persist_make(phys_to_virt(at), size, at,
					 prev != NULL ? prev->boot + 1 : 1, &rodata, 1)) {
		warnk("ktr: no room for a region of %lu MiB that survives a reset\n", size / MIB);
		return;
	}
	boot_reserve(at, size);
	region_mib = (int)(size / MIB);
	trace_info_init();
	ktr_cpu_init(0);
}

struct ktr_persist *
trace_persist_prev(bool *own)
{
	*own = prev_own;
	return prev;
}
