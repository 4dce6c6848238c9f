/*
 * ktrdump_json.c - one JSON object a line. Output is UTF-8 whatever the strings hold: bytes that
 * are not become U+FFFD.
 */
#include <inttypes.h>

#include "ktr/tools/ktrdump.h"

static void
json_member(struct out *l, const char *name, const char *text)
{
	out_text(l, ",\"");
	out_text(l, name);
	out_text(l, "\":");
	out_json(l, text);
}

/* The parameters of a site, from a cache by site number. */
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
json_args(struct out *l, const struct ktr_decode_event *e, const struct ktr_param *p)
{
	for (unsigned n = 0; n < e->nargs; n++) {
		if (n > 0)
			out_char(l, ',');
		uint64_t value = ktr_param_value(&p[n], e->args[n]);
		if (p[n].string && (e->strings[n] != NULL || value == 0))
			out_json(l, e->strings[n]);
		else if (p[n].is_signed)
			out_signed(l, (int64_t)value);
		else
			out_number(l, value, 0);
	}
}

static void
json_names(struct out *l, const struct ktr_decode_event *e, const struct ktr_param *p)
{
	for (unsigned n = 0; n < e->nargs; n++) {
		if (n > 0)
			out_char(l, ',');
		out_json(l, p[n].name);
	}
}

void
dump_json_event(struct dump *d, const struct ktr_decode_event *e, const char *text)
{
	const struct ktr_decode_site *site = e->site;
	char classes[512];
	struct out *l = &d->out;
	out_text(l, "{\"seq\":");
	out_number(l, e->seq, 0);
	out_text(l, ",\"cpu\":");
	out_number(l, e->cpu, 0);
	out_text(l, ",\"ns\":");
	out_signed(l, ktr_decode_ns(e->header, e->ticks));
	out_text(l, ",\"tid\":");
	out_number(l, e->tid, 0);
	json_member(l, "thread", e->thread);
	if (site != NULL) {
		dump_classes(e->header, site->classes, classes, sizeof(classes));
		json_member(l, "class", classes);
		json_member(l, "file", site->file);
		out_text(l, ",\"line\":");
		out_number(l, site->line, 0);
		json_member(l, "func", site->func);
		json_member(l, "fmt", site->fmt);
	} else {
		out_text(l, ",\"class\":null,\"file\":null,\"line\":null,\"func\":null,"
			    "\"fmt\":null");
	}
	out_text(l, ",\"args\":[");
	const struct ktr_param *params = json_params(d, e);
	json_args(l, e, params);
	out_text(l, "],\"names\":[");
	json_names(l, e, params);
	out_char(l, ']');
	json_member(l, "text", text);
	out_text(l, "}\n");
}

void
dump_json_part(struct dump *d, const struct ktr_decode_event *e)
{
	out_printf(&d->out, "{\"part\":%" PRIu64 ",\"cpu\":%" PRIu32 "}\n", e->seq, e->cpu);
}

void
dump_json_gap(struct dump *d, const struct ktr_decode_gap *g)
{
	out_printf(&d->out,
		   "{\"gap\":%" PRIu64 ",\"cpu\":%" PRIu32 ",\"why\":\"%s\",\"from_ns\":%" PRId64
		   ",\"to_ns\":%" PRId64 "}\n",
		   g->count, g->cpu, ktr_gap_reason_name(g->reason),
		   ktr_decode_ns(g->header, g->from_ticks), ktr_decode_ns(g->header, g->to_ticks));
}
