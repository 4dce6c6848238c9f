/* assert.h - says what did not hold and where, and ends the program with SIGABRT. */
#pragma once

void assert_failed(const char *what, const char *file, int line, const char *func)
    __attribute__((noreturn));

#undef assert
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : assert_failed(#e, __FILE__, __LINE__, __func__))
#endif

#define static_assert _Static_assert
