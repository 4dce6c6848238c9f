/*
 * exit.c - how threads and processes end, and wait4(). Locking: proc_lock. Only the parent frees a
 * zombie; others look at it under proc_lock. The last thread clears its thread.proc under that
 * lock, and does not touch its process afterwards.
 */
#include "kernel/proc/proc.h"

#include <abi_md.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/ptrace.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/wait.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/cpu_clock.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_exit, "sched_process_exit",
		      ": comm=%s pid=%u prio=%d", 3, "char *", "pid_t", "int");
SDT_PROBE_DECLARE(proc, , , lwp_exit);
SDT_PROBE_DEFINE_TEXT(proc, , , exit, "exit", ": reason %d status %#x", 2, "int", "int");

HOOK_LIST(proc_exit);

/*
 * Could a parent of p continue its group? It could if it is not process 1, which continues nobody,
 * and in another group of the session. proc_lock held.
 */
static bool
proc_may_continue(const struct proc *parent, const struct proc *p)
{
	return parent->pid != 1 && parent->pgid != p->pgid && parent->sid == p->sid;
}

bool
proc_orphaned(struct proc *p, const struct proc *except)
{
	for_each_member(m, p) if (m->state != PROC_ZOMBIE && m != except &&
				  proc_may_continue(m->parent, m)) return false;
	return true;
}

/*
 * Somebody who could continue p's group could do so no longer: p's parent, or that of the process
 * `ends`. If it was the last, and something is stopped in the group, that is told. proc_lock held.
 */
static void
tell_orphans(struct proc *p, const struct proc *ends)
{
	bool stopped = false;

	for_each_member(m, p)
	{
		m->loses_parent = false;
		stopped |= m->state == PROC_STOPPED;
	}
	if (!stopped || !proc_orphaned(p, ends))
		return;
	for_each_member(m, p)
	{
		proc_signal_locked(m, SIGHUP);
		proc_signal_locked(m, SIGCONT);
	}
}

/* Gives a process to another one, which waits for its end. proc_lock held. */
static void
give_child_away(struct proc *c, struct proc *to)
{
	list_remove(&c->sibling);
	c->parent = to;
	c->exit_signal = SIGCHLD;
	list_append(&to->children, &c->sibling);
	if (c->state == PROC_ZOMBIE)
		wakeup(to);
}

/* Gives away the children of a process that dies. proc_lock held. */
static void
give_children_away(struct proc *p)
{
	struct proc *to = p->parent;
	bool any = false;

	while (to != init_proc && (!to->subreaper || to->exiting))
		to = to->parent;
	list_for_each_entry_safe (struct proc, c, &p->children, sibling) {
		give_child_away(c, to);
		/* If a tracer has to see the end first, the tracer tells when it has. If the new
		 * parent is the tracer, it was told. */
		if (c->state == PROC_ZOMBIE && !ptrace_forget_own(c) && c->first.ptrace == NULL)
			proc_tell_end(c, false);
		if (c->death_signal != 0)
			proc_signal_send(c, NULL,
					 &(struct siginfo){c->death_signal, .si_code = SI_USER,
							   .si_pid = p->pid, .si_uid = p->ruid},
					 NULL);
		c->loses_parent = proc_may_continue(p, c);
		any |= c->loses_parent;
	}
	if (!any)
		return;
	for_each_proc (c) /* each group once: interrupts are off */
		if (c->loses_parent)
			tell_orphans(c, NULL);
}

/* Nothing dumps core. */
static int
exit_reason(int wait_status)
{
	return (wait_status & 0x7f) == 0 ? CLD_EXITED : CLD_KILLED;
}

/* The exit status, or the signal. */
static int
exit_value(int wait_status)
{
	return (wait_status & 0x7f) == 0 ? wait_status >> 8 & 0xff : wait_status & 0x7f;
}

/* Wakes up to 64 threads that are dying, and have not been woken. False: there are no more. */
static bool
wake_dying(struct proc *p)
{
	unsigned n = 64;

	for_each_lwp(l, p)
	{
		if (!l->dying || l->woken)
			continue;
		if (n-- == 0)
			return true;
		l->woken = true;
		sleepq_interrupt(l->thread);
	}
	return false;
}

