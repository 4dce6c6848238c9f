/*
 * export_fxt.h - what the files of the Fuchsia trace format share: export_fxt.c says what becomes
 * of events, export_fxt_known.c tells the reader of event classes and threads, and
 * export_fxt_record.c makes records of words, strings and arguments. Host only.
 *
 * Strings are registered while the table has room: a record for each goes out before the record
 * that is in the making. Others stand in the records. Text is UTF-8: what is not becomes U+FFFD.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "ktr/decode.h"
#include "ktr/map.h"
#include "ktr/tools/export_timeline.h"

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

/* ---- export_fxt_known.c -------------------------------------------------------------------------
 */

/** What is said of an event class; references to strings. */
struct fxt_class {
	struct timeline_name name;
	uint16_t name_ref, category, params[KTR_PARAM_MAX];
};

/** What the reader knows of a thread. */
struct fxt_thread {
	const struct activity_thread *t; /* NULL: none has this number */
	uint8_t ref;                     /* 0: none; stays with the number */
	bool call;                       /* in a system call, which has begun */
	bool runs;                       /* on that CPU, as was told; never what is idle */
	uint32_t cpu;
	unsigned interrupts;
	char name[ACTIVITY_NAME]; /* as it was told */
};

struct fxt {
	struct export_file file;
	const struct ktr_decode_header *header;
	struct export_classes known;
	struct fxt_class *classes; /* by the number of known */
	size_t class_room;
	struct fxt_thread *threads; /* by activity_thread.number */
	size_t thread_room, thread_count;
	uint64_t last_ns;
	uint16_t lost, on_cpu, exit_on_cpu, process, waker, incoming, outgoing, events, until,
	    value, syscall, interrupt;

	struct fxt_out out;
};

/**
 * An event's class, and *known, its parameters; both are made when they are new. Events whose site
 * is not known have a class together. NULL: no memory.
 */
const struct fxt_class *fxt_class_of(struct fxt *x, const struct ktr_decode_event *e,
				     const struct export_class **known);
/** Arguments of the record in the making: the event's parameters. */
void fxt_put_params(struct fxt *x, const struct ktr_decode_event *e, const struct fxt_class *c,
		    const struct export_class *known);
/** The thread, which the reader is told of when it is new or has another name. NULL: no memory. */
struct fxt_thread *fxt_thread_of(struct fxt *x, const struct activity_thread *t);
