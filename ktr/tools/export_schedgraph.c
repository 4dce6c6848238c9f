/*
 * export_schedgraph.c - KTRGRAPH lines as FreeBSD's tools/sched/schedgraph.py reads them from
 * `ktrdump -ct`: newest first, without a header, each an index, CPU, time and text. All other
 * events are left out: it has no place for them.
 *
 * It stops at, or misreads, what is left out or added here:
 * - Times are nanoseconds, and never grow down the file: a line more than 2048 newer than the one
 *   before is dropped there.
 * - Only state, point and counter lines; those of a source (group and id together) are counters, or
 *   are not: what its first line is. A group of counters that are never above 0 divides by it.
 * - A clock is made of the statclock points on CPU 0: stathz times the mean time between them.
 *   Unless that is a nanosecond to a hundredth, as when ticks were skipped or lost, the stathz
 *   attributes are left out, and it takes a nanosecond.
 * - linkedto names a source that is there. Quoted texts have no quotes, no control
 *   characters, and no commas, which end an attribute that is the last.
 * - A file needs a source with two states, and a time between its first and last line: where there
 *   is none, a source `trace` says when the trace began and ended.
 * - It draws from state to state: where a source begins with points, all that follows is drawn too
 *   early, and points alone are drawn where the first is. So such a source begins with the state
 *   `idle`, which has the colour of the background, what was lost is a state until `idle`, and so
 *   is the time in which an idle thread ran.
 *
 * Lines wait in a nameless file, in blocks, which are read from the last to the first.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export.h"
#include "ktr/tools/export_schedgraph.h"
#include "ktr/tools/line.h"

#define BLOCK      (256u * 1024)
#define CLOCK_NS   1000000000u
#define CLOCK_PART 100u
#define LOST_LINE  "KTRGRAPH group:\"lost\", id:\"CPU %" PRIu32 " lost\", "

struct group {
	bool above_zero;
	char name[];
};

struct source {
	const struct group *counters; /* NULL: states and points */
	bool has_row, has_state;
	size_t id; /* where in the tag it begins */
	char tag[];
};

/* A line, in a block; its text follows, without a NUL. */
struct row {
	uint64_t ns;
	const struct source *source;
	uint32_t cpu, length;
	bool leads; /* its source, with a point; its index is that of two */
};

struct export
{
	struct export_file file;
	FILE *rows;
	uint8_t *block;
	size_t used;
	uint64_t blocks, count;
	uint64_t first_ns, last_ns;
	uint64_t ticks, stathz; /* statclock points on CPU 0; their rate */
	bool two_states;
	uint64_t lost_until[KTR_DECODE_CPUS],
	    lost_next;                /* their least; 0: that is told, or nothing was */
	void *groups, *sources, *ids; /* ids: sources, by their ids alone */
};

/* ---- sources ------------------------------------------------------------------------------------
 */

static int
group_compare(const void *a, const void *b)
{
	return strcmp(((const struct group *)a)->name, ((const struct group *)b)->name);
}

static int
source_compare(const void *a, const void *b)
{
	return strcmp(((const struct source *)a)->tag, ((const struct source *)b)->tag);
}

static int
id_compare(const void *a, const void *b)
{
	const struct source *l = a, *r = b;
	return strcmp(l->tag + l->id, r->tag + r->id);
}

/* The node like key, of that size, which becomes one when there is none; NULL: no memory. */
static void *
node_get(void **tree, const void *key, size_t size, int (*compare)(const void *, const void *))
{
	void **found = tfind(key, tree, compare);
	if (found != NULL)
		return *found;
	void *copy = malloc(size);
	if (copy == NULL)
		return NULL;
	memcpy(copy, key, size);
	if (tsearch(copy, tree, compare) == NULL) {
		free(copy);
		return NULL;
	}
	return copy;
}

