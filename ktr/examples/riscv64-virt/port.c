/*
 * port.c - what the log asks for on bare harts, beside the defaults: a wait for all harts, and
 * patching.
 *
 * Locking: the log's control lock; interrupt handlers record, and take no lock.
 */
#include <ktr.h>

struct hart harts[HARTS];

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int byte, size_t n);

/* Functions that compilers call on their own; a kernel has them already. */
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

/*
 * Each other hart's loop has come round, or does not run; this one is here, and in no record. A
 * hart that begins to run meanwhile is seen, or it sees what was done before: seq_cst, on its side
 * too.
 */
bool
ktr_port_sync(void)
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
ktr_port_patch(void)
{
	KTR_PATCH_EACH(p)
	{
		uintptr_t at = ktr_patch_at(p);
		uint32_t insn =
		    ktr_patch_on(p) ? insn_jump(at, ktr_patch_target(p)) : 0x13; /* NOP */
		__atomic_store_n((uint32_t *)at, insn, __ATOMIC_RELAXED);
	}
	__asm__ volatile("fence rw, rw\n\tfence.i" : : : "memory");
	ktr_port_sync();
}
#endif
