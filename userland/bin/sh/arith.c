/*
 * arith.c - $((…)): C's integer expressions over 64-bit signed numbers.
 *
 * By precedence climbing. Both sides of && || and ?: are read, but only the side that counts acts:
 * `skip` > 0 means read without acting. Overflow wraps.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/sh/sh.h"

struct arith {
	const char *p;
	const char *all; /* for messages */
	int skip;
	int depth;
	bool failed;
};

static long arith_assign(struct arith *a);

static long
fail(struct arith *a, const char *expected)
{
	if (!a->failed) {
		if (*a->p == '\0')
			sh_error("arithmetic: %s: found the end, expected %s", a->all, expected);
		else
			sh_error("arithmetic: %s: found \"%s\", expected %s", a->all, a->p,
				 expected);
	}
	a->failed = true;
	return 0;
}

static void
skip_space(struct arith *a)
{
	while (isspace((unsigned char)*a->p))
		a->p++;
}

static bool
accept(struct arith *a, const char *op)
{
	size_t len = strlen(op);

	skip_space(a);
	if (strncmp(a->p, op, len) != 0)
		return false;
	a->p += len;
	return true;
}

/* A variable's value; unset and empty are 0. */
static long
variable_value(struct arith *a, const char *name)
{
	const char *value = var_get(name);
	char *end;
	long n;

	if (value == NULL || *value == '\0')
		return 0;
	n = strtol(value, &end, 0);
	if (*end == '\0')
		return n;
	if (!a->failed && a->skip == 0) {
		sh_error("arithmetic: %s: found \"%s\", expected a number", name, value);
		a->failed = true;
	}
	return 0;
}

static long
arith_primary(struct arith *a)
{
	char *end;
	long n;

	skip_space(a);
	if (++a->depth > 200) {
		fail(a, "less nesting");
		return 0;
	}
	if (accept(a, "(")) {
		n = arith_assign(a);
		if (!accept(a, ")"))
			fail(a, "\")\"");
	} else if (isdigit((unsigned char)*a->p)) {
		errno = 0;
		n = (long)strtoull(a->p, &end, 0);
		if (errno != 0 || isalnum((unsigned char)*end))
			fail(a, "a 64-bit number");
		a->p = end;
	} else if (isalpha((unsigned char)*a->p) || *a->p == '_') {
		const char *start = a->p;

		while (isalnum((unsigned char)*a->p) || *a->p == '_')
			a->p++;
		n = variable_value(a, arena_strndup(start, (size_t)(a->p - start)));
	} else if (accept(a, "-")) {
		n = (long)(0 - (unsigned long)arith_primary(a));
	} else if (accept(a, "+")) {
		n = arith_primary(a);
	} else if (accept(a, "~")) {
		n = ~arith_primary(a);
	} else if (accept(a, "!")) {
		n = !arith_primary(a);
	} else {
		n = fail(a, "a number");
	}
	a->depth--;
	return n;
}

/* Longer operators stand before those they begin with. */
static const struct {
	const char *text;
	int precedence;
} operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<<", 8}, {">>", 8},
    {"<=", 7}, {">=", 7}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
    {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

static long
divide(struct arith *a, char op, long x, long y)
{
	if (a->skip > 0)
		return 0;
	if (y == 0) {
		if (!a->failed)
			sh_error("arithmetic: %s: division by zero", a->all);
		a->failed = true;
		return 0;
	}
	if (y == -1) /* the one quotient that overflows */
		return op == '/' ? (long)(0 - (unsigned long)x) : 0;
	return op == '/' ? x / y : x % y;
}

static long
apply(struct arith *a, const char *op, long x, long y)
{
	unsigned long ux = (unsigned long)x, uy = (unsigned long)y;

	switch (op[0]) {
	case '|':
		return op[1] == '|' ? x || y : x | y;
	case '&':
		return op[1] == '&' ? x && y : x & y;
	case '^':
		return x ^ y;
	case '=':
		return x == y;
	case '!':
		return x != y;
	case '<':
		return op[1] == '<' ? (long)(ux << (uy & 63)) : op[1] == '=' ? x <= y : x < y;
	case '>':
		return op[1] == '>' ? x >> (uy & 63) : op[1] == '=' ? x >= y : x > y;
	case '+':
		return (long)(ux + uy);
	case '-':
		return (long)(ux - uy);
	case '*':
		return (long)(ux * uy);
	default:
		return divide(a, op[0], x, y);
	}
}

/* Operators that bind at least as tightly as `least`. */
static long
arith_binary(struct arith *a, int least)
{
	long left = arith_primary(a);

	while (!a->failed) {
		size_t i, count = sizeof(operators) / sizeof(operators[0]);
		bool dead;
		long right;

		skip_space(a);
		for (i = 0; i < count; i++) {
			size_t len = strlen(operators[i].text);

			if (strncmp(a->p, operators[i].text, len) == 0)
				break;
		}
		if (i == count || operators[i].precedence < least)
			return left;
		a->p += strlen(operators[i].text);
		dead = (operators[i].precedence == 2 && left == 0) ||
		       (operators[i].precedence == 1 && left != 0);
		a->skip += dead;
		right = arith_binary(a, operators[i].precedence + 1);
		a->skip -= dead;
		left = apply(a, operators[i].text, left, right);
	}
	return left;
}

static long
arith_choice(struct arith *a)
{
	long n = arith_binary(a, 1), yes, no;

	if (a->failed || !accept(a, "?"))
		return n;
	a->skip += n == 0;
	yes = arith_assign(a);
	a->skip -= n == 0;
	if (!accept(a, ":"))
		return fail(a, "\":\"");
	a->skip += n != 0;
	no = arith_choice(a);
	a->skip -= n != 0;
	return n != 0 ? yes : no;
}

/* NAME = value, NAME += value, … or a plain expression. */
static long
arith_assign(struct arith *a)
{
	const char *start, *end, *op;
	char *name;
	long n;

	skip_space(a);
	for (end = start = a->p; isalnum((unsigned char)*end) || *end == '_'; end++)
		;
	for (op = end; isspace((unsigned char)*op); op++)
		;
	if (!var_is_name(start, (size_t)(end - start)) ||
	    !((op[0] == '=' && op[1] != '=') ||
	      (op[0] != '\0' && op[1] == '=' && strchr("+-*/%&|^", op[0]) != NULL)))
		return arith_choice(a);
	name = arena_strndup(start, (size_t)(end - start));
	a->p = op + (op[0] == '=' ? 1 : 2);
	n = arith_assign(a);
	if (op[0] != '=' && !a->failed) {
		char text[2] = {op[0], '\0'};

		n = apply(a, text, variable_value(a, name), n);
	}
	if (a->skip == 0 && !a->failed) {
		char value[24];

		snprintf(value, sizeof(value), "%ld", n);
		var_set(name, value);
	}
	return n;
}

bool
arith_evaluate(const char *text, long *value)
{
	struct arith a = {.p = text, .all = text};

	skip_space(&a);
	*value = *a.p != '\0' ? arith_assign(&a) : 0;
	skip_space(&a);
	if (!a.failed && *a.p != '\0')
		fail(&a, "an operator");
	return !a.failed;
}
