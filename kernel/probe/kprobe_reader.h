/* kprobe_reader.h - what reads a definition of a kprobe: between kprobe_parse.c and kprobe_arg.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/probe/kprobe_private.h"

/* What is being read, and where the error goes. */
struct reader {
	const char *text, *at;
	char *err;
	size_t errlen;
	int error; /* 0: -EINVAL */
	const struct kdefinition *d;
	const char *argument; /* being read */
	const char *closed;   /* where the innermost ( of an argument ends; NULL: there is none */
};

/* Says what is wrong at a place of the text. Is false. */
#define REFUSE(r, where, ...) \
	(kprobe_refuse((r)->err, (r)->errlen, (size_t)((where) - (r)->text), __VA_ARGS__) == 0)
/* The same, with another error than -EINVAL. */
#define REFUSE_AS(r, e, where, ...) ((r)->error = (e), REFUSE(r, where, __VA_ARGS__))

static inline bool
kread_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Takes a name of letters, digits, _ and the characters in `more`. `what` says in the message whose
 * name it is. False if there is none, or it is too long.
 */
bool kread_name(struct reader *r, const char *what, const char *more, char *to, size_t size);
/* Takes a number, if it is next: decimal, or hexadecimal after 0x. */
bool kread_value(struct reader *r, uint64_t *v);
/* Takes a number, which is expected. */
bool kread_number(struct reader *r, const char *what, uint64_t *v);
/* Takes + or -, and a number. */
bool kread_offset(struct reader *r, const char *what, int64_t *offset);
/* Takes [NAME=]FETCH[:TYPE]. */
bool kread_argument(struct reader *r, struct kdefinition *d);
