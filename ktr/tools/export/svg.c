/*
 * svg.c - a picture of which thread ran when, and what the other threads waited for:
 * SVG 1.1, one file, no script. This file collects lanes of CPUs and threads while the events pass,
 * and has them drawn at the end.
 *
 * Memory is bounded. A lane has at most parts_max parts, and svg_thread.c forgets threads
 * and their lanes. The length of the trace is known only at the end. Until then, a full lane merges
 * parts that are short compared with its length so far (lane.h).
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/svg.h"

#define WIDTH_DEFAULT 1200u
#define PARTS_PER_PX  16u
#define PARTS_MIN     16384u /* of a lane */
#define PARTS_MAX     65536u
#define WAKES         16384u

static bool
on_thread(void *arg, const struct span *span)
{
	struct svg *x = arg;
	struct svg_thread *t = svg_thread_of(x, span->thread);
	if (t == NULL)
		return false;
	t->ns[span->state] += span->to_ns - span->from_ns;
	if (span->state == ACTIVITY_DEAD || span->thread->idle)
		return true;
	bool calling = span->state == ACTIVITY_RUNNING && span->call != NULL;
	uint32_t key = calling ? SVG_CALLING : SVG_STATE + (uint32_t)span->state;
	if (span->state == ACTIVITY_UNKNOWN)
		key = LANE_NOTHING;
	size_t room = t->lane.room;
	if (!lane_add(&t->lane, x->parts_max, key, calling ? span->call : span->why, 1,
		      span->from_ns, span->to_ns))
		return false;
	x->parts += t->lane.room - room;
	return svg_calls_add(x, t, span) && svg_threads_thin(x);
}

static bool
on_cpu(void *arg, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	struct svg *x = arg;
	struct svg_cpu *c = &x->cpus[cpu];
	const struct svg_thread *thread = t != NULL ? svg_thread_of(x, t) : NULL;
	if (t != NULL && thread == NULL)
		return false;
	x->switches += t != NULL;
	if (t != NULL)
		*(t->idle ? &c->idle_ns : &c->busy_ns) += to_ns - from_ns;
	uint32_t key = t != NULL ? LANE_KEY + svg_thread_id(x, thread) : LANE_NOTHING;
	return lane_add(&c->runs, x->parts_max, key, NULL, 1, from_ns, to_ns);
}

static bool
on_irq(void *arg, uint32_t cpu, const struct activity_thread *t, uint32_t number, const char *name,
       uint64_t from_ns, uint64_t to_ns)
{
	struct svg *x = arg;
	struct svg_cpu *c = &x->cpus[cpu];
	c->irq_count++;
	c->irq_ns += to_ns - from_ns;
	return lane_add(&c->irqs, x->parts_max, LANE_KEY + number, name, 1, from_ns, to_ns);
}

static bool
on_lost(void *arg, uint32_t cpu, uint64_t count, uint64_t from_ns, uint64_t to_ns)
{
	struct svg *x = arg;
	struct svg_cpu *c = &x->cpus[cpu];
	uint32_t some = count > INT32_MAX ? INT32_MAX : (uint32_t)count;
	c->lost_count += count;
	x->lost += count;
	return lane_add(&c->lost, x->parts_max, LANE_KEY, NULL, some, from_ns, to_ns);
}

static void
svg_free(struct svg *x)
{
	for (size_t i = 0; i < x->thread_count; i++)
		svg_lanes_clear(x, &x->threads[i]);
	for (unsigned i = 0; i < KTR_DECODE_CPUS; i++) {
		lane_clear(&x->cpus[i].runs);
		lane_clear(&x->cpus[i].irqs);
		lane_clear(&x->cpus[i].lost);
	}
	free(x->threads);
	free(x->ids);
	free(x->wakes);
	free(x->row_threads);
	free(x);
}

static bool
svg_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct svg *x = arg;
	x->header = h;
	return true;
}

/* Keeps one wakeup in wakes_every. When there is no room, drops every second one and doubles
 * wakes_every. False: no memory. */
