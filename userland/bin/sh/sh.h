/*
 * sh.h - what the shell's files share.
 *
 * A line of input goes lex.c -> parse.c (a tree in the current arena) -> exec.c, which has expand.c
 * turn each word into fields at the moment it is needed. Words are kept as they were typed, quotes
 * and all, until then. One shell, one thread: the state is global, in `sh`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct argv;

/* Memory (arena.c) */

/* Text and trees of one command line; freed together. Out of memory ends the shell. */
struct arena;
struct arena_mark {
	void *chunk;
	size_t used;
};

struct arena *arena_push(void);  /* starts a new arena and makes it the current one */
void arena_pop(struct arena *a); /* frees it (unless kept); the one before is current again */
void arena_keep(void);           /* the current arena lives for ever: a function's body is in it */
struct arena_mark arena_mark(void);      /* what is allocated after it… */
void arena_release(struct arena_mark m); /* …is freed here */
void *arena_alloc(size_t size);
char *arena_strndup(const char *s, size_t len);
char *arena_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *sh_malloc(size_t size); /* like malloc, but out of memory ends the shell */
char *sh_strdup(const char *s);
void *sh_realloc(void *p, size_t size);

/* A text that grows, in the current arena. */
struct text {
	char *s; /* NUL-terminated once something was put in */
	size_t len, room;
};

void text_putc(struct text *t, char c);
void text_puts(struct text *t, const char *s);

/* Input (input.c) */

struct input {
	const char *name; /* for messages */
	int line;         /* of the line read last, from 1 */
	int fd;           /* -1: text, or the terminal's line editor */
	const char *text; /* what is left of it */
	bool editor;
	bool bytewise; /* fd is shared with commands and cannot seek: never read ahead */
	bool seekable; /* fd is shared with commands: give back what was read ahead */
	char *buf;     /* read ahead: [pos, end) */
	size_t pos, end;
	bool failed; /* it ended because reading failed */
	char *out;   /* the line read last */
	size_t out_size;
};

void input_from_text(struct input *in, const char *name, const char *text);
/* Reads from a descriptor that commands use too (shared) or that is the shell's own. */
void input_from_fd(struct input *in, const char *name, int fd, bool shared);
void input_from_editor(struct input *in);
/* The next line with its newline, valid until the next call; NULL at the end. */
char *input_read_line(struct input *in, bool continued);
void input_close(struct input *in);
/* read() that goes on after a signal, and on a file that somebody made non-blocking; says why not.
 */
ssize_t input_read(int fd, void *buf, size_t size);

/* Lexer (lex.c) */

enum token_type {
	T_END, /* of the input */
	T_NEWLINE,
	T_WORD,
	T_REDIR,     /* fd and op in the token */
	T_SEMI,      /* ;  */
	T_SEMI_SEMI, /* ;; */
	T_AMP,       /* &  */
	T_AND,       /* && */
	T_PIPE,      /* |  */
	T_OR,        /* || */
	T_OPEN,      /* (  */
	T_CLOSE,     /* )  */
	T_ERROR,     /* a message has been printed */
};

enum redir_op { R_READ, R_WRITE, R_APPEND, R_READ_WRITE, R_DUP_IN, R_DUP_OUT, R_HERE };

struct redir {
	enum redir_op op;
	int fd;
	char *target; /* word; for R_HERE the text */
	bool expand;  /* R_HERE: the delimiter was not quoted */
	struct redir *next;
};

struct token {
	enum token_type type;
	char *text; /* as typed */
	int line;
	int fd; /* T_REDIR */
	enum redir_op op;
};

struct lexer {
	struct input *in;
	char *p; /* in the line read last; NULL before the first */
	bool ended;
	bool failed;        /* a message has been printed; the rest of the line is void */
	unsigned int depth; /* of commands within commands */
	bool in_command;    /* a command has begun: further lines continue it */
	struct token token; /* the one at hand, when have_token */
	bool have_token;
	struct redir *here[8]; /* here-documents whose text follows the line */
	char *here_end[8];
	unsigned int here_count;
};

