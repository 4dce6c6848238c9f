/* files.c - the directory of tracefs: a table of its files. Locking: ftrace_lock. */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/intern.h"
#include "ktr/port.h"
#include "ktr/ring.h"
#include "ktr/word.h"

#define CMDLINES (KTR_THREAD_SETS * KTR_THREAD_WAYS)

static uint64_t cmdlines_max = CMDLINES; /* saved_cmdlines_size */
static char *cmdlines_kept; /* what saved_cmdlines showed since tracing is off; or NULL */

static void
cmdlines_forget(void)
{
	kfree(cmdlines_kept);
	cmdlines_kept = NULL;
}

/* ---- tracing_on, tracing_cpumask ---- */

static void
on_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%d\n", instance_is_on(i));
}

static int
on_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t on;
	int error = tracefs_number(text, &on);

	if (error != 0)
		return error;
	instance_switch(i, on != 0);
	if (on != 0)
		cmdlines_forget();
	return 0;
}

/* As Linux's bitmap_parse(): hexadecimal, commas between groups of 32 bits. */
static void
cpumask_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	uint64_t now = instance_mask(i);
	uint64_t cpus = __atomic_load_n(&i->cpus, __ATOMIC_RELAXED);

	cpus_print_mask(out, (now != 0 ? now : cpus) & cpus_online());
}

static int
cpumask_store(struct instance *i, uintptr_t arg, char *text)
{
	const char *word = tracefs_word(&text);
	uint64_t mask = 0, group;

	if (word == NULL)
		return -EINVAL;
	while (*word != '\0') {
		const char *comma = strchr(word, ',');
		size_t n = comma != NULL ? (size_t)(comma - word) : strlen(word);

		if (n > 8 || mask >> 32 != 0)
			return -EOVERFLOW;
		if (n > 0 && ktr_number(word, n, 16, &group) != KTR_NUMBER_OK)
			return -EINVAL;
		mask = n > 0 ? mask << 32 | group : mask;
		word += n + (comma != NULL);
	}
	if ((mask & cpus_online()) == 0)
		return -EINVAL;
	instance_set_cpus(i, mask);
	return 0;
}

/* ---- sizes ---- */

static uint64_t
size_kb(const struct instance *i)
{
	return (uint64_t)instance_entries(i) * KTR_ENTRY_BYTES / 1024;
}

static void
size_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", size_kb(i));
}

int
instance_resize_kb(struct instance *i, uint64_t kb)
{
	unsigned before = instance_entries(i);
	int error;

	if (kb == 0)
		return -EINVAL;
	if (kb > KTR_ENTRIES_MAX / (1024 / KTR_ENTRY_BYTES))
		return -ENOMEM;
	if (i->snapshot_there && i->snapshot_readers > 0)
		return -EBUSY;
	error = instance_resize(i, (unsigned)(kb * 1024 / KTR_ENTRY_BYTES));
	if (error != 0 || !i->snapshot_there)
		return error;
	snapshot_free(i); /* has the size of the rings */
	error = snapshot_alloc(i);
	if (error != 0 && instance_resize(i, before) == 0)
		snapshot_alloc(i); /* triggers need it */
	return error;
}

static int
size_store(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t kb;

	return tracefs_number(text, &kb) == 0 ? instance_resize_kb(i, kb) : -EINVAL;
}

static void
total_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", size_kb(i) * ncpus);
}

static void
stats_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	unsigned cpu = (unsigned)arg;
	struct ktr_stats stats = {0};
	uint64_t oldest, now = clock_ns() / 1000;
	struct buffer_counts n;

	ktr_log_stats(i->trace.log, cpu, &stats);
	ktr_port_lock();
	n = buffer_count(&i->trace, cpu);
	oldest = buffer_oldest_ns(&i->trace, cpu) / 1000;
	ktr_port_unlock();
	stats.dropped += __atomic_load_n(&i->trace.shown[cpu].dropped, __ATOMIC_RELAXED);
	sbuf_printf(out,
		    "entries: %lu\noverrun: %lu\ncommit overrun: 0\nbytes: %lu\n"
		    "oldest event ts: %5lu.%06lu\nnow ts: %5lu.%06lu\ndropped events: %lu\n"
		    "read events: %lu\n",
		    n.entries, n.overrun, n.entries * KTR_ENTRY_BYTES, oldest / 1000000,
		    oldest % 1000000, now / 1000000, now % 1000000, stats.dropped,
		    n.written - n.entries - n.overrun);
}

