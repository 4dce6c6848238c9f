/*
 * tracer.c - the tracers `function` and `function_graph`: hooks of the functions' entries and
 * returns, which record events of their own in the log.
 *
 * Locking: ftrace_lock. What hooks read (pids, depth, threshold) are single words, or changes only
 * while no hook is on.
 */
#include "kernel/ftrace/tracer/tracer.h"
#include "arch/pcpu.h"
#include "kernel/abi/errno.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/probe/calls.h"
#include "kernel/sched/thread.h"
#include "ktr/control.h"
#include "ktr/port.h"
#include "ktr/ring.h"

TRACER_SITE(tracer_function, 3, "ftrace function: func %s parent %#lx ip %#lx");
TRACER_SITE(tracer_repeats, 5,
	    "ftrace function: func %s parent %#lx ip %#lx repeats %lu last ns %lu");
TRACER_SITE(tracer_graph_entry, 3, "ftrace graph entry: func %s depth %lu ip %#lx");
TRACER_SITE(tracer_graph_return, 6,
	    "ftrace graph return: func %s depth %lu calltime %lu rettime %lu ip %#lx lost %lu");
TRACER_SITE(tracer_mark, 1, "ftrace mark: text %s");
TRACER_SITE(tracer_raw, 2, "ftrace raw: id %#x data %s");

uint64_t tracer_max_depth, tracer_thresh_ns;

static bool functions_enabled = true; /* kernel.ftrace_enabled */

/* ---- hooks ---- */

void
tracer_record_function(struct instance *i, const struct ktr_firing *f)
{
	instance_record(i, &tracer_function,
			(uint64_t[KTR_MAXARGS]){(uintptr_t)f->site->func, ktr_firing_where(f).ret,
						function_address(f->site)});
}

/* Is the call the same as the last one? If not, records how often that one was repeated. */
static bool
function_repeats(struct instance *i, const struct ktr_firing *f)
{
	struct function_repeats *r = &i->repeats[arch_cpu()];
	uint64_t parent = ktr_firing_where(f).ret;

	if (r->site == f->site && r->parent == parent) {
		r->n++;
		r->last_ns = clock_ns();
		return true;
	}
	if (r->n > 0)
		instance_record(i, &tracer_repeats,
				(uint64_t[KTR_MAXARGS]){(uintptr_t)r->site->func, r->parent,
							function_address(r->site), r->n,
							r->last_ns});
	*r = (struct function_repeats){.site = f->site, .parent = parent};
	return false;
}

static void
function_fire(const struct ktr_firing *f)
{
	struct instance *i = instance_of(f);

	/* The cheap checks come first, since tracing may be off for long. Who reads `trace` is
	 * not traced. */
	if ((instance_mask(i) >> arch_cpu() & 1) == 0 || ktr_port_suppressed() ||
	    curthread()->silent || !pids_want(i, PIDS_FUNCTION))
		return;
	if (option_on(i, OPTION_FUNC_NO_REPEATS) && function_repeats(i, f))
		return;
	tracer_record_function(i, f);
	if (option_on(i, OPTION_FUNC_STACK))
		record_stack(i, f);
}

/* Are calls at this depth too deep to be shown? */
static bool
too_deep(uint32_t depth)
{
	uint64_t max = __atomic_load_n(&tracer_max_depth, __ATOMIC_RELAXED);

	return max != 0 && depth >= max;
}

/* Is the function hidden, with all that it calls? */
static bool
is_hidden(const struct ktr_site *function)
{
	return functions_have(&instance_top.functions, FUNCTIONS_GRAPH_NOTRACE, function) ||
	       (!option_on(&instance_top, OPTION_GRAPH_IRQS) &&
		strcmp(function->func, "entry_interrupt") == 0);
}

static void
graph_enter(struct instance *i, struct thread_calls *calls, const struct ktr_site *function)
{
	uint32_t depth = calls->depth;
	struct thread_call *call;

	/* What is called from a function that is traced is traced. */
	if (depth == 0 && functions_any(&instance_top.functions, FUNCTIONS_GRAPH) &&
	    !functions_have(&instance_top.functions, FUNCTIONS_GRAPH, function))
		return;
	call = calls_enter(calls, ktr_site_number(function));
	if (call == NULL)
		return;
	call->zero_ns = curthread()->zero_ns;
	call->hidden = (depth > 0 && call[-1].hidden) || is_hidden(function);
	if (!call->hidden && !too_deep(depth) && !curthread()->silent &&
	    __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED) == 0)
		instance_record(i, &tracer_graph_entry,
				(uint64_t[KTR_MAXARGS]){(uintptr_t)function->func, depth,
							function_address(function)});
}

