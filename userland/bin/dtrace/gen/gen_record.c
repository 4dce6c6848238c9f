/*
 * gen_record.c - records: what a clause leaves for the consumer, and how that is shown.
 */
#include <string.h>

#include "userland/bin/dtrace/gen/gen.h"
#include "userland/bin/dtrace/options.h"

struct gen_record gen_record;

/* Strings of the record, which have no place yet. */
static struct buffer strings;
struct string {
	struct node *n;
	size_t insn, field;
};

void
record_place_strings(void)
{
	struct string *s = (struct string *)strings.data;

	for (size_t i = 0; i < strings.size / sizeof(*s); i++) {
		struct rec_field *f = (struct rec_field *)gen_image.rec_fields.data + s[i].field;

		f->offset = record_reserve(s[i].n, f->size, 8);
		((struct dif_insn *)gen_image.code.data)[s[i].insn].imm =
		    DIF_PLACE(f->offset, f->size);
	}
	strings = (struct buffer){0};
}

void
record_open(void)
{
	uint32_t zero = 0;
	struct rec_layout l = {(uint32_t)(gen_image.rec_actions.size / sizeof(struct rec_action)),
			       0};

	if (gen_record.open)
		return;
	record_place_strings();
	buffer_add(&gen_image.layouts, &zero, sizeof(zero));
	buffer_add(&gen_image.rec_layouts, &l, sizeof(l));
	gen_record.open = true;
	gen_record.number = (uint32_t)(gen_image.layouts.size / sizeof(zero)) - 1;
	gen_record.size = 0;
	gen_insn(DIF_REC, 0, 0, 0, (int32_t)gen_record.number);
}

/* Room in the open record. */
uint32_t
record_reserve(struct node *n, uint32_t size, uint32_t align)
{
	uint32_t at = (gen_record.size + align - 1) / align * align;

	if (size > DIF_MAX_RECORD || at + size > DIF_MAX_RECORD)
		dt_error(n->at, "D_REC_SIZE", "the clause records more than %d bytes",
			 DIF_MAX_RECORD);
	gen_record.size = at + size;
	((uint32_t *)gen_image.layouts.data)[gen_record.number] = (gen_record.size + 7) / 8 * 8;
	return at;
}

void
record_action(enum action action, const char *format)
{
	struct rec_action a = {.action = action,
			       .flag = gen_record.flag,
			       .format = format != NULL ? image_text(format, strlen(format)) : 0,
			       .first = (uint32_t)(gen_image.rec_fields.size /
						   sizeof(struct rec_field))};

	((struct rec_layout *)gen_image.rec_layouts.data)[gen_record.number].count++;
	buffer_add(&gen_image.rec_actions, &a, sizeof(a));
}

void
record_field(struct rec_field f)
{
	struct rec_action *actions = (struct rec_action *)gen_image.rec_actions.data;

	buffer_add(&gen_image.rec_fields, &f, sizeof(f));
	actions[gen_image.rec_actions.size / sizeof(*actions) - 1].count++;
}

enum show
gen_show(struct type *type)
{
	type = type_base(type);
	switch (type->kind) {
	case T_INT:
		return type->is_signed ? SHOW_INT : SHOW_UINT;
	case T_ENUM:
		return SHOW_ENUM;
	case T_POINTER:
		return SHOW_HEX;
	case T_STRING:
		return SHOW_STRING;
	case T_ARRAY:
		return type_is_stringlike(type) ? SHOW_STRING : SHOW_BYTES;
	default:
		return SHOW_BYTES;
	}
}

enum show
record_symbol_of(const struct node *n)
{
	return n->kind == N_CALL ? (enum show)n->function->show : SHOW_INT;
}

unsigned
gen_frames(const struct node *call)
{
	bool user = call->type == type_ustack;
	unsigned frames = user ? dt_ustackframes : dt_stackframes;

	if (call->left != NULL)
		frames = call->left->value < DIF_MAX_FRAMES ? (unsigned)call->left->value
							    : DIF_MAX_FRAMES;
	if (frames > dt_options.maxframes)
		frames = (unsigned)dt_options.maxframes;
	return frames > 0 ? frames : 1;
}

/* ---- values into the record ---- */

static void
record_integer(struct node *n, struct rec_field f)
{
	static const uint8_t store[] = {
	    [1] = DIF_REC1, [2] = DIF_REC2, [4] = DIF_REC4, [8] = DIF_REC8};

	f.offset = record_reserve(n, f.size, f.size);
	gen_value(n, 1);
	gen_insn(store[f.size], 0, 1, 0, (int32_t)f.offset);
	record_field(f);
}

static void
record_symbol(struct node *n)
{
	bool user = check_is_user_symbol(n);
	struct rec_field f = {.show = record_symbol_of(n), .size = user ? 16 : 8};

	f.offset = record_reserve(n, f.size, 8);
	if (user) {
		gen_insn(DIF_BUILTIN, 1, 0, 0, DIF_B_PROGRAM);
		gen_insn(DIF_REC8, 0, 1, 0, (int32_t)f.offset);
	}
	gen_value(n, 1);
	gen_insn(DIF_REC8, 0, 1, 0, (int32_t)(f.offset + f.size - 8));
	record_field(f);
}

static void
record_stack(struct node *n)
{
	bool user = n->type == type_ustack;
	struct rec_field f = {.show = user ? SHOW_USTACK : SHOW_STACK,
			      .size = 8 * (gen_frames(n) + user)};

	f.offset = record_reserve(n, f.size, 8);
	gen_insn(user ? DIF_REC_USTACK : DIF_REC_STACK, 0, 0, 0, DIF_PLACE(f.offset, f.size));
	record_field(f);
}

