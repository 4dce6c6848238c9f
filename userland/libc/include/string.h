/* string.h - the C string functions, and the few extensions everybody uses. */
#pragma once

#include <stddef.h>

void *memcpy(void *restrict d, const void *restrict s, size_t n);
void *memmove(void *d, const void *s, size_t n);
void *memset(void *d, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *s, int c, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
int strcasecmp(const char *a, const char *b);
int strncasecmp(const char *a, const char *b, size_t n);
char *strcpy(char *restrict d, const char *restrict s);
char *strncpy(char *restrict d, const char *restrict s, size_t n);
char *strcat(char *restrict d, const char *restrict s);
/* Copies or appends at most size - 1 characters and always ends with NUL; returns the length
 * wanted. */
size_t strlcpy(char *restrict d, const char *restrict s, size_t size);
size_t strlcat(char *restrict d, const char *restrict s, size_t size);
char *strchr(const char *s, int c);
char *strchrnul(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *part);
size_t strspn(const char *s, const char *set);
size_t strcspn(const char *s, const char *set);
char *strpbrk(const char *s, const char *set);
char *strtok_r(char *restrict s, const char *restrict set, char **restrict state);
char *strsep(char **s, const char *set);
char *strdup(const char *s);
char *strndup(const char *s, size_t max);
/* Never NULL; "error N" for a number without text. */
char *strerror(int err);
