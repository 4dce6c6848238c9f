/*
 * export_tracedat.h - what the files of the trace.dat writer share. The head of a trace.dat lists
 * what its events have, so it is made last. Host only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/tools/export.h"

#define TRACEDAT_PAGE      4096u /* bytes */
#define TRACEDAT_PAGE_HEAD 16u   /* time and commit, 8 bytes each */
#define TRACEDAT_COMMON    8u    /* the fields that all events have: type, flags, count, pid */

/* Numbers of events: from the number of a class, and of what was lost after all events. */
#define TRACEDAT_LOST_ID       1u
#define TRACEDAT_ID(class_num) ((uint32_t)(class_num) + 2)

/** The names of threads, which the head tells: 12 bytes each, and each name once. */
struct tracedat_comms {
	struct tracedat_comm {
		uint32_t tid, order, name;
	} * all;
	size_t count, room;
	void *names; /* by their texts */
	const char **texts;
	size_t name_count, name_room;
	bool failed; /* no memory */
};

/** Of an idle thread, or one without a name, nothing. */
void tracedat_comm_add(struct tracedat_comms *c, const struct activity_thread *t);
/** A line each, by number, with the last name of each; the size before it. */
void tracedat_comms_put(FILE *f, struct tracedat_comms *c);
void tracedat_comms_free(struct tracedat_comms *c);

struct tracedat_head {
	const struct ktr_decode_header *header;
	struct tracedat_comms *comms;
	const struct export_class *classes;
	size_t class_count;
	unsigned cpu_count;
	const uint64_t *lost; /* events, by CPU */
};

/** Bytes of a field of Linux's in a record; of a string, where and how long it is. */
static inline size_t
tracedat_field_size(enum linux_type type)
{
	return type == LINUX_COMM16                        ? LINUX_COMM
	       : type == LINUX_INT || type == LINUX_STRING ? 4
							   : 8;
}

/**
 * Writes all before the table of pages. False: no memory. What could not be written, f's error
 * flag says.
 */
bool tracedat_put_head(FILE *f, const struct tracedat_head *head);
