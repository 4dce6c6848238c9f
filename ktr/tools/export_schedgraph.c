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
 *
 * Lines wait in a nameless file, in blocks, which are read from the last to the first.
 */
#define _GNU_SOURCE /* tdestroy() */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export.h"
#include "ktr/tools/line.h"
#include "ktr/tools/utf8.h"

#define BLOCK      (256u * 1024)
#define TEXT_MAX   8192u
#define CLEAN_MAX  (4 * KTR_WIRE_STRING_MAX + 1) /* a byte may become \xNN */
#define CLOCK_NS   1000000000u
#define CLOCK_PART 100u

struct group {
	bool above_zero;
	char name[];
};

struct source {
	const struct group *counters; /* NULL: states and points */
	bool has_state;
	size_t id; /* where in the tag it begins */
	char tag[];
};

/* A line, in a block; its text follows, without a NUL. */
struct row {
	uint64_t ns;
	const struct source *source;
	uint32_t cpu, length;
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
	void *groups, *sources, *ids; /* ids: sources, by their ids alone */
};

/* The parts of a line, in its text. */
struct parts {
	const char *group, *id, *type, *value, *attributes;
	int group_length, id_length;
};

/* ---- what a line says ---------------------------------------------------------------------------
 */

/* Behind `word`, when the text has it there; else NULL. */
static const char *
behind(const char *text, const char *word)
{
	size_t n = strlen(word);
	return text != NULL && strncmp(text, word, n) == 0 ? text + n : NULL;
}

/* Behind the quote that ends a quoted text, or NULL. */
static const char *
behind_quote(const char *text, int *length)
{
	const char *quote = text != NULL ? strchr(text, '"') : NULL;
	if (quote == NULL)
		return NULL;
	*length = (int)(quote - text);
	return quote + 1;
}

/* False: no line that schedgraph.py can read and show. */
static bool
parts_find(const char *text, struct parts *p)
{
	int length;
	p->group = behind(text, "KTRGRAPH group:\"");
	p->id = behind(behind_quote(p->group, &p->group_length), ", id:\"");
	p->type = behind(behind_quote(p->id, &p->id_length), ", ");
	p->value = behind(p->type, "counter:");
	if (p->value != NULL) {
		const char *digits = p->value + (*p->value == '-');
		size_t n = strspn(digits, "0123456789");
		p->attributes = n > 0 ? behind(digits + n, ", attributes: ") : NULL;
		return p->attributes != NULL;
	}
	p->value = behind(p->type, "state:\"");
	if (p->value == NULL)
		p->value = behind(p->type, "point:\"");
	p->attributes = behind(behind_quote(p->value, &length), ", attributes: ");
	return p->attributes != NULL;
}

/* The end of an attribute: the next ", " outside of quotes, or the text's. */
static const char *
attribute_end(const char *p)
{
	for (bool quoted = false; *p != '\0'; p++) {
		quoted ^= *p == '"';
		if (!quoted && p[0] == ',' && p[1] == ' ')
			break;
	}
	return p;
}

/* A text parameter without what a quoted text cannot have. */
static const char *
clean(const char *text, char *buf)
{
	const unsigned char *from = (const unsigned char *)text;
	char *p = buf;
	while (*from != '\0' && p + 4 < buf + CLEAN_MAX) {
		size_t n = utf8_length(from);
		if (n == 0 || *from < ' ' || *from == 0x7f) {
			p += snprintf(p, 5, "\\x%02x", (unsigned)*from++);
		} else if (*from == '"' || *from == ',') {
			*p++ = *from++ == '"' ? '\'' : ';';
		} else {
			memcpy(p, from, n);
			p += n;
			from += n;
		}
	}
	*p = '\0';
	return buf;
}

