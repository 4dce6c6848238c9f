/*
 * encode.h - turns events and metadata into frames (ktr/WIRE.md), in buffers of fixed size.
 *
 * An encoder belongs to one stream, and one thread at a time uses it. It allocates nothing and
 * waits for nothing, so that it works after a panic.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/ring.h"
#include "ktr/wire.h"

/*
 * KTR_SMALL: little memory. Longer texts are cut; frames are shorter, and metadata comes more
 * often. A site whose number is not below KTR_ENCODER_SITES is told as often as an encoder needs
 * it.
 */
#ifdef KTR_SMALL
#define KTR_ENCODER_FRAME   512u  /* the longest frame */
#define KTR_ENCODER_OUT     1984u /* as below */
#define KTR_ENCODER_BATCH   160u
#define KTR_ENCODER_SLOTS   8u
#define KTR_ENCODER_SITES   512u
#define KTR_ENCODER_STRINGS 8u
#define KTR_ENCODER_THREADS 4u
#define KTR_ENCODER_TOLD    2u
#define KTR_ENCODER_FILE    47u
#define KTR_ENCODER_FUNC    31u
#define KTR_ENCODER_FMT     255u
#define KTR_ENCODER_STRING  47u
#else
#define KTR_ENCODER_FRAME   KTR_WIRE_FRAME_MAX
/** The smallest buffer for frames: what ktr_encoder_room() asks for, and some frames more. */
#define KTR_ENCODER_OUT     16384u
#define KTR_ENCODER_BATCH   2048u /* a batch ends when its events take as much */
#define KTR_ENCODER_SLOTS   KTR_WIRE_SLOTS
#define KTR_ENCODER_SITES   65536u
#define KTR_ENCODER_STRINGS 512u
#define KTR_ENCODER_THREADS 256u
#define KTR_ENCODER_TOLD    16u /* threads, and idents */
/** Longest texts. */
#define KTR_ENCODER_FILE    KTR_WIRE_FILE_MAX
#define KTR_ENCODER_FUNC    KTR_WIRE_FUNC_MAX
#define KTR_ENCODER_FMT     KTR_WIRE_FMT_MAX
#define KTR_ENCODER_STRING  KTR_WIRE_STRING_MAX
#endif
#define KTR_ENCODER_ARCH 63u

/** What a stream says about the machine. Texts must stay valid. */
struct ktr_info {
	const char *arch;    /* "x86_64" */
	const char *build;   /* anything that names the build */
	uint8_t boot_id[16]; /* differs from boot to boot */
	uint64_t hz;         /* ticks of ktr_port_time() a second; 0 not known yet */
	uint64_t boot_ticks; /* ktr_port_time() at second 0 */
	uint32_t ncpu;
};

struct ktr_stats;

/** Where an encoder has metadata from, if it is not this program's own log. */
struct ktr_encode_source {
	/** NULL: no such site. It may change with the next call. */
	struct ktr_site *(*site)(void *arg, unsigned number);
	/** As ktr_names_thread(). */
	uint64_t (*thread)(void *arg, uint32_t tid, char *name);
	/** As ktr_string_text(). */
	const char *(*string_text)(void *arg, uint64_t value, char *buf);
	/** As ktr_stats_get(). */
	bool (*stats)(void *arg, unsigned cpu, struct ktr_stats *stats);
	/** As ktr_mask_get(). */
	uint64_t (*mask)(void *arg);
};

struct ktr_encoder {
	const struct ktr_encode_source *source;
	void *source_arg;

	uint8_t *out; /* out_size bytes for finished frames: own, or the caller's */
	size_t out_size;
	size_t out_len; /* bytes of finished frames in out */
	size_t out_pos; /* of those, already taken away */
	uint64_t total; /* bytes of frames since ktr_encoder_init() */
	uint8_t own[KTR_ENCODER_OUT];

	uint8_t frame[KTR_ENCODER_FRAME]; /* the frame that is being built */
	size_t frame_len;

