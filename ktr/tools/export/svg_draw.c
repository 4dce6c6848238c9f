/*
 * svg_draw.c - draws the lanes of CPUs, threads and their functions, and the wakeups.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/svg.h"

#define BAR_CPU    16u /* height of a CPU's bar, which is under the strip of interrupts */
#define STRIP      4u  /* height of that strip */
#define STRIP_GAP  2u
#define BAR_THREAD 12u
#define BAR_CALL   10u
#define LABEL_PX   6.6 /* width of a character in a bar */
#define NAME_CHARS 4u  /* a thread's id is left out where its name would have no more room */
#define TICK_BINS  0.5 /* interrupts closer than so many bins are drawn as one */
#define WAKE_BINS  2   /* wakeups are drawn if at most WAKE_MAX of them are in so many bins */
#define WAKE_MAX   3u

/* ---- CPUs ---- */

static const struct svg_thread *
thread_of_key(const struct svg *x, uint32_t key)
{
	return key >= LANE_KEY ? &x->threads[key - LANE_KEY] : NULL;
}

/* By its name and id, so that a thread has one colour in all pictures. */
static unsigned
colour_number(const struct svg_thread *t)
{
	return (unsigned)(ktr_hash(t->tid + 1, t->name, strlen(t->name)) % SVG_COLOURS);
}

/* The class of a thread's colour, such as `t3`; `to` is that of several threads together. */
static const char *
colour(const struct svg_thread *t, char buf[16])
{
	if (t == NULL)
		return "to";
	snprintf(buf, 16, "t%u", colour_number(t));
	return buf;
}

/* The class of a bar in the thread's colour. NULL: it is not drawn. */
static const char *
run_class(const struct svg *x, uint32_t key, char *buf)
{
	const struct svg_thread *t = thread_of_key(x, key);
	char name[16];
	if (key == LANE_NOTHING || (t != NULL && t->idle))
		return NULL;
	snprintf(buf, 16, "r %.12s", colour(t, name));
	return buf;
}

/* The class of a label that can be read on a colour. */
static const char *
label_class(unsigned n)
{
	if (n >= 16)
		return "l n";
	return n >= 8 || n == 1 || n == 4 ? "l y" : "l";
}

static void
run_name(struct svg *x, const struct lane_part *part)
{
	uint32_t key = part->key;
	const struct svg_thread *t = thread_of_key(x, key);
	if (t != NULL && t->idle)
		fputs("idle", x->f);
	else if (t != NULL)
		svg_thread_name(x->f, t, 0);
	else
		fputs(key == LANE_NOTHING ? "not known" : "others", x->f);
}

/* Puts the threads that ran most in the trace first, so that neighbouring bins look alike. */
static void
run_sort(const struct svg *x, struct lane_part *parts, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		for (size_t k = i; k > 0; k--) {
			const struct svg_thread *l = thread_of_key(x, parts[k - 1].key),
						*r = thread_of_key(x, parts[k].key);
			if (r == NULL || (l != NULL && l->rank <= r->rank))
				break;
			struct lane_part swap = parts[k];
			parts[k] = parts[k - 1];
			parts[k - 1] = swap;
		}
	}
}

static void
run_bin(struct svg *x, const struct svg_piece *p, double y)
{
	struct lane_part parts[LANE_PARTS];
	struct svg_piece sorted = *p;
	memcpy(parts, p->parts, p->count * sizeof(parts[0]));
	run_sort(x, parts, p->count);
	sorted.parts = parts;
	svg_bin_open(x, p, run_name);
	svg_bar(x->f, "z", p->x, y, p->width, BAR_CPU);
	svg_pile(x, &sorted, y, BAR_CPU, run_class);
	fputs("</g>\n", x->f);
}

static void
run_draw(struct svg *x, const struct svg_piece *p)
{
	const double y = STRIP + STRIP_GAP;
	const struct svg_thread *t = thread_of_key(x, p->parts[0].key);
	char buf[16];
	if (p->count > 1) {
		run_bin(x, p, y);
		return;
	}
	const char *class = run_class(x, p->parts[0].key, buf);
	if (p->parts[0].key == LANE_NOTHING)
		return;
	svg_bar_titled(x->f, class != NULL ? class : "z", p->x, y,
		       class != NULL ? svg_visible(p->width) : p->width, BAR_CPU);
	run_name(x, &p->parts[0]);
	svg_title_end(x, p);
	size_t room = p->width > 12 ? (size_t)((p->width - 8) / LABEL_PX) : 0;
	if (class == NULL || t == NULL ||
	    (room < 5 && (t->name[0] == '\0' || strlen(t->name) > room)))
		return;
	fprintf(x->f, "<text class=\"%s\" x=\"%.1f\" y=\"%.4g\">", label_class(colour_number(t)),
		p->x + 4, y + 12);
	svg_thread_name(x->f, t, room);
	fputs("</text>\n", x->f);
}

