/*
 * ktrdump.h - what the files of ktrdump share: options, counts, and the writers of each format.
 *
 * The same source is built for the host and for the guest, so it keeps to what both C libraries
 * have.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ktr/decode.h"
#include "ktr/param.h"
#include "ktr/tools/merge.h"
#include "ktr/tools/out.h"

/*
 * The guest's ktrdump has a default input. The host's also reads memory dumps, and writes other
 * formats.
 */
#ifndef KTRDUMP_DEFAULT_INPUT
#define KTRDUMP_HOST
#endif

/** Exit statuses. */
#define DUMP_CLEAN   0
#define DUMP_DAMAGED 1
#define DUMP_USAGE   2
#define DUMP_CHANGED 3 /* by more than --fail-above */

#define DUMP_GREP_MAX 500u
#define DUMP_TEXT_MAX OUT_MADE /* bytes of an event's text, with the NUL */

struct dump_filter {
	uint64_t classes;   /* an event passes that has one of these classes; ~0: all */
	uint64_t cpus;      /* bit N; CPUs from 64 on pass when all bits are set */
	const char *thread; /* NULL: all; a number, or a glob over names */
	const char *grep;   /* NULL: all; text, or a glob; at most DUMP_GREP_MAX characters */
	int64_t since_ns, until_ns;
};

struct report_diff;

/* What `diff` compares: A and B. */
struct dump_diff {
	bool on;
	struct {
		const char *name;
		bool is_core;       /* a memory dump */
		const char *kernel; /* NULL: not told */
	} inputs[2];
	unsigned count, kernels;   /* of inputs, and of -N, as many as were given */
	bool named;                /* its reports were named */
	const char *grep;          /* of rows; NULL: all */
	uint64_t limit;            /* of --fail-above, hundredths of a percent */
	struct report_diff *state; /* while it runs; NULL: no diff */
};

struct dump_options {
	bool number, cpu, file_line, time, relative, thread; /* columns */
	bool ticks; /* the time is the raw clock, and text has the newest event first */
	bool quiet, follow, json;
	bool stream;        /* the input's stream, as it is */
	const char *input;  /* "-": standard input */
	const char *core;   /* a memory dump in place of input; NULL: none */
	const char *kernel; /* what was dumped, and what has symbols; NULL: not told */
	const char *output; /* NULL: standard output */
	const struct export_format *format; /* NULL: text or jsonl of events */
	const char *function;               /* of a graph: a glob; NULL: all */
	unsigned depth;                     /* of a graph; 0: no limit */
	const char *reports;                /* with commas; "": all; NULL: no report */
	unsigned rows;                      /* of a report's tables that text shows; 0: all */
	unsigned width;                     /* of a picture, pixels; 0: the format's own */
	struct dump_diff diff;
	struct dump_filter filter;
};

#define DUMP_PARAMS 256u

/* The parameters of a site: names, and how their values are read. */
struct dump_params {
	const struct ktr_decode_site *site; /* NULL: none, or one that is not known */
	struct ktr_param params[KTR_PARAM_MAX];
};

struct dump {
	struct dump_options opts;
	struct out out;
	FILE *newest_first; /* where the rows go, a file of their own; NULL: they do not */
	struct ktr_decoder_ops ops;
	struct ktr_decoder *decoder;
	struct merge *merge;
	struct dump_export *export; /* of opts.format; NULL: none */
	bool empty;                 /* what was asked for has nothing to show */
	const char *no_calls; /* what is true if no call of opts.function is shown; NULL: one is */
	const struct ktr_decode_header *header; /* the first; NULL: none yet */
	uint64_t masks;   /* classes of the masks that the stream tells, together */
	bool mask_told;   /* it tells one */
	const char *name; /* of the input, for messages */
	struct dump_params params[DUMP_PARAMS]; /* by site number */
	uint64_t index;                         /* of the next event, filtered ones included */
	uint64_t parts;                         /* of long data, which are no events */
	uint64_t shown;                         /* events and gaps that passed the filter */
	int64_t first_ns, last_ns;              /* of the events, when index is not 0 */
	bool any_time;                          /* last_ticks means something */
	uint64_t last_ticks;                    /* of the event that was printed last */
	int status;
	bool failed; /* output or memory: stop */
};

/* ktrdump_options.c: the defaults, then the command line. -1: go on; else an exit status. */
int dump_options_parse(struct dump_options *o, int argc, char **argv);

