/*
 * export.h - writers of other tools' formats: each is one file or a few, and one line of the table
 * in export.c. Host only, but for this header and graph.c.
 *
 * What comes in: each event with what it means (model/activity.h), losses, threads that are gone,
 * and, if a format asks for them, spans (model/span.h). ktrdump_export.c calls the format.
 * What goes out: one file, or a directory, that has a temporary name until it is complete.
 *
 *	events --> ktrdump_export.c --> a struct export_format --> temp.c --> a file
 *	                 |                chrome, ctf, folded, fxt, graph, html, schedgraph, svg
 *	              model/               tracedat
 *
 * In reading order: export.c (the table, files, classes of events), temp.c (names until complete);
 * folded.c, the shortest format; graph.c; timeline.c (what chrome and fxt share), chrome.c and
 * chrome_entry.c, fxt.c, fxt_known.c and fxt_record.c; ctf.c and ctf_head.c; schedgraph.c,
 * schedgraph_line.c and schedgraph_source.c; lane.c (bounded memory), svg.c and svg_*.c; html.c,
 * html_column.c, html_page.c, and the page's script in html/; tracedat.c, tracedat_head.c and
 * tracedat_comm.c. What Linux would call an event is in the folder above, in linux.c. One thread,
 * no locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ktr/decode.h"
#include "ktr/map.h"
#include "ktr/param.h"
#include "ktr/tools/export/temp.h"
#include "ktr/tools/linux.h"
#include "ktr/tools/model/activity.h"

struct dump_filter;   /* ktrdump.h */
struct span_ops;      /* model/span.h */
struct report_diff;   /* report/diff.h */
struct report_sample; /* report/report.h */
struct spans;
struct out;

struct export_options {
	const char *path; /* NULL or "-": standard output */
	const struct dump_filter *filter;
	unsigned width;                     /* of a picture, pixels; 0: the format's own */
	const struct activity_model *model; /* the model; it outlives the exporter, which may ask it
					       for threads at the end */
	const struct spans *spans;          /* it, too; NULL: the format has no span_ops */
	/* For a report (report/report.h): where it is written, which reports, how many rows are
	 * shown, jsonl, and the symbols. */
	struct out *out;
	const char *reports, *kernel;
	const char *function;  /* of a graph: from which on calls are shown, a glob; NULL: all */
	unsigned depth;        /* of a graph: how deep calls are shown; 0: all */
	const uint64_t *parts; /* how many parts of long data there are so far */
	unsigned rows;
	bool json;
	struct report_diff *diff; /* the diff of which the report is one side; NULL: none */
	/* Gets what the report is made of, in place of its tables; NULL: the tables do. */
	void (*sample)(void *arg, const struct report_sample *s);
	void *sample_arg;
	const int *status; /* DUMP_CLEAN: the trace has no damage so far */
	bool *empty;       /* becomes true when the report that was asked for has nothing to show */
	const char **no_calls; /* of a graph: becomes what is true of no call of `function` */
};

/** The thread that an event of Linux belongs to. A switch belongs to the thread that ran before. */
static inline const struct activity_thread *
export_linux_thread(const struct export_event *ev, const struct activity *a)
{
	return a->kind == ACTIVITY_SWITCH && a->other != NULL ? a->other : ev->thread;
}

/**
 * A format. It gets events and gaps in the order of time, those of one CPU in the order of their
 * numbers, all of one boot. A function that returns false puts a sentence into err that says what
 * failed; the sentence that is there at first says that memory ran out.
 */
