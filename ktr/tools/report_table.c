/*
 * report_table.c - the rows of a report's tables: found, added up, sorted and printed.
 *
 * There are at most REPORT_ROWS_MAX rows. When there would be more, those of threads that are gone
 * make room: what they say is final, so that the half of them that weighs least can become part of
 * the row of the others. All sums stay exact.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report.h"
#include "ktr/tools/symbols.h"

#define WORST_ROWS 10u
#define FOLD_AFTER 64u /* threads that are gone since the last time */
#define CELL_BYTES 64u /* of text */

/* ---- rows ---------------------------------------------------------------------------------------
 */

uint64_t
report_key(uint64_t a, uint64_t b, const char *text, const char *more)
{
	uint64_t key = ktr_mix(a ^ memory_seed(), b ^ 0x9e3779b97f4a7c15u) | 1;
	if (text != NULL)
		key = ktr_mix(key, ktr_hash(memory_seed(), text, strlen(text)) | 1);
	return more != NULL ? ktr_mix(key, ktr_hash(~key, more, strlen(more)) | 1) : key;
}

static uint64_t
weight_of(const struct report_table *t, const struct report_row *row)
{
	return t->weight < CELLS ? row->cells[t->weight] : row->weight;
}

/* Adds what a row says to a sum. */
static void
row_add(struct report_row *sum, const struct report_row *row)
{
	for (unsigned i = 0; i < CELLS; i++) {
		if (i != CELL_MAX && i != CELL_WHEN)
			sum->cells[i] += row->cells[i];
	}
	if (row->cells[CELL_MAX] > sum->cells[CELL_MAX]) {
		sum->cells[CELL_MAX] = row->cells[CELL_MAX];
		sum->cells[CELL_WHEN] = row->cells[CELL_WHEN];
	}
	if (row->buckets == NULL)
		return;
	if (sum->buckets == NULL)
		sum->buckets = calloc(REPORT_BUCKETS, sizeof(*sum->buckets));
	for (unsigned i = 0; sum->buckets != NULL && i < REPORT_BUCKETS; i++)
		sum->buckets[i] += row->buckets[i];
}

static void
row_free(struct report_row *row)
{
	for (unsigned i = 0; i < REPORT_TEXTS; i++)
		free(row->notes[i]);
	free(row->buckets);
	free(row);
}

/* Which of the tables rows_compare() sorts; qsort() passes no argument. */
static const struct report_table *sorted;

/* Those that weigh most first; rows of the same weight in an order that is the same in each run. */
static int
rows_compare(const void *a, const void *b)
{
	const struct report_row *l = *(struct report_row *const *)a,
				*r = *(struct report_row *const *)b;
	uint64_t x = weight_of(sorted, l), y = weight_of(sorted, r);
	if (x != y)
		return x < y ? 1 : -1;
	if (l->tid != r->tid || l->number != r->number)
		return l->tid != r->tid ? (l->tid > r->tid) * 2 - 1
					: (l->number > r->number) * 2 - 1;
	for (unsigned i = 0; i < REPORT_TEXTS; i++) {
		int order = l->texts[i] != NULL && r->texts[i] != NULL
				? strcmp(l->texts[i], r->texts[i])
				: (l->texts[i] != NULL) - (r->texts[i] != NULL);
		if (order != 0)
			return order;
	}
	return 0;
}

static void
rows_sort(const struct report_table *t, struct report_row **rows, size_t count)
{
	sorted = t;
	if (count > 0)
		qsort(rows, count, sizeof(struct report_row *), rows_compare);
}

/* Will nothing be added to the row any more? */
static bool
is_final(const struct report *r, const struct report_row *row)
{
	return row->serial != 0 && r->threads[row->thread_number].serial != row->serial;
}

