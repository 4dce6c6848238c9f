/*
 * rings.c - how large the rings are: by default, as a loader parameter, and as debug.ktr.entries.
 *
 * Locking: ktr's control lock, taken inside its functions.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/kestrel.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/page.h"
#include "kernel/sync/pcpu.h"
#include "kernel/sysctl/tunable.h"
#include "kernel/trace/flush.h"
#include "ktr/control.h"
#include "ktr/persist.h"
#include "ktr/ring.h"

#define DEFAULT_MIN KTR_ENTRIES_BOOT
#define DEFAULT_MAX 65536u

static unsigned cpus = 1; /* that will have rings */

/*
 * The rings take five eighths of the region that survives a reset. So smaller rings also fit into
 * it while the old ones are still there.
 */
static unsigned
default_entries(void)
{
	const struct ktr_persist *region = ktr_persist_get();
	uint64_t size = region != NULL ? region->size : page_count_total() * PAGE_SIZE / 16;
	unsigned n = DEFAULT_MIN;

	while (n < DEFAULT_MAX && cpus * ktr_ring_bytes(n * 2) <= size / 8 * 5)
		n *= 2;
	return n;
}

static uint64_t
rings_cleared(void)
{
	struct ktr_stats s;
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		if (ktr_stats_get(cpu, &s))
			sum += s.cleared;
	return sum;
}

static uint64_t
rings_entries(void)
{
	return ktr_entries_get();
}

static int
entries_set(int64_t n, char *err, size_t errlen)
{
	uint64_t before = rings_cleared(), lost, all = 2ul * cpus * ktr_ring_bytes((uint32_t)n);
	int error = -ENOMEM;

	/*
	 * Before the other CPUs start, their rings must fit, too. Rounding may double n, and a
	 * quarter of memory is left to everything else.
	 */
	if (ncpus == cpus || all <= page_count_free() * PAGE_SIZE / 4 * 3)
		error = ktr_resize((unsigned)n);
	if (error == -ENOMEM)
		snprintf(
		    err, errlen,
		    "no memory for %u CPUs times %d entries of 64 bytes; the rings keep their %u",
		    cpus, (int)n, ktr_entries_get());
	lost = rings_cleared() - before;
	if (lost > 0)
		printk("ktr: %lu older events did not fit into rings of %u\n", lost,
		       ktr_entries_get());
	return error;
}

void
trace_rings_init(unsigned n)
{
	cpus = n;
	if (ktr_resize(default_entries()) != 0)
		pr_warn("ktr: no memory for rings of %u events; they have %u\n", default_entries(),
			ktr_entries_get());
	tunable_apply("debug.ktr.entries");
}

SYSCTL_INT_CALL(
    debug_ktr_entries, "debug.ktr.entries", SYSCTL_WR | SYSCTL_TUN | SYSCTL_LATE, rings_entries,
    entries_set, KTR_ENTRIES_MIN, KTR_ENTRIES_MAX,
    "events in each CPU's ring, rounded up to a power of two; the newest stay at a change");
