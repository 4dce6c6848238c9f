/*
 * chrome.c - Chrome's trace event JSON ("Trace Event Format", the array form), for Perfetto,
 * catapult's trace viewer and speedscope.
 *
 * There are two processes. `CPUs` has a track for each CPU, with the thread that runs, the
 * interrupts within that, what was lost, and the counters. `threads` has a track for each thread,
 * with its system calls, its functions and its states. The state "running" is shown outside of
 * system calls and functions only. Slices of a track must nest, so a system call or function that
 * begins or ends within a state cuts the state in two. An arrow leads from a wakeup to the place
 * where the woken thread runs. Each event except a counter is an instant of its thread, too, with
 * its parameters and its CPU as arguments.
 *
 * What readers do, and what follows from it:
 * - A reader knows a thread by its tid alone, whatever the process, and takes tid 0 for the idle
 *   thread. So CPUs and thread 0 get numbers that no thread has.
 * - A reader pairs begins and ends by name and arguments, in any order where times are equal. So
 *   each slice has a name and no arguments, and none ends when another of the same name begins.
 * - A reader keeps numbers as doubles. So integers above 2^53 are strings.
 * Ends are written as they come, so that a file that is cut off can be read.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/chrome.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define PID_THREADS 0xfffe0000u
#define PID_CPUS    0xfffe0001u
#define TID_ZERO    0xfffe0002u
#define TID_CPU     0xffff0000u

#define STATE_BYTES (16u + KTR_WIRE_STRING_MAX)
#define NEST_MAX    8u /* interrupts of a CPU that have not ended */

struct track {
	const struct activity_thread *t;
	uint64_t flow;               /* number of an arrow that is to end here; 0: none */
	struct timeline_stack stack; /* system calls and functions */
	char state[STATE_BYTES];     /* the innermost slice; "": none */
	char name[ACTIVITY_NAME];    /* as it was written */
};

struct cpu {
	bool known;
	char runs[ACTIVITY_NAME + 16]; /* the slice that has begun; "": none */
	const char *interrupts[NEST_MAX];
	unsigned nested;
	/* A loss is kept until its end is known, which is when the CPU does something again. */
	bool lost;
	uint64_t lost_from, lost_to, lost_count;
	enum ktr_gap_reason lost_why;
};

struct chrome {
	struct export_file file;
	struct chrome_out out; /* to the file */
	struct export_classes known;
	struct timeline_name *names; /* by the numbers of classes in `known` */
	size_t name_room;
	struct track *tracks; /* by activity_thread.number */
	size_t track_room;
	struct cpu cpus[KTR_DECODE_CPUS];
	uint64_t last_ns, flows;
};

static struct chrome_place
place_of_cpu(uint32_t cpu)
{
	return (struct chrome_place){PID_CPUS, TID_CPU + cpu};
}

static struct chrome_place
place_of(const struct track *track)
{
	return (struct chrome_place){PID_THREADS, track->t->tid != 0 ? track->t->tid : TID_ZERO};
}

/* ---- tracks ---- */

/* A thread's track. A new track, or a new name, is written. NULL: no memory. */
static struct track *
track_of(struct chrome *x, const struct activity_thread *t)
{
	if (!MEMORY_ROOM(x->tracks, x->track_room, t->number))
		return NULL;
	struct track *track = &x->tracks[t->number];
	bool known = track->t != NULL;
	track->t = t;
	if (known && strcmp(track->name, t->name) == 0)
		return track;
	memcpy(track->name, t->name, sizeof(track->name));
	char unnamed[32];
	snprintf(unnamed, sizeof(unnamed), t->tid != 0 ? "thread %" PRIu32 : "no thread", t->tid);
	chrome_put_meta(&x->out, "thread", place_of(track), t->name[0] != '\0' ? t->name : unnamed,
			t->tid);
	return track;
}

/* Writes the CPU's loss, if there is one. It ends at `until` at the latest. */
static void
lost_put(struct chrome *x, uint32_t number, uint64_t until)
{
	struct cpu *cpu = &x->cpus[number];
	struct out *l = &x->out.out;
	if (!cpu->lost)
		return;
	cpu->lost = false;
	uint64_t to = cpu->lost_to < until ? cpu->lost_to : until, ns = to - cpu->lost_from;
	chrome_entry_begin(&x->out, 'X', place_of_cpu(number), cpu->lost_from);
	chrome_entry_name(l, "lost", "lost");
	/* A reader rounds start + length. Even then, the next slice must not begin before it. */
	ns -= ns > 0;
	out_text(l, ",\"dur\":");
	chrome_put_time(l, ns);
	out_text(l, ",\"args\":{\"events\":");
	chrome_put_integer(l, cpu->lost_count, false);
	out_text(l, ",\"why\":");
	out_json(l, ktr_gap_reason_name(cpu->lost_why));
	out_char(l, '}');
	chrome_entry_end(l);
}

