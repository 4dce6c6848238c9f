/*
 * table.c - finds, adds up and sorts the rows of a report's tables.
 *
 * A table has at most REPORT_ROWS_MAX rows. When it would have more, rows of threads that are gone
 * make room, because nothing will be added to these: the half of them that weighs least is added to
 * the row of the others. All sums stay exact.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"
#include "ktr/tools/symbols.h"

#define WORST_ROWS 10u
#define FOLD_AFTER 64u /* threads that must have gone since rows were folded last */

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
	return row->cells[t->weight];
}

void
report_row_add(struct report_row *sum, const struct report_row *row)
{
	for (unsigned i = 0; i < CELLS; i++)
		if (i != CELL_MAX && i != CELL_WHEN)
			sum->cells[i] += row->cells[i];
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

void
report_row_free(struct report_row *row)
{
	for (unsigned i = 0; i < REPORT_TEXTS; i++)
		free(row->notes[i]);
	free(row->buckets);
	free(row);
}

/* The table that rows_compare() sorts: qsort() passes no argument. */
static const struct report_table *sorted;

/*
 * Compares rows: the largest weight first. Rows of equal weight have the same order in each run: by
 * what names them; then, threads of one number by which came first; then, among the worst, by their
 * events, which differ.
 */
static int
rows_compare(const void *a, const void *b)
{
	const struct report_row *l = *(struct report_row *const *)a,
				*r = *(struct report_row *const *)b;
	uint64_t x = weight_of(sorted, l), y = weight_of(sorted, r);
	int order = x != y ? (x < y ? 1 : -1) : report_labels_compare(l, r);
	if (order == 0)
		order = (l->who.serial > r->who.serial) - (l->who.serial < r->who.serial);
	return order != 0 ? order
			  : (l->cells[CELL_VALUE] > r->cells[CELL_VALUE]) -
				(l->cells[CELL_VALUE] < r->cells[CELL_VALUE]);
}

int
report_labels_compare(const struct report_row *l, const struct report_row *r)
{
	if (l->who.tid != r->who.tid || l->number != r->number)
		return l->who.tid != r->who.tid ? (l->who.tid > r->who.tid) * 2 - 1
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

/* Is the row's thread gone, so that nothing will be added to the row? */
static bool
is_final(const struct report *r, const struct report_row *row)
{
	return row->who.serial != 0 && r->threads[row->who.number].serial != row->who.serial;
}

/* Makes room: see above. A table of the worst keeps its ten worst rows. */
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
		report_row_add(&t->others, final[i]);
		t->has_others = true;
		ktr_map_remove(&t->map, final[i]->key);
		report_row_free(final[i]);
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

struct report_row *
report_row_numbered(struct report *r, struct report_table *t, uint64_t number)
{
	struct report_row *row = report_row(r, t, report_key(number, 0, NULL, NULL), NULL, NULL);
	row->number = number;
	return row;
}

void
report_note(struct report *r, struct report_row *row, unsigned n, const char *text)
{
	free(row->notes[n]);
	row->texts[n] = row->notes[n] = strdup(text);
	if (row->notes[n] == NULL)
		report_no_memory(r);
}

/* Sets the texts of places from the rows' addresses. */
static void
places_name(struct report *r, struct report_table *t)
{
	char text[300];
	for (size_t i = 0; t->place != PLACE_NONE && i < t->count; i++) {
		struct report_row *row = t->rows[i];
		uint64_t pc = row->number - (t->place == PLACE_CALL);
		if (row->number == 0)
			continue;
		row->texts[1] = symbols_function(r->symbols, pc);
		if (row->texts[1] == NULL && r->diff != NULL) {
			row->texts[1] = REPORT_NOT_KNOWN;
		} else if (row->texts[1] == NULL) {
			snprintf(text, sizeof(text), "0x%" PRIx64, row->number);
			report_note(r, row, 1, text);
		}
		report_note(r, row, 2, symbols_place(r->symbols, pc, text, sizeof(text)));
	}
}

/* The bucket of a time: one for each nanosecond below 8, then eight for each power of two. */
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

/* The row of a sample. */
static struct report_row *
row_of(struct report *r, struct report_table *t, const struct report_sample *s)
{
	struct report_who who = {0};
	if ((t->key & KEY_THREAD) != 0)
		who = s->who != NULL ? *s->who : report_who(r, s->thread);
	uint64_t number = (t->key & KEY_CPU) != 0 ? s->cpu : (t->key & KEY_PC) != 0 ? s->pc : 0;
	uint64_t unique = (t->key & KEY_EACH) != 0 ? ++r->samples : number;
	const char *text = (t->key & KEY_TEXT) != 0 ? s->text : NULL;
	const char *more = (t->key & KEY_MORE) != 0 ? s->more : NULL;
	/* What stands for a thread has no serial, but a name. */
	uint64_t key = report_key(who.serial, unique, text,
				  who.serial == 0 && s->who != NULL ? who.name : more);
	struct report_row *row = report_row(r, t, key, text, more);
	if (row == &t->others)
		return row;
	row->number = number;
	row->who = who;
	if ((t->key & KEY_COPY) != 0 && row->notes[0] == NULL) {
		report_note(r, row, 0, text);
		if (more != NULL)
			report_note(r, row, 1, more);
	}
	return row;
}

static void
row_time(struct report *r, const struct report_table *t, struct report_row *row, uint64_t from_ns,
	 uint64_t ns)
{
	unsigned decade = 0;
	if (row->cells[CELL_COUNT] == 1 || ns > row->cells[CELL_MAX]) {
		row->cells[CELL_MAX] = ns;
		row->cells[CELL_WHEN] = from_ns;
	}
	row->cells[CELL_TOTAL] += ns;
	if (!t->histogram)
		return;
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

void
report_add(struct report *r, const struct report_sample *s)
{
	if (r->sample != NULL) {
		r->sample(r->sample_arg, s);
		return;
	}
	for (struct report_table *const *at = report_tables; *at != NULL; at++) {
		struct report_table *t = *at;
		if (!t->wanted || (t->of >> s->kind & 1) == 0 ||
		    (t->worst && s->to_ns - s->from_ns < t->floor))
			continue;
		struct report_row *row = row_of(r, t, s);
		row->cells[CELL_COUNT]++;
		row->cells[CELL_VALUE] += s->value;
		if (!s->untimed)
			row_time(r, t, row, s->from_ns, s->to_ns - s->from_ns);
		if (t->add != NULL)
			t->add(row, s);
	}
}

/* A percentile of the samples: the longest time that its bucket of the histogram allows. */
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

uint64_t
report_row_cell(const struct report_row *row, unsigned cell)
{
	uint64_t n = row->cells[CELL_COUNT];
	switch (cell) {
	case CELL_MEAN:
		return n > 0 ? row->cells[CELL_TOTAL] / n : 0;
	case CELL_P50:
		return quantile(row, 50);
	case CELL_P99:
		return quantile(row, 99);
	default:
		return row->cells[cell];
	}
}

void
report_table_finish(struct report *r, struct report_table *t, struct report_row *total)
{
	places_name(r, t);
	report_row_add(total, &t->others);
	for (size_t i = 0; i < t->count; i++)
		report_row_add(total, t->rows[i]);
	rows_sort(t, t->rows, t->count);
	if (t->worst && t->count > WORST_ROWS)
		rows_fold(r, t);
}

void
report_table_free(struct report_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		report_row_free(t->rows[i]);
	free(t->others.buckets);
	ktr_map_free(&t->map);
	t->others = (struct report_row){.cells = {0}};
	t->has_others = t->wanted = false;
	t->count = 0;
	t->floor = t->folded_at = 0;
}
