/*
 * cpp_macro.c - the macros of the preprocessor: what #define says, and what a name becomes.
 */
#include <ctype.h>
#include <string.h>

#include "userland/bin/dtrace/read/read.h"

#define MAX_SIZE   (4u << 20) /* bytes of a result */
#define MAX_ARGS   32u        /* of a macro */
#define MAX_MACROS 100000u    /* that are expanded in all */
#define MAX_NESTED 32u

/* After a name that was found within its own macro: it is that of no macro, wherever it goes. */
#define SETTLED '\1'

static struct macro {
	struct macro *next;
	const char *name, *body;
	const char *parameters[MAX_ARGS];
	unsigned count;
	bool function, variadic, expanding;
} * macros;

static unsigned expansions, nested; /* of macros: all; one in the other */

void
cpp_macros_init(void)
{
	macros = NULL;
	expansions = nested = 0;
}

void
cpp_put(struct buffer *to, const char *text, size_t size)
{
	if (to->size + size > MAX_SIZE)
		cpp_fail("found more than 4 MiB of text after expansion", "");
	buffer_add(to, text, size);
}

/* Would these two characters, one after the other, be part of one token of D, or of a comment? */
static bool
joins(char a, char b)
{
	if (isalnum((unsigned char)a) || a == '_')
		return isalnum((unsigned char)b) || b == '_';
	if (b == '=')
		return strchr("+-*/%&|^<>=!", a) != NULL;
	return (a == b && strchr("+-&|^<>/", a) != NULL) || (a == '-' && b == '>') ||
	       (a == '/' && b == '*');
}

/* Where a macro or an argument begins or ends (edge), two tokens stay two: a blank goes between. */
static void
put_apart(struct buffer *to, const char *text, size_t size, bool edge)
{
	size_t end = to->size - (to->size > 0 && to->data[to->size - 1] == SETTLED);

	if (edge && size > 0 && end > 0 && joins((char)to->data[end - 1], *text))
		cpp_put(to, " ", 1);
	cpp_put(to, text, size);
}

static struct macro *
find(const char *name, size_t size)
{
	struct macro *m = macros;

	while (m != NULL && (strncmp(m->name, name, size) != 0 || m->name[size] != '\0'))
		m = m->next;
	return m;
}

void
cpp_undefine(const char *name)
{
	for (struct macro **m = &macros; *m != NULL; m = &(*m)->next)
		if (strcmp((*m)->name, name) == 0) {
			*m = (*m)->next;
			return;
		}
}

const char *
cpp_skip_blanks(const char *p)
{
	return p + strspn(p, " \t\r\f\v");
}

size_t
cpp_token_size(const char *p)
{
	size_t n = lex_name_size(p);

	if (n > 0)
		return n;
	if (isdigit((unsigned char)*p)) {
		while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.')
			n++;
		return n;
	}
	if (*p == '"' || *p == '\'') {
		for (n = 1; p[n] != '\0' && p[n] != *p; n++)
			n += p[n] == '\\' && p[n + 1] != '\0';
		return n + (p[n] != '\0');
	}
	n = strspn(p, " \t\r\n\f\v");
	return n > 0 ? n : *p != '\0';
}

char *
cpp_trimmed(const char *text, size_t size)
{
	while (size > 0 && isspace((unsigned char)*text))
		text++, size--;
	while (size > 0 && isspace((unsigned char)text[size - 1]))
		size--;
	return dt_strndup(text, size);
}

void
cpp_define(const char *text)
{
	struct macro *m = dt_alloc(sizeof(*m));
	size_t size = lex_name_size(text);

	if (size == 0)
		cpp_fail("#define: expected a name: ", text);
	m->name = dt_strndup(text, size);
	text += size;
	m->function = *text == '(';
	while (m->function && *text != ')') {
		text = cpp_skip_blanks(text + 1);
		size = strncmp(text, "...", 3) == 0 ? 3 : lex_name_size(text);
		if (*text == ')' && m->count == 0)
			break;
		if (size == 0 || m->count == MAX_ARGS || m->variadic)
			cpp_fail("#define: expected names of parameters: ", m->name);
		m->variadic = *text == '.';
		m->parameters[m->count++] = m->variadic ? "__VA_ARGS__" : dt_strndup(text, size);
		text = cpp_skip_blanks(text + size);
		if (*text != ',' && *text != ')')
			cpp_fail("#define: expected , or ) after a parameter of ", m->name);
	}
	text += m->function;
	m->body = cpp_trimmed(text, strlen(text));
	cpp_undefine(m->name);
	m->next = macros;
	macros = m;
}

/* The arguments from p, which is after the parenthesis; NULL: it is not closed in this text. */
static const char *
read_arguments(const struct macro *m, const char *p, char *args[MAX_ARGS], unsigned *count)
{
	const char *start = p;
	unsigned depth = 1;

	for (*count = 0; *p != '\0'; p += cpp_token_size(p)) {
		depth += *p == '(';
		depth -= *p == ')';
		if (depth == 0 ||
		    (depth == 1 && *p == ',' && !(m->variadic && *count + 1 == m->count))) {
			if (*count == MAX_ARGS)
				cpp_fail("found too many arguments of ", m->name);
			args[(*count)++] = cpp_trimmed(start, (size_t)(p - start));
			start = p + 1;
		}
		if (depth == 0)
			return p + 1;
	}
	return NULL;
}

