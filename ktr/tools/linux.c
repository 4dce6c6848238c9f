/* linux.c - Linux's event classes, and how activities become events of them. */
#define _GNU_SOURCE /* twalk_r() */
#include "ktr/tools/linux.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/wire.h"

#define IDLE_PRIO 120 /* Linux's priority of idle threads: MAX_PRIO - 20 */
#define ARRAY(a)  (sizeof(a) / sizeof((a)[0]))

/* ---- event classes ---- */

#define FIELDS(...)                                         \
	ARRAY(((const struct linux_field[]){__VA_ARGS__})), \
	{                                                   \
		__VA_ARGS__                                 \
	}
#define NAMED(name, lttng, type)              \
	{                                     \
		name, lttng, KTR_FIELD_##type \
	}
#define FIELD(name, type)  NAMED(name, name, type)
#define FTRACE(name, type) NAMED(name, NULL, type) /* LTTng has none */
#define LTTNG(name, type)  NAMED(NULL, name, type)
#define EVENT(system, name, ...) \
	static const struct linux_class name = {#system, #name, #name, __VA_ARGS__}
#define TRACER(name, ...) \
	static const struct linux_class name = {"ftrace", #name, NULL, __VA_ARGS__}

EVENT(sched, sched_switch,
      "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%ld ==> next_comm=%s next_pid=%d "
      "next_prio=%d",
      FIELDS(FIELD("prev_comm", COMM), NAMED("prev_pid", "prev_tid", INT), FIELD("prev_prio", INT),
	     FIELD("prev_state", LONG), FIELD("next_comm", COMM),
	     NAMED("next_pid", "next_tid", INT), FIELD("next_prio", INT)));

#define THREAD FIELD("comm", COMM), NAMED("pid", "tid", INT), FIELD("prio", INT)
#define WAKEUP(name)                                                 \
	EVENT(sched, name, "comm=%s pid=%d prio=%d target_cpu=%03d", \
	      FIELDS(THREAD, FIELD("target_cpu", INT)))
WAKEUP(sched_waking);
WAKEUP(sched_wakeup);
WAKEUP(sched_wakeup_new);

EVENT(sched, sched_process_fork, "comm=%s pid=%d child_comm=%s child_pid=%d",
      FIELDS(FIELD("parent_comm", COMM), NAMED("parent_pid", "parent_tid", INT),
	     FIELD("child_comm", COMM), NAMED("child_pid", "child_tid", INT),
	     LTTNG("parent_pid", INT), LTTNG("child_pid", INT)));
EVENT(sched, sched_process_exec, "filename=%s pid=%d old_pid=%d",
      FIELDS(FIELD("filename", STRING), NAMED("pid", "tid", INT),
	     NAMED("old_pid", "old_tid", INT)));
EVENT(sched, sched_process_exit, "comm=%s pid=%d prio=%d", FIELDS(THREAD));
EVENT(irq, irq_handler_entry, "irq=%d name=%s", FIELDS(FIELD("irq", INT), FIELD("name", STRING)));
EVENT(irq, irq_handler_exit, "irq=%d ret=%d", FIELDS(FIELD("irq", INT), FIELD("ret", INT)));

/*
 * As in Linux's kernel/trace/trace_entries.h; `retval` since Linux 6.5, `retaddr` since 6.13, in an
 * event of another name; `args`, there an array, since 6.15.
 */
#define ARGS                                                                 \
	FTRACE("arg0", ULONG), FTRACE("arg1", ULONG), FTRACE("arg2", ULONG), \
	    FTRACE("arg3", ULONG), FTRACE("arg4", ULONG), FTRACE("arg5", ULONG)
TRACER(funcgraph_entry, "--> %ps <-- %ps (0x%llx, 0x%llx, 0x%llx, 0x%llx, 0x%llx, 0x%llx) depth %d",
       FIELDS(FTRACE("func", ULONG), FTRACE("retaddr", ULONG), ARGS, FTRACE("depth", INT)));
/* Stands for the entries when no function returns. What begins alike has the same place. */
TRACER(function, " %ps <-- %ps (0x%llx, 0x%llx, 0x%llx, 0x%llx, 0x%llx, 0x%llx)",
       FIELDS(FTRACE("ip", ULONG), FTRACE("parent_ip", ULONG), ARGS));
TRACER(funcgraph_exit, "<-- %ps (%d)",
       FIELDS(FTRACE("func", ULONG), FTRACE("depth", INT), FTRACE("overrun", ULONG),
	      FTRACE("calltime", ULONG), FTRACE("rettime", ULONG), FTRACE("retval", ULONG)));

/* ---- system calls -------------------------------------------------------------------------------
 */

struct call {
	const char *name;
	int number;
	struct linux_class enter, leave;
};

#define NR                             FTRACE("__syscall_nr", INT)
#define A(argument, kind, type, field) FIELD(#field, type),
#define SYSCALL(number, name, restart, enomem, ...)                                               \
	{#name,                                                                                   \
	 number,                                                                                  \
	 {"syscalls", "sys_enter_" #name, "syscall_entry_" #name, NULL, FIELDS(NR, __VA_ARGS__)}, \
	 {"syscalls", "sys_exit_" #name, "syscall_exit_" #name, NULL,                             \
	  FIELDS(NR, FIELD("ret", LONG))}},

#define KESTREL(...)
static const struct call calls_x86_64[] = {
#include "kernel/abi/x86_64/syscalls.def"
};
#define KESTREL(...)
static const struct call calls_aarch64[] = {
#include "kernel/abi/aarch64/syscalls.def"
};

/* A system call that Linux does not have, or that this ktrdump does not know. */
struct own_call {
	struct own_call *next;
	char call[32], enter[64], leave[64], lttng_enter[64], lttng_leave[64];
	struct linux_class classes[2];
};

static const struct linux_class *
own_call(const char *name, bool leave)
{
	static struct own_call *all;
	struct own_call *c = all;
	while (c != NULL && strcmp(c->call, name) != 0)
		c = c->next;
	if (c != NULL)
		return &c->classes[leave];
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	snprintf(c->call, sizeof(c->call), "%s", name);
	snprintf(c->enter, sizeof(c->enter), "sys_enter_kestrel_%s", name);
	snprintf(c->leave, sizeof(c->leave), "sys_exit_kestrel_%s", name);
	snprintf(c->lttng_enter, sizeof(c->lttng_enter), "syscall_entry_kestrel_%s", name);
	snprintf(c->lttng_leave, sizeof(c->lttng_leave), "syscall_exit_kestrel_%s", name);
	c->classes[0] = (struct linux_class){"syscalls", c->enter, c->lttng_enter, NULL,
					     FIELDS(NR, FIELD("arg0", ULONG), FIELD("arg1", ULONG),
						    FIELD("arg2", ULONG), FIELD("arg3", ULONG),
						    FIELD("arg4", ULONG), FIELD("arg5", ULONG))};
	c->classes[1] = (struct linux_class){"syscalls", c->leave, c->lttng_leave, NULL,
					     FIELDS(NR, FIELD("ret", LONG))};
	c->next = all;
	all = c;
	return &c->classes[leave];
}

static int
call_compare(const void *name, const void *call)
{
	return strcmp(name, ((const struct call *)call)->name);
}

/* The class of a system call; *number is its number on that architecture. NULL: no memory. */
static const struct linux_class *
call_class(const struct activity *a, bool leave, int64_t *number)
{
	bool arm = strcmp(a->event->header->arch, "aarch64") == 0;
	const struct call *call =
	    bsearch(a->text, arm ? calls_aarch64 : calls_x86_64,
		    arm ? ARRAY(calls_aarch64) : ARRAY(calls_x86_64), sizeof(*call), call_compare);
	*number = call != NULL ? call->number : -1;
	if (call == NULL)
		return own_call(a->text, leave);
	return leave ? &call->leave : &call->enter;
}

/* ---- events ---- */

uint32_t
linux_tid(const struct activity_thread *t)
{
	return t->idle ? 0 : t->tid;
}

void
linux_comm(const struct activity_thread *t, char *buf)
{
	static const char idle[] = "idle/", swapper[] = "swapper/", unknown[] = "<...>";
	const char *name = t->name[0] != '\0' ? t->name : unknown;
	size_t at = 0, n;
	memset(buf, 0, LINUX_COMM);
	if (t->idle) {
		name += sizeof(idle) - 1;
		at = sizeof(swapper) - 1;
		memcpy(buf, swapper, at);
	}
	n = strnlen(name, LINUX_COMM - at);
	if (n == LINUX_COMM - at) { /* the name is cut, but not within a character of UTF-8 */
		n--;
		while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(buf + at, name, n);
}

/* The thread that ran before; if it is not known, the CPU's idle thread. Valid until the next call.
 */
static const struct activity_thread *
linux_prev(const struct activity *a)
{
	static struct activity_thread idle = {.idle = true, .prio = IDLE_PRIO};
	if (a->other != NULL)
		return a->other;
	snprintf(idle.name, sizeof(idle.name), "idle/%" PRIu32, a->cpu);
	return &idle;
}

/* prev_state as in include/linux/sched.h: TASK_RUNNING, TASK_INTERRUPTIBLE,
 * TASK_UNINTERRUPTIBLE, EXIT_DEAD. */
static int64_t
linux_state(const struct activity_thread *t)
{
	switch (t->state) {
	case ACTIVITY_SLEEPING:
		return 1;
	case ACTIVITY_BLOCKED:
		return 2;
	case ACTIVITY_DEAD:
		return 16;
	default:
		return 0;
	}
}

static void
put_switch(const struct activity *a, struct linux_event *out, char comms[2][LINUX_COMM])
{
	out->class = &sched_switch;
	const struct activity_thread *prev = linux_prev(a);
	linux_comm(prev, comms[0]);
	linux_comm(a->thread, comms[1]);
	out->texts[0] = comms[0];
	out->values[1] = linux_tid(prev);
	out->values[2] = prev->prio;
	out->values[3] = linux_state(prev);
	out->texts[4] = comms[1];
	out->values[5] = linux_tid(a->thread);
	out->values[6] = a->thread->prio;
}

static void
put_thread(const struct linux_class *class, const struct activity *a, struct linux_event *out,
	   char comms[2][LINUX_COMM])
{
	out->class = class;
	linux_comm(a->thread, comms[0]);
	out->texts[0] = comms[0];
	out->values[1] = linux_tid(a->thread);
	out->values[2] = a->thread->prio;
	out->values[3] = a->thread->cpu;
}

static void
put_fork(const struct activity *a, struct linux_event *out, char comms[2][LINUX_COMM])
{
	out->class = &sched_process_fork;
	linux_comm(a->other, comms[0]);
	linux_comm(a->thread, comms[1]);
	out->texts[0] = comms[0];
	out->values[1] = out->values[4] = linux_tid(a->other);
	out->texts[2] = comms[1];
	out->values[3] = out->values[5] = linux_tid(a->thread);
}

struct function {
	const char *name; /* valid as the decoder's texts */
	uint64_t address; /* made up */
};

static void *functions; /* by name */

static int
function_compare(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

/* 0: no memory. */
static uint64_t
function_address(const char *name)
{
	static uint64_t last;
	const struct function key = {.name = name};
	struct function **found = tfind(&key, &functions, function_compare), *f;
	if (found != NULL)
		return (*found)->address;
	f = malloc(sizeof(*f));
	if (f == NULL)
		return 0;
	*f = (struct function){.name = name, .address = last + LINUX_FUNCTION};
	if (tsearch(f, &functions, function_compare) == NULL) {
		free(f);
		return 0;
	}
	return last = f->address;
}

static void
function_print(const void *node, VISIT visit, void *out)
{
	const struct function *f = *(const struct function *const *)node;
	if (visit == postorder || visit == leaf)
		fprintf(out, "%016" PRIx64 " T %s\n", f->address, f->name);
}

void
linux_functions_print(FILE *f)
{
	twalk_r(functions, function_print, f);
}

static bool returned; /* a function has returned: so those that have not are the callers */

const struct linux_class *
linux_class_told(const struct linux_class *class)
{
	return class == &funcgraph_entry && !returned ? &function : class;
}

static bool
put_function(const struct activity *a, struct linux_event *out)
{
	const struct activity_thread *t = a->thread;
	out->class = a->kind == ACTIVITY_CALL ? &funcgraph_entry : &funcgraph_exit;
	out->values[0] = (int64_t)function_address(a->text);
	if (a->kind == ACTIVITY_CALL) {
		out->values[1] = returned && t->depth > 1
				     ? (int64_t)function_address(t->calls[t->depth - 2].name)
				     : 0;
		for (unsigned i = 0; i < 6; i++)
			out->values[2 + i] = (int64_t)a->args[i];
		out->values[8] = t->depth - 1;
	} else {
		returned = true;
		out->values[1] = t->depth;
		out->values[2] = 0;
		out->values[3] = (int64_t)a->call.ns;
		out->values[4] = (int64_t)a->ns;
		out->values[5] = a->value;
	}
	return out->values[0] != 0;
}

static bool
put_call(const struct activity *a, bool leave, struct linux_event *out)
{
	static char pointers[LINUX_FIELDS][24];
	out->class = call_class(a, leave, &out->values[0]);
	if (out->class == NULL)
		return false;
	for (unsigned i = 1; i < out->class->nfields; i++) {
		uint64_t v = leave ? (uint64_t)a->value : a->args[i - 1];
		out->values[i] =
		    out->class->fields[i].type == KTR_FIELD_INT ? (int32_t)v : (int64_t)v;
		if (out->class->fields[i].type != KTR_FIELD_STRING)
			continue;
		/* The trace has the address of the text, but not the text. */
		snprintf(pointers[i], sizeof(pointers[i]), "0x%" PRIx64, v);
		out->texts[i] = pointers[i];
	}
	return true;
}

bool
linux_event(const struct activity *a, struct linux_event *out)
{
	static char comms[2][LINUX_COMM];
	switch (a->kind) {
	case ACTIVITY_SWITCH:
		if (a->inferred)
			return false;
		put_switch(a, out, comms);
		return true;
	case ACTIVITY_WAKE:
		put_thread(&sched_waking, a, out, comms);
		return true;
	case ACTIVITY_STATE: /* a wakeup, if another thread put it onto a run queue from none */
		if (a->thread->state != ACTIVITY_RUNNABLE || a->other == NULL ||
		    a->before == ACTIVITY_RUNNABLE || a->before == ACTIVITY_RUNNING)
			return false;
		put_thread(a->fresh ? &sched_wakeup_new : &sched_wakeup, a, out, comms);
		return true;
	case ACTIVITY_FORK:
		put_fork(a, out, comms);
		return true;
	case ACTIVITY_EXEC:
		out->class = &sched_process_exec;
		out->texts[0] = a->text;
		out->values[1] = out->values[2] = linux_tid(a->thread);
		return true;
	case ACTIVITY_EXIT:
		put_thread(&sched_process_exit, a, out, comms);
		return true;
	case ACTIVITY_IRQ_ENTER:
		out->class = &irq_handler_entry;
		out->values[0] = a->number;
		out->texts[1] = a->text;
		return true;
	case ACTIVITY_IRQ_EXIT:
		out->class = &irq_handler_exit;
		out->values[0] = a->number;
		out->values[1] = 1; /* IRQ_HANDLED */
		return true;
	case ACTIVITY_CALL:
		return put_function(a, out);
	case ACTIVITY_RETURN:
		return linux_replaces(a) && put_function(a, out);
	case ACTIVITY_SYS_ENTER:
		return put_call(a, false, out);
	case ACTIVITY_SYS_EXIT:
		return put_call(a, true, out);
	default:
		return false;
	}
}