/* ---- texts ---- */

/* Shows threads that have ended, too, as far as their names are known. */
static void
cmdlines_print(struct sbuf *out)
{
	const uint64_t *words = &ktr_names_get()->threads[0][0];
	char name[KTR_THREAD_NAME];
	uint64_t left = cmdlines_max;

	for (unsigned i = 0; i < CMDLINES && left > 0; i++) {
		uint32_t tid = __atomic_load_n(&words[i], __ATOMIC_RELAXED) >> 32;

		if (tid == 0 || ktr_thread_name_get(tid, name) == NULL ||
		    strncmp(name, "idle/", 5) == 0)
			continue;
		sbuf_printf(out, "%u %s\n", tid, name);
		left--;
	}
}

/* While tracing is off, the file stays as it is: trace-cmd reads it twice. */
static void
cmdlines_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	size_t begin = out->len, n;

	if (instance_mask(&instance_top) != 0)
		cmdlines_forget();
	if (cmdlines_kept != NULL) {
		sbuf_puts(out, cmdlines_kept);
		return;
	}
	cmdlines_print(out);
	if (instance_mask(&instance_top) != 0 || sbuf_is_cut(out))
		return;
	n = out->len - begin;
	cmdlines_kept = kmalloc(n + 1);
	if (cmdlines_kept != NULL)
		strlcpy(cmdlines_kept, out->buf + begin, n + 1);
}

static void
cmdlines_show_size(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%lu\n", cmdlines_max);
}

static int
cmdlines_store_size(struct instance *i, uintptr_t arg, char *text)
{
	uint64_t n;
	int error = tracefs_number(text, &n);

	if (error != 0 || n == 0 || n > 32768) /* as in Linux */
		return -EINVAL;
	cmdlines_max = n;
	cmdlines_forget();
	return 0;
}

static void
tgids_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	proc_print_threads(out);
}

/* eval_map and printk_formats are empty: events have no words with numbers for the one, and the
 * kernel has no trace_printk() with formats for the other. */
static void
nothing_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
}

static void
timestamp_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_puts(out, "[delta] absolute\n");
}

/* ---- dynamic_events ---- */

static void
dynamic_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	kprobes_show(i, PROBES_KERNEL, out);
	kprobes_show(i, PROBES_USER, out);
	kprobes_show(i, PROBES_EVENT, out);
	synthetic_show_dynamic(out);
}

/* Is that a line for uprobe_events? A path in its second word says so. */
static bool
is_uprobe(const char *line)
{
	const char *place = strchr(line, ' ');

	while (place != NULL && *place == ' ')
		place++;
	while (place != NULL && *place != '\0' && *place != ' ' && *place != '/')
		place++;
	return place != NULL && *place == '/';
}

/* s:[synthetic/]NAME FIELDS, -:[synthetic/]NAME and !s:NAME are synthetic events, all else probes.
 */
static int
dynamic_command(char *line)
{
	static const char group[] = EVENT_SYNTHETIC "/";
	bool remove = *line == '-' || *line == '!', is_line = *line == '!';
	char *name = line + is_line + 2;

	if (strncmp(line + is_line, "s:", 2) != 0 && strncmp(line, "-:", 2) != 0)
		return kprobes_command(remove            ? PROBES_ALL
				       : *line == 'e'    ? PROBES_EVENT
				       : is_uprobe(line) ? PROBES_USER
							 : PROBES_KERNEL,
				       line);
	if (!remove)
		return synthetic_command_dynamic(line);
	if (strncmp(name, group, sizeof(group) - 1) == 0)
		name += sizeof(group) - 1;
	if (*line == '-' && synthetic_find(name) == NULL)
		return kprobes_command(PROBES_ALL, line);
	name[-1] = '!';
	return synthetic_command(name - 1);
}

static int
dynamic_events_store(struct instance *i, uintptr_t arg, char *text)
{
	return tracefs_lines(text, dynamic_command);
}

