/*
 * intern.c - an arena of texts that only grows, a hash of offsets into it, and the names of
 * threads: one struct, without pointers.
 *
 * Invariants: a text is complete before its offset is published in the table; nothing in the arena
 * or the table is ever changed afterwards; the last byte of the arena is NUL, so that reading a
 * string from any address in it ends.
 *
 * Locking: none. Space is claimed by an atomic addition, table and thread slots are single words.
 */
#include "ktr/intern.h"

#include "ktr/fmt.h"
#include "ktr/image.h"
#include "ktr/port.h"
#include "ktr/str.h"

#define INTERN_TEXT 255u

static struct ktr_names ktr_names_first;
static struct ktr_names *names = &ktr_names_first;

static const char intern_full[] = "(intern full)";

static uint32_t
intern_hash(const char *text, size_t len)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

static bool
intern_is(uint32_t offset, const char *text, size_t len)
{
	const char *s = &names->arena[offset];
	size_t i = 0;
	while (i < len && s[i] == text[i])
		i++;
	return i == len && s[i] == '\0';
}

/* Copies the text into the arena. Returns its offset + 1, 0 when it is full. */
static uint32_t
intern_add(const char *text, size_t len)
{
	uint32_t used = __atomic_load_n(&names->used, __ATOMIC_RELAXED);
	uint32_t need = (uint32_t)len + 1;
	do {
		if (used + need > KTR_INTERN_BYTES - 1)
			return 0;
	} while (!__atomic_compare_exchange_n(&names->used, &used, used + need, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	for (size_t i = 0; i < len; i++)
		names->arena[used + i] = text[i];
	return used + 1;
}

const char *
ktr_intern(const char *text)
{
	size_t len = ktr_strlen(text);
	if (len > INTERN_TEXT)
		len = INTERN_TEXT;
	uint32_t added = 0;
	uint32_t h = intern_hash(text, len);
	for (uint32_t i = 0; i < KTR_INTERN_SLOTS; i++) {
		uint32_t *slot = &names->table[(h + i) & (KTR_INTERN_SLOTS - 1)];
		/* acquire: pairs with the release below, so that the text is there */
		uint32_t found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (found == 0) {
			if (added == 0)
				added = intern_add(text, len);
			if (added == 0)
				return intern_full;
			/* release: pairs with the acquires here; acquire: another's text */
			if (__atomic_compare_exchange_n(slot, &found, added, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return &names->arena[added - 1];
		}
		if (intern_is(found - 1, text, len))
			return &names->arena[found - 1];
	}
	return added != 0 ? &names->arena[added - 1] : intern_full;
}

const struct ktr_names *
ktr_names_get(void)
{
	return names;
}

const struct ktr_names *
ktr_names_get_first(void)
{
	return &ktr_names_first;
}

void
ktr_names_move(struct ktr_names *to)
{
	ktr_copy(to, names, sizeof(*to));
	names = to;
	ktr_image_refresh();
}

size_t
ktr_intern_used(void)
{
	return __atomic_load_n(&names->used, __ATOMIC_RELAXED);
}

/* The slot of a thread in its set; NULL: none. */
static uint64_t *
thread_find(uint32_t tid, uint64_t *word)
{
	uint64_t *set = names->threads[tid & (KTR_THREAD_SETS - 1)];
	for (unsigned i = 0; i < KTR_THREAD_WAYS; i++) {
		/* acquire: pairs with the release in ktr_thread_name() */
		*word = __atomic_load_n(&set[i], __ATOMIC_ACQUIRE);
		if ((uint32_t)*word != 0 && *word >> 32 == tid)
			return &set[i];
	}
	return NULL;
}

/* Where a new thread's name goes: a free slot, one of a thread that has ended, else any. */
static uint64_t *
thread_victim(uint32_t tid, uint64_t *word)
{
	uint64_t *set = names->threads[tid & (KTR_THREAD_SETS - 1)];
	unsigned turn = tid / KTR_THREAD_SETS;
	for (unsigned i = 0; i < KTR_THREAD_WAYS; i++) {
		uint64_t *slot = &set[(turn + i) % KTR_THREAD_WAYS];
		*word = __atomic_load_n(slot, __ATOMIC_RELAXED);
		if ((uint32_t)*word == 0 || (*word & KTR_THREAD_GONE) != 0)
			return slot;
	}
	*word = __atomic_load_n(&set[turn % KTR_THREAD_WAYS], __ATOMIC_RELAXED);
	return &set[turn % KTR_THREAD_WAYS];
}

void
ktr_thread_name(uint32_t tid, const char *name)
{
	const char *text = ktr_intern(name);
	uint64_t word = (uint64_t)tid << 32, old;
	uint64_t *slot;
	if (text != intern_full)
		word |= (uint32_t)(text - names->arena + 1);
	do {
		slot = thread_find(tid, &old);
		if (slot == NULL)
			slot = thread_victim(tid, &old);
		/* release: pairs with the acquire in thread_find() */
	} while (!__atomic_compare_exchange_n(slot, &old, word, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

void
ktr_thread_gone(uint32_t tid)
{
	uint64_t word;
	uint64_t *slot = thread_find(tid, &word);
	if (slot != NULL)
		__atomic_compare_exchange_n(slot, &word, word | KTR_THREAD_GONE, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const char *
ktr_thread_name_get(uint32_t tid)
{
	uint64_t word;
	if (thread_find(tid, &word) == NULL)
		return NULL;
	return &names->arena[((uint32_t)word & ~KTR_THREAD_GONE) - 1];
}

static bool
names_hold(const struct ktr_names *n, uint64_t value)
{
	return value >= (uintptr_t)n->arena && value < (uintptr_t)n->arena + sizeof(n->arena) - 1;
}

const char *
ktr_ident_text(uint64_t ident, const char *name, char *buf)
{
	fmt_snprintf(buf, KTR_STRING_MAX, "%s%stid %u", name != NULL ? name : "",
		     name != NULL ? " " : "", (unsigned)ident);
	return buf;
}

const char *
ktr_string_text(uint64_t value, char *buf)
{
	const char *p = (const char *)(uintptr_t)value;
	if (value >> 48 == KTR_IDENT_TAG)
		return ktr_ident_text(value, ktr_thread_name_get((uint32_t)value), buf);
	if (names_hold(names, value) || names_hold(&ktr_names_first, value) || p == intern_full ||
	    ktr_port_string_ok(p))
		return p;
	return NULL;
}
