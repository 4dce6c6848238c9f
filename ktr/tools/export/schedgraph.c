/*
 * schedgraph.c - KTRGRAPH events for FreeBSD's tools/sched/schedgraph.py. Each line has
 * index, CPU, time and text, as those of `ktrdump -ct`. The newest line comes first, and there is
 * no header. All other events are left out, because schedgraph.py has no place for them.
 *
 * schedgraph.py would stop at some lines, and would draw others wrongly. Therefore:
 * - Times are nanoseconds, and no line is newer than the line before it. schedgraph.py would drop a
 *   line that is more than 2048 ns newer.
 * - Only state, point and counter lines are written. The first line of a source says whether it is
 *   a source of counters; lines of the other kind are left out. A group whose counters are never
 *   above 0 is left out, because schedgraph.py would divide by 0.
 * - schedgraph.py computes its clock's frequency from the statclock points on CPU 0: their stathz
 *   attribute times the mean time between them. Where ticks were skipped or lost, this is wrong. So
 *   when it is not 1 GHz within a hundredth, the stathz attributes are left out, and schedgraph.py
 *   assumes nanoseconds.
 * - A linkedto attribute stays only if the source that it names is in the output. Quoted texts have
 *   no quotes, control characters or commas: a comma would end the last attribute of a line.
 * - There is a source with two states, and some time between the first and the last line. If the
 *   trace has none, a source `trace` says when the trace began and ended.
 * - schedgraph.py draws from state to state. When a source begins with points, it draws all that
 *   follows too early. So if such a source has states at all, it gets the state `idle` at its
 *   beginning, which has the colour of the background.
 * - Where events were lost, there is a state `lost`, which the state `idle` ends. When an idle
 * thread stops running, it gets the state `idle`, too, because no event says that it stops.
 *
 * Lines wait in blocks in a nameless file; the blocks are read from the last to the first. When a
 * thread is gone, only the facts that waiting lines need are kept. If its ident comes again, that
 * is a new source. Links that named the ident before it had any source are left out.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/export.h"
#include "ktr/tools/export/schedgraph.h"
#include "ktr/tools/out.h"

#define BLOCK      (256u * 1024)
#define LINKS_MAX  (SCHEDGRAPH_TEXT / sizeof("linkedto:\"\""))
#define CLOCK_NS   1000000000u
#define CLOCK_PART 100u
#define LOST_LINE  "KTRGRAPH group:\"lost\", id:\"CPU %" PRIu32 " lost\", "

/*
 * A line in a block. After it come its text, without a NUL, and, for each of its links, the fact
 * that the named source is shown.
 */
struct row {
	uint64_t ns;
	uint32_t shown; /* the fact that it is in the output; NEVER: the block ends here */
	/*
	 * For a point that is the first line of its source: the fact that the source has states.
	 * If so, the state `idle` precedes it; room for its index is kept. For others: NEVER.
	 */
	uint32_t leads;
	uint32_t cpu;
	uint16_t length, links;
};

struct schedgraph {
	struct export_file file;
	struct out out; /* to the file */
	FILE *rows;
	uint8_t *block;
	size_t used;
	uint64_t blocks, count;
	uint64_t first_ns, last_ns;
	uint64_t ticks, stathz; /* statclock points on CPU 0; their rate */
	bool two_states;
	uint64_t lost_until[KTR_DECODE_CPUS],
	    lost_next; /* the earliest end of a loss that is not written yet; 0: there is none */
	struct schedgraph_sources sources;
};

/* ---- lines in ---- */

static bool
block_end(struct schedgraph *x)
{
	/* Zeros make a row with SCHEDGRAPH_NEVER; and no old memory reaches the disk. */
	memset(x->block + x->used, 0, BLOCK - x->used);
	x->used = 0;
	x->blocks++;
	return fwrite(x->block, BLOCK, 1, x->rows) == 1;
}

/* Counts ticks, and puts the facts of the links into links[]. Returns how many; -1: no memory. */
static int
attributes_look(struct schedgraph *x, const struct schedgraph_parts *p, uint32_t cpu,
		uint32_t *links)
{
	int n = 0, length;
	const char *id;
	for (const char *a = p->attributes; *a != '\0';) {
		const char *stathz = schedgraph_after(a, "stathz:");
		if (stathz != NULL && cpu == 0) {
			x->ticks++;
			x->stathz = strtoull(stathz, NULL, 10);
		}
		if (schedgraph_attribute_is_link(a, &id, &length) && id != NULL) {
			links[n] = schedgraph_link_get(&x->sources, id, length);
			if (links[n++] == SCHEDGRAPH_NEVER)
				return -1;
		}
		a = schedgraph_attribute_end(a);
		a += *a != '\0' ? 2 : 0;
	}
	return n;
}

