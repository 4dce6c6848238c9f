/*
 * ktrdump_text.c - FreeBSD's columns: index, CPU, time, file and line, thread, text.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"

static void
time_format(char *buf, size_t len, int64_t ns)
{
	uint64_t t = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
	char seconds[24];
	snprintf(seconds, sizeof(seconds), "%s%llu", ns < 0 ? "-" : "",
		 (unsigned long long)(t / 1000000000u));
	snprintf(buf, len, "%s.%09llu", seconds, (unsigned long long)(t % 1000000000u));
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
time_column(struct dump *d, const struct ktr_decode_header *h, uint64_t ticks)
{
	char buf[48];
	uint64_t last = d->any_time ? d->last_ticks : ticks;
	if (d->opts.ticks && d->opts.relative)
		snprintf(buf, sizeof(buf), "%llu", (unsigned long long)(ticks - last));
	else if (d->opts.ticks)
		snprintf(buf, sizeof(buf), "%llu", (unsigned long long)ticks);
	else if (d->opts.relative)
		time_format(buf, sizeof(buf), ktr_decode_ns(h, ticks) - ktr_decode_ns(h, last));
	else
		time_format(buf, sizeof(buf), ktr_decode_ns(h, ticks));
	fprintf(d->out, "%16s ", buf);
	d->any_time = true;
	d->last_ticks = ticks;
}

void
dump_put_printable(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		size_t n = 0;
		while ((unsigned char)text[n] >= 0x20 && text[n] != 0x7f)
			n++;
		fwrite(text, 1, n, out);
		text += n;
		if (*text == '\0')
			return;
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\t')
			fputs("\\t", out);
		else
			fprintf(out, "\\x%02x", (unsigned)(unsigned char)*text);
	}
}

void
dump_text_event(struct dump *d, const struct ktr_decode_event *e, const char *text)
{
	const struct dump_options *o = &d->opts;
	char buf[300];
	fprintf(d->out, "%6llu ", (unsigned long long)d->index);
	if (o->cpu)
		fprintf(d->out, "%3u ", (unsigned)e->cpu);
	if (o->time)
		time_column(d, e->header, e->ticks);
	if (o->file_line) {
		if (e->site != NULL)
			snprintf(buf, sizeof(buf), "%s:%u", e->site->file, (unsigned)e->site->line);
		else
			snprintf(buf, sizeof(buf), "site %u", (unsigned)e->site_number);
		fprintf(d->out, "%-40s ", buf);
	}
	if (o->thread) {
		snprintf(buf, sizeof(buf), "%u%s%s", (unsigned)e->tid, e->thread != NULL ? " " : "",
			 e->thread != NULL ? e->thread : "");
		fprintf(d->out, "%-18s ", buf);
	}
	dump_put_printable(d->out, text);
	putc('\n', d->out);
}

void
dump_text_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	char from[48], to[48];
	time_format(from, sizeof(from), ktr_decode_ns(g->header, g->from_ticks));
	time_format(to, sizeof(to), ktr_decode_ns(g->header, g->to_ticks));
	fprintf(d->out, "%6s ", "-");
	if (d->opts.cpu)
		fprintf(d->out, "%3u ", (unsigned)g->cpu);
	if (d->opts.time)
		fprintf(d->out, "%16s ", d->opts.relative ? "-" : from);
	if (d->opts.file_line)
		fprintf(d->out, "%-40s ", "-");
	if (d->opts.thread)
		fprintf(d->out, "%-18s ", "-");
	fprintf(d->out, "--- %llu event%s %s on cpu %u between %s and %s ---\n",
		(unsigned long long)g->count, g->count == 1 ? "" : "s",
		ktr_gap_reason_name(g->reason), (unsigned)g->cpu, from, to);
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
