/*
 * activity_test.c - the activities that events stand for, and the Linux events made from them.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ktr/event.h"
#include "ktr/tools/linux.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/model/activity.h"

#define STATE  "KTRGRAPH group:\"thread\", id:\"%s\", state:\"%s\", attributes: "
#define RUN    STATE "prio:%d"
#define ADD    STATE "prio:%d, linkedto:\"%s\""
#define SLEEP  STATE "prio:%d, wmesg:\"%s\""
#define BLOCK  STATE "prio:%d, lockname:\"%s\""
#define WOKEUP "KTRGRAPH group:\"thread\", id:\"%s\", point:\"%s\", attributes: linkedto:\"%s\""
#define LOAD   "KTRGRAPH group:\"load\", id:\"%s\", counter:%d, attributes: none"
#define OPEN   "syscall openat: arg0 %#lx arg1 %#lx arg2 %#lx arg3 %#lx arg4 %#lx arg5 %#lx"

static const struct ktr_decode_header header = {.arch = "aarch64"}; /* ticks are nanoseconds */
static struct ktr_decode_site sites[64];
static unsigned site_count;
static struct activity_model *m;
static uint64_t now;
static struct activity got[ACTIVITY_MAX];
static char story[1024]; /* the activities of the last events, one on each line */
static unsigned gone_count;
static uint32_t gone_tid; /* the last thread that ended */

static void
gone(void *arg, const struct activity_thread *t)
{
	assert_ptr_equal(arg, &gone_count);
	gone_count++;
	gone_tid = t->tid;
}

static int
begin(void **state)
{
	activity_destroy(m);
	m = activity_create(gone, &gone_count);
	gone_count = 0;
	site_count = 0;
	now = 0;
	return m == NULL;
}

static const struct ktr_decode_site *
site(const char *fmt, unsigned nargs)
{
	for (unsigned i = 0; i < site_count; i++) {
		if (strcmp(sites[i].fmt, fmt) == 0)
			return &sites[i];
	}
	sites[site_count] = (struct ktr_decode_site){.number = site_count,
						     .nargs = nargs,
						     .strings = ktr_event_strings(fmt),
						     .fmt = fmt,
						     .file = "a.c",
						     .func = "f"};
	return &sites[site_count++];
}

static const char *
name_of(const struct activity_thread *t)
{
	return t == NULL ? "?" : t->name[0] == '\0' ? "-" : t->name;
}

/* Adds an activity to story: kind, thread and its state, other, number, value, text. */
static void
tell(const struct activity *a)
{
	static const char *const kinds[] = {
	    [ACTIVITY_SWITCH] = "switch",    [ACTIVITY_STATE] = "state",
	    [ACTIVITY_WAKE] = "wake",        [ACTIVITY_IRQ_ENTER] = "irq",
	    [ACTIVITY_IRQ_EXIT] = "irq-end", [ACTIVITY_SYS_ENTER] = "call",
	    [ACTIVITY_SYS_EXIT] = "return",  [ACTIVITY_FORK] = "fork",
	    [ACTIVITY_EXEC] = "exec",        [ACTIVITY_EXIT] = "exit",
	    [ACTIVITY_COUNTER] = "counter",
	};
	size_t len = strlen(story);
	snprintf(story + len, sizeof(story) - len, "%s%s%s %s:%s%s%s other %s %u %" PRId64 " %s",
		 len > 0 ? "; " : "", a->inferred ? "(inferred) " : "", kinds[a->kind],
		 name_of(a->thread), activity_state_name(a->thread->state),
		 a->thread->why != NULL ? "/" : "", a->thread->why != NULL ? a->thread->why : "",
		 name_of(a->other), a->number, a->value, a->text != NULL ? a->text : "-");
}

/*
 * Passes an event: strings for the %s, in order, then numbers for the other parameters. Returns the
 * story.
 */