/* A CPU does something at ns. Writes its track the first time; ends a loss. */
static struct cpu *
cpu_of(struct chrome *x, uint32_t number, uint64_t ns)
{
	struct cpu *cpu = &x->cpus[number];
	char name[32];
	if (!cpu->known) {
		snprintf(name, sizeof(name), "CPU %" PRIu32, number);
		chrome_put_meta(&x->out, "thread", place_of_cpu(number), name, number);
	}
	cpu->known = true;
	lost_put(x, number, ns);
	return cpu;
}

/* Ends the arrow to this thread, if there is one. */
static void
flow_end(struct chrome *x, struct track *track, uint64_t ns)
{
	if (track->flow != 0)
		chrome_put_flow(&x->out, 'f', place_of(track), ns, track->flow);
	track->flow = 0;
}

/* The name of the slice for the thread's state; "": there is no slice. */
static void
state_name(const struct track *track, char *name)
{
	const struct activity_thread *t = track->t;
	bool shown = t->state != ACTIVITY_UNKNOWN && t->state != ACTIVITY_DEAD &&
		     (t->state != ACTIVITY_RUNNING || track->stack.depth == 0);
	snprintf(name, STATE_BYTES, "%s%s%s", shown ? activity_state_name(t->state) : "",
		 shown && t->why != NULL ? ": " : "", shown && t->why != NULL ? t->why : "");
}

/* Ends the slice of the state, and inner slices, until `left` are left. */
static void
slices_end(struct chrome *x, struct track *track, uint64_t ns, unsigned left)
{
	char name[STATE_BYTES];
	chrome_put_end(&x->out, place_of(track), ns, track->state, "state");
	while (track->stack.depth > left) {
		const struct timeline_slice *s = &track->stack.slices[--track->stack.depth];
		snprintf(name, sizeof(name), "%s", s->name);
		chrome_put_end(&x->out, place_of(track), ns, name, timeline_kinds[s->kind]);
	}
}

/* Ends slices that are over, and begins one if the thread's state has changed. */
static void
state_put(struct chrome *x, struct track *track, uint64_t ns)
{
	enum activity_state state = track->t->state;
	char name[STATE_BYTES];
	bool over = state == ACTIVITY_UNKNOWN || state == ACTIVITY_DEAD;
	if (over)
		flow_end(x, track, ns);
	unsigned left = over ? 0 : timeline_over(&track->stack, track->t, track->t->depth);
	if (over || left < track->stack.depth)
		slices_end(x, track, ns, left);
	state_name(track, name);
	if (strcmp(name, track->state) != 0) {
		chrome_put_end(&x->out, place_of(track), ns, track->state, "state");
		memcpy(track->state, name, sizeof(name));
		if (name[0] != '\0')
			chrome_put_begin(&x->out, place_of(track), ns, name, "state");
	}
	if (state == ACTIVITY_RUNNING)
		flow_end(x, track, ns);
}

/* Ends all slices of the track, and forgets it. */
static void
track_end(struct chrome *x, struct track *track)
{
	if (track->t == NULL)
		return;
	flow_end(x, track, x->last_ns);
	slices_end(x, track, x->last_ns, 0);
	timeline_free(&track->stack);
	*track = (struct track){0};
}

/* Ends the CPU's innermost interrupts, until `left` are left. */
static void
interrupts_end(struct chrome *x, uint32_t number, uint64_t ns, unsigned left)
{
	struct cpu *cpu = cpu_of(x, number, ns);
	char name[STATE_BYTES];
	while (cpu->nested > left) {
		snprintf(name, sizeof(name), "%s", cpu->interrupts[--cpu->nested]);
		chrome_put_end(&x->out, place_of_cpu(number), ns, name, "interrupt");
	}
}

static void
cpu_clear(struct chrome *x, uint32_t number, uint64_t ns)
{
	interrupts_end(x, number, ns, 0);
	chrome_put_end(&x->out, place_of_cpu(number), ns, x->cpus[number].runs, "cpu");
}

/* ---- activities ---- */