/* Makes room: of rows that are final, the half that weighs least goes into the others. */
static void
rows_fold(struct report *r, struct report_table *t)
{
	static struct report_row *final[REPORT_ROWS_MAX];
	size_t live = 0, gone = 0, keep;
	t->folded_at = r->threads_gone;
	for (size_t i = 0; i < t->count; i++) {
		if (t->worst || is_final(r, t->rows[i]))
			final[gone++] = t->rows[i];
		else
			t->rows[live++] = t->rows[i];
	}
	rows_sort(t, final, gone);
	keep = t->worst ? WORST_ROWS : gone / 2;
	memcpy(t->rows + live, final, keep * sizeof(struct report_row *));
	for (size_t i = keep; i < gone; i++) {
		row_add(&t->others, final[i]);
		t->has_others = true;
		ktr_map_remove(&t->map, final[i]->key);
		row_free(final[i]);
	}
	t->count = live + keep;
	t->floor = t->worst ? weight_of(t, final[keep - 1]) : 0;
}

struct report_row *
report_row(struct report *r, struct report_table *t, uint64_t key, const char *text,
	   const char *more)
{
	struct report_row *row = ktr_map_get(&t->map, key);
	if (row != NULL)
		return row;
	if (t->map.realloc == NULL)
		t->map = memory_map();
	if (t->worst ? t->count == 2 * WORST_ROWS
		     : t->count == REPORT_ROWS_MAX && r->threads_gone - t->folded_at >= FOLD_AFTER)
		rows_fold(r, t);
	if (t->count == REPORT_ROWS_MAX) {
		t->has_others = true;
		return &t->others;
	}
	row = calloc(1, sizeof(*row));
	if (row == NULL || !ktr_map_put(&t->map, key, row)) {
		free(row);
		report_no_memory(r);
		return &t->others;
	}
	row->key = key;
	row->texts[0] = text;
	row->texts[1] = more;
	return t->rows[t->count++] = row;
}

void
report_note(struct report *r, struct report_row *row, unsigned n, const char *text)
{
	free(row->notes[n]);
	row->texts[n] = row->notes[n] = strdup(text);
	if (row->notes[n] == NULL)
		report_no_memory(r);
}

void
report_table_symbols(struct report *r, struct report_table *t, unsigned back)
{
	char text[300];
	for (size_t i = 0; i < t->count; i++) {
		struct report_row *row = t->rows[i];
		if (row->number == 0)
			continue;
		row->texts[1] = symbols_function(r->symbols, row->number - back);
		if (row->texts[1] == NULL) {
			snprintf(text, sizeof(text), "0x%" PRIx64, row->number);
			report_note(r, row, 1, text);
		}
		report_note(r, row, 2,
			    symbols_place(r->symbols, row->number - back, text, sizeof(text)));
	}
}

/* ---- samples ------------------------------------------------------------------------------------
 */

/* Up to 8 exactly, then eight buckets for each power of two. */
static unsigned
bucket_of(uint64_t ns)
{
	if (ns < 8)
		return (unsigned)ns;
	unsigned shift = 60 - (unsigned)__builtin_clzll(ns);
	return (shift + 1) * 8 + (unsigned)(ns >> shift & 7);
}

/* The longest sample that falls into a bucket. */
static uint64_t
bucket_end(unsigned i)
{
	return i < 8 ? i : ((uint64_t)(8 + i % 8 + 1) << (i / 8 - 1)) - 1;
}

void
report_sample(struct report *r, struct report_table *t, struct report_row *row, uint64_t from_ns,
	      uint64_t to_ns)
{
	uint64_t ns = to_ns - from_ns;
	if (row->cells[CELL_COUNT]++ == 0 || ns > row->cells[CELL_MAX]) {
		row->cells[CELL_MAX] = ns;
		row->cells[CELL_WHEN] = from_ns;
	}
	row->cells[CELL_TOTAL] += ns;
	if (!t->histogram)
		return;
	unsigned decade = 0;
	for (uint64_t limit = 1000; decade < REPORT_DECADES - 1 && ns >= limit; limit *= 10)
		decade++;
	row->cells[CELL_BELOW + decade]++;
	if (row->buckets == NULL)
		row->buckets = calloc(REPORT_BUCKETS, sizeof(*row->buckets));
	if (row->buckets == NULL)
		report_no_memory(r);
	else
		row->buckets[bucket_of(ns)]++;
}

