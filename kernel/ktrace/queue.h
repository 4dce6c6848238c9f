/*
 * queue.h - putting a record into the queue of the current process. Inline, since a traced system
 * call does it twice. Interrupts off.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/clock.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"

/* Bytes that a record with len bytes of data takes in the queue. */
static inline size_t
ktrace_total(size_t len)
{
	return sizeof(struct ktrace_record) + ((len + 7) & ~7ul);
}

/* The next record, with its header filled in. There must be room for it. */
static inline __attribute__((always_inline)) struct ktrace_record *
ktrace_begin(const struct ktrace *t, const struct thread *th, unsigned type, size_t len)
{
	struct ktrace_record *r = (void *)(t->buf + (t->head & t->mask));

	r->len = (uint32_t)len;
	r->type = (uint16_t)type;
	r->cpu = (uint16_t)arch_cpu();
	r->ticks = arch_clock_read();
	r->dropped = t->dropped;
	r->tid = th->tid;
	__builtin_memcpy(r->comm, th->name, sizeof(r->comm));
	return r;
}

/* The record, which ends at `end`, is complete. */
static inline void
ktrace_end(struct ktrace *t, uint64_t end)
{
	t->dropped = 0;
	/* release: pairs with the acquire of the thread ktrace */
	__atomic_store_n(&t->head, end, __ATOMIC_RELEASE);
}

/* A record of up to len bytes. NULL: there is no room, which is counted. */
static inline struct ktrace_record *
ktrace_claim(struct ktrace *t, unsigned type, size_t len)
{
	if (t->head + ktrace_total(len) > t->checked && !ktrace_make_room(t, ktrace_total(len)))
		return NULL;
	return ktrace_begin(t, curthread(), type, len);
}

/* The record is complete, and has len bytes. */
static inline void
ktrace_commit(struct ktrace *t, struct ktrace_record *r, size_t len)
{
	r->len = (uint32_t)len;
	ktrace_end(t, t->head + ktrace_total(len));
}
