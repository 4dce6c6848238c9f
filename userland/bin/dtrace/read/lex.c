/*
 * lex.c - cuts a D program into tokens.
 *
 * The parser looks at most two tokens ahead. Names of probes are no tokens: the parser says when
 * one may come (lex_probe()), and the lexer goes back to where the tokens end that were taken.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/read/read.h"

struct dt_macros dt_macros;

struct lex_state lex;
static bool fresh; /* nothing but blanks since the line began */
bool lex_pragmas_only;
static struct token ahead[2];
static unsigned ahead_count;

void
lex_open(const char *text, struct place at)
{
	lex.pos = text;
	lex.here = at;
	fresh = true;
	lex_pragmas_only = false;
	ahead_count = 0;
	if (text[0] == '#' && text[1] == '!')
		lex.pos += strcspn(lex.pos, "\n");
}

/* ---- blanks, comments, lines that begin with # ---- */

static void
skip_comment(void)
{
	struct place at = lex.here;

	for (lex.pos += 2; strncmp(lex.pos, "*/", 2) != 0; lex.pos++) {
		if (*lex.pos == '\0' && lex_pragmas_only)
			return;
		if (*lex.pos == '\0')
			dt_error(at, "D_SYNTAX", "found no end of this comment, expected */");
		if (strncmp(lex.pos, "/*", 2) == 0 && !lex_pragmas_only)
			dt_error(lex.here, "D_SYNTAX",
				 "found /* in a comment; comments do not nest");
		lex.here.line += *lex.pos == '\n';
	}
	lex.pos += 2;
}

/* A line that begins with #, without it. */
static void
control_line(char *line)
{
	char *word;

	line += strspn(line, " \t");
	if (*line == '\0')
		return;
	if (strncmp(line, "line", 4) == 0 && isblank((unsigned char)line[4]))
		line += 5 + strspn(line + 5, " \t");
	if (isdigit((unsigned char)*line)) {
		char *end, *quote;

		lex.here.line = (uint32_t)strtoul(line, &end, 10) - 1; /* the newline follows */
		quote = strchr(end, '"');
		if (quote != NULL && lex.here.file != NULL)
			lex.here.file = dt_strndup(quote + 1, strcspn(quote + 1, "\""));
		return;
	}
	word = strsep(&line, " \t");
	line = line != NULL ? line + strspn(line, " \t") : word + strlen(word);
	if (strcmp(word, "pragma") == 0) {
		word = strsep(&line, " \t");
		if (strcmp(word, "D") == 0)
			lex_pragma(line != NULL ? line + strspn(line, " \t") : "", lex.here);
	} else if (lex_pragmas_only) {
		return;
	} else if (strcmp(word, "error") == 0) {
		dt_error(lex.here, "D_PRAGERR", "#error: %s", line);
	} else if (strcmp(word, "ident") != 0) {
		dt_error(
		    lex.here, "D_PRAGCTL_INVAL",
		    "found #%s, expected #pragma, #line, #ident or #error; #include and #define need -C",
		    word);
	}
}

static void
skip_blanks(void)
{
	for (;;) {
		if (*lex.pos == '\n') {
			lex.here.line++;
			fresh = true;
			lex.pos++;
		} else if (isspace((unsigned char)*lex.pos)) {
			lex.pos++;
		} else if (lex.pos[0] == '\\' && lex.pos[1] == '\n') {
			lex.here.line++;
			lex.pos += 2;
		} else if (lex.pos[0] == '/' && lex.pos[1] == '*') {
			skip_comment();
		} else if (lex.pos[0] == '/' && lex.pos[1] == '/') {
			lex.pos += strcspn(lex.pos, "\n");
		} else if (lex.pos[0] == '#' && fresh) {
			size_t size = strcspn(lex.pos, "\n");
			char *line = dt_strndup(lex.pos + 1, size - 1);

			lex.pos += size;
			if (*lex.pos == '\0' && !lex_pragmas_only)
				dt_error(lex.here, "D_SYNTAX", "found no end of the line of #%s",
					 line);
			control_line(line);
		} else {
			break;
		}
	}
}

void
lex_pragmas(const char *text, struct place at)
{
	lex_open(text, at);
	lex_pragmas_only = true;
	for (skip_blanks(); *lex.pos != '\0'; skip_blanks()) {
		char quote = *lex.pos++;

		fresh = false;
		if (quote != '"' && quote != '\'')
			continue;
		while (*lex.pos != '\0' && *lex.pos != '\n' && *lex.pos != quote)
			lex.pos +=
			    lex.pos[0] == '\\' && lex.pos[1] != '\0' && lex.pos[1] != '\n' ? 2 : 1;
		lex.pos += *lex.pos == quote;
	}
	lex_pragmas_only = false;
}

/* ---- tokens ---- */

