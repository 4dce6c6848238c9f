/*
 * kdb_expr.c - words, numbers and expressions that an operator types. The syntax is C's; a
 * recursive descent parser reads it, by a table of operators in which each row has one precedence.
 * No locks; memory is read by probes.
 */
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "ktr/word.h"

#define KDB_NAME_MAX 80
#define KDB_DEPTH    16 /* nested parentheses and unary operators, at most */

static bool
kdb_is_name(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.';
}

bool
kdb_number(const char *text, uint64_t *v)
{
	return ktr_number(text, strlen(text), 0, v) == KTR_NUMBER_OK;
}

char *
kdb_word(char **text)
{
	char *s = *text, *start;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s == '\0') {
		*text = s;
		return NULL;
	}
	start = s;
	while (*s != '\0' && *s != ' ' && *s != '\t')
		s++;
	if (*s != '\0')
		*s++ = '\0';
	*text = s;
	return start;
}

bool
kdb_more_words(const char **text)
{
	while (**text == ' ' || **text == '\t')
		(*text)++;
	return **text != '\0';
}

static bool kdb_binary(const char **text, unsigned level, unsigned depth, uint64_t *v);

/* A number, a symbol or a register. */
static bool
kdb_atom(const char **text, uint64_t *v)
{
	char name[KDB_NAME_MAX];
	bool reg = **text == '$';
	size_t n = 0;

	*text += reg;
	while (kdb_is_name((*text)[n]) && n + 1 < sizeof(name)) {
		name[n] = (*text)[n];
		n++;
	}
	name[n] = '\0';
	if (n == 0) {
		kdb_printf("\"%s\": expected a number, a symbol or a register like $pc\n", *text);
		return false;
	}
	*text += n;
	if (reg) {
		if (kdb_register(name, v))
			return true;
		kdb_printf("no register $%s; expected $pc, $sp, $fp, or one of show registers\n",
			   name);
		return false;
	}
	if (kdb_number(name, v) || (*v = ksym_address(name)) != 0 ||
	    ktr_number(name, strlen(name), 16, v) == KTR_NUMBER_OK)
		return true;
	kdb_printf("no symbol \"%s\", nor is it a number\n", name);
	return false;
}

static bool
kdb_unary(const char **text, unsigned depth, uint64_t *v)
{
	char op = **text;

	if (op == '(' || op == '*' || op == '-' || op == '~') {
		(*text)++;
		if (depth == KDB_DEPTH) {
			kdb_printf("\"%s\": nested more than %d deep\n", *text, KDB_DEPTH);
			return false;
		}
	}
	if (op == '(') {
		if (!kdb_binary(text, 0, depth + 1, v))
			return false;
		if (**text != ')') {
			kdb_printf("\"%s\": expected )\n", *text);
			return false;
		}
		(*text)++;
		return true;
	}
	if (op == '*' || op == '-' || op == '~') {
		uint64_t at;

		if (!kdb_unary(text, depth + 1, &at))
			return false;
		*v = op == '-' ? -at : ~at;
		if (op == '*' && !kdb_read(v, at, sizeof(*v))) {
			kdb_printf("%#lx is not readable\n", at);
			return false;
		}
		return true;
	}
	return kdb_atom(text, v);
}

static bool
kdb_apply(char op, uint64_t *v, uint64_t rhs)
{
	switch (op) {
	case '|':
		*v |= rhs;
		break;
	case '^':
		*v ^= rhs;
		break;
	case '&':
		*v &= rhs;
		break;
	case '<':
		*v = rhs < 64 ? *v << rhs : 0;
		break;
	case '>':
		*v = rhs < 64 ? *v >> rhs : 0;
		break;
	case '+':
		*v += rhs;
		break;
	case '-':
		*v -= rhs;
		break;
	case '*':
		*v *= rhs;
		break;
	default:
		if (rhs == 0) {
			kdb_printf("division by 0\n");
			return false;
		}
		*v = op == '/' ? *v / rhs : *v % rhs;
	}
	return true;
}

static bool
kdb_binary(const char **text, unsigned level, unsigned depth, uint64_t *v)
{
	static const char *const levels[] = {"|", "^", "&", "<>", "+-", "*/%"};
	uint64_t rhs;

	if (level == sizeof(levels) / sizeof(levels[0]))
		return kdb_unary(text, depth, v);
	if (!kdb_binary(text, level + 1, depth, v))
		return false;
	while (**text != '\0' && strchr(levels[level], **text) != NULL) {
		char op = **text;

		if ((op == '<' || op == '>') && (*text)[1] != op) {
			kdb_printf("\"%s\": expected << or >>\n", *text);
			return false;
		}
		*text += op == '<' || op == '>' ? 2 : 1;
		if (!kdb_binary(text, level + 1, depth, &rhs) || !kdb_apply(op, v, rhs))
			return false;
	}
	return true;
}

bool
kdb_expr(const char **text, uint64_t *v)
{
	kdb_more_words(text);
	if (!kdb_binary(text, 0, 0, v))
		return false;
	if (**text != '\0' && **text != ' ') {
		kdb_printf("\"%s\": expected an operator or a space\n", *text);
		return false;
	}
	return true;
}
