/*
 * glob.h - the shell's patterns: * any text, ? any character, [a-z] [!a-z] a set, \ takes the next
 * literally. Case matters; '/' is a character like any other. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** True: the whole text matches. A '[' without its ']' is an ordinary character. */
bool ktr_glob(const char *pattern, const char *text);

/** Writes the pattern of all texts that have the given one inside. size: the room at `pattern`, at
 * least the text's length and 4. */
void ktr_glob_inside(char *pattern, size_t size, const char *inside);

/**
 * True: the format begins with the text up to `end`, or to a quote. There a '?' is any character,
 * and a conversion, as %s, is any conversion, or a word.
 */
bool ktr_glob_format(const char *text, const char *end, const char *fmt);

/** True: the pattern has a character with a meaning: *, ?, [ or \. */
bool ktr_glob_is_pattern(const char *pattern);