/* Makes the threads of p, but for `except`, end. proc_lock held, but not all the time. */
static void
end_threads(struct proc *p, const struct lwp *except)
{
	for_each_lwp(l, p) l->dying |= l != except;
	proc_signals_update(p);
	ptrace_wake(p);
	wakeup(&p->state);
	wakeup(&p->nthreads);
	while (wake_dying(p)) {
		spin_unlock(&proc_lock);
		spin_lock(&proc_lock);
	}
}

int
proc_single(void)
{
	struct proc *p = curproc();
	struct lwp *self = curlwp();
	bool ends;

	spin_lock(&proc_lock);
	ends = p->exiting || self->dying;
	if (!ends && p->nthreads > 1) {
		end_threads(p, self);
		while (p->nthreads > 1 && !p->exiting)
			sleep_on(&p->nthreads, &proc_lock, "single", 0, DEADLINE_NEVER);
		ends = p->exiting;
	}
	spin_unlock(&proc_lock);
	return ends ? -EINTR : 0;
}

void
proc_become_first(void)
{
	struct proc *p = curproc();
	struct lwp *l = curlwp(), *first = &p->first;

	if (l == first)
		return;
	thread_await_gone(p->pid); /* the log knows the first thread until it has gone */
	spin_lock(&proc_lock);
	list_remove(&l->sibling);
	ptrace_become_first(first, l);
	l->ptrace = first->ptrace;
	*first = *l;
	sigqueue_moved(&first->pending, &l->fault, &first->fault);
	first->ui = NULL;
	list_init(&first->sibling);
	list_append(&p->lwps, &first->sibling);
	curthread()->lwp = first;
	spin_unlock(&proc_lock);
	lwp_free(l);
	thread_change_tid(p->pid);
}

void
proc_tell_end(struct proc *p, bool awaited)
{
	struct proc *parent = p->parent;
	const struct kernel_sigaction *act = &parent->sig_action[SIGCHLD - 1];
	/* If the parent has executed another program since, it has not chosen this signal. */
	int sig = p->parent_execs == parent->execs ? p->exit_signal : SIGCHLD;
	bool plain = !awaited && sig == SIGCHLD, ignored = plain && act->sa_handler == SIG_IGN;

	if (sig != 0 && !ignored) /* not even if it is blocked, and waits for a handler */
		proc_signal_child(p, sig, exit_reason(p->wait_status), exit_value(p->wait_status));
	wakeup(parent);
	if (ignored || (plain && (act->sa_flags & SA_NOCLDWAIT))) /* it wants no zombies */
		give_child_away(p, init_proc);
}

/* The current thread ends: its sums and p's usage end at the same moment. proc_lock held. */
static void
thread_leave_proc(struct proc *p)
{
	struct thread *t = curthread();

	sched_count_in(NULL);
	usage_add(&p->threads_usage, thread_usage_charged(t));
	t->proc = NULL;
	t->pid = 0;
	thread_predcache_forget(t);
	t->lwp = NULL;
	t->user_work = 0;
}

