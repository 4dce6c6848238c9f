/*
 * start.c - the first C code: translates the information of Multiboot2 or PVH into boot_info, and
 * calls kernel_main().
 *
 * Runs on the boot tables, which map the first 4 GiB in the direct map. Sources: Multiboot2
 * Specification 2.0, 3.6; Xen public/arch-x86/hvm/start_info.h.
 */
#include "arch/mmu.h"
#include "arch/x86_64/x86.h"
#include "kernel/entry.h"
#include "kernel/lib/string.h"
#include "kernel/mm/boot_info.h"

enum { X86_BOOT_MULTIBOOT2 = 1, X86_BOOT_PVH = 2 };

struct mb2_tag {
	uint32_t type, size;
};

enum {
	MB2_END = 0,
	MB2_CMDLINE = 1,
	MB2_LOADER = 2,
	MB2_MODULE = 3,
	MB2_MMAP = 6,
	MB2_ACPI_OLD = 14,
	MB2_ACPI_NEW = 15,
};

struct mb2_module {
	struct mb2_tag tag;
	uint32_t start, end;
	char name[];
};

struct mb2_mmap {
	struct mb2_tag tag;
	uint32_t entry_size, entry_version;
	uint8_t entries[];
};

struct mb2_mmap_entry {
	uint64_t addr, len;
	uint32_t type, reserved;
};

struct pvh_start_info {
	uint32_t magic, version, flags, nr_modules;
	uint64_t modlist_pa, cmdline_pa, rsdp_pa;
	uint64_t memmap_pa; /* since version 1 */
	uint32_t memmap_entries, reserved;
};

struct pvh_module {
	uint64_t pa, size, cmdline_pa, reserved;
};

extern char __kernel_end[];

void x86_start(uint64_t kind, uint64_t info);

/* Type 1 is memory (ACPI 6.4, 15). The others may hold tables that the kernel reads. */
static void
add_range(uint64_t start, uint64_t size, uint32_t e820_type)
{
	boot_add_range(start, size, e820_type == 1 ? BOOT_RAM : BOOT_FIRMWARE);
}

static void
read_mmap(const struct mb2_mmap *m)
{
	if (m->entry_size < sizeof(struct mb2_mmap_entry))
		return;
	for (uint32_t off = sizeof(*m); off + m->entry_size <= m->tag.size; off += m->entry_size) {
		const struct mb2_mmap_entry *e = (const void *)((const char *)m + off);
		add_range(e->addr, e->len, e->type);
	}
}

static void
read_multiboot2(const uint8_t *info)
{
	struct boot_info *bi = &boot_info;
	uint32_t total = *(const uint32_t *)info;

	bi->loader = "Multiboot2";
	/* Names and the command line stay where they are, so keep this memory. */
	boot_reserve(virt_to_phys(info), total);
	for (uint32_t off = 8; off + sizeof(struct mb2_tag) <= total;) {
		const struct mb2_tag *t = (const void *)(info + off);

		if (t->type == MB2_END || t->size < sizeof(*t) || t->size > total - off)
			break;
		switch (t->type) {
		case MB2_CMDLINE:
			bi->cmdline = (const char *)(t + 1);
			break;
		case MB2_LOADER:
			bi->loader = (const char *)(t + 1);
			break;
		case MB2_MODULE: {
			const struct mb2_module *m = (const void *)t;
			boot_add_module(m->name, m->start, m->end - m->start);
			break;
		}
		case MB2_MMAP:
			read_mmap((const void *)t);
			break;
		case MB2_ACPI_NEW:
			bi->firmware = virt_to_phys(t + 1); /* a copy of the RSDP */
			break;
		case MB2_ACPI_OLD:
			if (bi->firmware == 0)
				bi->firmware = virt_to_phys(t + 1);
			break;
		}
		off += (t->size + 7) & ~7u;
	}
}

static void
read_pvh(const struct pvh_start_info *si)
{
	static char cmdline[4096]; /* the firmware's memory is not mapped later */
	struct boot_info *bi = &boot_info;

	bi->loader = "PVH";
	bi->firmware = si->rsdp_pa;
	if (si->cmdline_pa != 0) {
		strlcpy(cmdline, phys_to_virt(si->cmdline_pa), sizeof(cmdline));
		bi->cmdline = cmdline;
	}
	const struct pvh_module *mods = phys_to_virt(si->modlist_pa);
	for (uint32_t i = 0; i < si->nr_modules; i++) {
		if (mods[i].cmdline_pa != 0)
			boot_reserve(mods[i].cmdline_pa,
				     strlen(phys_to_virt(mods[i].cmdline_pa)) + 1);
		boot_add_module(mods[i].cmdline_pa ? phys_to_virt(mods[i].cmdline_pa) : "",
				mods[i].pa, mods[i].size);
	}
	const struct mb2_mmap_entry *map = phys_to_virt(si->memmap_pa); /* same layout as PVH's */
	if (si->version >= 1)
		for (uint32_t i = 0; i < si->memmap_entries; i++)
			add_range(map[i].addr, map[i].len, map[i].type);
}

void
x86_start(uint64_t kind, uint64_t info)
{
	boot_info.mapped_end = 1ul << 32;
	/* Firmware and starting CPUs use the first MiB. The image follows directly. */
	boot_reserve(0, (uint64_t)__kernel_end - KERNEL_BASE);
	if (kind == X86_BOOT_MULTIBOOT2)
		read_multiboot2(phys_to_virt(info));
	else
		read_pvh(phys_to_virt(info));
	/* Until here boot_trap.S reports exceptions, since the kernel cannot do it yet. */
	x86_cpu_init(&x86_boot_cpu);
	kernel_main();
}
