/*
 * boot_info.h - what every loader reports, in one portable form.
 *
 * The port fills it from Multiboot2, PVH or a device tree before kernel_main(). All memory that it
 * points to stays mapped and unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BOOT_MAX_RANGES   64
#define BOOT_MAX_MODULES  8
#define BOOT_MAX_RESERVED 32

enum boot_memory_kind {
	BOOT_RAM,      /* free to use */
	BOOT_FIRMWARE, /* readable tables (ACPI) or reserved RAM: keep */
};

struct boot_range {
	uint64_t start, end; /* physical, end exclusive */
	enum boot_memory_kind kind;
};

struct boot_module {
	const char
	    *name; /* file name without folders: "initrd.cpio"; "" if the loader named none */
	const void *data; /* direct-map address */
	uint64_t size;    /* bytes */
};

struct boot_info {
	const char *loader;  /* "GRUB 2.06", "PVH", "device tree" */
	const char *cmdline; /* loader parameters; "" if none */
	uint64_t firmware;   /* physical address of ACPI's RSDP or the device tree, 0: none */
	unsigned range_count, module_count;
	bool ranges_cut;     /* the loader reported more ranges than fit: some memory is unused */
	uint64_t mapped_end; /* physical end of what the boot tables map */
	/* Physical memory in use: the kernel image, the strings above, what firmware keeps. */
	unsigned reserved_count;
	struct boot_range reserved[BOOT_MAX_RESERVED];
	struct boot_range ranges[BOOT_MAX_RANGES];
	struct boot_module modules[BOOT_MAX_MODULES];
};

extern struct boot_info boot_info;

/* Adds physical memory of a kind. Ignores a range that is empty or wraps. For the ports. */
void boot_add_range(uint64_t start, uint64_t size, enum boot_memory_kind kind);
/* Marks a part of these ranges as in use. */
void boot_reserve(uint64_t start, uint64_t size);
/* Adds a module. name must stay valid; folders in it are dropped. */
void boot_add_module(const char *name, uint64_t start, uint64_t size);

/*
 * Finds the first range in use, modules included, that overlaps [start, end), and stores it in *r,
 * widened to whole pages. Returns false when all of [start, end) is free.
 */
bool boot_in_use(const struct boot_info *bi, uint64_t start, uint64_t end, struct boot_range *r);
