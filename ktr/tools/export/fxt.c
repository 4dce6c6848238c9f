/*
 * fxt.c - the Fuchsia trace format (fuchsia.dev, "Fuchsia trace format"), as Perfetto reads
 * it.
 *
 * Each event becomes one record, whose arguments are the event's parameters under their names:
 * - a context switch or a wakeup: a scheduling record;
 * - the beginning and end of a system call, an interrupt or a function: duration events of the
 *   thread;
 * - a counter: a counter event, whose id is the CPU;
 * - any other event: an instant event of the thread. So is the wakeup of a thread that runs,
 *   because Perfetto would draw a second run from there on.
 *
 * The CPU is in the record, or in the argument "on cpu" ("exit on cpu" at the end of a duration). A
 * loss is an instant event called `lost`.
 *
 * Times are nanoseconds since boot. A thread's koid is its tid, and its process has the same koid.
 * A CPU that is idle, or whose thread is not known, runs thread 0 with the weight of an idle
 * thread.
 *
 * Two kinds of records are written without an event of their own, and have no parameters: a switch
 * that only the CPU's next event shows, and the end of a duration whose own end was lost.
 */
#include <stdlib.h>
#include <string.h>

#include "ktr/tools/export/fxt.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define IDLE_WEIGHT INT32_MIN
#define NEST_MAX    8u /* interrupts of one thread that have not ended */

/* ---- events ---- */

/* Begins an event record: everything before its arguments. thread NULL: thread 0. */
static void
event_begin(struct fxt *x, enum fxt_event_type type, const struct fxt_thread *thread, uint64_t ns,
	    uint16_t category, uint16_t name, const char *name_text, unsigned nargs)
{
	uint64_t ref = thread != NULL ? thread->ref : 0;
	if ((category & FXT_INLINE) != 0)
		category = 0; /* the category's text would be repeated in each event */
	fxt_record_begin(&x->out, FXT_RECORD_EVENT,
			 (uint64_t)type << 16 | (uint64_t)nargs << 20 | ref << 24 |
			     (uint64_t)category << 32 | (uint64_t)name << 48);
	fxt_record_word(&x->out, ns);
	if (ref == 0) {
		fxt_record_word(&x->out, thread != NULL ? thread->t->tid : 0);
		fxt_record_word(&x->out, thread != NULL ? thread->t->tid : 0);
	}
	fxt_put_inline(&x->out, name, name_text);
}

/* Ends the thread's durations, all but so many. */
static void
durations_end(struct fxt *x, struct fxt_thread *thread, uint64_t ns, unsigned left)
{
	while (thread->stack.depth > left) {
		const struct timeline_slice *s = &thread->stack.slices[--thread->stack.depth];
		event_begin(x, FXT_EVENT_END, thread, ns, x->kinds[s->kind], 0, "", 0);
		fxt_record_end(&x->out);
	}
}

static unsigned
interrupts_of(const struct timeline_stack *s)
{
	unsigned count = 0;
	for (unsigned n = 0; n < s->depth; n++)
		count += s->slices[n].kind == TIMELINE_INTERRUPT;
	return count;
}

/* Ends the interrupts of the thread, and what began in them. */
static void
interrupts_end(struct fxt *x, struct fxt_thread *thread, uint64_t ns)
{
	unsigned at;
	while ((at = timeline_find(&thread->stack, TIMELINE_INTERRUPT)) < thread->stack.depth)
		durations_end(x, thread, ns, at);
}

/* Fuchsia's number of a thread's state. NEW stands for runnable, and for unknown. */
static uint64_t
thread_state(const struct activity_thread *t)
{
	enum { NEW, BLOCKED = 3, DEAD = 5 };
	if (t == NULL)
		return NEW;
	if (t->state == ACTIVITY_SLEEPING || t->state == ACTIVITY_BLOCKED)
		return BLOCKED;
	return t->state == ACTIVITY_DEAD ? DEAD : NEW;
}

/* Is it no known thread, an idle thread, or thread 0, which runs before there are threads? */
static bool
is_idle(const struct activity_thread *t)
{
	return t == NULL || t->idle || t->tid == 0;
}

/*
 * Writes a switch between two threads; NULL: not known. e is NULL if no event told the switch. If
 * `to` has a run that no event ended, on this CPU or another, that run is ended first.
 */