static void
record_memory(struct node *n, struct rec_field f)
{
	struct string s = {.n = n, .field = gen_image.rec_fields.size / sizeof(f)};

	if (f.show != SHOW_STRING)
		f.offset = record_reserve(n, f.size, 8);
	gen_value(n, 1);
	s.insn = gen_insn(f.show == SHOW_STRING ? DIF_REC_STR : DIF_REC_MEM, 0, 1, 0,
			  DIF_PLACE(f.offset, f.size));
	if (f.show == SHOW_STRING)
		buffer_add(&strings, &s, sizeof(s));
	record_field(f);
}

void
record_value(struct node *n)
{
	struct type *type = type_base(n->type);
	struct rec_field f = {.show = gen_show(type), .size = type->size};

	if (type->kind == T_STACK) {
		record_stack(n);
	} else if (record_symbol_of(n) != SHOW_INT) {
		record_symbol(n);
	} else if (type_is_scalar(type)) {
		record_integer(n, f);
	} else {
		if (f.show == SHOW_STRING) /* an array of char has no NUL if it is full */
			f.size = type->kind == T_STRING || type->flexible ? dt_strsize + 1
									  : type->size + 1;
		if (f.size == 0 || f.size > 65535)
			dt_error(n->at, "D_TRACE_DYN", "%s cannot be recorded", type_text(n->type));
		record_memory(n, f);
	}
}

/* "RED=0,GREEN=1," */
static const char *
enum_names(struct type *type)
{
	const char *text = "";

	for (struct member *m = type_members(type); m != NULL; m = m->next)
		text = dt_format("%s%s=%ld,", text, m->name, (long)m->value);
	return text;
}

/* What print() needs to know of a value. */
static void
add_print_type(struct rec_field *f, struct type *type)
{
	struct type *base = type_base(type);
	const char *text = type_text(type);

	f->type = image_text(text, strlen(text));
	if (type_is_char(base))
		f->show = SHOW_CHAR;
	if (base->kind == T_POINTER && type_base(base->to)->kind == T_FUNCTION)
		f->show = SHOW_FUNC;
	if (base->kind == T_ENUM)
		f->names = image_text(enum_names(base), strlen(enum_names(base)));
	if (base->kind == T_ARRAY && type_is_scalar(base->to))
		f->element = (uint16_t)type_base(base->to)->size;
}

/* Is the type an array of structs, or of arrays? */
static bool
is_nested(struct type *type)
{
	return type->kind == T_ARRAY && type->size > 0 &&
	       (type_is_struct(type->to) || type_base(type->to)->kind == T_ARRAY);
}

/* Adds the fields of print(): with names, and those of structs in them. */
static void
add_print_fields(struct type *type, const char *name, uint32_t offset, const struct member *m)
{
	struct type *base = type_base(type);
	struct rec_field f = {.show = gen_show(base), .offset = offset, .size = base->size};

	f.name = image_text(name, strlen(name));
	add_print_type(&f, type);
	if (m != NULL) {
		f.show = m->bits != 0 ? gen_show(base) : f.show; /* a number, if it was a char */
		f.bits = m->bits;
		f.shift = m->shift;
		f.size = base->kind == T_STRING ? (uint32_t)m->value : f.size;
	}
	if (is_nested(base)) {
		f.show = SHOW_ARRAY;
		f.element = (uint16_t)type_base(base->to)->size;
		record_field(f);
		add_print_fields(base->to, "", offset, NULL);
		return;
	}
	if (type_is_struct(base)) {
		f.show = SHOW_STRUCT;
		record_field(f);
		for (struct member *i = type_members(base); i != NULL; i = i->next) {
			if (*i->name == '\0' && !type_is_struct(i->type))
				continue; /* bits without a name */
			add_print_fields(i->type, i->name, offset + i->offset, i);
		}
		f.show = SHOW_END;
	}
	record_field(f);
}

void
record_print(struct node *n)
{
	struct type *type = type_base(n->type);

	if (!type_is_struct(type) && !is_nested(type)) {
		record_value(n);
		add_print_type(
		    (struct rec_field *)(gen_image.rec_fields.data + gen_image.rec_fields.size) - 1,
		    n->type);
		return;
	}
	if (type->size == 0 || type->size > 65535)
		dt_error(n->at, "D_PRINT_SIZE", "print( ): %s has no size, or is too large",
			 type_text(type));
	uint32_t offset = record_reserve(n, type->size, 8);
	gen_value(n, 1);
	gen_insn(DIF_REC_MEM, 0, 1, 0, DIF_PLACE(offset, type->size));
	add_print_fields(type, "", offset, NULL);
}

void
record_tracemem(struct node *n)
{
	struct node *size = n->left->next;
	struct rec_field f = {.show = SHOW_BYTES, .size = (uint32_t)size->value};

	if (size->value == 0 || size->value > 65535)
		dt_error(size->at, "D_TRACEMEM_SIZE",
			 "tracemem( ): found size %ld, expected 1 to 65535", (long)size->value);
	f.offset = record_reserve(n, f.size, 8);
	gen_value(n->left, 1);
	if (size->next != NULL) {
		struct rec_field dynamic = {.show = SHOW_INT, .size = 8};

		dynamic.offset = record_reserve(n, 8, 8);
		gen_value(size->next, 2);
		gen_insn(DIF_REC8, 0, 2, 0, (int32_t)dynamic.offset);
		gen_insn(DIF_REC_MEM, 0, 1, 2, DIF_PLACE(f.offset, f.size));
		record_field(f);
		record_field(dynamic);
		return;
	}
	gen_insn(DIF_REC_MEM, 0, 1, 0, DIF_PLACE(f.offset, f.size));
	record_field(f);
}
