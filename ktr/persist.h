/*
 * persist.h - memory that keeps the log over a reset: the rings themselves, and all that it takes
 * to read them.
 *
 * The log is in the region from the start, so nothing has to run when the machine dies. Events and
 * sites contain addresses of the kernel that wrote them. The header lists which of these addresses
 * are where in the region (windows). Sites made at run time and their texts are copies that are
 * written anew when one is made. Constant data, sites and read-only texts, are copies with a
 * checksum for each 4 KiB. Header and root, without which nothing can be read, are there twice,
 * each with a checksum. All else is checked when it is read (ktr/image.h). Whatever the bytes are,
 * nothing here reads outside the region.
 *
 * Locking: ktr_persist_alloc() and ktr_persist_free() are called under the control lock, the others
 * early in the boot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KTR_PERSIST_MAGIC   "KTRSTAYS"
#define KTR_PERSIST_VERSION 4u
#define KTR_PERSIST_WINDOWS 6u
#define KTR_PERSIST_TEXTS   2u    /* windows of ktr_persist_make()'s caller */
#define KTR_PERSIST_BLOCK   4096u /* bytes under one checksum */
#define KTR_PERSIST_BLOCKS  512u  /* in all windows: 2 MiB of sites and texts */
/** Bytes at a region's start that contain both headers; the second begins in the middle. */
#define KTR_PERSIST_HEAD 4096u
/** Regions begin at a multiple of it. */
#define KTR_PERSIST_ALIGN (1u << 20)

/** Addresses [va, va + size) of the kernel that wrote the region stand at offset `at`. */
struct ktr_persist_window {
	uint64_t va, size, at;
	uint64_t crcs; /* offset of a CRC-32C for each block; 0: the contents change */
};

/** At offset 0, and its copy at KTR_PERSIST_HEAD / 2. */
struct ktr_persist {
	char magic[8];
	uint32_t crc;     /* of the rest of the header, after this word */
	uint32_t version; /* also of what root leads to */
	uint64_t size;    /* of the region, bytes */
	uint64_t phys;    /* physical address: a copy elsewhere is not valid */
	uint64_t boot;    /* grows from boot to boot */
	uint64_t root;    /* address of the struct ktr_image_root in use */
	uint64_t spare;   /* address of its copy */
	uint64_t rings;   /* offset of the first byte for rings */
	struct ktr_persist_window windows[KTR_PERSIST_WINDOWS];
};

/** Memory of the running kernel that a region takes a copy of. */
struct ktr_persist_text {
	const void *start;
	size_t size;
};

/**
 * Makes a region of `size` bytes of memory at p, physical address phys, and moves the names
 * (ktr/intern.h) and the image root into it; from now on ktr_persist_alloc() has its rings. texts:
 * read-only data to which sites and parameters point. Before any other CPU runs. False: too small,
 * or too many texts.
 */
bool ktr_persist_make(void *p, size_t size, uint64_t phys, uint64_t boot,
		      const struct ktr_persist_text *texts, unsigned count);

/** The region in use; NULL: none. Any context. */
const struct ktr_persist *ktr_persist_get(void);

/** Zeroed memory of the region for a ring, aligned to 64. NULL: no region, or no room. */
void *ktr_persist_alloc(size_t size);
/** Takes a copy of what has changed of memory that changes seldom. Control lock. */
void ktr_persist_store(const void *p, size_t size);

/** False: not of the region. */
bool ktr_persist_free(void *p);

/**
 * Is there a region at p, and is all of its `size` within `room` bytes? phys is the address of p.
 * Reads KTR_PERSIST_HEAD bytes. If only the copy of the header is sound, writes the header anew
 * from it.
 */
bool ktr_persist_open(void *p, uint64_t phys, size_t room);

/** Was there the header of a region at p, of which some bytes are damaged? */
bool ktr_persist_resembles(const void *p);

/** A region of another boot, for reading. */
struct ktr_persist_reader {
	const struct ktr_persist *region;
	uint64_t bad[KTR_PERSIST_BLOCKS / 64]; /* bit N: block N of the copies is damaged */
	unsigned bad_count;
};

/** region is open (ktr_persist_open()). Checks all blocks. */
void ktr_persist_reader_init(struct ktr_persist_reader *r, const struct ktr_persist *region);

/** The address of the region's root, or of its copy if only that is whole. */
uint64_t ktr_persist_root(struct ktr_persist_reader *r);

/**
 * Copies n bytes from address va of the kernel that wrote the region. False if they are not in the
 * region, or damaged. reader is a struct ktr_persist_reader. Any context.
 */
bool ktr_persist_read(void *reader, uint64_t va, void *buf, size_t n);
