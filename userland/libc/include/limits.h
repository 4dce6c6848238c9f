/* limits.h - ranges of the integer types (LP64), and limits of the system. */
#pragma once

#include "kernel/abi/fcntl.h" /* PATH_MAX, NAME_MAX */

#define CHAR_BIT   8
#define SCHAR_MAX  127
#define SCHAR_MIN  (-SCHAR_MAX - 1)
#define UCHAR_MAX  255
#define SHRT_MAX   __SHRT_MAX__
#define SHRT_MIN   (-SHRT_MAX - 1)
#define USHRT_MAX  (SHRT_MAX * 2 + 1)
#define INT_MAX    __INT_MAX__
#define INT_MIN    (-INT_MAX - 1)
#define UINT_MAX   (INT_MAX * 2U + 1)
#define LONG_MAX   __LONG_MAX__
#define LONG_MIN   (-LONG_MAX - 1L)
#define ULONG_MAX  (LONG_MAX * 2UL + 1)
#define LLONG_MAX  __LONG_LONG_MAX__
#define LLONG_MIN  (-LLONG_MAX - 1LL)
#define ULLONG_MAX (LLONG_MAX * 2ULL + 1)
#define SSIZE_MAX  LONG_MAX
#define PIPE_BUF   4096

#ifdef __CHAR_UNSIGNED__
#define CHAR_MIN 0
#define CHAR_MAX UCHAR_MAX
#else
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#endif