struct export_format {
	const char *name; /* of --format */
	const char *what; /* one line of the help text */
	bool needs_path;  /* it needs a name: it is several files, or is written out of order */
	bool sees_all;    /* what the filter keeps out, too */
	bool whole;       /* it wants all threads and CPUs: the filter chooses times alone */
	bool lines;       /* it is text, for people: written to options->out. In the guest, too */
	bool plain; /* wants no model: events have no thread and no activities, gaps no threads */
	const struct span_ops *spans; /* are told all spans, with the same arg. NULL: none */
	/**
	 * Begins an export. The output has a temporary name until it is complete. NULL: it cannot
	 * be written.
	 */
	void *(*open)(const struct export_options *o, char *err, size_t errlen);
	/**
	 * Called once, before all events and gaps, even if none come. h stays valid. The next three
	 * may be NULL. The spans that an event ends come after it, and those of a gap after the
	 * gap.
	 */
	bool (*begin)(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen);
	bool (*event)(void *arg, const struct export_event *ev, char *err, size_t errlen);
	bool (*gap)(void *arg, const struct export_gap *gap, char *err, size_t errlen);
	/** A thread will not be seen again; its number may. May be NULL. False: no memory. */
	bool (*gone)(void *arg, const struct activity_thread *t);
	/**
	 * Ends the export and frees arg. When complete is true, the output gets its final name;
	 * else it is removed.
	 */
	bool (*close)(void *arg, bool complete, char *err, size_t errlen);
};
/** Begins the description of a format that wants events and gaps: its name, and its functions. */
#define EXPORT_FORMAT(format)                                                                     \
	.name = #format, .open = format##_open, .begin = format##_begin, .event = format##_event, \
	.gap = format##_gap, .close = format##_close

extern const struct export_format export_chrome;     /* chrome.c */
extern const struct export_format export_ctf;        /* ctf.c */
extern const struct export_format export_folded;     /* folded.c */
extern const struct export_format export_fxt;        /* fxt.c */
extern const struct export_format export_graph;      /* graph.c; not in the table: it is text */
extern const struct export_format export_html;       /* html.c */
extern const struct export_format export_report;     /* report/report.c; not of --format */
extern const struct export_format export_schedgraph; /* schedgraph.c */
extern const struct export_format export_svg;        /* svg.c */
extern const struct export_format export_tracedat;   /* tracedat.c */

/** NULL: no such format. */
const struct export_format *export_find(const char *name);
/** Format number n, from 0; NULL after the last. */
const struct export_format *export_nth(unsigned n);

/** Puts a sentence into err. Returns false, for writers to return. */
__attribute__((format(printf, 3, 4))) bool export_fail(char *err, size_t errlen, const char *fmt,
						       ...);

/** What an export of one file is written to. */
struct export_file {
	FILE *f;
	char *buffer;           /* the file's own: setvbuf() takes no size without one */
	char path[EXPORT_PATH]; /* "" for standard output */
	char temp[EXPORT_PATH]; /* the file's name until it is whole; "": it has none */
};

/** A nameless temporary file on the disk of the output. NULL: errno. */
FILE *export_file_scratch(const struct export_file *file);
/**
 * Allocates size bytes of zeros that begin with a struct export_file, and opens that file. Most
 * writers begin so. NULL: err says why.
 */
void *export_create(size_t size, const struct export_options *o, char *err, size_t errlen);
/** `PATH: why`, by errno. Returns false. */
bool export_file_failed(const struct export_file *file, char *err, size_t errlen);
/**
 * Closes the file, and gives it its final name if complete is true. False if the output was removed
 * instead: because not all could be written, and err says why; or because complete is false, and
 * err is not changed.
 */
bool export_file_close(struct export_file *file, bool complete, char *err, size_t errlen);

#define EXPORT_CLASSES 65536u

/** An event class: a site, or one of Linux's; numbered from 0 in the order of what came first. */
struct export_class {
	const struct ktr_decode_site *site; /* NULL: Linux's */
	const struct linux_class *of_linux; /* NULL: a site's */
	struct ktr_param params[KTR_PARAM_MAX];
};

struct export_classes {
	struct export_class *all;
	size_t count, room;
	uint32_t by_number[65536]; /* the class that a site number had last, + 1 */
	struct ktr_map of_linux;   /* the same by the address of one of Linux's */
};

/**
 * Returns the class of an event whose site is known; *is_new says whether it was made for this
 * event. NULL if there is no room. Valid until the next call. There are at most EXPORT_CLASSES.
 */
const struct export_class *export_class_of(struct export_classes *c,
					   const struct ktr_decode_event *e, size_t *number,
					   bool *is_new);
/** export_class_of() for a class of Linux's. */
const struct export_class *export_class_linux(struct export_classes *c,
					      const struct linux_class *class, size_t *number,
					      bool *is_new);
void export_classes_free(struct export_classes *c);

/** The text of a %s parameter, `(null)`, or `(bad 0x…)`, for which buf has 32 bytes. */
const char *export_string(const struct ktr_decode_event *e, unsigned i, char *buf);
