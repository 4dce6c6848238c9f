/*
 * intern.h - strings that an event may name: kept for ever, found again by address after a thread
 * is gone.
 *
 * Everything here may be called in any context: no locks, nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Top 16 bits of a thread ident: an address that no CPU of ours can have. */
#define KTR_IDENT_TAG 0x7a5cull

/** Bytes of text that can be interned, with their NULs: a power of two, at least 1024. */
#ifndef KTR_INTERN_BYTES
#define KTR_INTERN_BYTES (64u * 1024)
#endif
#define KTR_INTERN_SLOTS (KTR_INTERN_BYTES / 16)
_Static_assert(KTR_INTERN_BYTES >= 1024 && (KTR_INTERN_BYTES & (KTR_INTERN_BYTES - 1)) == 0,
	       "KTR_INTERN_BYTES");
#define KTR_THREAD_SETS  256u  /* power of two */
#define KTR_THREAD_WAYS  4u
#define KTR_THREAD_GONE  0x80000000u /* in the lower half of a slot: the thread has ended */

/**
 * All texts and names. It holds offsets and no pointers, so that it means the same wherever it
 * lies, and is sound at every moment: whoever finds it in a memory dump, or after a reset, reads
 * it (ktr/image.h).
 */
struct ktr_names {
	uint32_t used;                    /* bytes of arena; atomic */
	uint32_t table[KTR_INTERN_SLOTS]; /* offset + 1; 0 free; written once */
	/* Thread id in the upper half, offset + 1 in the lower; 0 free. Set: id modulo sets. */
	uint64_t threads[KTR_THREAD_SETS][KTR_THREAD_WAYS];
	char arena[KTR_INTERN_BYTES]; /* texts with their NULs; the last byte is NUL */
};

/**
 * The one copy of a text; equal texts give equal pointers, but for a race between two CPUs, which
 * may give two. Cut at 255 characters. When the arena is full: a constant "(intern full)".
 */
const char *ktr_intern(const char *text);

/** Bytes in use, at most KTR_INTERN_BYTES. */
size_t ktr_intern_used(void);

/** Remembers a thread's name for the stream and the tools. The name is interned by the call. */
void ktr_thread_name(uint32_t tid, const char *name);

/**
 * The thread has ended: its name stays until another thread needs the place. Living threads keep
 * theirs, up to 4 with the same tid modulo 256. Any context.
 */
void ktr_thread_gone(uint32_t tid);

/** The name of a thread that runs, or ran not too long ago. NULL: not known. Any context. */
const char *ktr_thread_name_get(uint32_t tid);

/**
 * A %s parameter that decodes as "NAME tid N" with the thread's name of the time when it is
 * decoded; takes no memory, unlike interning such a text for every thread. It is a number in the
 * place of a pointer: never read through it.
 */
static inline const char *
ktr_thread_ident(uint32_t tid)
{
	return (const char *)(uintptr_t)(KTR_IDENT_TAG << 48 | tid);
}

/** Room for ktr_string_text(). */
#define KTR_STRING_MAX 256u

/** The text of a thread ident whose thread has that name, NULL: not known. buf as below. */
const char *ktr_ident_text(uint64_t ident, const char *name, char *buf);

/**
 * The text of a %s parameter: an interned string, a thread ident, or read-only data. buf has room
 * for KTR_STRING_MAX bytes and may or may not be used. NULL: a pointer that must not be followed.
 */
const char *ktr_string_text(uint64_t value, char *buf);

/** Where the names are now, and where they were before they moved. Any context. */
const struct ktr_names *ktr_names_get(void);
const struct ktr_names *ktr_names_get_first(void);
/**
 * Goes on with the names at `to`, which has room for them and stays; texts that were handed out
 * before stay where they are, and valid. Early boot: one CPU, no interrupts.
 */
void ktr_names_move(struct ktr_names *to);