/* The current thread is the last one of p, which ends with it. */
static _Noreturn void
exit_process(struct proc *p)
{
	struct filetable *files = p->files;
	struct vnode *cwd = p->cwd, *exe = p->exe, *root = p->root;
	struct vmspace *vm = p->vm;
	struct lwp *l = curlwp();
	int wait_status = p->exit_status;
	bool awaited;

	if (p == init_proc)
		panic("process 1 ended with wait status %#x", wait_status);
	itimer_set(&p->alarm, 0, 0);
	proc_timers_end(p);
	spin_lock(&proc_lock); /* others look at these */
	p->files = NULL;
	p->cwd = p->exe = p->root = NULL;
	spin_unlock(&proc_lock);
	filetable_destroy(files);
	vnode_unref(cwd);
	vnode_unref(root);
	proc_exe_drop(exe);
	spin_lock(&proc_lock); /* a switch back to this thread must not load the old space */
	proc_set_space(p, NULL);
	spin_unlock(&proc_lock);
	vm_destroy(vm);
	proc_vfork_done(p);
	SDT_CTR3(proc, , , exit, SDT_ARGS2(exit_reason(wait_status), wait_status), KTR_PROC,
		 "exit: pid %u status %#x name %s", p->pid, wait_status, ktr_intern(p->name));
	SDT_PROBE3(sched, , , sched_process_exit, ktr_intern(curthread()->name), curthread()->tid,
		   curthread()->prio);
	HOOK_RUN(proc_exit);
	KTR_STATE1(KTR_SCHED, "thread", curthread()->ident, "proc exit", "prio:%d",
		   curthread()->prio);

	spin_lock(&proc_lock);
	if (proc_may_continue(p->parent, p))
		tell_orphans(p, p);
	give_children_away(p);
	ptrace_tracer_ends(p);
	ptrace_thread_ends(l, wait_status);
	p->wait_status = wait_status;
	proc_signals_drop(p, ~0ul);
	list_for_each_safe (link, &p->lwps)
		list_remove(link); /* readers' positions, too */
	p->nthreads = 0;
	p->thread = NULL;
	p->state = PROC_ZOMBIE;
	if (__atomic_load_n(&proc_end_files, __ATOMIC_SEQ_CST) != 0)
		poll_notify(&proc_end_news, POLLIN);
	thread_leave_proc(p);
	awaited = ptrace_is_own(p);
	if (!ptrace_process_ends(p, wait_status))
		proc_tell_end(p, awaited);
	if (l->ui == NULL)
		l = NULL; /* the parent may free the first lwp from now on */
	spin_unlock(&proc_lock);
	if (l != NULL)
		lwp_free(l);
	thread_exit();
}

void
do_exit(int wait_status)
{
	struct proc *p = curproc();
	struct lwp *l = curlwp();
	bool last, first = l->ui == NULL;

	ptrace_event(PTRACE_EVENT_EXIT, (uint64_t)wait_status);
	SDT_PROBE0(proc, , , lwp_exit);
	file_release_held();
	lwp_calls_forget(l);
	futex_thread_exit(l);
	spin_lock(&proc_lock);
	last = p->nthreads == 1;
	if (last) {
		proc_exit_begin(wait_status); /* so that closing its files waits for nobody */
	} else {
		/* a switch back to this thread must not load the old space any more */
		curthread()->root = kmap_root();
		smp_use_root(curthread()->root);
		list_remove(&l->sibling);
		proc_signals_drop_thread(l);
		proc_thread_stops(p, l);
		ptrace_thread_ends(l, p->exiting ? p->exit_status : wait_status);
		/* release: pairs with the acquires in ktrace_hook() and proc_is_threaded() */
		__atomic_fetch_sub(&p->nthreads, 1, __ATOMIC_RELEASE);
		cpu_alarms_end(p);
		p->thread = lwp_next(p, NULL)->thread;
		thread_leave_proc(p);
		wakeup(&p->nthreads);
		proc_signals_update(p);
		proc_signals_retarget(p, UINT64_MAX);
	}
	spin_unlock(&proc_lock);
	if (last)
		exit_process(p);
	SDT_PROBE3(sched, , , sched_process_exit, ktr_intern(curthread()->name), curthread()->tid,
		   curthread()->prio);
	if (!first) /* the first lwp goes with its process, perhaps before this thread */
		lwp_free(l);
	thread_exit();
}

int
proc_exit_begin(int wait_status)
{
	struct proc *p = curproc();

	if (!p->exiting && !curlwp()->dying) {
		p->exiting = true;
		p->exit_status = wait_status;
		p->state = PROC_ALIVE; /* it may have been stopped */
		p->status_new = false;
		p->stopping = 0;
		for_each_lwp(l, p) l->stops = false;
		end_threads(p, curlwp());
	}
	return p->exiting ? p->exit_status : 0;
}

void
do_group_exit(int wait_status)
{
	spin_lock(&proc_lock);
	wait_status = proc_exit_begin(wait_status);
	spin_unlock(&proc_lock);
	do_exit(wait_status);
}

