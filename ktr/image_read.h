/*
 * image_read.h - a foreign log, found by its root (ktr/image.h), as a stream (ktr/WIRE.md): one
 * way for memory dumps, debuggers and the boot before.
 *
 * Nothing that is read is believed: counts are bounded, addresses go through the caller's read
 * function alone, a ring only when its header is plausible, and an entry only when its site and its
 * time fit those around it. What does not fit was damaged: a header is a FAULT in the stream, an
 * entry a LOSS of kind corrupt.
 *
 * No allocation, no locks: a struct ktr_image is used by one thread, and may lie still for long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/encode.h"
#include "ktr/image.h"
#include "ktr/intern.h"
#include "ktr/stream.h"

/** Copies n bytes from a virtual address of the kernel that wrote the log. False: not there. */
typedef bool ktr_image_read_fn(void *arg, uint64_t va, void *buf, size_t n);

#define KTR_IMAGE_SITES 32u /* kept ready */

/** What a CPU has in the image. */
struct ktr_image_cpu {
	bool exists;
	uint64_t slots; /* address */
	uint64_t entries;
	uint64_t tail,
	    head;       /* sequence numbers: the oldest that may be there, and behind the newest */
	uint64_t sound; /* entries that fit */
	uint64_t corrupt;                 /* those that do not */
	uint64_t first_ticks, last_ticks; /* of sound entries */
	char fault[128];                  /* what does not fit in the ring's header; "": all does */
	/* The stream's. */
	uint64_t cursor, ticks, delivered, lost;
	bool fault_told;
};

/** About 260 KiB: not for a stack. Private to image_read.c, but for allocation, info and cpu. */
struct ktr_image {
	struct ktr_info info; /* what the writer said of itself */
	struct ktr_image_cpu cpu[KTR_PORT_MAXCPU];

	ktr_image_read_fn *read;
	void *arg;
	uint64_t root_va;
	struct ktr_image_root root; /* its rows of rings unused */
	struct ktr_names names;     /* a copy */
	struct ktr_image_site {
		struct ktr_site site; /* its texts are those here */
		uint32_t number;      /* + 1; 0: empty */
		char file[KTR_WIRE_FILE_MAX + 1];
		char func[KTR_WIRE_FUNC_MAX + 1];
		char fmt[KTR_WIRE_FMT_MAX + 1];
	} sites[KTR_IMAGE_SITES];
	struct ktr_encoder enc;
	unsigned turn; /* CPU whose batch is next; KTR_PORT_MAXCPU: all are done */
	bool ended;
	struct ktr_wire_cpu rows[KTR_PORT_MAXCPU];
};

/**
 * Looks at the log whose root is at address root, and counts what is sound in it. 0, or
 * -KTR_EINVAL with a sentence in err (errlen > 0) that says what was found and what was expected.
 * Takes time: every entry is read.
 */
int ktr_image_open(struct ktr_image *im, ktr_image_read_fn *read, void *arg, uint64_t root,
		   char *err, size_t errlen);

/** Sound entries of all CPUs, and damaged ones. */
void ktr_image_count(const struct ktr_image *im, uint64_t *sound, uint64_t *corrupt);

/** The stream begins anew. */
void ktr_image_rewind(struct ktr_image *im);

/** Fills buf with up to len bytes of the stream. Returns how many; 0: it has ended. */
size_t ktr_image_stream(struct ktr_image *im, void *buf, size_t len);