static bool
wake_seen(struct svg *x, const struct activity *a)
{
	if (x->wakes_seen++ % x->wakes_every != 0)
		return true;
	if (x->wake_count == WAKES) {
		for (size_t i = 0; i < WAKES / 2; i++)
			x->wakes[i] = x->wakes[i * 2];
		x->wake_count = WAKES / 2;
		x->wakes_every *= 2;
		if ((x->wakes_seen - 1) % x->wakes_every != 0)
			return true;
	}
	struct svg_wake *w = &x->wakes[x->wake_count];
	const struct svg_thread *t = svg_thread_of(x, a->other);
	w->waker = t != NULL ? svg_thread_id(x, t) : 0;
	t = t != NULL ? svg_thread_of(x, a->thread) : NULL;
	if (t == NULL)
		return false;
	w->woken = svg_thread_id(x, t);
	w->ns = a->ns;
	w->cpu = a->cpu;
	x->wake_count++;
	return true;
}

static bool
svg_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct svg *x = arg;
	int64_t ns = (int64_t)ev->ns;
	bool good = true;
	if (ns >= x->filter->since_ns && ns <= x->filter->until_ns) {
		x->events++;
		for (unsigned i = 0; i < ev->count && good; i++)
			if (ev->activities[i].kind == ACTIVITY_WAKE)
				good = wake_seen(x, &ev->activities[i]);
	}
	return good;
}

static bool
svg_gone(void *arg, const struct activity_thread *t)
{
	svg_thread_gone(arg, t);
	return true;
}

/* Draws the lanes, with wider bins until the file is small enough. NULL: no memory. */
static char *
draw(struct svg *x, size_t *size)
{
	for (;; x->bin_px *= 1.5) {
		char *drawn = NULL;
		x->f = open_memstream(&drawn, size);
		if (x->f == NULL)
			return NULL;
		svg_draw(x);
		bool full = svg_is_full(x), good = fclose(x->f) == 0;
		if (good && !full)
			return drawn;
		free(drawn);
		if (!good)
			return NULL;
	}
}

/* The lanes are drawn first: the notes of the page say how they were drawn. */
static bool
picture(struct svg *x)
{
	size_t size;
	svg_page_measure(x);
	char *drawn = draw(x, &size);
	if (drawn != NULL)
		svg_page(x, x->file.f, drawn, size);
	free(drawn);
	return drawn != NULL;
}

static bool
svg_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct svg *x = arg;
	bool told = !complete || (svg_rows_choose(x) && picture(x));
	bool good = export_file_close(&x->file, complete && told, err, errlen);
	svg_free(x);
	return good;
}

static void *
svg_open(const struct export_options *o, char *err, size_t errlen)
{
	struct svg *x = export_create(sizeof(*x), o, err, errlen);
	if (x == NULL)
		return NULL;
	x->filter = o->filter;
	x->width = o->width != 0 ? o->width : WIDTH_DEFAULT;
	x->parts_max = (size_t)x->width * PARTS_PER_PX;
	x->parts_max = x->parts_max > PARTS_MIN ? x->parts_max : PARTS_MIN;
	x->parts_max = x->parts_max < PARTS_MAX ? x->parts_max : PARTS_MAX;
	x->wakes_every = 1;
	x->wakes = calloc(WAKES, sizeof(*x->wakes));
	x->row_threads = calloc(SVG_LANES_ASKED, sizeof(*x->row_threads));
	x->spans = o->spans;
	if (x->wakes != NULL && x->row_threads != NULL)
		return x;
	svg_close(x, false, err, errlen);
	return NULL;
}

static const struct span_ops svg_spans = {
    .thread = on_thread, .cpu = on_cpu, .irq = on_irq, .lost = on_lost, .functions = true};

const struct export_format export_svg = {
    .name = "svg",
    .what = "a picture: who ran when on which CPU, and what threads waited for; for browsers",
    .sees_all = true,
    .spans = &svg_spans,
    .open = svg_open,
    .begin = svg_begin,
    .event = svg_event,
    .gone = svg_gone,
    .close = svg_close,
};
