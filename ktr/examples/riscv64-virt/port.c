/*
 * port.c - the functions that the log asks for, on bare harts.
 *
 * Locking: control_lock is the log's control lock; interrupt handlers record, and take no lock.
 */
#include <ktr.h>

#define ARENA_BYTES (HARTS * KTR_ENTRIES_DEFAULT * sizeof(struct ktr_entry))

struct hart harts[HARTS];

static bool control_lock;
static uint8_t arena[ARENA_BYTES] __attribute__((aligned(64)));
static size_t arena_used; /* [control lock] */

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int byte, size_t n);

extern const char __rodata_start[], __rodata_end[]; /* kernel.ld */

/* What compilers call on their own; a kernel has them already. */
void *
memcpy(void *restrict to, const void *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
}

void *
memset(void *to, int byte, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)byte;
	return to;
}

void
ktr_port_lock(void)
{
	while (__atomic_test_and_set(&control_lock, __ATOMIC_ACQUIRE))
		;
}

void
ktr_port_unlock(void)
{
	__atomic_clear(&control_lock, __ATOMIC_RELEASE);
}

/*
 * Each other hart's loop has come round, or does not run; this one is here, and in no event. That
 * a hart which begins to run meanwhile is seen, or sees what was done before: seq_cst, on its side
 * too.
 */
bool
ktr_port_quiesce(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (struct hart *h = harts; h < harts + HARTS; h++) {
		uint64_t seen = __atomic_load_n(&h->passes, __ATOMIC_ACQUIRE);
		while (h != this_hart &&
		       __atomic_load_n(&h->state, __ATOMIC_ACQUIRE) == HART_RUNS &&
		       __atomic_load_n(&h->passes, __ATOMIC_ACQUIRE) == seen)
			;
	}
	return true;
}

/* Rings are made while one hart runs, with interrupts off (main.c), and stay as they are. */
void
ktr_port_exchange(void (*fn)(void *), void *arg)
{
	fn(arg);
}

void *
ktr_port_alloc(size_t size)
{
	if (size > sizeof(arena) - arena_used)
		return NULL;
	arena_used += (size + 63) & ~(size_t)63;
	return arena + arena_used - ((size + 63) & ~(size_t)63);
}

void
ktr_port_free(void *p, size_t size)
{
	(void)p;
	(void)size;
}

bool
ktr_port_string_ok(const char *p)
{
	return p >= __rodata_start && p < __rodata_end;
}

bool
ktr_port_suppressed(void)
{
	return false;
}

/* The only line carries the stream, where text would be damage. */
void
ktr_port_verbose(unsigned cpu, const struct ktr_site *site, const struct ktr_entry *entry,
		 int level)
{
	(void)cpu;
	(void)site;
	(void)entry;
	(void)level;
}

#if KTR_PORT_PATCH
/* JAL x0: a jump of up to 1 MiB (2.5). */
static uint32_t
insn_jump(uintptr_t at, uintptr_t target)
{
	uint32_t d = (uint32_t)(target - at);
	return 0x6f | (d & 0x100000) << 11 | (d & 0x7fe) << 20 | (d & 0x800) << 9 | (d & 0xff000);
}

/* Every hart runs the old instruction or the new one, until it passes its FENCE.I. */
void
ktr_port_patch(const struct ktr_patch *const *patches, unsigned count, bool on)
{
	for (unsigned i = 0; i < count; i++) {
		uintptr_t at = ktr_patch_at(patches[i]);
		uint32_t insn = on ? insn_jump(at, ktr_patch_target(patches[i])) : 0x13; /* NOP */
		__atomic_store_n((uint32_t *)at, insn, __ATOMIC_RELAXED);
	}
	__asm__ volatile("fence rw, rw\n\tfence.i" : : : "memory");
	ktr_port_quiesce();
}
#endif
