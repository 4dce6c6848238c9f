/*
 * parse.c - tokens to a tree, by recursive descent: one function a rule of the grammar.
 *
 *   line     := list NEWLINE            list    := and_or { (; | & | NEWLINE) and_or }
 *   and_or   := pipe { (&& | ||) pipe } pipe    := [!] [time] command { | command }
 *   command  := simple | compound { redirection } | NAME ( ) command
 *   compound := ( list ) | { list } | if | while | until | for | case
 *
 * Every function returns NULL after an error, which lex_error() has told.
 */
#include <string.h>

#include "userland/bin/sh/sh.h"

#define DEPTH_MAX 64 /* of commands within commands: what fits a small stack */

static struct node *parse_list(struct lexer *lx, bool one_line);
static struct node *parse_command(struct lexer *lx);

static struct node *
node_new(enum node_type type, struct node *a, struct node *b, int line)
{
	struct node *n = arena_alloc(sizeof(*n));

	*n = (struct node){.type = type, .a = a, .b = b, .line = line};
	return n;
}

/* Tells that the token at hand is not what was expected. */
static struct node *
unexpected(struct lexer *lx, const char *expected)
{
	struct token *tok = lex_peek(lx);

	if (tok->type == T_END)
		lex_error(lx, tok->line, "the end of the input", expected);
	else if (tok->type == T_NEWLINE)
		lex_error(lx, tok->line, "the end of the line", expected);
	else
		lex_error(lx, tok->line, arena_printf("\"%s\"", tok->text), expected);
	return NULL;
}

/* Is the token at hand this word, unquoted? (A quoted one has its quotes in the text.) */
static bool
at_word(struct lexer *lx, const char *word)
{
	struct token *tok = lex_peek(lx);

	return tok->type == T_WORD && strcmp(tok->text, word) == 0;
}

static bool
accept_word(struct lexer *lx, const char *word)
{
	if (!at_word(lx, word))
		return false;
	lex_next(lx);
	return true;
}

static bool
expect_word(struct lexer *lx, const char *word)
{
	if (accept_word(lx, word))
		return true;
	unexpected(lx, arena_printf("\"%s\"", word));
	return false;
}

static void
skip_newlines(struct lexer *lx)
{
	while (lex_peek(lx)->type == T_NEWLINE)
		lex_next(lx);
}

/* Does the token at hand end a list? */
static bool
at_list_end(struct lexer *lx)
{
	static const char *const closing[] = {"then", "else", "elif", "fi",
					      "do",   "done", "esac", "}"};
	enum token_type type = lex_peek(lx)->type;

	if (type == T_END || type == T_CLOSE || type == T_SEMI_SEMI || type == T_ERROR)
		return true;
	for (size_t i = 0; i < sizeof(closing) / sizeof(closing[0]); i++) {
		if (at_word(lx, closing[i]))
			return true;
	}
	return false;
}

static void
add_word(struct word ***end, char *text)
{
	struct word *w = arena_alloc(sizeof(*w));

	*w = (struct word){.text = text};
	**end = w;
	*end = &w->next;
}

/* Takes a redirection if there is one; false after an error. */
static bool
parse_redir(struct lexer *lx, struct redir ***end)
{
	struct token *tok = lex_peek(lx);
	struct redir *r = arena_alloc(sizeof(*r));

	*r = (struct redir){.op = tok->op, .fd = tok->fd};
	lex_next(lx);
	tok = lex_peek(lx);
	if (tok->type != T_WORD) {
		unexpected(lx, r->op == R_HERE ? "a delimiter" : "a file name");
		return false;
	}
	r->target = tok->text;
	if (r->op == R_HERE)
		lex_here(lx, r, tok->text);
	lex_next(lx);
	**end = r;
	*end = &r->next;
	return true;
}

static struct node *
parse_function(struct lexer *lx, char *name, int line)
{
	struct node *n = node_new(N_FUNCTION, NULL, NULL, line);

	n->name = name;
	lex_next(lx);
	if (lex_peek(lx)->type != T_CLOSE)
		return unexpected(lx, "\")\"");
	lex_next(lx);
	skip_newlines(lx);
	n->a = parse_command(lx);
	return n->a != NULL ? n : NULL;
}

static struct node *
parse_simple(struct lexer *lx)
{
	struct node *n = node_new(N_SIMPLE, NULL, NULL, lex_peek(lx)->line);
	struct word **words = &n->words, **assigns = &n->assigns;
	struct redir **redirs = &n->redirs;

	for (;;) {
		struct token *tok = lex_peek(lx);
		char *text = tok->text;

		if (tok->type == T_REDIR) {
			if (!parse_redir(lx, &redirs))
				return NULL;
		} else if (tok->type != T_WORD) {
			break;
		} else if (n->words == NULL && var_assign_length(text) > 0) {
			lex_next(lx);
			add_word(&assigns, text);
		} else {
			bool first = n->words == NULL;

			lex_next(lx);
			if (first && n->assigns == NULL && n->redirs == NULL &&
			    lex_peek(lx)->type == T_OPEN) {
				if (!var_is_name(text, strlen(text)))
					return unexpected(lx, "a command");
				return parse_function(lx, text, n->line);
			}
			add_word(&words, text);
		}
	}
	if (n->words == NULL && n->assigns == NULL && n->redirs == NULL)
		return unexpected(lx, "a command");
	return n;
}