static void
event_text(const struct ktr_decode_event *e, char *text)
{
	char cleaned[6][CLEAN_MAX];
	struct ktr_decode_event copy = *e;
	for (unsigned i = 0; i < e->nargs; i++) {
		if (e->strings[i] != NULL)
			copy.strings[i] = clean(e->strings[i], cleaned[i]);
	}
	ktr_decode_text(text, TEXT_MAX, &copy);
	text[strcspn(text, "\n")] = '\0';
}

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
source_get(struct export *x, const struct parts *p)
{
	union {
		struct group group;
		struct source source;
		char room[sizeof(struct source) + TEXT_MAX];
	} key = {0};
	struct group *group = NULL;
	bool counter = *p->type == 'c';
	if (counter) {
		snprintf(key.group.name, TEXT_MAX, "%.*s", p->group_length, p->group);
		size_t size = sizeof(key.group) + strlen(key.group.name) + 1;
		group = node_get(&x->groups, &key, size, group_compare);
		if (group == NULL)
			return NULL;
		group->above_zero |= *p->value != '-' && strtoull(p->value, NULL, 10) > 0;
		memset(&key, 0, sizeof(key.source));
	}
	key.source.counters = group;
	key.source.id = (size_t)p->group_length;
	snprintf(key.source.tag, TEXT_MAX, "%.*s%.*s", p->group_length, p->group, p->id_length,
		 p->id);
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
		char room[TEXT_MAX];
	} key = {0};
	snprintf(key.source.tag, TEXT_MAX, "%.*s", length, id);
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
count_ticks(struct export *x, const struct parts *p, uint32_t cpu)
{
	for (const char *a = p->attributes; cpu == 0 && *a != '\0';) {
		const char *value = behind(a, "stathz:");
		if (value != NULL) {
			x->ticks++;
			x->stathz = strtoull(value, NULL, 10);
		}
		a = attribute_end(a);
		a += *a != '\0' ? 2 : 0;
	}
}

static bool
row_add(struct export *x, uint32_t cpu, uint64_t ns, const char *text, char *err, size_t errlen)
{
	struct parts p;
	if (!parts_find(text, &p))
		return true;
	struct source *s = source_get(x, &p);
	if (s == NULL)
		return export_fail(err, errlen, "not enough memory");
	if ((s->counters != NULL) != (*p.type == 'c'))
		return true;
	const struct row row = {ns, s, cpu, (uint32_t)strlen(text)};
	if (x->used + sizeof(row) + row.length > BLOCK && !block_end(x))
		return export_file_failed(&x->file, err, errlen);
	memcpy(x->block + x->used, &row, sizeof(row));
	memcpy(x->block + x->used + sizeof(row), text, row.length);
	x->used += sizeof(row) + row.length;
	if (x->count++ == 0)
		x->first_ns = ns;
	x->last_ns = ns;
	x->two_states |= *p.type == 's' && s->has_state;
	s->has_state |= *p.type == 's';
	count_ticks(x, &p, cpu);
	return true;
}

static bool
schedgraph_event(struct export *x, const struct export_event *ev, char *err, size_t errlen)
{
	char text[TEXT_MAX];
	if (ev->e->site == NULL || behind(ev->e->site->fmt, "KTRGRAPH ") == NULL)
		return true;
	event_text(ev->e, text);
	return row_add(x, ev->e->cpu, ev->ns, text, err, errlen);
}

static bool
schedgraph_gap(struct export *x, const struct export_gap *gap, char *err, size_t errlen)
{
	char text[160];
	snprintf(text, sizeof(text),
		 "KTRGRAPH group:\"lost\", id:\"CPU %" PRIu32 " lost\", point:\"lost\", "
		 "attributes: events:%" PRIu64 ", until:%" PRIu64,
		 gap->g->cpu, gap->g->count, gap->to_ns);
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
	const char *linked = behind(a, "linkedto:\"");
	if (linked != NULL)
		return behind_quote(linked, &length) != NULL && source_known(x, linked, length);
	return with_stathz || behind(a, "stathz:") == NULL;
}

static void
put_row(struct export *x, uint64_t index, const struct row *row, const char *text, bool with_stathz)
{
	struct line l;
	struct parts p;
	if (row->source->counters != NULL && !row->source->counters->above_zero)
		return;
	parts_find(text, &p);
	put_head(x, &l, index, row->cpu, row->ns);
	line_put(&l, text, (size_t)(p.attributes - text));
	bool any = false;
	for (const char *a = p.attributes, *end; *a != '\0'; a = end + (*end != '\0' ? 2 : 0)) {
		end = attribute_end(a);
		if (!attribute_stays(x, a, with_stathz))
			continue;
		if (any)
			line_text(&l, ", ");
		line_put(&l, a, (size_t)(end - a));
		any = true;
	}
	line_text(&l, any ? "\n" : "none\n");
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
	char text[TEXT_MAX];
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
		put_row(x, (*index)--, &row, text, with_stathz);
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
	char ignored[80];
	bool put = !complete || put_rows(x) || export_file_failed(&x->file, err, errlen);
	bool good = export_file_close(&x->file, complete && put, put ? err : ignored,
				      put ? errlen : sizeof(ignored));
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
	char ignored[80];
	schedgraph_close(x, false, ignored, sizeof(ignored));
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
