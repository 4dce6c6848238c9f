/*
 * print.c - prints values: integers, strings, bytes, symbols, stacks, structs.
 */
#include "userland/bin/dtrace/run/run.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/options.h"

struct view view;
FILE *print_out;

bool
view_open(const void *image)
{
	const struct dif_header *h = image;
	const char *base = image;
	const struct rec_header *r = (const struct rec_header *)(base + h->consumer.offset);

	if (h->consumer.count < sizeof(*r))
		return false;
	view.image = h;
	view.strings = base + h->strings.offset;
	view.layouts = (const struct rec_layout *)(r + 1);
	view.actions = (const struct rec_action *)(view.layouts + r->layouts);
	view.fields = (const struct rec_field *)(view.actions + r->actions);
	view.rec_aggs = (const struct rec_agg *)(view.fields + r->fields);
	view.aggs = (const struct dif_agg *)(base + h->aggs.offset);
	view.layout_count = r->layouts;
	view.agg_count = r->aggs;
	view.options = view.strings + r->options;
	return true;
}

uint64_t
print_integer(const struct rec_field *f, const uint8_t *data)
{
	uint64_t v = 0;
	unsigned unused;

	memcpy(&v, data, f->size < 8 ? f->size : 8);
	if (f->bits != 0) {
		v = v << (64 - f->bits - f->shift);
		return f->show == SHOW_INT ? (uint64_t)((int64_t)v >> (64 - f->bits))
					   : v >> (64 - f->bits);
	}
	unused = f->size < 8 ? 64 - 8 * f->size : 0;
	if (f->show == SHOW_INT || f->show == SHOW_ENUM)
		return (uint64_t)((int64_t)(v << unused) >> unused);
	return v;
}

/* What comes after the bytes that are known is zero. */
static void
print_padded(const uint8_t *data, size_t known, size_t size)
{
	fprintf(print_out, "\n           ");
	for (size_t i = 0; i < 16; i++)
		fprintf(print_out, "%3lx", (unsigned long)i);
	fprintf(print_out, "  0123456789abcdef\n");
	for (size_t at = 0; at < size; at += 16) {
		fprintf(print_out, "     %5lx: ", (unsigned long)at);
		for (size_t i = 0; i < 16; i++) {
			if (at + i < size)
				fprintf(print_out, "%02x ", at + i < known ? data[at + i] : 0);
			else
				fprintf(print_out, "   ");
		}
		fprintf(print_out, " ");
		for (size_t i = at; i < at + 16 && i < size; i++)
			fputc(i < known && data[i] >= ' ' && data[i] < 127 ? data[i] : '.',
			      print_out);
		fprintf(print_out, "\n");
	}
}

void
print_bytes(const uint8_t *data, size_t size)
{
	print_padded(data, size, size);
}

const char *
print_symbol(enum show show, uint64_t address, uint64_t program)
{
	static char text[256];
	uint64_t start = 0;
	bool user = show >= SHOW_USYM && show <= SHOW_UADDR;
	const char *object = "kernel", *name;

	name = user ? usymbol_at(program, address, &start, &object) : symbol_at(address, &start);
	if (name == NULL && (!user || object == NULL || address < 4096))
		snprintf(text, sizeof(text), "0x%lx", (unsigned long)address);
	else if (show == SHOW_MOD || show == SHOW_UMOD)
		snprintf(text, sizeof(text), "%s", object);
	else if (name == NULL)
		snprintf(text, sizeof(text), "%s`0x%lx", object, (unsigned long)address);
	else if (show == SHOW_FUNC || show == SHOW_UFUNC || show == SHOW_USYM || address == start)
		snprintf(text, sizeof(text), "%s`%s", object, name);
	else
		snprintf(text, sizeof(text), "%s`%s+0x%lx", object, name,
			 (unsigned long)(address - start));
	return text;
}

uint64_t
print_function_start(uint64_t address)
{
	uint64_t start;

	return symbol_at(address, &start) != NULL ? start : address;
}

void
print_stack(const struct rec_field *f, const void *data, unsigned indent)
{
	const uint64_t *frames = data;
	bool user = f->show == SHOW_USTACK;

	fprintf(print_out, "\n");
	for (size_t i = user; i < f->size / 8 && frames[i] != 0; i++)
		fprintf(print_out, "%*s%s\n", (int)indent, "",
			print_symbol(user ? SHOW_UADDR : SHOW_SYM, frames[i], frames[0]));
}

bool
print_is_user(const struct rec_field *f)
{
	return f->show >= SHOW_USYM && f->show <= SHOW_UADDR;
}

int
print_number_width(const struct rec_field *f)
{
	return f->size >= 8 ? 16 : f->size == 4 ? 8 : f->size == 2 ? 5 : 3;
}

void
print_number(const struct rec_field *f, const uint8_t *data, bool column)
{
	uint64_t v = print_integer(f, data);
	int width = column ? print_number_width(f) : 0;

	fputs(column ? " " : "", print_out);
	if (f->show == SHOW_INT || f->show == SHOW_ENUM)
		fprintf(print_out, "%*ld", width, (long)v);
	else
		fprintf(print_out, "%*lu", width, (unsigned long)v);
}

