/* decimal.c - numbers in texts. */
#include "kernel/lib/decimal.h"

bool
take_decimal(const char **text, uint64_t max, uint64_t *n)
{
	const char *p = *text;

	for (*n = 0; *p >= '0' && *p <= '9' && *n <= max; p++)
		*n = *n * 10 + (uint64_t)(*p - '0');
	if (p == *text || *n > max)
		return false;
	*text = p;
	return true;
}
