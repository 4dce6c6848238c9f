/*
 * persist.c - where in memory the log is that survives a reset, and what the boot before left.
 *
 * There are two places, which follow from the size of RAM alone. A boot that finds a log in one
 * makes its own in the other. The page in which a region's header would stand is reserved at both
 * places in every boot, and is never given to anybody. So no program can have written the header
 * that the next boot believes, and a header means that its region was the kernel's alone, too.
 *
 * A reset keeps RAM as it was; firmware and loader take the ends of it, as far as they need, before
 * the kernel runs. So both places are in the upper half, well below the end, and what is found
 * there is not believed before it is checked.
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
#define PLACES     2u

extern const char __rodata_start[], __rodata_end[];

static int region_mib = -1;
SYSCTL_INT(debug_ktr_region, "debug.ktr.region", SYSCTL_TUN, &region_mib, -1, 4096,
	   "MiB for rings that survive a reset; 0 none; at boot: -1 a sixteenth of memory");

static struct ktr_persist *prev; /* the newest region of another boot */
static bool prev_own;            /* loader and firmware put nothing into it */
static bool reserved[PLACES];    /* the page of the header is ours */

/* The RAM of range n that the boot tables reach. */
static bool
ram_range(unsigned n, uint64_t *start, uint64_t *end)
{
	const struct boot_range *r = &boot_info.ranges[n];

	*start = (r->start + MIB - 1) & ~(MIB - 1);
	*end = r->end < boot_info.mapped_end ? r->end : boot_info.mapped_end;
	return r->kind == BOOT_RAM && *start < *end;
}

/*
 * Place n, and the room that each has; room 0: there is too little memory. Room is a power of two,
 * and places are multiples of it next to five eighths of the largest range: firmware that takes a
 * little more or less of the memory in the next boot changes neither.
 */
static uint64_t
region_place(unsigned n, uint64_t *room)
{
	uint64_t start, end, low = 0, high = 0;

	for (unsigned i = 0; i < boot_info.range_count; i++)
		if (ram_range(i, &start, &end) && end - start > high - low) {
			low = start;
			high = end;
		}
	*room = MIB;
	while (*room * 2 <= (high - low) / 8)
		*room *= 2;
	if (*room < REGION_MIN)
		*room = 0;
	return ((low + (high - low) / 8 * 5 + *room / 2) & ~(*room - 1)) + n * *room;
}

/* Finds the newest region, and reserves the places. */
static void
find_prev(void)
{
	struct boot_range r;
	uint64_t room;

	for (unsigned n = 0; n < PLACES; n++) {
		uint64_t at = region_place(n, &room);
		struct ktr_persist *p = phys_to_virt(at), *old = p;

		if (room == 0 || boot_in_use(&boot_info, at, at + PAGE_SIZE, &r))
			continue;
		boot_reserve(at, PAGE_SIZE);
		reserved[n] = true;
		if (ktr_persist_valid(p, at, room)) {
			if (prev == NULL || p->boot > prev->boot) {
				old = prev;
				prev = p;
			}
		} else if (ktr_persist_resembles(p)) {
			warnk("ktr: the log of the boot before is lost: its header is damaged\n");
		}
		if (old != NULL)
			memset(old, 0, sizeof(*old));
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

/* The place that is not the boot before's; 0: it has less room, or is in use. */
static uint64_t
region_free_place(uint64_t size)
{
	struct boot_range r;
	uint64_t room;

	for (unsigned n = 0; n < PLACES; n++) {
		uint64_t at = region_place(n, &room);

		if (reserved[n] && size <= room && !(prev != NULL && prev->phys == at) &&
		    !boot_in_use(&boot_info, at + PAGE_SIZE, at + size, &r))
			return at;
	}
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
		prev_own = !boot_in_use(&boot_info, prev->phys + PAGE_SIZE, prev->phys + prev->size,
					&(struct boot_range){0});
		boot_reserve(prev->phys + PAGE_SIZE, prev->size - PAGE_SIZE);
	}
	region_mib = 0;
	if (size == 0)
		return;
	at = region_free_place(size);
	if (at == 0 || !ktr_persist_make(phys_to_virt(at), size, at,
					 prev != NULL ? prev->boot + 1 : 1, &rodata, 1)) {
		warnk("ktr: no room for a region of %lu MiB that survives a reset\n", size / MIB);
		return;
	}
	boot_reserve(at + PAGE_SIZE, size - PAGE_SIZE);
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
