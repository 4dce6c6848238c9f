/*
 * thread_table.h - the threads of the model (activity.h) by their ids. Threads stay where they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/tools/activity.h"

struct thread_table {
	struct activity_thread **slots; /* open addressing; NULL: empty */
	size_t size, count;             /* size: a power of two */
};

/** False: no memory. */
bool thread_table_init(struct thread_table *t);
void thread_table_free(struct thread_table *t);
/** The thread, which is made when it is not there, of a state not known since ns. NULL: no memory.
 */
struct activity_thread *thread_table_get(struct thread_table *t, uint32_t tid, uint64_t ns);
/** NULL: not there. */
struct activity_thread *thread_table_find(const struct thread_table *t, uint32_t tid);
