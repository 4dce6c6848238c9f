/*
 * clock.c - trace_clock (Documentation/trace/ftrace.rst, "trace_clock"). Times of entries are
 * always nanoseconds since boot, and CPUs agree on them. Each clock of Linux that is so has its
 * name here.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/string.h"

static const char *const names[] = {"local", "global", "perf", "mono", "mono_raw", "boot"};
#define NAMES (sizeof(names) / sizeof(names[0]))

const char *
clock_name(const struct instance *i)
{
	return names[i->clock];
}

int
clock_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < NAMES; i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return (int)i;
	return -EINVAL;
}

void
clock_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned n = 0; n < NAMES; n++)
		sbuf_printf(out, n == i->clock ? "%s[%s]" : "%s%s", n > 0 ? " " : "", names[n]);
	sbuf_putc(out, '\n');
}

int
clock_store(struct instance *i, uintptr_t arg, char *text)
{
	const char *word = tracefs_word(&text);
	int clock = word != NULL ? clock_find(word, strlen(word)) : -EINVAL;

	if (clock < 0)
		return clock;
	i->clock = (unsigned)clock;
	return 0;
}
