/* queue.c - the queue of a process: is there room, and has the process to wait? */
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/sync/pcpu.h"

bool
ktrace_make_room(struct ktrace *t, size_t total)
{
	/* acquire: what the thread ktrace has taken out is not overwritten before */
	uint64_t tail = __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE);
	uint64_t start = t->head, lap = (start | t->mask) + 1, half = tail + (t->mask + 1) / 2;
	bool wraps = start + total > lap;

	if (wraps) {
		start = lap;
		lap += t->mask + 1;
	}
	if (start + total > half)
		this_pcpu()->work = true;
	if (start + total > tail + t->mask + 1) {
		t->dropped++;
		return false;
	}
	if (wraps) {
		/* There is room for a type in any case. */
		((struct ktrace_record *)(t->buf + (t->head & t->mask)))->type = 0;
		__atomic_store_n(&t->head, start, __ATOMIC_RELEASE);
	}
	/* In the upper half, each record asks again. */
	t->checked = start + total > half ? start + total : half < lap ? half : lap;
	return true;
}

bool
ktrace_is_full(const struct ktrace *t)
{
	return t->head - __atomic_load_n(&t->tail, __ATOMIC_RELAXED) > t->mask / 2;
}
