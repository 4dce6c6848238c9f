/*
 * gen.h - makes an image (kernel/abi/dif.h) of a program.
 */
#pragma once

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/dt.h"
#include "userland/bin/dtrace/record.h"

/* The register that is always 0. */
#define R0 0u

struct buffer {
	uint8_t *data;
	size_t size, room;
};

/* The image's parts while it is made. */
struct image {
	struct buffer clauses, code, actions, layouts, vars, aggs, strings;
	struct buffer rec_layouts, rec_actions, rec_fields, rec_aggs;
};
extern struct image gen_image;

/* Adds bytes (NULL: zeroes) to a buffer; returns where they are, until the next call. */
void *buffer_add(struct buffer *b, const void *data, size_t size);
/* The offset of a text in the string table; the same for the same text. */
uint32_t image_text(const char *text, size_t size);
/* Puts the image together. */
void *image_finish(const struct dif_options *options, const char *option_text, uint32_t flags);

/* The action that instructions are made for: 1, 2, … of the clause; 0: the predicate. */
extern uint16_t gen_action_number;
/* Adds an instruction; returns its number. */
size_t gen_insn(enum dif_op op, unsigned d, unsigned a, unsigned b, int32_t imm);
/* The value of an expression to register r; uses those from r on. */
void gen_value(struct node *n, unsigned r);
/* The same, converted to a type. */
void gen_value_as(struct node *n, struct type *type, unsigned r);
/* A list of jumps goes to one place, which gen_land() says. */
/* Jumps if the expression is true (`when`), or false. */
void gen_jump(struct node *n, unsigned r, bool when, struct buffer *jumps);
void gen_always(struct buffer *jumps);
void gen_land(struct buffer *jumps);
/* Pushes keys; uses registers from r on. */
void gen_keys(struct node *keys, unsigned r);
/* The number of the DIF variable. */
uint32_t gen_variable(struct variable *v);
/* Makes the clause's program. */
void gen_clause(struct clause *c);
/* Where the recording actions of a statement are kept: gen_clause.c. */
enum show gen_show(struct type *type);
enum show gen_show_symbol(const struct node *call);
/* Frames of a stack() or ustack(). */
unsigned gen_frames(const struct node *call);
/* Prints the program of the last clause: -S. */
void gen_list(const struct clause *c, size_t first);

/* ---- gen.c, gen_place.c ---- */

/* The register r, if there is one. */
unsigned gen_need(const struct node *n, unsigned r);
void gen_constant(uint64_t value, unsigned r);
bool gen_is_unsigned(struct type *type);
/* The value in r has one type, and gets another. */
void gen_convert(struct type *from, struct type *to, unsigned r);
/* The value, or address of the bytes, of a variable to r. */
void gen_load_variable(struct node *n, unsigned r);
/* The address of what is in memory: register r, and an offset to add. */
int32_t gen_place(struct node *n, unsigned r);
/* What is at an address, or its address if it has no value. */
void gen_load(struct type *type, unsigned r, unsigned address, int32_t offset);
void gen_member(struct node *n, unsigned r);
/* Stores register `value` in the place n; uses registers from r on. */
void gen_store(struct node *n, unsigned value, unsigned r);

/* ---- gen_record.c ---- */

/* The record that is open. */
struct gen_record {
	bool open;
	uint32_t number, size; /* of the layout */
	uint32_t flag;         /* of what is generated now: 1 + offset, or 0 */
};
extern struct gen_record gen_record;
/* Opens a record, unless one is open. */
void record_open(void);
/* Room in the open record. */
uint32_t record_reserve(struct node *n, uint32_t size, uint32_t align);
/* Another action of the record; its fields follow. */
void record_action(enum action action, const char *format);
void record_field(struct rec_field f);
/* Records a value, and says how it is shown. */
void record_value(struct node *n);
void record_print(struct node *n);
void record_tracemem(struct node *n);
/* func() and its kin. */
bool record_is_symbol(const struct node *n);
