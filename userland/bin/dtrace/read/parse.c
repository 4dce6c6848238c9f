/*
 * parse.c - a program: clauses, with their probes, predicates and statements.
 */
#include <string.h>

#include "userland/bin/dtrace/read/read.h"

struct program dt_program;

void
parse_init(void)
{
	dt_program = (struct program){0};
	dt_program.last_clause = &dt_program.clauses;
	parse_reset();
}

static struct node *parse_statements(void);

/* A block, or one statement. */
static struct node *
parse_branch(void)
{
	struct node *n;

	if (lex_take('{'))
		return parse_statements();
	if (lex_take(';'))
		return NULL;
	n = parse_expression();
	lex_expect(';');
	struct node *statement = node_new(N_EXPRESSION, n->at);
	statement->left = n;
	return statement;
}

static struct node *
parse_if(struct place at)
{
	struct node *n = node_new(N_IF, at);

	parse_descend();
	lex_expect('(');
	n->left = parse_expression();
	lex_expect(')');
	n->right = lex_is_name("if") ? parse_if(lex_next().at) : parse_branch();
	if (lex_take_name("else"))
		n->third = lex_is_name("if") ? parse_if(lex_next().at) : parse_branch();
	parse_ascend();
	return n;
}

static void
refuse_loops(void)
{
	static const char *const words[] = {"for",    "while",  "do",    "goto",
					    "switch", "return", "break", "continue"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (lex_is_name(words[i]))
			dt_error(
			    lex_peek()->at, "D_SYNTAX",
			    "syntax error near \"%s\": D has if and else, but no loops, jumps or switches",
			    words[i]);
}

/* Reads up to the closing brace, and takes that. */
static struct node *
parse_statements(void)
{
	struct node *first = NULL, **last = &first;

	parse_descend();
	while (!lex_take('}')) {
		struct node *n;

		if (lex_take(';'))
			continue;
		refuse_loops();
		if (lex_is_name("if")) {
			n = parse_if(lex_next().at);
		} else if (lex_take('{')) {
			n = parse_statements();
		} else {
			n = node_new(N_EXPRESSION, lex_peek()->at);
			n->left = parse_expression();
			if (!lex_is('}'))
				lex_expect(';');
		}
		*last = n;
		while (*last != NULL)
			last = &(*last)->next;
	}
	parse_ascend();
	return first;
}

/*
 * Does `int*` begin a declaration, as in `int* p;`, and not the pattern of a probe? In a script a
 * clause has a predicate or a body; a declaration has neither, but a semicolon.
 */
static bool
is_pointer_declared(const struct token *t)
{
	const char *end = t->end + strcspn(t->end, ":;{/");

	while (end[0] == '/' && end[1] == '*' && strstr(end + 2, "*/") != NULL) {
		end = strstr(end + 2, "*/") + 2;
		end += strcspn(end, ":;{/");
	}
	return t->at.file != NULL && *t->end == '*' && *end == ';';
}

/* Is the text at the beginning of a clause a declaration? A probe's name may look like a type. */
static bool
at_declaration(void)
{
	const struct token *t = lex_peek();

	if (t->kind != TOKEN_NAME || !parse_begins_declaration(t->text))
		return false;
	if (strchr(":*?-", *t->end) != NULL && *t->end != '\0' && !is_pointer_declared(t))
		return false;
	t = lex_peek2();
	return t->kind == TOKEN_NAME || t->kind == TOKEN_EXTERN ||
	       (t->kind == TOKEN_OP && strchr("*{(;", (int)t->op) != NULL);
}

static struct probe_spec *
parse_probes(void)
{
	struct probe_spec *first = NULL, **last = &first;

	do {
		struct probe_spec *p = dt_alloc(sizeof(*p));

		p->text = lex_probe(&p->at);
		if (p->text == NULL)
			lex_expected("the name of a probe, or a declaration");
		*last = p;
		last = &p->next;
	} while (lex_take(','));
	return first;
}

static void
parse_clause(void)
{
	struct clause *c = dt_alloc(sizeof(*c));

	dt_region = "probe description";
	c->probes = parse_probes();
	c->at = c->probes->at;
	if (lex_take('/')) {
		dt_region = "predicate";
		c->predicate = parse_expression();
		if (!lex_take('/'))
			lex_expected("'/' at the end of the predicate");
	}
	dt_region = "action list";
	if (lex_take('{')) {
		c->has_body = true;
		c->body = parse_statements();
	} else {
		if (c->at.file != NULL && c->predicate == NULL)
			lex_expected("a predicate or '{' after the probe description");
		lex_take(';');
	}
	*dt_program.last_clause = c;
	dt_program.last_clause = &c->next;
	dt_region = NULL;
}

bool
parse_program(const char *text, struct place at)
{
	bool any = false;

	lex_open(text, at);
	for (; lex_peek()->kind != TOKEN_END; any = true) {
		if (lex_take(';'))
			continue;
		if (at_declaration())
			parse_declaration();
		else
			parse_clause();
	}
	return any;
}