static const char *
event(unsigned cpu, unsigned tid, const char *name, const char *fmt, unsigned nargs, ...)
{
	static struct ktr_decode_event e; /* static, since got[] keeps pointers to it */
	va_list ap;
	e = (struct ktr_decode_event){.header = &header, .cpu = cpu, .tid = tid, .thread = name};
	e.site = site(fmt, nargs);
	e.site_number = e.site->number;
	e.nargs = nargs;
	e.ticks = now += 10;
	va_start(ap, nargs);
	for (unsigned i = 0; i < nargs; i++) {
		if ((e.site->strings >> i & 1) != 0)
			e.strings[i] = va_arg(ap, const char *);
		else
			e.args[i] = (uint64_t)va_arg(ap, int);
	}
	va_end(ap);
	story[0] = '\0';
	const struct activity_thread *by;
	int n = activity_event(m, &e, got, &by);
	assert_int_equal(by->tid, tid);
	assert_in_range(n, 0, ACTIVITY_MAX);
	for (int i = 0; i < n; i++)
		tell(&got[i]);
	return story;
}

/* Linux's event for activity i of the last event, as ftrace or LTTng would print it; "" if none. */
static const char *
in_linux(int i, bool lttng)
{
	static char text[512];
	struct linux_event e;
	text[0] = '\0';
	if (!linux_event(&got[i], &e))
		return text;
	snprintf(text, sizeof(text), "%s", lttng ? e.class->lttng : e.class->name);
	for (unsigned f = 0; f < e.class->nfields; f++) {
		const struct linux_field *field = &e.class->fields[f];
		const char *name = lttng ? field->lttng : field->name;
		size_t len = strlen(text);
		if (name == NULL)
			continue;
		if (field->type == KTR_FIELD_COMM || field->type == KTR_FIELD_STRING)
			snprintf(text + len, sizeof(text) - len, " %s=%s", name, e.texts[f]);
		else
			snprintf(text + len, sizeof(text) - len, " %s=%" PRId64, name, e.values[f]);
	}
	return text;
}

static void
switch_knows_who_ran_before_and_why_it_stopped(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_string_equal(event(0, 7, "cat", SLEEP, 4, "cat tid 7", "sleep", 20, "piperd"),
			    "state cat:sleeping/piperd other ? 0 0 -");
	assert_string_equal(event(0, 2, "idle/0", RUN, 3, "idle/0 tid 2", "running", 255),
			    "switch idle/0:running other cat 0 0 -");
	assert_true(activity_running(m, 0)->idle);
	assert_string_equal(in_linux(0, false),
			    "sched_switch prev_comm=cat prev_pid=7 prev_prio=20 prev_state=1 "
			    "next_comm=swapper/0 next_pid=0 next_prio=255");
	assert_string_equal(in_linux(0, true),
			    "sched_switch prev_comm=cat prev_tid=7 prev_prio=20 prev_state=1 "
			    "next_comm=swapper/0 next_tid=0 next_prio=255");
	/* No event says that the idle thread stops. */
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_int_equal(got[0].other->state, ACTIVITY_RUNNABLE);
	/* The thread is chosen again: it continues, and there is no switch. */
	assert_string_equal(event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20),
			    "state cat:running other ? 0 0 -");
	assert_string_equal(in_linux(0, false), "");
}

