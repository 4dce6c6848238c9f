/* export_schedgraph.h - what a KTRGRAPH line says, for export_schedgraph.c. Host only. */
#pragma once

#include "ktr/decode.h"

#define SCHEDGRAPH_TEXT 8192u /* bytes of a line, with the NUL */

/** The parts of a line, in its text. */
struct schedgraph_parts {
	const char *group, *id, *type, *value, *attributes;
	int group_length, id_length;
};

/** The text of an event, in SCHEDGRAPH_TEXT bytes; parameters are without what a quoted text cannot
 * have. */
void schedgraph_event_text(const struct ktr_decode_event *e, char *text);
/** False: no line that schedgraph.py can read and show. */
bool schedgraph_parts_find(const char *text, struct schedgraph_parts *p);
/** Behind `word`, when the text has it there; else NULL. */
const char *schedgraph_behind(const char *text, const char *word);
/** Behind the quote that ends a quoted text, or NULL. */
const char *schedgraph_behind_quote(const char *text, int *length);
/** The end of an attribute: the next ", " outside of quotes, or the text's. */
const char *schedgraph_attribute_end(const char *p);
