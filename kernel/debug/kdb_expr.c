/*
 * kdb_expr.c - words, numbers and expressions that an operator types. No locks; reads memory by
 * probes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/debug/ksyms.h"
#include "kernel/lib/string.h"

#define KDB_NAME_MAX 80

static bool
is_name(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.';
}

static int
digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static bool
kdb_parse(const char *text, unsigned base, uint64_t *v)
{
	uint64_t n = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		unsigned d = (unsigned)digit(*text);

		if (d >= base || n > (UINT64_MAX - d) / base)
			return false;
		n = n * base + d;
	}
	*v = n;
	return true;
}

bool
kdb_number(const char *text, uint64_t *v)
{
	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		return kdb_parse(text + 2, 16, v);
	return kdb_parse(text, 10, v);
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

static bool
kdb_register(const char *name, uint64_t *v)
{
	if (strcmp(name, "pc") == 0)
		*v = kdb.place.pc;
	else if (strcmp(name, "fp") == 0)
		*v = kdb.place.fp;
	else if (strcmp(name, "sp") == 0)
		*v = kdb.place.sp;
	else
		return false;
	return true;
}

static bool
kdb_term(const char **text, uint64_t *v)
{
	char name[KDB_NAME_MAX];
	bool reg = false;
	unsigned deref = 0;
	size_t n = 0;

	for (; **text == '*'; (*text)++)
		deref++;
	if (**text == '$') {
		reg = true;
		(*text)++;
	}
	while (is_name(**text) && n + 1 < sizeof(name))
		name[n++] = *(*text)++;
	name[n] = '\0';
	if (n == 0) {
		kdb_printf("\"%s\": expected a number, a symbol or $pc\n", *text);
		return false;
	}
	if (reg) {
		if (!kdb_register(name, v)) {
			kdb_printf("no register $%s; expected $pc, $sp or $fp\n", name);
			return false;
		}
	} else if (!kdb_number(name, v) && (*v = ksym_address(name)) == 0 &&
		   !kdb_parse(name, 16, v)) {
		kdb_printf("no symbol \"%s\", nor is it a number\n", name);
		return false;
	}
	for (; deref > 0; deref--) {
		uint64_t at = *v;

		if (!arch_probe_read(v, (const void *)at)) {
			kdb_printf("%#lx is not readable\n", (unsigned long)at);
			return false;
		}
	}
	return true;
}

bool
kdb_expr(const char **text, uint64_t *v)
{
	uint64_t rhs;

	while (**text == ' ')
		(*text)++;
	if (!kdb_term(text, v))
		return false;
	while (**text == '+' || **text == '-') {
		char op = *(*text)++;

		if (!kdb_term(text, &rhs))
			return false;
		*v = op == '+' ? *v + rhs : *v - rhs;
	}
	if (**text != '\0' && **text != ' ') {
		kdb_printf("\"%s\": expected + or - or a space\n", *text);
		return false;
	}
	return true;
}
