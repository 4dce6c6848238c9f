/* thread_table.c - open addressing, at most half full. */
#include "ktr/tools/thread_table.h"

#include <stdlib.h>

#define TABLE_MIN 256u

static size_t
slot_first(const struct thread_table *t, uint32_t tid)
{
	return (tid * 2654435761u) & (t->size - 1); /* 2^32 / the golden ratio */
}

static size_t
slot_of(const struct thread_table *t, uint32_t tid)
{
	size_t at = slot_first(t, tid);
	while (t->slots[at] != NULL && t->slots[at]->tid != tid)
		at = (at + 1) & (t->size - 1);
	return at;
}

static bool
table_grow(struct thread_table *t)
{
	struct thread_table more = {.size = t->size * 2, .count = t->count};
	more.slots = calloc(more.size, sizeof(struct activity_thread *));
	more.numbers = realloc(t->numbers, more.size / 2 * sizeof(t->numbers[0]));
	if (more.numbers != NULL)
		t->numbers = more.numbers;
	if (more.slots == NULL || more.numbers == NULL) {
		free(more.slots);
		return false;
	}
	for (size_t i = t->size / 2; i < more.size / 2; i++)
		more.numbers[i] = (uint32_t)i;
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
	struct activity_thread *thread = t->slots[slot_of(t, tid)];
	if (thread != NULL)
		return thread;
	if (t->count * 2 >= t->size && !table_grow(t))
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (thread == NULL)
		return NULL;
	thread->tid = tid;
	thread->since_ns = ns;
	thread->number = t->numbers[t->count++];
	t->slots[slot_of(t, tid)] = thread;
	return thread;
}

/* Threads behind it that would not be found over the hole move up. */
void
thread_table_remove(struct thread_table *t, struct activity_thread *thread)
{
	size_t mask = t->size - 1, hole = slot_of(t, thread->tid);
	for (size_t at = (hole + 1) & mask; t->slots[at] != NULL; at = (at + 1) & mask) {
		size_t first = slot_first(t, t->slots[at]->tid);
		if (((at - first) & mask) < ((at - hole) & mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole] = NULL;
	t->numbers[--t->count] = thread->number;
	free(thread);
}

bool
thread_table_init(struct thread_table *t)
{
	t->size = TABLE_MIN;
	t->count = 0;
	t->slots = calloc(t->size, sizeof(struct activity_thread *));
	t->numbers = malloc(t->size / 2 * sizeof(t->numbers[0]));
	if (t->slots == NULL || t->numbers == NULL) {
		free(t->slots);
		free(t->numbers);
		return false;
	}
	for (uint32_t i = 0; i < t->size / 2; i++)
		t->numbers[i] = i;
	return true;
}

void
thread_table_free(struct thread_table *t)
{
	for (size_t i = 0; i < t->size; i++)
		free(t->slots[i]);
	free(t->slots);
	free(t->numbers);
}
