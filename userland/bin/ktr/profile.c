/*
 * profile.c - the table of ktr profile, in the columns of Linux's function profiler
 * (Documentation/trace/ftrace.rst): function, hits, their time, the mean, and the variance s^2.
 */
#include <err.h>
#include <kestrel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>

#include "userland/bin/ktr/ktr.h"
#include "userland/lib/array.h"

typedef unsigned __int128 u128;

struct function {
	const char *name;
	uint64_t hits, timed, ns, self_ns;
	u128 square;
};

/* The sample variance in square nanoseconds. */
static u128
variance(const struct function *f)
{
	u128 least = f->timed > 0 ? (u128)f->ns * f->ns / f->timed : 0;

	/* A CPU may have been in the middle of a change: its sum of squares is the last. */
	return f->timed > 1 && f->square > least ? (f->square - least) / (f->timed - 1) : 0;
}

/* Reads the next word of the row as a number. */
static uint64_t
number(char **row)
{
	return strtoull(strsep(row, " "), NULL, 10);
}

static int
by_time(const void *a, const void *b)
{
	const struct function *f = a, *g = b;

	if (f->ns != g->ns)
		return f->ns < g->ns ? 1 : -1;
	return f->hits != g->hits ? (f->hits < g->hits ? 1 : -1) : strcmp(f->name, g->name);
}

/* Adds up the CPUs' rows. Returns how many functions there are. */
static size_t
read_rows(char *rows, struct function **found)
{
	size_t n = 0;
	struct function *functions = NULL;
	char *row;

	strsep(&rows, "\n"); /* the heading */
	while ((row = strsep(&rows, "\n")) != NULL && *row != '\0') {
		const char *name = strsep(&row, " ");

		(void)number(&row); /* the CPU; a function's rows are together */
		if (n == 0 || strcmp(functions[n - 1].name, name) != 0)
			ARRAY_ADD(functions, n, (struct function){.name = name});
		struct function *f = &functions[n - 1];

		f->hits += number(&row);
		f->timed += number(&row);
		f->ns += number(&row);
		f->self_ns += number(&row);
		u128 high = number(&row);
		f->square += high << 64 | number(&row);
	}
	*found = functions;
	return n;
}

/* Thousandths as a number with three digits after the point. */
static const char *
thousandths(char text[48], u128 n)
{
	snprintf(text, 48, "%llu.%03u", (unsigned long long)(n / 1000), (unsigned)(n % 1000));
	return text;
}

int
profile_print(void)
{
	struct function *functions;
	char *text = sysctl_get_text("debug.fbt.profile");
	size_t n, widest = 0;

	if (text == NULL)
		err(1, "debug.fbt.profile");
	n = read_rows(text, &functions);
	if (n == 0) {
		warnx("no function was called");
		return 1;
	}
	qsort(functions, n, sizeof(*functions), by_time);
	printf("  %-32s %10s %15s %12s %12s %16s\n", "Function", "Hit", "Time us", "Self us",
	       "Avg us", "s^2 us^2");
	for (size_t i = 0; i < n; i++) {
		const struct function *f = &functions[i];
		char total[48], self[48], mean[48], square[48];

		int wide = printf("  %-32s %10llu %15s %12s %12s %16s\n", f->name,
				  (unsigned long long)f->hits, thousandths(total, f->ns),
				  thousandths(self, f->self_ns),
				  thousandths(mean, f->timed > 0 ? f->ns / f->timed : 0),
				  thousandths(square, variance(f) / 1000)) -
			   1;
		if (wide > 0 && (size_t)wide > widest)
			widest = (size_t)wide;
	}
	tool_say_width(widest);
	return tool_finish(0);
}
