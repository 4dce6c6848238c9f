/*
 * lex.c - cuts input into tokens. Words stay as they were typed; expand.c reads the quotes.
 *
 * Lines are asked for one at a time, and only when the command at hand is not complete: so a script
 * is read as far as it is run, and the prompt knows when a line continues.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/sh/sh.h"

void
lex_start(struct lexer *lx, struct input *in)
{
	*lx = (struct lexer){.in = in};
}

void
lex_error(struct lexer *lx, int line, const char *found, const char *expected)
{
	if (!lx->failed && !sh.interrupted) {
		fflush(stdout);
		fprintf(stderr, "sh: ");
		if (!lx->in->editor)
			fprintf(stderr, "%s:%d: ", lx->in->name, line);
		fprintf(stderr, "found %s, expected %s\n", found, expected);
	}
	lx->failed = true;
}

/* Reads the next line; false at the end. */
static bool
next_line(struct lexer *lx)
{
	if (!lx->ended)
		lx->p = input_read_line(lx->in, lx->in_command);
	if (lx->ended || lx->p == NULL) {
		lx->ended = true;
		lx->p = NULL;
		return false;
	}
	return true;
}

/* Length of '…' with both quotes. */
static size_t
span_single(const char *s)
{
	const char *end = strchr(s + 1, '\'');

	return end != NULL ? (size_t)(end - s) + 1 : 0;
}

/* Length of what is opened at s (two characters or one) up to `close`, with all that nests in it.
 */
static size_t
span_nested(const char *s, size_t opening, char close, bool in_quotes)
{
	const char *p = s + opening;
	int depth = 1;

	while (*p != '\0') {
		size_t n = 1;

		if (*p == '\\' && p[1] != '\0')
			n = 2;
		else if (*p == close && --depth == 0)
			return (size_t)(p - s) + 1;
		else if (close == ')' && *p == '(')
			depth++;
		else if (close != '`' &&
			 (*p == '"' || *p == '`' || *p == '$' || (*p == '\'' && !in_quotes)))
			n = lex_span(p, in_quotes);
		if (n == 0)
			return 0;
		p += n;
	}
	return 0;
}

size_t
lex_span(const char *s, bool in_quotes)
{
	switch (*s) {
	case '\'':
		return span_single(s);
	case '"':
		return span_nested(s, 1, '"', true);
	case '`':
		return span_nested(s, 1, '`', false);
	case '$':
		if (s[1] == '(')
			return span_nested(s, 2, ')', false);
		if (s[1] == '{')
			return span_nested(s, 2, '}', in_quotes);
		return 1;
	default:
		return 1;
	}
}

/* Takes a span that may go on over several lines; false after a message. */
static bool
take_span(struct lexer *lx, struct text *t)
{
	int line = lx->in->line;
	char opening[3] = {lx->p[0], lx->p[0] == '$' ? lx->p[1] : '\0', '\0'};
	struct text all = {0};
	size_t n;

	text_puts(&all, lx->p);
	while ((n = lex_span(all.s, false)) == 0) {
		bool was_in_command = lx->in_command;
		const char *close = *opening == '\''    ? "a closing '"
				    : *opening == '"'   ? "a closing \""
				    : *opening == '`'   ? "a closing `"
				    : opening[1] == '(' ? "a closing )"
							: "a closing }";

		lx->in_command = true;
		if (!next_line(lx)) {
			lex_error(lx, line, "the end of the input", close);
			return false;
		}
		lx->in_command = was_in_command;
		text_puts(&all, lx->p);
	}
	/* What is left of the last line is where reading goes on. */
	lx->p += strlen(lx->p) - (all.len - n);
	for (size_t i = 0; i < n; i++)
		text_putc(t, all.s[i]);
	return true;
}

static bool
is_meta(char c)
{
	return c == '\0' || strchr(" \t\r\n;&|<>()", c) != NULL;
}

/* Takes the word at hand into the token. */
static void
take_word(struct lexer *lx, struct token *tok)
{
	struct text t = {0};

	while (!is_meta(*lx->p)) {
		if (lx->p[0] == '\\' && lx->p[1] == '\n') {
			lx->in_command = true;
			if (!next_line(lx))
				break;
			continue;
		}
		if (lx->p[0] == '\\' && lx->p[1] != '\0') {
			text_putc(&t, *lx->p++);
			text_putc(&t, *lx->p++);
		} else if (strchr("'\"`$", *lx->p) != NULL) {
			if (!take_span(lx, &t)) {
				tok->type = T_ERROR;
				return;
			}
		} else {
			text_putc(&t, *lx->p++);
		}
	}
	tok->type = T_WORD;
	tok->text = t.s != NULL ? t.s : arena_strndup("", 0);
}