/* NULL: no memory. */
static struct source *
source_get(struct export *x, const struct schedgraph_parts *p)
{
	union {
		struct group group;
		struct source source;
		char room[sizeof(struct source) + SCHEDGRAPH_TEXT];
	} key = {0};
	struct group *group = NULL;
	bool counter = *p->type == 'c';
	if (counter) {
		snprintf(key.group.name, SCHEDGRAPH_TEXT, "%.*s", p->group_length, p->group);
		size_t size = sizeof(key.group) + strlen(key.group.name) + 1;
		group = node_get(&x->groups, &key, size, group_compare);
		if (group == NULL)
			return NULL;
		group->above_zero |= *p->value != '-' && strtoull(p->value, NULL, 10) > 0;
		memset(&key, 0, sizeof(key.source));
	}
	key.source.counters = group;
	key.source.id = (size_t)p->group_length;
	snprintf(key.source.tag, SCHEDGRAPH_TEXT, "%.*s%.*s", p->group_length, p->group,
		 p->id_length, p->id);
	size_t size = sizeof(key.source) + strlen(key.source.tag) + 1;
	struct source *s = node_get(&x->sources, &key, size, source_compare);
	if (s == NULL || tsearch(s, &x->ids, id_compare) == NULL)
		return NULL;
	return s;
}

static bool
source_known(const struct export *x, const char *id, int length)
{
	struct {
		struct source source;
		char room[SCHEDGRAPH_TEXT];
	} key = {0};
	snprintf(key.source.tag, SCHEDGRAPH_TEXT, "%.*s", length, id);
	struct source **found = tfind(&key, &x->ids, id_compare);
	return found != NULL && ((*found)->counters == NULL || (*found)->counters->above_zero);
}

/* ---- lines in ----------------------------------------------------------------------------------
 */

static bool
block_end(struct export *x)
{
	struct row end = {.source = NULL};
	if (x->used + sizeof(end) <= BLOCK)
		memcpy(x->block + x->used, &end, sizeof(end));
	x->used = 0;
	x->blocks++;
	return fwrite(x->block, BLOCK, 1, x->rows) == 1;
}

static void
count_ticks(struct export *x, const struct schedgraph_parts *p, uint32_t cpu)
{
	for (const char *a = p->attributes; cpu == 0 && *a != '\0';) {
		const char *value = schedgraph_behind(a, "stathz:");
		if (value != NULL) {
			x->ticks++;
			x->stathz = strtoull(value, NULL, 10);
		}
		a = schedgraph_attribute_end(a);
		a += *a != '\0' ? 2 : 0;
	}
}

static bool
row_add(struct export *x, uint32_t cpu, uint64_t ns, const char *text, char *err, size_t errlen)
{
	struct schedgraph_parts p;
	if (!schedgraph_parts_find(text, &p))
		return true;
	struct source *s = source_get(x, &p);
	if (s == NULL)
		return export_fail(err, errlen, "not enough memory");
	if ((s->counters != NULL) != (*p.type == 'c'))
		return true;
	const bool leads = !s->has_row && *p.type == 'p';
	const struct row row = {ns, s, cpu, (uint32_t)strlen(text), leads};
	if (x->used + sizeof(row) + row.length > BLOCK && !block_end(x))
		return export_file_failed(&x->file, err, errlen);
	memcpy(x->block + x->used, &row, sizeof(row));
	memcpy(x->block + x->used + sizeof(row), text, row.length);
	x->used += sizeof(row) + row.length;
	if (x->count == 0)
		x->first_ns = ns;
	x->count += 1 + leads;
	x->last_ns = ns;
	s->has_row = true;
	x->two_states |= *p.type == 's' && s->has_state;
	s->has_state |= *p.type == 's';
	count_ticks(x, &p, cpu);
	return true;
}

static void
lost_sooner(struct export *x, uint64_t until)
{
	if (until != 0 && (x->lost_next == 0 || until < x->lost_next))
		x->lost_next = until;
}

/* Says where losses ended, in the order of time, up to a time. */
static bool
lost_end(struct export *x, uint64_t ns, char *err, size_t errlen)
{
	char text[160];
	while (x->lost_next != 0 && x->lost_next <= ns) {
		uint64_t until = x->lost_next;
		x->lost_next = 0;
		for (uint32_t cpu = 0; cpu < KTR_DECODE_CPUS; cpu++) {
			if (x->lost_until[cpu] != until) {
				lost_sooner(x, x->lost_until[cpu]);
				continue;
			}
			x->lost_until[cpu] = 0;
			snprintf(text, sizeof(text), LOST_LINE "state:\"idle\", attributes: none",
				 cpu);
			if (!row_add(x, cpu, until, text, err, errlen))
				return false;
		}
	}
	return true;
}

