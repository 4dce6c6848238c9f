/*
 * thread_table.h - the threads of the model (activity.h) by their ids. Threads stay where they are.
 * Each has a number below the most that there were at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ktr/tools/activity.h"

struct thread_table {
	struct activity_thread **slots; /* open addressing; NULL: empty */
	size_t size, count;             /* size: a power of two */
	uint32_t *numbers;              /* size / 2; those from count on are free */
};

/** False: no memory. */
bool thread_table_init(struct thread_table *t);
void thread_table_free(struct thread_table *t);
/** The thread, which is made when it is not there, of a state not known since ns. NULL: no memory.
 */
struct activity_thread *thread_table_get(struct thread_table *t, uint32_t tid, uint64_t ns);
/** Frees a thread that is there. */
void thread_table_remove(struct thread_table *t, struct activity_thread *thread);
