/*
 * print.c - prints the tables of a report: as text, in columns of the width that they need,
 * or as jsonl.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/report/report.h"

#define CELL_BYTES 64u /* of a cell's text, with the NUL */

/* A number with a point before its last `digits` digits. */
static void
put_fixed(char *to, uint64_t v, unsigned digits)
{
	uint64_t unit = 1;
	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	snprintf(to, CELL_BYTES, "%" PRIu64 ".%0*" PRIu64, v / unit, (int)digits, v % unit);
}

/* A part of all, in hundredths of a percent. */
static uint64_t
share(uint64_t part, uint64_t all)
{
	return all > 0 ? (uint64_t)((__extension__(unsigned __int128) part * 10000 + all / 2) / all)
		       : 0;
}

static uint64_t
number_of(const struct report_column *c, const struct report_row *row)
{
	return c->format == COLUMN_NUMBER ? row->number : report_row_cell(row, c->cell);
}

static void
cell_text(const struct report_column *c, const struct report_row *row,
	  const struct report_row *total, char *to)
{
	static const unsigned digits[] = {[COLUMN_MS] = 6, [COLUMN_US] = 3, [COLUMN_SECONDS] = 9};
	const char *text = c->format == COLUMN_TEXT ? row->texts[c->cell] : row->who.name;
	switch (c->format) {
	case COLUMN_TEXT:
	case COLUMN_THREAD:
		if (c->format == COLUMN_THREAD && row->who.serial != 0)
			snprintf(to, CELL_BYTES, "%" PRIu32 " %s", row->who.tid, text);
		else
			snprintf(to, CELL_BYTES, "%s", text != NULL ? text : "");
		break;
	case COLUMN_NUMBER:
	case COLUMN_COUNT:
		snprintf(to, CELL_BYTES, "%" PRIu64, number_of(c, row));
		break;
	case COLUMN_SHARE:
		put_fixed(to, share(number_of(c, row), total->cells[c->cell]), 2);
		break;
	default:
		put_fixed(to, number_of(c, row), digits[c->format]);
		break;
	}
}

static bool
is_label(const struct report_column *c)
{
	return c->format == COLUMN_TEXT || c->format == COLUMN_THREAD || c->format == COLUMN_NUMBER;
}

/* Makes a line of text. row NULL: the titles. label replaces the row's own labels, if not NULL. */
static void
line_make(const struct report_column *columns, const struct report_row *row,
	  const struct report_row *total, const char *label, char (*cells)[CELL_BYTES])
{
	for (unsigned i = 0; columns[i].format != COLUMN_END; i++) {
		const struct report_column *c = &columns[i];
		cells[i][0] = '\0';
		if (row == NULL)
			snprintf(cells[i], CELL_BYTES, "%s", c->title);
		else if (label == NULL || !is_label(c))
			cell_text(c, row, total, cells[i]);
		else if (c->format != COLUMN_NUMBER || i == 0) {
			snprintf(cells[i], CELL_BYTES, "%s", label);
			label = "";
		}
	}
}

static void
print_lines(struct report *r, const struct report_column *columns,
	    char (*cells)[REPORT_COLUMNS][CELL_BYTES], size_t lines)
{
	size_t width[REPORT_COLUMNS] = {0};
	for (size_t line = 0; line < lines; line++) {
		for (unsigned i = 0; columns[i].format != COLUMN_END; i++) {
			size_t n = strlen(cells[line][i]);
			width[i] = n > width[i] ? n : width[i];
		}
	}
	for (size_t line = 0; line < lines; line++) {
		size_t end = 0;
		out_begin(r->out);
		for (unsigned i = 0; columns[i].format != COLUMN_END; i++) {
			bool left =
			    columns[i].format == COLUMN_TEXT || columns[i].format == COLUMN_THREAD;
			size_t n = strlen(cells[line][i]);
			if (n > 0) { /* so that no line ends with blanks */
				out_pad(r->out, end + (left ? 0 : width[i] - n));
				out_printable(r->out, cells[line][i], n);
			}
			end += width[i] + 2;
		}
		out_char(r->out, '\n');
	}
}

