/*
 * kdb_thread.c - threads and processes of the stopped machine: ps, show thread, show proc, show
 * sleepq, show runq. All memory is read by probes, and no list is followed for ever. No locks.
 */
#include "arch/uaccess.h"
#include "kernel/debug/kdb_private.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/runq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"

#define THREADS_MAX 65536

const struct thread *
kdb_thread_next(const struct thread *t, struct thread *copy)
{
	const struct thread *next = thread_next_unlocked((struct thread *)t);

	if (kdb.quit || next == NULL)
		return NULL;
	if (!arch_probe_copy(copy, next, sizeof(*copy))) {
		kdb_printf("the list of threads is broken: %p is not readable\n", next);
		return NULL;
	}
	return next;
}

int
kdb_thread_cpu(const struct thread *t)
{
	for (unsigned i = 0; i < MAX_CPUS; i++)
		if (pcpus[i] != NULL && (pcpus[i]->md.curthread == t || runqs[i].prev == t))
			return (int)i;
	return KDB_NO_CPU;
}

const struct thread *
kdb_thread_find(const char *command, const char *word)
{
	const struct thread *t = NULL, *named = NULL;
	static struct thread copy; /* too large for the stack */
	char name[KDB_NAMELEN];
	unsigned of_name = 0;
	uint64_t n;

	for (unsigned i = 0; i < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; i++)
		if (strcmp(kdb_text(copy.name, name, sizeof(name)), word) == 0) {
			named = t;
			of_name++;
		}
	if (of_name == 1)
		return named;
	if (of_name > 1) {
		kdb_printf("%s: %u threads have the name %s; ps lists their numbers\n", command,
			   of_name, word);
		return NULL;
	}
	if (!kdb_expr(&word, &n)) {
		kdb_printf("%s: expected a thread; ps lists their names and numbers\n", command);
		return NULL;
	}
	for (unsigned i = 0; i < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; i++)
		if (copy.tid == n || (uintptr_t)t == n)
			return t;
	kdb_printf("%s: no thread %lu; ps lists them\n", command, n);
	return NULL;
}

static const char *
state_name(const struct thread *t)
{
	switch (t->state) {
	case THREAD_RUNNABLE:
		return "ready";
	case THREAD_RUNNING:
		return "run";
	case THREAD_SLEEPING:
		return t->lockname != NULL ? "blocked" : "sleep";
	case THREAD_MOVING:
		return "moving";
	case THREAD_DEAD:
		return "dead";
	}
	return "?";
}

/* What the thread sleeps for, or "-" if it does not sleep. */
static const char *
waits_for(const struct thread *t, char *buf, size_t size)
{
	const char *why = t->lockname != NULL ? t->lockname : t->wmesg;

	if (t->state != THREAD_SLEEPING || why == NULL)
		return "-";
	return kdb_text(why, buf, size);
}

static void
ps_line(const struct thread *t)
{
	char name[KDB_NAMELEN], why[KDB_NAMELEN];
	static struct proc p; /* too large for the stack */

	kdb_printf("%6u %4u %3u %-8s %-12s ", t->tid, t->prio, t->cpu, state_name(t),
		   waits_for(t, why, sizeof(why)));
	kdb_text(t->name, name, sizeof(name));
	if (t->proc != NULL && arch_probe_copy(&p, t->proc, sizeof(p)))
		kdb_printf("%6u %6u %5u %s\n", p.pid, p.pgid, p.uid, name);
	else
		kdb_printf("%6s %6s %5s [%s]\n", "-", "-", "-", name);
}

void
kdb_command_ps(char *mod, char *args)
{
	const struct thread *t = NULL;
	static struct thread copy; /* too large for the stack */

	kdb_printf("%6s %4s %3s %-8s %-12s %6s %6s %5s %s\n", "TID", "PRIO", "CPU", "STATE",
		   "WAITS FOR", "PID", "PGRP", "UID", "NAME");
	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &copy)) != NULL; n++)
		ps_line(&copy);
}

void
kdb_print_thread(const struct thread *t)
{
	char name[KDB_NAMELEN];
	static struct thread copy; /* too large for the stack */

	if (t == NULL)
		kdb_printf("none");
	else if (!arch_probe_copy(&copy, t, sizeof(copy)))
		kdb_printf("%p", t);
	else
		kdb_printf("%s tid %u", kdb_text(copy.name, name, sizeof(name)), copy.tid);
}

static void
print_held(const struct thread *t)
{
	char name[KDB_NAMELEN];
	const struct mutex *at = t->held;
	struct mutex m;

	for (unsigned i = 0; i < t->mutexes && arch_probe_copy(&m, at, sizeof(m)); i++) {
		kdb_printf("  holds mutex %s at %p\n", kdb_text(m.name, name, sizeof(name)), at);
		at = m.next_held;
	}
}

