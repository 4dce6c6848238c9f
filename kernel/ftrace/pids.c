/*
 * pids.c - set_ftrace_pid, set_event_pid, and their opposites: of which threads functions, or
 * events, are recorded. Locking: ftrace_lock; an instance's lock, since hooks change its lists,
 * too. Hooks read a list while it changes.
 */
#include "kernel/abi/errno.h"
#include "kernel/ftrace/event/event.h"
#include "kernel/ftrace/instance.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

#define IDLE    ((uint32_t)INT32_MAX) /* a list's 0: the CPUs' idle threads, as in Linux */
#define LEAVING 0x80000000u /* with a number: the thread ends; files do not show it any more */

static unsigned
pids_list_count(const struct pids *p)
{
	return __atomic_load_n(&p->n, __ATOMIC_ACQUIRE);
}

static bool
pids_list_has(const struct pids *p, uint32_t pid)
{
	for (unsigned i = pids_list_count(p); i-- > 0;)
		if ((__atomic_load_n(&p->pid[i], __ATOMIC_RELAXED) & ~LEAVING) == pid)
			return true;
	return false;
}

bool
pids_have(const struct instance *i, enum pid_list list)
{
	uint32_t pid = curthread()->prio == PRIO_IDLE ? IDLE : curthread()->tid;

	return (pids_list_count(&i->pids[list]) == 0 || pids_list_has(&i->pids[list], pid)) &&
	       !pids_list_has(&i->pids[list + 1], pid);
}

/* Events of a second thread: who gets the CPU, who is woken. Looked up when a list is written. */
static const struct ktr_site *switches, *wakings[3];

static bool
is_waking(const struct ktr_site *site)
{
	return site == wakings[0] || site == wakings[1] || site == wakings[2];
}

bool
pids_have_event(const struct instance *i, const struct ktr_firing *f)
{
	const struct pids *in = &i->pids[PIDS_EVENT], *out = &i->pids[PIDS_EVENT_NOT];
	uint32_t pid = f->site == switches || is_waking(f->site) ? (uint32_t)f->args[1] : 0;
	uint32_t next;

	if (f->site != switches)
		return pids_have(i, PIDS_EVENT) ||
		       (pid != 0 && (pids_list_count(in) == 0 || pids_list_has(in, pid)) &&
			!pids_list_has(out, pid));
	pid = pid != 0 ? pid : IDLE;
	next = f->args[5] != 0 ? (uint32_t)f->args[5] : IDLE;
	return (pids_list_count(in) == 0 || pids_list_has(in, pid) || pids_list_has(in, next)) &&
	       !(pids_list_has(out, pid) && pids_list_has(out, next));
}

/* False: there is no room. [lock] */
static bool
pids_add(struct pids *p, uint32_t pid)
{
	unsigned i = 0, n = pids_list_count(p);

	if (pids_list_has(p, pid))
		return true;
	while (i < PIDS_MAX && p->pid[i] != 0)
		i++;
	if (i == PIDS_MAX) /* a thread that has ended, and that the reaper has not told of yet */
		for (i = 0; i < PIDS_MAX && (p->pid[i] & LEAVING) == 0; i++)
			;
	if (i == PIDS_MAX)
		return false;
	__atomic_store_n(&p->pid[i], pid, __ATOMIC_RELAXED);
	__atomic_store_n(&p->n, n > i ? n : i + 1, __ATOMIC_RELEASE);
	return true;
}

/* A list whose threads have all ended keeps one place: it is not empty. [lock] */
static void
pids_replace(struct pids *p, uint32_t pid, uint32_t by)
{
	unsigned n = pids_list_count(p);

	for (unsigned i = n; i-- > 0;)
		if (p->pid[i] == pid)
			__atomic_store_n(&p->pid[i], by, __ATOMIC_RELAXED);
	while (n > 1 && p->pid[n - 1] == 0)
		n--;
	__atomic_store_n(&p->n, n, __ATOMIC_RELEASE);
}

/* ---- the options event-fork and function-fork ---- */

static const struct ktr_site *forks, *exits, *ends;

/* SIGCHLD and the last switch, after sched_process_exit, belong to the thread, too. [lock] */
static void
pids_follow_firing(struct pids *p, const struct ktr_firing *f)
{
	uint32_t tid = curthread()->tid;

	if (f->site == exits)
		pids_replace(p, tid, tid | LEAVING);
	else if (f->site == ends)
		pids_replace(p, (uint32_t)f->args[1] | LEAVING, 0);
	else if (pids_list_has(p, tid) && !pids_add(p, (uint32_t)f->args[3])) /* of the child */
		p->missed++;
}

