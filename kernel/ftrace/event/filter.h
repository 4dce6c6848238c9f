/*
 * filter.h - Linux's filters of events (Documentation/trace/events.rst, "Event filtering") as
 * programs for the engine (kernel/abi/dif.h).
 *
 *	EXPR   AND [|| AND]...
 *	AND    TERM [&& TERM]...
 *	TERM   ! TERM, ( EXPR ), FIELD OP VALUE
 *	FIELD  a parameter of the trace point; comm, cpu, common_pid, common_type
 *	OP     == != < <= > >= & of numbers; == != ~ of texts, where ~ takes a glob
 *	VALUE  a number; a text, which needs quotes if it has blanks or operators
 *
 * Pure: no locks; any context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"
#include "kernel/ftrace/event/program.h"
#include "ktr/param.h"

/* The event whose fields a filter names. */
struct filter_event {
	unsigned id; /* common_type */
	unsigned nparams;
	const struct ktr_param *params;
	bool is_call;  /* of a system call */
	unsigned call; /* … of this number */
};

/* What a field is. */
struct filter_field {
	enum { FIELD_PARAM, FIELD_BUILTIN, FIELD_CONSTANT } where;
	unsigned number; /* of the parameter, the built-in variable; or the constant */
	bool string, is_signed;
	unsigned bits;
};

/* Finds a field by its name. False: the event has none of that name. */
bool filter_field(const struct filter_event *event, const char *name, struct filter_field *field);
/* Appends code that leaves the field, or the address of its text, in register d. */
void filter_emit_field(struct program *to, unsigned d, const struct filter_field *f);

/* What is wrong, in Linux's words, and with which character. */
struct filter_error {
	const char *message;
	size_t at;
	int number; /* -errno; 0: -EINVAL */
};

/*
 * Appends code that leaves 1 or 0 in register 1; it uses registers 1 to 4. 0, or -EINVAL and why.
 */
int filter_compile(struct program *f, const struct filter_event *event, const char *text,
		   struct filter_error *error);
