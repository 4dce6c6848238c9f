/*
 * print.h - prints what was traced.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/record.h"

/* The image whose records are printed, and its parts for the consumer. */
struct view {
	const struct dif_header *image;
	const char *strings;
	const struct rec_layout *layouts;
	const struct rec_action *actions;
	const struct rec_field *fields;
	const struct rec_agg *rec_aggs;
	const struct dif_agg *aggs;
	uint32_t layout_count, agg_count;
	const char *options;
};
extern struct view view;
/* Where output goes: standard output, -o, freopen(). */
extern FILE *print_out;

/* Looks at an image; false: it has no parts for this consumer. */
bool view_open(const void *image);

/* A value in a record: an integer, extended; a string's bytes. */
uint64_t print_integer(const struct rec_field *f, const uint8_t *data);
/* As trace() shows it. */
void print_trace(const struct rec_field *f, const uint8_t *data);
/* An address, as SHOW_SYM and its kin show it; for those of programs DIF_B_PROGRAM. */
const char *print_symbol(enum show show, uint64_t address, uint64_t program);
/* Where the kernel's function begins that contains the address; the address: there is none. */
uint64_t print_function_start(uint64_t address);
/* A stack: a line for each frame, up to the first 0. */
void print_stack(const uint64_t *frames, size_t count, unsigned indent);
void print_ustack(const uint64_t *frames, size_t count, unsigned indent);
/* Bytes in hexadecimal, and as characters. */
void print_bytes(const uint8_t *data, size_t size);
/* What print() shows: a value, and all that is in it. */
void print_fields(const struct rec_field *f, const uint8_t *record);

/* An aggregation's entry: its keys, in the order of pushing, and its value. */
struct agg_entry {
	struct agg_entry *next; /* of those with the same hash */
	uint32_t agg;
	uint16_t key_words, value_words;
	bool fresh; /* cleared: nothing was added since */
	uint64_t *keys, *values;
};

/* How many words a key takes, of that kind, at `key`. */
size_t agg_key_words(const struct rec_field *f, const uint64_t *key);
/* Prints by a format; fields begin with the first argument. `data` is the record's. */
void print_printf(const char *format, const struct rec_field *f, uint32_t count,
		  const uint8_t *data);
/* The same into a buffer; cuts. */
void print_to_text(char *to, size_t size, const char *format, const struct rec_field *f,
		   uint32_t count, const uint8_t *data);
/* One entry by printa()'s format; entries[n] NULL: the n-th aggregation has none with these keys.
 */
void print_printa(const char *format, struct agg_entry *const *entries, const uint32_t *aggs,
		  unsigned count);
/*
 * By -x agghist and -x aggpack: is each entry of the aggregation one row? The heading over keys of
 * `width` characters; the rest of a row.
 */
bool pack_wanted(uint32_t agg);
void pack_print_heading(uint32_t agg, int width);
void pack_print_value(uint32_t agg, const struct agg_entry *e);
/* A value as printa() without a format shows it. */
void print_agg_value(uint32_t agg, const struct agg_entry *e);
/* Its number: of averages, deviations and sums; what sorting compares. */
int64_t agg_number(uint32_t agg, const struct agg_entry *e);

/* ---- aggregate.c ---- */

/* Adds what the kernel's table has. */
void agg_add(const void *table, size_t size);
/* Calls f with each entry. */
void agg_each(uint32_t agg, void (*f)(const struct agg_entry *e));
void agg_clear(uint32_t agg);
/* Leaves `keep` entries, the largest, or for keep < 0 the smallest. */
void agg_trunc(uint32_t agg, int64_t keep);
void agg_normalize(uint32_t agg, uint64_t by);
uint64_t agg_normal(uint32_t agg);
/* Prints them; format NULL: as the guide's default. */
void agg_print(const char *format, const uint32_t *aggs, unsigned count);
/* Prints all that no printa() has printed. */
void agg_print_rest(void);
