/*
 * sample.c - makes samples from activities and spans: what began, and when it ended.
 *
 * In a profile, each timer interrupt is a sample of what its CPU was doing. While the kernel has
 * interrupts off, a sample is late: it is counted where the kernel turns them on again.
 *
 * This file uses the mark of a call (struct activity_call) for the time that the call's own traced
 * calls took.
 */
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"
#include "ktr/tools/symbols.h"

#define TIMERS_MAX 4096u

/* The timers that are set: when each is due, plus one, by its address. */
static struct ktr_map due;

/* Adds a sample of something that an activity ends, if the filter selects it. */
static void
sample_ends(struct report *r, const struct activity *a, struct report_sample s)
{
	s.thread = a->thread;
	s.cpu = a->cpu;
	s.to_ns = a->ns;
	if ((r->kinds >> s.kind & 1) != 0 && report_wants(r, a->thread, a->cpu) &&
	    report_cut(r, &s.from_ns, s.to_ns))
		report_add(r, &s);
}

/* ---- spans ---- */

static bool
on_cpu(void *arg, uint32_t cpu, const struct activity_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	struct report *r = arg;
	struct report_sample s = {SAMPLE_CPU, t, cpu, from_ns, to_ns, .untimed = false};
	bool wanted = report_wants(r, t, cpu);
	if (!dump_match_cpu(r->filter, cpu))
		return true;
	r->known_ns[0] += t != NULL ? to_ns - from_ns : 0;
	r->all_ns[0] += to_ns - from_ns;
	if (t != NULL && !wanted)
		s.to_ns = from_ns; /* the CPU has a row anyway */
	report_add(r, &s);
	s.kind = SAMPLE_RUN;
	if (t != NULL && wanted && !t->idle)
		report_add(r, &s);
	return !r->failed;
}

static bool
on_thread(void *arg, const struct span *span)
{
	struct report *r = arg;
	const struct activity_thread *t = span->thread;
	bool known = span->state != ACTIVITY_UNKNOWN;
	bool runs_there = span->state == ACTIVITY_RUNNING || span->state == ACTIVITY_SPINNING;
	if (span->state == ACTIVITY_DEAD || t->idle ||
	    (r->filter->thread != NULL && !dump_match_thread(r->filter, t->tid, t->name)) ||
	    (r->filter->cpus != ~(uint64_t)0 &&
	     !(runs_there && dump_match_cpu(r->filter, span->cpu))))
		return true;
	struct report_sample s = {SAMPLE_STATE,  t,           span->cpu,
				  span->from_ns, span->to_ns, .state = span->state};
	s.text = activity_state_name(span->state);
	s.more = span->why;
	if (span->state == ACTIVITY_RUNNING && span->call != NULL)
		s.value = s.to_ns - s.from_ns;
	r->known_ns[1] += known ? span->to_ns - span->from_ns : 0;
	r->all_ns[1] += span->to_ns - span->from_ns;
	report_add(r, &s);
	s.kind = SAMPLE_WAIT;
	s.value = 0;
	if (known && span->state != ACTIVITY_RUNNING)
		report_add(r, &s);
	return !r->failed;
}

static bool
on_irq(void *arg, uint32_t cpu, const struct activity_thread *t, uint32_t number, const char *name,
       uint64_t from_ns, uint64_t to_ns)
{
	struct report *r = arg;
	const struct report_sample s = {SAMPLE_IRQ, t, cpu, from_ns, to_ns, .text = name};
	if (report_wants(r, t, cpu))
		report_add(r, &s);
	return !r->failed;
}

const struct span_ops report_span_ops = {.thread = on_thread, .cpu = on_cpu, .irq = on_irq};

/* ---- activities ---- */

