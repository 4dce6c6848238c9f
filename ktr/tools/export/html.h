/*
 * html.h - what the files of the html format share. html.c puts what passes into columns,
 * html_column.c compresses them, and html_page.c writes the page around them: the files of html/,
 * and each column in base64. Host only.
 *
 * The page has what reports are made of: each event, and each sample (report/report.h). Its script
 * makes the reports' tables of them, as the column `head` describes them (html/table.js).
 *
 * A column has numbers, or JSON, a value a line. A number has seven bits a byte, the lowest first;
 * all bytes but the last have the top bit. In a signed number the lowest bit is the sign.
 *
 * Of each event:
 *	event.cpu     the CPU
 *	event.ns      signed: nanoseconds since boot, less those of the event before
 *	event.seq     signed: its number, less that of the CPU's event before, less 1
 *	event.who     0: as the CPU's event before; else the line of `who`, from 1
 *	event.site    the line of `site`, from 0
 *	event.args    each parameter; of a %s the line of `string`, from 1, or 0 and the number
 * Of each sample:
 *	sample.at     events since the sample before
 *	sample.to     signed: its end, less the time of the event before it
 *	sample.ns     how long it took
 *	sample.who, .text, .more, .place    lines of `who`, `string`, `place`, from 1; 0: none
 *	sample.flags  1 untimed, 2 preempted, 4 moved
 *	sample.value  what report.h says of the kind
 *	sample.kind, .cpu, .queued
 * Of each loss, gap.from and gap.ns (signed), gap.cpu, .reason, .count. Of each wakeup:
 *	wake.at       events since the wakeup before
 *	wake.who      who was woken
 */
#pragma once

#include <zlib.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/out.h"
#include "ktr/tools/report/report.h"

#define HTML_COLUMNS(X)                   \
	X(EVENT_CPU, "event.cpu")         \
	X(EVENT_NS, "event.ns")           \
	X(EVENT_SEQ, "event.seq")         \
	X(EVENT_WHO, "event.who")         \
	X(EVENT_SITE, "event.site")       \
	X(EVENT_ARGS, "event.args")       \
	X(SAMPLE_KIND, "sample.kind")     \
	X(SAMPLE_FLAGS, "sample.flags")   \
	X(SAMPLE_AT, "sample.at")         \
	X(SAMPLE_TO, "sample.to")         \
	X(SAMPLE_NS, "sample.ns")         \
	X(SAMPLE_WHO, "sample.who")       \
	X(SAMPLE_CPU, "sample.cpu")       \
	X(SAMPLE_TEXT, "sample.text")     \
	X(SAMPLE_MORE, "sample.more")     \
	X(SAMPLE_PLACE, "sample.place")   \
	X(SAMPLE_VALUE, "sample.value")   \
	X(SAMPLE_QUEUED, "sample.queued") \
	X(GAP_CPU, "gap.cpu")             \
	X(GAP_REASON, "gap.reason")       \
	X(GAP_COUNT, "gap.count")         \
	X(GAP_FROM, "gap.from")           \
	X(GAP_NS, "gap.ns")               \
	X(WAKE_AT, "wake.at")             \
	X(WAKE_WHO, "wake.who")           \
	X(HEAD, "head")                   \
	X(WHO, "who")                     \
	X(SITE, "site")                   \
	X(STRING, "string")               \
	X(PLACE, "place")

enum html_column_name {
#define X(name, text) HTML_##name,
	HTML_COLUMNS(X)
#undef X
	    HTML_COLUMN_COUNT
};

/* The last member of a line of `who`, [serial, tid, name, kind]. A WHO_HOLDER may no longer have
 * that name, or the lock. */
enum { WHO_THREAD, WHO_IDLE, WHO_HOLDER };

#define HTML_BUFFER 8192u

/* What is written to a column goes, compressed, to a nameless file. Only the maps of different
 * texts, places and names are in memory. */
struct html_column {
	FILE *file; /* NULL: not open */
	z_stream z;
	size_t used; /* of in */
	uint8_t in[HTML_BUFFER];
	bool failed;
};

/** False: errno. */
bool html_column_open(struct html_column *c, const struct export_file *file);
void html_column_put(struct html_column *c, const void *bytes, size_t n);
void html_number(struct html_column *c, uint64_t v);
static inline void
html_signed(struct html_column *c, uint64_t v)
{
	html_number(c, v << 1 ^ (0 - (v >> 63)));
}
/** Writes all of it to f, in base64. False: errno. */
bool html_column_write(struct html_column *c, FILE *f);
void html_column_close(struct html_column *c);

/* Of the page that is made. */
struct html_head {
	const struct ktr_decode_header *header;
	uint64_t from_ns, to_ns;
	unsigned cpus;
};

/** The head: what the trace is of, and how the tables are made. */
void html_head_put(struct out *o, const struct html_head *h);
/** Write the page up to its columns; the beginning and end of a column; the page's end. */
void html_page_begin(FILE *f);
void html_page_column(FILE *f, const char *name);
void html_page_column_end(FILE *f);
void html_page_end(FILE *f);
