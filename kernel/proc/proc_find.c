/*
 * proc_find.c - the list of all processes, and how one, a thread, or a group is found by its number
 * without a look at all others. Locking: proc_lock.
 */
#include "arch/pcpu.h"
#include "kernel/lib/list.h"
#include "kernel/lib/panic.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/sync/stop.h"

struct list procs = LIST_INIT(procs);

#define PID_BUCKETS 1024

static struct proc *by_pid[PID_BUCKETS];  /* proc_lock; by pid modulo PID_BUCKETS */
static struct proc *by_pgid[PID_BUCKETS]; /* proc_lock; for groups: a member of each */

struct proc *
proc_next(const struct proc *p)
{
	const struct list *l = p != NULL ? &p->all : &procs;

	do
		l = l->next;
	while (l != &procs && list_entry(l, struct proc, all)->state == PROC_CURSOR);
	return l != &procs ? list_entry(l, struct proc, all) : NULL;
}

/* All that others say of a process that they have found is true under the lock only. */
static void
check_proc_lock(uint32_t number)
{
	if (__atomic_load_n(&proc_lock.owner, __ATOMIC_RELAXED) != (int32_t)arch_cpu() &&
	    !stop_inside())
		panic("process or group %u is looked for without proc_lock", number);
}

struct proc *
proc_find(uint32_t pid)
{
	struct proc *p = by_pid[pid % PID_BUCKETS];

	check_proc_lock(pid);
	while (p != NULL && p->pid != pid)
		p = p->same_hash;
	return p;
}

/* A thread's lwp. Until it is in the tree, it may be freed when threads_lock is released. */
static void
lwp_take(const struct thread *t, void *arg)
{
	struct lwp *l = __atomic_load_n(&t->lwp, __ATOMIC_ACQUIRE);

	if (l != NULL && !list_empty(&l->sibling) && proc_find(t->proc->pid) == t->proc)
		*(struct lwp **)arg = l;
}

struct lwp *
lwp_find(uint32_t tid)
{
	struct lwp *l = NULL;

	thread_with(tid, lwp_take, &l);
	return l;
}

struct lwp *
lwp_of(const struct proc *p, uint32_t tid)
{
	struct lwp *l = lwp_find(tid);

	return l != NULL && l->thread->proc == p ? l : NULL;
}

struct proc *
proc_find_any(uint32_t tid)
{
	struct proc *p = proc_find(tid);
	const struct lwp *l = p == NULL ? lwp_find(tid) : NULL;

	return l != NULL ? l->thread->proc : p;
}

struct proc *
proc_find_group(uint32_t pgid)
{
	struct proc *p = by_pgid[pgid % PID_BUCKETS];

	check_proc_lock(pgid);
	while (p != NULL && p->pgid != pgid)
		p = p->next_group;
	return p;
}

static void
proc_join_group(struct proc *p, uint32_t pgid)
{
	struct proc *member = proc_find_group(pgid), **bucket = &by_pgid[pgid % PID_BUCKETS];

	p->pgid = pgid;
	if (member != NULL) {
		list_append(&member->group, &p->group);
		return;
	}
	p->next_group = *bucket;
	*bucket = p;
}

/* If p is its group's process in by_pgid, another one takes that place. */
static void
proc_leave_group(struct proc *p)
{
	struct proc **at = &by_pgid[p->pgid % PID_BUCKETS];
	struct proc *other = list_entry(p->group.next, struct proc, group);

	while (*at != NULL && *at != p)
		at = &(*at)->next_group;
	if (*at == p) {
		*at = other != p ? other : p->next_group;
		if (other != p)
			other->next_group = p->next_group;
	}
	list_remove(&p->group);
}

void
proc_join(struct proc *p)
{
	struct proc **bucket = &by_pid[p->pid % PID_BUCKETS];

	p->same_hash = *bucket;
	*bucket = p;
	list_append(&procs, &p->all);
	proc_join_group(p, p->pgid);
}

void
proc_leave(struct proc *p)
{
	struct proc **at = &by_pid[p->pid % PID_BUCKETS];

	while (*at != p)
		at = &(*at)->same_hash;
	*at = p->same_hash;
	list_remove(&p->all);
	proc_leave_group(p);
}

void
proc_set_group(struct proc *p, uint32_t pgid)
{
	if (pgid == p->pgid)
		return;
	proc_leave_group(p);
	proc_join_group(p, pgid);
}
