/*
 * record.h - what the compiler tells the consumer of the records and aggregations of an image: the
 * image's section `consumer`. So a consumer needs nothing but the image, as after anonymous
 * tracing.
 *
 * Offsets of texts are those of the image's string table.
 */
#pragma once

#include <stdint.h>

/* How a value is shown. */
enum show {
	SHOW_INT, /* 1, 2, 4 or 8 bytes, signed */
	SHOW_UINT,
	SHOW_HEX, /* a pointer */
	SHOW_STRING,
	SHOW_BYTES,
	SHOW_STACK,
	SHOW_USTACK, /* DIF_B_PROGRAM, then the frames */
	SHOW_SYM,    /* an address of the kernel: module`function+offset */
	SHOW_FUNC,   /* module`function */
	SHOW_MOD,    /* module */
	SHOW_USYM,   /* the same of a program: DIF_B_PROGRAM, address */
	SHOW_UFUNC,
	SHOW_UMOD,
	SHOW_UADDR,
	SHOW_AGG,    /* no data: `offset` is an aggregation's number */
	SHOW_STRUCT, /* no data: the fields that follow are its members, up to SHOW_END */
	SHOW_END,
	SHOW_ARRAY, /* `size` bytes of what follows, each `element` bytes: a struct or an array */
	SHOW_ENUM,
	SHOW_CHAR, /* of print() alone */
};

struct rec_field {
	uint32_t show; /* enum show */
	uint32_t offset, size;
	uint32_t name;       /* text, of members and types */
	uint8_t bits, shift; /* of a bit-field: size is that of its unit */
	uint16_t element;    /* of an array that print() shows: bytes of an element */
	uint32_t type;       /* text; 0: none */
	uint32_t names;      /* text, of an enum that print() shows: NAME=VALUE, and so on */
};

struct rec_action {
	uint32_t action; /* enum action */
	uint32_t flag; /* 0: always; otherwise 1 + the offset of a byte that is 1 if it was done */
	uint32_t format;       /* text; 0: none */
	uint32_t first, count; /* fields */
	uint32_t reserved;
};

struct rec_layout {
	uint32_t first, count; /* actions */
};

struct rec_agg {
	uint32_t name;         /* text */
	uint32_t first, count; /* fields of the keys; offset and size are not used */
	uint32_t reserved;
};

/* The section begins with this; the arrays follow in this order. */
struct rec_header {
	uint32_t layouts, actions, fields, aggs;
	uint32_t options; /* text: NAME=VALUE, a line each: those of #pragma D option and -x */
	uint32_t reserved;
};