/* ktrdump_filter.c: parsers return false and print what is wrong; matchers. */
bool dump_parse_time(const char *text, int64_t *ns);
bool dump_match_event(const struct dump_filter *f, const struct ktr_decode_event *e,
		      const char *text);
bool dump_match_cpu(const struct dump_filter *f, uint32_t cpu);
bool dump_match_thread(const struct dump_filter *f, uint32_t tid, const char *name);
bool dump_match_gap(const struct dump_filter *f, const struct ktr_decode_gap *g);
/* Does the text have `want` in it, which may have * ? [a-z]? */
bool dump_match_text(const char *want, const char *text);
/* True: text is needed to decide. */
bool dump_match_needs_text(const struct dump_filter *f);

/* ktrdump_diff.c: options of a diff. Reads a percentage such as 5% or 0.25. False: it is none. */
bool dump_parse_percent(const char *text, uint64_t *hundredths);
void dump_diff_begin(struct dump_options *o);
void dump_diff_input(struct dump_options *o, const char *name, bool is_core);
void dump_diff_kernel(struct dump_options *o, const char *name);
/* After all options: what is wrong with them, or NULL. */
const char *dump_diff_wrong(struct dump_options *o);
/* Prints what changed. An exit status. */
int dump_diff(const struct dump_options *o);

#define DUMP_CHUNK 65536

/* ktrdump_armor.c */
struct dump_armor {
	bool inside;    /* between BEGIN and END */
	char line[128]; /* the part of a line that is there; the rest of a longer one is dropped */
	size_t len;
};

/**
 * Are these first n bytes enough to tell a stream from a console log? At the end of the input, any
 * number is.
 */
bool dump_armor_decided(const uint8_t *bytes, size_t n);
/**
 * Finds the part of the stream in a piece of a log of at most DUMP_CHUNK bytes. *n is the number of
 * bytes of the piece, and then of the part.
 */
const uint8_t *dump_armor(struct dump_armor *a, const uint8_t *bytes, size_t *n);

/* ktrdump.c: reads the input that the options name, and writes what they ask for. An exit status.
 */
int dump_run(struct dump *d);
/* Opens the output. Call it when the input is there, so that nothing of an old file is lost
 * before. False after a message was printed. */
bool dump_output_open(struct dump *d);
/* Is the output another file than this input? If not, a message is printed. */
bool dump_output_fits(const struct dump_options *o, const char *input);
/* Rows go to a file of their own from here on, which is printed newest first. */
void dump_rows_begin(struct dump *d);

/* ktrdump_connect.c: dump_is_connection(): is the input tcp:HOST:PORT? dump_connect() makes the
 * connection, and returns a descriptor, or -1 and why not. */
bool dump_is_connection(const char *input);
int dump_connect(const char *input, char *err, size_t errlen);

/* ktrdump_input.c: reads all of the input into d->decoder, following it when asked. An exit status.
 */
int dump_input(struct dump *d);

/* ktrdump_text.c */
void dump_text_header(struct dump *d);
/** Puts an event's text into the dump. text NULL: it has not been made yet. */
void dump_text_event(struct dump *d, const struct ktr_decode_event *e, uint64_t index,
		     const char *text);
void dump_text_gap(struct dump *d, const struct ktr_decode_gap *g);
/** "SCHED,PROC"; numbers for bits that have no name. */
void dump_classes(const struct ktr_decode_header *h, uint64_t classes, char *buf, size_t len);

/* ktrdump_why.c: says on standard error why no event passed the filter. */
void dump_why_nothing(const struct dump *d);

/* ktrdump_json.c */
void dump_json_event(struct dump *d, const struct ktr_decode_event *e, const char *text);
/* An entry that holds a part of an event's data. */
void dump_json_part(struct dump *d, const struct ktr_decode_event *e);
void dump_json_gap(struct dump *d, const struct ktr_decode_gap *g);

/* ktrdump_export.c: into a report, or another tool's format. passes: the filter. */
bool dump_export_open(struct dump *d);
void dump_export_event(struct dump *d, const struct ktr_decode_event *e, uint64_t index,
		       bool passes);
void dump_export_gap(struct dump *d, const struct ktr_decode_gap *g, bool passes);
void dump_export_close(struct dump *d, bool complete);