/* So many percent of the samples are not longer, if each is as long as its bucket allows. */
static uint64_t
quantile(const struct report_row *row, unsigned percent)
{
	uint64_t rank = (row->cells[CELL_COUNT] * percent + 99) / 100, seen = 0;
	for (unsigned i = 0; row->buckets != NULL && i < REPORT_BUCKETS; i++) {
		seen += row->buckets[i];
		if (seen >= rank && seen > 0)
			return bucket_end(i) < row->cells[CELL_MAX] ? bucket_end(i)
								    : row->cells[CELL_MAX];
	}
	return 0;
}

void
report_table_free(struct report_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		row_free(t->rows[i]);
	free(t->others.buckets);
	ktr_map_free(&t->map);
}

/* ---- printing -----------------------------------------------------------------------------------
 */

/* A number with a point before its last `digits` digits. */
static void
put_fixed(char *to, uint64_t v, unsigned digits)
{
	uint64_t unit = 1;
	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	snprintf(to, CELL_BYTES, "%" PRIu64 ".%0*" PRIu64, v / unit, (int)digits, v % unit);
}

/* Hundredths of a percent. */
static uint64_t
share(uint64_t part, uint64_t all)
{
	return all > 0 ? (uint64_t)((__extension__(unsigned __int128) part * 10000 + all / 2) / all)
		       : 0;
}

static uint64_t
number_of(const struct report_column *c, const struct report_row *row)
{
	uint64_t n = row->cells[CELL_COUNT];
	switch (c->kind) {
	case COLUMN_MEAN:
	case COLUMN_MEAN_MS:
		return n > 0 ? row->cells[CELL_TOTAL] / n : 0;
	case COLUMN_P50:
		return quantile(row, 50);
	case COLUMN_P99:
		return quantile(row, 99);
	case COLUMN_NUMBER:
		return row->number;
	default:
		return row->cells[c->cell];
	}
}

static void
cell_text(const struct report_column *c, const struct report_row *row,
	  const struct report_row *total, char *to)
{
	uint64_t v = number_of(c, row);
	switch (c->kind) {
	case COLUMN_TEXT:
		snprintf(to, CELL_BYTES, "%s",
			 row->texts[c->cell] != NULL ? row->texts[c->cell] : "");
		break;
	case COLUMN_THREAD:
		if (row->serial != 0)
			snprintf(to, CELL_BYTES, "%" PRIu32 " %s", row->tid, row->thread);
		else
			snprintf(to, CELL_BYTES, "%s", row->thread);
		break;
	case COLUMN_NUMBER:
	case COLUMN_COUNT:
		snprintf(to, CELL_BYTES, "%" PRIu64, v);
		break;
	case COLUMN_SECONDS:
		put_fixed(to, v, 9);
		break;
	case COLUMN_MS:
	case COLUMN_MEAN_MS:
		put_fixed(to, v, 6);
		break;
	case COLUMN_SHARE:
		put_fixed(to, share(v, total->cells[c->cell]), 2);
		break;
	default:
		put_fixed(to, v, 3);
		break;
	}
}

static bool
is_label(const struct report_column *c)
{
	return c->kind == COLUMN_TEXT || c->kind == COLUMN_THREAD || c->kind == COLUMN_NUMBER;
}