static void
irq_draw(struct svg *x, const struct svg_piece *p)
{
	uint64_t count = 0, ns = 0;
	char buf[32];
	for (size_t i = 0; i < p->count; i++) {
		count += p->parts[i].count;
		ns += p->parts[i].key != LANE_NOTHING ? p->parts[i].ns : 0;
	}
	if (count == 0 || (p->count == 1 && p->parts[0].key == LANE_NOTHING))
		return;
	svg_bar_titled(x->f, p->count > 1 ? "im" : "i", p->x, 0, svg_visible(p->width), STRIP);
	if (count > 1)
		fprintf(x->f, "%s interrupts, %s in", svg_count(buf, count),
			svg_duration((char[32]){0}, ns));
	else
		svg_text(x->f, p->parts[0].why != NULL ? p->parts[0].why : "interrupt", 0);
	svg_title_end(x, p);
}

static void
lost_draw(struct svg *x, const struct svg_piece *p)
{
	uint64_t count = 0;
	char buf[32];
	for (size_t i = 0; i < p->count; i++)
		count += p->parts[i].count;
	if (count == 0)
		return;
	svg_bar_titled(x->f, "lo", p->x, STRIP + STRIP_GAP, p->width < 2 ? 2 : p->width, BAR_CPU);
	fprintf(x->f, "%s event%s lost in", svg_count(buf, count), count == 1 ? "" : "s");
	svg_title_end(x, p);
}

static void
cpu_draw(struct svg *x, unsigned cpu, unsigned y)
{
	struct svg_cpu *c = &x->cpus[cpu];
	char a[32], b[32], d[32], e[32], g[32];
	fprintf(x->f,
		"<g id=\"cpu%u\"><text class=\"ink\" x=\"20\" y=\"%u\">cpu %u<title>cpu %u: busy "
		"%s, idle %s, %s interrupts in %s, %s events lost</title></text>\n",
		cpu, y + STRIP + STRIP_GAP + 12, cpu, cpu, svg_time(a, c->busy_ns),
		svg_time(b, c->idle_ns), svg_count(d, c->irq_count), svg_time(e, c->irq_ns),
		svg_count(g, c->lost_count));
	svg_share(x, y + STRIP + STRIP_GAP + 12, c->busy_ns, c->busy_ns + c->idle_ns);
	fprintf(x->f, "<g transform=\"translate(%u %u)\">\n", x->left, y);
	svg_lane_draw(x, &c->runs, x->bin_px, run_draw);
	svg_lane_draw(x, &c->irqs, TICK_BINS * x->bin_px, irq_draw);
	svg_lane_draw(x, &c->lost, x->bin_px, lost_draw);
	fputs("</g></g>\n", x->f);
}

/* ---- threads ---- */

static const char *
state_class(const struct svg *x, uint32_t key, char *buf)
{
	switch (key) {
	case SVG_CALLING:
	case SVG_STATE + ACTIVITY_RUNNING:
		return "r";
	case SVG_STATE + ACTIVITY_SPINNING:
		return "x";
	case SVG_STATE + ACTIVITY_RUNNABLE:
		return "q";
	case SVG_STATE + ACTIVITY_BLOCKED:
		return "bl";
	default:
		return NULL;
	}
}

static void
state_name(struct svg *x, const struct lane_part *p)
{
	enum activity_state state =
	    p->key == SVG_CALLING ? ACTIVITY_RUNNING : (enum activity_state)(p->key - SVG_STATE);
	if (p->key < SVG_STATE) {
		fputs("not known", x->f);
		return;
	}
	fputs(activity_state_name(state), x->f);
	if (p->key == SVG_CALLING && p->why == NULL)
		fputs(" in system calls", x->f);
	if (p->why == NULL)
		return;
	fputs(p->key == SVG_CALLING ? " in " : state == ACTIVITY_SPINNING ? " for " : " on ", x->f);
	svg_text(x->f, p->why, 0);
}

static uint64_t
key_ns(const struct svg_piece *p, uint32_t key)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < p->count; i++)
		ns += p->parts[i].key == key ? p->parts[i].ns : 0;
	return ns;
}

