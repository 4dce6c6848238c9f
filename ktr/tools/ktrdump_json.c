/*
 * ktrdump_json.c - one JSON object a line. Output is UTF-8 whatever the strings hold: bytes that
 * are not become U+FFFD.
 */
#include <string.h>

#include "ktr/event.h"
#include "ktr/fmt.h"
#include "ktr/tools/ktrdump.h"

/* Length of the UTF-8 sequence at p, 0 when it is none. */
static size_t
utf8_length(const unsigned char *p)
{
	size_t n = p[0] < 0x80   ? 1
		   : p[0] < 0xc2 ? 0
		   : p[0] < 0xe0 ? 2
		   : p[0] < 0xf0 ? 3
		   : p[0] < 0xf5 ? 4
				 : 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Not shortest, surrogates, above U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static void
json_string(FILE *out, const char *text)
{
	if (text == NULL) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	const unsigned char *p = (const unsigned char *)text;
	while (*p != '\0') {
		size_t n = utf8_length(p);
		if (n == 0) {
			fputs("\\ufffd", out);
			n = 1;
		} else if (*p == '"' || *p == '\\') {
			putc('\\', out);
			putc(*p, out);
		} else if (*p == '\n') {
			fputs("\\n", out);
		} else if (*p == '\t') {
			fputs("\\t", out);
		} else if (*p < 0x20 || *p == 0x7f) {
			fprintf(out, "\\u%04x", (unsigned)*p);
		} else {
			fwrite(p, 1, n, out);
		}
		p += n;
	}
	putc('"', out);
}

static void
json_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	json_string(out, text);
}

static const char *
no_string(void *arg, uint64_t value)
{
	(void)arg;
	(void)value;
	return "";
}

/* A number as its conversion's C type has it, in decimal. */
static void
json_number(FILE *out, const struct fmt_spec *s, uint64_t value)
{
	static const char *const modifiers[] = {
	    [FMT_CHAR] = "hh",     [FMT_SHORT] = "h",   [FMT_INT] = "",   [FMT_LONG] = "l",
	    [FMT_LONGLONG] = "ll", [FMT_INTMAX] = "j",  [FMT_SIZE] = "z", [FMT_PTRDIFF] = "t",
	    [FMT_POINTER] = "ll",  [FMT_STRING] = "ll",
	};
	char fmt[8], text[32];
	snprintf(fmt, sizeof(fmt), "%%%s%c", modifiers[s->type],
		 s->conv == 'd' || s->conv == 'c' ? 'd' : 'u');
	ktr_event_text(text, sizeof(text), fmt, &value, 1, no_string, NULL);
	fputs(text, out);
}

static void
json_arg(FILE *out, unsigned n, const struct fmt_spec *s, const struct ktr_decode_event *e)
{
	if (n > 0)
		putc(',', out);
	if (s->conv == 's' && (e->strings[n] != NULL || e->args[n] == 0))
		json_string(out, e->strings[n]);
	else
		json_number(out, s, e->args[n]);
}

static void
json_args(FILE *out, const struct ktr_decode_event *e)
{
	static const struct fmt_spec number = {.conv = 'u', .type = FMT_LONGLONG};
	static const struct fmt_spec star = {.conv = 'd', .type = FMT_INT};
	const char *fmt = e->site != NULL ? e->site->fmt : "";
	unsigned n = 0;
	while (*fmt != '\0' && n < e->nargs) {
		struct fmt_spec s;
		if (*fmt++ != '%')
			continue;
		fmt_scan(&fmt, &s);
		if (s.conv == 0 || s.conv == '%')
			continue;
		for (int stars = s.star_width + s.star_precision; stars > 0 && n < e->nargs;
		     stars--)
			json_arg(out, n++, &star, e);
		if (n < e->nargs)
			json_arg(out, n++, &s, e);
	}
	while (n < e->nargs)
		json_arg(out, n++, &number, e);
}

void
dump_json_event(struct dump *d, const struct ktr_decode_event *e, const char *text)
{
	const struct ktr_decode_site *site = e->site;
	char classes[512];
	FILE *out = d->out;
	fprintf(out, "{\"seq\":%llu,\"cpu\":%u,\"ns\":%lld,\"tid\":%u", (unsigned long long)e->seq,
		(unsigned)e->cpu, (long long)ktr_decode_ns(e->header, e->ticks), (unsigned)e->tid);
	json_member(out, "thread", e->thread);
	if (site != NULL) {
		dump_classes(e->header, site->classes, classes, sizeof(classes));
		json_member(out, "class", classes);
		json_member(out, "file", site->file);
		fprintf(out, ",\"line\":%u", (unsigned)site->line);
		json_member(out, "func", site->func);
		json_member(out, "fmt", site->fmt);
	} else {
		fputs(",\"class\":null,\"file\":null,\"line\":null,\"func\":null,\"fmt\":null",
		      out);
	}
	fputs(",\"args\":[", out);
	json_args(out, e);
	putc(']', out);
	json_member(out, "text", text);
	fputs("}\n", out);
}

void
dump_json_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	fprintf(d->out, "{\"gap\":%llu,\"cpu\":%u,\"from_ns\":%lld,\"to_ns\":%lld}\n",
		(unsigned long long)g->count, (unsigned)g->cpu,
		(long long)ktr_decode_ns(g->header, g->from_ticks),
		(long long)ktr_decode_ns(g->header, g->to_ticks));
}