/* A line of text; label: what stands in place of the row's own labels, or NULL. */
static void
line_make(const struct report_column *columns, const struct report_row *row,
	  const struct report_row *total, const char *label, char (*cells)[CELL_BYTES])
{
	for (unsigned i = 0; columns[i].kind != COLUMN_END; i++) {
		const struct report_column *c = &columns[i];
		cells[i][0] = '\0';
		if (row == NULL)
			snprintf(cells[i], CELL_BYTES, "%s", c->title);
		else if (label == NULL || !is_label(c))
			cell_text(c, row, total, cells[i]);
		else if (c->kind != COLUMN_NUMBER || i == 0) {
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
		for (unsigned i = 0; columns[i].kind != COLUMN_END; i++) {
			size_t n = strlen(cells[line][i]);
			width[i] = n > width[i] ? n : width[i];
		}
	}
	for (size_t line = 0; line < lines; line++) {
		size_t end = 0;
		out_begin(r->out);
		for (unsigned i = 0; columns[i].kind != COLUMN_END; i++) {
			bool left =
			    columns[i].kind == COLUMN_TEXT || columns[i].kind == COLUMN_THREAD;
			size_t n = strlen(cells[line][i]);
			if (n > 0) { /* no blanks at a line's end */
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
		row_add(&others, &t->others);
		for (size_t i = shown; i < t->count; i++)
			row_add(&others, t->rows[i]);
		line_make(columns, &others, total, "(others)", cells[lines++]);
	}
	if (!t->worst && !t->overlaps && shown + more > 1)
		line_make(columns, total, total, "total", cells[lines++]);
	print_lines(r, columns, cells, lines);
	free(others.buckets);
	free(cells);
}

static void
json_name(struct out *o, const char *name, bool time)
{
	out_text(o, ",\"");
	out_text(o, name);
	out_text(o, time ? "_ns\":" : "\":");
}

static void
json_row(struct report *r, const struct report_table *t, const struct report_row *row,
	 const char *label)
{
	struct out *o = r->out;
	out_text(o, "{\"report\":");
	out_json(o, t->report);
	json_name(o, "table", false);
	out_json(o, t->name);
	if (label != NULL) {
		json_name(o, "row", false);
		out_json(o, label);
	}
	for (const struct report_column *c = t->columns; c->kind != COLUMN_END; c++) {
		if (c->json == NULL || (label != NULL && is_label(c)))
			continue;
		json_name(o, c->json, !is_label(c) && c->kind != COLUMN_COUNT);
		if (c->kind == COLUMN_TEXT) {
			out_json(o, row->texts[c->cell]);
		} else if (c->kind == COLUMN_THREAD) {
			out_json(o, row->thread);
			json_name(o, "tid", false);
			out_number(o, row->tid, 0);
		} else {
			out_number(o, number_of(c, row), 0);
		}
	}
	if (t->histogram)
		out_text(o, ",\"histogram\":[");
	for (unsigned i = 0; t->histogram && i < REPORT_DECADES; i++) {
		if (i > 0)
			out_char(o, ',');
		out_number(o, row->cells[CELL_BELOW + i], 0);
	}
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

/* The columns of a histogram: how many samples of each row were so short. */
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
	columns[n].kind = COLUMN_END;
	return columns;
}

void
report_table_print(struct report *r, struct report_table *t)
{
	struct report_row total = {.cells = {0}};
	char known[32];
	row_add(&total, &t->others);
	for (size_t i = 0; i < t->count; i++)
		row_add(&total, t->rows[i]);
	rows_sort(t, t->rows, t->count);
	if (t->worst && t->count > WORST_ROWS)
		rows_fold(r, t);
	if (r->json) {
		print_json(r, t, &total);
	} else {
		put_fixed(known, share(t->known_ns, t->all_ns), 2);
		out_char(r->out, '\n');
		out_text(r->out, t->report);
		out_text(r->out, ": ");
		out_text(r->out, t->title);
		out_text(r->out, " (");
		out_text(r->out, known);
		out_text(r->out, " % known)\n");
		print_text(r, t, t->columns, &total);
		if (t->histogram)
			print_text(r, t, decades_of(t), &total);
	}
	free(total.buckets);
}
