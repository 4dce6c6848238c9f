/* html_page.c - the page around the columns: the files of html/, and the descriptions of the
 * reports' tables. */
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/export/html.h"

/* The files are part of the program: NAME to NAME_end. Their paths are those from the repository,
 * where the compiler runs. */
#define FILE_OF(name, path)                                                                    \
	extern const char file_##name[], file_##name##_end[];                                  \
	__asm__(".pushsection .rodata\nfile_" #name ":\n.incbin \"ktr/tools/export/html/" path \
		"\"\nfile_" #name "_end:\n.popsection\n")

FILE_OF(style, "page.css");
FILE_OF(body, "page.html");
FILE_OF(data, "data.js");
FILE_OF(text, "text.js");
FILE_OF(table, "table.js");
FILE_OF(lanes, "lanes.js");
FILE_OF(draw, "draw.js");
FILE_OF(page, "page.js");

#define PUT(f, name) fwrite(file_##name, 1, (size_t)(file_##name##_end - file_##name), f)

void
html_page_begin(FILE *f)
{
	fputs(
	    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>ktrdump</title>\n<style>\n",
	    f);
	PUT(f, style);
	fputs("</style>\n", f);
	PUT(f, body);
	fputs("<script>\n", f);
	PUT(f, data);
	PUT(f, text);
	PUT(f, table);
	PUT(f, lanes);
	PUT(f, draw);
	PUT(f, page);
	fputs("</script>\n", f);
}

void
html_page_column(FILE *f, const char *name)
{
	fprintf(f, "<script type=\"text/plain\" id=\"%s\">", name);
}

void
html_page_column_end(FILE *f)
{
	fputs("</script>\n", f);
}

void
html_page_end(FILE *f)
{
	fputs("<script>start();</script>\n</html>\n", f);
}

static void
columns_put(struct out *o, const struct report_column *c)
{
	static const char *const formats[] = {
	    [COLUMN_TEXT] = "text",     [COLUMN_PLACE] = "text",      [COLUMN_THREAD] = "thread",
	    [COLUMN_NUMBER] = "number", [COLUMN_COUNT] = "count",     [COLUMN_MS] = "ms",
	    [COLUMN_US] = "us",         [COLUMN_SECONDS] = "seconds", [COLUMN_SHARE] = "share"};
	for (unsigned i = 0; c[i].format != COLUMN_END; i++) {
		out_text(o, i > 0 ? ",{\"title\":" : "{\"title\":");
		out_json(o, c[i].title);
		out_text(o, ",\"json\":");
		out_json(o, c[i].json);
		out_printf(o, ",\"format\":\"%s\",\"cell\":%u}", formats[c[i].format], c[i].cell);
	}
}

static void
table_put(struct out *o, const struct report_table *t)
{
	out_printf(o, "{\"report\":\"%s\",\"name\":\"%s\",\"title\":", t->report, t->name);
	out_json(o, t->title);
	out_printf(o,
		   ",\"of\":%u,\"key\":%u,\"weight\":%u,\"place\":%d,\"histogram\":%d,"
		   "\"worst\":%d,\"overlaps\":%d,\"threads\":%d,\"columns\":[",
		   t->of, t->key, t->weight, t->place != PLACE_NONE, t->histogram, t->worst,
		   t->overlaps, t->of_threads);
	columns_put(o, t->columns);
	out_text(o, "]}");
}

void
html_head_put(struct out *o, const struct html_head *h)
{
	static const char *const kinds[] = {
	    [SAMPLE_CPU] = "cpu",           [SAMPLE_SWITCH] = "switch",
	    [SAMPLE_RUN] = "run",           [SAMPLE_STATE] = "state",
	    [SAMPLE_WAIT] = "wait",         [SAMPLE_IRQ] = "irq",
	    [SAMPLE_TIMER] = "timer",       [SAMPLE_CALL] = "call",
	    [SAMPLE_FAULT] = "fault",       [SAMPLE_TRAP] = "trap",
	    [SAMPLE_WAKEUP] = "wakeup",     [SAMPLE_FUNCTION] = "function",
	    [SAMPLE_TIMED] = "timed",       [SAMPLE_TIMED_AT] = "timed_at",
	    [SAMPLE_LOCK] = "lock",         [SAMPLE_HELD] = "held",
	    [SAMPLE_TAKEN] = "taken",       [SAMPLE_SENT] = "sent",
	    [SAMPLE_RECEIVED] = "received", [SAMPLE_ROUND_TRIP] = "round_trip",
	    [SAMPLE_BIO] = "bio",           [SAMPLE_BIO_FILE] = "bio_file"};
	_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == SAMPLE_KINDS, "each kind has a name");
	out_text(o, "{\"build\":");
	out_json(o, h->header->build);
	out_text(o, ",\"arch\":");
	out_json(o, h->header->arch);
	out_printf(o,
		   ",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
		   "\",\"cpus\":%u,\"cells\":%d,\"more\":%d,\"states\":[",
		   h->from_ns, h->to_ns, h->cpus, CELLS, CELL_MORE);
	for (int s = 0; s <= ACTIVITY_DEAD; s++)
		out_printf(o, "%s\"%s\"", s > 0 ? "," : "",
			   activity_state_name((enum activity_state)s));
	out_text(o, "],\"reasons\":[");
	for (int reason = 0; reason <= KTR_GAP_LEFT; reason++)
		out_printf(o, "%s\"%s\"", reason > 0 ? "," : "",
			   ktr_gap_reason_name((enum ktr_gap_reason)reason));
	out_text(o, "],\"kinds\":{");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		out_printf(o, "%s\"%s\":%zu", i > 0 ? "," : "", kinds[i], i);
	out_text(o, "},\"tables\":[");
	bool first = true;
	for (unsigned n = 0; report_name(n) != NULL; n++) {
		for (struct report_table *const *t = report_tables; *t != NULL; t++) {
			if (strcmp((*t)->report, report_name(n)) != 0)
				continue;
			out_text(o, first ? "" : ",");
			table_put(o, *t);
			first = false;
		}
	}
	out_text(o, "]}");
}
