/*
 * ktrdump.c - prints a trace stream: from a file, a pipe, a file that grows, or /dev/ktr.
 *
 * Events go from the decoder through the merge into one of the writers. What is wrong with the
 * input goes to standard error, by offset, and makes the exit status 1; all that is sound is still
 * printed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"

#define TEXT_MAX 4096

static void
on_merged_event(void *arg, const struct ktr_decode_event *e)
{
	struct dump *d = arg;
	char text[TEXT_MAX];
	uint64_t index = d->index++;
	bool wanted =
	    (!d->opts.stats && d->export == NULL) || dump_match_needs_text(&d->opts.filter);
	if (d->failed || d->opts.stream)
		return;
	text[0] = '\0';
	if (wanted)
		ktr_decode_text(text, sizeof(text), e);
	bool passes = dump_match_event(&d->opts.filter, e, text);
	if (d->export != NULL)
		dump_export_event(d, e, passes);
	if (!passes || d->export != NULL)
		return;
	d->index = index;
	if (d->opts.stats)
		dump_stats_event(d, e);
	else if (d->opts.json)
		dump_json_event(d, e, text);
	else
		dump_text_event(d, e, text);
	d->index = index + 1;
	d->failed |= ferror(d->out) != 0;
}

/* Unless something worse was found. */
static void
damaged(struct dump *d)
{
	if (d->status != DUMP_USAGE)
		d->status = DUMP_DAMAGED;
}

static void
on_merged_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct dump *d = arg;
	if (g->reason == KTR_GAP_DAMAGED || g->reason == KTR_GAP_LEFT)
		damaged(d);
	if (d->failed || d->opts.stream)
		return;
	bool passes = dump_match_gap(&d->opts.filter, g);
	if (d->export != NULL)
		dump_export_gap(d, g, passes);
	if (!passes || d->export != NULL)
		return;
	if (d->opts.stats)
		dump_stats_gap(d, g);
	else if (d->opts.json)
		dump_json_gap(d, g);
	else
		dump_text_gap(d, g);
	d->failed |= ferror(d->out) != 0;
}

static void
no_memory(struct dump *d)
{
	if (!d->failed)
		fprintf(stderr, "ktrdump: not enough memory\n");
	d->failed = true;
	d->status = DUMP_USAGE;
}

static void
on_header(void *arg, const struct ktr_decode_header *h)
{
	struct dump *d = arg;
	if ((h->flags & KTR_WIRE_START) != 0)
		merge_flush(d->merge);
	if (d->header == NULL)
		d->header = h;
}

static void
on_event(void *arg, const struct ktr_decode_event *e)
{
	struct dump *d = arg;
	if (merge_event(d->merge, e) != 0)
		no_memory(d);
}

static void
on_gap(void *arg, const struct ktr_decode_gap *g)
{
	struct dump *d = arg;
	if (merge_gap(d->merge, g) != 0)
		no_memory(d);
}

static void
on_mark(void *arg, uint64_t ticks)
{
	struct dump *d = arg;
	merge_mark(d->merge, ticks);
}

static void
on_end(void *arg)
{
	struct dump *d = arg;
	merge_flush(d->merge);
}

static void
on_damage(void *arg, uint64_t offset, uint64_t bytes, const char *text)
{
	struct dump *d = arg;
	if (bytes > 0)
		fprintf(stderr, "ktrdump: %s: offset %llu: %llu bytes skipped: %s\n", d->name,
			(unsigned long long)offset, (unsigned long long)bytes, text);
	else
		fprintf(stderr, "ktrdump: %s: offset %llu: %s\n", d->name,
			(unsigned long long)offset, text);
	damaged(d);
}

static void *
dump_realloc(void *p, size_t size)
{
	if (size == 0) {
		free(p);
		return NULL;
	}
	return realloc(p, size);
}

static bool
dump_open(struct dump *d)
{
	static const struct ktr_decoder_ops decoder_ops = {
	    .realloc = dump_realloc,
	    .header = on_header,
	    .event = on_event,
	    .gap = on_gap,
	    .mark = on_mark,
	    .end = on_end,
	    .damage = on_damage,
	};
	static const struct merge_ops merge_ops = {on_merged_event, on_merged_gap};
	d->out = stdout;
	if (d->opts.format != NULL && !dump_export_open(d))
		return false;
	if (d->export == NULL && d->opts.output != NULL && strcmp(d->opts.output, "-") != 0) {
		d->out = fopen(d->opts.output, "w");
		if (d->out == NULL) {
			fprintf(stderr, "ktrdump: %s: %s\n", d->opts.output, strerror(errno));
			return false;
		}
	}
	d->decoder = ktr_decoder_create(&decoder_ops, d);
	d->merge = merge_create(&merge_ops, d);
	if (d->opts.stats)
		d->stats = dump_stats_create();
	if (d->decoder == NULL || d->merge == NULL || (d->opts.stats && d->stats == NULL)) {
		no_memory(d);
		return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	struct dump d = {.status = DUMP_CLEAN};
	int status = dump_options_parse(&d.opts, argc, argv);
	if (status >= 0)
		return status;
	d.name = strcmp(d.opts.input, "-") == 0 ? "standard input" : d.opts.input;
	if (!dump_open(&d)) {
		dump_export_close(&d, false);
		return DUMP_USAGE;
	}
	status = dump_input(&d);
	merge_flush(d.merge);
	dump_export_close(&d, status != DUMP_USAGE);
	if (d.opts.stats && status != DUMP_USAGE)
		dump_stats_print(&d);

	bool written = fflush(d.out) == 0 && ferror(d.out) == 0;
	if (d.out != stdout)
		written = fclose(d.out) == 0 && written;
	if (!written && errno != EPIPE) {
		fprintf(stderr, "ktrdump: cannot write: %s\n", strerror(errno));
		d.status = DUMP_USAGE;
	}
	if (status > d.status)
		d.status = status;
	dump_stats_destroy(d.stats);
	merge_destroy(d.merge);
	ktr_decoder_destroy(d.decoder);
	return d.status;
}
