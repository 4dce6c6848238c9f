/*
 * intern.c - an arena of texts that only grows, a hash of offsets into it, and the names of
 * threads.
 *
 * Invariants: a text is complete before its offset is published in the table; nothing in the arena
 * or the table is ever changed afterwards; the last byte of the arena is NUL, so that reading a
 * string from any address in it ends.
 *
 * Locking: none. Space is claimed by an atomic addition, table and thread slots are single words.
 */
#include "ktr/intern.h"

#include "ktr/fmt.h"
#include "ktr/port.h"
#include "ktr/str.h"

#define INTERN_SLOTS 4096u /* power of two */
#define INTERN_TEXT  255u
#define THREAD_SLOTS 1024u /* power of two */

static char intern_arena[KTR_INTERN_BYTES];
static uint32_t intern_used;                /* atomic */
static uint32_t intern_table[INTERN_SLOTS]; /* offset + 1; 0 free; written once */
static uint64_t thread_names[THREAD_SLOTS]; /* tid in the upper half, offset + 1 in the lower */

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
	const char *s = &intern_arena[offset];
	size_t i = 0;
	while (i < len && s[i] == text[i])
		i++;
	return i == len && s[i] == '\0';
}

/* Copies the text into the arena. Returns its offset + 1, 0 when it is full. */
static uint32_t
intern_add(const char *text, size_t len)
{
	uint32_t used = __atomic_load_n(&intern_used, __ATOMIC_RELAXED);
	uint32_t need = (uint32_t)len + 1;
	do {
		if (used + need > KTR_INTERN_BYTES - 1)
			return 0;
	} while (!__atomic_compare_exchange_n(&intern_used, &used, used + need, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	for (size_t i = 0; i < len; i++)
		intern_arena[used + i] = text[i];
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
	for (uint32_t i = 0; i < INTERN_SLOTS; i++) {
		uint32_t *slot = &intern_table[(h + i) & (INTERN_SLOTS - 1)];
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
				return &intern_arena[added - 1];
		}
		if (intern_is(found - 1, text, len))
			return &intern_arena[found - 1];
	}
	return added != 0 ? &intern_arena[added - 1] : intern_full;
}

size_t
ktr_intern_used(void)
{
	return __atomic_load_n(&intern_used, __ATOMIC_RELAXED);
}

void
ktr_thread_name(uint32_t tid, const char *name)
{
	const char *text = ktr_intern(name);
	uint64_t word = 0;
	if (text != intern_full)
		word = (uint64_t)tid << 32 | (uint32_t)(text - intern_arena + 1);
	/* release: pairs with the acquire in ktr_thread_name_get() */
	__atomic_store_n(&thread_names[tid & (THREAD_SLOTS - 1)], word, __ATOMIC_RELEASE);
}

const char *
ktr_thread_name_get(uint32_t tid)
{
	/* acquire: pairs with the release in ktr_thread_name() */
	uint64_t word = __atomic_load_n(&thread_names[tid & (THREAD_SLOTS - 1)], __ATOMIC_ACQUIRE);
	if ((uint32_t)word == 0 || word >> 32 != tid)
		return NULL;
	return &intern_arena[(uint32_t)word - 1];
}

const char *
ktr_string_text(uint64_t value, char *buf)
{
	const char *p = (const char *)(uintptr_t)value;
	if (value >> 48 == KTR_IDENT_TAG) {
		const char *name = ktr_thread_name_get((uint32_t)value);
		fmt_snprintf(buf, KTR_STRING_MAX, "%s%stid %u", name != NULL ? name : "",
			     name != NULL ? " " : "", (unsigned)value);
		return buf;
	}
	bool interned = value >= (uintptr_t)intern_arena &&
			value < (uintptr_t)intern_arena + sizeof(intern_arena) - 1;
	if (interned || p == intern_full || ktr_port_string_ok(p))
		return p;
	return NULL;
}