static void
first_event_of_a_cpu_tells_who_runs_there(void **state)
{
	assert_string_equal(event(3, 9, "sh", "hello", 0),
			    "(inferred) switch sh:running other ? 0 0 -");
	assert_string_equal(in_linux(0, false), "");
	assert_string_equal(event(3, 9, "sh", "hello", 0), "");
	/* Nothing is known of the thread that ran before the trace began. */
	event(1, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_string_equal(
	    in_linux(0, false),
	    "sched_switch prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=0 "
	    "next_comm=cat next_pid=7 next_prio=20");
}

static void
thread_that_moves_without_an_event_runs_on_one_cpu(void **state)
{
	event(0, 7, "cat", "hello", 0);
	assert_int_equal(got[0].left, -1);
	event(1, 7, "cat", "hello", 0);
	assert_int_equal(got[0].left, 0);
	assert_null(activity_running(m, 0));
	/* It does not stop because another thread runs on its former CPU. */
	assert_string_equal(event(0, 8, "dd", "hello", 0),
			    "(inferred) switch dd:running other ? 0 0 -");
	assert_int_equal(activity_running(m, 1)->state, ACTIVITY_RUNNING);
	assert_string_equal(event(0, 7, "cat", "hello", 0),
			    "(inferred) switch cat:running other dd 0 0 -");
	assert_int_equal(got[0].left, 1);
	assert_null(activity_running(m, 1));
	event(1, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_int_equal(got[0].left, 0);
}

static void
lose(unsigned cpu)
{
	const struct ktr_decode_gap gap = {
	    .header = &header, .cpu = cpu, .count = 5, .from_ticks = now, .to_ticks = now};
	const struct activity_thread *ran;
	activity_gap(m, &gap, &ran);
}

static void
calls_are_not_known_where_events_were_lost(void **state)
{
	/* It runs while events are lost. */
	event(0, 7, "cat", OPEN, 6, 0, 0, 0, 0, 0, 0);
	assert_string_equal(got[1].thread->call, "openat");
	lose(0);
	assert_null(got[1].thread->call);
	/* It sleeps. While events were lost, it may have been woken and have run. */
	event(0, 7, "cat", OPEN, 6, 0, 0, 0, 0, 0, 0);
	event(0, 7, "cat", SLEEP, 4, "cat tid 7", "sleep", 20, "disk");
	event(0, 8, "dd", RUN, 3, "dd tid 8", "running", 30);
	const struct activity_thread *cat = got[0].other;
	assert_string_equal(cat->call, "openat");
	lose(1);
	assert_null(cat->call);
	/* It runs, and its own CPU loses nothing. */
	event(1, 7, "cat", OPEN, 6, 0, 0, 0, 0, 0, 0);
	lose(0);
	assert_string_equal(cat->call, "openat");
}

static void
dead_thread_is_forgotten_once_another_runs(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	uint32_t number = got[0].thread->number;
	event(0, 7, "cat", RUN, 3, "cat tid 7", "thread exit", 20);
	event(0, 7, "cat", "hello", 0);
	event(0, 8, "dd", RUN, 3, "dd tid 8", "running", 30);
	assert_int_equal(got[0].other->state, ACTIVITY_DEAD);
	assert_int_equal(gone_count, 0);
	event(0, 8, "dd", "hello", 0);
	assert_int_equal(gone_count, 1);
	assert_int_equal(gone_tid, 7);
	event(1, 9, "sh", "hello", 0);
	assert_int_equal(got[0].thread->number, number);
	/* Without SCHED, and where events are lost before another thread runs. */
	event(1, 9, "sh", "thread exit: tid %u", 1, 9);
	event(1, 8, "dd", "hello", 0);
	assert_int_equal(got[0].other->state, ACTIVITY_DEAD);
	event(1, 8, "dd", RUN, 3, "dd tid 8", "thread exit", 30);
	assert_int_equal(gone_tid, 9);
	lose(1);
	event(1, 10, "ls", "hello", 0);
	assert_int_equal(gone_count, 3);
	/* The number is used again: by another thread. */
	assert_string_equal(event(1, 8, NULL, "hello", 0),
			    "(inferred) switch -:running other ls 0 0 -");
}

static void
first_thread_of_a_process_that_ends_is_dead(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "thread exit", 20);
	event(0, 8, "cat", RUN, 3, "cat tid 8", "running", 20);
	event(0, 8, "cat", "hello", 0);
	assert_int_equal(gone_count, 1);
	event(0, 8, "cat", "exit: pid %u status %#x name %s", 3, 7, 0, "cat");
	assert_int_equal(got[0].thread->tid, 7);
	assert_int_equal(got[0].thread->state, ACTIVITY_DEAD);
	event(0, 8, "cat", "hello", 0);
	assert_int_equal(gone_count, 2);
	/* The only thread still runs. */
	event(0, 8, "cat", "exit: pid %u status %#x name %s", 3, 8, 0, "cat");
	assert_int_equal(got[0].thread->state, ACTIVITY_RUNNING);
}

static void
count_one(void *arg, const struct activity_thread *t)
{
	++*(unsigned *)arg;
}

static void
threads_that_never_end_are_forgotten_but_those_that_wait(void **state)
{
	unsigned count = 0;
	event(0, 7, "cat", SLEEP, 4, "cat tid 7", "sleep", 20, "disk");
	event(1, 8, "dd", "hello", 0);
	for (unsigned tid = 1000; tid < 100000; tid++)
		event(0, tid, NULL, "hello", 0);
	activity_threads(m, count_one, &count);
	assert_in_range(count, 3, 4 * 4096);
	assert_int_equal(count + gone_count, 99002);
	assert_int_equal(activity_running(m, 1)->tid, 8);
	event(0, 7, "cat", "hello", 0);
	assert_int_equal(got[0].before, ACTIVITY_SLEEPING);
}

static void
gap_makes_unknown_what_ran(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	event(1, 8, "dd", RUN, 3, "dd tid 8", "running", 20);
	const struct ktr_decode_gap gap = {
	    .header = &header, .cpu = 0, .count = 5, .from_ticks = now, .to_ticks = now + 1000};
	const struct activity_thread *ran;
	assert_int_equal(activity_gap(m, &gap, &ran)->tid, 7);
	assert_int_equal(ran->tid, 7);
	assert_null(activity_gap(m, &gap, &ran));
	assert_null(ran);
	assert_null(activity_running(m, 0));
	assert_int_equal(activity_running(m, 1)->tid, 8);
	/* The other CPU's time goes on meanwhile. */
	event(1, 8, "dd", "hello", 0);
	assert_int_equal(activity_ns(m, &header, now), now);
	assert_string_equal(event(0, 9, "sh", "hello", 0),
			    "(inferred) switch sh:running other ? 0 0 -");
	assert_string_equal(event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20),
			    "switch cat:running other sh 0 0 -");
	assert_int_equal(got[0].other->state, ACTIVITY_UNKNOWN);
}

