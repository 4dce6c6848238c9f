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

#ifdef KTRDUMP_HOST
#define KERNEL_HINT "; expected -N KERNEL, once for each kernel"
#else
#define KERNEL_HINT ""
#endif

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

/* Is it among what is compared? */
static bool
is_compared(const struct report_table *t)
{
	return t->wanted && !t->worst;
}

/* Numbers the threads of each name in a run, in the order in which they came. */
static void
threads_number(struct report *r)
{
	size_t count = 0, most = 0;
	for (struct report_table *const *t = report_tables; *t != NULL; t++)
		most += is_compared(*t) ? (*t)->count : 0;
	struct report_row **rows = calloc(most + 1, sizeof(struct report_row *));
	if (rows == NULL) {
		report_no_memory(r);
		return;
	}
	for (struct report_table *const *t = report_tables; *t != NULL; t++)
		for (size_t i = 0; is_compared(*t) && i < (*t)->count; i++)
			if ((*t)->rows[i]->who.serial != 0)
				rows[count++] = (*t)->rows[i];
	qsort(rows, count, sizeof(struct report_row *), who_compare);
	for (size_t i = 1; i < count; i++) {
		const struct report_who *before = &rows[i - 1]->who;
		if (strcmp(rows[i]->who.name, before->name) == 0)
			rows[i]->who.order =
			    before->order + (rows[i]->who.serial != before->serial);
	}
	free(rows);
}

/* Does the column show what names a row of a diff? */
bool
diff_names_row(const struct report_column *c)
{
	return report_is_label(c) && c->format != COLUMN_PLACE;
}

