/* fnmatch.h - file name patterns: * ? [a-z] [!a-z] and \ for taking the next literally. */
#pragma once

#define FNM_NOMATCH 1
#define FNM_PERIOD  4 /* wildcards do not match a '.' that opens the text */

/* 0 when all of `text` matches, else FNM_NOMATCH. */
int fnmatch(const char *pattern, const char *text, int flags);
