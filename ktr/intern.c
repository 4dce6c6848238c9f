/*
 * intern.c - texts in a circular buffer, found by their position, and the names of threads.
 *
 * A text is a record: a word with its position and a checksum, then its characters and a NUL.
 * A writer claims room by an atomic addition, stores the characters, and stores the word last. A
 * slow writer may store into room that others have claimed since, one turn of the buffer later. So
 * a reader accepts a record only if its word has the position that the handle says, and its
 * checksum fits the characters. Otherwise the text is gone.
 *
 * A hash table remembers where texts were interned, so that equal texts share a handle. It is only
 * a hint: a position from it is checked like any handle.
 *
 * A thread's name is guarded by a word, like a seqlock's data by its count. The writer marks the
 * word busy, stores the name, and stores the word with a new number. A reader that finds another
 * word after copying the name discards the copy.
 *
 * Locking: none.
 */
#include "ktr/intern.h"

#include "ktr/fmt.h"
#include "ktr/image.h"
#include "ktr/port.h"
#include "ktr/str.h"
#include "ktr/wire.h"

#define INTERN_TEXT  255u
#define INTERN_TABLE (KTR_INTERN_BYTES / 64) /* power of two */
#define INTERN_FIRST 8u                      /* no text has position 0 */

#define THREAD_GONE   1u /* in the lower half of a word: the thread has ended */
#define THREAD_BUSY   1u /* the whole word: its name is being stored */
#define THREAD_NUMBER 2u /* numbers count in such steps */

static struct ktr_names ktr_names_first; /* zeroes, until names_begin() */
static struct ktr_names *intern_names = &ktr_names_first;
static uint64_t intern_table[INTERN_TABLE]; /* positions by hash; atomic */

/*
 * Makes the first names at run time, so that they take no room in the program's file. Whoever
 * interrupts this, or comes at the same time, does the same, or finds it done.
 */