/* Takes the marks out, when no macro is left to be expanded. */
static void
put_unmarked(struct buffer *b, size_t from)
{
	size_t to = from, n;

	if (nested > 0)
		return;
	buffer_add(b, "", 1);
	for (size_t at = from; at < b->size - 1; at += n) {
		n = cpp_token_size((char *)b->data + at);
		memmove(b->data + to, b->data + at, n);
		to += b->data[to] == SETTLED ? 0 : n;
	}
	b->size = to;
}

char *
cpp_expanded(const char *text)
{
	struct buffer b = {0};
	const char *rest;

	if (++nested > MAX_NESTED)
		cpp_fail("arguments of macros are nested too deeply: ", text);
	rest = cpp_expand(&b, text, false);
	nested--;
	if (rest != NULL)
		cpp_put(&b, rest, strlen(rest));
	put_unmarked(&b, 0);
	buffer_add(&b, "", 1);
	return (char *)b.data;
}

static void
put_quoted(struct buffer *to, const char *text)
{
	cpp_put(to, "\"", 1);
	for (size_t n; *text != '\0'; text += n) {
		n = cpp_token_size(text);
		for (size_t i = 0; i < n && *text != SETTLED; i++) {
			if (text[i] == '"' || (text[i] == '\\' && (*text == '"' || *text == '\'')))
				cpp_put(to, "\\", 1);
			cpp_put(to, text + i, 1);
		}
	}
	cpp_put(to, "\"", 1);
}

/* The body with arguments in the place of parameters: after # quoted, beside ## as they stand. */
static char *
substituted(const struct macro *m, char *const *args, unsigned count)
{
	struct buffer b = {0};
	bool paste = false, edge = false;

	for (const char *p = m->body, *next; *p != '\0'; p = next) {
		bool quote = m->function && p[0] == '#' && p[1] != '#';
		const char *name = quote ? cpp_skip_blanks(p + 1) : p;
		size_t size = cpp_token_size(name);
		unsigned n = 0;

		next = name + size;
		if (strncmp(cpp_skip_blanks(p), "##", 2) == 0) {
			next = cpp_skip_blanks(cpp_skip_blanks(p) + 2);
			paste = true;
			edge = false;
			b.size -= b.size > 0 && b.data[b.size - 1] == SETTLED;
			continue;
		}
		while (n < m->count && (strlen(m->parameters[n]) != size ||
					strncmp(m->parameters[n], name, size) != 0))
			n++;
		if (n == m->count && quote)
			cpp_fail("# without a parameter in ", m->name);
		if (n == m->count)
			put_apart(&b, p, size, edge);
		else if (quote)
			put_quoted(&b, n < count ? args[n] : "");
		else if (n < count) {
			char *arg = paste || strncmp(cpp_skip_blanks(next), "##", 2) == 0
					? args[n]
					: cpp_expanded(args[n]);

			put_apart(&b, arg, strlen(arg), !paste);
		}
		edge = n < m->count;
		paste = false;
	}
	buffer_add(&b, "", 1);
	return (char *)b.data;
}

/* The end of a macro's body, which is a macro without its arguments, and the text after it. */
static const char *
followed(const char *end, const char *text)
{
	struct buffer b = {0};

	cpp_put(&b, end, strlen(end));
	put_apart(&b, text, strlen(text), true);
	expansions += (unsigned)b.size / 256; /* the copies have a limit, too */
	buffer_add(&b, "", 1);
	return (const char *)b.data;
}

const char *
cpp_expand(struct buffer *to, const char *text, bool goes_on)
{
	bool edge = true;
	size_t from = to->size;

	for (const char *p = text, *next; *p != '\0'; p = next) {
		size_t size = cpp_token_size(p);
		bool name = lex_name_size(p) > 0 && p[size] != SETTLED;
		struct macro *m = name ? find(p, size) : NULL;
		char *args[MAX_ARGS];
		unsigned count = 0;
		const char *after = p + size + strspn(p + size, " \t\r\n\f\v");

		next = p + size;
		if (strncmp(p, "__LINE__", size) == 0 && size == 8) {
			const char *line = dt_format("%u", cpp_place().line);

			put_apart(to, line, strlen(line), edge);
			edge = true;
			continue;
		}
		if (m == NULL || m->expanding ||
		    (m->function && *after != '(' && !(goes_on && *after == '\0'))) {
			put_apart(to, p, size, edge);
			if (m != NULL && m->expanding)
				cpp_put(to, (char[]){SETTLED}, 1);
			edge = false;
			continue;
		}
		if (m->function) {
			next = *after == '(' ? read_arguments(m, after + 1, args, &count) : NULL;
			if (next == NULL)
				return p;
			if (count != m->count && !(m->variadic && count + 1 == m->count) &&
			    !(m->count == 0 && count == 1 && *args[0] == '\0'))
				dt_error(cpp_place(), "D_CPP_ERR",
					 "%s: found %u arguments, expected %u", m->name, count,
					 m->count);
		}
		if (++expansions > MAX_MACROS || ++nested > MAX_NESTED)
			cpp_fail("macros use each other too often: ", m->name);
		text = substituted(m, args, count);
		m->expanding = true;
		after = cpp_expand(to, text, true);
		m->expanding = false;
		nested--;
		edge = true;
		if (after != NULL)
			next = followed(after, next);
	}
	put_unmarked(to, from);
	return NULL;
}

bool
cpp_is_defined(const char *name, size_t size)
{
	return find(name, size) != NULL;
}