/* Event probes go first, which use the others. None goes if one has to stay. */
static int
dynamic_clear(struct instance *i, uintptr_t arg)
{
	int error = kprobes_any_used() || synthetic_any_used() ? -EBUSY : 0;

	if (error == 0)
		error = kprobes_clear(i, PROBES_EVENT);
	if (error == 0)
		error = synthetic_clear(i, arg);
	if (error == 0)
		error = kprobes_clear(i, PROBES_KERNEL);
	return error == 0 ? kprobes_clear(i, PROBES_USER) : error;
}

/* ---- tables ---- */

static void
cpu_fill(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    {.name = "snapshot", .mode = 0640, .ops = &snapshot_ops},
	    {.name = "trace", .mode = 0640, .ops = &trace_ops},
	    {.name = "trace_pipe", .mode = 0440, .ops = &trace_pipe_ops, .stream = true},
	    {.name = "trace_pipe_raw", .mode = 0440, .ops = &trace_pipe_raw_ops, .stream = true},
	    TRACEFS_TEXT("stats", 0440, stats_show, NULL, NULL),
	    TRACEFS_TEXT("buffer_size_kb", 0640, size_show, size_store, NULL),
	};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), tracefs_arg(dir));
}

static void
per_cpu_fill(struct vnode *dir)
{
	static const struct tracefs_file cpu_dir = {.mode = 0750, .fill = cpu_fill};
	char name[16];

	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		snprintf(name, sizeof(name), "cpu%u", cpu);
		tracefs_add(dir, &cpu_dir, name, cpu);
	}
}

/* What the top directory has, and each instance. */
static void
fill_common(struct vnode *dir)
{
	static const struct tracefs_file per_cpu = {.name = "per_cpu",
						    .mode = 0750,
						    .fill = per_cpu_fill};
	static const struct tracefs_file files[] = {
	    TRACEFS_TEXT("available_tracers", 0440, tracer_show_all, NULL, NULL),
	    TRACEFS_TEXT("buffer_percent", 0640, percent_show, percent_store, NULL),
	    TRACEFS_TEXT("buffer_size_kb", 0640, size_show, size_store, NULL),
	    TRACEFS_TEXT("buffer_total_size_kb", 0440, total_show, NULL, NULL),
	    TRACEFS_TEXT("current_tracer", 0640, tracer_show, tracer_store, NULL),
	    TRACEFS_TEXT("error_log", 0640, error_log_show, error_log_store, error_log_clear),
	    TRACEFS_WORDS("set_event", 0640, events_show_set, events_store_set, events_clear_set),
	    {.name = "snapshot", .mode = 0640, .ops = &snapshot_ops},
	    {.name = "trace", .mode = 0640, .ops = &trace_ops},
	    TRACEFS_TEXT("trace_clock", 0640, clock_show, clock_store, NULL),
	    TRACEFS_TEXT("timestamp_mode", 0440, timestamp_show, NULL, NULL),
	    {.name = "trace_marker", .mode = 0220, .ops = &trace_marker_ops},
	    {.name = "trace_marker_raw", .mode = 0220, .ops = &trace_marker_raw_ops},
	    TRACEFS_TEXT("trace_options", 0640, options_show, options_store, NULL),
	    {.name = "trace_pipe", .mode = 0440, .ops = &trace_pipe_ops, .stream = true},
	    TRACEFS_TEXT("tracing_cpumask", 0640, cpumask_show, cpumask_store, NULL),
	    TRACEFS_TEXT("tracing_on", 0640, on_show, on_store, NULL),
	};
	static const struct tracefs_file pids =
	    TRACEFS_WORDS(NULL, 0640, pids_show, pids_store, pids_clear);
	static const char *const lists[PID_LISTS] = {"set_ftrace_pid", "set_ftrace_notrace_pid",
						     "set_event_pid", "set_event_notrace_pid"};
	static const struct tracefs_file *const dirs[] = {&events_dir, &options_dir, &per_cpu};

	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), BUFFER_ALL);
	for (unsigned i = 0; i < PID_LISTS; i++)
		tracefs_add(dir, &pids, lists[i], i);
	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		tracefs_add(dir, dirs[i], dirs[i]->name, BUFFER_ALL);
}