static void
names_begin(void)
{
	struct ktr_names *n = intern_names;
	uint64_t none = 0;
	/* acquire: pairs with the release below */
	if (__atomic_load_n(&n->bytes, __ATOMIC_ACQUIRE) != 0)
		return;
	__atomic_compare_exchange_n(&n->head, &none, KTR_INTERN_KEPT, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	none = 0;
	__atomic_compare_exchange_n(&n->kept, &none, INTERN_FIRST, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	__atomic_store_n(&n->bytes, KTR_INTERN_BYTES, __ATOMIC_RELEASE);
}

static uint32_t
intern_hash(const char *text, size_t len)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

bool
ktr_names_sound(const struct ktr_names *n, size_t size)
{
	return size >= offsetof(struct ktr_names, texts) && n->bytes >= 1024 &&
	       n->bytes <= KTR_INTERN_BYTES && (n->bytes & (n->bytes - 1)) == 0 &&
	       size == offsetof(struct ktr_names, texts) + n->bytes / 8 + n->bytes;
}

/* The offset in `texts` of a position. */
static size_t
intern_text_at(const struct ktr_names *n, uint64_t pos)
{
	uint64_t kept = n->bytes / 8;
	return pos < kept ? (size_t)pos : (size_t)(kept + ((pos - kept) & (n->bytes - 1)));
}

static uint64_t
text_word(uint64_t pos, uint32_t hash)
{
	return (uint64_t)hash << 32 | (uint32_t)(pos / 8);
}

/* Copies the text at a position. False: it is gone. */
static bool
intern_text_read(const struct ktr_names *n, uint64_t pos, char *buf)
{
	/* acquire: pairs with the release in intern_add() */
	uint64_t word = __atomic_load_n(&n->texts[intern_text_at(n, pos) / 8], __ATOMIC_ACQUIRE);
	size_t len = 0;
	do {
		const char *c = (const char *)n->texts + intern_text_at(n, pos + 8 + len);
		buf[len] = __atomic_load_n(c, __ATOMIC_RELAXED);
	} while (buf[len] != '\0' && ++len <= INTERN_TEXT);
	return len <= INTERN_TEXT && word == text_word(pos, intern_hash(buf, len));
}

static void
intern_add(uint64_t pos, const char *text, size_t len, uint32_t hash)
{
	for (size_t i = 0; i <= len; i++) {
		char *c = (char *)intern_names->texts + intern_text_at(intern_names, pos + 8 + i);
		__atomic_store_n(c, i < len ? text[i] : '\0', __ATOMIC_RELAXED);
	}
	/* release: pairs with the acquire in intern_text_read() */
	__atomic_store_n(&intern_names->texts[intern_text_at(intern_names, pos) / 8],
			 text_word(pos, hash), __ATOMIC_RELEASE);
}

static size_t
text_length(const char *text)
{
	size_t len = 0;
	while (len < INTERN_TEXT && text[len] != '\0')
		len++;
	return len;
}

/* The bytes of a text's record. */
static uint64_t
text_room(size_t len)
{
	return (8 + len + 1 + 7) & ~(uint64_t)7;
}

static const char *
handle_of(uint64_t pos)
{
	return (const char *)(uintptr_t)(KTR_INTERN_TAG << 48 | pos);
}

/* Is this the text at a position? */
static bool
text_is(uint64_t pos, const char *text, size_t len, uint32_t hash)
{
	char buf[INTERN_TEXT + 1];
	if (__atomic_load_n(&intern_names->texts[intern_text_at(intern_names, pos) / 8],
			    __ATOMIC_RELAXED) != text_word(pos, hash) ||
	    !intern_text_read(intern_names, pos, buf))
		return false;
	size_t i = 0;
	while (i < len && buf[i] == text[i])
		i++;
	return i == len && buf[i] == '\0';
}

const char *
ktr_intern(const char *text)
{
	names_begin();
	size_t len = text_length(text);
	uint32_t hash = intern_hash(text, len);
	uint64_t *hint = &intern_table[hash & (INTERN_TABLE - 1)];
	uint64_t pos = __atomic_load_n(hint, __ATOMIC_RELAXED);
	uint64_t head = __atomic_load_n(&intern_names->head, __ATOMIC_RELAXED);
	/* An old text is interned again: the event that names it should be readable for a while. */
	if (pos != 0 && head - pos <= KTR_INTERN_BYTES / 2 && text_is(pos, text, len, hash))
		return handle_of(pos);
	pos = __atomic_fetch_add(&intern_names->head, text_room(len), __ATOMIC_RELAXED);
	intern_add(pos, text, len, hash);
	__atomic_store_n(hint, pos, __ATOMIC_RELAXED);
	return handle_of(pos);
}

const char *
ktr_intern_keep(const char *text)
{
	names_begin();
	size_t len = text_length(text);
	uint64_t pos = __atomic_load_n(&intern_names->kept, __ATOMIC_RELAXED);
	do {
		if (pos + text_room(len) > KTR_INTERN_KEPT)
			return ktr_intern(text);
	} while (!__atomic_compare_exchange_n(&intern_names->kept, &pos, pos + text_room(len), true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	intern_add(pos, text, len, intern_hash(text, len));
	return handle_of(pos);
}

const char *
ktr_names_text(const struct ktr_names *n, uint64_t handle, char *buf)
{
	uint64_t pos = handle & ~(KTR_INTERN_TAG << 48);
	return n->bytes != 0 && pos % 8 == 0 && intern_text_read(n, pos, buf) ? buf : "(gone)";
}

const struct ktr_names *
ktr_names_get(void)
{
	names_begin();
	return intern_names;
}

void
ktr_names_move(struct ktr_names *to)
{
	names_begin();
	ktr_copy(to, intern_names, sizeof(*to));
	intern_names = to;
	ktr_image_refresh();
}

/* Does this word guard a name of that thread? */
static bool
thread_has(uint64_t word, uint32_t tid)
{
	return word >> 32 == tid && (uint32_t)word >= THREAD_NUMBER;
}

/* Finds the way of its set in which a thread's name is, and the word. -1: it has no name. */
static int
thread_find(const struct ktr_names *n, uint32_t tid, uint64_t *word)
{
	const uint64_t *set = n->threads[tid & (KTR_THREAD_SETS - 1)];
	for (unsigned i = 0; i < KTR_THREAD_WAYS; i++) {
		/* acquire: pairs with the release in ktr_thread_name() */
		*word = __atomic_load_n(&set[i], __ATOMIC_ACQUIRE);
		if (thread_has(*word, tid))
			return (int)i;
	}
	return -1;
}

/* Chooses the way for a new thread's name: a free one, else that of a thread that has ended, else
 * any. -1 if all are busy. */
static int
thread_victim(uint32_t tid, uint64_t *word)
{
	const uint64_t *set = intern_names->threads[tid & (KTR_THREAD_SETS - 1)];
	int any = -1;
	for (unsigned i = 0; i < KTR_THREAD_WAYS; i++) {
		unsigned way = (tid / KTR_THREAD_SETS + i) % KTR_THREAD_WAYS;
		uint64_t found = __atomic_load_n(&set[way], __ATOMIC_RELAXED);
		bool free = found == 0 || (found & THREAD_GONE) != 0;
		if (found == THREAD_BUSY || (any >= 0 && !free))
			continue;
		*word = found;
		any = (int)way;
		if (free)
			break;
	}
	return any;
}

/*
 * Drops the other name of a thread. Two who name a thread at the same time do not see what the
 * other one stores, so it has two names; the later one stays. word: the word that guards the
 * caller's.
 */
static void
thread_drop_older(uint32_t tid, int way, uint64_t word)
{
	uint64_t *set = intern_names->threads[tid & (KTR_THREAD_SETS - 1)];
	/* pairs with the same one of the other: one of them at least sees both names */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int i = 0; i < (int)KTR_THREAD_WAYS; i++) {
		uint64_t other = __atomic_load_n(&set[i], __ATOMIC_RELAXED);
		if (i == way || !thread_has(other, tid))
			continue;
		bool later = (int32_t)((uint32_t)other - (uint32_t)word) > 0;
		uint64_t *older = later ? &word : &other;
		__atomic_compare_exchange_n(&set[later ? way : i], older, 0, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void
ktr_thread_name(uint32_t tid, const char *name)
{
	uint32_t number = (uint32_t)__atomic_add_fetch(&intern_names->renames, 1, __ATOMIC_RELAXED);
	unsigned set = tid & (KTR_THREAD_SETS - 1);
	uint64_t word;
	int way;
	do {
		way = thread_find(intern_names, tid, &word);
		if (way < 0)
			way = thread_victim(tid, &word);
		if (way < 0)
			return; /* other CPUs are storing names in all of them */
	} while (!__atomic_compare_exchange_n(&intern_names->threads[set][way], &word, THREAD_BUSY,
					      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_RELEASE); /* busy before any of the name is seen */
	KTR_PORT_STEP(KTR_HOST_NAME);
	char *to = intern_names->thread_names[set][way];
	for (unsigned i = 0; i < KTR_THREAD_NAME; i++) {
		char c = i < KTR_THREAD_NAME - 1 ? *name : '\0';
		__atomic_store_n(&to[i], c, __ATOMIC_RELAXED);
		if (c == '\0')
			break;
		name++;
	}
	word = (uint64_t)tid << 32 | (uint32_t)(number * THREAD_NUMBER);
	/* release: pairs with the acquire in thread_find() */
	__atomic_store_n(&intern_names->threads[set][way], word, __ATOMIC_RELEASE);
	thread_drop_older(tid, way, word);
}

void
ktr_thread_gone(uint32_t tid)
{
	uint64_t word;
	int way = thread_find(intern_names, tid, &word);
	if (way >= 0)
		__atomic_compare_exchange_n(
		    &intern_names->threads[tid & (KTR_THREAD_SETS - 1)][way], &word,
		    word | THREAD_GONE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

uint64_t
ktr_names_thread(const struct ktr_names *n, uint32_t tid, char *name)
{
	unsigned set = tid & (KTR_THREAD_SETS - 1);
	uint64_t word;
	int way = thread_find(n, tid, &word);
	if (way < 0)
		return 0;
	for (unsigned i = 0; name != NULL && i < KTR_THREAD_NAME; i++) {
		name[i] = __atomic_load_n(&n->thread_names[set][way][i], __ATOMIC_RELAXED);
		if (name[i] == '\0')
			break;
	}
	if (name != NULL) {
		name[KTR_THREAD_NAME - 1] = '\0';
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* the name before the word again */
		uint64_t after = __atomic_load_n(&n->threads[set][way], __ATOMIC_RELAXED);
		if ((after | THREAD_GONE) != (word | THREAD_GONE))
			return 0;
	}
	return word & ~(uint64_t)THREAD_GONE;
}

const char *
ktr_thread_name_get(uint32_t tid, char *buf)
{
	return ktr_names_thread(intern_names, tid, buf) != 0 ? buf : NULL;
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
	char name[KTR_THREAD_NAME];
	if (value >> 48 == KTR_IDENT_TAG)
		return ktr_ident_text(value, ktr_thread_name_get((uint32_t)value, name), buf);
	if (value >> 48 == KTR_INTERN_TAG)
		return ktr_names_text(intern_names, value, buf);
	if (ktr_data_is_word(value))
		return NULL;
	const char *p = (const char *)(uintptr_t)value;
	return ktr_port_string_ok(p) ? p : NULL;
}
