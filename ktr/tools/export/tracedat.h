/*
 * tracedat.h - what the files of the trace.dat writer share. The head of a trace.dat lists
 * what its events have, so it is made last. Host only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/event_format.h"
#include "ktr/tools/export/export.h"

#define TRACEDAT_PAGE      4096u /* bytes */
#define TRACEDAT_PAGE_HEAD 16u   /* time and commit, 8 bytes each */
#define TRACEDAT_COMMON    KTR_FORMAT_COMMON

/* Ids of events: of a loss after a CPU's last event, and of the events of a class. */
#define TRACEDAT_LOST_ID       1u
#define TRACEDAT_ID(class_num) ((uint32_t)(class_num) + 2)

/** The names of threads, for the head: 12 bytes for each thread, and each text once. */
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

/** Adds a thread's name; nothing for an idle thread, or one without a name. */
void tracedat_comm_add(struct tracedat_comms *c, const struct activity_thread *t);
/** Writes the size of the list, then a line for each thread, by id, with its last name. */
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

/**
 * Writes everything before the table of pages. False: no memory. Write errors set f's error flag.
 */
bool tracedat_put_head(FILE *f, const struct tracedat_head *head);
