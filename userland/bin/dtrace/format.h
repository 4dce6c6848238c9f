/*
 * format.h - the conversions of printf() and printa(): reading a format. Printing: print_format.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "userland/bin/dtrace/dt.h"

struct conversion {
	const char *literal; /* text before the conversion */
	size_t literal_size;
	const char *start, *end; /* from % to after the letter */
	char letter;             /* '\0': only the literal text was left */
	bool agg;                /* %@ */
	bool left, plus, space, alternate, zero, thousands;
	bool star_width, star_precision;
	int width, precision; /* -1: none */
	unsigned size;        /* 0, or bytes by hh h l ll w */
};

/*
 * Reads the text before the next conversion, and that conversion; false at the end. What is wrong
 * with it: *why, or NULL.
 */
bool format_next(const char **format, struct conversion *c, const char **why);
/* What the argument of the conversion must be: i integer, s string, p pointer, k stack, x any. */
char format_takes(char letter);
/* Does the format print the arguments? Otherwise an error. `printa`: conversions with @ are for
 * values. */
void format_check(struct node *call, const char *format, struct node *args, bool printa);
