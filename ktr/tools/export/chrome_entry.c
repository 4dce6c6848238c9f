/* chrome_entry.c - the entries of Chrome's trace event JSON. */
#include "ktr/tools/export/chrome.h"

#include <inttypes.h>

#define EXACT_MAX (UINT64_C(1) << 53) /* integers that a double has exactly */

void
chrome_put_time(struct out *l, uint64_t ns)
{
	out_number(l, ns / 1000, 0);
	out_char(l, '.');
	for (unsigned unit = 100; unit > 0; unit /= 10)
		out_char(l, (char)('0' + ns / unit % 10));
}

void
chrome_entry_begin(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns)
{
	struct out *l = &o->out;
	out_text(l, o->any ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"");
	o->any = true;
	out_char(l, phase);
	out_text(l, "\",\"pid\":");
	out_number(l, at.pid, 0);
	out_text(l, ",\"tid\":");
	out_number(l, at.tid, 0);
	out_text(l, ",\"ts\":");
	chrome_put_time(l, ns);
}

void
chrome_entry_name(struct out *l, const char *name, const char *category)
{
	out_text(l, ",\"name\":");
	out_json(l, name);
	out_text(l, ",\"cat\":");
	out_json(l, category);
}

void
chrome_entry_end(struct out *l)
{
	out_char(l, '}');
}

void
chrome_put_meta(struct chrome_out *o, const char *what, struct chrome_place at, const char *name,
		uint32_t order)
{
	struct out *l = &o->out;
	chrome_entry_begin(o, 'M', at, 0);
	out_printf(l, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
	out_json(l, name);
	out_char(l, '}');
	chrome_entry_end(l);
	chrome_entry_begin(o, 'M', at, 0);
	out_printf(l, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}", what,
		   order);
	chrome_entry_end(l);
}

void
chrome_put_integer(struct out *l, uint64_t v, bool is_signed)
{
	bool negative = is_signed && (int64_t)v < 0;
	bool exact = (negative ? -v : v) <= EXACT_MAX;
	if (!exact)
		out_char(l, '"');
	if (negative)
		out_char(l, '-');
	out_number(l, negative ? -v : v, 0);
	if (!exact)
		out_char(l, '"');
}

void
chrome_put_args(struct out *l, const struct chrome_told *told)
{
	const struct ktr_decode_event *e = told->e;
	char bad[32];
	out_text(l, ",\"args\":{");
	for (unsigned i = 0; i < e->nargs; i++) {
		const struct ktr_param *p = &told->class->params[i];
		out_json(l, p->name);
		out_char(l, ':');
		if (p->string)
			out_json(l, export_string(e, i, bad));
		else
			chrome_put_integer(l, ktr_param_value(p, e->args[i]), p->is_signed);
		out_char(l, ',');
	}
	out_text(l, "\"on cpu\":");
	out_number(l, e->cpu, 0);
	out_char(l, '}');
}

void
chrome_put_begin(struct chrome_out *o, struct chrome_place at, uint64_t ns, const char *name,
		 const char *category)
{
	struct out *l = &o->out;
	chrome_entry_begin(o, 'B', at, ns);
	chrome_entry_name(l, name, category);
	chrome_entry_end(l);
}

void
chrome_put_end(struct chrome_out *o, struct chrome_place at, uint64_t ns, char *name,
	       const char *category)
{
	struct out *l = &o->out;
	if (name[0] == '\0')
		return;
	chrome_entry_begin(o, 'E', at, ns);
	chrome_entry_name(l, name, category);
	chrome_entry_end(l);
	name[0] = '\0';
}

void
chrome_put_flow(struct chrome_out *o, char phase, struct chrome_place at, uint64_t ns,
		uint64_t flow)
{
	struct out *l = &o->out;
	chrome_entry_begin(o, phase, at, ns);
	chrome_entry_name(l, "wakeup", "wakeup");
	out_printf(l, "%s,\"id\":%" PRIu64, phase == 'f' ? ",\"bp\":\"e\"" : "", flow);
	chrome_entry_end(l);
}