static void
gap_makes_unknown_what_waits(void **state)
{
	event(0, 7, "cat", SLEEP, 4, "cat tid 7", "sleep", 20, "disk");
	event(0, 6, "ed", "hello", 0);
	event(0, 8, "dd", RUN, 3, "dd tid 8", "running", 30);
	event(1, 9, "sh", RUN, 3, "sh tid 9", "running", 30);
	const struct ktr_decode_gap gap = {
	    .header = &header, .cpu = 1, .count = 5, .from_ticks = now, .to_ticks = now + 1000};
	const struct activity_thread *ran;
	unsigned lost = 0;
	for (const struct activity_thread *t = activity_gap(m, &gap, &ran); t != NULL;
	     t = t->next_lost) {
		lost |= 1u << t->tid;
		assert_int_equal(t->state, ACTIVITY_UNKNOWN);
		assert_null(t->why);
	}
	assert_int_equal(lost, 1u << 7 | 1u << 6 | 1u << 9);
	assert_int_equal(activity_running(m, 0)->state, ACTIVITY_RUNNING);
	/* Each thread is known again at its own next event. */
	event(0, 8, "dd", ADD, 4, "cat tid 7", "runq add", 20, "dd tid 8");
	assert_int_equal(got[0].before, ACTIVITY_UNKNOWN);
	assert_int_equal(got[0].thread->state, ACTIVITY_RUNNABLE);
	assert_false(got[0].fresh);
	assert_int_equal(activity_gap(m, &gap, &ran)->tid, 7);
}

static void
woken_thread_goes_from_sleep_to_the_run_queue(void **state)
{
	event(0, 7, "cat", SLEEP, 4, "cat tid 7", "sleep", 20, "piperd");
	event(0, 8, "dd", RUN, 3, "dd tid 8", "running", 30);
	assert_string_equal(event(0, 8, "dd", WOKEUP, 3, "dd tid 8", "wokeup", "cat tid 7"),
			    "wake cat:sleeping/piperd other dd 0 0 -");
	assert_string_equal(in_linux(0, true), "sched_waking comm=cat tid=7 prio=20 target_cpu=0");
	assert_string_equal(event(0, 8, "dd", ADD, 4, "cat tid 7", "runq add", 20, "dd tid 8"),
			    "state cat:runnable other dd 0 0 -");
	assert_string_equal(in_linux(0, false), "sched_wakeup comm=cat pid=7 prio=20 target_cpu=0");
	/* Another CPU steals it: it was runnable before. */
	event(1, 2, "idle/1", ADD, 4, "cat tid 7", "runq add", 20, "idle/1 tid 2");
	assert_string_equal(in_linux(1, false), "");
	/* A thread that nobody woke is new. One that is first seen when it is woken is not. */
	event(0, 8, "dd", ADD, 4, "child tid 30", "runq add", 20, "dd tid 8");
	assert_string_equal(in_linux(0, false),
			    "sched_wakeup_new comm=child pid=30 prio=20 target_cpu=0");
	event(0, 8, "dd", WOKEUP, 3, "dd tid 8", "wokeup", "old tid 31");
	event(0, 8, "dd", ADD, 4, "old tid 31", "runq add", 20, "dd tid 8");
	assert_string_equal(in_linux(0, false),
			    "sched_wakeup comm=old pid=31 prio=20 target_cpu=0");
}

