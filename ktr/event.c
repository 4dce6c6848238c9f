/*
 * event.c - the text of an event: its site's format over its parameters. Locking: none.
 */
#include "ktr/event.h"

#include "ktr/fmt.h"
#include "ktr/str.h"

struct event_text {
	char *buf;
	size_t len, used;
	const uint64_t *args;
	unsigned nargs, next;
	ktr_string_fn *string;
	void *arg;
};

static void
event_put(void *arg, const char *text, size_t n)
{
	struct event_text *e = arg;
	size_t room = e->len > 0 ? e->len - 1 - e->used : 0;
	if (room == 0)
		return; /* buf may be NULL */
	if (n > room)
		n = room;
	ktr_copy(e->buf + e->used, text, n);
	e->used += n;
}

static uint64_t
event_fetch(void *arg, enum fmt_type type)
{
	struct event_text *e = arg;
	(void)type;
	return e->next < e->nargs ? e->args[e->next++] : 0;
}

static const char *
event_string(void *arg, uint64_t value)
{
	struct event_text *e = arg;
	return e->string(e->arg, value);
}

int
ktr_event_text(char *buf, size_t len, const char *fmt, const uint64_t *args, unsigned nargs,
	       ktr_string_fn *string, void *arg)
{
	static const struct fmt_ops ops = {event_put, event_fetch, event_string};
	struct event_text e = {
	    .buf = buf, .len = len, .args = args, .nargs = nargs, .string = string, .arg = arg};
	size_t n = fmt_format(&ops, &e, fmt);
	if (len > 0)
		buf[e.used] = '\0';
	return (int)n;
}

uint8_t
ktr_event_strings(const char *fmt)
{
	unsigned mask = 0, n = 0;
	while (*fmt != '\0') {
		if (*fmt++ != '%')
			continue;
		struct fmt_spec s;
		fmt_scan(&fmt, &s);
		if (s.conv == 0 || s.conv == '%')
			continue;
		n += s.star_width + s.star_precision;
		if (s.conv == 's' && n < 6)
			mask |= 1u << n;
		n++;
	}
	return (uint8_t)mask;
}