void lex_start(struct lexer *lx, struct input *in);
struct token *lex_peek(struct lexer *lx);
void lex_next(struct lexer *lx);
/* `sh: FILE:LINE: found …, expected …`, once. */
void lex_error(struct lexer *lx, int line, const char *found, const char *expected);
/* Length of what stands in quotes, $(…), ${…} or `…` at s, with its closing; 0 when it never
 * closes. */
size_t lex_span(const char *s, bool in_quotes);
/* Notes that the text of a here-document starts on the next line. */
void lex_here(struct lexer *lx, struct redir *r, char *delimiter);

/* Parser (parse.c) */

enum node_type {
	N_SIMPLE,     /* assigns words redirs */
	N_PIPE,       /* a: the commands by next */
	N_NOT,        /* a */
	N_TIME,       /* a */
	N_AND,        /* a && b */
	N_OR,         /* a || b */
	N_SEQ,        /* a then b */
	N_BACKGROUND, /* a & */
	N_SUBSHELL,   /* ( a ) */
	N_GROUP,      /* { a } */
	N_IF,         /* if a then b else c */
	N_WHILE,      /* while a do b */
	N_UNTIL,      /* until a do b */
	N_FOR,        /* for name in words do b; has_in */
	N_CASE,       /* case words in a: the arms by next */
	N_ARM,        /* words ) a */
	N_FUNCTION,   /* name () a */
};

struct word {
	char *text;
	struct word *next;
};

struct node {
	enum node_type type;
	int line;
	bool has_in;
	char *name;
	struct word *words, *assigns;
	struct redir *redirs;
	struct node *a, *b, *c, *next;
};

enum parse_result { PARSE_COMMAND, PARSE_EMPTY, PARSE_END, PARSE_ERROR };

/* Parses up to the end of a line that completes a command. */
enum parse_result parse_line(struct lexer *lx, struct node **out);

/* Variables (vars.c) */

void var_import(char **env);
const char *var_get(const char *name); /* NULL when not set */
void var_set(const char *name, const char *value);
void var_export(const char *name);
void var_unset(const char *name);
char **var_environment(void); /* in the current arena */
void var_print_exported(void);
/* Adds "$NAME" for each variable that begins with `prefix`. */
void var_complete(const char *prefix, struct argv *out);
bool var_is_name(const char *s, size_t len);
/* Length of NAME in NAME=value, 0 when the word is no assignment. */
size_t var_assign_length(const char *word);
struct node *function_get(const char *name);
void function_set(const char *name, struct node *body);
void function_unset(const char *name);

/* Expansion (expand.c, glob.c, arith.c). They return NULL after a message. */

struct argv {
	int count, room;
	char **v; /* NULL-terminated; in the current arena */
};

void argv_add(struct argv *a, char *s);
/* Appends the fields that the words expand to. */
bool expand_words(const struct word *words, struct argv *out);
/* One text, neither split nor globbed: for assignments, redirections, here-documents. */
char *expand_text(const char *word);
char *expand_here(const char *text);
/* Likewise, with what was quoted escaped by \ for fnmatch. */
char *expand_pattern(const char *word);
bool glob_has_magic(const char *pattern);
/* Appends the names that match, sorted; returns how many. */
int glob_expand(const char *pattern, struct argv *out);
char *glob_unescape(const char *pattern);
bool arith_evaluate(const char *text, long *value);

/* Running (exec.c, command.c, job.c, redir.c) */

enum unwind { U_NONE, U_BREAK, U_CONTINUE, U_RETURN, U_EXIT, U_INTERRUPT };

/* Runs a tree; the status, also in sh.status. `in_child`: this process may become the command. */
int exec_node(struct node *n, bool in_child);
/* Parses and runs all of the input; the last status. 2 after a syntax error, which ends it. */
int exec_input(struct input *in);
int exec_text(const char *name, const char *text);
int exec_file(const char *path);
/* Runs a text in a child and gives what it writes, without newlines at the end, in the current
 * arena; NULL after a message. */
