/*
 * timeline.h - what the formats of timeline viewers share (chrome.c, fxt.c).
 * Host only.
 */
#pragma once

#include "ktr/tools/export/export.h"

#define TIMELINE_NAME 64u /* bytes, with the NUL */

/** What has begun on a track. What begins later ends earlier. */
enum timeline_kind { TIMELINE_SYSCALL, TIMELINE_INTERRUPT, TIMELINE_FUNCTION };

/** Their names, by number; viewers show them as categories. */
extern const char *const timeline_kinds[];

struct timeline_slice {
	enum timeline_kind kind;
	unsigned level;   /* of a function: activity_thread.depth when it had been called */
	const char *name; /* valid as the decoder's texts */
};

struct timeline_stack {
	struct timeline_slice *slices; /* outermost first */
	unsigned depth;
	size_t room;
};

/** False: no memory. */
bool timeline_push(struct timeline_stack *s, enum timeline_kind kind, unsigned level,
		   const char *name);
/** Index of the innermost slice of that kind; s->depth: there is none. */
unsigned timeline_find(const struct timeline_stack *s, enum timeline_kind kind);
/**
 * Returns the index of the outermost slice that is over: a system call that the thread has left, or
 * a function of a level above `level`. If none is, s->depth.
 */
unsigned timeline_over(const struct timeline_stack *s, const struct activity_thread *t,
		       unsigned level);
/** Frees the memory, and empties the stack. */
void timeline_free(struct timeline_stack *s);

/** What the events of a class are called. */
struct timeline_name {
	int param; /* the parameter that names each; -1: text does */
	char text[TIMELINE_NAME];
};

/**
 * The name of a class of events: `fork` of "fork: parent %d", that is, what comes before the first
 * ':' or conversion. For a KTRGRAPH line it is the state or point, or else the type. For the entry
 * or return of a function, and if there is no such text, it is the function's name.
 */
void timeline_name_find(struct timeline_name *name, const struct export_class *class);
/** The name of an event. buf has 32 bytes, as for export_string(). */
const char *timeline_event_name(const struct timeline_name *name, const struct ktr_decode_event *e,
				char *buf);
/** The class of events whose site is unknown; its parameters are called p1, p2, … */
const struct export_class *timeline_unknown_class(void);