static void
print_text(struct report *r, const struct report_table *t, const struct report_column *columns,
	   const struct report_row *total)
{
	size_t shown = r->rows > 0 && r->rows < t->count ? r->rows : t->count, lines = 0;
	struct report_row others = {.cells = {0}};
	char(*cells)[REPORT_COLUMNS][CELL_BYTES] = calloc(shown + 3, sizeof(*cells));
	if (cells == NULL) {
		report_no_memory(r);
		return;
	}
	line_make(columns, NULL, total, NULL, cells[lines++]);
	for (size_t i = 0; i < shown; i++)
		line_make(columns, t->rows[i], total, NULL, cells[lines++]);
	bool more = shown < t->count || t->has_others;
	if (more && !t->worst) {
		report_row_add(&others, &t->others);
		for (size_t i = shown; i < t->count; i++)
			report_row_add(&others, t->rows[i]);
		line_make(columns, &others, total, "(others)", cells[lines++]);
	}
	if (!t->worst && !t->overlaps && shown + more > 1)
		line_make(columns, total, total, "total", cells[lines++]);
	print_lines(r, columns, cells, lines);
	free(others.buckets);
	free(cells);
}

static void
json_row(struct report *r, const struct report_table *t, const struct report_row *row,
	 const char *label)
{
	struct out *o = r->out;
	out_printf(o, "{\"report\":\"%s\",\"table\":\"%s\"", t->report, t->name);
	if (label != NULL)
		out_printf(o, ",\"row\":\"%s\"", label);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		if (c->json == NULL || (label != NULL && is_label(c)))
			continue;
		out_printf(o, ",\"%s%s\":", c->json,
			   is_label(c) || c->format == COLUMN_COUNT ? "" : "_ns");
		if (c->format == COLUMN_TEXT)
			out_json(o, row->texts[c->cell]);
		else if (c->format == COLUMN_THREAD)
			out_json(o, row->who.name);
		else
			out_number(o, number_of(c, row), 0);
		if (c->format == COLUMN_THREAD)
			out_printf(o, ",\"tid\":%" PRIu32, row->who.tid);
	}
	if (label != NULL && row != &t->others) /* the total */
		out_printf(o, ",\"known_ns\":%" PRIu64 ",\"all_ns\":%" PRIu64,
			   r->known_ns[t->of_threads], r->all_ns[t->of_threads]);
	for (unsigned i = 0; t->histogram && i < REPORT_DECADES; i++)
		out_printf(o, "%s%" PRIu64, i == 0 ? ",\"histogram\":[" : ",",
			   row->cells[CELL_BELOW + i]);
	out_text(o, t->histogram ? "]}\n" : "}\n");
}

static void
print_json(struct report *r, const struct report_table *t, const struct report_row *total)
{
	for (size_t i = 0; i < t->count; i++)
		json_row(r, t, t->rows[i], NULL);
	if (t->has_others && !t->worst)
		json_row(r, t, &t->others, "others");
	if (!t->worst && !t->overlaps)
		json_row(r, t, total, "total");
}

/* The columns of a histogram: the table's labels, then the number of samples in each decade. */
static const struct report_column *
decades_of(const struct report_table *t)
{
	static const char *const titles[REPORT_DECADES] = {"<1 us",  "<10 us",  "<100 us", "<1 ms",
							   "<10 ms", "<100 ms", "longer"};
	static struct report_column columns[REPORT_COLUMNS];
	unsigned n = 0;
	for (; is_label(&t->columns[n]); n++)
		columns[n] = t->columns[n];
	for (unsigned i = 0; i < REPORT_DECADES; i++)
		columns[n++] =
		    (struct report_column){titles[i], NULL, COLUMN_COUNT, CELL_BELOW + i};
	columns[n].format = COLUMN_END;
	return columns;
}

void
report_table_print(struct report *r, struct report_table *t)
{
	struct report_row total = {.cells = {0}};
	char known[32];
	report_table_finish(r, t, &total);
	if (r->json) {
		print_json(r, t, &total);
	} else {
		put_fixed(known, share(r->known_ns[t->of_threads], r->all_ns[t->of_threads]), 2);
		out_printf(r->out, "\n%s: %s (%s %% known)\n", t->report, t->title, known);
		print_text(r, t, t->columns, &total);
		if (t->histogram)
			print_text(r, t, decades_of(t), &total);
	}
	free(total.buckets);
}