static void
graph_leave(struct instance *i, struct thread_calls *calls, const struct ktr_site *function)
{
	const struct thread_call *call = calls_leave(calls, ktr_site_number(function));
	uint64_t now_ns = clock_ns(), start_ns;

	if (call == NULL || call->hidden || too_deep(calls->depth) || curthread()->silent)
		return;
	start_ns = call->start_ns;
	if (!option_on(i, OPTION_SLEEP_TIME)) /* later by the time off the CPU */
		start_ns += curthread()->zero_ns - call->zero_ns;
	if (now_ns - start_ns < __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED))
		return;
	instance_record(i, &tracer_graph_return,
			(uint64_t[KTR_MAXARGS]){(uintptr_t)function->func, calls->depth, start_ns,
						now_ns, function_address(function), calls->lost});
}

static void
graph_fire(const struct ktr_firing *f)
{
	struct thread_calls *calls = calls_mine();
	struct instance *i = instance_of(f);

	if (calls == NULL || !pids_want(i, PIDS_FUNCTION))
		return;
	if (f->site->kind == KTR_SITE_ENTRY)
		graph_enter(i, calls, f->site);
	else
		graph_leave(i, calls, calls_function(f->site));
}

/* ---- switching ---- */

static const struct {
	const char *name;
	ktr_hook_fn *hook;
} tracers[] = {
    [TRACER_NOP] = {"nop", NULL},
    [TRACER_FUNCTION] = {"function", function_fire},
    [TRACER_GRAPH] = {"function_graph", graph_fire},
    [TRACER_IRQSOFF] = {"irqsoff", irqsoff_fire},
    [TRACER_PREEMPTOFF] = {"preemptoff", irqsoff_fire},
    [TRACER_PREEMPTIRQSOFF] = {"preemptirqsoff", irqsoff_fire},
    [TRACER_WAKEUP] = {"wakeup", wakeup_fire},
    [TRACER_WAKEUP_RT] = {"wakeup_rt", wakeup_fire},
    [TRACER_BLK] = {"blk", blk_fire},
    [TRACER_HWLAT] = {"hwlat", NULL},
    [TRACER_OSNOISE] = {"osnoise", NULL},
    [TRACER_TIMERLAT] = {"timerlat", NULL},
};

const char *
tracer_name(const struct instance *i)
{
	return tracers[i->tracer].name;
}

static bool
tracer_site_wanted(const struct ktr_site *site, void *arg)
{
	const struct instance *i = arg;

	if (!functions_enabled && (site->kind == KTR_SITE_ENTRY || site->kind == KTR_SITE_RETURN))
		return false;
	if (latency_is_on(i))
		return latency_wants(site);
	if (i->tracer == TRACER_BLK)
		return blk_wants(site);
	return functions_traced(&i->functions, site) &&
	       (i->tracer == TRACER_GRAPH || site->kind == KTR_SITE_ENTRY);
}

void
tracer_update(struct instance *i)
{
	if (i->tracer_owner != 0)
		ktr_select_all(i->tracer_owner, tracer_site_wanted, i);
	tracer_forget_calls(i);
}

void
tracer_forget_calls(const struct instance *i)
{
	if (i->tracer == TRACER_GRAPH)
		calls_forget();
}

/* Gives back what tracer_take() took, before `next` comes. */
static void
tracer_give_back(struct instance *i, enum tracer t, enum tracer next, unsigned *owner)
{
	instance_disown(owner);
	if (t == TRACER_GRAPH)
		calls_stop();
	if (t == TRACER_HWLAT)
		hwlat_stop();
	if (t >= TRACER_OSNOISE)
		osnoise_stop(i);
	if (!tracer_is_latency(t) || tracer_is_latency(next))
		return;
	if (i->snapshot_users > 0)
		buffer_clear(&i->snapshot, BUFFER_ALL);
	else
		snapshot_free(i);
}