int64_t
sys_exit(const uint64_t a[6])
{
	do_exit((int)(a[0] & 0xff) << 8);
}

int64_t
sys_exit_group(const uint64_t a[6])
{
	do_group_exit((int)(a[0] & 0xff) << 8);
}

#define ANY_CHILD INT64_MIN

/* Does `want` mean this child? 0: the current group; negative: that group; else the child. */
static bool
wait_is_wanted(int64_t want, uint32_t pid, uint32_t pgid)
{
	if (want > 0)
		return pid == (uint32_t)want;
	if (want == 0)
		return pgid == curproc()->pgid;
	return want == ANY_CHILD || pgid == (uint32_t)-want;
}

/* Has the child what somebody waits for? */
static bool
has_news(const struct proc *c, int options)
{
	if (c->state == PROC_ZOMBIE)
		return (options & WEXITED) && !ptrace_holds(c);
	return c->status_new && !ptrace_is_own(c) &&
	       (options & (WIFSTOPPED(c->wait_status) ? WSTOPPED : WCONTINUED));
}

/* Only some options ask for children that tell their end by another signal, or by none. */
static bool
wait_is_of_kind(const struct proc *c, int options)
{
	return (options & WALL) || (c->exit_signal != SIGCHLD) == ((options & WCLONE) != 0);
}

/* Finds a child with news. NULL: none. *any: there are children to wait for. proc_lock held. */
static struct proc *
find_child(int64_t want, int options, bool *any)
{
	list_for_each_entry (struct proc, c, &curproc()->children, sibling) {
		if (!wait_is_wanted(want, c->pid, c->pgid) || !wait_is_of_kind(c, options))
			continue;
		*any |= c->state != PROC_ZOMBIE || (options & WEXITED);
		if (has_news(c, options))
			return c;
	}
	return NULL;
}

/* What a wait has found. pid 0: nothing yet, and WNOHANG. */
struct waited {
	uint32_t pid, uid;
	bool traced; /* the child is a thread that the waiting process traces */
	int status;
	struct usage usage; /* of the child, and of the children that it has waited for */
};

/* What a process has used, and the children that it has waited for. proc_lock held. */
static struct usage
usage_of_both(const struct proc *p)
{
	struct usage u = proc_usage(p);

	usage_add(&u, p->children_usage);
	return u;
}

/* The same of a tracee's process. Nothing: only this thread of it was known, and has ended. */
static struct usage
tracee_usage(const struct ptrace *pt)
{
	const struct proc *p = pt->lwp != NULL || pt->tid == pt->pid ? ptrace_process(pt) : NULL;

	return p != NULL ? usage_of_both(p) : (struct usage){0};
}

/*
 * Waits for a child, and removes a zombie from the tree and frees it, but with WNOWAIT. 0, -ECHILD
 * or -EINTR.
 */
static int
wait_child(int64_t want, int options, struct waited *w)
{
	struct proc *c;
	struct ptrace *pt = NULL;
	bool any = false, gone;
	int slept = 0;

	*w = (struct waited){0};
	spin_lock(&proc_lock);
	while ((c = find_child(want, options, &any)) == NULL &&
	       (pt = ptrace_news(wait_is_wanted, want, options, &any)) == NULL) {
		int r = !any ? -ECHILD : options & WNOHANG ? 0 : slept != 0 ? slept : 1;

		if (r != 1) {
			spin_unlock(&proc_lock);
			return r;
		}
		any = false; /* another thread may have waited for the child meanwhile */
		/* The signal may be SIGCHLD: what has come counts first. */
		slept = sleep_on(curproc(), &proc_lock, "wait", SLEEP_INTR, DEADLINE_NEVER);
	}
	if (c == NULL) {
		*w = (struct waited){pt->tid, pt->uid, true, pt->status, tracee_usage(pt)};
		if (!(options & WNOWAIT))
			ptrace_waited(pt);
		spin_unlock(&proc_lock);
		return 0;
	}
	*w = (struct waited){c->pid, c->ruid, false, c->wait_status, usage_of_both(c)};
	gone = c->state == PROC_ZOMBIE && !(options & WNOWAIT);
	if (gone) {
		list_remove(&c->sibling);
		proc_leave(c);
		usage_add(&curproc()->children_usage, w->usage);
	} else if (!(options & WNOWAIT)) {
		c->status_new = false;
	}
	spin_unlock(&proc_lock);
	CTR3(KTR_PROC, "wait: pid %d status %#x by %u", (int)w->pid, w->status, curproc()->pid);
	if (gone)
		proc_free(c);
	return 0;
}

