/* thread_table.c - open addressing, at most half full. */
#include "ktr/tools/thread_table.h"

#include <stdlib.h>

#define TABLE_MIN 256u

static size_t
slot_of(const struct thread_table *t, uint32_t tid)
{
	size_t at = (tid * 2654435761u) & (t->size - 1); /* 2^32 / the golden ratio */
	while (t->slots[at] != NULL && t->slots[at]->tid != tid)
		at = (at + 1) & (t->size - 1);
	return at;
}

static bool
table_grow(struct thread_table *t)
{
	struct thread_table more = {
	    .slots = calloc(t->size * 2, sizeof(struct activity_thread *)),
	    .size = t->size * 2,
	    .count = t->count,
	};
	if (more.slots == NULL)
		return false;
	for (size_t i = 0; i < t->size; i++) {
		if (t->slots[i] != NULL)
			more.slots[slot_of(&more, t->slots[i]->tid)] = t->slots[i];
	}
	free(t->slots);
	*t = more;
	return true;
}

struct activity_thread *
thread_table_get(struct thread_table *t, uint32_t tid, uint64_t ns)
{
	struct activity_thread *thread = thread_table_find(t, tid);
	if (thread != NULL)
		return thread;
	if (t->count * 2 >= t->size && !table_grow(t))
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (thread == NULL)
		return NULL;
	thread->tid = tid;
	thread->since_ns = ns;
	thread->number = (uint32_t)t->count++;
	t->slots[slot_of(t, tid)] = thread;
	return thread;
}

struct activity_thread *
thread_table_find(const struct thread_table *t, uint32_t tid)
{
	return t->slots[slot_of(t, tid)];
}

bool
thread_table_init(struct thread_table *t)
{
	t->size = TABLE_MIN;
	t->count = 0;
	t->slots = calloc(t->size, sizeof(struct activity_thread *));
	return t->slots != NULL;
}

void
thread_table_free(struct thread_table *t)
{
	for (size_t i = 0; i < t->size; i++)
		free(t->slots[i]);
	free(t->slots);
}
