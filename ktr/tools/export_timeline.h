/*
 * export_timeline.h - what the formats of timeline viewers share (export_chrome.c, export_fxt.c).
 * Host only.
 */
#pragma once

#include "ktr/tools/export.h"

#define TIMELINE_NAME 64u /* bytes, with the NUL */

/** What the events of a class are called. */
struct timeline_name {
	int param; /* the parameter that names each; -1: text does */
	char text[TIMELINE_NAME];
};

/**
 * `fork` of "fork: parent %d", what stands before the first ':' or conversion; of a KTRGRAPH line,
 * its state or point, else its type; else the function.
 */
void timeline_name_find(struct timeline_name *name, const struct export_class *class);
/** The name of an event. buf has 32 bytes, as for export_string(). */
const char *timeline_event_name(const struct timeline_name *name, const struct ktr_decode_event *e,
				char *buf);
/** What events of an unknown site have for a class: p1, p2, … */
const struct export_class *timeline_unknown_class(void);
