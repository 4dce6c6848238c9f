/*
 * format.c - reads and checks formats of printf() and printa().
 */
#include "userland/bin/dtrace/check/check.h"

#include <string.h>

/* Conversions, and what their arguments must be. */
static const struct letters {
	const char *letters;
	enum { INTEGER, ADDRESS, STRING, STACK, ANY } takes;
	const char *expected;
} letters[] = {
    {"dDiouUcCTYP", INTEGER, "an integer"},
    {"xXpaA", ADDRESS, "a pointer or an integer"},
    {"sS", STRING, "a string (or use stringof)"},
    {"k", STACK, "a stack"},
    {"I", ANY, ""},
};

/* NULL: there is no such conversion. */
static const struct letters *
letters_of(char letter)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (strchr(letters[i].letters, letter) != NULL)
			return &letters[i];
	return NULL;
}

bool
format_next(const char **format, struct conversion *c, const char **why)
{
	const char *p = *format, *head;
	char text[32]; /* the conversion without what only D has */
	size_t n = 0;
	bool pointer = false; /* %?: as wide as a pointer */

	*why = NULL;
	if (*p == '\0')
		return false;
	*c = (struct conversion){.literal = p, .literal_size = strcspn(p, "%")};
	p += c->literal_size;
	c->start = c->end = p;
	if (*p == '\0') {
		*format = p;
		return true;
	}
	for (p++; *p != '\0' && strchr("-+ #0'@*.?123456789hlwzj", *p) != NULL; p++) {
		c->agg |= *p == '@';
		pointer |= *p == '?';
		if (strchr("@w?", *p) == NULL && n < sizeof(text) - 1)
			text[n++] = *p;
	}
	text[n] = '\0';
	head = text;
	fmt_scan_head(&head, &c->spec);
	if (pointer)
		c->spec.width = 16;
	c->letter = *p;
	if (*p == '\0')
		*why = "found the end of the format after %, expected a conversion";
	else if (strchr("eEfFgG", *p) != NULL)
		*why = "D has no floating point";
	else if (*head != '\0' || (*p == '%' ? n > 0 : letters_of(*p) == NULL))
		*why = "there is no such conversion";
	*format = c->end = p + (*p != '\0');
	return true;
}

static bool
is_accepted(const struct letters *l, struct node *n)
{
	switch (l->takes) {
	case INTEGER:
		return type_is_scalar(n->type) && type_base(n->type)->kind != T_POINTER;
	case ADDRESS:
		return check_is_scalar(n);
	case STRING:
		return type_is_text(n->type);
	case STACK:
		return type_base(n->type)->kind == T_STACK;
	default:
		return true;
	}
}

static void
check_conversion(struct node *call, const struct conversion *c, unsigned number, struct node *arg)
{
	const struct letters *l = letters_of(c->letter);

	if (c->letter == 'A' && type_is_scalar(arg->type) && arg->kind != N_CALL) {
		struct node *copy = node_new(arg->kind, arg->at), *next = arg->next;

		*copy = *arg;
		copy->next = NULL;
		*arg = (struct node){
		    .kind = N_CALL, .at = copy->at, .text = "uaddr", .left = copy, .next = next};
		check_expression(arg);
	}
	if (!is_accepted(l, arg))
		dt_error(arg->at, "D_PRINTF_ARG_TYPE",
			 "%s( ): argument #%u is incompatible with conversion %.*s: found %s, "
			 "expected %s",
			 call->text, number, (int)(c->end - c->start), c->start,
			 type_text(arg->type), l->expected);
}

static void
check_star(struct node *call, struct node **arg, unsigned *number)
{
	if (*arg == NULL)
		dt_error(call->at, "D_PRINTF_DYN_PROTO", "%s( ): found no argument for *",
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
			dt_error(call->at, "D_SYNTAX", "%s( ): %.*s: %s", call->text,
				 (int)(c.end - c.start), c.start, why);
		if (c.letter == '\0' || c.letter == '%')
			continue;
		if (c.agg && !printa)
			dt_error(call->at, "D_PRINTF_AGG_CONV",
				 "%s( ): %.*s is for aggregations, by printa( )", call->text,
				 (int)(c.end - c.start), c.start);
		if (c.agg)
			continue;
		if (c.spec.star_width)
			check_star(call, &args, &number);
		if (c.spec.star_precision)
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
		dt_error(args->at, "D_PRINTF_ARG_EXTRA",
			 "%s( ): argument #%u has no conversion in the format", call->text, number);
}
