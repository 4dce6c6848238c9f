/* export_chrome_entry.c - the entries of Chrome's trace event JSON. */
#include "ktr/tools/export_chrome.h"

#define EXACT_MAX (UINT64_C(1) << 53) /* integers that a double has exactly */

void
chrome_put_time(struct line *l, uint64_t ns)
{
	line_number(l, ns / 1000, 0);
	line_char(l, '.');
	for (unsigned unit = 100; unit > 0; unit /= 10)
		line_char(l, (char)('0' + ns / unit % 10));
}

void
chrome_entry_begin(struct chrome_out *o, struct line *l, char phase, struct chrome_place at,
		   uint64_t ns)
{
	line_begin(l, o->f);
	line_text(l, o->any ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"");
	o->any = true;
	line_char(l, phase);
	line_text(l, "\",\"pid\":");
	line_number(l, at.pid, 0);
	line_text(l, ",\"tid\":");
	line_number(l, at.tid, 0);
	line_text(l, ",\"ts\":");
	chrome_put_time(l, ns);
}

void
chrome_entry_name(struct line *l, const char *name, const char *category)
{
	line_text(l, ",\"name\":");
	line_json(l, name);
	line_text(l, ",\"cat\":");
	line_json(l, category);
}

void
chrome_entry_end(struct line *l)
{
	line_char(l, '}');
	line_flush(l);
}

void
chrome_put_meta(struct chrome_out *o, const char *what, struct chrome_place at, const char *name,
		uint32_t order)
{
	struct line l;
	chrome_entry_begin(o, &l, 'M', at, 0);
	line_text(&l, ",\"name\":\"");
	line_text(&l, what);
	line_text(&l, "_name\",\"args\":{\"name\":");
	line_json(&l, name);
	line_char(&l, '}');
	chrome_entry_end(&l);
	chrome_entry_begin(o, &l, 'M', at, 0);
	line_text(&l, ",\"name\":\"");
	line_text(&l, what);
	line_text(&l, "_sort_index\",\"args\":{\"sort_index\":");
	line_number(&l, order, 0);
	line_char(&l, '}');
	chrome_entry_end(&l);
}

void
chrome_put_integer(struct line *l, uint64_t v, bool is_signed)
{
	bool negative = is_signed && (int64_t)v < 0;
	bool exact = (negative ? -v : v) <= EXACT_MAX;
	if (!exact)
		line_char(l, '"');
	if (negative)
		line_char(l, '-');
	line_number(l, negative ? -v : v, 0);
	if (!exact)
		line_char(l, '"');
}

void
chrome_put_args(struct line *l, const struct chrome_told *told)
{
	const struct ktr_decode_event *e = told->e;
	char bad[32];
	line_text(l, ",\"args\":{");
	for (unsigned i = 0; i < e->nargs; i++) {
		const struct ktr_param *p = &told->class->params[i];
		line_json(l, p->name);
		line_char(l, ':');
		if (p->string)
			line_json(l, export_string(e, i, bad));
		else
			chrome_put_integer(l, ktr_param_value(p, e->args[i]), p->is_signed);
		line_char(l, ',');
	}
	line_text(l, "\"on cpu\":");
	line_number(l, e->cpu, 0);
	line_char(l, '}');
}
