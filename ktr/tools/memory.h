/*
 * memory.h - memory from the C library, and a seed for hash tables, in the form that the
 * freestanding parts of ktr/ take.
 */
#pragma once

#include "ktr/map.h"

/** As realloc; size 0 frees. */
void *memory_realloc(void *p, size_t size);
/**
 * A number that differs from run to run, so that nobody can write an input that makes hash tables
 * slow.
 */
uint64_t memory_seed(void);
/** An empty map that uses both. */
struct ktr_map memory_map(void);