static int
tracer_take_own(struct instance *i, enum tracer t)
{
	if (t >= TRACER_OSNOISE)
		return osnoise_start(i, t);
	if (t == TRACER_HWLAT)
		return hwlat_start();
	if (t == TRACER_GRAPH)
		return calls_start() ? 0 : -EBUSY;
	return tracer_is_latency(t) ? snapshot_alloc(i) : 0;
}

/* Takes what a tracer needs, which may fail, while the current tracer is on. 0 or -errno. */
static int
tracer_take(struct instance *i, enum tracer t, unsigned *owner)
{
	enum tracer keeps =
	    i->snapshot_there ? TRACER_IRQSOFF : TRACER_NOP; /* also if this fails */
	int n, error = tracer_take_own(i, t);

	*owner = 0;
	if (error != 0 || tracers[t].hook == NULL)
		return error;
	n = instance_owner(i, "ftrace", tracers[t].hook);
	if (n < 0 && i->tracer_owner != 0) { /* what is on has one, and nothing else can fail */
		instance_disown(&i->tracer_owner);
		n = instance_owner(i, "ftrace", tracers[t].hook);
		if (n < 0) /* others were quicker */
			tracer_stop(i);
	}
	if (n < 0) {
		tracer_give_back(i, t, keeps, owner);
		return -EBUSY;
	}
	*owner = (unsigned)n;
	return 0;
}

void
tracer_stop(struct instance *i)
{
	tracer_give_back(i, i->tracer, TRACER_NOP, &i->tracer_owner);
	i->tracer = TRACER_NOP;
}

/* Begins a tracer that has what it needs. */
static void
tracer_begin(struct instance *i, enum tracer t, unsigned owner)
{
	if (tracer_is_latency(t))
		latency_start();
	if (t == TRACER_BLK)
		blk_start();
	if (t == TRACER_FUNCTION || t == TRACER_GRAPH)
		ktr_hook_sleeps(owner, instance_mask_at(i));
	memset(i->repeats, 0, sizeof(i->repeats));
	i->tracer_owner = owner;
	i->tracer = t;
	tracer_update(i);
}

static int
tracer_change(struct instance *i, enum tracer t)
{
	enum tracer before = i->tracer;
	bool same_threads = before >= TRACER_OSNOISE && t >= TRACER_OSNOISE;
	unsigned owner;
	int error;

	if (same_threads)
		osnoise_stop(i);
	error = tracer_take(i, t, &owner);
	if (error != 0 && same_threads && osnoise_start(i, before) != 0)
		i->tracer = TRACER_NOP; /* there is no memory for its threads any more */
	if (error != 0)
		return error;
	if (!same_threads)
		tracer_give_back(i, before, t, &i->tracer_owner);
	buffer_clear(&i->trace, BUFFER_ALL);
	tracer_begin(i, t, owner);
	return 0;
}

void
tracer_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	sbuf_printf(out, "%s\n", tracer_name(i));
}

/* Other tracers than these are there once. */
static bool
is_possible(const struct instance *i, enum tracer t)
{
	return i == &instance_top || t <= TRACER_GRAPH || t >= TRACER_OSNOISE;
}

void
tracer_show_all(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	for (unsigned t = TRACERS; t-- > 0;)
		if (is_possible(i, t))
			sbuf_printf(out, "%s%c", tracers[t].name, t > 0 ? ' ' : '\n');
}

int
tracer_store(struct instance *i, uintptr_t arg, char *text)
{
	const char *name = tracefs_word(&text);

	for (unsigned t = 0; t < TRACERS && name != NULL; t++)
		if (strcmp(name, tracers[t].name) == 0 && is_possible(i, t))
			return t == i->tracer ? 0 : tracer_change(i, (enum tracer)t);
	return -EINVAL;
}

/* ---- the sysctl ---- */

static uint64_t
ftrace_enabled(void)
{
	return functions_enabled;
}

static bool
tracer_update_hook(struct instance *i, const void *arg)
{
	tracer_update(i);
	return false;
}

static int
ftrace_enable(int64_t on, char *err, size_t errlen)
{
	mutex_lock(&ftrace_lock);
	functions_enabled = on != 0;
	instances_any(tracer_update_hook, NULL);
	mutex_unlock(&ftrace_lock);
	return 0;
}

SYSCTL_INT_CALL(kernel_ftrace_enabled, "kernel.ftrace_enabled", SYSCTL_WR, ftrace_enabled,
		ftrace_enable, 0, 1, "0: the tracers of tracefs see no function");