static bool
row_put(struct schedgraph *x, const struct row *row, const char *text, const uint32_t *links)
{
	const size_t links_size = row->links * sizeof(*links);
	const size_t size = sizeof(*row) + row->length + links_size;
	if (x->used + size > BLOCK && !block_end(x))
		return false;
	uint8_t *at = x->block + x->used;
	memcpy(at, row, sizeof(*row));
	memcpy(at + sizeof(*row), text, row->length);
	memcpy(at + sizeof(*row) + row->length, links, links_size);
	x->used += size;
	return true;
}

static bool
row_add(struct schedgraph *x, uint32_t cpu, uint64_t ns, const char *text, char *err, size_t errlen)
{
	struct schedgraph_parts p;
	uint32_t links[LINKS_MAX];
	if (!schedgraph_parts_find(text, &p))
		return true;
	struct schedgraph_name *s = schedgraph_source_get(&x->sources, &p);
	if (s == NULL)
		return false;
	if ((s->shown != SCHEDGRAPH_ALWAYS) != (*p.type == 'c'))
		return true;
	const bool leads = !s->has_row && *p.type == 'p';
	if (leads)
		s->states = schedgraph_fact_new(&x->sources);
	int n = attributes_look(x, &p, cpu, links);
	if (n < 0 || (leads && s->states == SCHEDGRAPH_NEVER))
		return false;
	const struct row row = {.ns = ns,
				.shown = s->shown,
				.leads = leads ? s->states : SCHEDGRAPH_NEVER,
				.cpu = cpu,
				.length = (uint16_t)strlen(text),
				.links = (uint16_t)n};
	if (!row_put(x, &row, text, links))
		return export_file_failed(&x->file, err, errlen);
	if (x->count == 0)
		x->first_ns = ns;
	x->count += 1 + leads;
	x->last_ns = ns;
	s->has_row = true;
	if (*p.type == 's') {
		x->two_states |= s->has_state;
		s->has_state = true;
		schedgraph_fact_set(&x->sources, s->states, SCHEDGRAPH_ALWAYS);
	}
	return true;
}

static void
lost_sooner(struct schedgraph *x, uint64_t until)
{
	if (until != 0 && (x->lost_next == 0 || until < x->lost_next))
		x->lost_next = until;
}

/* Writes the ends of losses up to a time, in the order of time. */
static bool
lost_end(struct schedgraph *x, uint64_t ns, char *err, size_t errlen)
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

/* Adds a line that comes from no event: the thread has this state from here on. */
static bool
thread_state(struct schedgraph *x, const struct activity_thread *t, const char *state, uint32_t cpu,
	     uint64_t ns, char *err, size_t errlen)
{
	char name[SCHEDGRAPH_CLEAN], text[SCHEDGRAPH_CLEAN + 100];
	snprintf(text, sizeof(text),
		 "KTRGRAPH group:\"thread\", id:\"%s tid %" PRIu32
		 "\", state:\"%s\", attributes: none",
		 schedgraph_clean(t->name, name), t->tid, state);
	return row_add(x, cpu, ns, text, err, errlen);
}

/* Kestrel's events say when an idle thread begins to run, but not when it stops. */
static bool
idle_ends(struct schedgraph *x, const struct export_event *ev, char *err, size_t errlen)
{
	for (unsigned i = 0; i < ev->count; i++) {
		const struct activity *a = &ev->activities[i];
		if (a->kind != ACTIVITY_SWITCH || a->other == NULL || !a->other->idle ||
		    a->other == a->thread)
			continue;
		if (!thread_state(x, a->other, "idle", a->cpu, ev->ns, err, errlen))
			return false;
	}
	return true;
}

static bool
schedgraph_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct schedgraph *x = arg;
	char text[SCHEDGRAPH_TEXT];
	if (ev->e->site == NULL || schedgraph_after(ev->e->site->fmt, "KTRGRAPH ") == NULL)
		return true;
	schedgraph_event_text(ev->e, text);
	return lost_end(x, ev->ns, err, errlen) && idle_ends(x, ev, err, errlen) &&
	       row_add(x, ev->e->cpu, ev->ns, text, err, errlen);
}

static bool
schedgraph_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct schedgraph *x = arg;
	char text[160];
	if (!lost_end(x, gap->from_ns, err, errlen))
		return false;
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost)
		if (t->told && t->name[0] != '\0' &&
		    !thread_state(x, t, "unknown", gap->g->cpu, gap->from_ns, err, errlen))
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
schedgraph_gone(void *arg, const struct activity_thread *t)
{
	struct schedgraph *x = arg;
	schedgraph_thread_forget(&x->sources, t->tid);
	return true;
}