static void
on_switch(struct report *r, const struct export_event *ev, const struct activity *a,
	  struct report_thread *is)
{
	const struct activity_thread *prev = a->other;
	struct report_sample woken = {.kind = SAMPLE_WAKEUP, .from_ns = is->woken_ns};
	struct report_sample s = {.kind = SAMPLE_SWITCH, .from_ns = a->ns};
	woken.text = is->waker_name;
	woken.more = prev != NULL ? prev->name : "";
	woken.value = ev->index;
	if (is->woken)
		sample_ends(r, a, woken);
	is->woken = false;
	s.moved = is->ran && is->last_cpu != a->cpu;
	s.preempted = prev != NULL && !prev->idle && prev->state == ACTIVITY_RUNNABLE;
	sample_ends(r, a, s);
	is->ran = true;
	is->last_cpu = a->cpu;
}

static void
on_timer(struct report *r, const struct activity *a)
{
	uintptr_t was = (uintptr_t)ktr_map_get(&due, a->address);
	struct report_sample s = {.kind = SAMPLE_TIMER, .cpu = a->cpu, .to_ns = a->ns};
	if (a->kind == ACTIVITY_TIMER_SET) {
		if (due.realloc == NULL)
			due = memory_map();
		if (due.used >= TIMERS_MAX)
			ktr_map_clear(&due);
		if (!ktr_map_put(&due, a->address, (void *)((uintptr_t)a->value + 1)))
			report_no_memory(r);
		return;
	}
	if (was == 0)
		return;
	ktr_map_remove(&due, a->address);
	s.from_ns = was - 1 < a->ns ? was - 1 : a->ns;
	if (a->kind == ACTIVITY_TIMER_RUN && dump_match_cpu(r->filter, a->cpu) &&
	    report_cut(r, &s.from_ns, s.to_ns))
		report_add(r, &s);
}