static void
put_switch(struct fxt *x, uint32_t cpu, uint64_t ns, const struct activity_thread *from,
	   const struct activity_thread *to, const struct ktr_decode_event *e,
	   const struct fxt_class *c, const struct export_class *known)
{
	struct fxt_thread *out = from != NULL ? &x->threads[from->number] : NULL;
	bool out_idle = is_idle(from) && !(out != NULL && out->runs), in_idle = is_idle(to);
	struct fxt_thread *in = in_idle ? NULL : &x->threads[to->number];
	if (in != NULL && in->runs)
		put_switch(x, in->cpu, ns, to, NULL, NULL, NULL, NULL);
	if (out != NULL)
		out->runs = false;
	if (in != NULL) {
		in->runs = true;
		in->cpu = cpu;
	}
	uint64_t nargs = (e != NULL ? e->nargs : 0) + out_idle + in_idle;
	fxt_record_begin(&x->out, FXT_RECORD_SCHEDULING,
			 nargs << 16 | (uint64_t)cpu << 20 | thread_state(from) << 36 |
			     (uint64_t)1 << 60);
	fxt_record_word(&x->out, ns);
	fxt_record_word(&x->out, from != NULL ? from->tid : 0);
	fxt_record_word(&x->out, to != NULL ? to->tid : 0);
	if (e != NULL)
		fxt_put_params(x, e, c, known);
	if (out_idle)
		fxt_put_argument(&x->out, FXT_ARG_INT32, x->outgoing, "outgoing_weight",
				 (uint32_t)IDLE_WEIGHT);
	if (in_idle)
		fxt_put_argument(&x->out, FXT_ARG_INT32, x->incoming, "incoming_weight",
				 (uint32_t)IDLE_WEIGHT);
	fxt_record_end(&x->out);
}

static void
put_wakeup(struct fxt *x, const struct activity *a, const struct fxt_class *c,
	   const struct export_class *known)
{
	bool waker = !is_idle(a->other);
	fxt_record_begin(&x->out, FXT_RECORD_SCHEDULING,
			 (uint64_t)(a->event->nargs + waker) << 16 | (uint64_t)a->cpu << 20 |
			     (uint64_t)2 << 60);
	fxt_record_word(&x->out, a->ns);
	fxt_record_word(&x->out, a->thread->tid);
	fxt_put_params(x, a->event, c, known);
	if (waker)
		fxt_put_argument(&x->out, FXT_ARG_KOID, x->waker, "waker", a->other->tid);
	fxt_record_end(&x->out);
}

static void
put_event(struct fxt *x, enum fxt_event_type type, const struct fxt_thread *thread,
	  const struct export_event *ev, const char *name, uint16_t category,
	  const struct fxt_class *c, const struct export_class *known)
{
	const struct ktr_decode_event *e = ev->e;
	bool end = type == FXT_EVENT_END;
	char bad[32];
	uint16_t ref = c->name_ref;
	if (name == NULL)
		name = timeline_event_name(&c->name, e, bad);
	if (name[0] == '\0')
		name = c->name.text;
	if (end)
		ref = 0;
	else if (name == bad)
		ref = (uint16_t)(FXT_INLINE | strlen(bad));
	else if (name != c->name.text)
		ref = fxt_value_ref(&x->out, name);
	event_begin(x, type, thread, ev->ns, category, ref, name, e->nargs + 1);
	fxt_put_params(x, e, c, known);
	fxt_put_number(&x->out, end ? x->exit_on_cpu : x->on_cpu, end ? "exit on cpu" : "on cpu",
		       e->cpu, false);
	fxt_record_end(&x->out);
}

static void
put_counter(struct fxt *x, const struct fxt_thread *thread, const struct activity *a)
{
	const char *name = a->text[0] != '\0' ? a->text : "counter";
	uint16_t ref = fxt_value_ref(&x->out, name);
	event_begin(x, FXT_EVENT_COUNTER, thread, a->ns, 0, ref, name, 1);
	fxt_put_number(&x->out, x->value, "value", (uint64_t)a->value, true);
	fxt_record_word(&x->out, a->cpu);
	fxt_record_end(&x->out);
}

/* Ends durations that must be over, as the activity shows, but whose ends were lost. */
static void
overdue_end(struct fxt *x, const struct activity *a)
{
	struct fxt_thread *thread = fxt_thread_of(x, a->thread);
	if (a->kind == ACTIVITY_SWITCH && a->other != NULL)
		interrupts_end(x, fxt_thread_of(x, a->other), a->ns);
	if (a->kind != ACTIVITY_SYS_EXIT && a->kind != ACTIVITY_RETURN)
		durations_end(x, thread, a->ns,
			      timeline_over(&thread->stack, a->thread,
					    a->thread->depth - (a->kind == ACTIVITY_CALL)));
}

