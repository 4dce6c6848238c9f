/*
 * ktrdump.c - prints a trace stream from a file, a pipe, a file that grows, or /dev/ktr; or makes a
 * report or another format of it.
 *
 * Events go from the decoder through the merge to one of the writers. Damage is reported on
 * standard error with its offset, and makes the exit status 1. All that is sound is still printed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/reverse.h"

static void
on_merged_event(void *arg, const struct ktr_decode_event *e)
{
	struct dump *d = arg;
	char made[DUMP_TEXT_MAX], *text = NULL;
	if (d->failed || d->opts.stream)
		return;
	if (e->site != NULL && e->site->parts) {
		bool passes = dump_match_event(&d->opts.filter, e, "");
		d->parts += passes;
		if (passes && d->export == NULL && d->opts.json)
			dump_json_part(d, e);
		return;
	}
	int64_t ns = ktr_decode_ns(e->header, e->ticks);
	if (d->index == 0 || ns < d->first_ns)
		d->first_ns = ns;
	if (d->index == 0 || ns > d->last_ns)
		d->last_ns = ns;
	uint64_t index = d->index++;
	if (dump_match_needs_text(&d->opts.filter) || d->opts.json) {
		text = made;
		ktr_decode_text(text, sizeof(made), e);
	}
	bool passes = dump_match_event(&d->opts.filter, e, text);
	d->shown += passes;
	if (d->export != NULL)
		dump_export_event(d, e, index, passes);
	if (!passes || d->export != NULL)
		return;
	if (d->opts.json)
		dump_json_event(d, e, text);
	else
		dump_text_event(d, e, index, text);
	d->failed |= ferror(d->out.file) != 0;
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
	d->shown += passes;
	if (d->export != NULL)
		dump_export_gap(d, g, passes);
	if (!passes || d->export != NULL)
		return;
	if (d->opts.json)
		dump_json_gap(d, g);
	else
		dump_text_gap(d, g);
	d->failed |= ferror(d->out.file) != 0;
}

static void
failed(struct dump *d, const char *what)
{
	if (!d->failed)
		fprintf(stderr, "ktrdump: %s\n", what);
	d->failed = true;
	d->status = DUMP_USAGE;
}

void
dump_rows_begin(struct dump *d)
{
	FILE *rows = tmpfile();
	if (rows == NULL) {
		failed(d, "cannot keep the rows in a temporary file");
		return;
	}
	out_flush(&d->out);
	d->newest_first = d->out.file;
	d->out.file = rows;
}

static void
rows_end(struct dump *d)
{
	FILE *rows = d->out.file;
	if (d->newest_first == NULL)
		return;
	out_flush(&d->out);
	d->out.file = d->newest_first;
	bool kept = fflush(rows) == 0 && ferror(rows) == 0;
	if (!(kept && reverse_lines(rows, d->out.file)) && ferror(d->out.file) == 0) {
		fprintf(stderr, "ktrdump: cannot keep the rows in a temporary file: %s\n",
			strerror(errno));
		d->status = DUMP_USAGE;
	}
	fclose(rows);
}

static void
on_header(void *merge, const struct ktr_decode_header *h)
{
	struct dump *d = merge_arg(merge);
	if ((h->flags & KTR_WIRE_START) != 0)
		merge_flush(merge);
	if (d->header == NULL)
		d->header = h;
}

static void
on_mask(void *merge, uint64_t classes)
{
	struct dump *d = merge_arg(merge);
	d->masks |= classes;
	d->mask_told = true;
}

static void
on_damage(void *merge, uint64_t offset, uint64_t bytes, const char *text)
{
	struct dump *d = merge_arg(merge);
	if (bytes > 0)
		fprintf(stderr, "ktrdump: %s: offset %llu: %llu bytes skipped: %s\n", d->name,
			(unsigned long long)offset, (unsigned long long)bytes, text);
	else
		fprintf(stderr, "ktrdump: %s: offset %llu: %s\n", d->name,
			(unsigned long long)offset, text);
	damaged(d);
}

bool
dump_output_fits(const struct dump_options *o, const char *input)
{
	struct stat in, out;
	bool from_stdin = strcmp(input, "-") == 0;
	if (o->output == NULL || stat(o->output, &out) != 0 ||
	    (from_stdin ? fstat(STDIN_FILENO, &in) : stat(input, &in)) != 0 ||
	    !S_ISREG(in.st_mode) || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return true;
	fprintf(stderr, "ktrdump: -o %s: it is an input: expected another file\n", o->output);
	return false;
}

bool
dump_output_open(struct dump *d)
{
	if ((d->export != NULL && !d->opts.format->lines) || d->opts.output == NULL ||
	    strcmp(d->opts.output, "-") == 0)
		return true;
	FILE *file = fopen(d->opts.output, "w");
	if (file != NULL)
		d->out.file = file;
	else
		fprintf(stderr, "ktrdump: %s: %s\n", d->opts.output, strerror(errno));
	return file != NULL;
}

static bool
dump_open(struct dump *d)
{
	d->ops = (struct ktr_decoder_ops){
	    .realloc = memory_realloc,
	    .seed = memory_seed(),
	    .header = on_header,
	    .event = merge_event,
	    .gap = merge_gap,
	    .mark = merge_mark,
	    .mask = on_mask,
	    .end = merge_flush,
	    .damage = on_damage,
	};
	static const struct merge_ops merge_ops = {on_merged_event, on_merged_gap};
	d->out.file = stdout;
	if (d->opts.format != NULL && !dump_export_open(d))
		return false;
	d->merge = merge_create(&merge_ops, d);
	d->decoder = ktr_decoder_create(&d->ops, d->merge);
	if (d->decoder == NULL || d->merge == NULL) {
		failed(d, "not enough memory");
		return false;
	}
	return true;
}

/* A table that the terminal has wrapped is hard to read. Without job control, a script has it. */
static void
say_width(const struct out *o)
{
	struct winsize size;
	if (getpgrp() != getpgid(getppid()) && ioctl(fileno(o->file), TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 0 && size.ws_col < o->widest)
		fprintf(
		    stderr,
		    "ktrdump: lines of %zu characters, terminal of %u: | less -S does not wrap them\n",
		    o->widest, size.ws_col);
}

int
dump_run(struct dump *d)
{
	d->name = strcmp(d->opts.input, "-") == 0 ? "standard input" : d->opts.input;
	if (!dump_output_fits(&d->opts, d->opts.core != NULL ? d->opts.core : d->opts.input) ||
	    (d->opts.kernel != NULL && !dump_output_fits(&d->opts, d->opts.kernel)))
		return DUMP_USAGE;
	if (!dump_open(d)) {
		dump_export_close(d, false);
		return DUMP_USAGE;
	}
	int status = dump_input(d);
	merge_flush(d->merge);
	int error = merge_error(d->merge);
	if (error != 0)
		failed(d, error == ENOMEM ? "not enough memory"
					  : "cannot keep the events that wait in a temporary file");
	dump_export_close(d, status != DUMP_USAGE);
	if (d->no_calls != NULL ||
	    (status == DUMP_CLEAN && d->status == DUMP_CLEAN && d->shown == 0 && !d->opts.stream)) {
		dump_why_nothing(d);
		d->empty = true;
	}

	rows_end(d);
	out_flush(&d->out);
	bool written = fflush(d->out.file) == 0 && ferror(d->out.file) == 0;
	if (written) /* else errno says why not */
		say_width(&d->out);
	if (d->out.file != stdout)
		written = fclose(d->out.file) == 0 && written;
	if (!written && errno != EPIPE) {
		fprintf(stderr, "ktrdump: cannot write: %s\n", strerror(errno));
		d->status = DUMP_USAGE;
	}
	if (d->empty && d->status == DUMP_CLEAN)
		d->status = DUMP_DAMAGED;
	if (status > d->status)
		d->status = status;
	merge_destroy(d->merge);
	ktr_decoder_destroy(d->decoder);
	return d->status;
}
