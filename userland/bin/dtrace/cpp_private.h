/*
 * cpp_private.h - what the preprocessor's files share.
 */
#pragma once

#include "userland/bin/dtrace/gen.h"

/* Where the preprocessor reads. */
struct place cpp_place(void);
_Noreturn void cpp_fail(const char *what, const char *text);

/* ---- cpp_macro.c ---- */

/* Forgets all macros. */
void cpp_macros_init(void);
/* NAME BODY, NAME(PARAMETERS) BODY */
void cpp_define(const char *text);
void cpp_undefine(const char *name);
bool cpp_is_defined(const char *name, size_t size);
/*
 * Appends the text with its macros expanded. Returns where a macro begins whose arguments are not
 * all in the text; NULL: all was done.
 */
const char *cpp_expand(struct buffer *to, const char *text);
/* The text with its macros expanded. */
char *cpp_expanded(const char *text);
void cpp_put(struct buffer *to, const char *text, size_t size);
const char *cpp_skip_blanks(const char *p);
/* A token: a name, a number, a quoted text, blanks, or one character. Its size. */
size_t cpp_token_size(const char *p);
/* A copy without the blanks at both ends. */
char *cpp_trimmed(const char *text, size_t size);
