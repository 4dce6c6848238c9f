/*
 * image_read.h - reads the log of another kernel by its root (ktr/image.h), and gives it as a
 * stream (ktr/WIRE.md). Used for memory dumps, debuggers and the log of the boot before.
 *
 * Everything is checked before it is used. Counts are bounded. Memory is read only through the
 * caller's function. A ring's header must fit its check, and an entry's site and time must fit the
 * entries around it. Damage is reported in the stream: a header's as a FAULT, an entry's as a LOSS
 * of kind corrupt. Events that had been overwritten are a LOSS, too.
 *
 * No allocation, no locks: one thread uses a struct ktr_image.
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
	uint64_t start;   /* sequence number of the log's first event; those below tail are lost */
	uint64_t tail;    /* number of the oldest event that may be there */
	uint64_t head;    /* that of the newest, + 1 */
	uint64_t sound;   /* entries that fit */
	uint64_t parts;   /* sound entries that are parts of the events' long data */
	uint64_t corrupt; /* those that do not */
	uint64_t since;   /* when the log began here, ticks */
	uint64_t first_ticks, last_ticks; /* of sound entries */
	char fault[128];                  /* what does not fit in the ring's header; "": all does */
	/* The stream's. */
	uint64_t cursor, ticks, delivered, lost, overwritten;
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

/**
 * Counts the sound events of all CPUs, and the damaged entries. Entries with parts of an event's
 * long data are no events; but damaged ones count as entries, like others.
 */
void ktr_image_count(const struct ktr_image *im, uint64_t *sound, uint64_t *corrupt);

/** Makes the stream begin again. */
void ktr_image_rewind(struct ktr_image *im);

/** Fills buf with up to len bytes of the stream. Returns how many; 0: it has ended. */
size_t ktr_image_stream(struct ktr_image *im, void *buf, size_t len);
