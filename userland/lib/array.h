/*
 * array.h - arrays that grow, in programs that end when there is no memory; also in those of the
 * build.
 */
#pragma once

#include <err.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Makes room for one more element in an array of `count` elements of `size` bytes, or in none yet
 * (NULL). Returns the array, which may have moved. The caller frees it.
 */
static inline void *
array_grow(void *array, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0) /* only at powers of two */
		return array;
	array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
	if (array == NULL)
		err(1, "memory");
	return array;
}

/* Adds an element, the last argument, to an array of `count` elements. Both are variables, which it
 * names several times. */
#define ARRAY_ADD(array, count, ...)                               \
	((array) = array_grow((array), (count), sizeof(*(array))), \
	 (array)[(count)++] = (__VA_ARGS__))