static void
put_switch(struct chrome *x, const struct activity *a)
{
	struct cpu *cpu = cpu_of(x, a->cpu, a->ns);
	cpu_clear(x, a->cpu, a->ns);
	if (a->left >= 0 && x->cpus[a->left].known)
		cpu_clear(x, (uint32_t)a->left, a->ns);
	if (a->other != NULL)
		state_put(x, track_of(x, a->other), a->ns);
	if (!a->thread->idle && a->thread->tid != 0) {
		snprintf(cpu->runs, sizeof(cpu->runs), "%s %" PRIu32, a->thread->name,
			 a->thread->tid);
		chrome_put_begin(&x->out, place_of_cpu(a->cpu), a->ns, cpu->runs, "cpu");
	}
	state_put(x, track_of(x, a->thread), a->ns);
}

static void
put_wakeup(struct chrome *x, const struct activity *a)
{
	struct track *waker = track_of(x, a->other), *woken = track_of(x, a->thread);
	if ((waker->state[0] == '\0' && waker->stack.depth == 0) || woken->flow != 0)
		return;
	if (woken->state[0] == '\0' && woken->stack.depth == 0) { /* an arrow must end in a slice */
		snprintf(woken->state, sizeof(woken->state), "woken");
		chrome_put_begin(&x->out, place_of(woken), a->ns, woken->state, "state");
	}
	woken->flow = ++x->flows;
	chrome_put_flow(&x->out, 's', place_of(waker), a->ns, woken->flow);
}

static void
put_interrupt(struct chrome *x, const struct activity *a)
{
	struct cpu *cpu = cpu_of(x, a->cpu, a->ns);
	if (a->kind == ACTIVITY_IRQ_ENTER) {
		const char *text = a->text[0] != '\0' ? a->text : "interrupt";
		if (cpu->nested == NEST_MAX) /* their ends were lost */
			interrupts_end(x, a->cpu, a->ns, 0);
		cpu->interrupts[cpu->nested++] = text;
		chrome_put_begin(&x->out, place_of_cpu(a->cpu), a->ns, text, "interrupt");
	} else if (cpu->nested > 0) {
		interrupts_end(x, a->cpu, a->ns, cpu->nested - 1);
	}
}

/* A system call or function begins, within `outside` others. False: no memory. */
static bool
put_call(struct chrome *x, const struct activity *a, enum timeline_kind kind, unsigned outside)
{
	struct track *track = track_of(x, a->thread);
	const char *name = a->text[0] != '\0' ? a->text : "syscall";
	if (a->thread->state == ACTIVITY_DEAD) /* the thread is about to give up its CPU */
		return true;
	slices_end(x, track, a->ns, outside);
	if (!timeline_push(&track->stack, kind, a->thread->depth, name))
		return false;
	chrome_put_begin(&x->out, place_of(track), a->ns, name, timeline_kinds[kind]);
	state_put(x, track, a->ns);
	return true;
}

static void
put_counter(struct chrome *x, const struct activity *a)
{
	struct out *l = &x->out.out;
	cpu_of(x, a->cpu, a->ns);
	chrome_entry_begin(&x->out, 'C', place_of_cpu(a->cpu), a->ns);
	chrome_entry_name(l, a->text[0] != '\0' ? a->text : "counter", "counter");
	out_text(l, ",\"args\":{\"value\":");
	out_signed(l, a->value);
	out_char(l, '}');
	chrome_entry_end(l);
}

/* False: no memory. */
static bool
put_activity(struct chrome *x, const struct activity *a)
{
	struct track *track = track_of(x, a->thread);
	switch (a->kind) {
	case ACTIVITY_SWITCH:
		put_switch(x, a);
		break;
	case ACTIVITY_STATE:
	case ACTIVITY_SYS_EXIT:
	case ACTIVITY_RETURN:
		state_put(x, track, a->ns);
		break;
	case ACTIVITY_WAKE:
		put_wakeup(x, a);
		break;
	case ACTIVITY_IRQ_ENTER:
	case ACTIVITY_IRQ_EXIT:
		put_interrupt(x, a);
		break;
	case ACTIVITY_SYS_ENTER:
		return put_call(x, a, TIMELINE_SYSCALL,
				timeline_find(&track->stack, TIMELINE_SYSCALL));
	case ACTIVITY_CALL:
		return put_call(x, a, TIMELINE_FUNCTION,
				timeline_over(&track->stack, a->thread, a->thread->depth - 1));
	case ACTIVITY_COUNTER:
		put_counter(x, a);
		break;
	default:
		break;
	}
	return true;
}

/* ---- events ---- */

/* Finds an event's class and name. `unknown` becomes the name if its site is not known. False: no
 * memory. */