char *exec_output(const char *text);

/* Runs a simple command, as exec_node() does. */
int command_run(struct node *n, bool in_child);
/* Nesting of functions, sourced files and eval: what fits a small stack. */
#define CALL_DEPTH_MAX 64
/* Goes one deeper in sh.call_depth; false after a message. */
bool call_enter(const char *name);
/* Starts a program instead of this process: returns only the status for its failure. */
int command_exec(char **argv, char **env);
/* Where a program would be found: in the current arena, or NULL. */
char *command_find(const char *name);

struct saved_fds {
	unsigned int count;
	int fd[16], copy[16]; /* copy -1: was closed */
};

/* Applies redirections; with `saved`, so that redir_restore can undo them. False after a message.
 */
bool redir_apply(struct redir *r, struct saved_fds *saved);
void redir_restore(struct saved_fds *saved);

struct job {
	pid_t pgid; /* 0: none yet, or no job control */
	unsigned int count;
	pid_t pids[32];
	bool background;
};

/* 0 in the child, which is no longer interactive; -1 after a message. */
pid_t job_fork(struct job *job);
/* Waits for all of it; the last one's status. */
int job_wait(struct job *job);
void job_remember(pid_t pid);       /* a background process that `wait` can ask for */
void job_report_ended(void);        /* before a prompt */
int job_wait_background(pid_t pid); /* 0: all. 127 when it is no child of ours */
/* True when ^C was typed: loops ask, and then everything up to the prompt is left. */
bool job_interrupted(void);

/* Builtins (builtin.c) */

struct builtin {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

const struct builtin *builtin_find(const char *name);
const struct builtin *builtin_next(const struct builtin *b); /* NULL starts and ends */

/* Terminal (tty.c, edit.c, complete.c) */

enum tty_mode {
	TTY_COOKED, /* for commands: lines, echo, ^C is a signal */
	TTY_RAW,  /* the shell: bytes; a read returns at once, with nothing if nothing was typed */
	TTY_EDIT, /* the editor: bytes; a read waits */
};

/* Takes the terminal on descriptor 0; false when it is none. */
bool tty_init(void);
/* Makes a process group the one that ^C reaches. */
void tty_foreground(pid_t pgid);
unsigned int tty_columns(void);
void tty_set(enum tty_mode mode);
#define TTY_END    (-1)
#define TTY_FAILED (-2)
/* The next byte, TTY_END, or TTY_FAILED after a message. Takes first what tty_interrupted() read.
 */
int tty_read_byte(void);
/* Looks for a typed ^C without waiting; other bytes are kept for tty_read_byte(). */
bool tty_interrupted(void);

/* A line with its newline; NULL at the end of input, or after ^C with sh.interrupted set. */
char *edit_read_line(const char *prompt, bool *failed);

/*
 * Completions of the word that ends at line[len]: fills `out` with words to stand in its place,
 * sets *start to where it starts. A single one ends with what separates it from the next word.
 */
void complete_line(const char *line, size_t len, size_t *start, struct argv *out);

/* The shell itself (main.c) */

struct shell {
	const char *name; /* $0 */
	char **args;      /* $1… */
	int arg_count;
	int status;            /* $? */
	int subst_status;      /* of the last $(…) in the command at hand, -1: there was none */
	pid_t last_background; /* $! */
	pid_t pid;             /* $$ */
	bool interactive;      /* has a prompt */
	bool job_control;      /* and process groups */
	bool interrupted;      /* ^C: back to the prompt */
	bool exit_on_error;    /* set -e */
	bool trace;            /* set -x */
	bool no_unset;         /* set -u */
	int condition;         /* depth of if, while, &&, ||, !: set -e does not count there */
	int loop_depth, call_depth;
	enum unwind unwind;
	int unwind_levels;   /* of loops, for U_BREAK and U_CONTINUE */
	struct input *input; /* being run */
	int line;            /* of the command being run, for messages */
};

extern struct shell sh;

/* `sh: FILE:LINE: …` in a script, `sh: …` at the prompt. */
void sh_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
