/*
 * ktrdump_text.c - FreeBSD's columns: index, CPU, time, file and line, thread, text.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/line.h"

#define TIME_WIDTH 16
#define FILE_WIDTH 40
#define TID_WIDTH  18
#define FRACTION   9 /* digits of a second */

/* Seconds to the nanosecond, of at least so many characters. */
static void
put_time(struct line *l, int64_t ns, size_t width)
{
	uint64_t t = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, seconds = t / 1000000000u;
	uint32_t fraction = (uint32_t)(t % 1000000000u);
	size_t n = (ns < 0) + line_digits(seconds) + 1 + FRACTION;
	if (n < width)
		line_fill(l, ' ', width - n);
	char *start = line_room(l, n), *p = start + n;
	for (unsigned i = 0; i < FRACTION; i++, fraction /= 10)
		*--p = (char)('0' + fraction % 10);
	*--p = '.';
	do {
		*--p = (char)('0' + seconds % 10);
		seconds /= 10;
	} while (seconds != 0);
	if (ns < 0)
		*--p = '-';
}

void
dump_text_header(struct dump *d)
{
	const struct dump_options *o = &d->opts;
	if (o->quiet)
		return;
	fprintf(d->out, "%-6s ", "index");
	if (o->cpu)
		fprintf(d->out, "%-3s ", "cpu");
	if (o->time)
		fprintf(d->out, "%-16s ", "timestamp");
	if (o->file_line)
		fprintf(d->out, "%-40s ", "file and line");
	if (o->thread)
		fprintf(d->out, "%-18s ", "tid");
	fputs("trace\n------ ", d->out);
	if (o->cpu)
		fputs("--- ", d->out);
	if (o->time)
		fputs("---------------- ", d->out);
	if (o->file_line)
		fputs("---------------------------------------- ", d->out);
	if (o->thread)
		fputs("------------------ ", d->out);
	fputs("-----\n", d->out);
}

static void
put_time_column(struct line *l, struct dump *d, const struct ktr_decode_header *h, uint64_t ticks)
{
	uint64_t last = d->any_time ? d->last_ticks : ticks;
	if (d->opts.ticks)
		line_number(l, d->opts.relative ? ticks - last : ticks, TIME_WIDTH);
	else if (d->opts.relative)
		put_time(l, ktr_decode_ns(h, ticks) - ktr_decode_ns(h, last), TIME_WIDTH);
	else
		put_time(l, ktr_decode_ns(h, ticks), TIME_WIDTH);
	line_char(l, ' ');
	d->any_time = true;
	d->last_ticks = ticks;
}

/* Length of what needs no escape, at most n: eight characters at a time. */
static size_t
printable_length(const char *text, size_t n)
{
	const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
	size_t i = 0;
	for (uint64_t w; i + 8 <= n; i += 8) {
		memcpy(&w, text + i, 8);
		uint64_t del = w ^ ones * 0x7f;
		/* A byte below 0x20, or one that was 0x7f; wrong only behind such a one. */
		if ((((w - ones * 0x20) & ~w) | ((del - ones) & ~del)) & tops)
			break;
	}
	while (i < n && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f)
		i++;
	return i;
}

static void
put_printable(struct line *l, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	for (size_t left = strlen(text); left > 0; text++, left--) {
		size_t n = printable_length(text, left);
		line_put(l, text, n);
		text += n;
		left -= n;
		if (left == 0)
			return;
		if (*text == '\n') {
			line_put(l, "\\n", 2);
		} else if (*text == '\t') {
			line_put(l, "\\t", 2);
		} else {
			line_put(l, "\\x", 2);
			line_char(l, hex[(unsigned char)*text >> 4]);
			line_char(l, hex[*text & 15]);
		}
	}
}

void
dump_put_printable(FILE *out, const char *text)
{
	struct line l;
	line_begin(&l, out);
	put_printable(&l, text);
	line_flush(&l);
}

static void
put_file_column(struct line *l, const struct ktr_decode_event *e)
{
	size_t end = line_count(l) + FILE_WIDTH;
	line_text(l, e->site != NULL ? e->site->file : "site ");
	if (e->site != NULL)
		line_char(l, ':');
	line_number(l, e->site != NULL ? e->site->line : e->site_number, 0);
	line_pad(l, end);
	line_char(l, ' ');
}

static void
put_tid_column(struct line *l, const struct ktr_decode_event *e)
{
	size_t end = line_count(l) + TID_WIDTH;
	line_number(l, e->tid, 0);
	if (e->thread != NULL) {
		line_char(l, ' ');
		line_text(l, e->thread);
	}
	line_pad(l, end);
	line_char(l, ' ');
}

void
dump_text_event(struct dump *d, const struct ktr_decode_event *e, const char *text)
{
	const struct dump_options *o = &d->opts;
	struct line l;
	line_begin(&l, d->out);
	line_number(&l, d->index, 6);
	line_char(&l, ' ');
	if (o->cpu) {
		line_number(&l, e->cpu, 3);
		line_char(&l, ' ');
	}
	if (o->time)
		put_time_column(&l, d, e->header, e->ticks);
	if (o->file_line)
		put_file_column(&l, e);
	if (o->thread)
		put_tid_column(&l, e);
	put_printable(&l, text);
	line_char(&l, '\n');
	line_flush(&l);
}

static void
put_none(struct line *l, const char *none, size_t width, bool right)
{
	size_t end = line_count(l) + width;
	if (right)
		line_pad(l, end - strlen(none));
	line_text(l, none);
	line_pad(l, end);
	line_char(l, ' ');
}

void
dump_text_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	int64_t from = ktr_decode_ns(g->header, g->from_ticks);
	struct line l;
	line_begin(&l, d->out);
	put_none(&l, "-", 6, true);
	if (d->opts.cpu) {
		line_number(&l, g->cpu, 3);
		line_char(&l, ' ');
	}
	if (d->opts.time && d->opts.relative) {
		put_none(&l, "-", TIME_WIDTH, true);
	} else if (d->opts.time) {
		put_time(&l, from, TIME_WIDTH);
		line_char(&l, ' ');
	}
	if (d->opts.file_line)
		put_none(&l, "-", FILE_WIDTH, false);
	if (d->opts.thread)
		put_none(&l, "-", TID_WIDTH, false);
	line_text(&l, "--- ");
	line_number(&l, g->count, 0);
	line_text(&l, g->count == 1 ? " event " : " events ");
	line_text(&l, ktr_gap_reason_name(g->reason));
	line_text(&l, " on cpu ");
	line_number(&l, g->cpu, 0);
	line_text(&l, " between ");
	put_time(&l, from, 0);
	line_text(&l, " and ");
	put_time(&l, ktr_decode_ns(g->header, g->to_ticks), 0);
	line_text(&l, " ---\n");
	line_flush(&l);
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
