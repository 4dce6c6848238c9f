/* stdlib.h - for lwIP, which converts the number in the name of an interface. */
#pragma once

static inline int
atoi(const char *s)
{
	int n = 0;

	while (*s >= '0' && *s <= '9' && n < 1000)
		n = 10 * n + (*s++ - '0');
	return n;
}