static void
fork_fire(const struct ktr_firing *f)
{
	struct instance *i = instance_of(f);

	hook_lock(&i->lock);
	for (unsigned list = 0; list < PID_LISTS; list++)
		if (option_on(i, list < PIDS_EVENT ? OPTION_FUNCTION_FORK : OPTION_EVENT_FORK))
			pids_follow_firing(&i->pids[list], f);
	hook_unlock(&i->lock);
}

static bool
pids_site_wanted(const struct ktr_site *site, void *arg)
{
	return site == forks || site == exits || site == ends;
}

int
pids_follow(struct instance *i)
{
	bool on = option_on(i, OPTION_EVENT_FORK) || option_on(i, OPTION_FUNCTION_FORK);
	int n;

	if (!on)
		instance_disown(&i->fork_owner);
	if (!on || i->fork_owner != 0)
		return 0;
	forks = event_find("sched", "sched_process_fork");
	exits = event_find("sched", "sched_process_exit");
	ends = event_find("sched", "sched_process_free");
	n = instance_owner(i, "ftrace fork", fork_fire);
	if (n < 0)
		return -EBUSY;
	i->fork_owner = (unsigned)n;
	ktr_select_all((unsigned)n, pids_site_wanted, NULL);
	return 0;
}

/* ---- files ---- */

static int
pids_changed(struct instance *i, uintptr_t list)
{
	if (list >= PIDS_EVENT)
		return events_pids_changed(i);
	tracer_forget_calls(i); /* a thread's returns may not have been seen */
	return 0;
}

void
pids_show(struct instance *i, uintptr_t arg, struct sbuf *out)
{
	const struct pids *p = &i->pids[arg];

	if (p->n == 0 && arg < PIDS_EVENT)
		sbuf_puts(out, "no pid\n");
	if (p->missed > 0)
		sbuf_printf(out, "# no room for %u more\n", p->missed);
	for (unsigned n = 0; n < p->n; n++)
		if (p->pid[n] != 0 && (p->pid[n] & LEAVING) == 0)
			sbuf_printf(out, "%u\n", p->pid[n] != IDLE ? p->pid[n] : 0);
}

/* What is written to a list. */
struct writing {
	struct instance *i;
	struct pids *p;
	uint32_t *pids; /* as many as a list has room for */
	unsigned n, added;
	bool room;
};

/* One number: for a thousand, interrupts would be off, and forks wait, for a million steps. */
static void
pids_add_here(void *arg)
{
	struct writing *w = arg;

	hook_lock(&w->i->lock);
	w->room = pids_add(w->p, w->pids[w->added++]);
	hook_unlock(&w->i->lock);
}

static void
pids_empty_here(void *arg)
{
	struct writing *w = arg;

	hook_lock(&w->i->lock);
	__atomic_store_n(&w->p->n, 0, __ATOMIC_RELEASE);
	w->p->missed = 0;
	for (unsigned n = 0; n < PIDS_MAX; n++)
		__atomic_store_n(&w->p->pid[n], 0, __ATOMIC_RELAXED);
	hook_unlock(&w->i->lock);
}

/* The numbers of a text. 0 or -errno. */
static int
read_pids(struct writing *w, char *text)
{
	char *word;

	while ((word = tracefs_word(&text)) != NULL) {
		uint64_t pid;

		if (tracefs_number(word, &pid) != 0 || pid >= INT32_MAX)
			return -EINVAL;
		if (w->n == PIDS_MAX)
			return -ENOSPC;
		w->pids[w->n++] = pid != 0 ? (uint32_t)pid : IDLE;
	}
	return 0;
}

int
pids_store(struct instance *i, uintptr_t arg, char *text)
{
	struct writing w = {.i = i, .p = &i->pids[arg], .room = true};
	bool was_empty = pids_list_count(w.p) == 0;
	int error;

	w.pids = kmalloc(sizeof(*w.pids) * PIDS_MAX);
	error = w.pids != NULL ? read_pids(&w, text) : -ENOMEM;
	if (error != 0) {
		kfree(w.pids);
		return error;
	}
	switches = event_find("sched", "sched_switch");
	wakings[0] = event_find("sched", "sched_waking");
	wakings[1] = event_find("sched", "sched_wakeup");
	wakings[2] = event_find("sched", "sched_wakeup_new");
	while (w.added < w.n && w.room)
		ktr_hook_without(pids_add_here, &w);
	kfree(w.pids);
	error = pids_changed(i, arg);
	if (error != 0 && was_empty) /* these numbers stay in a list that has others, too */
		ktr_hook_without(pids_empty_here, &w);
	return w.room ? error : -ENOSPC;
}

int
pids_clear(struct instance *i, uintptr_t arg)
{
	struct writing w = {.i = i, .p = &i->pids[arg]};

	ktr_hook_without(pids_empty_here, &w);
	return pids_changed(i, arg);
}
