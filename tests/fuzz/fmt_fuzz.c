/*
 * fmt_fuzz.c - any format, with arguments of any value: each argument is fetched once and in order,
 * the returned length is that of the output, and a conversion that C defines prints what the C
 * library's printf prints.
 */
#include <stdbool.h>
#include <string.h>

#include "ktr/event.h"
#include "ktr/fmt.h"
#include "tests/fuzz/fuzz.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

#define FORMAT_MAX 400
#define ARGS       64 /* later arguments repeat these */
#define TEXT_MAX   4096

static const char *const texts[] = {"", "a", "hello", "a longer text than most widths here"};

static struct run {
	uint64_t args[ARGS];
	size_t fetched, expected;
	enum fmt_type types[2 * FORMAT_MAX]; /* as fmt_scan() says */
	size_t put;
	char text[TEXT_MAX];
} run;

static void
on_put(void *arg, const char *text, size_t n)
{
	struct run *r = arg;
	size_t room = r->put < sizeof(r->text) ? sizeof(r->text) - r->put : 0;

	FUZZ_CHECK(n > 0, "a piece of nothing");
	memcpy(r->text + sizeof(r->text) - room, text, n < room ? n : room);
	r->put += n;
}

static uint64_t
on_fetch(void *arg, enum fmt_type type)
{
	struct run *r = arg;

	FUZZ_CHECK(r->fetched < r->expected, "argument %zu of %zu", r->fetched, r->expected);
	FUZZ_CHECK(type == r->types[r->fetched], "argument %zu is of type %d, expected %d",
		   r->fetched, type, r->types[r->fetched]);
	return r->args[r->fetched++ % ARGS];
}

static const char *
on_string(void *arg, uint64_t value)
{
	(void)arg;
	return value % 8 < 4 ? texts[value % 8] : NULL;
}

static const char *
on_event_string(void *arg, unsigned i, uint64_t value)
{
	(void)i;
	return on_string(arg, value);
}

/* Does C say what this conversion prints, and in less than our limits? */
static bool
is_defined(const char *text, size_t len, const struct fmt_spec *s)
{
	bool number = strchr("duxXo", s->conv) != NULL;

	if (s->width >= 1000 || s->precision >= 1000 || s->star_width || s->star_precision ||
	    memchr(text, '\'', len) != NULL || s->conv == '%' || s->conv == 'I' || s->conv == 'D' ||
	    s->name != NULL)
		return false;
	if (s->alt && strchr("xXo", s->conv) == NULL)
		return false;
	if (!number && (s->zero || strcspn(text, "hljzt") < len))
		return false;
	if (strchr("pc", s->conv) != NULL && s->precision >= 0)
		return false;
	return s->conv == 'd' || !(s->plus || s->space);
}

/* Compares one conversion with the C library's. */
static void
check_conversion(const char *text, size_t len, const struct fmt_spec *s, uint64_t value)
{
	char format[FORMAT_MAX + 1], ours[TEXT_MAX], theirs[TEXT_MAX];
	const char *string = texts[value % 4];
	int n, m;

	if (!is_defined(text, len, s))
		return;
	memcpy(format, text, len);
	format[len] = '\0';
	if (s->conv == 's') {
		n = fmt_snprintf(ours, sizeof(ours), format, string);
		m = snprintf(theirs, sizeof(theirs), format, string);
	} else {
		value += s->conv == 'p' && value == 0; /* "(nil)" is the C library's own */
		n = fmt_snprintf(ours, sizeof(ours), format, value);
		m = snprintf(theirs, sizeof(theirs), format, value);
	}
	FUZZ_CHECK(n == m && n < TEXT_MAX && memcmp(ours, theirs, (size_t)n + 1) == 0,
		   "\"%s\" of %#jx: \"%s\", expected \"%s\"", format, (uintmax_t)value, ours,
		   theirs);
}

/* Finds which arguments the format takes. */
static void
scan(struct run *r, const char *fmt)
{
	for (const char *p = fmt; (p = strchr(p, '%')) != NULL;) {
		const char *from = p++;
		struct fmt_spec s;

		fmt_scan(&p, &s);
		FUZZ_CHECK(p > from && p <= fmt + strlen(fmt), "%td", p - fmt);
		FUZZ_CHECK((s.conv == 0) == (p == from + 1), "'%c' at \"%s\"", s.conv, from);
		if (s.conv == 0 || s.conv == '%')
			continue;
		check_conversion(from, (size_t)(p - from), &s, r->args[r->expected % ARGS]);
		for (unsigned stars = s.star_width + s.star_precision; stars > 0; stars--)
			r->types[r->expected++] = FMT_INT;
		r->types[r->expected++] = s.type;
	}
}

/* The text of an event in a buffer of any size is a prefix of the whole text. */
static void
check_event(const struct run *r, const char *fmt, size_t room)
{
	char *cut = malloc(room);
	struct ktr_event_plan plan;
	int n = ktr_event_text(cut, room, NULL, fmt, r->args, 6, on_event_string, NULL);
	size_t kept = n < (int)room ? (size_t)n : room - 1;

	FUZZ_CHECK(n >= 0 && cut[kept] == '\0', "%d characters", n);
	FUZZ_CHECK(r->expected > 6 || ((size_t)n == r->put && kept <= sizeof(r->text) &&
				       memcmp(cut, r->text, kept) == 0),
		   "%d characters \"%s\", expected %zu", n, cut, r->put);
	FUZZ_CHECK(ktr_event_text(NULL, 0, NULL, fmt, r->args, 6, on_event_string, NULL) == n, "%d",
		   n);
	/* With a plan it is the same. */
	char *planned = malloc(room);
	ktr_event_plan(&plan, fmt);
	FUZZ_CHECK(ktr_event_text(planned, room, &plan, fmt, r->args, 6, on_event_string, NULL) ==
			   n &&
		       memcmp(planned, cut, kept + 1) == 0,
		   "\"%s\", without a plan \"%s\"", planned, cut);
	free(planned);
	(void)ktr_event_strings(fmt);
	free(cut);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fmt_ops ops = {on_put, on_fetch, on_string};
	struct fuzz_input in = {data, size};
	size_t room = fuzz_byte(&in) + 1u, n;
	char *fmt;

	memset(&run, 0, sizeof(run));
	for (unsigned i = 0, count = fuzz_byte(&in) % ARGS; i < count; i++)
		run.args[i] = fuzz_number(&in);
	fmt = strndup((const char *)in.p, in.left < FORMAT_MAX ? in.left : FORMAT_MAX);
	FUZZ_CHECK(fmt != NULL, "no memory");
	scan(&run, fmt);
	n = fmt_format(&ops, &run, fmt);
	FUZZ_CHECK(n == run.put, "%zu characters, %zu were put", n, run.put);
	FUZZ_CHECK(run.fetched == run.expected, "%zu of %zu arguments", run.fetched, run.expected);
	FUZZ_CHECK(n <= strlen(fmt) * 3 * FMT_PAD_MAX, "%zu characters of \"%s\"", n, fmt);
	check_event(&run, fmt, room);
	free(fmt);
	return 0;
}
