/*
 * queue.h - putting a record into the queue of the current process. Inline, since a traced system
 * call does it twice. Interrupts off.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/pcpu.h"

/*
 * Room for a record of up to len bytes, with its header but for `len`. NULL: there is none, which
 * is counted. Interrupts off.
 */
static inline __attribute__((always_inline)) struct ktrace_record *
ktrace_claim(struct ktrace *t, const struct proc *p, unsigned type, size_t len)
{
	/* acquire: what the thread ktrace has taken out is not overwritten before */
	uint64_t tail = __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE), start = t->head;
	uint64_t at = start & (t->size - 1), left = t->size - at;
	size_t total = sizeof(struct ktrace_record) + ((len + 7) & ~7ul);
	struct ktrace_record *r = (void *)(t->buf + at);
	bool wraps = total > left;

	if (__builtin_expect(wraps, 0))
		start += left;
	if (__builtin_expect(start + total - tail > t->size / 2, 0)) {
		this_pcpu()->work = true;
		if (start + total - tail > t->size) {
			t->dropped++;
			return NULL;
		}
	}
	if (__builtin_expect(wraps, 0)) {
		r->type = 0; /* all that there is room for in any case */
		r = (void *)t->buf;
	}
	t->start = start;
	r->type = (uint16_t)type;
	r->cpu = (uint16_t)arch_cpu();
	r->ticks = arch_clock_read();
	r->dropped = t->dropped;
	__builtin_memcpy(r->comm, p->name, sizeof(r->comm));
	return r;
}

static inline __attribute__((always_inline)) void
ktrace_commit(struct ktrace *t, struct ktrace_record *r, size_t len)
{
	r->len = (uint32_t)len;
	t->dropped = 0;
	/* release: pairs with the acquire of the thread ktrace */
	__atomic_store_n(&t->head, t->start + sizeof(*r) + ((len + 7) & ~7ul), __ATOMIC_RELEASE);
}
