/* memory.c - memory from the C library, and a seed from the clock and the address of the stack. */
#include "ktr/tools/memory.h"

#include <stdlib.h>
#include <time.h>

void *
memory_realloc(void *p, size_t size)
{
	if (size != 0)
		return realloc(p, size);
	free(p);
	return NULL;
}

uint64_t
memory_seed(void)
{
	static uint64_t seed;
	struct timespec now;
	if (seed == 0 && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
		seed = ktr_mix((uint64_t)now.tv_nsec + ((uint64_t)(uintptr_t)&now << 20),
			       0x9e3779b97f4a7c15u + (uint64_t)now.tv_sec);
	return seed;
}

struct ktr_map
memory_map(void)
{
	return ktr_map_make(memory_realloc, memory_seed());
}
