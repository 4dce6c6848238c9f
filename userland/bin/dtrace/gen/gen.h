/*
 * gen.h - makes an image (kernel/abi/dif.h) of a checked program.
 *
 *	comes in:	a checked clause: gen_clause(); at the end the options: image_finish()
 *	goes out:	an image: for the kernel code, layouts, variables and aggregations; for the
 *			consumer the section of record.h, which says how records are printed
 *
 * In reading order: gen_clause.c makes a clause's program, gen.c the instructions of an expression,
 * gen_place.c those for variables and memory, gen_record.c what is recorded; image.c puts the parts
 * together, list.c prints them (-S).
 *
 * A program, and what it is made of:
 *
 *	predicate	jumps to the end if it is false		gen_jump()
 *	statement 1	instructions, in registers from %r1 on	gen_value(), gen_recording()
 *	statement 2	...
 *	ret 0
 *	ret 1		where the predicate jumps to
 *
 * Registers. %r0 is 0. gen_value(n, r) leaves the value of n in register r. It may use all
 * registers from r on, and changes none below: so they are a stack, as deep as the expression. For
 * `a + b`, a comes to r, b to r + 1, and `add r r r+1` is left. An expression that needs more
 * registers than there are is refused (D_NOREG).
 *
 * Values. A register holds 64 bits, and operators compute with 64, whatever C's types are: a type
 * says whether an operator is that for signed numbers. Memory, casts and assignments cut a value to
 * its type (gen_cut()), and loading extends it. A string, struct or array is its address; a
 * string constant's is that in the image.
 *
 * Truth. Conditions are not values but jumps: gen_jump(n, r, when, list) jumps if n is `when`, and
 * falls through otherwise. So && and || need no registers, and ! turns `when` round. Where a jump
 * goes is not known when it is made: it is kept in a list, and gen_land(list) says "here".
 *
 * Places. A variable of D has a number (gen_variable()), and keys, which are pushed before it is
 * loaded or stored (gen_keys()). All else that can be written or has an address is a register and
 * an offset, gen_place().
 *
 * Records. The first statement that records opens a record, and all of the clause go into it: one
 * firing's output stays together, and its room is reserved once. Each value gets its place in the
 * layout (record_reserve()), and a field for the consumer (record_field()). What an `if` may leave
 * out has a byte in the record which says that it is there.
 */
#pragma once

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/record.h"

/* The register that is always 0. */
#define R0 0u

/* The image's parts while it is made. */
struct image {
	struct buffer clauses, code, actions, layouts, vars, aggs, strings;
	struct buffer rec_layouts, rec_actions, rec_fields, rec_aggs;
};
extern struct image gen_image;

/* The offset of a text in the string table. Equal texts have one. */
uint32_t image_text(const char *text, size_t size);
/* Puts the image together. */
void *image_finish(const struct dif_options *options, const char *option_text, uint32_t flags);

/* The action that instructions are made for: 1, 2, … of the clause; 0: the predicate. */
extern uint16_t gen_action_number;
/* Adds an instruction; returns its number. */
size_t gen_insn(enum dif_op op, unsigned d, unsigned a, unsigned b, int32_t imm);
/* Computes an expression into register r; uses registers from r on. */
void gen_value(struct node *n, unsigned r);
/* As gen_value(), converted to a type. */
void gen_value_as(struct node *n, struct type *type, unsigned r);
/* The jumps of a list go to one place, which gen_land() says. */
/* Jumps if the expression is true (`when`), or false. */
void gen_jump(struct node *n, unsigned r, bool when, struct buffer *jumps);
void gen_always(struct buffer *jumps);
void gen_land(struct buffer *jumps);
/* Pushes keys, converted to the array's types (NULL: as they are); uses registers from r on. */
void gen_keys(struct node *keys, const struct member *types, unsigned r);
/* The number of the DIF variable. */
uint32_t gen_variable(struct variable *v);
/*
 * All that a firing reads of a time is one value: of timestamp, vtimestamp and walltimestamp. If
 * clauses that follow each other at the same probes would read one more than once, the first of
 * them keeps it in a variable; this finds these clauses.
 */
void gen_plan_times(struct clause *clauses);
/* The variable in which each time is kept. NULL: none is. */
extern struct variable *gen_time[TIMES];
/* Makes the clause's program. */
void gen_clause(struct clause *c);
/* Where the recording actions of a statement are kept: gen_clause.c. */
enum show gen_show(struct type *type);
/* Frames of a stack() or ustack(). */
unsigned gen_frames(const struct node *call);
/* Prints the program of the last clause: -S. */
void gen_list(const struct clause *c, size_t first);

/* ---- gen.c, gen_place.c ---- */

/* The register r, if there is one. */
unsigned gen_need(const struct node *n, unsigned r);
void gen_constant(uint64_t value, unsigned r);
bool gen_is_unsigned(struct type *type);
/* Cuts the value in r to an integer type, and extends it again. */
void gen_cut(struct type *type, unsigned r);
/* The value, or address of the bytes, of a variable to r. */
void gen_load_variable(struct node *n, unsigned r);
/* The address of what is in memory: register r, and an offset to add. */
int32_t gen_place(struct node *n, unsigned r);
/* Loads what is at an address; if that has no value, its address. */
void gen_load(struct type *type, unsigned r, unsigned address, int32_t offset);
void gen_member(struct node *n, unsigned r);
/* Stores register `value` in the place n; uses registers from r on. */
void gen_store(struct node *n, unsigned value, unsigned r);

/* ---- gen_record.c ---- */

/* The record that is open. */
struct gen_record {
	bool open;
	uint32_t number, size; /* of the layout */
	uint32_t flag;         /* flag of what is generated now: 1 + offset, or 0 */
};
extern struct gen_record gen_record;
/* Opens a record, unless one is open. */
void record_open(void);
/* Gives the strings of the open record their places, after all other things: the engine leaves out
 * what the last string does not need. Call it before another record, and at the clause's end. */
void record_place_strings(void);
/* Room in the open record. */
uint32_t record_reserve(struct node *n, uint32_t size, uint32_t align);
/* Begins another action of the record; its fields follow. */
void record_action(enum action action, const char *format);
void record_field(struct rec_field f);
/* Records a value, and says how it is shown. */
void record_value(struct node *n);
void record_print(struct node *n);
void record_tracemem(struct node *n);
/* How func() and its kin show an address: SHOW_SYM to SHOW_UADDR; 0 for other nodes. */
enum show record_symbol_of(const struct node *n);
