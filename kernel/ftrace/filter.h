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
#include "ktr/param.h"

#define FILTER_CODE    256  /* instructions of an expression */
#define FILTER_STRINGS 1024 /* bytes of its texts */

/* The event whose fields a filter names. */
struct filter_event {
	unsigned id; /* common_type */
	unsigned nparams;
	const struct ktr_param *params;
};

/* A program that is being made. */
struct filter {
	struct dif_insn code[FILTER_CODE];
	unsigned count;
	char strings[FILTER_STRINGS];
	unsigned strings_len;
};

/* What is wrong, in Linux's words, and with which character. */
struct filter_error {
	const char *message;
	size_t at;
};

/*
 * Appends code that leaves 1 or 0 in register 1; it uses registers 1 to 4. 0, or -EINVAL and why.
 */
int filter_compile(struct filter *f, const struct filter_event *event, const char *text,
		   struct filter_error *error);
/* Appends an instruction. False: there is no room. */
bool filter_emit(struct filter *f, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm);