int64_t
sys_wait4(const uint64_t a[6])
{
	int options = (int)a[2], error;
	struct waited w;

	if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WALL | WCLONE))
		return -EINVAL;
	if ((int32_t)a[0] == INT32_MIN)
		return -ESRCH; /* no group has the number */
	error = wait_child((int32_t)a[0] == -1 ? ANY_CHILD : (int32_t)a[0], options | WEXITED, &w);
	if (error != 0 || w.pid == 0)
		return error;
	if (a[1] != 0 && copy_out(a[1], &w.status, sizeof(w.status)) != 0)
		return -EFAULT;
	if (a[3] != 0 && rusage_give(a[3], w.usage) != 0)
		return -EFAULT;
	return w.pid;
}

/* Makes id a process, or a group, as wait_is_wanted() has it. False: it is none. */
static bool
take_wanted(uint32_t which, int64_t id, int64_t *want)
{
	*want = which == P_ALL ? ANY_CHILD : which == P_PID || id == 0 ? id : -id;
	return which == P_ALL || (which == P_PID && id > 0) || (which == P_PGID && id >= 0);
}

/* Takes the number of the process that a file of pidfd_open() is about. 0 or -errno. */
static int
take_wanted_file(uint64_t fd, int64_t *want, int *options)
{
	const struct file *f = pidfd_get((uint32_t)fd);
	const struct proc *p;

	if ((int32_t)fd < 0)
		return -EINVAL;
	if (f == NULL)
		return -EBADF;
	if (f->flags & O_NONBLOCK)
		*options |= WNOHANG;
	spin_lock(&proc_lock);
	p = pidfd_proc(f);
	if (p != NULL)
		*want = p->pid;
	spin_unlock(&proc_lock);
	return p != NULL ? 0 : -ECHILD;
}

int64_t
sys_waitid(const uint64_t a[6])
{
	const int what = WEXITED | WSTOPPED | WCONTINUED;
	int options = (int)a[3], error = 0;
	struct siginfo info = {0};
	struct waited w;
	int64_t want;

	if ((options & ~(what | WNOHANG | WNOWAIT | WNOTHREAD | WALL | WCLONE)) ||
	    !(options & what))
		return -EINVAL;
	if ((uint32_t)a[0] == P_PIDFD)
		error = take_wanted_file(a[1], &want, &options);
	else if (!take_wanted((uint32_t)a[0], (int32_t)a[1], &want))
		error = -EINVAL;
	if (error == 0)
		error = wait_child(want, options, &w);
	if (error == 0 && w.pid == 0 && !((int)a[3] & WNOHANG))
		error = -EAGAIN; /* the file is O_NONBLOCK */
	if (error != 0)
		return error;
	if (w.pid != 0) {
		bool stopped = WIFSTOPPED(w.status), goes_on = w.status == WAIT_CONTINUED;

		info.si_signo = SIGCHLD;
		info.si_code = stopped   ? w.traced ? CLD_TRAPPED : CLD_STOPPED
			       : goes_on ? CLD_CONTINUED
					 : exit_reason(w.status);
		info.si_pid = w.pid;
		info.si_uid = w.uid;
		info.si_status = stopped ? w.status >> 8 : goes_on ? SIGCONT : exit_value(w.status);
		if (a[4] != 0 && rusage_give(a[4], w.usage) != 0)
			return -EFAULT;
	}
	return a[2] != 0 && copy_out(a[2], &info, sizeof(info)) != 0 ? -EFAULT : 0;
}