/* The first n lists of functions. */
static void
fill_lists(struct vnode *dir, unsigned n)
{
	static const struct tracefs_file list =
	    TRACEFS_WORDS(NULL, 0640, functions_show, functions_store, functions_clear,
			  .close = functions_close);
	static const char *const lists[] = {
	    [FUNCTIONS_FILTER] = "set_ftrace_filter",
	    [FUNCTIONS_NOTRACE] = "set_ftrace_notrace",
	    [FUNCTIONS_GRAPH] = "set_graph_function",
	    [FUNCTIONS_GRAPH_NOTRACE] = "set_graph_notrace",
	    [FUNCTIONS_STACK] = "stack_trace_filter",
	};

	for (unsigned i = 0; i < n; i++)
		tracefs_add(dir, &list, lists[i], i);
}

void
tracefs_fill_instance(struct vnode *dir)
{
	fill_common(dir);
	fill_lists(dir, FUNCTIONS_GRAPH);
}

void
tracefs_fill_root(struct vnode *dir)
{
	static const struct tracefs_file files[] = {
	    TRACEFS_TEXT("README", 0440, readme_show, NULL, NULL),
	    TRACEFS_TEXT("available_events", 0440, events_show_all, NULL, NULL),
	    TRACEFS_TEXT("available_filter_functions", 0440, functions_show_all, NULL, NULL),
	    TRACEFS_LINES("dynamic_events", 0640, dynamic_show, dynamic_events_store,
			  dynamic_clear),
	    TRACEFS_TEXT("dyn_ftrace_total_info", 0440, functions_show_total, NULL, NULL),
	    TRACEFS_TEXT("enabled_functions", 0440, functions_show_enabled, NULL, NULL),
	    TRACEFS_TEXT("eval_map", 0440, nothing_show, NULL, NULL),
	    TRACEFS_TEXT("function_profile_enabled", 0640, profile_show_enabled,
			 profile_store_enabled, NULL),
	    TRACEFS_TEXT("printk_formats", 0440, nothing_show, NULL, NULL),
	    TRACEFS_TEXT("saved_cmdlines", 0440, cmdlines_show, NULL, NULL),
	    TRACEFS_TEXT("saved_cmdlines_size", 0640, cmdlines_show_size, cmdlines_store_size,
			 NULL),
	    TRACEFS_TEXT("saved_tgids", 0440, tgids_show, NULL, NULL),
	    TRACEFS_TEXT("stack_max_size", 0640, stack_show_size, stack_store_size, NULL),
	    TRACEFS_TEXT("stack_trace", 0440, stack_show, NULL, NULL),
	    TRACEFS_LINES("synthetic_events", 0640, synthetic_show, synthetic_store,
			  synthetic_clear),
	};
	static const struct tracefs_file kprobes[] = {
	    TRACEFS_LINES("kprobe_events", 0640, kprobes_show, kprobes_store, kprobes_clear),
	    TRACEFS_TEXT("kprobe_profile", 0440, kprobes_show_profile, NULL, NULL),
	};
	static const struct tracefs_file uprobes[] = {
	    TRACEFS_LINES("uprobe_events", 0640, kprobes_show, kprobes_store, kprobes_clear),
	    TRACEFS_TEXT("uprobe_profile", 0440, kprobes_show_profile, NULL, NULL),
	};
	static const struct tracefs_number numbers[] = {
	    TRACEFS_NUMBER("max_graph_depth", &tracer_max_depth, 1, 0, UINT64_MAX),
	    TRACEFS_NUMBER("tracing_thresh", &tracer_thresh_ns, 1000, 0, UINT64_MAX / 1000),
	    TRACEFS_NUMBER("tracing_max_latency", &latency_longest_ns, 1000, 0, UINT64_MAX / 1000),
	};
	static const struct tracefs_file *const dirs[] = {&hwlat_dir, &osnoise_dir, &instances_dir,
							  &profile_dir};

	fill_common(dir);
	fill_lists(dir, FUNCTIONS_LISTS);
	tracefs_add_all(dir, files, sizeof(files) / sizeof(files[0]), BUFFER_ALL);
	tracefs_add_numbers(dir, numbers, sizeof(numbers) / sizeof(numbers[0]));
	tracefs_add_all(dir, kprobes, sizeof(kprobes) / sizeof(kprobes[0]), PROBES_KERNEL);
	tracefs_add_all(dir, uprobes, sizeof(uprobes) / sizeof(uprobes[0]), PROBES_USER);
	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		tracefs_add(dir, dirs[i], dirs[i]->name, BUFFER_ALL);
}
