/* memory.c - memory from the C library, and a seed from the clock and the address of the stack. */
#include "ktr/tools/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void *
memory_realloc(void *p, size_t size)
{
	if (size != 0)
		return realloc(p, size);
	free(p);
	return NULL;
}

bool
memory_grow(void *array, size_t *room, size_t n, size_t size)
{
	/* It is a pointer to any type. */
	void *__attribute__((may_alias)) *at = array;
	size_t more = n + n / 2 + 64;
	char *bigger = realloc(*at, more * size);
	if (bigger == NULL)
		return false;
	memset(bigger + *room * size, 0, (more - *room) * size);
	*at = bigger;
	*room = more;
	return true;
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
