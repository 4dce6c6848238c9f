/*
 * diff.c - `ktrdump diff`: what changed between two runs, in each row of a report's tables.
 *
 * When the report of a run ends, its rows are taken, and those that are about the same thing become
 * one row of the diff. Two rows are about the same thing if their names are equal: a thread's name
 * and how many threads of that name came before, but no thread's id, address or line of the source.
 * Rows of one run with equal names are added up.
 *
 * A percentile is known to an eighth (table.c). Only what has changed for certain counts as its
 * change in percent.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/diff.h"

#define FROM_ZERO UINT64_MAX /* the change of what was nothing */

struct diff_row {
	struct report_row *runs[2];             /* NULL: that run has none */
	__extension__ unsigned __int128 weight; /* of the change: see change_weight() */
	uint64_t all;                           /* by how much all figures have changed, together */
	uint64_t percent; /* the largest change, hundredths of a percent, or FROM_ZERO */
	bool falls;       /* that is to less */
};

struct diff_table {
	struct diff_row *rows;
	size_t count, room, changed;
	struct ktr_map map; /* the index of a row, plus one, by what names it */
	struct diff_row others;
	struct diff_row total;
};

static const struct report_row nothing;

/* ---- rows ---- */

static int
who_compare(const void *a, const void *b)
{
	const struct report_who *l = &(*(struct report_row *const *)a)->who,
				*r = &(*(struct report_row *const *)b)->who;
	int order = strcmp(l->name, r->name);
	return order != 0 ? order : (l->serial > r->serial) - (l->serial < r->serial);
}

/* Numbers the threads of each name, in the order in which they came. */
static void
threads_number(struct report_table *t)
{
	static struct report_row *rows[REPORT_ROWS_MAX];
	memcpy(rows, t->rows, t->count * sizeof(struct report_row *));
	if (t->count > 0)
		qsort(rows, t->count, sizeof(struct report_row *), who_compare);
	for (size_t i = 1; i < t->count; i++) {
		const struct report_who *before = &rows[i - 1]->who;
		if (strcmp(rows[i]->who.name, before->name) == 0)
			rows[i]->who.order =
			    before->order + (rows[i]->who.serial != before->serial);
	}
}

/* Is it of what names a row of a diff? */
static bool
names_row(const struct report_column *c)
{
	return report_is_label(c) && c->format != COLUMN_PLACE;
}

static uint64_t
key_of(const struct report_table *t, const struct report_row *row)
{
	uint64_t key = 1;
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		if (!names_row(c))
			continue;
		if (c->format == COLUMN_THREAD)
			key = report_key(key, row->who.order, row->who.name, NULL);
		else if (c->format == COLUMN_NUMBER)
			key = report_key(key, row->number, NULL, NULL);
		else
			key = report_key(key, 0, row->texts[c->cell], NULL);
	}
	return key;
}

/* Do the options select the row? */
static bool
is_wanted(const struct report_diff *d, const struct report_table *t, const struct report_row *row)
{
	char text[REPORT_CELL];
	bool wanted = d->grep == NULL;
	for (const struct report_column *c = t->columns; c->format != COLUMN_END && !wanted; c++) {
		if (!names_row(c))
			continue;
		report_cell_text(c, row, &nothing, text);
		wanted = dump_match_text(d->grep, text);
	}
	return wanted;
}

/* The row of the diff that a run's row belongs to. NULL: no memory. */
static struct diff_row *
row_for(struct diff_table *dt, const struct report_table *t, const struct report_row *row)
{
	uint64_t key = key_of(t, row);
	uintptr_t known = (uintptr_t)ktr_map_get(&dt->map, key);
	if (known != 0)
		return &dt->rows[known - 1];
	if (dt->map.realloc == NULL)
		dt->map = memory_map();
	if (!MEMORY_ROOM(dt->rows, dt->room, dt->count) ||
	    !ktr_map_put(&dt->map, key, (void *)(uintptr_t)(dt->count + 1)))
		return NULL;
	return &dt->rows[dt->count++];
}

/* Adds a run's row, which this frees or keeps. False: no memory. */
static bool
row_join(struct diff_row *to, unsigned run, struct report_row *row)
{
	if (to != NULL && to->runs[run] == NULL) {
		to->runs[run] = row;
		return true;
	}
	if (to != NULL)
		report_row_add(to->runs[run], row);
	report_row_free(row);
	return to != NULL;
}

/* Adds to a sum. False: no memory. */
static bool
row_sum(struct diff_row *to, unsigned run, const struct report_row *row)
{
	if (to->runs[run] == NULL)
		to->runs[run] = calloc(1, sizeof(*row));
	if (to->runs[run] != NULL)
		report_row_add(to->runs[run], row);
	return to->runs[run] != NULL;
}