static uint64_t
key_of(const struct report_table *t, const struct report_row *row)
{
	uint64_t key = 1;
	for (const struct report_column *c = t->columns; c->format != COLUMN_END; c++) {
		if (!diff_names_row(c))
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
	char number[REPORT_CELL];
	bool wanted = d->grep == NULL;
	for (const struct report_column *c = t->columns; c->format != COLUMN_END && !wanted; c++) {
		const char *text = number;
		if (!diff_names_row(c))
			continue;
		if (c->format == COLUMN_THREAD) /* its id is no name */
			text = row->who.name;
		else if (c->format == COLUMN_NUMBER)
			report_cell_text(c, row, &nothing, number);
		else /* searches the whole text: a cell may show less */
			text = row->texts[c->cell];
		wanted = text != NULL && dump_match_text(d->grep, text);
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
bool
diff_row_sum(struct diff_row *to, unsigned run, const struct report_row *row)
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
	for (size_t i = 0; i < t->count; i++) {
		struct report_row *row = t->rows[i];
		for (unsigned n = 0; n < REPORT_TEXTS; n++) {
			if (row->texts[n] != NULL && row->notes[n] == NULL)
				report_note(r, row, n, row->texts[n]); /* the decoder goes */
		}
		if (is_wanted(d, t, row))
			good &= diff_row_sum(&dt->total, d->runs, row) &&
				row_join(row_for(dt, t, row), d->runs, row);
		else
			report_row_free(row);
	}
	t->count = 0;
	if (t->has_others && d->grep == NULL)
		good &= diff_row_sum(&dt->others, d->runs, &t->others) &&
			diff_row_sum(&dt->total, d->runs, &t->others);
	if (!good)
		report_no_memory(r);
}

/* ---- what changed ---- */

/* The columns whose numbers are compared. */
unsigned
diff_figures(const struct report_table *t, const struct report_column **to)
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

uint64_t
diff_figure(const struct report_column *c, const struct diff_row *row, unsigned run)
{
	return row->runs[run] != NULL ? report_number(c, row->runs[run]) : 0;
}

uint64_t
diff_between(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* By how much a figure has changed: hundredths of a percent, rounded up. */
static uint64_t
percent_of(const struct report_column *c, uint64_t a, uint64_t b)
{
	uint64_t least = diff_between(a, b), larger = a < b ? b : a;
	if (c->cell == CELL_P50 || c->cell == CELL_P99)
		least -= larger / 9 < least ? larger / 9 : least;
	if (least == 0 || a == 0)
		return least == 0 ? 0 : DIFF_FROM_ZERO;
	__extension__ unsigned __int128 wide =
	    ((__extension__(unsigned __int128) least) * 10000 + a - 1) / a;
	return wide < DIFF_FROM_ZERO ? (uint64_t)wide : DIFF_FROM_ZERO - 1;
}

/*
 * What changed most comes first: much, and in proportion. By time alone, each thread that waits for
 * a changed one would come before it; by proportion alone, the smallest rows. The terms of a
 * chi-squared distance are both.
 */
__extension__ static unsigned __int128
change_weight(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 change = diff_between(a, b), sum = a;
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

void
diff_row_measure(const struct report_table *t, struct diff_row *row)
{
	const struct report_column *figures[REPORT_COLUMNS];
	unsigned n = diff_figures(t, figures);
	row->weight = change_weight(weight_of(t, row->runs[0]), weight_of(t, row->runs[1]));
	for (unsigned i = 0; i < n; i++) {
		uint64_t a = diff_figure(figures[i], row, 0), b = diff_figure(figures[i], row, 1);
		uint64_t percent = percent_of(figures[i], a, b);
		row->all += diff_between(a, b);
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
		diff_row_measure(t, &dt->rows[i]);
	diff_row_measure(t, &dt->others);
	diff_row_measure(t, &dt->total);
	if (dt->count > 0)
		qsort(dt->rows, dt->count, sizeof(*dt->rows), changes_compare);
	for (size_t i = 0; i < dt->count; i++) {
		dt->changed += is_changed(&dt->rows[i]);
		above += dt->rows[i].percent > d->limit || dt->rows[i].runs[0] == NULL ||
			 dt->rows[i].runs[1] == NULL;
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

/* ---- the report ---- */

/* Does the trace have all events? */
bool
diff_is_whole(const struct report_head *h)
{
	return h->gaps == 0 && !h->damaged;
}

void
diff_row_free(struct diff_row *row)
{
	for (unsigned run = 0; run < 2; run++)
		if (row->runs[run] != NULL)
			report_row_free(row->runs[run]);
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
			diff_print_json(r, t, dt);
		else
			diff_print_text(r, t, dt);
	}
	return any;
}

/* True: something is shown. False: a report that was named shows nothing, or no report does. */
static bool
print_all(struct report *r)
{
	struct report_diff *d = r->diff;
	bool any = false, whole = true;
	for (unsigned run = 0; run < 2; run++)
		report_head_print(r, &d->heads[run], run == 0 ? "A" : "B", d->files[run]);
	if (!r->json && !(diff_is_whole(&d->heads[0]) && diff_is_whole(&d->heads[1])))
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

/* Says that places have no names, if there are any. */
static void
places_say(const struct report *r)
{
	const struct report_diff *d = r->diff;
	bool any = false;
	for (struct report_table *const *t = report_tables; *t != NULL; t++)
		for (size_t i = 0; is_compared(*t) && i < (*t)->count; i++)
			any |= (*t)->place != PLACE_NONE && (*t)->rows[i]->number != 0;
	if (r->symbols == NULL && (any || r->has_unnamed))
		fprintf(
		    stderr,
		    "ktrdump: diff: %s %s: no symbols of its kernel: its functions are %s" KERNEL_HINT
		    "\n",
		    d->runs == 0 ? "A" : "B", d->files[d->runs], REPORT_NOT_KNOWN);
}

bool
report_diff_run(struct report *r, const struct report_head *head)
{
	struct report_diff *d = r->diff;
	d->heads[d->runs] = *head;
	threads_number(r);
	places_say(r);
	for (size_t i = 0; report_tables[i] != NULL; i++) {
		if (!MEMORY_ROOM(d->tables, d->tables_room, i)) {
			report_no_memory(r);
			return true;
		}
		if (is_compared(report_tables[i]))
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
			diff_row_free(&dt->rows[n]);
		diff_row_free(&dt->others);
		diff_row_free(&dt->total);
		ktr_map_free(&dt->map);
		free(dt->rows);
	}
	free(d->tables);
}
