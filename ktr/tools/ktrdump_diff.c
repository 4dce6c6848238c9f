/*
 * ktrdump_diff.c - `ktrdump diff A B`: its two inputs, the report of each, and the exit status.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/class.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report/diff.h"

#define DEFAULT_REPORTS "thread,syscall,lock,fault,function"
#define PERCENT_MAX     1000000u

bool
dump_parse_percent(const char *text, uint64_t *hundredths)
{
	char *end;
	unsigned digits = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || n > PERCENT_MAX)
		return false;
	if (*end == '.') {
		for (end++; digits < 2 && *end >= '0' && *end <= '9'; digits++, end++)
			n = n * 10 + (unsigned)(*end - '0');
		if (digits == 0)
			return false;
	}
	for (; digits < 2; digits++)
		n *= 10;
	*hundredths = n;
	return *end == '\0' || (*end == '%' && end[1] == '\0');
}

void
dump_diff_begin(struct dump_options *o)
{
	o->diff.on = true;
	o->diff.limit = DIFF_NO_LIMIT;
}

void
dump_diff_input(struct dump_options *o, const char *name, bool is_core)
{
	struct dump_diff *d = &o->diff;
	if (d->count < 2) {
		d->inputs[d->count].name = name;
		d->inputs[d->count].is_core = is_core;
	}
	d->count++;
}

void
dump_diff_kernel(struct dump_options *o, const char *name)
{
	struct dump_diff *d = &o->diff;
	if (d->kernels == 0)
		d->inputs[0].kernel = name;
	d->inputs[1].kernel = name;
	d->kernels++;
}

const char *
dump_diff_wrong(struct dump_options *o)
{
	static char text[80];
	const struct dump_diff *d = &o->diff;
	if (d->count != 2) {
		snprintf(text, sizeof(text), "diff: found %u input%s, expected two: A and B",
			 d->count, d->count == 1 ? "" : "s");
		return text;
	}
	if (strcmp(d->inputs[0].name, "-") == 0 && strcmp(d->inputs[1].name, "-") == 0)
		return "diff: both inputs are standard input: expected a file's name for one";
	if (d->kernels > 2)
		return "diff: expected one -N for both inputs, or two";
	o->diff.grep = o->filter.grep; /* of rows, not of events */
	o->filter.grep = NULL;
	o->diff.named = o->reports[0] != '\0';
	if (!o->diff.named)
		o->reports = DEFAULT_REPORTS;
	return NULL;
}

/* Makes the report of one run. An exit status. */
static int
run_side(const struct dump_options *o, struct dump *d, unsigned n, struct report_diff *state)
{
	d->opts = *o;
	d->opts.diff.state = state;
	d->opts.input = o->diff.inputs[n].name;
	d->opts.core = o->diff.inputs[n].is_core ? d->opts.input : NULL;
	d->opts.kernel = o->diff.inputs[n].kernel;
	if (n == 0) /* nothing is printed yet */
		d->opts.output = NULL;
	return dump_run(d);
}

int
dump_diff(const struct dump_options *o)
{
	static struct dump runs[2];
	char masks[2][512];
	struct report_diff state = {.files = {o->diff.inputs[0].name, o->diff.inputs[1].name},
				    .named = o->diff.named,
				    .grep = o->diff.grep,
				    .limit = o->diff.limit};
	for (unsigned i = 0; i < 2; i++)
		if (!dump_output_fits(o, o->diff.inputs[i].name))
			return DUMP_USAGE;
	int status = run_side(o, &runs[0], 0, &state);
	int second = status == DUMP_USAGE ? DUMP_USAGE : run_side(o, &runs[1], 1, &state);
	status = second > status ? second : status;
	if (status != DUMP_USAGE && runs[0].mask_told && runs[1].mask_told &&
	    runs[0].masks != runs[1].masks) {
		ktr_mask_print(runs[0].masks, masks[0], sizeof(masks[0]));
		ktr_mask_print(runs[1].masks, masks[1], sizeof(masks[1]));
		fprintf(stderr,
			"ktrdump: diff: debug.ktr.mask was %s in A, and %s in B: what only one of "
			"them records is new or gone\n",
			masks[0], masks[1]);
	}
	bool lost = state.heads[0].gaps + state.heads[1].gaps > 0;
	if (status == DUMP_CLEAN && state.above)
		status = DUMP_CHANGED;
	if (status == DUMP_CLEAN && lost && o->diff.limit != DIFF_NO_LIMIT) {
		fprintf(stderr, "ktrdump: diff: --fail-above cannot tell: events were lost\n");
		status = DUMP_DAMAGED;
	}
	report_diff_free(&state);
	return status;
}