void
print_trace(const struct rec_field *f, const uint8_t *record)
{
	const uint8_t *data = record + f->offset;
	uint64_t words[2];

	switch (f->show) {
	case SHOW_INT:
	case SHOW_UINT:
	case SHOW_HEX:
	case SHOW_ENUM:
		print_number(f, data, !dt_options.quiet);
		break;
	case SHOW_STRING:
		if (dt_options.rawbytes)
			print_padded(data, strnlen((const char *)data, f->size), f->size);
		else if (dt_options.quiet)
			fprintf(print_out, "%s", (const char *)data);
		else
			fprintf(print_out, "  %-33s", (const char *)data);
		break;
	case SHOW_STACK:
	case SHOW_USTACK:
		print_stack(f, data, (unsigned)dt_options.stackindent);
		break;
	case SHOW_BYTES:
		print_bytes(data, f->size);
		break;
	default:
		memcpy(words, data, f->size < 16 ? 8 : 16);
		fprintf(print_out, "  %-50s",
			print_symbol((enum show)f->show, f->size == 16 ? words[1] : words[0],
				     words[0]));
	}
}

/* The name of an enumerator; false: none has the value. */
static bool
print_enumerator(const char *names, int64_t value)
{
	for (const char *p = names; *p != '\0'; p += strcspn(p, ",") + 1) {
		size_t size = strcspn(p, "=");

		if (strtol(p + size + 1, NULL, 10) == value) {
			fprintf(print_out, "%.*s", (int)size, p);
			return true;
		}
	}
	return false;
}

static void
print_elements(const struct rec_field *f, const uint8_t *data)
{
	uint32_t size = f->element != 0 ? f->element : 1;
	struct rec_field one = {.show = SHOW_HEX, .size = size};

	fprintf(print_out, "[ ");
	for (uint32_t at = 0; at + size <= f->size; at += size)
		fprintf(print_out, "%s%#lx", at > 0 ? ", " : "",
			(unsigned long)print_integer(&one, data + at));
	fprintf(print_out, " ]");
}

static void
print_member(const struct rec_field *f, const uint8_t *record, unsigned depth)
{
	const uint8_t *data = record + f->offset;
	struct rec_field whole = *f;

	switch (f->show) {
	case SHOW_ENUM:
		if (f->bits != 0 && strstr(view.strings + f->names, "=-") != NULL)
			whole.show = SHOW_INT;
		if (!print_enumerator(view.strings + f->names,
				      (int64_t)print_integer(&whole, data)))
			print_number(&whole, data, false);
		break;
	case SHOW_CHAR:
		fprintf(print_out,
			isprint(*data) ? "'%c'"
			: *data == 0   ? "'\\%o'"
				       : "'\\%03o'",
			*data);
		break;
	case SHOW_FUNC:
		if (print_integer(f, data) != 0) {
			fputs(print_symbol(SHOW_FUNC, print_integer(f, data), 0), print_out);
			break;
		}
		/* fall through */
	case SHOW_INT:
	case SHOW_UINT:
	case SHOW_HEX:
		whole.show = SHOW_HEX;
		fprintf(print_out, "%#lx", (unsigned long)print_integer(&whole, data));
		break;
	case SHOW_STRING:
		fprintf(print_out, f->element != 0 && depth > 0 ? "[ \"%.*s\" ]" : "\"%.*s\"",
			(int)f->size, (const char *)data);
		break;
	default:
		print_elements(f, data);
	}
}

/* Prints a field, and all that belongs to it. Returns the field after that. */
static const struct rec_field *
print_tree(const struct rec_field *f, const uint8_t *record, unsigned depth)
{
	const struct rec_field *next = f + 1;
	int indent = 4 * (int)depth;

	fprintf(print_out, "%*s", indent, "");
	if (f->type != 0) {
		const char *type = view.strings + f->type;
		bool pointer = *type != '\0' && type[strlen(type) - 1] == '*';

		fprintf(print_out, pointer && f->name != 0 ? "%s" : "%s ", type);
	}
	if (f->name != 0 && view.strings[f->name] != '\0') {
		fputs(view.strings + f->name, print_out);
		if (f->bits != 0 && f->show != SHOW_ENUM)
			fprintf(print_out, " :%u", f->bits);
		fputs(" = ", print_out);
	}
	if (f->show == SHOW_STRUCT) {
		fprintf(print_out, "{\n");
		while (next->show != SHOW_END)
			next = print_tree(next, record, depth + 1);
		fprintf(print_out, "%*s}\n", indent, "");
		return next + 1;
	}
	if (f->show == SHOW_ARRAY) {
		fprintf(print_out, "[\n");
		for (uint32_t at = 0; at < f->size; at += f->element)
			next = print_tree(f + 1, record + at, depth + 1);
		fprintf(print_out, "%*s]\n", indent, "");
		return next;
	}
	print_member(f, record, depth);
	fprintf(print_out, "\n");
	return next;
}

void
print_fields(const struct rec_field *f, const uint8_t *record)
{
	print_tree(f, record, 0);
}
