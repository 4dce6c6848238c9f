/* export_schedgraph.h - the parts of export_schedgraph.c: what a KTRGRAPH line says, and what is
 * known of sources. Host only. */
#pragma once

#include "ktr/decode.h"

#define SCHEDGRAPH_TEXT 8192u /* bytes of a line, with the NUL */

/* ---- export_schedgraph_line.c ------------------------------------------------------------------
 */

/** The parts of a line, in its text. */
struct schedgraph_parts {
	const char *group, *id, *type, *value, *attributes;
	int group_length, id_length;
};

/** The text of an event, in SCHEDGRAPH_TEXT bytes; parameters are without what a quoted text cannot
 * have. */
void schedgraph_event_text(const struct ktr_decode_event *e, char *text);
#define SCHEDGRAPH_CLEAN (4 * KTR_WIRE_STRING_MAX + 1) /* a byte may become \xNN */
/** A text without what a quoted text cannot have, in buf, which has SCHEDGRAPH_CLEAN bytes. */
const char *schedgraph_clean(const char *text, char *buf);
/** False: no line that schedgraph.py can read and show. */
bool schedgraph_parts_find(const char *text, struct schedgraph_parts *p);
/** Behind `word`, when the text has it there; else NULL. */
const char *schedgraph_after(const char *text, const char *word);
/** Behind the quote that ends a quoted text, or NULL. */
const char *schedgraph_after_quote(const char *text, int *length);
/** The end of an attribute: the next ", " outside of quotes, or the text's. */
const char *schedgraph_attribute_end(const char *p);
/** Is it linkedto? And what it names, or NULL: its quote is missing. */
bool schedgraph_attribute_is_link(const char *a, const char **id, int *length);

/* ---- export_schedgraph_source.c ----------------------------------------------------------------
 */

#define SCHEDGRAPH_NEVER  0u
#define SCHEDGRAPH_ALWAYS 1u

enum schedgraph_kind { SCHEDGRAPH_GROUP, SCHEDGRAPH_SOURCE, SCHEDGRAPH_ID };

/** A source, or a name that facts are known of. */
struct schedgraph_name {
	int64_t tid; /* of the thread that it names; -1: none */
	enum schedgraph_kind kind;
	/* The fact that it is in the output: of an ID, that its first source is; of counters, and
	 * their group, that one of them is above 0. */
	uint32_t shown;
	uint32_t states;         /* SOURCE that begins with a point: the fact that it has states */
	bool has_row, has_state; /* SOURCE */
	bool awaited;            /* ID that no source has yet */
	char text[];
};

/**
 * Names, and facts about them. A fact has a number, and is false until it is known to be true; or
 * it is what another is, whose number it has then.
 */
struct schedgraph_sources {
	void *names;
	uint32_t *facts; /* from the first after SCHEDGRAPH_ALWAYS */
	uint32_t fact_count, fact_room;
};

/** The source of a line; NULL: no memory. Valid until its thread is forgotten. */
struct schedgraph_name *schedgraph_source_get(struct schedgraph_sources *s,
					      const struct schedgraph_parts *p);
/** The fact that a source with that id is in the output; SCHEDGRAPH_NEVER: no memory. */
uint32_t schedgraph_link_get(struct schedgraph_sources *s, const char *id, int length);
/** Forgets the names of a thread. Facts stay. */
void schedgraph_thread_forget(struct schedgraph_sources *s, uint32_t tid);
/** A new fact, which is false; SCHEDGRAPH_NEVER: no memory. */
uint32_t schedgraph_fact_new(struct schedgraph_sources *s);
/** Makes a fact what another is; those that are always known stay. */
void schedgraph_fact_set(struct schedgraph_sources *s, uint32_t fact, uint32_t other);
bool schedgraph_fact_is(const struct schedgraph_sources *s, uint32_t fact);
void schedgraph_sources_free(struct schedgraph_sources *s);
