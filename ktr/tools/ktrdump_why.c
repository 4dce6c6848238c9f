/*
 * ktrdump_why.c - why nothing is shown: in one line, so that nobody takes an empty trace, or a
 * filter that keeps everything out, for a machine that did nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/class.h"
#include "ktr/tools/ktrdump.h"

#ifndef KTRDUMP_HOST
#include <kestrel.h>

/* A mask that this machine's kernel has; ~0 when it does not say. */
static uint64_t
kernel_mask(const char *name)
{
	char *text = sysctl_get_text(name), err[160];
	uint64_t mask = ~(uint64_t)0;
	if (text == NULL || ktr_mask_parse(text, &mask, err, sizeof(err)) != 0)
		mask = ~(uint64_t)0;
	free(text);
	return mask;
}

/* If the input is this machine's log, and is empty because of the mask, says so and returns true.
 */
static bool
kernel_says(const struct dump *d)
{
	char names[512] = "";
	uint64_t wanted = d->opts.filter.classes;
	if (strcmp(d->opts.input, KTRDUMP_DEFAULT_INPUT) != 0)
		return false;
	if (d->header != NULL && wanted != KTR_ALL)
		dump_classes(d->header, wanted, names, sizeof(names));
	if (names[0] != '\0' && (kernel_mask("debug.ktr.compile") & wanted) == 0)
		fprintf(stderr, "ktrdump: no events: %s is not compiled in\n", names);
	else if (kernel_mask("debug.ktr.mask") == 0)
		fprintf(stderr, "ktrdump: no events: debug.ktr.mask is NONE\n");
	else if (names[0] != '\0' && (kernel_mask("debug.ktr.mask") & wanted) == 0)
		fprintf(stderr, "ktrdump: no events: debug.ktr.mask has no %s\n", names);
	else
		return false;
	return true;
}
#else
static bool
kernel_says(const struct dump *d)
{
	(void)d;
	return false;
}
#endif

/* Seconds, as the time column has them. */
static void
put_time(int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	fprintf(stderr, "%s%llu.%09llu s", ns < 0 ? "-" : "",
		(unsigned long long)(size / 1000000000u), (unsigned long long)(size % 1000000000u));
}

void
dump_why_nothing(const struct dump *d)
{
	const struct dump_filter *f = &d->opts.filter;
	bool outside = d->index > 0 && (f->since_ns > d->last_ns || f->until_ns < d->first_ns);
	if (!outside && kernel_says(d))
		return;
	if (d->index == 0) {
		fprintf(stderr,
			"ktrdump: %s: no events: nothing was recorded (was debug.ktr.mask NONE?)\n",
			d->name);
		return;
	}
	fprintf(stderr,
		outside ? "ktrdump: %s: no events between --since and --until (the trace is "
			: "ktrdump: %s: no event is what was asked for (the trace is ",
		d->name);
	put_time(d->first_ns);
	fputs(" to ", stderr);
	put_time(d->last_ns);
	fprintf(stderr, ", %llu events)\n", (unsigned long long)d->index);
}
