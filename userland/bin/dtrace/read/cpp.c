/*
 * cpp.c - the preprocessor of -C: what C's does with #include, #define and #if.
 *
 * Its output is a text with line markers, so that errors name the file and line in which they are.
 */
#include "userland/bin/dtrace/read/read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/files.h"

#define MAX_DEPTH 32u /* of #include, and of #if */

struct cpp_options cpp_options;

/* The file that is read. */
static struct input {
	const char *file, *pos;
	uint32_t line; /* of pos */
	unsigned depth;
} in;

static struct buffer out;

struct place
cpp_place(void)
{
	return (struct place){in.file, in.line};
}

void
cpp_fail(const char *what, const char *text)
{
	dt_error(cpp_place(), "D_CPP_ERR", "%s%s", what, text);
}

/* ---- #if ---- */

/* Is a condition true? `defined` has its value, names that are left are 0, numbers are long. */
static bool
condition(const char *text)
{
	struct buffer named = {0}, b = {0};
	struct place at = cpp_place();
	bool value;

	for (const char *p = text; *p != '\0';) {
		size_t size = cpp_token_size(p);

		if (size == 7 && strncmp(p, "defined", 7) == 0) {
			bool open;

			p = cpp_skip_blanks(p + size);
			open = *p == '(';
			p = cpp_skip_blanks(p + open);
			size = lex_name_size(p);
			if (size == 0)
				cpp_fail("#if: expected a name after defined: ", text);
			cpp_put(&named, cpp_is_defined(p, size) ? "1" : "0", 1);
			p = cpp_skip_blanks(p + size);
			if (open && *p++ != ')')
				cpp_fail("#if: expected ) after defined: ", text);
			continue;
		}
		cpp_put(&named, p, size);
		p += size;
	}
	buffer_add(&named, "", 1);
	if (cpp_expand(&b, (char *)named.data, false) != NULL)
		cpp_fail("#if: found the end of the line in a macro's arguments: ", text);
	buffer_add(&b, "", 1);
	named = (struct buffer){0};
	for (const char *p = (char *)b.data; *p != '\0'; p += cpp_token_size(p)) {
		size_t size = cpp_token_size(p);

		if (lex_name_size(p) > 0)
			cpp_put(&named, "0L", 2);
		else
			cpp_put(&named, p, size);
		if (isdigit((unsigned char)*p) && memchr(p, 'l', size) == NULL &&
		    memchr(p, 'L', size) == NULL)
			cpp_put(&named, "L", 1);
	}
	buffer_add(&named, "", 1);
	lex_open((char *)named.data, at);
	check_in_if = true;
	value = parse_constant("#if", "D_SYNTAX") != 0;
	check_in_if = false;
	if (lex_peek()->kind != TOKEN_END)
		lex_expected("the end of the line");
	return value;
}

/* ---- lines ---- */

/* The next line, without its newline, comments and line breaks; NULL: the end. */
static char *
read_line(void)
{
	struct buffer b = {0};
	uint32_t lines = 1;

	if (*in.pos == '\0')
		return NULL;
	while (*in.pos != '\0' && *in.pos != '\n') {
		size_t size = 1;
		char c = *in.pos;

		if (c == '\\' && in.pos[1] == '\n') {
			in.pos += 2;
			lines++;
			continue;
		}
		if (c == '/' && in.pos[1] == '/') {
			in.pos += strcspn(in.pos, "\n");
			continue;
		}
		if (c == '/' && in.pos[1] == '*') {
			const char *end = strstr(in.pos + 2, "*/");

			if (end == NULL)
				cpp_fail("found no end of this comment, expected */", "");
			for (; in.pos < end; in.pos++)
				lines += *in.pos == '\n';
			in.pos = end + 2;
			cpp_put(&b, " ", 1);
			continue;
		}
		if (c == '"' || c == '\'') {
			while (in.pos[size] != '\0' && in.pos[size] != '\n' && in.pos[size] != c)
				size += in.pos[size] == '\\' && in.pos[size + 1] != '\0' &&
						in.pos[size + 1] != '\n'
					    ? 2
					    : 1;
			size += in.pos[size] == c;
		}
		cpp_put(&b, in.pos, size);
		in.pos += size;
	}
	in.pos += *in.pos == '\n';
	in.line += lines;
	buffer_add(&b, "", 1);
	return (char *)b.data;
}

static void
put_marker(void)
{
	const char *marker = dt_format("# %u \"%s\"\n", in.line, in.file);

	cpp_put(&out, marker, strlen(marker));
}

static void read_file(const char *file, const char *text);

/* Finds "x" beside the file that includes it, then, as <x>, in the folders of -I. */
static void
include(const char *name)
{
	char close = *name == '<' ? '>' : '"', *path;
	const char *end = *name != '\0' ? strchr(name + 1, close) : NULL, *slash, *text = NULL;
	struct input outer = in;

	if ((*name != '<' && *name != '"') || end == NULL)
		cpp_fail("#include: expected \"FILE\" or <FILE>: ", name);
	path = dt_strndup(name + 1, (size_t)(end - name - 1));
	name = path;
	slash = strrchr(in.file, '/');
	if (close == '"' || *name == '/') {
		if (*name != '/' && slash != NULL)
			path = dt_format("%.*s/%s", (int)(slash - in.file), in.file, name);
		text = file_read_text(path);
	}
	for (unsigned i = 0; text == NULL && *name != '/' && i < cpp_options.folder_count; i++) {
		path = dt_format("%s/%s", cpp_options.folders[i], name);
		text = file_read_text(path);
	}
	if (text == NULL)
		cpp_fail("#include: there is no such file: ", name);
	if (cpp_options.say_files)
		fprintf(stderr, "%s\n", path);
	if (in.depth == MAX_DEPTH)
		cpp_fail("#include: files include each other too deeply: ", path);
	read_file(path, text);
	in = outer;
	put_marker();
}

