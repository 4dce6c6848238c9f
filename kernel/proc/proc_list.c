/*
 * proc_list.c - the sysctl kern.proc: a line for each process and kernel thread. Locking:
 * proc_lock.
 */
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

static const char *
state_name(const struct proc *p)
{
	static const char *const names[] = {"runnable", "run", "sleep", "dead"};

	if (p->state == PROC_ZOMBIE)
		return "zombie";
	if (p->state == PROC_STOPPED)
		return "stop";
	return names[p->thread->state];
}

static int
print_kernel_thread(struct thread *t, void *arg)
{
	if (t->proc == NULL && t->state != THREAD_DEAD)
		sbuf_printf(arg, "%u 0 0 0 %s %u %u %lu %s %s\n", t->tid,
			    t->state == THREAD_SLEEPING  ? "sleep"
			    : t->state == THREAD_RUNNING ? "run"
							 : "runnable",
			    t->prio, t->cpu, t->runtime_ns / 1000000,
			    t->state == THREAD_SLEEPING && t->wmesg != NULL ? t->wmesg : "-",
			    t->name);
	return 0;
}

/* A process, as a line of kern.proc. */
struct proc_row {
	uint32_t pid, ppid, pgid, uid;
	unsigned prio, cpu;
	uint64_t runtime_ms;
	const char *state, *wmesg; /* read-only data */
	char name[64];
};

/* Copies what kern.proc shows of p. proc_lock held. */
static void
fill_row(struct proc_row *r, const struct proc *p)
{
	const struct thread *t = p->thread;

	*r = (struct proc_row){.pid = p->pid,
			       .ppid = p->parent->pid,
			       .pgid = p->pgid,
			       .uid = p->uid,
			       .state = state_name(p),
			       .wmesg = "-"};
	if (t != NULL) {
		r->prio = t->prio;
		r->cpu = t->cpu;
		r->runtime_ms = t->runtime_ns / 1000000;
	}
	if (t != NULL && t->state == THREAD_SLEEPING && t->wmesg != NULL)
		r->wmesg = t->wmesg;
	strlcpy(r->name, p->name, sizeof(r->name));
}

/* Copies the next rows after the cursor, and moves the cursor. Returns how many. */
static unsigned
next_rows(struct proc *cursor, struct proc_row *rows, unsigned max)
{
	struct proc *last = NULL;
	unsigned n = 0;

	spin_lock(&proc_lock);
	for (struct proc *p = proc_next(cursor); p != NULL && n < max; p = proc_next(p)) {
		fill_row(&rows[n++], p);
		last = p;
	}
	list_remove(&cursor->all);
	if (last != NULL)
		list_insert_after(&last->all, &cursor->all);
	spin_unlock(&proc_lock);
	return n;
}

/*
 * Copies a few rows at a time and formats them without the lock: a user can make the list long, and
 * interrupts are off under the lock.
 */
static void
get_procs(const struct sysctl *s, struct sbuf *out)
{
	struct proc cursor = {.state = PROC_CURSOR};
	struct proc_row rows[16];
	unsigned n;

	thread_each(print_kernel_thread, out);
	spin_lock(&proc_lock);
	list_insert_after(&procs, &cursor.all);
	spin_unlock(&proc_lock);
	while ((n = next_rows(&cursor, rows, 16)) > 0)
		for (const struct proc_row *r = rows; r < rows + n; r++)
			sbuf_printf(out, "%u %u %u %u %s %u %u %lu %s %s\n", r->pid, r->ppid,
				    r->pgid, r->uid, r->state, r->prio, r->cpu, r->runtime_ms,
				    r->wmesg, r->name);
}
SYSCTL_TEXT(kern_proc, "kern.proc", 0, get_procs, NULL,
	    "processes and kernel threads: PID PPID PGID UID STATE PRIO CPU TIME_MS WMESG NAME");
