/* string.h - the freestanding subset of the C string functions, with their standard meanings; and
 * what makes a program's text fit to be printed. */
#pragma once

#include <stddef.h>

void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *sub);
/* Copies at most size-1 bytes and always terminates (size > 0). Returns strlen(src). */
size_t strlcpy(char *dst, const char *src, size_t size);