static void
table_take(struct report *r, struct report_diff *d, struct diff_table *dt, struct report_table *t)
{
	struct report_row total = {.cells = {0}};
	bool good = true;
	report_table_finish(r, t, &total);
	free(total.buckets);
	threads_number(t);
	for (size_t i = 0; i < t->count; i++) {
		struct report_row *row = t->rows[i];
		for (unsigned n = 0; n < REPORT_TEXTS; n++) {
			if (row->texts[n] != NULL && row->notes[n] == NULL)
				report_note(r, row, n, row->texts[n]); /* the decoder goes */
		}
		if (is_wanted(d, t, row))
			good &= row_sum(&dt->total, d->runs, row) &&
				row_join(row_for(dt, t, row), d->runs, row);
		else
			report_row_free(row);
	}
	t->count = 0;
	if (t->has_others && d->grep == NULL)
		good &= row_sum(&dt->others, d->runs, &t->others) &&
			row_sum(&dt->total, d->runs, &t->others);
	if (!good)
		report_no_memory(r);
}

/* ---- what changed ---- */

/* The columns whose numbers are compared. */
static unsigned
figures_of(const struct report_table *t, const struct report_column **to)
{
	unsigned n = 0;
	bool total = false;
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++)
		total |= c->cell == CELL_TOTAL && !report_is_label(c);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		bool number =
		    c->format == COLUMN_COUNT || c->format == COLUMN_MS || c->format == COLUMN_US;
		if (number && c->cell != CELL_MAX && (c->cell != CELL_MEAN || !total))
			to[n++] = c;
	}
	return n;
}

static uint64_t
figure(const struct report_column *c, const struct diff_row *row, unsigned run)
{
	return row->runs[run] != NULL ? report_number(c, row->runs[run]) : 0;
}

static uint64_t
between(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* By how much a figure has changed: hundredths of a percent, rounded up. */
static uint64_t
percent_of(const struct report_column *c, uint64_t a, uint64_t b)
{
	uint64_t least = between(a, b), larger = a < b ? b : a;
	if (c->cell == CELL_P50 || c->cell == CELL_P99)
		least -= larger / 9 < least ? larger / 9 : least;
	if (least == 0 || a == 0)
		return least == 0 ? 0 : FROM_ZERO;
	__extension__ unsigned __int128 wide =
	    ((__extension__(unsigned __int128) least) * 10000 + a - 1) / a;
	return wide < FROM_ZERO ? (uint64_t)wide : FROM_ZERO - 1;
}

/*
 * What changed most comes first: much, and in proportion. By time alone, each thread that waits for
 * a changed one would come before it; by proportion alone, the smallest rows. The terms of a
 * chi-squared distance are both.
 */
__extension__ static unsigned __int128
change_weight(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 change = between(a, b), sum = a;
	sum += b;
	return sum > 0 ? change * change / sum : 0;
}

static uint64_t
weight_of(const struct report_table *t, const struct report_row *row)
{
	/* The upper bit only says that a wait is no sleep (tables.c). */
	return row != NULL ? row->cells[t->weight == CELL_MAX ? CELL_TOTAL : t->weight] << 1 >> 1
			   : 0;
}

static void
row_measure(const struct report_table *t, struct diff_row *row)
{
	const struct report_column *figures[REPORT_COLUMNS];
	unsigned n = figures_of(t, figures);
	row->weight = change_weight(weight_of(t, row->runs[0]), weight_of(t, row->runs[1]));
	for (unsigned i = 0; i < n; i++) {
		uint64_t a = figure(figures[i], row, 0), b = figure(figures[i], row, 1);
		uint64_t percent = percent_of(figures[i], a, b);
		row->all += between(a, b);
		if (percent > row->percent) {
			row->percent = percent;
			row->falls = b < a;
		}
	}
}

static bool
is_changed(const struct diff_row *row)
{
	return row->all > 0 || row->runs[0] == NULL || row->runs[1] == NULL;
}

/* What changed most first. */
static int
changes_compare(const void *a, const void *b)
{
	const struct diff_row *l = a, *r = b;
	if (is_changed(l) != is_changed(r))
		return is_changed(l) ? -1 : 1;
	if (l->weight != r->weight || l->all != r->all)
		return (l->weight != r->weight ? l->weight < r->weight : l->all < r->all) ? 1 : -1;
	return report_labels_compare(l->runs[0] != NULL ? l->runs[0] : l->runs[1],
				     r->runs[0] != NULL ? r->runs[0] : r->runs[1]);
}

static void
table_compare(struct report_diff *d, const struct report_table *t, struct diff_table *dt)
{
	size_t above = 0;
	for (size_t i = 0; i < dt->count; i++)
		row_measure(t, &dt->rows[i]);
	row_measure(t, &dt->others);
	row_measure(t, &dt->total);
	if (dt->count > 0)
		qsort(dt->rows, dt->count, sizeof(*dt->rows), changes_compare);
	for (size_t i = 0; i < dt->count; i++) {
		dt->changed += is_changed(&dt->rows[i]);
		above += dt->rows[i].percent > d->limit;
	}
	above += dt->others.percent > d->limit;
	if (d->limit == DIFF_NO_LIMIT || above == 0)
		return;
	d->above = true;
	fprintf(stderr,
		"ktrdump: diff: %s %s: %zu row%s changed by more than %" PRIu64 ".%02u %%\n",
		t->report, t->name, above, above == 1 ? "" : "s", d->limit / 100,
		(unsigned)(d->limit % 100));
}

/* ---- printing ---- */

/* The columns of text: names, each figure of A and its change, and the largest change. */
static void
columns_make(const struct report_table *t, struct report_column *to)
{
	const struct report_column *figures[REPORT_COLUMNS];
	unsigned n = figures_of(t, figures);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		if (names_row(c))
			*to++ = *c;
	}
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
	else if (row->percent == FROM_ZERO)
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
	const char *lost[2] = {d->heads[0].gaps > 0 ? "~" : "", d->heads[1].gaps > 0 ? "~" : ""};
	unsigned i = 0;
	for (; report_is_label(&columns[i]); i++) {
		cells[i][0] = '\0';
		if (label == NULL)
			label_text(&columns[i], row, cells[i]);
		else if (i == 0)
			snprintf(cells[i], REPORT_CELL, "%s", label);
	}
	for (; columns[i + 1].format != COLUMN_END; i += 2) {
		uint64_t a = figure(&columns[i], row, 0), b = figure(&columns[i], row, 1);
		report_number_text(&columns[i], a, number);
		snprintf(cells[i], REPORT_CELL, "%s%.60s", lost[0], number);
		report_number_text(&columns[i], between(a, b), number);
		snprintf(cells[i + 1], REPORT_CELL, "%s%s%.60s", *lost[0] ? lost[0] : lost[1],
			 a == b  ? ""
			 : a < b ? "+"
				 : "-",
			 a == b ? "0" : number);
	}
	change_text(row, cells[i]);
}