static void
state_bin(struct svg *x, const struct svg_piece *p)
{
	/* The order of states in a pile, from the bottom to the top. */
	static const uint32_t order[] = {SVG_STATE + ACTIVITY_RUNNING, SVG_CALLING,
					 SVG_STATE + ACTIVITY_SPINNING,
					 SVG_STATE + ACTIVITY_BLOCKED,
					 SVG_STATE + ACTIVITY_RUNNABLE};
	struct lane_part parts[LANE_PARTS];
	struct svg_piece sorted = *p;
	sorted.parts = parts;
	sorted.count = 0;
	svg_bin_open(x, p, state_name);
	for (unsigned o = 0; o < sizeof(order) / sizeof(order[0]); o++)
		for (size_t i = 0; i < p->count; i++)
			if (p->parts[i].key == order[o])
				parts[sorted.count++] = p->parts[i];
	svg_bar(x->f, "zz", p->x, 0, p->width, BAR_THREAD);
	if (key_ns(p, SVG_STATE + ACTIVITY_SLEEPING) > 0)
		svg_bar(x->f, "s", p->x, BAR_THREAD / 2 - 1, p->width, 2);
	svg_pile(x, &sorted, 0, BAR_THREAD, state_class);
	fputs("</g>\n", x->f);
}

static void
state_draw(struct svg *x, const struct svg_piece *p)
{
	if (p->count > 1) {
		state_bin(x, p);
		return;
	}
	const struct lane_part *part = &p->parts[0];
	const char *class = state_class(x, part->key, NULL);
	if (part->key == LANE_NOTHING)
		return;
	if (class == NULL)
		svg_bar_titled(x->f, "s", p->x, BAR_THREAD / 2 - 1, p->width, 2);
	else
		svg_bar_titled(x->f, class, p->x, 0, svg_visible(p->width), BAR_THREAD);
	state_name(x, part);
	svg_title_end(x, p);
	if (part->key == SVG_CALLING)
		svg_bar(x->f, "k", p->x, BAR_THREAD - 2, svg_visible(p->width), 2);
}

/* ---- functions ---- */

static unsigned
call_colour(uint32_t key)
{
	return (key - LANE_KEY) % SVG_COLOURS;
}

static const char *
call_class(const struct svg *x, uint32_t key, char *buf)
{
	if (key == LANE_NOTHING)
		return NULL;
	if (key == LANE_OTHER)
		return "r to";
	snprintf(buf, 16, "r t%u", call_colour(key));
	return buf;
}

static void
call_name(struct svg *x, const struct lane_part *p)
{
	if (p->key == LANE_NOTHING)
		fputs("none", x->f);
	else
		svg_text(x->f, p->why != NULL ? p->why : "others", 0);
}

static void
call_bin(struct svg *x, const struct svg_piece *p)
{
	svg_bin_open(x, p, call_name);
	svg_bar(x->f, "zz", p->x, 0, p->width, BAR_CALL);
	svg_pile(x, p, 0, BAR_CALL, call_class);
	fputs("</g>\n", x->f);
}

static void
call_draw(struct svg *x, const struct svg_piece *p)
{
	const struct lane_part *part = &p->parts[0];
	char buf[16];
	if (p->count > 1) {
		call_bin(x, p);
		return;
	}
	if (part->key == LANE_NOTHING)
		return;
	svg_bar_titled(x->f, call_class(x, part->key, buf), p->x, 0, svg_visible(p->width),
		       BAR_CALL);
	call_name(x, part);
	svg_title_end(x, p);
	size_t room = p->width > 10 ? (size_t)((p->width - 6) / LABEL_PX) : 0;
	if (part->why == NULL || strlen(part->why) > room)
		return;
	fprintf(x->f, "<text class=\"%s\" x=\"%.1f\" y=\"9\">", label_class(call_colour(part->key)),
		p->x + 3);
	svg_text(x->f, part->why, 0);
	fputs("</text>\n", x->f);
}

