/*
 * program.h - a program for the engine (kernel/abi/dif.h) that is being made: filters, triggers and
 * histograms append their code to one.
 *
 * Registers: filters use 1 to 4, expressions 1 to 7, values that stay have 8 to 15. Pure, but for
 * program_attach().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/dif.h"

#define PROGRAM_CODE    2048 /* instructions */
#define PROGRAM_STRINGS 2048 /* bytes of texts */
#define PROGRAM_ITEMS   48   /* variables; aggregations */

struct program {
	struct dif_insn code[PROGRAM_CODE];
	unsigned count;
	char strings[PROGRAM_STRINGS];
	unsigned strings_len; /* the first byte is 0: "" */
	struct dif_var vars[PROGRAM_ITEMS];
	struct dif_agg aggs[PROGRAM_ITEMS];
	unsigned nvars, naggs;
	uint64_t aggsize, dynvarsize; /* as in struct dif_options */
	bool waits;                   /* for dtrace_exchange(), once it is attached */
	bool texts;                   /* among the variables */
	bool full;                    /* there was no room for something, which is missing */
	unsigned fails; /* the last branch to the clause's end, + 1; each has the one before it */
};

/* Appends an instruction. */
void program_emit(struct program *p, unsigned op, unsigned d, unsigned a, unsigned b, int32_t imm);
/* Appends code that leaves a constant in register d. */
void program_constant(struct program *p, unsigned d, uint64_t v);
/* Appends a forward branch, and returns its number; program_land() makes the next instruction its
 * target. */
unsigned program_branch(struct program *p, unsigned op, unsigned a, unsigned b);
void program_land(struct program *p, unsigned branch);
/* Appends a branch, taken if `op` holds for registers a and b, that ends the clause as false. */
void program_fail(struct program *p, unsigned op, unsigned a, unsigned b);
/* Appends the two ends of a clause: the one for a program that has completed, and the one to
 * which its branches go. False if the program had no room for something. */
bool program_end(struct program *p);
/* Declares a variable, an aggregation: its number. */
unsigned program_var(struct program *p, enum dif_scope scope, uint64_t keys);
unsigned program_agg(struct program *p, enum dif_func func, uint64_t keys);
