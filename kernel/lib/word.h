/* word.h - names in what people write. Pure; any context. */
#pragma once

#include <stddef.h>

#include "ktr/word.h"

/* How many letters, digits and _ the text begins with. */
static inline size_t
word_length(const char *text)
{
	size_t n = 0;

	while (ktr_is_word(text[n]))
		n++;
	return n;
}
