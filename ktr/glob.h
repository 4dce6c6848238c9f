/*
 * glob.h - the shell's patterns: * any text, ? any character, [a-z] [!a-z] a set, \ takes the next
 * literally. Case matters; '/' is a character like any other. Any context.
 */
#pragma once

#include <stdbool.h>

/** True: the whole text matches. A '[' without its ']' is an ordinary character. */
bool ktr_glob(const char *pattern, const char *text);

/** True: the pattern has a character with a meaning: *, ?, [ or \. */
bool ktr_glob_is_pattern(const char *pattern);
