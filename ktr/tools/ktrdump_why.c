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

/* Has this machine's kernel no trace points of any of these classes? */
static bool
not_compiled(uint64_t wanted)
{
	char *text = sysctl_get_text("debug.ktr.compile"), err[160];
	uint64_t mask;
	bool none = text != NULL && ktr_mask_parse(text, &mask, err, sizeof(err)) == 0 &&
		    (mask & wanted) == 0;
	free(text);
	return none;
}

/* Is the input the log of this machine as it is now? */
static bool
is_own(const struct dump *d)
{
	return strcmp(d->opts.input, KTRDUMP_DEFAULT_INPUT) == 0;
}
#else
static bool
not_compiled(uint64_t wanted)
{
	return false;
}

static bool
is_own(const struct dump *d)
{
	return false;
}
#endif

/* If the mask kept out what was asked for, says so and returns true. */
static bool
mask_says(const struct dump *d)
{
	char names[512] = "";
	uint64_t wanted = d->opts.filter.classes;
	bool own = is_own(d);
	if (d->header != NULL && wanted != KTR_ALL)
		dump_classes(d->header, wanted, names, sizeof(names));
	if (own && names[0] != '\0' && not_compiled(wanted))
		fprintf(stderr, "ktrdump: %s: no events: %s is not compiled in\n", d->name, names);
	else if (d->mask_told && d->masks == 0 && d->index == 0)
		fprintf(stderr, "ktrdump: %s: no events: debug.ktr.mask %s NONE\n", d->name,
			own ? "is" : "was");
	else if (d->mask_told && names[0] != '\0' && (d->masks & wanted) == 0)
		fprintf(stderr, "ktrdump: %s: no events: debug.ktr.mask %s no %s\n", d->name,
			own ? "has" : "had", names);
	else
		return false;
	return true;
}

/* An empty stream. */
static void
nothing_recorded(const struct dump *d)
{
	char names[512] = "ALL";
	if (d->mask_told) {
		if (d->masks != KTR_ALL)
			dump_classes(d->header, d->masks, names, sizeof(names));
		fprintf(stderr,
			"ktrdump: %s: no events: nothing was recorded (debug.ktr.mask was %s)\n",
			d->name, names);
	} else {
		fprintf(stderr,
			"ktrdump: %s: no events: nothing was recorded (was debug.ktr.mask NONE?)\n",
			d->name);
	}
}

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
	if (!outside && mask_says(d))
		return;
	if (d->index == 0) {
		nothing_recorded(d);
		return;
	}
	fprintf(stderr, "ktrdump: %s: ", d->name);
	if (d->no_calls != NULL) {
		fprintf(stderr, "no call of %s %s", d->opts.function, d->no_calls);
	} else {
		fputs(outside ? "no events between --since and --until"
			      : "no event is what was asked for",
		      stderr);
	}
	fputs(" (the trace is ", stderr);
	put_time(d->first_ns);
	fputs(" to ", stderr);
	put_time(d->last_ns);
	fprintf(stderr, ", %llu events)\n", (unsigned long long)d->index);
}
