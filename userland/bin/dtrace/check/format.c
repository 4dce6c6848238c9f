/*
 * format.c - reads and checks formats of printf() and printa().
 */
#include "userland/bin/dtrace/check/check.h"

#include <ctype.h>
#include <string.h>

static const char *
read_number(const char *p, int *value, bool *star)
{
	*star = *p == '*';
	if (*star)
		return p + 1;
	if (!isdigit((unsigned char)*p))
		return p;
	for (*value = 0; isdigit((unsigned char)*p); p++)
		*value = *value < 10000 ? *value * 10 + (*p - '0') : *value;
	return p;
}

static const char *
read_flags(const char *p, struct conversion *c)
{
	for (;; p++) {
		if (*p == '-')
			c->left = true;
		else if (*p == '+')
			c->plus = true;
		else if (*p == ' ')
			c->space = true;
		else if (*p == '#')
			c->alternate = true;
		else if (*p == '0')
			c->zero = true;
		else if (*p == '\'')
			c->thousands = true;
		else if (*p == '@')
			c->agg = true;
		else
			return p;
	}
}

bool
format_next(const char **format, struct conversion *c, const char **why)
{
	const char *p = *format;

	*why = NULL;
	if (*p == '\0')
		return false;
	*c = (struct conversion){.literal = p, .width = -1, .precision = -1};
	c->literal_size = strcspn(p, "%");
	p += c->literal_size;
	c->start = c->end = p;
	if (*p == '\0') {
		*format = p;
		return true;
	}
	p = read_flags(p + 1, c);
	p = read_number(p, &c->width, &c->star_width);
	if (*p == '.') {
		c->precision = 0;
		p = read_number(p + 1, &c->precision, &c->star_precision);
	}
	p = read_flags(p, c);
	for (; *p == 'h' || *p == 'l' || *p == 'w' || *p == 'z' || *p == 'j'; p++)
		c->size = *p == 'h' ? (c->size == 2 ? 1 : 2) : 8;
	c->letter = *p;
	if (*p == '\0')
		*why = "found the end of the format after %, expected a conversion";
	else if (strchr("eEfFgG", *p) != NULL)
		*why = "D has no floating point";
	else if (strchr("aAcCdDikopPsSTuUxXYI%", *p) == NULL)
		*why = "there is no such conversion";
	*format = c->end = p + (*p != '\0');
	return true;
}

char
format_takes(char letter)
{
	if (strchr("dDiouUxXcCTYP", letter) != NULL)
		return 'i';
	if (letter == 's' || letter == 'S')
		return 's';
	return letter == 'k' ? 'k' : letter == 'I' ? 'x' : 'p';
}

static bool
takes(char what, struct node *n)
{
	switch (what) {
	case 'i':
		return type_is_scalar(n->type) && !(type_base(n->type)->kind == T_POINTER);
	case 's':
		return check_is_string(n) ||
		       (type_base(n->type)->kind == T_ARRAY && type_is_stringlike(n->type));
	case 'k':
		return type_base(n->type)->kind == T_STACK;
	case 'p':
		return type_is_scalar(n->type) || type_base(n->type)->kind == T_ARRAY;
	default:
		return true;
	}
}

static void
check_conversion(struct node *call, const struct conversion *c, unsigned number, struct node *arg)
{
	static const char *const words[] = {['i'] = "an integer",
					    ['s'] = "a string (or use stringof)",
					    ['k'] = "a stack",
					    ['p'] = "a pointer or an integer"};
	char what = format_takes(c->letter);

	/* A pointer may be printed as a number in hexadecimal. */
	if (what == 'i' && strchr("xX", c->letter) != NULL)
		what = 'p';
	if (c->letter == 'A' && type_is_scalar(arg->type) && arg->kind != N_CALL) {
		struct node *copy = node_new(arg->kind, arg->at), *next = arg->next;

		*copy = *arg;
		copy->next = NULL;
		*arg = (struct node){
		    .kind = N_CALL, .at = copy->at, .text = "uaddr", .left = copy, .next = next};
		check_expression(arg);
	}
	if (takes(what, arg))
		return;
	dt_error(arg->at, "D_PRINTF_ARG_TYPE",
		 "%s( ): argument #%u is incompatible with conversion %.*s: found %s, expected %s",
		 call->text, number, (int)(c->end - c->start), c->start, type_text(arg->type),
		 words[(unsigned char)what]);
}

static void
check_star(struct node *call, struct node **arg, unsigned *number)
{
	if (*arg == NULL)
		dt_error(call->at, "D_PRINTF_ARG_PROTO", "%s( ): found no argument for *",
			 call->text);
	if (!type_is_integer((*arg)->type))
		dt_error((*arg)->at, "D_PRINTF_DYN_TYPE",
			 "%s( ): argument #%u: found %s, expected an integer for *", call->text,
			 *number, type_text((*arg)->type));
	*arg = (*arg)->next;
	++*number;
}

void
format_check(struct node *call, const char *format, struct node *args, bool printa)
{
	struct conversion c;
	const char *why;
	unsigned number = 2, wanted = 0;

	for (struct node *a = args; a != NULL; a = a->next)
		wanted++;
	while (format_next(&format, &c, &why)) {
		if (why != NULL)
			dt_error(call->at, "D_PRINTF_FMT", "%s( ): %.*s: %s", call->text,
				 (int)(c.end - c.start), c.start, why);
		if (c.letter == '\0' || c.letter == '%')
			continue;
		if (c.agg && !printa)
			dt_error(call->at, "D_PRINTF_AGG_CONV",
				 "%s( ): %.*s is for aggregations, by printa( )", call->text,
				 (int)(c.end - c.start), c.start);
		if (c.agg)
			continue;
		if (c.star_width)
			check_star(call, &args, &number);
		if (c.star_precision)
			check_star(call, &args, &number);
		if (args == NULL)
			dt_error(call->at, "D_PRINTF_ARG_PROTO",
				 "%s( ): found %u %s, expected one for %.*s", call->text, wanted,
				 printa ? "keys" : "arguments after the format",
				 (int)(c.end - c.start), c.start);
		check_conversion(call, &c, number++, args);
		args = args->next;
	}
	if (!printa && args != NULL)
		dt_error(args->at, "D_PRINTF_ARG_PROTO",
			 "%s( ): argument #%u has no conversion in the format", call->text, number);
}
