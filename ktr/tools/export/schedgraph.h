/*
 * schedgraph.h - what the files of the schedgraph format share: the parts of a KTRGRAPH
 * line, and the table of sources. Host only.
 *
 * A source is what schedgraph.py draws in one row: all lines with the same group and id.
 */
#pragma once

#include "ktr/decode.h"

#define SCHEDGRAPH_TEXT 8192u /* bytes of a line, with the NUL */

/* schedgraph_line.c */

/** The parts of a line. The pointers point into its text. */
struct schedgraph_parts {
	const char *group, *id, *type, *value, *attributes;
	int group_length, id_length;
};

/** Puts an event's text into SCHEDGRAPH_TEXT bytes, with %s parameters cleaned as below. */
void schedgraph_event_text(const struct ktr_decode_event *e, char *text);
#define SCHEDGRAPH_CLEAN (4 * KTR_WIRE_STRING_MAX + 1) /* a byte may become \xNN */
/**
 * Copies a text into SCHEDGRAPH_CLEAN bytes, and replaces what a quoted text of schedgraph.py
 * cannot have: quotes, commas, control characters, and bytes that are not UTF-8. Returns buf.
 */
const char *schedgraph_clean(const char *text, char *buf);
/** Finds the parts of a line. False: schedgraph.py can neither read nor show this line. */
bool schedgraph_parts_find(const char *text, struct schedgraph_parts *p);
/** The text after `word`; NULL: the text is NULL, or does not begin with that word. */
const char *schedgraph_after(const char *text, const char *word);
/** Where an attribute ends: at the next ", " outside of quotes, or at the end of the text. */
const char *schedgraph_attribute_end(const char *p);
/** Is the attribute a linkedto? *id becomes the id in it; NULL: a quote is missing. */
bool schedgraph_attribute_is_link(const char *a, const char **id, int *length);

/* schedgraph_source.c */

#define SCHEDGRAPH_NEVER  0u /* the fact that is false */
#define SCHEDGRAPH_ALWAYS 1u /* the fact that is true */

enum schedgraph_kind { SCHEDGRAPH_GROUP, SCHEDGRAPH_SOURCE, SCHEDGRAPH_ID };

/** A source, a group of counters, or an id that a linkedto attribute can name. */
struct schedgraph_name {
	int64_t tid; /* of the thread that the id names; -1: it names none */
	enum schedgraph_kind kind;
	/*
	 * The fact that it is in the output. For an ID: that the first source with this id is. For
	 * a group of counters and its sources: that a counter of the group is ever above 0.
	 */
	uint32_t shown;
	uint32_t states; /* of a SOURCE that begins with a point: the fact that it has states */
	bool has_row, has_state; /* of a SOURCE: a line of it came; a state of it came */
	bool awaited;            /* of an ID: a line has linked to it, but no source has it yet */
	char text[];
};

/**
 * Names, and facts about them. A fact is named by its number. It is false until it is set: to
 * SCHEDGRAPH_ALWAYS, or to another fact, which it then follows.
 */
struct schedgraph_sources {
	void *names;
	uint32_t *facts; /* facts[0] is the first after SCHEDGRAPH_ALWAYS */
	uint32_t fact_count;
	size_t fact_room;
};

/** Finds or makes the source of a line. Valid until its thread is forgotten. NULL: no memory. */
struct schedgraph_name *schedgraph_source_get(struct schedgraph_sources *s,
					      const struct schedgraph_parts *p);
/** The fact that a source with that id is in the output; SCHEDGRAPH_NEVER: no memory. */
uint32_t schedgraph_link_get(struct schedgraph_sources *s, const char *id, int length);
/** Forgets the names of a thread. Its facts stay. */
void schedgraph_thread_forget(struct schedgraph_sources *s, uint32_t tid);
/** A new fact, which is false; SCHEDGRAPH_NEVER: no memory. */
uint32_t schedgraph_fact_new(struct schedgraph_sources *s);
/** Makes a fact follow another one. NEVER and ALWAYS do not change. */
void schedgraph_fact_set(struct schedgraph_sources *s, uint32_t fact, uint32_t other);
bool schedgraph_fact_is(const struct schedgraph_sources *s, uint32_t fact);
void schedgraph_sources_free(struct schedgraph_sources *s);
