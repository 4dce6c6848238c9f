/*
 * count.c - how many entries of a log are shown, were lost, and how old they are, as `stats` tells.
 * Locking: the control lock, so that the rings stay.
 */
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/clock.h"

struct buffer_counts
buffer_count(const struct buffer *b, unsigned cpu)
{
	struct buffer_counts n = {0};

	for (unsigned i = 0; i < MAX_CPUS; i++) {
		uint64_t tail, head, from = buffer_from(b, i);

		if ((cpu != BUFFER_ALL && cpu != i) || !ktr_log_window(b->log, i, &tail, &head))
			continue;
		n.overrun += b->shown[i].lost + (tail > from ? tail - from : 0);
		from = buffer_later(tail, from);
		n.entries +=
		    head > from ? head - from : 0; /* a snapshot may just have been taken */
		n.written += head - b->shown[i].cleared;
	}
	return n;
}

uint64_t
buffer_oldest_ns(const struct buffer *b, unsigned cpu)
{
	uint64_t seq, tail, head;
	struct ktr_entry e;

	if (!ktr_log_window(b->log, cpu, &tail, &head))
		return 0;
	for (seq = buffer_later(tail, buffer_from(b, cpu)); seq < head; seq++)
		if (ktr_log_read(b->log, cpu, seq, &e) == KTR_READ_OK && !ktr_entry_is_part(&e))
			return clock_ns_of(e.ticks);
	return 0;
}