	uint8_t batch[KTR_ENCODER_BATCH + 128]; /* the batch's events */
	size_t batch_len;
	uint32_t batch_count;
	uint32_t batch_cpu;
	uint64_t batch_first; /* sequence number */
	uint64_t batch_base;  /* ticks */
	uint64_t batch_ticks; /* of the last event */
	uint32_t batch_tid0;
	uint32_t batch_tid;
	uint32_t *batch_last;                          /* successor of the last event's site */
	uint32_t batch_none;                           /* … before there is one */
	struct ktr_wire_slot slots[KTR_ENCODER_SLOTS]; /* as the batch's reader has them */
	uint64_t told[2][KTR_ENCODER_TOLD];            /* whose names this batch has; 0: none */

	uint8_t sites[KTR_ENCODER_SITES / 8]; /* bit N: SITE N was sent */
	struct ktr_encoder_site {
		uint32_t site; /* number + 1; 0: empty */
		uint8_t nargs;
		uint8_t strings; /* bit N: parameter N is a %s */
	} recent[KTR_ENCODER_SLOTS];
	struct ktr_encoder_string {
		uint64_t value;
		uint64_t name; /* number of the name in a thread ident's text; 0: none */
	} strings[KTR_ENCODER_STRINGS][2];
	uint64_t threads[KTR_ENCODER_THREADS][2]; /* numbers of names by thread id; 0: empty */
};

/** Per-CPU numbers of a stream, in its HEADER, TRUNCATED and END frames. */
struct ktr_wire_cpu {
	uint32_t cpu;
	uint64_t first;     /* sequence number that the stream began with */
	uint64_t next;      /* … that it would go on with */
	uint64_t delivered; /* next - first = delivered + overwritten + corrupt + cleared */
	uint64_t overwritten;
	uint64_t corrupt; /* damaged entries of a dump, or of the boot before a reset */
	uint64_t cleared;
	uint64_t suppressed; /* since start-up */
	uint64_t left;       /* TRUNCATED: recorded, from next on, but not in the stream */
};

/** source NULL: this program's log. Frames go into the encoder's own buffer. */
void ktr_encoder_init(struct ktr_encoder *e, const struct ktr_encode_source *source, void *arg);
/** Forgets which metadata was sent, so that it is sent again. */
void ktr_encoder_forget(struct ktr_encoder *e);
/** Forgets which sites made at run time were sent. No batch is being built. */
void ktr_encoder_forget_made(struct ktr_encoder *e);

/** False: the caller must take e->out away before the next ktr_encode_…() call. */
bool ktr_encoder_room(const struct ktr_encoder *e);

/* Each appends frames to e->out, which must have room. `cpus` has n rows. */
void ktr_encode_delimiter(struct ktr_encoder *e);
void ktr_encode_header(struct ktr_encoder *e, unsigned flags, const struct ktr_info *info,
		       const struct ktr_wire_cpu *cpus, unsigned n);
void ktr_encode_loss(struct ktr_encoder *e, unsigned cpu, uint64_t first, uint64_t count,
		     uint64_t from_ticks, uint64_t to_ticks, enum ktr_wire_loss reason);
void ktr_encode_fault(struct ktr_encoder *e, unsigned cpu, const char *text);
void ktr_encode_mark(struct ktr_encoder *e, uint64_t ticks);
/** Puts the mask into the stream as it is now. Returns it. */
uint64_t ktr_encode_mask(struct ktr_encoder *e);
void ktr_encode_stats(struct ktr_encoder *e, uint64_t ticks);
void ktr_encode_truncated(struct ktr_encoder *e, const struct ktr_wire_cpu *cpus, unsigned n);
void ktr_encode_end(struct ktr_encoder *e, const struct ktr_wire_cpu *cpus, unsigned n);

/**
 * Adds an event to the batch of its CPU, and before it the metadata that it needs. False if the
 * batch has to end first: it is full, or another CPU's, or seq does not follow its last one.
 */
bool ktr_encode_event(struct ktr_encoder *e, unsigned cpu, uint64_t seq,
		      const struct ktr_entry *entry);
/** Ends the batch, if there is one: its frame is appended. */
void ktr_encode_batch(struct ktr_encoder *e);