void
kdb_show_thread(char *args)
{
	char *word = kdb_word(&args), name[KDB_NAMELEN], why[KDB_NAMELEN];
	const struct thread *t;
	static struct thread c; /* too large for the stack */
	int cpu;

	t = word != NULL ? kdb_thread_find("show thread", word) : curthread();
	if (t == NULL || !arch_probe_copy(&c, t, sizeof(c)))
		return;
	cpu = kdb_thread_cpu(t);
	kdb_printf("thread %u at %p: %s\n", c.tid, t, kdb_text(c.name, name, sizeof(name)));
	kdb_printf("  state %s, priority %u, cpu %u%s%s\n", state_name(&c), c.prio, c.cpu,
		   (c.cpus & (c.cpus - 1)) == 0 ? " (pinned)" : "",
		   cpu != KDB_NO_CPU ? ", runs there" : "");
	if (c.chan != NULL) {
		kdb_printf("  waits for %s, channel ", waits_for(&c, why, sizeof(why)));
		kdb_print_symbol((uintptr_t)c.chan);
		kdb_printf("\n");
	}
	print_held(&c);
	kdb_printf("  kernel stack %p to %p, process %p\n", c.kstack,
		   (char *)c.kstack + KSTACK_SIZE, c.proc);
	kdb_printf("  ran %lu us, switched to %lu times%s\n", c.runtime_ns / 1000, c.switches,
		   c.ktr_suppress ? ", its events are suppressed" : "");
	if (c.fn != NULL) {
		kdb_printf("  began in ");
		kdb_print_symbol((uintptr_t)c.fn);
		kdb_printf(", argument %p\n", c.arg);
	}
}

const struct proc *
kdb_proc_find(const char *command, char *args, struct proc *copy)
{
	char *word = kdb_word(&args);
	const struct thread *t = word != NULL ? kdb_thread_find(command, word) : curthread();
	static struct thread c; /* too large for the stack */

	if (t == NULL || !arch_probe_copy(&c, t, sizeof(c)))
		return NULL;
	if (c.proc != NULL && arch_probe_copy(copy, c.proc, sizeof(*copy)))
		return c.proc;
	kdb_printf("%s: thread %u is a kernel thread: it has no process\n", command, c.tid);
	return NULL;
}

static void
show_threads(const struct proc *p)
{
	static struct thread t; /* too large for the stack */
	static struct lwp l;
	const struct thread *at = NULL;
	char name[KDB_NAMELEN], why[KDB_NAMELEN];

	for (unsigned n = 0; n < THREADS_MAX && (at = kdb_thread_next(at, &t)) != NULL; n++) {
		if (t.proc != p || !arch_probe_copy(&l, t.lwp, sizeof(l)))
			continue;
		kdb_printf("  thread %u: %s, %s %s, signals pending %#lx, blocked %#lx\n", t.tid,
			   kdb_text(t.name, name, sizeof(name)), state_name(&t),
			   waits_for(&t, why, sizeof(why)), l.pending.set, l.sig_blocked);
	}
}

void
kdb_show_proc(char *args)
{
	static const char *const states[] = {"alive", "stopped", "zombie"};
	char name[KDB_NAMELEN];
	static struct proc p, parent; /* too large for the stack */
	const struct proc *at = kdb_proc_find("show proc", args, &p);

	if (at == NULL)
		return;
	kdb_printf("process %u: %s, %s\n", p.pid, kdb_text(p.name, name, sizeof(name)),
		   p.state <= PROC_ZOMBIE ? states[p.state] : "?");
	kdb_printf("  parent %u, group %u, user %u\n",
		   p.parent != NULL && arch_probe_copy(&parent, p.parent, sizeof(parent))
		       ? parent.pid
		       : 0,
		   p.pgid, p.uid);
	kdb_printf("  signals pending %#lx, ignored %#lx, caught %#lx\n", p.pending.set,
		   p.sig_ignored, p.sig_caught);
	kdb_printf("  address space %p, files %p\n", p.vm, p.files);
	show_threads(at);
}

void
kdb_show_sleepq(char *args)
{
	const struct thread *t = NULL;
	char why[KDB_NAMELEN];
	static struct thread c; /* too large for the stack */

	kdb_printf("%-18s %-12s %s\n", "CHANNEL", "WAITS FOR", "THREAD");
	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &c)) != NULL; n++) {
		if (c.chan == NULL)
			continue;
		kdb_printf("0x%016lx %-12s ", (uintptr_t)c.chan, waits_for(&c, why, sizeof(why)));
		kdb_print_thread(t);
		kdb_printf(" at ");
		kdb_print_symbol((uintptr_t)c.chan);
		kdb_printf("\n");
	}
}

/* Shows threads that wait for a CPU, without the run queue, which may be broken. */
static void
show_runq(unsigned cpu)
{
	const struct thread *t = NULL;
	static struct thread c; /* too large for the stack */

	kdb_printf("cpu %u: runs ", cpu);
	kdb_print_thread(pcpus[cpu]->md.curthread);
	kdb_printf("\n");
	for (unsigned n = 0; n < THREADS_MAX && (t = kdb_thread_next(t, &c)) != NULL; n++) {
		if (c.state != THREAD_RUNNABLE || c.cpu != cpu || t == pcpus[cpu]->idle)
			continue;
		kdb_printf("  priority %3u: ", c.prio);
		kdb_print_thread(t);
		kdb_printf("\n");
	}
}

void
kdb_show_runq(char *args)
{
	kdb_each_cpu("show runq", args, show_runq);
}
