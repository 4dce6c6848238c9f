/*
 * memory.h - memory from the C library, and a seed for hash tables, as ktr/map.h needs them.
 */
#pragma once

#include "ktr/map.h"

/** As realloc(), but size 0 always frees, and returns NULL. */
void *memory_realloc(void *p, size_t size);
/** As MEMORY_ROOM(): `array` is the address of the array, whose elements have `size` bytes. */
bool memory_grow(void *array, size_t *room, size_t n, size_t size);
/**
 * Makes room for element n of an array that has room for `room` elements, a size_t. New elements
 * are 0. False: no memory, and nothing has changed.
 */
#define MEMORY_ROOM(array, room, n) \
	((n) < (room) || memory_grow(&(array), &(room), n, sizeof(*(array))))
/**
 * A number that differs from run to run, so that nobody can write an input that makes hash tables
 * slow.
 */
uint64_t memory_seed(void);
/** An empty map that uses this memory and this seed. */
struct ktr_map memory_map(void);
