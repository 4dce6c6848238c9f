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
clock_show(uintptr_t arg, struct sbuf *out)
{
	for (unsigned i = 0; i < NAMES; i++)
		sbuf_printf(out, i == instance_now->clock ? "%s[%s]" : "%s%s", i > 0 ? " " : "",
			    names[i]);
	sbuf_putc(out, '\n');
}

int
clock_store(uintptr_t arg, char *text)
{
	const char *word = tracefs_word(&text);
	int clock = word != NULL ? clock_find(word, strlen(word)) : -EINVAL;

	if (clock < 0)
		return clock;
	instance_now->clock = (unsigned)clock;
	return 0;
}
