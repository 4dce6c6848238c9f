/*
 * latency.c - the tracers `irqsoff`, `wakeup` and `wakeup_rt`: the longest time for which a CPU's
 * interrupts were off (irqsoff), or for which a thread that was woken waited for a CPU
 * (Documentation/trace/ftrace.rst). As in Linux, `wakeup` counts threads that are of a better
 * priority than the one that woke them, and wakeup_rt only those of SCHED_FIFO and SCHED_RR. What
 * the log recorded during that time is kept as the snapshot, and is what `trace` shows.
 *
 * Interrupts go off and on in irq_push() and irq_pop(), and for the handler of an interrupt. There
 * are probes at these places. Locking: each CPU changes its own span, interrupts off; `waker` is a
 * spin lock that only hooks take. ftrace_lock for the rest; `latency_longest_ns` is atomic, and
 * hooks change it under the lock of the snapshot.
 */
#include "arch/pcpu.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/ksyms.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/thread.h"
#include "ktr/intern.h"

#define DEPTH KTR_MAXARGS /* return addresses that say where */

/* Where interrupts went off, or on. */
TRACER_SITE(latency_point, DEPTH, "ftrace interrupts: %#lx %#lx %#lx %#lx %#lx %#lx");
/* A thread is woken, or gets the CPU. */
TRACER_SITE(latency_switch, 6, "ftrace wakeup: from %lu prio %lu runs %lu to %lu prio %lu name %s");

static const struct ktr_site *irq_disable, *irq_enable, *handler_entry, *handler_exit;
static const struct ktr_site *woken, *woken_new, *switched;
uint64_t latency_longest_ns;

/* A time with interrupts off. */
static struct span {
	uint64_t start_ns; /* 0: they are on */
	uint64_t from;     /* number of the log's next entry when the span began */
	uint64_t at[DEPTH];
	unsigned handlers; /* interrupt handlers that run, within one another */
	bool by_handler;   /* it began with one */
} spans[MAX_CPUS];

/* The thread that was woken. */
static struct {
	uint32_t lock;
	uint64_t tid, prio, cpu; /* tid 0: none; atomic */
	uint64_t start_ns, from[MAX_CPUS];
} waker;

/* ---- hooks ---- */

static uint64_t
next_entry(unsigned cpu)
{
	uint64_t tail, head;

	return ktr_log_window(instance_top.trace.log, cpu, &tail, &head) ? head : UINT64_MAX;
}

static void
say_whose(struct latency *l, const struct thread *t)
{
	l->tid = t->tid;
	l->uid = t->proc != NULL ? t->proc->uid : 0;
	l->sched = t->sched;
}

bool
latency_counts(const struct latency *l)
{
	uint64_t thresh = __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED);

	return thresh != 0 ? l->ns >= thresh
			   : l->ns > __atomic_load_n(&latency_longest_ns, __ATOMIC_RELAXED);
}

/* Keeps the log from the latency's first entry on, if the latency is the longest so far. */
static void
latency_report(const struct ktr_firing *f, const uint64_t from[MAX_CPUS], struct latency *l)
{
	if (!latency_counts(l) || instance_mask(&instance_top) == 0)
		return;
	record_stack(&instance_top, f);
	snapshot_keep(&instance_top, from, l);
}

static void
irqsoff_begin(const struct ktr_firing *f, struct span *s)
{
	unsigned cpu = arch_cpu();

	s->from = next_entry(cpu);
	memset(s->at, 0, sizeof(s->at));
	dtrace_stack(f, s->at, DEPTH);
	instance_record(&instance_top, &latency_point, s->at);
	s->start_ns = clock_ns();
}

static void
irqsoff_end(const struct ktr_firing *f, struct span *s)
{
	uint64_t at[DEPTH] = {0}, from[MAX_CPUS], now_ns = clock_ns();
	unsigned cpu = arch_cpu();
	struct latency l = {.ns = now_ns - s->start_ns, .start_ns = s->start_ns, .cpu = cpu};

	say_whose(&l, curthread());
	s->start_ns = 0;
	s->by_handler = false;
	if (l.ns <= __atomic_load_n(&latency_longest_ns, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&tracer_thresh_ns, __ATOMIC_RELAXED) == 0)
		return;
	dtrace_stack(f, at, DEPTH);
	instance_record(&instance_top, &latency_point, at);
	memcpy(l.started_at, s->at, sizeof(at));
	memcpy(l.ended_at, at, sizeof(at));
	for (unsigned i = 0; i < MAX_CPUS; i++)
		from[i] = i == cpu ? s->from : UINT64_MAX;
	latency_report(f, from, &l);
}