/* The event begins a duration of the thread. False: no memory. */
static bool
duration_begin(struct fxt *x, const struct export_event *ev, const struct activity *a,
	       enum timeline_kind kind, struct fxt_thread *thread, const struct fxt_class *c,
	       const struct export_class *known)
{
	/* A function's event has its name. */
	put_event(x, FXT_EVENT_BEGIN, thread, ev, kind != TIMELINE_FUNCTION ? a->text : NULL,
		  x->kinds[kind], c, known);
	return timeline_push(&thread->stack, kind, a->thread->depth, a->text);
}

/* The event ends the thread's duration number `at`, and all in it. False: there is none. */
static bool
duration_end(struct fxt *x, const struct export_event *ev, unsigned at, struct fxt_thread *thread,
	     const struct fxt_class *c, const struct export_class *known)
{
	if (at >= thread->stack.depth)
		return false;
	durations_end(x, thread, ev->ns, at + 1);
	put_event(x, FXT_EVENT_END, thread, ev, NULL, x->kinds[thread->stack.slices[at].kind], c,
		  known);
	thread->stack.depth = at;
	return true;
}

/* The function that returns, if it began. */
static unsigned
function_of(const struct timeline_stack *s, const struct activity_thread *t)
{
	unsigned at = timeline_over(s, t, t->depth);
	bool found = at < s->depth && s->slices[at].kind == TIMELINE_FUNCTION &&
		     s->slices[at].level == t->depth + 1;
	return found ? at : s->depth;
}

/* Begins what the activity is. -1: no memory; 1: the activity's record is that of the event. */
static int
put_activity(struct fxt *x, const struct export_event *ev, const struct activity *a,
	     struct fxt_thread *thread, const struct fxt_class *c, const struct export_class *known)
{
	struct timeline_stack *stack = &thread->stack;
	switch (a->kind) {
	case ACTIVITY_SWITCH:
		put_switch(x, a->cpu, a->ns, a->other, a->thread, a->inferred ? NULL : a->event, c,
			   known);
		return !a->inferred;
	case ACTIVITY_WAKE:
		if (x->threads[a->thread->number].runs)
			return 0;
		put_wakeup(x, a, c, known);
		return 1;
	case ACTIVITY_IRQ_ENTER:
		if (interrupts_of(stack) == NEST_MAX) /* their ends were lost */
			interrupts_end(x, thread, a->ns);
		return duration_begin(x, ev, a, TIMELINE_INTERRUPT, thread, c, known) ? 1 : -1;
	case ACTIVITY_SYS_ENTER:
		interrupts_end(x, thread, a->ns);
		durations_end(x, thread, a->ns, timeline_find(stack, TIMELINE_SYSCALL));
		return duration_begin(x, ev, a, TIMELINE_SYSCALL, thread, c, known) ? 1 : -1;
	case ACTIVITY_CALL:
		return duration_begin(x, ev, a, TIMELINE_FUNCTION, thread, c, known) ? 1 : -1;
	case ACTIVITY_IRQ_EXIT:
		return duration_end(x, ev, timeline_find(stack, TIMELINE_INTERRUPT), thread, c,
				    known);
	case ACTIVITY_SYS_EXIT:
		return duration_end(x, ev, timeline_find(stack, TIMELINE_SYSCALL), thread, c,
				    known);
	case ACTIVITY_RETURN:
		return duration_end(x, ev, function_of(stack, a->thread), thread, c, known);
	case ACTIVITY_COUNTER:
		put_counter(x, thread, a);
		return 1;
	default:
		return 0;
	}
}

