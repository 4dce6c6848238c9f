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
 * The name of a class of events: `fork` of "fork: parent %d", that is, what comes before the first
 * ':' or conversion. For a KTRGRAPH line it is the state or point, or else the type. If there is no
 * such text, it is the function's name.
 */
void timeline_name_find(struct timeline_name *name, const struct export_class *class);
/** The name of an event. buf has 32 bytes, as for export_string(). */
const char *timeline_event_name(const struct timeline_name *name, const struct ktr_decode_event *e,
				char *buf);
/** The class of events whose site is unknown; its parameters are called p1, p2, … */
const struct export_class *timeline_unknown_class(void);