static bool
told_find(struct chrome *x, const struct ktr_decode_event *e, struct chrome_told *told,
	  struct timeline_name *unknown)
{
	bool is_new;
	size_t number;
	told->e = e;
	if (e->site == NULL) {
		unknown->param = -1;
		snprintf(unknown->text, sizeof(unknown->text), "site %" PRIu32, e->site_number);
		told->class = timeline_unknown_class();
		told->name = unknown;
		return true;
	}
	told->class = export_class_of(&x->known, e, &number, &is_new);
	if (told->class == NULL)
		return false;
	if (!MEMORY_ROOM(x->names, x->name_room, number))
		return false;
	if (is_new)
		timeline_name_find(&x->names[number], told->class);
	told->name = &x->names[number];
	return true;
}

static void
put_instant(struct chrome *x, const struct track *track, const struct export_event *ev,
	    const struct chrome_told *told)
{
	const struct ktr_decode_event *e = ev->e;
	char bad[32], category[512] = "";
	struct out *l = &x->out.out;
	if (e->site != NULL)
		dump_classes(e->header, e->site->classes, category, sizeof(category));
	chrome_entry_begin(&x->out, 'i', place_of(track), ev->ns);
	chrome_entry_name(l, timeline_event_name(told->name, e, bad), category);
	out_text(l, ",\"s\":\"t\"");
	chrome_put_args(l, told);
	chrome_entry_end(l);
}

static bool
chrome_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct chrome *x = arg;
	struct chrome_told told;
	struct timeline_name unknown;
	bool counter = false;
	bool good = told_find(x, ev->e, &told, &unknown) && track_of(x, ev->thread) != NULL;
	x->last_ns = ev->ns;
	for (unsigned i = 0; i < ev->count && good; i++) {
		const struct activity *a = &ev->activities[i];
		good = track_of(x, a->thread) != NULL &&
		       (a->other == NULL || track_of(x, a->other) != NULL);
		good = good && put_activity(x, a);
		counter |= a->kind == ACTIVITY_COUNTER;
	}
	if (!good)
		return false;
	if (!counter)
		put_instant(x, track_of(x, ev->thread), ev, &told);
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

/*
 * Losses of one CPU may overlap, but slices of a track must not cross. So a loss that begins within
 * another one ends that one, and lasts at least until the other would have ended.
 */
static bool
chrome_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct chrome *x = arg;
	const struct ktr_decode_gap *g = gap->g;
	struct cpu *cpu = &x->cpus[g->cpu];
	uint64_t from = gap->from_ns > x->last_ns ? gap->from_ns : x->last_ns;
	uint64_t before_to = cpu->lost ? cpu->lost_to : 0;
	x->last_ns = from;
	cpu_clear(x, g->cpu, from);
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost) {
		struct track *track = track_of(x, t);
		if (track == NULL)
			return false;
		state_put(x, track, from);
	}
	cpu->lost = true;
	cpu->lost_from = from;
	cpu->lost_to = gap->to_ns > before_to ? gap->to_ns : before_to;
	if (cpu->lost_to < from)
		cpu->lost_to = from;
	cpu->lost_count = g->count;
	cpu->lost_why = g->reason;
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

/* Ends the thread's track: its number may become another thread's. */
static bool
chrome_gone(void *arg, const struct activity_thread *t)
{
	struct chrome *x = arg;
	if (t->number < x->track_room)
		track_end(x, &x->tracks[t->number]);
	return true;
}

/* ---- begin and end ---- */

static bool
chrome_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct chrome *x = arg;
	chrome_put_meta(&x->out, "process", (struct chrome_place){PID_CPUS, TID_CPU}, "CPUs", 0);
	chrome_put_meta(&x->out, "process", (struct chrome_place){PID_THREADS, TID_ZERO}, "threads",
			1);
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

static bool
chrome_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct chrome *x = arg;
	for (size_t i = 0; i < x->track_room; i++) {
		if (complete)
			track_end(x, &x->tracks[i]);
		timeline_free(&x->tracks[i].stack);
	}
	for (uint32_t n = 0; complete && n < KTR_DECODE_CPUS; n++) {
		lost_put(x, n, UINT64_MAX);
		if (x->cpus[n].known)
			cpu_clear(x, n, x->last_ns);
	}
	if (complete)
		out_text(&x->out.out, "\n]\n");
	out_flush(&x->out.out);
	bool good = export_file_close(&x->file, complete, err, errlen);
	export_classes_free(&x->known);
	free(x->names);
	free(x->tracks);
	free(x);
	return good;
}

static void *
chrome_open(const struct export_options *o, char *err, size_t errlen)
{
	struct chrome *x = export_create(sizeof(*x), o, err, errlen);
	if (x != NULL)
		x->out.out.file = x->file.f;
	return x;
}

const struct export_format export_chrome = {
    EXPORT_FORMAT(chrome),
    .what = "trace event JSON: Perfetto, chrome://tracing, speedscope",
    .gone = chrome_gone,
};
