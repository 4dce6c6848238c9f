/*
 * persist.c - chooses the memory for the log that survives a reset, and finds the boot before's.
 *
 * There are two places, which depend on the size of RAM alone. A boot that finds a log in one of
 * them makes its own in the other. Every boot reserves the page of a region's header at both
 * places, and never allocates it. So no program can write a header that the next boot would accept;
 * and where there is a header, its region belonged to the kernel alone.
 *
 * A reset does not clear RAM, but firmware and boot loader use the ends of it before the kernel
 * runs. So both places are in the upper half, well below the end, and whatever is found there is
 * checked.
 *
 * Locking: written early in the boot.
 */
#include "kernel/trace/persist.h"

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
static bool prev_own;            /* no part of it is used by loader or firmware */
static bool reserved[PLACES];    /* the page of the header is ours */

/* The part of RAM range n that the boot page tables map. */
static bool
ram_range(unsigned n, uint64_t *start, uint64_t *end)
{
	const struct boot_range *r = &boot_info.ranges[n];

	*start = (r->start + MIB - 1) & ~(MIB - 1);
	*end = r->end < boot_info.mapped_end ? r->end : boot_info.mapped_end;
	return r->kind == BOOT_RAM && *start < *end;
}

/*
 * The address of place n. *room: the size of both places; 0: there is too little memory. The size
 * is a power of two, and the addresses are multiples of it, near five eighths of the largest RAM
 * range. So they stay the same if firmware uses a little more or less memory in the next boot.
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
		if (ktr_persist_open(p, at, room)) {
			if (prev == NULL || p->boot > prev->boot) {
				old = prev;
				prev = p;
			}
		} else if (ktr_persist_resembles(p)) {
			pr_warn("ktr: the log of the boot before is lost: its header is damaged\n");
		}
		if (old != NULL)
			memset(old, 0, KTR_PERSIST_HEAD);
	}
}

/* Size of this boot's region: as set by the user, else a fraction of all memory. */
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

/* The place that the boot before did not use; 0: it is too small, or in use. */
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
		pr_warn("ktr: no room for a region of %lu MiB that survives a reset\n", size / MIB);
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
