/*
 * intern.h - texts and thread names that an event may name, in memory of a fixed size.
 *
 * A `%s` parameter may be the handle of an interned text: a number in the place of a pointer, which
 * is never read through. The texts stand one after the other in a circular buffer, and a handle
 * holds the position of its text, counted from the first text of all. So texts are overwritten like
 * events, the oldest first, and no handle ever means another text: its text is there, or it
 * decodes as "(gone)". So the buffer never runs full. Names of threads are stored separately.
 *
 * Everything here may be called in any context: no locks, nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The port's header may define KTR_SMALL. Tools that read logs have no port. */
#if __has_include(<ktr_port.h>)
#include <ktr_port.h>
#endif

/** Top 16 bits of a thread ident, and of a text's handle: no address that a CPU of ours can have.
 */
#define KTR_IDENT_TAG  0x7a5cull
#define KTR_INTERN_TAG 0x7a5dull

/**
 * Bytes for texts that are overwritten, a power of two; each takes at least 9 more than it is long.
 * A kernel may make it smaller, down to 1024.
 */
#if !defined(KTR_INTERN_BYTES) && defined(KTR_SMALL)
#define KTR_INTERN_BYTES 1024u
#elif !defined(KTR_INTERN_BYTES)
#define KTR_INTERN_BYTES (64u * 1024)
#endif
/** Bytes for texts that stay. */
#define KTR_INTERN_KEPT (KTR_INTERN_BYTES / 8)
_Static_assert(KTR_INTERN_BYTES >= 1024 && (KTR_INTERN_BYTES & (KTR_INTERN_BYTES - 1)) == 0,
	       "KTR_INTERN_BYTES");

#ifdef KTR_SMALL
#define KTR_THREAD_SETS 4u /* power of two */
#else
#define KTR_THREAD_SETS 256u
#endif
#define KTR_THREAD_WAYS 4u
/** Room for the name of a thread with its NUL; longer ones are cut. */
#define KTR_THREAD_NAME 32u

/**
 * All texts and names. The struct holds positions instead of pointers, so a copy at another address
 * means the same. It is consistent at every moment. A reader of a memory dump, or the boot after a
 * reset, uses the functions below on it (ktr/image.h).
 */
struct ktr_names {
	uint64_t bytes;   /* KTR_INTERN_BYTES of the kernel that wrote it */
	uint64_t head;    /* position of the next text; atomic */
	uint64_t kept;    /* … of the next text that stays; atomic */
	uint64_t renames; /* how often a thread got a name; atomic */
	/*
	 * For each name, its thread: the id in the upper half, and in the lower half a number that
	 * differs for each name. 0 if the name is free. A thread's set is its id modulo the number
	 * of sets. Atomic.
	 */
	uint64_t threads[KTR_THREAD_SETS][KTR_THREAD_WAYS];
	char thread_names[KTR_THREAD_SETS][KTR_THREAD_WAYS][KTR_THREAD_NAME];
	/* Those that stay, then the circular buffer. */
	uint64_t texts[(KTR_INTERN_KEPT + KTR_INTERN_BYTES) / 8];
};

/**
 * The handle of a text, which is cut at 255 characters. The text stays until KTR_INTERN_BYTES / 2
 * bytes of others have been interned, or longer. Equal texts have the same handle as long as it is
 * not old. For an event that is recorded soon.
 */
const char *ktr_intern(const char *text);

/**
 * As ktr_intern(), but the text stays. For names that the kernel gives, a few for each CPU or
 * device; where there is no more room it is as ktr_intern().
 */
const char *ktr_intern_keep(const char *text);

/** Remembers a thread's name for the stream and the tools. */
void ktr_thread_name(uint32_t tid, const char *name);

/**
 * The thread has ended: its name stays until another thread needs the place. Living threads keep
 * theirs, up to 4 with the same tid modulo KTR_THREAD_SETS. Any context.
 */
void ktr_thread_gone(uint32_t tid);

/**
 * The name of a thread that runs, or ran not too long ago, copied to buf, which has room for
 * KTR_THREAD_NAME. NULL: not known. Any context.
 */
const char *ktr_thread_name_get(uint32_t tid, char *buf);

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
 * The text of a %s parameter: an interned text, a thread ident, or read-only data. buf has room
 * for KTR_STRING_MAX bytes and may or may not be used. NULL: a pointer that must not be followed.
 */
const char *ktr_string_text(uint64_t value, char *buf);

/** Can a struct of `size` bytes that was found somewhere be read by the functions below? */
bool ktr_names_sound(const struct ktr_names *n, size_t size);

/** The text of a handle in `n`, copied to buf, which has room for KTR_STRING_MAX; or "(gone)". */
const char *ktr_names_text(const struct ktr_names *n, uint64_t handle, char *buf);

/**
 * Finds a thread's name in `n`. Returns its number, which differs for each name; 0 if the name is
 * not known. name, unless it is NULL, gets a copy; it has room for KTR_THREAD_NAME.
 */
uint64_t ktr_names_thread(const struct ktr_names *n, uint32_t tid, char *name);

/** Where the names are now. Any context. */
const struct ktr_names *ktr_names_get(void);
/**
 * Goes on with the names at `to`, which has room for them and stays; handles stay valid. Early
 * boot: one CPU, no interrupts.
 */
void ktr_names_move(struct ktr_names *to);