static void
locks_are_blocked_on_and_spun_for(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_string_equal(event(0, 7, "cat", STATE "lockname:\"%s\"", 3, "cat tid 7", "spinning",
				  "runq"),
			    "state cat:spinning/runq other ? 0 0 -");
	assert_string_equal(event(0, 7, "cat", STATE "none", 2, "cat tid 7", "running"),
			    "state cat:running other ? 0 0 -");
	event(0, 7, "cat", BLOCK, 4, "cat tid 7", "blocked", 20, "tty");
	event(0, 8, "dd", RUN, 3, "dd tid 8", "running", 30);
	assert_int_equal(got[0].other->state, ACTIVITY_BLOCKED);
	assert_non_null(strstr(in_linux(0, false), " prev_state=2 "));
	event(0, 8, "dd", RUN, 3, "dd tid 8", "thread exit", 30);
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_non_null(strstr(in_linux(0, false), " prev_state=16 "));
}

static void
interrupts_and_system_calls(void **state)
{
	event(0, 7, "cat", RUN, 3, "cat tid 7", "running", 20);
	assert_string_equal(event(0, 7, "cat", OPEN, 6, -100, 0x1000, 2, 3, 4, 5),
			    "call cat:running other ? 0 0 openat");
	assert_string_equal(activity_running(m, 0)->call, "openat");
	assert_string_equal(in_linux(0, false), "sys_enter_openat __syscall_nr=56 dfd=-100 "
						"filename=0x1000 flags=2 mode=3");
	assert_string_equal(event(0, 7, "cat",
				  "interrupt enter: vector %#x name %s pc %#lx user %d", 4, 0x20,
				  "timer", 0, 1),
			    "irq cat:running other ? 32 0 timer");
	assert_string_equal(in_linux(0, true), "irq_handler_entry irq=32 name=timer");
	event(0, 7, "cat", "interrupt exit: vector %#x", 1, 0x20);
	assert_string_equal(in_linux(0, true), "irq_handler_exit irq=32 ret=1");
	assert_string_equal(event(0, 7, "cat", "sysret openat: ret %ld", 1, -2),
			    "return cat:running other ? 0 -2 openat");
	assert_string_equal(in_linux(0, true), "syscall_exit_openat ret=-2");
	assert_null(activity_running(m, 0)->call);
	/* Linux has no such call. */
	event(0, 7, "cat", "syscall sysctl: arg0 %#lx", 1, 1);
	assert_string_equal(in_linux(0, true), "syscall_entry_kestrel_sysctl arg0=1 arg1=0 arg2=0 "
					       "arg3=0 arg4=0 arg5=0");
	event(0, 7, "cat", "syscall sysctl: arg0 %#lx", 1, 2);
	assert_non_null(strstr(in_linux(0, true), "arg0=2"));
	/* The last two are in aarch64's order. */
	event(0, 7, "cat", "syscall clone: arg0 %#lx arg1 %#lx arg2 %#lx arg3 %#lx arg4 %#lx", 5, 1,
	      2, 3, 4, 5);
	assert_string_equal(in_linux(0, true), "syscall_entry_clone clone_flags=1 newsp=2 "
					       "parent_tidptr=3 tls=4 child_tidptr=5");
}

static void
every_system_call_has_the_number_that_the_kernel_gives_it(void **state)
{
	static const struct {
		const char *arch, *name;
		int number;
	} calls[] = {
#define SYSCALL(number, name, ...) {"x86_64", #name, number},
#include "kernel/abi/x86_64/syscalls.def"
#undef SYSCALL
#define SYSCALL(number, name, ...) {"aarch64", #name, number},
#include "kernel/abi/aarch64/syscalls.def"
#undef SYSCALL
	};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct ktr_decode_header h = {.arch = calls[i].arch};
		const struct ktr_decode_event e = {.header = &h};
		const struct activity a = {.kind = ACTIVITY_SYS_EXIT,
					   .event = &e,
					   .text = calls[i].name};
		struct linux_event out;
		assert_true(linux_event(&a, &out));
		/* Kestrel's own calls begin at 1024, and have no Linux number. */
		assert_int_equal(out.values[0], calls[i].number < 1024 ? calls[i].number : -1);
		assert_int_equal(strncmp(out.class->name, "sys_exit_kestrel_", 17) == 0,
				 calls[i].number >= 1024);
	}
}