static bool
fxt_event(void *arg, const struct export_event *ev, char *err, size_t errlen)
{
	struct fxt *x = arg;
	const struct export_class *known;
	const struct fxt_class *c = fxt_class_of(x, ev->e, &known);
	bool told = false, good = c != NULL && fxt_thread_of(x, ev->thread) != NULL;
	x->last_ns = ev->ns;
	for (unsigned i = 0; i < ev->count && good; i++) {
		const struct activity *a = &ev->activities[i];
		good = (a->other == NULL || fxt_thread_of(x, a->other) != NULL) &&
		       fxt_thread_of(x, a->thread) != NULL;
		if (good)
			overdue_end(x, a);
		int put = good ? put_activity(x, ev, a, fxt_thread_of(x, ev->thread), c, known) : 0;
		good = good && put >= 0;
		told |= put > 0;
		if (good && a->thread->state == ACTIVITY_DEAD)
			durations_end(x, fxt_thread_of(x, a->thread), a->ns, 0);
	}
	if (!good)
		return false;
	if (!told)
		put_event(x, FXT_EVENT_INSTANT, fxt_thread_of(x, ev->thread), ev, NULL, c->category,
			  c, known);
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

static bool
fxt_gap(void *arg, const struct export_gap *gap, char *err, size_t errlen)
{
	struct fxt *x = arg;
	struct fxt_thread *thread = gap->thread != NULL ? fxt_thread_of(x, gap->thread) : NULL;
	if (gap->thread != NULL && thread == NULL)
		return false;
	x->last_ns = gap->from_ns;
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost)
		if (t->number < x->thread_room && x->threads[t->number].t == t)
			durations_end(x, &x->threads[t->number], gap->from_ns, 0);
	if (thread != NULL)
		put_switch(x, gap->g->cpu, gap->from_ns, gap->thread, NULL, NULL, NULL, NULL);
	event_begin(x, FXT_EVENT_INSTANT, thread, gap->from_ns, x->lost, x->lost, "lost", 3);
	fxt_put_number(&x->out, x->events, "events", gap->g->count, false);
	fxt_put_number(&x->out, x->until, "until", gap->to_ns, false);
	fxt_put_number(&x->out, x->on_cpu, "on cpu", gap->g->cpu, false);
	fxt_record_end(&x->out);
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

static bool
fxt_gone(void *arg, const struct activity_thread *t)
{
	struct fxt *x = arg;
	if (t->number < x->thread_room) {
		struct fxt_thread *thread = &x->threads[t->number];
		durations_end(x, thread, x->last_ns, 0);
		timeline_free(&thread->stack);
		*thread = (struct fxt_thread){.ref = thread->ref};
	}
	return true;
}

/* ---- begin and end ---- */

static bool
fxt_begin(void *arg, const struct ktr_decode_header *h, char *err, size_t errlen)
{
	struct fxt *x = arg;
	static const char provider[] = "kestrel";
	x->header = h;
	fxt_record_begin(&x->out, FXT_RECORD_METADATA,
			 UINT64_C(0x16547846) << 24 | 4 << 16); /* magic number */
	fxt_record_end(&x->out);
	fxt_record_begin(&x->out, FXT_RECORD_METADATA, /* provider 1 */
			 1 << 16 | 1 << 20 | (uint64_t)(sizeof(provider) - 1) << 52);
	fxt_record_text(&x->out, provider, sizeof(provider) - 1);
	fxt_record_end(&x->out);
	fxt_record_begin(&x->out, FXT_RECORD_INITIALIZATION, 0);
	fxt_record_word(&x->out, 1000000000); /* ticks a second */
	fxt_record_end(&x->out);
	x->lost = fxt_name_ref(&x->out, "lost");
	x->on_cpu = fxt_name_ref(&x->out, "on cpu");
	x->exit_on_cpu = fxt_name_ref(&x->out, "exit on cpu");
	x->process = fxt_name_ref(&x->out, "process");
	x->waker = fxt_name_ref(&x->out, "waker");
	x->incoming = fxt_name_ref(&x->out, "incoming_weight");
	x->outgoing = fxt_name_ref(&x->out, "outgoing_weight");
	x->events = fxt_name_ref(&x->out, "events");
	x->until = fxt_name_ref(&x->out, "until");
	x->value = fxt_name_ref(&x->out, "value");
	for (unsigned kind = 0; kind <= TIMELINE_FUNCTION; kind++)
		x->kinds[kind] = fxt_name_ref(&x->out, timeline_kinds[kind]);
	return ferror(x->file.f) == 0 || export_file_failed(&x->file, err, errlen);
}

static bool
fxt_close(void *arg, bool complete, char *err, size_t errlen)
{
	struct fxt *x = arg;
	for (size_t i = 0; i < x->thread_room; i++) {
		if (complete)
			durations_end(x, &x->threads[i], x->last_ns, 0);
		timeline_free(&x->threads[i].stack);
	}
	bool good = export_file_close(&x->file, complete, err, errlen);
	fxt_out_free(&x->out);
	export_classes_free(&x->known);
	free(x->classes);
	free(x->threads);
	free(x);
	return good;
}

static void *
fxt_open(const struct export_options *o, char *err, size_t errlen)
{
	struct fxt *x = export_create(sizeof(*x), o, err, errlen);
	if (x != NULL) {
		x->out.f = x->file.f;
		x->out.by_hash = memory_map();
	}
	return x;
}

const struct export_format export_fxt = {
    EXPORT_FORMAT(fxt),
    .what = "the Fuchsia trace format: Perfetto",
    .gone = fxt_gone,
};
