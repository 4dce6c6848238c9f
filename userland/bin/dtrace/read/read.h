/*
 * read.h - reads the texts of D programs: characters become tokens, and tokens a tree.
 *
 *	comes in:	a text, and where it begins: lex_open(), parse_program()
 *	goes out:	dt_program, the tree of all texts so far; its nodes have no types yet
 *
 * In reading order: lex.c cuts a text into tokens, with lex_constant.c for integers, characters and
 * strings; parse.c reads clauses, parse_expr.c expressions, parse_type.c types and declarations.
 * A declaration takes effect when it is read, so that what follows may use it. cpp.c and
 * cpp_macro.c are C's preprocessor (-C), which reads a script before the lexer does.
 *
 * The parser looks two tokens ahead at most. Errors end in dt_error(), which does not return.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

/* ---- tokens: lex.c ---- */

enum token_kind {
	TOKEN_END,
	TOKEN_OP,
	TOKEN_INT,
	TOKEN_STRING,
	TOKEN_NAME,   /* and keywords */
	TOKEN_AGG,    /* @name; text "": @ */
	TOKEN_EXTERN, /* `name; text with the object: kernel`name */
};

struct token {
	enum token_kind kind;
	struct place at;
	uint32_t op;
	const char *text;        /* names and strings, without quotes */
	size_t size;             /* of strings: bytes, without the NUL */
	uint64_t value;          /* integers */
	struct type *type;       /* integers */
	const char *start, *end; /* in the program's text */
};

/* What $1, $target and the like stand for. */
struct dt_macros {
	int argc; /* argv[0]: $0 */
	char **argv;
	bool *used;       /* one for each of argv */
	bool defaultargs; /* arguments that are not given are 0 and "" */
	bool no_target;   /* $target is an error: a recorded trace has none */
	uint64_t target, pid, ppid, pgid, sid, uid, euid, gid, egid;
};
extern struct dt_macros dt_macros;

/* Begins a program's text, which ends with NUL. */
void lex_open(const char *text, struct place at);
/* The token that comes next, and the one after it. They stay until lex_next(). */
const struct token *lex_peek(void);
const struct token *lex_peek2(void);
struct token lex_next(void);
bool lex_is(uint32_t op);
bool lex_is_name(const char *name);
/* Takes the next token if it is this one. */
bool lex_take(uint32_t op);
bool lex_take_name(const char *name);
/* Takes the next token if it is this one; else says that it was expected. */
void lex_expect(uint32_t op);
_Noreturn void lex_expected(const char *what);
/*
 * At the beginning of a clause: skips blanks and comments, and returns the text of one probe
 * description, in which macros are replaced. NULL if there is none.
 */
char *lex_probe(struct place *at);
/* Is the `/` that comes next the end of a predicate? */
bool lex_ends_predicate(void);

/* Where the lexer is: after the tokens that were looked at. */
struct lex_state {
	const char *pos;
	struct place here;
};
extern struct lex_state lex;

/* Gives only the #pragmas of a text to lex_pragma(): whatever else is wrong in it is no error. */
void lex_pragmas(const char *text, struct place at);
extern bool lex_pragmas_only; /* that is under way */
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

/* ---- the tree: parse.c, parse_expr.c, parse_type.c ---- */

/* Forgets the program. */
void parse_init(void);
/* Adds the clauses and declarations of a text to the program. False: the text has none. */
bool parse_program(const char *text, struct place at);
/* Reads an expression with assignments but without commas; and with commas. */
struct node *parse_expression(void);
struct node *parse_list_item(void);
/* May a type begin with this token? */
bool parse_begins_type(const struct token *t);
/* Nesting has a limit: between these two. */
void parse_descend(void);
void parse_ascend(void);
void parse_reset(void);
/* A type without a name, as in a cast. */
struct type *parse_type_name(void);
/* May a declaration begin with this name? */
bool parse_begins_declaration(const char *name);
/* A declaration, which comes next: a type, then declarators up to the semicolon. */
void parse_declaration(void);
/* Reads a constant and returns its value; else an error, which says what it is for, with `tag`. */
int64_t parse_constant(const char *what, const char *tag);

/* ---- the preprocessor of -C: cpp.c ---- */

#define CPP_MAX_OPTIONS 64

extern struct cpp_options {
	const char *macros[CPP_MAX_OPTIONS];  /* of -D and -U: the letter, and NAME or NAME=BODY */
	const char *folders[CPP_MAX_OPTIONS]; /* of -I */
	unsigned macro_count, folder_count;
	char stdc;      /* -X */
	bool say_files; /* -H: the path of each file that is included to standard error */
} cpp_options;

/* The text of a file, preprocessed. Errors: dt_error(). */
const char *cpp_run(const char *file, const char *text);

/* ---- its macros: cpp_macro.c ---- */

/* Where the preprocessor reads. */
struct place cpp_place(void);
_Noreturn void cpp_fail(const char *what, const char *text);

/* Forgets all macros. */
void cpp_macros_init(void);
/* NAME BODY, NAME(PARAMETERS) BODY */
void cpp_define(const char *text);
void cpp_undefine(const char *name);
bool cpp_is_defined(const char *name, size_t size);
/*
 * Appends the text with its macros expanded. Returns where a macro begins whose arguments are not
 * all in the text; if the text goes on, that may be a name at its end. NULL: all was done.
 */
const char *cpp_expand(struct buffer *to, const char *text, bool goes_on);
/* The text with its macros expanded. */
char *cpp_expanded(const char *text);
void cpp_put(struct buffer *to, const char *text, size_t size);
const char *cpp_skip_blanks(const char *p);
/* The size of a token: a name, a number, a quoted text, blanks, or one character. */
size_t cpp_token_size(const char *p);
/* Copies a text without the blanks at both ends. */
char *cpp_trimmed(const char *text, size_t size);
