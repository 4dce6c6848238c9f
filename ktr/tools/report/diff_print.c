/*
 * diff_print.c - prints what changed between two runs, as text or jsonl.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/report/diff.h"

static const struct report_row nothing;

/* The columns of the printed text: names, each figure of A and its change, the largest change. */
static void
columns_make(const struct report_table *t, struct report_column to[REPORT_COLUMNS])
{
	const struct report_column *first = to;
	const struct report_column *figures[REPORT_COLUMNS];
	unsigned n = diff_figures(t, figures);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++)
		if (diff_names_row(c))
			*to++ = *c;
	assert((size_t)(to - first) + 2 * n + 2 <= REPORT_COLUMNS);
	for (unsigned i = 0; i < n; i++) {
		*to++ = *figures[i];
		*to++ = (struct report_column){"change", NULL, COLUMN_COUNT, 0};
	}
	*to++ = (struct report_column){"%", NULL, COLUMN_COUNT, 0};
	*to = (struct report_column){.format = COLUMN_END};
}

/* What the largest change is called. */
static void
change_text(const struct diff_row *row, char *to)
{
	char number[REPORT_CELL];
	report_fixed_text(row->percent, 2, number);
	if (row->runs[0] == NULL || row->runs[1] == NULL)
		snprintf(to, REPORT_CELL, "%s", row->runs[0] == NULL ? "new" : "gone");
	else if (row->percent == DIFF_FROM_ZERO)
		snprintf(to, REPORT_CELL, "from 0");
	else
		snprintf(to, REPORT_CELL, "%s%.40s",
			 row->percent == 0 ? ""
			 : row->falls      ? "-"
					   : "+",
			 number);
}

static void
label_text(const struct report_column *c, const struct diff_row *row, char *to)
{
	const struct report_row *a = row->runs[0], *b = row->runs[1];
	if (c->format == COLUMN_THREAD && a != NULL && b != NULL && a->who.tid != b->who.tid)
		snprintf(to, REPORT_CELL, "%" PRIu32 "/%" PRIu32 " %s", a->who.tid, b->who.tid,
			 a->who.name);
	else
		report_cell_text(c, a != NULL ? a : b, &nothing, to);
}

/* Makes a line of text. label, if not NULL, stands for what names the row. */
static void
line_make(const struct report_diff *d, const struct report_column *columns,
	  const struct diff_row *row, const char *label, char (*cells)[REPORT_CELL])
{
	char number[REPORT_CELL];
	const char *lost[2] = {diff_is_whole(&d->heads[0]) ? "" : "~",
			       diff_is_whole(&d->heads[1]) ? "" : "~"};
	unsigned i = 0;
	for (; report_is_label(&columns[i]); i++) {
		cells[i][0] = '\0';
		if (label == NULL)
			label_text(&columns[i], row, cells[i]);
		else if (i == 0)
			snprintf(cells[i], REPORT_CELL, "%s", label);
	}
	for (; columns[i + 1].format != COLUMN_END; i += 2) {
		uint64_t a = diff_figure(&columns[i], row, 0), b = diff_figure(&columns[i], row, 1);
		report_number_text(&columns[i], a, number);
		snprintf(cells[i], REPORT_CELL, "%s%.60s", lost[0], number);
		report_number_text(&columns[i], diff_between(a, b), number);
		snprintf(cells[i + 1], REPORT_CELL, "%s%s%.60s", *lost[0] ? lost[0] : lost[1],
			 a == b  ? ""
			 : a < b ? "+"
				 : "-",
			 a == b ? "0" : number);
	}
	change_text(row, cells[i]);
}

/* Makes one row of the rows that are not shown. False: there are none. */
static bool
others_make(const struct diff_table *dt, const struct report_table *t, size_t shown,
	    struct diff_row *others)
{
	bool any = false;
	*others = (struct diff_row){.weight = 0};
	for (unsigned run = 0; run < 2; run++) {
		if (dt->others.runs[run] != NULL)
			any = diff_row_sum(others, run, dt->others.runs[run]) || any;
		for (size_t i = shown; i < dt->count; i++)
			if (dt->rows[i].runs[run] != NULL)
				any = diff_row_sum(others, run, dt->rows[i].runs[run]) || any;
	}
	diff_row_measure(t, others);
	return any;
}

