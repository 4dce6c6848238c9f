/* name.h - names in what people write. Pure functions; any context. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Is the character a letter, a digit or _, of which names consist? */
static inline bool
ktr_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/** How many of these the text begins with. */
static inline size_t
ktr_word_length(const char *text)
{
	size_t n = 0;

	while (ktr_is_word(text[n]))
		n++;
	return n;
}
