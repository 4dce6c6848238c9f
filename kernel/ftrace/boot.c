/*
 * boot.c - Linux's boot parameters about tracing (Documentation/admin-guide/kernel-parameters.txt)
 * as loader parameters: each is written to a file of tracefs before process 1 starts. Locking:
 * ftrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/sysctl/tunable.h"
#include "ktr/control.h"

TUNABLE(ftrace, "ftrace", "a tracer of available_tracers");
TUNABLE(ftrace_filter, "ftrace_filter", "functions for set_ftrace_filter, with commas between");
TUNABLE(ftrace_notrace, "ftrace_notrace", "functions for set_ftrace_notrace");
TUNABLE(ftrace_graph_filter, "ftrace_graph_filter", "functions for set_graph_function");
TUNABLE(ftrace_graph_notrace, "ftrace_graph_notrace", "functions for set_graph_notrace");
TUNABLE(trace_event, "trace_event", "events that are enabled, with commas between");
TUNABLE(kprobe_event, "kprobe_event", "kprobes: commas for blanks, semicolons between");
TUNABLE(trace_options, "trace_options", "options, with commas between");
TUNABLE(trace_clock, "trace_clock", "a clock of trace_clock");
TUNABLE(trace_buf_size, "trace_buf_size", "bytes of each CPU's buffers, or with K, M or G");
TUNABLE(alloc_snapshot, "alloc_snapshot", "gives the snapshot its memory");
TUNABLE(tp_printk, "tp_printk", "events on the console: see debug.ktr.verbose");
TUNABLE(trace_instance, "trace_instance", "an instance, and after commas its events");

/* Bytes, as Linux's memparse() takes them. */
static int
store_size(struct instance *i, uintptr_t arg, char *text)
{
	static const char units[] = "kmg";
	size_t n = strlen(text);
	const char *unit = n > 0 ? strchr(units, text[n - 1] | 32) : NULL;
	uint64_t size;
	int error;

	if (unit != NULL && *unit != '\0')
		text[n - 1] = '\0';
	else
		unit = NULL;
	error = tracefs_number(text, &size);
	if (error != 0)
		return error;
	for (const char *u = units; unit != NULL && u <= unit && size < UINT64_MAX / 1024; u++)
		size *= 1024;
	error = instance_resize_kb(i, size / 1024);
	instance_entries_new = error == 0 ? instance_entries(i) : 0;
	return error;
}

static int
store_options(struct instance *i, uintptr_t arg, char *text)
{
	char *word;
	int error = 0;

	while (error == 0 && (word = tracefs_word(&text)) != NULL)
		error = options_store(i, arg, word);
	return error;
}

static int
store_kprobes(struct instance *i, uintptr_t arg, char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if (*c == ';')
			*c = '\n';
	return kprobes_store(i, arg, text);
}

static int
store_snapshot(struct instance *i, uintptr_t arg, char *text)
{
	return snapshot_alloc(i);
}

static int
store_instance(struct instance *i, uintptr_t arg, char *text)
{
	const char *name = tracefs_word(&text);
	struct instance *made;
	int error = name != NULL ? instance_make(name, &made) : -EINVAL;

	return error == 0 ? events_store_set(made, arg, text) : error;
}

static int
store_verbose(struct instance *i, uintptr_t arg, char *text)
{
	bool on;
	int error = tracefs_bool(text, &on);

	return error == 0 ? ktr_verbose_set(on) : error;
}

/* In the order in which they are applied: a choice comes before what it is made from. */
static const struct {
	const char *name;
	int (*store)(struct instance *i, uintptr_t arg, char *text);
	uintptr_t arg;
} parameters[] = {
    {"trace_buf_size", store_size, 0},
    {"trace_clock", clock_store, 0},
    {"trace_options", store_options, 0},
    {"alloc_snapshot", store_snapshot, 0},
    {"ftrace_filter", functions_store, FUNCTIONS_FILTER},
    {"ftrace_notrace", functions_store, FUNCTIONS_NOTRACE},
    {"ftrace_graph_filter", functions_store, FUNCTIONS_GRAPH},
    {"ftrace_graph_notrace", functions_store, FUNCTIONS_GRAPH_NOTRACE},
    {"kprobe_event", store_kprobes, PROBES_KERNEL},
    {"tp_printk", store_verbose, 0},
    {"trace_event", events_store_set, 0},
    {"trace_instance", store_instance, 0},
    {"ftrace", tracer_store, 0},
};

/* Commas become blanks. */
static void
apply_parameter(unsigned i, const char *value)
{
	size_t n = strlen(value) + 1;
	char *text = kmalloc(n);
	int error = -ENOMEM;

	if (text != NULL) {
		memcpy(text, value, n);
		for (char *c = text; *c != '\0'; c++)
			if (*c == ',')
				*c = ' ';
		error = parameters[i].store(&instance_top, parameters[i].arg, text);
	}
	if (error != 0)
		tunable_refuse(parameters[i].name, "error %d", -error);
	kfree(text);
}

static void
ftrace_boot(void)
{
	mutex_lock(&ftrace_lock);
	for (unsigned i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
		const char *value = tunable_get(parameters[i].name);

		if (value != NULL)
			apply_parameter(i, value);
	}
	mutex_unlock(&ftrace_lock);
}
HOOK(booted, ftrace_boot);