void
irqsoff_fire(const struct ktr_firing *f)
{
	struct span *s = &spans[arch_cpu()];

	if (f->site == handler_entry && s->handlers++ == 0 && s->start_ns == 0) {
		s->by_handler = true;
		irqsoff_begin(f, s);
	} else if (f->site == irq_disable && f->args[2] != 0 && s->start_ns == 0) {
		irqsoff_begin(f, s);
	} else if (f->site == handler_exit && s->handlers > 0) {
		if (--s->handlers == 0 && s->by_handler)
			irqsoff_end(f, s);
	} else if (s->start_ns != 0 &&
		   (f->site == irq_enable || (f->site == switched && f->args[5] == 0))) {
		irqsoff_end(f, s); /* the idle thread waits in its own way */
	} else if (s->start_ns != 0 && f->site->kind == KTR_SITE_ENTRY) {
		tracer_record_function(&instance_top, f);
	}
}

/* ---- wakeup ---- */

/* The waker, or who ran before; its priority; does the woken one run now; the woken one. */
static void
record_switch(uint64_t tid, uint64_t prio, bool runs, const uint64_t to[3])
{
	instance_record(&instance_top, &latency_switch,
			(uint64_t[KTR_MAXARGS]){tid, prio, runs, to[1], to[2], to[0]});
}

/* A thread is woken: name, number, priority, CPU. */
static void
latency_wake(const uint64_t *args)
{
	const struct thread *t = curthread();

	if (instance_top.tracer == TRACER_WAKEUP_RT &&
	    sched_probed((unsigned)args[3])->sched.rt_prio == 0)
		return;
	if (args[2] >= t->prio || (waker.tid != 0 && args[2] >= waker.prio))
		return;
	waker.prio = args[2];
	waker.cpu = args[3];
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		waker.from[cpu] = next_entry(cpu);
	bool idle = t->prio == PRIO_IDLE; /* Linux's has number 0 and priority 120 */

	record_switch(idle ? 0 : t->tid, idle ? 120 : t->prio, false, args);
	waker.start_ns = clock_ns();
	__atomic_store_n(&waker.tid, args[1], __ATOMIC_RELAXED);
}

/* The thread gets the CPU. Arguments: name, number, priority, state of who ran; its own three. */
static void
latency_woke(const struct ktr_firing *f)
{
	struct latency l = {.ns = clock_ns() - waker.start_ns,
			    .start_ns = waker.start_ns,
			    .cpu = arch_cpu()};

	say_whose(&l, sched_probed(arch_cpu()));
	__atomic_store_n(&waker.tid, 0, __ATOMIC_RELAXED);
	record_switch(f->args[1], f->args[2], true, &f->args[4]);
	latency_report(f, waker.from, &l);
}

void
wakeup_fire(const struct ktr_firing *f)
{
	uint64_t tid = __atomic_load_n(&waker.tid, __ATOMIC_RELAXED);

	if (f->site->kind == KTR_SITE_ENTRY) {
		if (tid != 0 && arch_cpu() == waker.cpu)
			tracer_record_function(&instance_top, f);
		return;
	}
	if (f->site == switched && (tid == 0 || f->args[5] != tid))
		return;
	hook_lock(&waker.lock);
	if (f->site == woken || f->site == woken_new)
		latency_wake(f->args);
	else if (waker.tid != 0 && f->args[5] == waker.tid)
		latency_woke(f);
	hook_unlock(&waker.lock);
}

/* ---- the tracers ---- */

bool
tracer_is_latency(enum tracer t)
{
	return t >= TRACER_IRQSOFF && t <= TRACER_WAKEUP_RT;
}

bool
latency_is_on(const struct instance *i)
{
	return tracer_is_latency(i->tracer);
}

bool
latency_layout(const struct instance *i)
{
	return latency_is_on(i) || option_on(i, OPTION_LATENCY_FORMAT);
}

bool
latency_wants(const struct ktr_site *site)
{
	if (option_on(&instance_top, OPTION_FUNCTION_TRACE) && site->kind == KTR_SITE_ENTRY)
		return functions_traced(&instance_top.functions, site);
	return instance_top.tracer <= TRACER_PREEMPTIRQSOFF
		   ? site == irq_disable || site == irq_enable || site == handler_entry ||
			 site == handler_exit || site == switched
		   : site == woken || site == woken_new || site == switched;
}

void
latency_start(void)
{
	irq_disable = event_find("preemptirq", "irq_disable");
	irq_enable = event_find("preemptirq", "irq_enable");
	handler_entry = event_find("irq", "irq_handler_entry");
	handler_exit = event_find("irq", "irq_handler_exit");
	woken = event_find("sched", "sched_wakeup");
	woken_new = event_find("sched", "sched_wakeup_new");
	switched = event_find("sched", "sched_switch");
	memset(spans, 0, sizeof(spans));
	waker.tid = 0;
	latency_longest_ns = 0;
	instance_top.latency = (struct latency){.ns = 0};
	buffer_clear(&instance_top.snapshot, BUFFER_ALL);
}

