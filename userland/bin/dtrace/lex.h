/*
 * lex.h - what the lexer calls, and what its files share.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

/* Where the lexer is: after the tokens that were looked at. */
struct lex_state {
	const char *pos;
	struct place here;
};
extern struct lex_state lex;

/* The text after `#pragma D`. */
void lex_pragma(char *text, struct place at);
/* Characters of the name that begins at p. */
size_t lex_name_size(const char *p);
struct type *lex_integer_type(uint64_t value, bool decimal, bool is_unsigned, bool is_long);
/* An integer of `size` characters: digits, then what says its type. */
void lex_integer(struct token *t, const char *text, size_t size);
/* A string or character constant, which begins at lex.pos; takes it, and returns its bytes. */
char *lex_quoted(struct token *t, size_t *size);
void lex_character(struct token *t);
