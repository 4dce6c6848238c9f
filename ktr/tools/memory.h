/*
 * memory.h - what the programs give the parts of ktr/ that know no C library: memory, and a number
 * that nobody can guess.
 */
#pragma once

#include "ktr/map.h"

/** As realloc; size 0 frees. */
void *memory_realloc(void *p, size_t size);
/** Differs from run to run: hash tables are in an order that the input's writer cannot know. */
uint64_t memory_seed(void);
/** An empty map with both. */
struct ktr_map memory_map(void);