void
diff_print_text(struct report *r, const struct report_table *t, const struct diff_table *dt)
{
	struct report_column columns[REPORT_COLUMNS];
	struct diff_row others;
	char known[2][REPORT_CELL];
	size_t shown = r->rows > 0 && r->rows < dt->changed ? r->rows : dt->changed, lines = 1;
	char(*cells)[REPORT_COLUMNS][REPORT_CELL] = calloc(shown + 3, sizeof(*cells));
	if (cells == NULL) {
		report_no_memory(r);
		return;
	}
	columns_make(t, columns);
	for (unsigned run = 0; run < 2; run++)
		report_share_text(r->diff->heads[run].known_ns[t->of_threads],
				  r->diff->heads[run].all_ns[t->of_threads], known[run]);
	out_printf(r->out, "\n%s: %s: %zu of %zu row%s changed (known A %s %%, B %s %%)\n",
		   t->report, t->title, dt->changed, dt->count, dt->count == 1 ? "" : "s", known[0],
		   known[1]);
	report_line_make(columns, NULL, NULL, NULL, cells[0]);
	for (size_t i = 0; i < shown; i++)
		line_make(r->diff, columns, &dt->rows[i], NULL, cells[lines++]);
	bool more = others_make(dt, t, shown, &others);
	if (more && shown > 0)
		line_make(r->diff, columns, &others, "(others)", cells[lines++]);
	if (!t->overlaps && (shown != 1 || more))
		line_make(r->diff, columns, &dt->total, "total", cells[lines++]);
	if (lines > 1)
		report_lines_print(r, columns, cells, lines);
	diff_row_free(&others);
	free(cells);
}

static void
json_label(struct out *o, const struct report_column *c, const struct diff_row *row)
{
	const struct report_row *any = row->runs[row->runs[0] == NULL];
	out_printf(o, ",\"%s\":", c->json);
	if (c->format == COLUMN_NUMBER)
		out_number(o, any->number, 0);
	else
		out_json(o, c->format == COLUMN_THREAD ? any->who.name : any->texts[c->cell]);
	if (c->format != COLUMN_THREAD)
		return;
	out_printf(o, ",\"order\":%u,\"tid\":", any->who.order);
	for (unsigned run = 0; run < 2; run++) {
		out_char(o, run == 0 ? '[' : ',');
		if (row->runs[run] != NULL)
			out_number(o, row->runs[run]->who.tid, 0);
		else
			out_text(o, "null");
	}
	out_char(o, ']');
}

static void
json_row(struct report *r, const struct report_table *t, const struct diff_row *row,
	 const char *label)
{
	const struct report_column *figures[REPORT_COLUMNS];
	struct out *o = r->out;
	unsigned n = diff_figures(t, figures);
	char number[REPORT_CELL];
	out_printf(o, "{\"report\":\"%s\",\"table\":\"%s\"", t->report, t->name);
	if (label != NULL)
		out_printf(o, ",\"row\":\"%s\"", label);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++)
		if (diff_names_row(c) && label == NULL)
			json_label(o, c, row);
	out_printf(o, ",\"change\":\"%s\",\"percent\":",
		   row->runs[0] == NULL   ? "new"
		   : row->runs[1] == NULL ? "gone"
		   : row->all == 0        ? "none"
					  : "changed");
	report_fixed_text(row->percent, 2, number);
	if (row->percent == DIFF_FROM_ZERO)
		out_text(o, "null");
	else
		out_printf(o, "%s%s", row->percent > 0 && row->falls ? "-" : "", number);
	for (unsigned i = 0; i < n; i++)
		out_printf(o, ",\"%s%s\":[%" PRIu64 ",%" PRIu64 "]", figures[i]->json,
			   figures[i]->format == COLUMN_COUNT ? "" : "_ns",
			   diff_figure(figures[i], row, 0), diff_figure(figures[i], row, 1));
	out_printf(o, ",\"whole\":%s}\n",
		   diff_is_whole(&r->diff->heads[0]) && diff_is_whole(&r->diff->heads[1])
		       ? "true"
		       : "false");
}

void
diff_print_json(struct report *r, const struct report_table *t, const struct diff_table *dt)
{
	for (size_t i = 0; i < dt->count; i++)
		json_row(r, t, &dt->rows[i], NULL);
	if (dt->others.runs[0] != NULL || dt->others.runs[1] != NULL)
		json_row(r, t, &dt->others, "others");
	if (!t->overlaps)
		json_row(r, t, &dt->total, "total");
}