/*
 * Finds what a macro stands for that begins at p with $. Returns its text; or NULL, and then *value
 * is its number. *end: the end of its name. *string: it was $$.
 */
static const char *
macro(const char *p, struct place at, const char **end, uint64_t *value, bool *string)
{
	const struct {
		const char *name;
		uint64_t value;
	} macros[] = {{"target", dt_macros.target},
		      {"pid", dt_macros.pid},
		      {"ppid", dt_macros.ppid},
		      {"pgid", dt_macros.pgid},
		      {"sid", dt_macros.sid},
		      {"uid", dt_macros.uid},
		      {"euid", dt_macros.euid},
		      {"gid", dt_macros.gid},
		      {"egid", dt_macros.egid},
		      {"projid", 0},
		      {"taskid", 0},
		      {"zoneid", 0}};
	size_t size;

	*string = p[1] == '$';
	p += 1 + *string;
	if (isdigit((unsigned char)*p)) {
		char *after;
		unsigned long n = strtoul(p, &after, 10);

		*end = after;
		if (n < (unsigned long)dt_macros.argc) {
			dt_macros.used[n] = true;
			return dt_macros.argv[n];
		}
		if (!dt_macros.defaultargs)
			dt_error(
			    at, "D_MACRO_UNDEF",
			    "$%lu: found %d arguments after the program; give more, or use -x defaultargs",
			    n, dt_macros.argc > 0 ? dt_macros.argc - 1 : 0);
		*value = 0;
		return *string ? "" : NULL;
	}
	size = lex_name_size(p);
	*end = p + size;
	for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++)
		if (strlen(macros[i].name) == size && strncmp(macros[i].name, p, size) == 0) {
			*value = macros[i].value;
			if (i == 0 && dt_macros.no_target)
				dt_error(
				    at, "D_RECORDED",
				    "$target is not in a recorded trace: expected the number of a process");
			return *string ? dt_format("%ld", (long)*value) : NULL;
		}
	dt_error(at, size > 0 ? "D_MACRO_UNDEF" : "D_SYNTAX",
		 "$%.*s: there is no such macro variable", (int)size, p);
}

static void
macro_token(struct token *t)
{
	bool string;
	const char *text = macro(lex.pos, t->at, &lex.pos, &t->value, &string), *digits;

	if (text == NULL) {
		t->kind = TOKEN_INT;
		t->type = lex_integer_type(t->value, true, false, false);
		return;
	}
	digits = text + (*text == '-' || *text == '+');
	if (!string && isdigit((unsigned char)*digits)) {
		lex_integer(t, digits, strlen(digits));
		if (*text == '-')
			t->value = -t->value;
		return;
	}
	t->kind = !string && *text != '\0' && lex_name_size(text) == strlen(text) ? TOKEN_NAME
										  : TOKEN_STRING;
	t->text = text;
	t->size = strlen(text);
}

static void
operator(struct token *t)
{
	static const char *const operators[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
						"<=",  ">=",  "==",  "!=", "&&", "||", "^^", "+=",
						"-=",  "*=",  "/=",  "%=", "&=", "^=", "|=", NULL};
	static const char single[] = "{}()[];,.:?~!%^&*-+=|/<>";
	const char *op = NULL;
	size_t size;

	for (size_t i = 0; operators[i] != NULL && op == NULL; i++)
		if (strncmp(lex.pos, operators[i], strlen(operators[i])) == 0)
			op = operators[i];
	if (op == NULL && strchr(single, *lex.pos) == NULL)
		dt_error(t->at, "D_SYNTAX", "found the character '%c', which D does not use",
			 *lex.pos);
	size = op != NULL ? strlen(op) : 1;
	t->kind = TOKEN_OP;
	for (size_t i = size; i-- > 0;)
		t->op = t->op << 8 | (unsigned char)lex.pos[i];
	lex.pos += size;
}

