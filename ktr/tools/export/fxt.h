/*
 * fxt.h - what the files of the fxt format share. fxt.c chooses the records for each
 * event, fxt_known.c registers event classes and threads, and fxt_record.c builds
 * records from words, strings and arguments. Host only.
 *
 * A string is registered by a record of its own, which is written before the record that is being
 * built. When the table of strings is full, strings stand in the records that use them. Text is
 * UTF-8; bytes that are not become U+FFFD.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "ktr/decode.h"
#include "ktr/map.h"
#include "ktr/tools/export/timeline.h"

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
	uint64_t words[FXT_RECORD_WORDS]; /* the record that is being built */
	size_t used;
	char *strings[FXT_STRINGS_MAX]; /* strings registered, by index; 0: the empty one */
	uint32_t string_count;
	struct ktr_map by_hash; /* indexes of the strings by their hashes */
	struct {                /* a cache of references to values, by the address of the text */
		const char *text;
		uint16_t ref;
	} seen[FXT_SEEN_SLOTS];
};

/** Builds a record: its head, then words and texts. fxt_record_end() writes it. */
void fxt_record_begin(struct fxt_out *o, enum fxt_record_type type, uint64_t rest);
void fxt_record_word(struct fxt_out *o, uint64_t word);
void fxt_record_text(struct fxt_out *o, const char *text, size_t n);
void fxt_record_end(struct fxt_out *o);

/** A reference to a text, which is registered if there is room. */
uint16_t fxt_name_ref(struct fxt_out *o, const char *text);
/** A reference to a text that is a value. Values leave room in the table for names. */
uint16_t fxt_value_ref(struct fxt_out *o, const char *text);
/** Puts the text here if the reference says that it is not registered. */
void fxt_put_inline(struct fxt_out *o, uint16_t ref, const char *text);

/** Puts an argument into the record. ref and name are the argument's name. */
void fxt_put_argument(struct fxt_out *o, enum fxt_argument_type type, uint16_t ref,
		      const char *name, uint64_t value);
/** Puts a number into the record, with the narrowest type that holds it. */
void fxt_put_number(struct fxt_out *o, uint16_t ref, const char *name, uint64_t v, bool is_signed);
/** Puts the event's parameter i, a string, into the record. */
void fxt_put_string(struct fxt_out *o, uint16_t ref, const char *name,
		    const struct ktr_decode_event *e, unsigned i);

void fxt_out_free(struct fxt_out *o);

/* fxt_known.c */

/** An event class: its name, and references to its strings. */
struct fxt_class {
	struct timeline_name name;
	uint16_t name_ref, category, params[KTR_PARAM_MAX];
};

/** What has been written about a thread. */
struct fxt_thread {
	const struct activity_thread *t; /* NULL: none has this number */
	uint8_t ref;                     /* its index in the reader's table; 0: none */
	bool runs;                       /* on `cpu`; never set for an idle thread */
	uint32_t cpu;
	struct timeline_stack stack; /* durations that have begun */
	char name[ACTIVITY_NAME];
};

struct fxt {
	struct export_file file;
	const struct ktr_decode_header *header;
	struct export_classes known;
	struct fxt_class *classes; /* by their numbers in `known`, + 1; 0: sites not known */
	size_t class_room;
	struct fxt_thread *threads; /* by activity_thread.number */
	size_t thread_room, thread_count;
	uint64_t last_ns;
	/* references to names */
	uint16_t lost, on_cpu, exit_on_cpu, process, waker, incoming, outgoing, events, until,
	    value, kinds[3]; /* kinds: by enum timeline_kind */

	struct fxt_out out;
};

/**
 * Returns an event's class, which is made if it is new. *known becomes the same class with its
 * parameters. Events whose site is not known share one class. NULL if there is no memory.
 */
const struct fxt_class *fxt_class_of(struct fxt *x, const struct ktr_decode_event *e,
				     const struct export_class **known);
/** Puts the event's parameters into the record, as arguments. */
void fxt_put_params(struct fxt *x, const struct ktr_decode_event *e, const struct fxt_class *c,
		    const struct export_class *known);
/** A thread's entry. A thread that is new, or has a new name, is registered. NULL: no memory. */
struct fxt_thread *fxt_thread_of(struct fxt *x, const struct activity_thread *t);