/* else and elif parts up to fi. */
static struct node *
parse_if(struct lexer *lx)
{
	struct node *n = node_new(N_IF, NULL, NULL, lex_peek(lx)->line);

	lex_next(lx); /* if or elif */
	n->a = parse_list(lx, false);
	if (n->a == NULL || !expect_word(lx, "then"))
		return NULL;
	n->b = parse_list(lx, false);
	if (n->b == NULL)
		return NULL;
	if (at_word(lx, "elif")) {
		n->c = parse_if(lx);
		return n->c != NULL ? n : NULL;
	}
	if (accept_word(lx, "else")) {
		n->c = parse_list(lx, false);
		if (n->c == NULL)
			return NULL;
	}
	return expect_word(lx, "fi") ? n : NULL;
}

static struct node *
parse_while(struct lexer *lx, enum node_type type)
{
	struct node *n = node_new(type, NULL, NULL, lex_peek(lx)->line);

	lex_next(lx);
	n->a = parse_list(lx, false);
	if (n->a == NULL || !expect_word(lx, "do"))
		return NULL;
	n->b = parse_list(lx, false);
	return n->b != NULL && expect_word(lx, "done") ? n : NULL;
}

static struct node *
parse_for(struct lexer *lx)
{
	struct node *n = node_new(N_FOR, NULL, NULL, lex_peek(lx)->line);
	struct word **words = &n->words;
	struct token *tok;

	lex_next(lx);
	tok = lex_peek(lx);
	if (tok->type != T_WORD || !var_is_name(tok->text, strlen(tok->text)))
		return unexpected(lx, "a variable's name");
	n->name = tok->text;
	lex_next(lx);
	skip_newlines(lx);
	if (accept_word(lx, "in")) {
		n->has_in = true;
		while ((tok = lex_peek(lx))->type == T_WORD) {
			add_word(&words, tok->text);
			lex_next(lx);
		}
		if (tok->type != T_SEMI && tok->type != T_NEWLINE)
			return unexpected(lx, "\";\" or a new line before \"do\"");
	}
	if (lex_peek(lx)->type == T_SEMI)
		lex_next(lx);
	skip_newlines(lx);
	if (!expect_word(lx, "do"))
		return NULL;
	n->b = parse_list(lx, false);
	return n->b != NULL && expect_word(lx, "done") ? n : NULL;
}

/* pattern { | pattern } ) list ;; */
static struct node *
parse_arm(struct lexer *lx)
{
	struct node *arm = node_new(N_ARM, NULL, NULL, lex_peek(lx)->line);
	struct word **words = &arm->words;

	if (lex_peek(lx)->type == T_OPEN)
		lex_next(lx);
	for (;;) {
		if (lex_peek(lx)->type != T_WORD)
			return unexpected(lx, "a pattern");
		add_word(&words, lex_peek(lx)->text);
		lex_next(lx);
		if (lex_peek(lx)->type != T_PIPE)
			break;
		lex_next(lx);
	}
	if (lex_peek(lx)->type != T_CLOSE)
		return unexpected(lx, "\")\" after the pattern");
	lex_next(lx);
	skip_newlines(lx);
	if (!at_list_end(lx)) {
		arm->a = parse_list(lx, false);
		if (arm->a == NULL)
			return NULL;
	}
	if (lex_peek(lx)->type == T_SEMI_SEMI)
		lex_next(lx);
	else if (!at_word(lx, "esac"))
		return unexpected(lx, "\";;\" or \"esac\"");
	skip_newlines(lx);
	return arm;
}

static struct node *
parse_case(struct lexer *lx)
{
	struct node *n = node_new(N_CASE, NULL, NULL, lex_peek(lx)->line), **arm = &n->a;
	struct word **words = &n->words;

	lex_next(lx);
	if (lex_peek(lx)->type != T_WORD)
		return unexpected(lx, "a word");
	add_word(&words, lex_peek(lx)->text);
	lex_next(lx);
	skip_newlines(lx);
	if (!expect_word(lx, "in"))
		return NULL;
	skip_newlines(lx);
	while (!accept_word(lx, "esac")) {
		*arm = parse_arm(lx);
		if (*arm == NULL)
			return NULL;
		arm = &(*arm)->next;
	}
	return n;
}

static struct node *
parse_enclosed(struct lexer *lx, enum node_type type)
{
	struct node *n = node_new(type, NULL, NULL, lex_peek(lx)->line);

	lex_next(lx);
	n->a = parse_list(lx, false);
	if (n->a == NULL)
		return NULL;
	if (type == N_GROUP)
		return expect_word(lx, "}") ? n : NULL;
	if (lex_peek(lx)->type != T_CLOSE)
		return unexpected(lx, "\")\"");
	lex_next(lx);
	return n;
}