static struct token
scan(void)
{
	struct token t = {.kind = TOKEN_END};
	size_t size;

	skip_blanks();
	fresh = false;
	t.at = lex.here;
	t.start = lex.pos;
	size = lex_name_size(lex.pos);
	if (*lex.pos == '\0') {
		t.text = "";
	} else if (size > 0) {
		t.kind = TOKEN_NAME;
		t.text = dt_strndup(lex.pos, size);
		lex.pos += size;
		if (*lex.pos == '`' && lex_name_size(lex.pos + 1) > 0) { /* object`name */
			size_t more = 1 + lex_name_size(lex.pos + 1);

			t.kind = TOKEN_EXTERN;
			t.text = dt_strndup(t.start, size + more);
			lex.pos += more;
		}
	} else if (*lex.pos == '@' || *lex.pos == '`') {
		size = lex_name_size(lex.pos + 1);
		t.kind = *lex.pos == '@' ? TOKEN_AGG : TOKEN_EXTERN;
		if (*lex.pos == '`' && size == 0)
			dt_error(t.at, "D_IDENT_UNDEF", "found `, expected a name after it");
		t.text = dt_strndup(lex.pos + 1, size);
		lex.pos += 1 + size;
	} else if (isdigit((unsigned char)*lex.pos) ||
		   (*lex.pos == '.' && isdigit((unsigned char)lex.pos[1]))) {
		for (size = 1; isalnum((unsigned char)lex.pos[size]) || lex.pos[size] == '.' ||
			       lex.pos[size] == '_';)
			size++;
		lex_integer(&t, lex.pos, size);
		lex.pos += size;
	} else if (*lex.pos == '"') {
		t.kind = TOKEN_STRING;
		t.text = lex_quoted(&t, &t.size);
	} else if (*lex.pos == '\'') {
		lex_character(&t);
	} else if (*lex.pos == '$') {
		macro_token(&t);
	} else {
		operator(&t);
	}
	t.end = lex.pos;
	return t;
}

const struct token *
lex_peek(void)
{
	if (ahead_count == 0)
		ahead[ahead_count++] = scan();
	return &ahead[0];
}

const struct token *
lex_peek2(void)
{
	lex_peek();
	if (ahead_count == 1)
		ahead[ahead_count++] = scan();
	return &ahead[1];
}

struct token
lex_next(void)
{
	struct token t = *lex_peek();

	ahead[0] = ahead[1];
	ahead_count--;
	return t;
}

bool
lex_is(uint32_t op)
{
	return lex_peek()->kind == TOKEN_OP && lex_peek()->op == op;
}

bool
lex_is_name(const char *name)
{
	return lex_peek()->kind == TOKEN_NAME && strcmp(lex_peek()->text, name) == 0;
}

bool
lex_take(uint32_t op)
{
	bool is = lex_is(op);

	if (is)
		lex_next();
	return is;
}

bool
lex_take_name(const char *name)
{
	bool is = lex_is_name(name);

	if (is)
		lex_next();
	return is;
}

void
lex_expected(const char *what)
{
	struct token t = *lex_peek();

	if (t.kind == TOKEN_END)
		dt_error(t.at, "D_SYNTAX",
			 "syntax error: found the end of the program, expected %s", what);
	dt_error(t.at, "D_SYNTAX", "syntax error near \"%.*s\": expected %s",
		 (int)(t.end - t.start), t.start, what);
}

void
lex_expect(uint32_t op)
{
	char what[6] = {'\'', (char)op, (char)(op >> 8), (char)(op >> 16)};

	if (!lex_take(op)) {
		strcat(what, "'");
		lex_expected(what);
	}
}

/* Before the tokens that were looked at. */
static void
go_back(void)
{
	if (ahead_count > 0) {
		lex.pos = ahead[0].start;
		lex.here = ahead[0].at;
		ahead_count = 0;
	}
	skip_blanks();
}

/* A format in the place of a probe's name, with its quotes. Characters that separate the names of
 * probes become `?`, which matches any character. */
static const char *
lex_probe_format(void)
{
	struct token t = {.at = lex.here};
	size_t size;
	char *text = lex_quoted(&t, &size);

	for (char *p = text; *p != '\0'; p++)
		if (strchr(":,\"\\", *p) != NULL)
			*p = '?';
	return dt_format("\"%s\"", text);
}

char *
lex_probe(struct place *at)
{
	char *text = dt_strndup("", 0);

	go_back();
	*at = lex.here;
	while (*lex.pos != '\0' &&
	       (isalnum((unsigned char)*lex.pos) || strchr("-$:_.?*\\[]!`+\"", *lex.pos) != NULL)) {
		if (*lex.pos == '"') {
			if (*text == '\0' || text[strlen(text) - 1] != ':')
				break;
			return dt_format("%s%s", text, lex_probe_format());
		}
		if (*lex.pos == '$') {
			bool string;
			uint64_t value;
			const char *part = macro(lex.pos, lex.here, &lex.pos, &value, &string);

			text = part != NULL ? dt_format("%s%s", text, part)
					    : dt_format("%s%ld", text, (long)value);
		} else {
			size_t size = strcspn(lex.pos, "$ \t\r\n\f\v,/{};()\"'@=<>&|^%~#");

			text = dt_format("%s%.*s", text, (int)size, lex.pos);
			lex.pos += size;
		}
	}
	return *text != '\0' ? text : NULL;
}

bool
lex_ends_predicate(void)
{
	const struct token *next;

	if (!lex_is('/'))
		return false;
	next = lex_peek2();
	return next->kind == TOKEN_END ||
	       (next->kind == TOKEN_OP && (next->op == '{' || next->op == ';'));
}
