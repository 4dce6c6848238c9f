/*
 * ktrdump_text.c - FreeBSD's columns: index, CPU, time, file and line, thread, text.
 */
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"

#define TIME_WIDTH   16
#define FILE_WIDTH   40
#define NUMBER_WIDTH 8
#define TID_WIDTH    18

void
dump_text_header(struct dump *d)
{
	const struct dump_options *o = &d->opts;
	const struct {
		const char *name;
		size_t width;
		bool shown;
	} columns[] = {
	    {"index", 6, true},
	    {"number", NUMBER_WIDTH, o->number},
	    {"cpu", 3, o->cpu},
	    {"timestamp", TIME_WIDTH, o->time},
	    {"file and line", FILE_WIDTH, o->file_line},
	    {"tid", TID_WIDTH, o->thread},
	    {"trace", 5, true},
	};
	const size_t count = sizeof(columns) / sizeof(columns[0]);
	for (unsigned row = 0; row < 2 && !o->quiet; row++) {
		for (size_t i = 0; i < count; i++) {
			if (!columns[i].shown)
				continue;
			out_begin(&d->out);
			if (row == 0)
				out_text(&d->out, columns[i].name);
			for (size_t n = columns[i].width; row == 1 && n > 0; n--)
				out_char(&d->out, '-');
			if (i + 1 < count)
				out_pad(&d->out, columns[i].width);
			out_char(&d->out, i + 1 < count ? ' ' : '\n');
		}
	}
}

static void
put_time_column(struct out *l, struct dump *d, const struct ktr_decode_header *h, uint64_t ticks)
{
	uint64_t last = d->any_time ? d->last_ticks : ticks;
	if (d->opts.ticks)
		out_number(l, d->opts.relative ? ticks - last : ticks, TIME_WIDTH);
	else if (d->opts.relative)
		out_seconds(l,
			    (int64_t)((uint64_t)ktr_decode_ns(h, ticks) -
				      (uint64_t)ktr_decode_ns(h, last)),
			    TIME_WIDTH);
	else
		out_seconds(l, ktr_decode_ns(h, ticks), TIME_WIDTH);
	out_char(l, ' ');
	d->any_time = true;
	d->last_ticks = ticks;
}

static void
put_file_column(struct out *l, const struct ktr_decode_event *e)
{
	size_t end = out_column(l) + FILE_WIDTH;
	out_text(l, e->site != NULL ? e->site->file : "site ");
	if (e->site != NULL)
		out_char(l, ':');
	out_number(l, e->site != NULL ? e->site->line : e->site_number, 0);
	out_pad(l, end);
	out_char(l, ' ');
}

static void
put_tid_column(struct out *l, const struct ktr_decode_event *e)
{
	size_t end = out_column(l) + TID_WIDTH;
	out_number(l, e->tid, 0);
	if (e->thread != NULL) {
		out_char(l, ' ');
		out_printable(l, e->thread, strlen(e->thread));
	}
	out_pad(l, end);
	out_char(l, ' ');
}

void
dump_text_event(struct dump *d, const struct ktr_decode_event *e, uint64_t index, const char *text)
{
	const struct dump_options *o = &d->opts;
	struct out *l = &d->out;
	out_begin(l);
	out_number(l, index, 6);
	out_char(l, ' ');
	if (o->number) {
		out_number(l, e->seq, NUMBER_WIDTH);
		out_char(l, ' ');
	}
	if (o->cpu) {
		out_number(l, e->cpu, 3);
		out_char(l, ' ');
	}
	if (o->time)
		put_time_column(l, d, e->header, e->ticks);
	if (o->file_line)
		put_file_column(l, e);
	if (o->thread)
		put_tid_column(l, e);
	if (text != NULL) {
		out_printable(l, text, strlen(text));
	} else {
		char *to = out_room(l, DUMP_TEXT_MAX);
		int n = ktr_decode_text(to, DUMP_TEXT_MAX, e);
		out_printable_made(l, n < (int)DUMP_TEXT_MAX ? (size_t)n : DUMP_TEXT_MAX - 1);
	}
	out_char(l, '\n');
}

static void
put_none(struct out *l, const char *none, size_t width, bool right)
{
	size_t end = out_column(l) + width;
	if (right)
		out_pad(l, end - strlen(none));
	out_text(l, none);
	out_pad(l, end);
	out_char(l, ' ');
}

void
dump_text_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	int64_t from = ktr_decode_ns(g->header, g->from_ticks);
	struct out *l = &d->out;
	out_begin(l);
	put_none(l, "-", 6, true);
	if (d->opts.number)
		put_none(l, "-", NUMBER_WIDTH, true);
	if (d->opts.cpu) {
		out_number(l, g->cpu, 3);
		out_char(l, ' ');
	}
	if (d->opts.time && d->opts.relative) {
		put_none(l, "-", TIME_WIDTH, true);
	} else if (d->opts.ticks) {
		out_number(l, g->from_ticks, TIME_WIDTH);
		out_char(l, ' ');
	} else if (d->opts.time) {
		out_seconds(l, from, TIME_WIDTH);
		out_char(l, ' ');
	}
	if (d->opts.file_line)
		put_none(l, "-", FILE_WIDTH, false);
	if (d->opts.thread)
		put_none(l, "-", TID_WIDTH, false);
	out_printf(l, "--- %" PRIu64 " event%s %s on cpu %" PRIu32 " between ", g->count,
		   g->count == 1 ? "" : "s", ktr_gap_reason_name(g->reason), g->cpu);
	out_seconds(l, from, 0);
	out_text(l, " and ");
	out_seconds(l, ktr_decode_ns(g->header, g->to_ticks), 0);
	out_text(l, " ---\n");
}

void
dump_classes(const struct ktr_decode_header *h, uint64_t classes, char *buf, size_t len)
{
	size_t used = 0;
	buf[0] = '\0';
	for (unsigned bit = 0; bit < 64; bit++) {
		char number[24];
		const char *name = h->classes[bit];
		if ((classes >> bit & 1) == 0)
			continue;
		if (name == NULL) {
			snprintf(number, sizeof(number), "0x%llx", 1ull << bit);
			name = number;
		}
		int n = snprintf(buf + used, len - used, "%s%s", used > 0 ? "," : "", name);
		if (n < 0 || (size_t)n >= len - used)
			return;
		used += (size_t)n;
	}
}