/* The C function that makes a system call. NULL: it has the call's name. */
static const char *
function_of_call(const char *call)
{
	static const char *const names[][2] = {
	    {"clone", "fork"},          {"wait4", "waitpid"},
	    {"exit_group", "exit"},     {"exit", "_exit"},
	    {"newfstatat", "stat"},     {"openat", "open"},
	    {"dup3", "dup2"},           {"pipe2", "pipe"},
	    {"getdents64", "readdir"},  {"mkdirat", "mkdir"},
	    {"mknodat", "mknod"},       {"unlinkat", "unlink"},
	    {"renameat", "rename"},     {"brk", "malloc"},
	    {"rt_sigaction", "signal"}, {"rt_sigprocmask", "sigprocmask"},
	    {"nanosleep", "sleep"},     {"machine_shutdown", "poweroff"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(call, names[i][0]) == 0)
			return names[i][1];
	return NULL;
}

/* A call returns, or ends with its thread, as exit_group does. */
static void
on_call_end(struct report *r, const struct activity *a, struct report_thread *is, const char *call)
{
	struct report_sample s = {.kind = SAMPLE_CALL, .from_ns = is->call_ns, .text = call};
	s.more = function_of_call(call);
	s.value = a->kind == ACTIVITY_SYS_EXIT && a->value < 0 && a->value > -4096;
	if (is->call != NULL && strcmp(is->call, call) == 0) /* else its begin was lost */
		sample_ends(r, a, s);
	is->call = NULL;
}

/* A sample about what the activity says of a place. */
static struct report_sample
place_sample(enum report_kind kind, const struct activity *a, const char *text)
{
	return (struct report_sample){.kind = kind,
				      .from_ns = a->ns,
				      .text = text,
				      .pc = a->user ? 0 : a->pc,
				      .user = a->user};
}

static void
on_fault_end(struct report *r, const struct activity *a, struct report_thread *is)
{
	static const char *const accesses[] = {[1] = "read", [2] = "write", [4] = "execute"};
	unsigned access = is->fault.number;
	const char *how = is->fault_how;
	if (how == NULL)
		how = access < 5 ? accesses[access] : NULL;
	if (a->value == 0)
		how = "nothing";
	if (is->faults)
		sample_ends(r, a,
			    place_sample(SAMPLE_FAULT, &is->fault, how != NULL ? how : "other"));
	is->faults = false;
}

static void
on_return(struct report *r, const struct activity *a)
{
	const struct activity_thread *t = a->thread;
	struct report_sample s = {.kind = SAMPLE_FUNCTION, .from_ns = a->call.ns, .text = a->text};
	uint64_t whole = a->ns - a->call.ns, from = a->call.ns;
	if (a->call.name == NULL)
		return;
	if (t->depth > 0)
		t->calls[t->depth - 1].mark += whole;
	s.value = whole - a->call.mark;
	if (report_cut(r, &from, a->ns) && s.value > a->ns - from)
		s.value = a->ns - from;
	sample_ends(r, a, s);
}

static void
on_timer_irq(struct report *r, const struct activity *a)
{
	char place[300], name[ACTIVITY_NAME + 20];
	const char *function =
	    r->kinds >> SAMPLE_TIMED & 1 ? symbols_function(r->symbols, a->pc) : NULL;
	struct report_sample s = place_sample(SAMPLE_TIMED, a, name);
	if (a->user)
		snprintf(name, sizeof(name), "(program %s)", a->thread->name);
	else if (function != NULL)
		snprintf(name, sizeof(name), "%s", function);
	else if (r->diff != NULL)
		snprintf(name, sizeof(name), "%s", REPORT_NOT_KNOWN);
	else
		snprintf(name, sizeof(name), "0x%" PRIx64, a->pc);
	r->has_unnamed |= !a->user && function == NULL;
	sample_ends(r, a, s);
	if (a->user)
		return;
	s.kind = SAMPLE_TIMED_AT;
	s.more = symbols_place(r->symbols, a->pc, place, sizeof(place));
	sample_ends(r, a, s);
}

void
report_activity(struct report *r, const struct export_event *ev, const struct activity *a)
{
	struct report_thread *is = report_thread_of(r, a->thread);
	switch (a->kind) {
	case ACTIVITY_SWITCH:
		on_switch(r, ev, a, is);
		break;
	case ACTIVITY_STATE:
		is->woken &= a->thread->state == ACTIVITY_RUNNABLE;
		if (a->thread->state == ACTIVITY_DEAD && is->call != NULL)
			on_call_end(r, a, is, is->call);
		break;
	case ACTIVITY_WAKE:
		if (is->woken || a->thread->state == ACTIVITY_RUNNING)
			break;
		is->woken = true;
		is->woken_ns = a->ns;
		memcpy(is->waker_name, a->other->name, sizeof(is->waker_name));
		break;
	case ACTIVITY_SYS_ENTER:
		is->call = a->text;
		is->call_ns = a->ns;
		break;
	case ACTIVITY_SYS_EXIT:
		on_call_end(r, a, is, a->text);
		break;
	case ACTIVITY_FAULT:
		is->faults = true;
		is->fault = *a;
		is->fault_how = NULL;
		break;
	case ACTIVITY_FAULT_HOW:
		is->fault_how = a->text;
		break;
	case ACTIVITY_FAULT_END:
		on_fault_end(r, a, is);
		break;
	case ACTIVITY_TRAP:
		sample_ends(r, a, place_sample(SAMPLE_TRAP, a, a->text));
		break;
	case ACTIVITY_RETURN:
		on_return(r, a);
		break;
	case ACTIVITY_IRQ_ENTER:
		if (strcmp(a->text, "timer") == 0 && a->pc != 0)
			on_timer_irq(r, a);
		break;
	case ACTIVITY_TIMER_SET:
	case ACTIVITY_TIMER_STOP:
	case ACTIVITY_TIMER_RUN:
		on_timer(r, a);
		break;
	default:
		break;
	}
}

void
report_samples_lost(struct report *r, const struct export_gap *gap)
{
	ktr_map_clear(&due); /* the lost events may have stopped timers, or set them again */
	for (const struct activity_thread *t = gap->lost; t != NULL; t = t->next_lost) {
		struct report_thread *is = report_thread_of(r, t);
		is->call = NULL;
		is->woken = is->faults = false;
	}
}

void
report_samples_end(void)
{
	ktr_map_free(&due);
}
