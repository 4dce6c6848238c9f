/*
 * merge.c - one queue a CPU, which is in order by itself; the oldest front goes first.
 * Locking: none.
 */
#include "ktr/tools/merge.h"

#include <stdlib.h>

struct item {
	uint64_t ticks;
	bool is_gap;
	union {
		struct ktr_decode_event event;
		struct ktr_decode_gap gap;
	};
};

struct queue {
	struct item *items;        /* circular */
	size_t size, front, count; /* size is 0 or a power of two */
};

struct merge {
	struct merge_ops ops;
	void *arg;
	unsigned cpus; /* queues from here on are empty */
	struct queue queues[KTR_DECODE_CPUS];
};

struct merge *
merge_create(const struct merge_ops *ops, void *arg)
{
	struct merge *m = calloc(1, sizeof(*m));
	if (m != NULL) {
		m->ops = *ops;
		m->arg = arg;
	}
	return m;
}

void
merge_destroy(struct merge *m)
{
	if (m == NULL)
		return;
	for (unsigned i = 0; i < m->cpus; i++)
		free(m->queues[i].items);
	free(m);
}

static int
queue_grow(struct queue *q)
{
	size_t size = q->size == 0 ? 256 : q->size * 2;
	struct item *items = malloc(size * sizeof(*items));
	if (items == NULL)
		return -1;
	for (size_t i = 0; i < q->count; i++)
		items[i] = q->items[(q->front + i) & (q->size - 1)];
	free(q->items);
	q->items = items;
	q->size = size;
	q->front = 0;
	return 0;
}

static struct item *
merge_add(struct merge *m, unsigned cpu, uint64_t ticks)
{
	struct queue *q = &m->queues[cpu];
	if (q->count == q->size && queue_grow(q) != 0)
		return NULL;
	if (cpu >= m->cpus)
		m->cpus = cpu + 1;
	struct item *item = &q->items[(q->front + q->count++) & (q->size - 1)];
	item->ticks = ticks;
	return item;
}

int
merge_event(struct merge *m, const struct ktr_decode_event *event)
{
	struct item *item = merge_add(m, event->cpu, event->ticks);
	if (item == NULL)
		return -1;
	item->is_gap = false;
	item->event = *event;
	return 0;
}

int
merge_gap(struct merge *m, const struct ktr_decode_gap *gap)
{
	struct item *item = merge_add(m, gap->cpu, gap->from_ticks);
	if (item == NULL)
		return -1;
	item->is_gap = true;
	item->gap = *gap;
	return 0;
}

static void
merge_release(struct merge *m, bool all, uint64_t before)
{
	for (;;) {
		struct queue *oldest = NULL;
		uint64_t ticks = 0;
		for (unsigned i = 0; i < m->cpus; i++) {
			struct queue *q = &m->queues[i];
			if (q->count > 0 && (oldest == NULL || q->items[q->front].ticks < ticks)) {
				oldest = q;
				ticks = q->items[q->front].ticks;
			}
		}
		if (oldest == NULL || (!all && ticks >= before))
			return;
		struct item *item = &oldest->items[oldest->front];
		oldest->front = (oldest->front + 1) & (oldest->size - 1);
		oldest->count--;
		if (item->is_gap)
			m->ops.gap(m->arg, &item->gap);
		else
			m->ops.event(m->arg, &item->event);
	}
}

void
merge_mark(struct merge *m, uint64_t ticks)
{
	merge_release(m, false, ticks);
}

void
merge_flush(struct merge *m)
{
	merge_release(m, true, 0);
}
