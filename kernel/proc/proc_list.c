/*
 * proc_list.c - the sysctl kern.proc: a line for each thread, and for each zombie. Locking:
 * proc_lock.
 */
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

static int
print_kernel_thread(struct thread *t, void *arg)
{
	if (!t->program && t->state != THREAD_DEAD)
		sbuf_printf(arg, "%u %u 0 0 0 %s %u %u %lu %s %s\n", t->tid, t->tid,
			    t->state == THREAD_SLEEPING  ? "sleep"
			    : t->state == THREAD_RUNNING ? "run"
							 : "runnable",
			    t->prio, t->cpu, t->runtime_ns / 1000000,
			    t->state == THREAD_SLEEPING && t->wmesg != NULL ? t->wmesg : "-",
			    t->name);
	return 0;
}

static const char zombie[] = "zombie";

/* A thread, or a zombie, as a line of kern.proc. */
struct proc_row {
	uint32_t pid, tid, ppid, pgid, uid;
	unsigned prio, cpu;
	uint64_t runtime_ms;
	const char *state, *wmesg; /* read-only data */
	char name[KTR_THREAD_NAME];
};

/* Copies what kern.proc shows of a thread. l: NULL, of a zombie. proc_lock held. */
static void
fill_row(struct proc_row *r, const struct proc *p, const struct lwp *l)
{
	static const char *const states[] = {"runnable", "run", "sleep", "dead", "runnable"};
	const struct thread *t = l != NULL ? l->thread : NULL;

	*r = (struct proc_row){.pid = p->pid,
			       .tid = p->pid,
			       .ppid = p->parent->pid,
			       .pgid = p->pgid,
			       .uid = p->uid,
			       .state = zombie,
			       .wmesg = "-"};
	strlcpy(r->name, t != NULL ? t->name : p->name, sizeof(r->name));
	if (t == NULL)
		return;
	r->tid = t->tid;
	r->state = p->state == PROC_STOPPED ? "stop" : states[t->state];
	r->prio = t->prio;
	r->cpu = t->cpu;
	r->runtime_ms = t->runtime_ns / 1000000;
	if (t->state == THREAD_SLEEPING && t->wmesg != NULL)
		r->wmesg = t->wmesg;
}

/*
 * Moves the cursor to the next thread, *l, of *p; of a zombie, *l is NULL. False: there are no
 * more. The cursor is in the list of processes; and in the list of threads of cursor->parent, which
 * ends with that process.
 */
static bool
next_thread(struct proc *cursor, struct proc **p, struct lwp **l)
{
	struct list *mark = &cursor->first.sibling;

	*p = cursor->parent;
	*l = list_empty(mark) ? NULL : lwp_next(*p, &cursor->first);
	list_remove(mark);
	if (*l == NULL) {
		*p = proc_next(cursor);
		list_remove(&cursor->all);
		if (*p == NULL)
			return false;
		list_insert_after(&(*p)->all, &cursor->all);
		*l = lwp_next(*p, NULL);
	}
	cursor->parent = *p;
	if (*l != NULL)
		list_insert_after(&(*l)->sibling, mark);
	return true;
}

static void
print_row(struct sbuf *out, const struct proc_row *r)
{
	sbuf_printf(out, "%u %u %u %u %u %s %u %u %lu %s %s\n", r->pid, r->tid, r->ppid, r->pgid,
		    r->uid, r->state, r->prio, r->cpu, r->runtime_ms, r->wmesg, r->name);
}

/*
 * Copies a few rows at a time and prints them without the lock: a user can make the list long, and
 * interrupts are off under the lock.
 */
static void
print_rows(struct sbuf *out, void (*print)(struct sbuf *out, const struct proc_row *r))
{
	struct proc cursor = {.state = PROC_CURSOR}, *p;
	struct proc_row rows[16];
	struct lwp *l;
	unsigned n;

	list_init(&cursor.first.sibling);
	spin_lock(&proc_lock);
	list_insert_after(&procs, &cursor.all);
	do {
		for (n = 0; n < 16 && next_thread(&cursor, &p, &l); n++)
			fill_row(&rows[n], p, l);
		spin_unlock(&proc_lock);
		for (const struct proc_row *r = rows; r < rows + n; r++)
			print(out, r);
		spin_lock(&proc_lock);
	} while (n == 16);
	spin_unlock(&proc_lock);
}

static void
print_ids(struct sbuf *out, const struct proc_row *r)
{
	if (r->state != zombie)
		sbuf_printf(out, "%u %u\n", r->tid, r->pid);
}

void
proc_print_threads(struct sbuf *out)
{
	print_rows(out, print_ids);
}

static void
get_procs(const struct sysctl *s, struct sbuf *out)
{
	thread_each(print_kernel_thread, out);
	print_rows(out, print_row);
}

SYSCTL_TEXT(kern_proc, "kern.proc", 0, get_procs, NULL,
	    "all threads: PID TID PPID PGID UID STATE PRIO CPU TIME_MS WMESG NAME");
