/*
 * ktrdump_json.c - one JSON object a line. Output is UTF-8 whatever the strings hold: bytes that
 * are not become U+FFFD.
 */
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/line.h"
#include "ktr/tools/utf8.h"

/* Length of the text at p that stands as it is. */
static size_t
plain_length(const unsigned char *p)
{
	size_t n = 0;
	while (p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

void
line_json(struct line *l, const char *text)
{
	if (text == NULL) {
		line_text(l, "null");
		return;
	}
	line_char(l, '"');
	const unsigned char *p = (const unsigned char *)text;
	while (*p != '\0') {
		size_t n = plain_length(p);
		if (n > 0) {
			line_put(l, (const char *)p, n);
			p += n;
			continue;
		}
		n = utf8_length(p);
		if (n == 0) {
			line_text(l, "\\ufffd");
			n = 1;
		} else if (*p == '"' || *p == '\\') {
			line_char(l, '\\');
			line_char(l, (char)*p);
		} else if (*p == '\n') {
			line_text(l, "\\n");
		} else if (*p == '\t') {
			line_text(l, "\\t");
		} else if (*p < 0x20 || *p == 0x7f) {
			char text[8];
			snprintf(text, sizeof(text), "\\u%04x", (unsigned)*p);
			line_text(l, text);
		} else {
			line_put(l, (const char *)p, n);
		}
		p += n;
	}
	line_char(l, '"');
}

static void
json_member(struct line *l, const char *name, const char *text)
{
	line_text(l, ",\"");
	line_text(l, name);
	line_text(l, "\":");
	line_json(l, text);
}

/* What formats say of parameters, each read once for as long as its place here is its own. */
static const struct ktr_param *
json_params(struct dump *d, const struct ktr_decode_event *e)
{
	struct dump_params *known = &d->params[e->site_number % DUMP_PARAMS];
	if (e->site == NULL || known->site != e->site) {
		ktr_params_scan(e->site != NULL ? e->site->fmt : "", known->params, KTR_PARAM_MAX);
		known->site = e->site;
	}
	return known->params;
}

static void
json_args(struct line *l, const struct ktr_decode_event *e, const struct ktr_param *p)
{
	for (unsigned n = 0; n < e->nargs; n++) {
		if (n > 0)
			line_char(l, ',');
		uint64_t value = ktr_param_value(&p[n], e->args[n]);
		if (p[n].string && (e->strings[n] != NULL || value == 0))
			line_json(l, e->strings[n]);
		else if (p[n].is_signed)
			line_signed(l, (int64_t)value);
		else
			line_number(l, value, 0);
	}
}

static void
json_names(struct line *l, const struct ktr_decode_event *e, const struct ktr_param *p)
{
	for (unsigned n = 0; n < e->nargs; n++) {
		if (n > 0)
			line_char(l, ',');
		line_json(l, p[n].name);
	}
}

void
dump_json_event(struct dump *d, const struct ktr_decode_event *e, const char *text)
{
	const struct ktr_decode_site *site = e->site;
	char classes[512];
	struct line line, *l = &line;
	line_begin(l, d->out);
	line_text(l, "{\"seq\":");
	line_number(l, e->seq, 0);
	line_text(l, ",\"cpu\":");
	line_number(l, e->cpu, 0);
	line_text(l, ",\"ns\":");
	line_signed(l, ktr_decode_ns(e->header, e->ticks));
	line_text(l, ",\"tid\":");
	line_number(l, e->tid, 0);
	json_member(l, "thread", e->thread);
	if (site != NULL) {
		dump_classes(e->header, site->classes, classes, sizeof(classes));
		json_member(l, "class", classes);
		json_member(l, "file", site->file);
		line_text(l, ",\"line\":");
		line_number(l, site->line, 0);
		json_member(l, "func", site->func);
		json_member(l, "fmt", site->fmt);
	} else {
		line_text(l, ",\"class\":null,\"file\":null,\"line\":null,\"func\":null,"
			     "\"fmt\":null");
	}
	line_text(l, ",\"args\":[");
	const struct ktr_param *params = json_params(d, e);
	json_args(l, e, params);
	line_text(l, "],\"names\":[");
	json_names(l, e, params);
	line_char(l, ']');
	json_member(l, "text", text);
	line_text(l, "}\n");
	line_flush(l);
}

void
dump_json_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	fprintf(d->out,
		"{\"gap\":%llu,\"cpu\":%u,\"why\":\"%s\",\"from_ns\":%lld,\"to_ns\":%lld}\n",
		(unsigned long long)g->count, (unsigned)g->cpu, ktr_gap_reason_name(g->reason),
		(long long)ktr_decode_ns(g->header, g->from_ticks),
		(long long)ktr_decode_ns(g->header, g->to_ticks));
}