/* Operators, the longest first. */
static const struct {
	const char *text;
	enum token_type type;
	enum redir_op op;
	int fd;
} operators[] = {
    {"&&", T_AND, 0, 0},          {"||", T_OR, 0, 0},
    {";;", T_SEMI_SEMI, 0, 0},    {"<<", T_REDIR, R_HERE, 0},
    {"<&", T_REDIR, R_DUP_IN, 0}, {"<>", T_REDIR, R_READ_WRITE, 0},
    {">>", T_REDIR, R_APPEND, 1}, {">&", T_REDIR, R_DUP_OUT, 1},
    {">|", T_REDIR, R_WRITE, 1},  {"<", T_REDIR, R_READ, 0},
    {">", T_REDIR, R_WRITE, 1},   {";", T_SEMI, 0, 0},
    {"&", T_AMP, 0, 0},           {"|", T_PIPE, 0, 0},
    {"(", T_OPEN, 0, 0},          {")", T_CLOSE, 0, 0},
};

static bool
take_operator(struct lexer *lx, struct token *tok)
{
	int fd = -1;

	/* A digit right before < or > is the descriptor. */
	if (isdigit((unsigned char)lx->p[0]) && (lx->p[1] == '<' || lx->p[1] == '>'))
		fd = *lx->p++ - '0';
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		size_t len = strlen(operators[i].text);

		if (strncmp(lx->p, operators[i].text, len) != 0)
			continue;
		lx->p += len;
		tok->type = operators[i].type;
		tok->text = (char *)operators[i].text;
		tok->op = operators[i].op;
		tok->fd = fd >= 0 ? fd : operators[i].fd;
		return true;
	}
	return false;
}

void
lex_here(struct lexer *lx, struct redir *r, char *delimiter)
{
	struct text bare = {0};

	if (lx->here_count == sizeof(lx->here) / sizeof(lx->here[0])) {
		lex_error(lx, lx->in->line, "<<", "at most 8 here-documents in a line");
		return;
	}
	r->expand = strpbrk(delimiter, "'\"\\") == NULL;
	for (const char *p = delimiter; *p != '\0'; p++) {
		if (strchr("'\"\\", *p) == NULL)
			text_putc(&bare, *p);
	}
	lx->here[lx->here_count] = r;
	lx->here_end[lx->here_count++] = bare.s != NULL ? bare.s : "";
}

/* Reads the texts of the here-documents that the line just ended has announced. */
static bool
take_here_documents(struct lexer *lx)
{
	for (unsigned int i = 0; i < lx->here_count; i++) {
		struct text t = {0};
		size_t len = strlen(lx->here_end[i]);
		int line = lx->in->line;

		lx->in_command = true;
		for (;;) {
			if (!next_line(lx)) {
				lex_error(lx, line, "the end of the input", lx->here_end[i]);
				return false;
			}
			if (strncmp(lx->p, lx->here_end[i], len) == 0 &&
			    (lx->p[len] == '\n' || lx->p[len] == '\0'))
				break;
			text_puts(&t, lx->p);
		}
		lx->p += strlen(lx->p);
		lx->here[i]->target = t.s != NULL ? t.s : "";
	}
	lx->here_count = 0;
	return true;
}

/* Passes blanks, comments and joined lines; false at the end of the input. */
static bool
skip_blanks(struct lexer *lx)
{
	for (;;) {
		if (lx->p == NULL || *lx->p == '\0') {
			if (!next_line(lx))
				return false;
		} else if (*lx->p == ' ' || *lx->p == '\t' || *lx->p == '\r') {
			lx->p++;
		} else if (lx->p[0] == '\\' && lx->p[1] == '\n') {
			lx->in_command = true;
			lx->p += 2;
		} else if (*lx->p == '#') {
			lx->p += strcspn(lx->p, "\n");
		} else {
			return true;
		}
	}
}

struct token *
lex_peek(struct lexer *lx)
{
	struct token *tok = &lx->token;

	if (lx->have_token)
		return tok;
	*tok = (struct token){.type = T_END, .text = ""};
	lx->have_token = true;
	if (skip_blanks(lx)) {
		tok->line = lx->in->line;
		if (*lx->p == '\n') {
			lx->p++;
			tok->type =
			    lx->here_count == 0 || take_here_documents(lx) ? T_NEWLINE : T_ERROR;
		} else if (!take_operator(lx, tok)) {
			take_word(lx, tok);
		}
	}
	if (tok->type == T_END)
		tok->line = lx->in->line;
	return tok;
}

void
lex_next(struct lexer *lx)
{
	lex_peek(lx);
	lx->have_token = false;
}