/* ---- lines out ---- */

static void
put_head(struct schedgraph *x, uint64_t index, uint32_t cpu, uint64_t ns)
{
	struct out *l = &x->out;
	out_number(l, index, 6);
	out_char(l, ' ');
	out_number(l, cpu, 3);
	out_char(l, ' ');
	out_number(l, ns, 16);
	out_char(l, ' ');
}

/* Writes the attributes, without links to sources that are not shown. */
static void
put_attributes(struct schedgraph *x, const char *a, const uint8_t *links, bool with_stathz)
{
	int length;
	struct out *l = &x->out;
	const char *id, *separator = "";
	for (const char *end; *a != '\0'; a = end + (*end != '\0' ? 2 : 0)) {
		bool stays = with_stathz || schedgraph_after(a, "stathz:") == NULL;
		end = schedgraph_attribute_end(a);
		if (schedgraph_attribute_is_link(a, &id, &length)) {
			uint32_t fact = SCHEDGRAPH_NEVER;
			if (id != NULL)
				memcpy(&fact, links, sizeof(fact));
			links += id != NULL ? sizeof(fact) : 0;
			stays = schedgraph_fact_is(&x->sources, fact);
		}
		if (!stays)
			continue;
		out_text(l, separator);
		out_put(l, a, (size_t)(end - a));
		separator = ", ";
	}
	out_text(l, *separator != '\0' ? "\n" : "none\n");
}

/* stored: the row's text and what follows it in the block. */
static void
put_row(struct schedgraph *x, uint64_t index, const struct row *row, const uint8_t *stored,
	bool with_stathz)
{
	struct schedgraph_parts p;
	char text[SCHEDGRAPH_TEXT];
	if (!schedgraph_fact_is(&x->sources, row->shown))
		return;
	memcpy(text, stored, row->length);
	text[row->length] = '\0';
	schedgraph_parts_find(text, &p);
	put_head(x, index, row->cpu, row->ns);
	out_put(&x->out, text, (size_t)(p.attributes - text));
	put_attributes(x, p.attributes, stored + row->length, with_stathz);
	if (!schedgraph_fact_is(&x->sources, row->leads))
		return;
	put_head(x, index - 1, row->cpu, row->ns);
	out_put(&x->out, text, (size_t)(p.type - text));
	out_text(&x->out, "state:\"idle\", attributes: none\n");
}

static void
put_trace_line(struct schedgraph *x, uint64_t index, uint64_t ns, const char *state)
{
	put_head(x, index, 0, ns);
	out_text(&x->out, "KTRGRAPH group:\"trace\", id:\"trace\", state:\"");
	out_text(&x->out, state);
	out_text(&x->out, "\", attributes: none\n");
}

/* Writes the lines of the block in memory, the last one first. */
static void
put_block(struct schedgraph *x, uint32_t *offsets, uint64_t *index, bool with_stathz)
{
	struct row row;
	size_t n = 0;
	for (size_t at = 0; at + sizeof(row) <= BLOCK;
	     at += sizeof(row) + row.length + row.links * sizeof(uint32_t)) {
		memcpy(&row, x->block + at, sizeof(row));
		if (row.shown == SCHEDGRAPH_NEVER)
			break;
		offsets[n++] = (uint32_t)at;
	}
	while (n-- > 0) {
		memcpy(&row, x->block + offsets[n], sizeof(row));
		put_row(x, *index, &row, x->block + offsets[n] + sizeof(row), with_stathz);
		*index -= 1 + (row.leads != SCHEDGRAPH_NEVER);
	}
}

static bool
put_rows(struct schedgraph *x)
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
	}
	if (good && trace)
		put_trace_line(x, index, x->first_ns, "idle");
	out_flush(&x->out);
	free(offsets);
	return good && ferror(x->file.f) == 0;
}

/* ---- begin and end ---- */

static bool
schedgraph_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct schedgraph *x = arg;
	bool put = !complete || (lost_end(x, UINT64_MAX, err, errlen) && put_rows(x)) ||
		   export_file_failed(&x->file, err, errlen);
	bool good = export_file_close(&x->file, complete && put, err, errlen);
	if (x->rows != NULL)
		fclose(x->rows);
	free(x->block);
	schedgraph_sources_free(&x->sources);
	free(x);
	return good;
}

static void *
schedgraph_open(const struct export_options *o, char *err, size_t errlen)
{
	struct schedgraph *x = export_create(sizeof(*x), o, err, errlen);
	if (x == NULL)
		return NULL;
	x->out.file = x->file.f;
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
    .event = schedgraph_event,
    .gap = schedgraph_gap,
    .gone = schedgraph_gone,
    .close = schedgraph_close,
};