/* Idle threads say when they run, not when they do no more. */
static bool
idle_ends(struct export *x, const struct export_event *ev, char *err, size_t errlen)
{
	char text[160];
	for (unsigned i = 0; i < ev->count; i++) {
		const struct activity *a = &ev->activities[i];
		if (a->kind != ACTIVITY_SWITCH || a->other == NULL || !a->other->idle ||
		    a->other == a->thread)
			continue;
		snprintf(text, sizeof(text),
			 "KTRGRAPH group:\"thread\", id:\"%s tid %" PRIu32
			 "\", state:\"idle\", attributes: none",
			 a->other->name, a->other->tid);
		if (!row_add(x, a->cpu, ev->ns, text, err, errlen))
			return false;
	}
	return true;
}

static bool
schedgraph_event(struct export *x, const struct export_event *ev, char *err, size_t errlen)
{
	char text[SCHEDGRAPH_TEXT];
	if (ev->e->site == NULL || schedgraph_behind(ev->e->site->fmt, "KTRGRAPH ") == NULL)
		return true;
	schedgraph_event_text(ev->e, text);
	return lost_end(x, ev->ns, err, errlen) && idle_ends(x, ev, err, errlen) &&
	       row_add(x, ev->e->cpu, ev->ns, text, err, errlen);
}

static bool
schedgraph_gap(struct export *x, const struct export_gap *gap, char *err, size_t errlen)
{
	char text[160];
	if (!lost_end(x, gap->from_ns, err, errlen))
		return false;
	snprintf(text, sizeof(text),
		 LOST_LINE "state:\"lost\", attributes: events:%" PRIu64 ", until:%" PRIu64,
		 gap->g->cpu, gap->g->count, gap->to_ns);
	if (x->lost_until[gap->g->cpu] < gap->to_ns)
		x->lost_until[gap->g->cpu] = gap->to_ns;
	lost_sooner(x, gap->to_ns);
	return row_add(x, gap->g->cpu, gap->from_ns, text, err, errlen);
}

static bool
schedgraph_begin(struct export *x, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	(void)x, (void)h, (void)err, (void)errlen;
	return true;
}

/* ---- lines out --------------------------------------------------------------------------------
 */

static void
put_head(struct export *x, struct line *l, uint64_t index, uint32_t cpu, uint64_t ns)
{
	line_begin(l, x->file.f);
	line_number(l, index, 6);
	line_char(l, ' ');
	line_number(l, cpu, 3);
	line_char(l, ' ');
	line_number(l, ns, 16);
	line_char(l, ' ');
}

static bool
attribute_stays(const struct export *x, const char *a, bool with_stathz)
{
	int length;
	const char *linked = schedgraph_behind(a, "linkedto:\"");
	if (linked != NULL)
		return schedgraph_behind_quote(linked, &length) != NULL &&
		       source_known(x, linked, length);
	return with_stathz || schedgraph_behind(a, "stathz:") == NULL;
}

static void
put_row(struct export *x, uint64_t index, const struct row *row, const char *text, bool with_stathz)
{
	struct line l;
	struct schedgraph_parts p;
	if (row->source->counters != NULL && !row->source->counters->above_zero)
		return;
	schedgraph_parts_find(text, &p);
	put_head(x, &l, index, row->cpu, row->ns);
	line_put(&l, text, (size_t)(p.attributes - text));
	bool any = false;
	for (const char *a = p.attributes, *end; *a != '\0'; a = end + (*end != '\0' ? 2 : 0)) {
		end = schedgraph_attribute_end(a);
		if (!attribute_stays(x, a, with_stathz))
			continue;
		if (any)
			line_text(&l, ", ");
		line_put(&l, a, (size_t)(end - a));
		any = true;
	}
	line_text(&l, any ? "\n" : "none\n");
	line_flush(&l);
	if (!row->leads || !row->source->has_state)
		return;
	put_head(x, &l, index - 1, row->cpu, row->ns);
	line_put(&l, text, (size_t)(p.type - text));
	line_text(&l, "state:\"idle\", attributes: none\n");
	line_flush(&l);
}

