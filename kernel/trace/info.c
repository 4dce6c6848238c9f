/*
 * info.c - fills in what the header of every stream says about this machine. Locking: none; it is
 * written before the first stream.
 */
#include "arch/clock.h"
#include "arch/machine.h"
#include "arch/mmu.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/kmap.h"
#include "kernel/sync/pcpu.h"
#include "kernel/trace/flush.h"
#include "ktr/image.h"
#include "ktr/stream.h"

#define BUILD_ID_HEADER 16 /* of the ELF note: three words and "GNU" */

extern const uint8_t __build_id_start[], __build_id_end[];

/* The build id, which the linker makes. Its note may be in the boot section, at a physical address.
 */
static void
info_build(char *text, size_t size)
{
	uintptr_t at = (uintptr_t)__build_id_start;
	size_t len = (uintptr_t)__build_id_end - at, n;
	const uint8_t *id;

	if (at < ARCH_USER_END)
		at = (uintptr_t)phys_to_virt(at);
	id = (const uint8_t *)at;
	n = (size_t)snprintf(text, size, "kestrel ");
	for (size_t i = BUILD_ID_HEADER; i < len && n + 3 < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%02x", id[i]);
}

/* Differs from boot to boot, as the clock does. Mixed by the finaliser of splitmix64. */
static void
info_boot_id(uint8_t id[16])
{
	uint64_t x = arch_clock_read();

	for (unsigned half = 0; half < 2; half++) {
		uint64_t z;

		x += 0x9e3779b97f4a7c15ull + clock_boot_ticks();
		z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		memcpy(id + 8 * half, &z, sizeof(z));
	}
}

static char build[64];

static void
info_build_get(const struct sysctl *s, struct sbuf *out)
{
	sbuf_puts(out, build);
}
SYSCTL_TEXT(kern_build, "kern.build", 0, info_build_get, NULL,
	    "which build of the kernel this is, as streams have it in their headers");

void
trace_info_init(void)
{
	static uint8_t boot_id[16];
	struct ktr_info info = {
	    .arch = arch_name,
	    .build = build,
	    .hz = clock_hz(),
	    .boot_ticks = clock_boot_ticks(),
	    .ncpu = ncpus,
	};

	if (build[0] == '\0') {
		info_build(build, sizeof(build));
		info_boot_id(boot_id);
	}
	memcpy(info.boot_id, boot_id, sizeof(boot_id));
	ktr_info_set(&info);
	ktr_image_set_tables(kmap_root());
}
