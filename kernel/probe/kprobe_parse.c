/* kprobe_parse.c - understands a definition of a kprobe (kprobe.h). Locking: none. */
#include <stdarg.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/probe/kprobe_private.h"
#include "kernel/probe/kprobe_reader.h"
#include "ktr/name.h"
#include "ktr/word.h"

int
kprobe_refuse(char *err, size_t errlen, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(err, errlen, "character %zu: ", at + 1);

	va_start(ap, fmt);
	if ((size_t)n < errlen)
		vsnprintf(err + n, errlen - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool
kread_name(struct reader *r, const char *what, const char *more, char *to, size_t size)
{
	size_t n = 0;

	while (ktr_is_word(r->at[n]) || (r->at[n] != '\0' && strchr(more, r->at[n]) != NULL))
		n++;
	if (n == 0 || n >= size)
		return REFUSE(r, r->at,
			      n == 0 ? "expected the name of %s" : "the name of %s is too long",
			      what);
	memcpy(to, r->at, n);
	to[n] = '\0';
	r->at += n;
	return true;
}

bool
kread_value(struct reader *r, uint64_t *v)
{
	size_t n = ktr_word_length(r->at);
	bool good = ktr_number(r->at, n, 0, v) == KTR_NUMBER_OK;

	r->at += good ? n : 0;
	return good;
}

bool
kread_number(struct reader *r, const char *what, uint64_t *v)
{
	return kread_value(r, v) || REFUSE(r, r->at, "expected %s, decimal or 0x...", what);
}

bool
kread_offset(struct reader *r, const char *what, int64_t *offset)
{
	bool minus = *r->at == '-';
	uint64_t v;

	r->at++;
	if (!kread_number(r, what, &v))
		return false;
	*offset = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

/* A name of n characters at `at`, as those of Linux's events: a C identifier. */
static bool
read_identifier(struct reader *r, const char *at, size_t n, const char *what, char *to)
{
	size_t good = 0;

	while (good < n && ktr_is_word(at[good]))
		good++;
	if (n == 0 || n >= KPROBE_EVENT)
		return REFUSE(r, at,
			      n == 0 ? "expected the name of %s" : "the name of %s is too long",
			      what);
	if (good < n || kread_is_digit(*at))
		return REFUSE(r, at, "the name of %s is no C identifier", what);
	memcpy(to, at, n);
	to[n] = '\0';
	return true;
}

/* [GROUP/][NAME], or GROUP.NAME. */
static bool
kprobe_take_event(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at, *slash = NULL, *dot = NULL;

	for (; *r->at != '\0' && *r->at != ' '; r->at++) {
		if (*r->at == '/' && slash == NULL)
			slash = r->at;
		else if (*r->at == '.' && dot == NULL)
			dot = r->at;
	}
	if (slash == NULL)
		slash = dot;
	if (slash != NULL) {
		if (!read_identifier(r, start, (size_t)(slash - start), "the group", d->group))
			return false;
		start = slash + 1;
		if (start == r->at)
			return true;
	}
	return read_identifier(r, start, (size_t)(r->at - start), "the probe", d->name);
}

/* p or r, and a name. */
static bool
take_head(struct reader *r, struct kdefinition *d)
{
	const char *number = r->at + 1;
	size_t n = 0;
	uint64_t v = 0;

	bool event = d->kind == KPROBE_AT_EVENT;

	snprintf(d->group, sizeof(d->group), "%s", kprobe_groups[d->kind]);
	if (event ? *r->at != 'e' : *r->at != 'p' && *r->at != 'r')
		return REFUSE(r, r->at, event ? "expected e:NAME" : "expected p:NAME or r:NAME");
	d->is_return = *r->at++ == 'r';
	/* Linux's MAXACTIVE; here there is no limit */
	while (kread_is_digit(number[0]) && ktr_is_word(number[n]))
		n++;
	if (n > 0 && !d->is_return)
		return REFUSE(r, number, "a number of calls: only a probe r has it");
	if (n > 0 && ktr_number(number, n, 10, &v) != KTR_NUMBER_OK)
		return REFUSE(r, number, "expected a number of calls");
	if (v > KPROBE_MAXACTIVE)
		return REFUSE(r, number, "the number of calls is more than %u", KPROBE_MAXACTIVE);
	d->maxactive = (unsigned)v;
	r->at += n;
	if (*r->at == ' ' || *r->at == '\0')
		return true;
	if (*r->at != ':')
		return REFUSE(r, r->at, "expected : and the probe's name");
	r->at++;
	return kprobe_take_event(r, d);
}

/* [(COUNTER)][%return] after the offset in a file. */
static bool
take_suffix(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at, *end;
	uint64_t counter;

	if (*r->at == '(') {
		end = strchr(r->at, ' ');
		while (*r->at != '\0' && r->at != end && *r->at != ')')
			r->at++;
		if (*r->at != ')')
			return REFUSE(r, r->at, "expected ) after the offset of the counter");
		if (r->at[1] != '\0' && r->at[1] != ' ')
			return REFUSE(r, r->at + 1, "expected a space after the counter");
		if (ktr_number(start + 1, (size_t)(r->at - start - 1), 0, &counter) !=
		    KTR_NUMBER_OK)
			return REFUSE(r, start + 1, "expected the offset of a counter");
		return REFUSE(r, start, "probes do not count in the program's memory");
	}
	if (strncmp(r->at, "%return", 7) == 0) { /* p:NAME FUNCTION%return is r:NAME FUNCTION */
		d->is_return = true;
		r->at += 7;
	}
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space after the place");
}

/* PATH:OFFSET. The last part of PATH becomes the probe's module. */
static bool
take_file(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at, *colon = NULL, *base = start;
	size_t n;

	for (; *r->at != '\0' && *r->at != ' '; r->at++) {
		if (*r->at == ':')
			colon = r->at;
		else if (*r->at == '/' && colon == NULL)
			base = r->at + 1;
	}
	if (colon == NULL || colon == base)
		return REFUSE(r, colon == NULL ? r->at : start, "expected PATH:OFFSET");
	d->path = (size_t)(colon - start);
	n = (size_t)(colon - base);
	n = n < sizeof(d->function) ? n : sizeof(d->function) - 1;
	memcpy(d->function, base, n);
	d->function[n] = '\0';
	r->at = colon + 1;
	return kread_number(r, "an offset in the file", &d->offset) && take_suffix(r, d);
}

/* SYSTEM.EVENT, or SYSTEM/EVENT. */
static bool
take_target(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at, *dot = strchr(start, '/');
	char system[KPROBE_EVENT], event[KPROBE_TARGET];
	size_t n = 0;

	while (start[n] != '\0' && start[n] != ' ')
		n++;
	if (dot == NULL || dot >= start + n)
		dot = strchr(start, '.');
	if (dot == NULL || dot >= start + n || dot == start || dot + 1 == start + n)
		return REFUSE(r, start, "expected SYSTEM.EVENT");
	d->path = n;
	r->at += n;
	n -= (size_t)(dot + 1 - start);
	snprintf(system, sizeof(system), "%.*s", (int)(dot - start), start);
	snprintf(event, sizeof(event), "%.*s", (int)n, dot + 1);
	if (n < sizeof(event))
		d->target = kprobe_events->find(system, event);
	if (d->target == NULL)
		return REFUSE_AS(r, -ENODEV, start, "no event %.*s", (int)d->path, start);
	snprintf(d->function, sizeof(d->function), "%s", event);
	return true;
}

static bool
take_place(struct reader *r, struct kdefinition *d)
{
	const char *start = r->at;
	int64_t offset = 0;

	d->place_at = (size_t)(start - r->text);
	if (d->kind == KPROBE_AT_EVENT)
		return take_target(r, d);
	if (d->kind == KPROBE_USER)
		return take_file(r, d);
	if (*r->at == '\0')
		return REFUSE(r, r->at,
			      "expected a place: FUNCTION, FUNCTION+OFFSET or an address");
	if (kread_is_digit(*r->at)) {
		if (!kread_number(r, "the address of an instruction", &d->address))
			return false;
	} else {
		if (!kread_name(r, "a function", ".", d->function, sizeof(d->function)))
			return false;
		if (*r->at == ':')
			return REFUSE(r, start, "no function of a module \"%s\"", d->function);
		d->address = ksym_address(d->function);
		if (d->address == 0)
			return REFUSE_AS(r, -ENOENT, start, "no function \"%s\"", d->function);
		if (*r->at == '+') {
			if (!kread_offset(r, "the offset of an instruction", &offset))
				return false;
			d->offset = (size_t)offset;
		}
	}
	if (*r->at != '(' && !take_suffix(r, d))
		return false;
	if (d->is_return && d->offset != 0)
		return REFUSE(r, start, "a return has no offset: expected the name of a function");
	return *r->at == '\0' || *r->at == ' ' ||
	       REFUSE(r, r->at, "expected a space after the place");
}

static void
skip_spaces(struct reader *r)
{
	while (*r->at == ' ')
		r->at++;
}

/* The name that Linux gives a probe. Of a file's name, it has what is before the first of . - _ */
static void
make_name(struct kdefinition *d)
{
	char kind = d->is_return ? 'r' : 'p';
	int n = 0;

	while (n < 10 && ktr_is_word(d->function[n]) && d->function[n] != '_')
		n++;
	if (d->kind == KPROBE_AT_EVENT)
		snprintf(d->name, sizeof(d->name), "%s", d->function);
	else if (d->kind == KPROBE_USER)
		snprintf(d->name, sizeof(d->name), "%c_%.*s_0x%zx", kind, n, d->function,
			 d->offset);
	else if (d->function[0] == '\0')
		snprintf(d->name, sizeof(d->name), "%c_0x%lx", kind, d->address);
	else
		snprintf(d->name, sizeof(d->name), "%c_%.40s_%zu", kind, d->function, d->offset);
	for (char *p = d->name; *p != '\0'; p++)
		if (*p == '.')
			*p = '_';
}

/* Reads "if FILTER". ftrace reads the filter itself. */
static bool
take_filter(struct reader *r, struct kdefinition *d)
{
	const char *expected = r->at + 3; /* after a space, which may be missing */

	r->at += 2;
	skip_spaces(r);
	d->filter = (size_t)(r->at - r->text);
	return *r->at != '\0' || REFUSE(r, expected, "expected a filter after if");
}

int
kprobe_parse(const char *text, enum kprobe_kind kind, struct kdefinition *d, char *err,
	     size_t errlen)
{
	struct reader r = {.text = text, .at = text, .err = err, .errlen = errlen, .d = d};
	bool good;

	*d = (struct kdefinition){.kind = kind};
	skip_spaces(&r);
	good = take_head(&r, d);
	skip_spaces(&r);
	good = good && take_place(&r, d);
	for (skip_spaces(&r); good && *r.at != '\0' && d->filter == 0; skip_spaces(&r))
		good = kind == KPROBE_AT_EVENT && strncmp(r.at, "if", 2) == 0 &&
			       (r.at[2] == ' ' || r.at[2] == '\0')
			   ? take_filter(&r, d)
			   : kread_argument(&r, d);
	if (good && d->name[0] == '\0')
		make_name(d);
	return good ? 0 : r.error != 0 ? r.error : -EINVAL;
}
