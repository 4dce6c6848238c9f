/*
 * export_fxt.h - the records of the Fuchsia trace format, for export_fxt.c: words, strings,
 * arguments. Host only.
 *
 * Strings are registered while the table has room: a record for each goes out before the record
 * that is in the making. Others stand in the records. Text is UTF-8: what is not becomes U+FFFD.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "ktr/decode.h"
#include "ktr/map.h"

#define FXT_RECORD_WORDS 4095u /* the size of a record has 12 bits */
#define FXT_STRINGS_MAX  32768u
#define FXT_SEEN_SLOTS   4096u
#define FXT_TEXT_MAX     (3 * KTR_WIRE_STRING_MAX + 1) /* a byte may become U+FFFD */
#define FXT_INLINE       0x8000u

enum fxt_record_type {
	FXT_RECORD_METADATA,
	FXT_RECORD_INITIALIZATION,
	FXT_RECORD_STRING,
	FXT_RECORD_THREAD,
	FXT_RECORD_EVENT,
	FXT_RECORD_KERNEL_OBJECT = 7,
	FXT_RECORD_SCHEDULING
};
enum fxt_event_type { FXT_EVENT_INSTANT, FXT_EVENT_COUNTER, FXT_EVENT_BEGIN, FXT_EVENT_END };
enum fxt_argument_type {
	FXT_ARG_INT32 = 1,
	FXT_ARG_UINT32,
	FXT_ARG_INT64,
	FXT_ARG_UINT64,
	FXT_ARG_STRING = 6,
	FXT_ARG_KOID = 8
};
enum fxt_object_type { FXT_OBJECT_PROCESS = 1, FXT_OBJECT_THREAD };

struct fxt_out {
	FILE *f;
	uint64_t words[FXT_RECORD_WORDS]; /* the record in the making */
	size_t used;
	char *strings[FXT_STRINGS_MAX]; /* by index; 0 is the empty one */
	uint32_t string_count;
	struct ktr_map by_hash; /* their indexes */
	struct {
		const char *text; /* by its address */
		uint16_t ref;
	} seen[FXT_SEEN_SLOTS];
};

/** A record: its head, which has no size yet, then words and texts, then its end. */
void fxt_record_begin(struct fxt_out *o, enum fxt_record_type type, uint64_t rest);
void fxt_record_word(struct fxt_out *o, uint64_t word);
void fxt_record_text(struct fxt_out *o, const char *text, size_t n);
void fxt_record_end(struct fxt_out *o);

/** A reference to a text; fxt_put_inline() follows, where the text may stand. */
uint16_t fxt_name_ref(struct fxt_out *o, const char *text);
/** The same of a value, of which there may be many: they leave room for names. */
uint16_t fxt_value_ref(struct fxt_out *o, const char *text);
void fxt_put_inline(struct fxt_out *o, uint16_t ref, const char *text);

/** Arguments of the record in the making, called by ref and name. */
void fxt_put_argument(struct fxt_out *o, enum fxt_argument_type type, uint16_t ref,
		      const char *name, uint64_t value);
/** … of the type that is just wide enough. */
void fxt_put_number(struct fxt_out *o, uint16_t ref, const char *name, uint64_t v, bool is_signed);
/** … parameter i, a string. */
void fxt_put_string(struct fxt_out *o, uint16_t ref, const char *name,
		    const struct ktr_decode_event *e, unsigned i);

void fxt_out_free(struct fxt_out *o);