/* Anything but a simple command; NULL after an error, or with *simple set when it is one. */
static struct node *
parse_compound(struct lexer *lx, bool *simple)
{
	*simple = false;
	if (lex_peek(lx)->type == T_OPEN)
		return parse_enclosed(lx, N_SUBSHELL);
	if (at_word(lx, "{"))
		return parse_enclosed(lx, N_GROUP);
	if (at_word(lx, "if"))
		return parse_if(lx);
	if (at_word(lx, "while"))
		return parse_while(lx, N_WHILE);
	if (at_word(lx, "until"))
		return parse_while(lx, N_UNTIL);
	if (at_word(lx, "for"))
		return parse_for(lx);
	if (at_word(lx, "case"))
		return parse_case(lx);
	*simple = true;
	return NULL;
}

static struct node *
parse_command(struct lexer *lx)
{
	struct redir **redirs;
	struct node *n;
	bool simple;

	lx->in_command = true;
	if (lx->depth == DEPTH_MAX)
		return unexpected(lx, "less nesting");
	lx->depth++;
	n = parse_compound(lx, &simple);
	if (simple)
		n = at_list_end(lx) ? unexpected(lx, "a command") : parse_simple(lx);
	lx->depth--;
	if (n == NULL || simple)
		return n;
	for (redirs = &n->redirs; lex_peek(lx)->type == T_REDIR;) {
		if (!parse_redir(lx, &redirs))
			return NULL;
	}
	return n;
}

static struct node *
parse_pipe(struct lexer *lx)
{
	int line = lex_peek(lx)->line;
	bool negate = accept_word(lx, "!"), timed = accept_word(lx, "time");
	struct node *n = parse_command(lx), *last = n;

	if (n == NULL)
		return NULL;
	if (lex_peek(lx)->type == T_PIPE)
		n = node_new(N_PIPE, n, NULL, line);
	while (lex_peek(lx)->type == T_PIPE) {
		lex_next(lx);
		skip_newlines(lx);
		last->next = parse_command(lx);
		last = last->next;
		if (last == NULL)
			return NULL;
	}
	if (timed)
		n = node_new(N_TIME, n, NULL, line);
	return negate ? node_new(N_NOT, n, NULL, line) : n;
}

static struct node *
parse_and_or(struct lexer *lx)
{
	struct node *n = parse_pipe(lx);

	while (n != NULL) {
		enum token_type type = lex_peek(lx)->type;
		int line = lex_peek(lx)->line;
		struct node *right;

		if (type != T_AND && type != T_OR)
			break;
		lex_next(lx);
		skip_newlines(lx);
		right = parse_pipe(lx);
		if (right == NULL)
			return NULL;
		n = node_new(type == T_AND ? N_AND : N_OR, n, right, line);
	}
	return n;
}

/* A list up to what ends it; with one_line a new line ends it too (and is left to the caller). */
static struct node *
parse_list(struct lexer *lx, bool one_line)
{
	struct node *list = NULL, **end = &list;

	for (;;) {
		struct node *n;
		enum token_type type;

		if (!one_line)
			skip_newlines(lx);
		if (list != NULL && (at_list_end(lx) || lex_peek(lx)->type == T_NEWLINE))
			return list;
		n = parse_and_or(lx);
		if (n == NULL)
			return NULL;
		type = lex_peek(lx)->type;
		if (type == T_AMP)
			n = node_new(N_BACKGROUND, n, NULL, n->line);
		if (*end != NULL)
			end = &(*end)->b;
		/* a ; b ; c hangs to the right: SEQ(a, SEQ(b, SEQ(c))) */
		*end = node_new(N_SEQ, n, NULL, n->line);
		if (type != T_SEMI && type != T_AMP && (one_line || type != T_NEWLINE))
			return list;
		lex_next(lx);
	}
}

enum parse_result
parse_line(struct lexer *lx, struct node **out)
{
	struct token *tok;

	lx->in_command = false;
	lx->failed = false;
	lx->here_count = 0;
	lx->depth = 0;
	tok = lex_peek(lx);
	if (tok->type == T_END)
		return PARSE_END;
	if (tok->type == T_NEWLINE) {
		lex_next(lx);
		return PARSE_EMPTY;
	}
	lx->in_command = true;
	*out = parse_list(lx, true);
	if (*out != NULL && !lx->failed) {
		tok = lex_peek(lx);
		if (tok->type == T_END)
			return PARSE_COMMAND; /* the end is seen again by the next call */
		if (tok->type == T_NEWLINE) {
			lex_next(lx);
			return PARSE_COMMAND;
		}
		if (tok->type != T_ERROR)
			unexpected(lx, "the end of the command");
	}
	lx->have_token = false;
	lx->p = NULL; /* the rest of the line */
	return PARSE_ERROR;
}