static void
put_trace_line(struct export *x, uint64_t index, uint64_t ns, const char *state)
{
	struct line l;
	put_head(x, &l, index, 0, ns);
	line_text(&l, "KTRGRAPH group:\"trace\", id:\"trace\", state:\"");
	line_text(&l, state);
	line_text(&l, "\", attributes: none\n");
	line_flush(&l);
}

/* The lines of the block in memory, from the last. */
static void
put_block(struct export *x, uint32_t *offsets, uint64_t *index, bool with_stathz)
{
	char text[SCHEDGRAPH_TEXT];
	struct row row;
	size_t n = 0;
	for (size_t at = 0; at + sizeof(row) <= BLOCK; at += sizeof(row) + row.length) {
		memcpy(&row, x->block + at, sizeof(row));
		if (row.source == NULL)
			break;
		offsets[n++] = (uint32_t)at;
	}
	while (n-- > 0) {
		memcpy(&row, x->block + offsets[n], sizeof(row));
		memcpy(text, x->block + offsets[n] + sizeof(row), row.length);
		text[row.length] = '\0';
		put_row(x, *index, &row, text, with_stathz);
		*index -= 1 + row.leads;
	}
}

static bool
put_rows(struct export *x)
{
	uint32_t *offsets = malloc(BLOCK / sizeof(struct row) * sizeof(*offsets));
	bool good = offsets != NULL && block_end(x) && fflush(x->rows) == 0;
	bool trace = !x->two_states || x->first_ns == x->last_ns;
	uint64_t index = x->count, last = x->last_ns + (x->first_ns == x->last_ns);
	uint64_t between = x->ticks > 0 ? (last - x->first_ns) / x->ticks : 0;
	uint64_t off = between * x->stathz - CLOCK_NS;
	bool with_stathz = off + CLOCK_NS / CLOCK_PART <= CLOCK_NS / CLOCK_PART * 2;
	if (good && trace)
		put_trace_line(x, index + 1, last, "end");
	for (uint64_t n = x->blocks; good && n-- > 0;) {
		good = fseeko(x->rows, (off_t)(n * BLOCK), SEEK_SET) == 0 &&
		       fread(x->block, BLOCK, 1, x->rows) == 1;
		if (good)
			put_block(x, offsets, &index, with_stathz);
		good &= ferror(x->file.f) == 0;
	}
	if (good && trace)
		put_trace_line(x, index, x->first_ns, "idle");
	free(offsets);
	return good;
}

/* ---- begin and end ------------------------------------------------------------------------------
 */

static void
keep(void *node)
{
	(void)node; /* it is in another tree */
}

static bool
schedgraph_close(struct export *x, bool complete, char *err, size_t errlen)
{
	bool put = !complete || (lost_end(x, UINT64_MAX, err, errlen) && put_rows(x)) ||
		   export_file_failed(&x->file, err, errlen);
	bool good = export_file_close(&x->file, complete && put, err, errlen);
	if (x->rows != NULL)
		fclose(x->rows);
	free(x->block);
	tdestroy(x->ids, keep);
	tdestroy(x->sources, free);
	tdestroy(x->groups, free);
	free(x);
	return good;
}

static struct export *
schedgraph_open(const struct export_options *o, char *err, size_t errlen)
{
	struct export *x = export_create(sizeof(*x), o, err, errlen);
	if (x == NULL)
		return NULL;
	x->block = malloc(BLOCK);
	x->rows = export_file_scratch(&x->file);
	if (x->block != NULL && x->rows != NULL)
		return x;
	export_file_failed(&x->file, err, errlen);
	schedgraph_close(x, false, err, errlen);
	return NULL;
}

const struct export_format export_schedgraph = {
    .name = "schedgraph",
    .what = "scheduler events, newest first: FreeBSD's schedgraph.py",
    .open = schedgraph_open,
    .begin = schedgraph_begin,
    .event = schedgraph_event,
    .gap = schedgraph_gap,
    .close = schedgraph_close,
};
