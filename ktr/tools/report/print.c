/*
 * print.c - prints the tables of a report: as text, in columns of the width that they need,
 * or as jsonl.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/report/report.h"

void
report_fixed_text(uint64_t v, unsigned digits, char to[REPORT_CELL])
{
	uint64_t unit = 1;
	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	snprintf(to, REPORT_CELL, "%" PRIu64 ".%0*" PRIu64, v / unit, (int)digits, v % unit);
}

/* A part of all, in hundredths of a percent. */
static uint64_t
share(uint64_t part, uint64_t all)
{
	return all > 0 ? (uint64_t)((__extension__(unsigned __int128) part * 10000 + all / 2) / all)
		       : 0;
}

/* Is it of texts? */
static bool
is_text(const struct report_column *c)
{
	return c->format == COLUMN_TEXT || c->format == COLUMN_PLACE || c->format == COLUMN_THREAD;
}

uint64_t
report_number(const struct report_column *c, const struct report_row *row)
{
	return c->format == COLUMN_NUMBER ? row->number : report_row_cell(row, c->cell);
}

void
report_number_text(const struct report_column *c, uint64_t v, char to[REPORT_CELL])
{
	static const unsigned digits[] = {[COLUMN_MS] = 6, [COLUMN_US] = 3, [COLUMN_SECONDS] = 9};
	if (c->format == COLUMN_NUMBER || c->format == COLUMN_COUNT)
		snprintf(to, REPORT_CELL, "%" PRIu64, v);
	else
		report_fixed_text(v, digits[c->format], to);
}

void
report_cell_text(const struct report_column *c, const struct report_row *row,
		 const struct report_row *total, char to[REPORT_CELL])
{
	const char *text = c->format == COLUMN_THREAD ? row->who.name
			   : is_text(c)               ? row->texts[c->cell]
						      : NULL;
	switch (c->format) {
	case COLUMN_TEXT:
	case COLUMN_PLACE:
	case COLUMN_THREAD:
		if (c->format == COLUMN_THREAD && row->who.serial != 0)
			snprintf(to, REPORT_CELL, "%" PRIu32 " %s", row->who.tid, text);
		else
			snprintf(to, REPORT_CELL, "%s", text != NULL ? text : "");
		break;
	case COLUMN_SHARE:
		report_fixed_text(share(report_number(c, row), total->cells[c->cell]), 2, to);
		break;
	default:
		report_number_text(c, report_number(c, row), to);
		break;
	}
}

bool
report_is_label(const struct report_column *c)
{
	return is_text(c) || c->format == COLUMN_NUMBER;
}

void
report_line_make(const struct report_column *columns, const struct report_row *row,
		 const struct report_row *total, const char *label, char (*cells)[REPORT_CELL])
{
	for (unsigned i = 0; columns[i].format != COLUMN_END; i++) {
		const struct report_column *c = &columns[i];
		cells[i][0] = '\0';
		if (row == NULL)
			snprintf(cells[i], REPORT_CELL, "%s", c->title);
		else if (label == NULL || !report_is_label(c))
			report_cell_text(c, row, total, cells[i]);
		else if (c->format != COLUMN_NUMBER || i == 0) {
			snprintf(cells[i], REPORT_CELL, "%s", label);
			label = "";
		}
	}
}

void
report_lines_print(struct report *r, const struct report_column *columns,
		   char (*cells)[REPORT_COLUMNS][REPORT_CELL], size_t lines)
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
			bool left = is_text(&columns[i]);
			size_t n = strlen(cells[line][i]);
			if (n > 0) { /* so that no line ends with blanks */
				out_pad(r->out, end + (left ? 0 : width[i] - n));
				out_printable(r->out, cells[line][i], n);
			}
			end += width[i] + 2;
		}
		size_t wide = out_column(r->out);
		r->out->widest = wide > r->out->widest ? wide : r->out->widest;
		out_char(r->out, '\n');
	}
}

static void
print_text(struct report *r, const struct report_table *t, const struct report_column *columns,
	   const struct report_row *total)
{
	size_t shown = r->rows > 0 && r->rows < t->count ? r->rows : t->count, lines = 0;
	struct report_row others = {.cells = {0}};
	char(*cells)[REPORT_COLUMNS][REPORT_CELL] = calloc(shown + 3, sizeof(*cells));
	if (cells == NULL) {
		report_no_memory(r);
		return;
	}
	report_line_make(columns, NULL, total, NULL, cells[lines++]);
	for (size_t i = 0; i < shown; i++)
		report_line_make(columns, t->rows[i], total, NULL, cells[lines++]);
	bool more = shown < t->count || t->has_others;
	if (more && !t->worst) {
		report_row_add(&others, &t->others);
		for (size_t i = shown; i < t->count; i++)
			report_row_add(&others, t->rows[i]);
		report_line_make(columns, &others, total, "(others)", cells[lines++]);
	}
	if (!t->worst && !t->overlaps && shown + more > 1)
		report_line_make(columns, total, total, "total", cells[lines++]);
	report_lines_print(r, columns, cells, lines);
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
		if (c->json == NULL || (label != NULL && report_is_label(c)))
			continue;
		out_printf(o, ",\"%s%s\":", c->json,
			   report_is_label(c) || c->format == COLUMN_COUNT ? "" : "_ns");
		if (is_text(c) && c->format != COLUMN_THREAD)
			out_json(o, row->texts[c->cell]);
		else if (c->format == COLUMN_THREAD)
			out_json(o, row->who.name);
		else
			out_number(o, report_number(c, row), 0);
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
	for (; report_is_label(&t->columns[n]); n++)
		columns[n] = t->columns[n];
	for (unsigned i = 0; i < REPORT_DECADES; i++)
		columns[n++] =
		    (struct report_column){titles[i], NULL, COLUMN_COUNT, CELL_BELOW + i};
	columns[n].format = COLUMN_END;
	return columns;
}

void
report_share_text(uint64_t part, uint64_t all, char to[REPORT_CELL])
{
	report_fixed_text(share(part, all), 2, to);
}

void
report_table_print(struct report *r, struct report_table *t)
{
	struct report_row total = {.cells = {0}};
	char known[REPORT_CELL];
	report_table_finish(r, t, &total);
	if (r->json) {
		print_json(r, t, &total);
	} else {
		report_share_text(r->known_ns[t->of_threads], r->all_ns[t->of_threads], known);
		out_printf(r->out, "\n%s: %s (%s %% known)\n", t->report, t->title, known);
		print_text(r, t, t->columns, &total);
		if (t->histogram)
			print_text(r, t, decades_of(t), &total);
	}
	free(total.buckets);
}