static void
processes_live(void **state)
{
	assert_string_equal(event(0, 7, "sh", "fork: parent %u child %u name %s", 3, 7, 30, "sh"),
			    "(inferred) switch sh:running other ? 0 0 -; fork sh:unknown other sh "
			    "0 0 -");
	assert_string_equal(in_linux(1, false), "sched_process_fork parent_comm=sh parent_pid=7 "
						"child_comm=sh child_pid=30");
	event(0, 30, "sh", "exec: pid %u name %s entry %#lx argc %u", 4, 30, "cat", 0, 1);
	assert_string_equal(in_linux(1, true), "sched_process_exec filename=cat tid=30 old_tid=30");
	event(0, 30, "cat", "exit: pid %u status %#x name %s", 3, 30, 0x100, "cat");
	assert_string_equal(in_linux(0, false), "sched_process_exit comm=cat pid=30 prio=0");
	assert_int_equal(got[0].value, 0x100);
	assert_string_equal(event(0, 30, "cat", LOAD, 2, "CPU 0 load", 3),
			    "counter cat:running other ? 0 3 CPU 0 load");
}

static void
arrays_grow_by_zeroes_and_keep_their_elements(void **state)
{
	struct {
		uint64_t a;
		uint32_t b;
	} *array = NULL;
	size_t room = 0;
	for (size_t n = 0; n < 100000; n = n * 3 + 1) {
		size_t old = room;
		assert_true(MEMORY_ROOM(array, room, n));
		assert_true(room > n);
		for (size_t i = 0; i < room; i++) {
			assert_int_equal(array[i].a, i < old ? i + 1 : 0);
			array[i].a = i + 1;
		}
	}
	free(array);
}

static void
many_threads_and_odd_idents(void **state)
{
	char ident[64];
	for (int tid = 1; tid <= 5000; tid++) {
		snprintf(ident, sizeof(ident), "a tid 3 b tid %d", tid);
		event(0, (unsigned)tid, NULL, RUN, 3, ident, "running", 20);
		assert_int_equal(activity_running(m, 0)->tid, tid);
		assert_string_equal(activity_running(m, 0)->name, "a tid 3 b");
	}
	/* An ident without a number, or an unknown one, belongs to no thread. */
	assert_string_equal(event(0, 5000, NULL, RUN, 3, "nobody", "running", 20), "");
	assert_string_equal(event(0, 5000, NULL, RUN, 3, NULL, "running", 20), "");
	assert_string_equal(event(0, 5000, NULL, RUN, 3, "x tid 1", NULL, 20), "");
	/* An event whose site was lost. */
	const struct ktr_decode_event lost = {
	    .header = &header, .cpu = 255, .tid = 1, .site_number = 70000, .ticks = 1};
	const struct activity_thread *by;
	assert_int_equal(activity_event(m, &lost, got, &by), 1);
	assert_true(got[0].inferred);
	assert_int_equal(got[0].ns, now);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(switch_knows_who_ran_before_and_why_it_stopped, begin),
	    cmocka_unit_test_setup(first_event_of_a_cpu_tells_who_runs_there, begin),
	    cmocka_unit_test_setup(thread_that_moves_without_an_event_runs_on_one_cpu, begin),
	    cmocka_unit_test_setup(calls_are_not_known_where_events_were_lost, begin),
	    cmocka_unit_test_setup(dead_thread_is_forgotten_once_another_runs, begin),
	    cmocka_unit_test_setup(first_thread_of_a_process_that_ends_is_dead, begin),
	    cmocka_unit_test_setup(threads_that_never_end_are_forgotten_but_those_that_wait, begin),
	    cmocka_unit_test_setup(gap_makes_unknown_what_ran, begin),
	    cmocka_unit_test_setup(gap_makes_unknown_what_waits, begin),
	    cmocka_unit_test_setup(woken_thread_goes_from_sleep_to_the_run_queue, begin),
	    cmocka_unit_test_setup(locks_are_blocked_on_and_spun_for, begin),
	    cmocka_unit_test_setup(interrupts_and_system_calls, begin),
	    cmocka_unit_test_setup(every_system_call_has_the_number_that_the_kernel_gives_it,
				   begin),
	    cmocka_unit_test(arrays_grow_by_zeroes_and_keep_their_elements),
	    cmocka_unit_test_setup(processes_live, begin),
	    cmocka_unit_test_setup(many_threads_and_odd_idents, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