/* Of each #if that is open: is its text taken; was any of its branches; was there an #else? */
struct branch {
	bool taken, done, last;
};

/* Does a directive about branches. False: it is another one. */
static bool
branch(const char *word, const char *rest, struct branch *stack, unsigned *depth)
{
	struct branch *b = &stack[*depth];
	bool outer = *depth == 0 || stack[*depth - 1].taken;

	if (strcmp(word, "if") == 0 || strcmp(word, "ifdef") == 0 || strcmp(word, "ifndef") == 0) {
		size_t size = lex_name_size(rest);

		if (++*depth == MAX_DEPTH)
			cpp_fail("#if: more than 32 are nested", "");
		b++;
		*b = (struct branch){0};
		if (stack[*depth - 1].taken && word[2] != '\0' && size == 0)
			cpp_fail("#ifdef: expected a name: ", rest);
		if (stack[*depth - 1].taken)
			b->taken = word[2] == '\0'
				       ? condition(rest)
				       : (cpp_is_defined(rest, size)) == (word[2] == 'd');
		b->done = b->taken;
		return true;
	}
	if (strcmp(word, "elif") != 0 && strcmp(word, "else") != 0 && strcmp(word, "endif") != 0)
		return false;
	if (*depth == 0)
		cpp_fail("found no #if before #", word);
	if (word[1] == 'n') {
		--*depth;
		return true;
	}
	if (b->last)
		cpp_fail("found #else before #", word);
	b->last = word[2] == 's';
	b->taken = outer && !b->done && (b->last || condition(rest));
	b->done |= b->taken;
	return true;
}

static void
directive(char *line, struct branch *stack, unsigned *depth)
{
	char *word = (char *)cpp_skip_blanks(cpp_skip_blanks(line) + 1);
	size_t size = lex_name_size(word);
	char *rest = cpp_trimmed(word + size, strlen(word + size));

	word = dt_strndup(word, size);
	if (branch(word, rest, stack, depth) || !stack[*depth].taken)
		return;
	if (strcmp(word, "define") == 0) {
		cpp_define(rest);
	} else if (strcmp(word, "undef") == 0) {
		cpp_undefine(rest);
	} else if (strcmp(word, "include") == 0) {
		include(*rest == '<' || *rest == '"' ? rest : cpp_expanded(rest));
	} else if (size > 0) { /* #pragma, #error and so on: the compiler's */
		cpp_put(&out, line, strlen(line));
	}
}

static void
read_file(const char *file, const char *text)
{
	struct branch stack[MAX_DEPTH + 1] = {{.taken = true}};
	unsigned depth = 0;
	char *line;

	in = (struct input){file, text, 1, in.depth + 1};
	if (text[0] == '#' && text[1] == '!')
		in.pos += strcspn(text, "\n");
	put_marker();
	for (;;) {
		uint32_t first = in.line, after;
		const char *rest;

		line = read_line();
		if (line == NULL)
			break;
		after = in.line;
		in.line = first;
		if (*cpp_skip_blanks(line) == '#') {
			directive(line, stack, &depth);
		} else if (stack[depth].taken) {
			size_t start = out.size;

			/* The arguments of a macro may go on in the next lines. */
			for (;;) {
				const char *next = in.pos + strspn(in.pos, " \t\r\n\f\v");
				char *more;

				rest = cpp_expand(&out, line, *next == '(');
				if (rest == NULL)
					break;
				in.line = after;
				more = *cpp_skip_blanks(in.pos) != '#' ? read_line() : NULL;
				after = in.line;
				in.line = first;
				out.size = start;
				if (more == NULL)
					cpp_fail("found no end of a macro's arguments: ", rest);
				line = dt_format("%s\n%s", line, more);
			}
		}
		in.line = after;
		cpp_put(&out, "\n", 1);
		if (after != first + 1)
			put_marker();
	}
	if (depth != 0)
		cpp_fail("found the end of the file, expected #endif", "");
}

const char *
cpp_run(const char *file, const char *text)
{
	static const char *const own[] = {"__kestrel__ 1", "__SUNW_D 1", "__SUNW_D_64 1",
					  "__SUNW_D_VERSION 0x01000000"};

	cpp_macros_init();
	out = (struct buffer){0};
	in = (struct input){.file = file};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		cpp_define(own[i]);
	/* As in the guide, 1 says that only the standard's names are taken. */
	if (cpp_options.stdc != 's')
		cpp_define(cpp_options.stdc == 'c' ? "__STDC__ 1" : "__STDC__ 0");
	for (unsigned i = 0; i < cpp_options.macro_count; i++) {
		const char *m = cpp_options.macros[i], *equals = strchr(m + 1, '=');

		if (*m == 'U')
			cpp_undefine(m + 1);
		else if (equals == NULL)
			cpp_define(dt_format("%s 1", m + 1));
		else
			cpp_define(dt_format("%.*s %s", (int)(equals - m - 1), m + 1, equals + 1));
	}
	read_file(file, text);
	buffer_add(&out, "", 1);
	return (char *)out.data;
}