/* ---- how it is printed ---- */

/* The first function that does not belong to the locks, from *n on. */
static const char *
function_of(const uint64_t at[DEPTH], unsigned *n)
{
	static const char *const locks[] = {"irq_push",     "irq_pop",     "spin_lock",
					    "spin_trylock", "spin_unlock", "spin_contended"};

	for (; *n < DEPTH && at[*n] != 0; (*n)++) {
		uintptr_t offset;
		const char *name = ksym_lookup(at[*n], &offset);
		bool of_lock = false;

		for (unsigned i = 0; i < sizeof(locks) / sizeof(locks[0]) && name != NULL; i++)
			of_lock |= strcmp(name, locks[i]) == 0;
		if (name != NULL && !of_lock)
			return name;
	}
	return "0x0";
}

/* The latency that is printed: one of zeroes if the tracer is none of latencies. */
static const struct latency *
latency_shown(const struct instance *i)
{
	static const struct latency none;

	return latency_is_on(i) ? &instance_top.latency : &none;
}

void
latency_print_head(struct sbuf *out, const struct instance *i, uint64_t entries, uint64_t written)
{
	const struct latency *l = latency_shown(i);
	const struct ktr_entry e = {.tid = l->tid};
	char name[KTR_THREAD_NAME];
	uint32_t tid = print_thread(&e, name);
	unsigned n = 0;

	sbuf_printf(out,
		    "# %s latency trace v1.1.5 on Kestrel\n"
		    "# --------------------------------------------------------------------\n"
		    "# latency: %lu us, #%lu/%lu, CPU#%u | (M:preempt VP:0, KP:0, SP:0 HP:0 "
		    "#P:%u)\n"
		    "#    -----------------\n"
		    "#    | task: %s-%u (uid:%u nice:%d policy:%u rt_prio:%u)\n"
		    "#    -----------------\n",
		    tracer_name(i), l->ns / 1000, entries, written, l->cpu, ncpus, name, tid,
		    l->uid, l->sched.nice, l->sched.policy, l->sched.rt_prio);
	if (i->tracer == TRACER_PREEMPTOFF || i->tracer == TRACER_PREEMPTIRQSOFF)
		sbuf_puts(
		    out, "#  only where interrupts are off, no thread is preempted: see irqsoff\n");
	if (l->started_at[0] != 0) {
		sbuf_printf(out, "#  => started at: %s\n", function_of(l->started_at, &n));
		n = 0;
		sbuf_printf(out, "#  => ended at:   %s\n#\n", function_of(l->ended_at, &n));
	}
	sbuf_puts(out, "#\n"
		       "#                    _------=> CPU#            \n"
		       "#                   / _-----=> irqs-off/BH-disabled\n"
		       "#                  | / _----=> need-resched    \n"
		       "#                  || / _---=> hardirq/softirq \n"
		       "#                  ||| / _--=> preempt-depth   \n"
		       "#                  |||| / _-=> migrate-disable \n"
		       "#                  ||||| /     delay           \n"
		       "#  cmd     pid     |||||| time  |   caller     \n"
		       "#     \\   /        ||||||  \\    |    /       \n");
}

void
latency_print_context(struct sbuf *out, const struct instance *i, const struct ktr_entry *e,
		      unsigned cpu, uint64_t next_ns)
{
	char name[KTR_THREAD_NAME];
	uint32_t tid = print_thread(e, name);
	uint64_t ns = clock_ns_of(e->ticks), start_ns = latency_shown(i)->start_ns;

	sbuf_printf(out, "%8.8s-%-7u %3uX.... %4luus%c: ", name, tid, cpu,
		    ns > start_ns ? (ns - start_ns) / 1000 : 0,
		    print_mark(next_ns > ns ? next_ns - ns : 0));
}

bool
latency_print(struct sbuf *out, const struct ktr_entry *e, unsigned cpu)
{
	const struct ktr_site *site = ktr_site_get(e->site);
	char buf[KTR_STRING_MAX];
	const char *name;
	unsigned n = 0;

	if (site == &latency_point) {
		sbuf_puts(out, function_of(e->args, &n));
		n++;
		sbuf_printf(out, " <-%s", function_of(e->args, &n));
		return true;
	}
	if (site != &latency_switch)
		return false;
	name = ktr_string_text(e->args[5], buf);
	sbuf_printf(out, "%7lu:%3lu:R %s [%03u] %7lu:%3lu:R %s", e->args[0], e->args[1],
		    e->args[2] != 0 ? "==>" : "  +", cpu, e->args[3], e->args[4],
		    name != NULL ? name : "<...>");
	return true;
}
