/*
 * memory.h - memory from the C library, and a seed for hash tables, as ktr/map.h needs them.
 */
#pragma once

#include "ktr/map.h"

/** As realloc(), but size 0 always frees, and returns NULL. */
void *memory_realloc(void *p, size_t size);
/**
 * A number that differs from run to run, so that nobody can write an input that makes hash tables
 * slow.
 */
uint64_t memory_seed(void);
/** An empty map that uses this memory and this seed. */
struct ktr_map memory_map(void);
