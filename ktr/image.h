/*
 * image.h - how a log is found by someone who has nothing but the memory of its kernel: a memory
 * dump, a debugger, the boot after a reset.
 *
 * One struct, the root, says where everything is. It is kept up to date while the kernel runs, so
 * nothing has to be done when the kernel dies. All addresses are virtual addresses of the kernel
 * that wrote them. A reader checks everything before it uses it, and takes the sizes from here,
 * since it may be of another build.
 *
 * Locking: the control lock for changes; ktr_image_move() early in the boot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#define KTR_IMAGE_MAGIC   "KTRIMAGE"
#define KTR_IMAGE_VERSION 8u
#define KTR_IMAGE_TEXTS   5u
#define KTR_IMAGE_ARCH    16u
#define KTR_IMAGE_BUILD   96u

struct ktr_image_root {
	char magic[8];
	uint32_t version;
	uint32_t size;       /* of this struct, rings included */
	uint64_t self;       /* its address */
	uint32_t entry_size; /* sizeof(struct ktr_entry) … */
	uint32_t ring_size;  /* sizeof(struct ktr_ring) */
	uint32_t ring_count; /* of rings below, one a CPU */
	uint32_t site_size;  /* sizeof(struct ktr_site) */
	uint32_t site_count;
	uint32_t names_size; /* sizeof(struct ktr_names) (ktr/intern.h) */
	uint32_t parts_site; /* number of the site of entries that hold parts of long data */
	uint32_t reserved;
	uint64_t sites; /* address of ktr_sites */
	uint64_t names; /* address of the struct ktr_names in use */
	/* Where a %s parameter may point, and a site's texts. size 0: unused. */
	struct {
		uint64_t start, size;
	} texts[KTR_IMAGE_TEXTS];
	/* As in struct ktr_info; NUL-terminated. */
	uint8_t boot_id[16];
	uint64_t hz;
	uint64_t boot_ticks;
	uint64_t ncpu;
	uint64_t mask;   /* as ktr_mask_get() */
	uint64_t tables; /* physical address of the kernel's top page table; 0: not told */
	char arch[KTR_IMAGE_ARCH];
	char build[KTR_IMAGE_BUILD];
	uint64_t rings[KTR_PORT_MAXCPU]; /* addresses of struct ktr_ring; 0: the CPU has none */
	uint64_t crc;                    /* CRC-32C of all before it */
};

/** The root in use. Debuggers look for this symbol. */
extern struct ktr_image_root *ktr_image;

/**
 * Moves the root to `to`, and keeps a copy of it in `spare`: memory that is never freed. Early
 * boot.
 */
void ktr_image_move(struct ktr_image_root *to, struct ktr_image_root *spare);
/** Is the root as it was written? False also while it is being changed. */
bool ktr_image_whole(const struct ktr_image_root *root);
/**
 * Read-only data to which parameters and sites point; interned texts need no such call. At most
 * KTR_IMAGE_TEXTS - 1 times. Early boot, or control lock.
 */
void ktr_image_add_text(const void *start, size_t size);
/** Says where the page tables are that map these addresses. Control lock, or early boot. */
void ktr_image_set_tables(uint64_t phys);
/** Updates the root after a change. For the other files of ktr/; control lock. */
void ktr_image_refresh(void);