/* The rows that are not shown. False: there are none. */
static bool
others_make(const struct diff_table *dt, const struct report_table *t, size_t shown,
	    struct diff_row *others)
{
	bool any = false;
	*others = (struct diff_row){.weight = 0};
	for (unsigned run = 0; run < 2; run++) {
		if (dt->others.runs[run] != NULL)
			any = row_sum(others, run, dt->others.runs[run]) || any;
		for (size_t i = shown; i < dt->count; i++) {
			if (dt->rows[i].runs[run] != NULL)
				any = row_sum(others, run, dt->rows[i].runs[run]) || any;
		}
	}
	row_measure(t, others);
	return any;
}

static void
row_free(struct diff_row *row)
{
	for (unsigned run = 0; run < 2; run++) {
		if (row->runs[run] != NULL)
			report_row_free(row->runs[run]);
	}
}

static void
print_text(struct report *r, const struct report_table *t, const struct diff_table *dt)
{
	struct report_column columns[2 * REPORT_COLUMNS];
	struct diff_row others;
	size_t shown = r->rows > 0 && r->rows < dt->changed ? r->rows : dt->changed, lines = 1;
	char(*cells)[REPORT_COLUMNS][REPORT_CELL] = calloc(shown + 3, sizeof(*cells));
	if (cells == NULL) {
		report_no_memory(r);
		return;
	}
	columns_make(t, columns);
	out_printf(r->out, "\n%s: %s: %zu of %zu row%s changed\n", t->report, t->title, dt->changed,
		   dt->count, dt->count == 1 ? "" : "s");
	report_line_make(columns, NULL, NULL, NULL, cells[0]);
	for (size_t i = 0; i < shown; i++)
		line_make(r->diff, columns, &dt->rows[i], NULL, cells[lines++]);
	if (others_make(dt, t, shown, &others) && shown > 0)
		line_make(r->diff, columns, &others, "(others)", cells[lines++]);
	if (!t->overlaps && shown != 1)
		line_make(r->diff, columns, &dt->total, "total", cells[lines++]);
	if (lines > 1)
		report_lines_print(r, columns, cells, lines);
	row_free(&others);
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
	unsigned n = figures_of(t, figures);
	char number[REPORT_CELL];
	out_printf(o, "{\"report\":\"%s\",\"table\":\"%s\"", t->report, t->name);
	if (label != NULL)
		out_printf(o, ",\"row\":\"%s\"", label);
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		if (names_row(c) && label == NULL)
			json_label(o, c, row);
	}
	out_printf(o, ",\"change\":\"%s\",\"percent\":",
		   row->runs[0] == NULL   ? "new"
		   : row->runs[1] == NULL ? "gone"
		   : row->all == 0        ? "none"
					  : "changed");
	report_fixed_text(row->percent, 2, number);
	if (row->percent == FROM_ZERO)
		out_text(o, "null");
	else
		out_printf(o, "%s%s", row->percent > 0 && row->falls ? "-" : "", number);
	for (unsigned i = 0; i < n; i++)
		out_printf(o, ",\"%s%s\":[%" PRIu64 ",%" PRIu64 "]", figures[i]->json,
			   figures[i]->format == COLUMN_COUNT ? "" : "_ns",
			   figure(figures[i], row, 0), figure(figures[i], row, 1));
	out_printf(o, ",\"whole\":%s}\n",
		   r->diff->heads[0].gaps + r->diff->heads[1].gaps == 0 ? "true" : "false");
}

