/*
 * export_tracedat.h - what the two halves of the trace.dat writer share: its head is made of what
 * the events had. Host only.
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

/** The last name of a thread: a node of a tree of tsearch(3). */
struct tracedat_thread {
	uint32_t tid;
	const char *name;
};

struct tracedat_head {
	const struct ktr_decode_header *header;
	const struct export_class *classes; /* an event's number is its place, from 1 */
	size_t class_count;
	void *threads; /* the tree */
	unsigned cpu_count;
	const uint64_t *lost; /* events, by CPU */
};

/**
 * Writes all before the table of pages. False: no memory. What could not be written, f's error
 * flag says.
 */
bool tracedat_put_head(FILE *f, const struct tracedat_head *head);