static void
thread_draw(struct svg *x, unsigned row, unsigned y)
{
	struct svg_thread *t = &x->threads[x->row_threads[row]];
	unsigned chars = (unsigned)((x->left - 28) / 6.8);
	char buf[32];
	unsigned digits = (unsigned)snprintf(buf, sizeof(buf), "%" PRIu32, t->tid);
	bool numbered = t->name[0] != '\0' && digits + NAME_CHARS < chars;
	fprintf(x->f, "<g id=\"tid%" PRIu32 "\"><text class=\"ink\" x=\"20\" y=\"%u\">", t->tid,
		y + 10);
	svg_thread_name(x->f, t, numbered ? chars - digits - 1 : chars);
	if (numbered)
		fprintf(x->f, " <tspan class=\"dim\">%s</tspan>", buf);
	fputs("<title>", x->f);
	svg_thread_name(x->f, t, 0);
	for (unsigned s = ACTIVITY_RUNNING; s < ACTIVITY_DEAD; s++)
		fprintf(x->f, "%s %s %s", s == ACTIVITY_RUNNING ? ":" : ",",
			activity_state_name((enum activity_state)s), svg_time(buf, t->ns[s]));
	fputs("</title></text>\n", x->f);
	svg_share(x, y + 10, t->ns[ACTIVITY_RUNNING] + t->ns[ACTIVITY_SPINNING],
		  x->to_ns - x->from_ns);
	fprintf(x->f, "<g class=\"%s\" transform=\"translate(%u %u)\">\n", colour(t, buf), x->left,
		y);
	svg_lane_draw(x, &t->lane, x->bin_px, state_draw);
	fputs("</g>", x->f);
	for (unsigned i = 0; i < t->levels; i++) {
		fprintf(x->f, "<g transform=\"translate(%u %u)\">\n", x->left,
			y + BAR_THREAD + 1 + i * SVG_CALL);
		svg_lane_draw(x, &t->calls[i], x->bin_px, call_draw);
		fputs("</g>", x->f);
	}
	fputs("</g>\n", x->f);
}

/* ---- wakeups ---- */

static uint32_t
row_of(const struct svg *x, uint32_t id)
{
	return x->threads[id].row;
}

static void
wake_draw(struct svg *x, const struct svg_wake *w, double px)
{
	unsigned top = svg_threads_top(x);
	uint32_t to_row = row_of(x, w->woken), from_row = row_of(x, w->waker);
	double to = (double)top + (double)svg_row_y(x, to_row) + 1, from = to - 8;
	double tip = 3;
	char buf[32];
	if (from_row != SVG_NONE && from_row != to_row) {
		bool down = from_row < to_row;
		from = (double)top + svg_row_y(x, from_row) + (down ? BAR_THREAD : 0);
		to += down ? 0 : BAR_THREAD - 2;
		tip = down ? 3 : -3;
	}
	fprintf(x->f, "<path class=\"w\" d=\"M%.1f %.4gV%.4gm-2.5 %.4gl2.5 %.4gl2.5 %.4g\"><title>",
		px + x->left, from, to, -tip, tip, -tip);
	svg_thread_name(x->f, &x->threads[w->waker], 0);
	fputs(" wakes ", x->f);
	svg_thread_name(x->f, &x->threads[w->woken], 0);
	fprintf(x->f, " on cpu %" PRIu32 " at %s</title></path>\n", w->cpu, svg_time(buf, w->ns));
	x->wakes_drawn++;
}

/* Counts the wakeups of drawn threads among those from wakes[i] on that are within WAKE_BINS bins;
 * *end is the first wakeup after these. */
static size_t
wakes_near(const struct svg *x, size_t i, size_t *end)
{
	double px = svg_x(x, x->wakes[i].ns) + WAKE_BINS * x->bin_px;
	size_t n = 0;
	for (*end = i; *end < x->wake_count && svg_x(x, x->wakes[*end].ns) < px; ++*end)
		n += row_of(x, x->wakes[*end].woken) != SVG_NONE;
	return n;
}

/* Draws wakeups where they are few. Otherwise the picture would be full of arrows. */
static void
wakes_draw(struct svg *x)
{
	size_t end;
	x->wakes_drawn = 0;
	for (size_t i = 0; i < x->wake_count && !svg_is_full(x); i = end) {
		if (wakes_near(x, i, &end) * x->wakes_every > WAKE_MAX)
			continue;
		for (size_t k = i; k < end; k++)
			if (row_of(x, x->wakes[k].woken) != SVG_NONE)
				wake_draw(x, &x->wakes[k], svg_x(x, x->wakes[k].ns));
	}
}

void
svg_draw(struct svg *x)
{
	unsigned y = x->top;
	svg_section(x, x->top - 14, "CPUS", "BUSY");
	for (unsigned cpu = 0, row = 0; cpu < KTR_DECODE_CPUS && row < x->cpu_rows; cpu++) {
		if (!dump_match_cpu(x->filter, cpu))
			continue;
		cpu_draw(x, cpu, y);
		y += SVG_CPU;
		row++;
	}
	if (x->rows > 0)
		svg_section(x, svg_threads_top(x) - 10, "THREADS", "RUNNING");
	for (unsigned row = 0; row < x->rows; row++)
		thread_draw(x, row, svg_threads_top(x) + svg_row_y(x, row));
	wakes_draw(x);
}