static void
print_json(struct report *r, const struct report_table *t, const struct diff_table *dt)
{
	for (size_t i = 0; i < dt->count; i++)
		json_row(r, t, &dt->rows[i], NULL);
	if (dt->others.runs[0] != NULL || dt->others.runs[1] != NULL)
		json_row(r, t, &dt->others, "others");
	if (!t->overlaps)
		json_row(r, t, &dt->total, "total");
}

/* Compares and prints the tables of a report. False: all of them are empty. */
static bool
print_report(struct report *r, const char *name)
{
	bool any = false;
	for (size_t i = 0; report_tables[i] != NULL; i++) {
		const struct report_table *t = report_tables[i];
		struct diff_table *dt = &r->diff->tables[i];
		if (dt->count == 0 || strcmp(t->report, name) != 0)
			continue;
		any = true;
		table_compare(r->diff, t, dt);
		if (r->json)
			print_json(r, t, dt);
		else
			print_text(r, t, dt);
	}
	return any;
}

/* False: a report that was named shows nothing; or, if none was named, all do. */
static bool
print_all(struct report *r)
{
	struct report_diff *d = r->diff;
	bool any = false, whole = true;
	for (unsigned run = 0; run < 2; run++)
		report_head_print(r, &d->heads[run], run == 0 ? "A" : "B", d->files[run]);
	if (!r->json && d->heads[0].gaps + d->heads[1].gaps > 0)
		out_text(r->out, "~: events were lost, the number may be larger\n");
	for (unsigned n = 0; report_name(n) != NULL; n++) {
		if (!report_is_among(r->names, report_name(n)))
			continue;
		if (print_report(r, report_name(n))) {
			any = true;
			continue;
		}
		whole = false;
		if (d->named && d->grep == NULL)
			report_say_nothing(report_name(n));
	}
	if (!any && d->grep != NULL)
		fprintf(stderr, "ktrdump: diff: no row has \"%s\" in it\n", d->grep);
	else if (!any && !d->named)
		fprintf(stderr, "ktrdump: diff: nothing to show\n");
	return d->named && d->grep == NULL ? whole : any;
}

bool
report_diff_run(struct report *r, const struct report_head *head)
{
	struct report_diff *d = r->diff;
	d->heads[d->runs] = *head;
	for (size_t i = 0; report_tables[i] != NULL; i++) {
		if (!MEMORY_ROOM(d->tables, d->tables_room, i)) {
			report_no_memory(r);
			return true;
		}
		if (report_tables[i]->wanted && !report_tables[i]->worst)
			table_take(r, d, &d->tables[i], report_tables[i]);
	}
	return ++d->runs < 2 || r->failed || print_all(r);
}

void
report_diff_free(struct report_diff *d)
{
	for (size_t i = 0; i < d->tables_room; i++) {
		struct diff_table *dt = &d->tables[i];
		for (size_t n = 0; n < dt->count; n++)
			row_free(&dt->rows[n]);
		row_free(&dt->others);
		row_free(&dt->total);
		ktr_map_free(&dt->map);
		free(dt->rows);
	}
	free(d->tables);
}
