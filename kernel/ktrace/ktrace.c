/*
 * ktrace.c - ktrace(2) and utrace(2), and what the life of a process means for its tracing.
 *
 * A struct ktrace comes to a process with ktrace(2), or from its parent at a fork, and is left with
 * the end of the tracing or of the process; `facs` says whether anything is recorded. proc.trace is
 * set under ktrace_lock by ktrace(2), with proc_lock, or by the parent before the child runs, and
 * is cleared by the thread that writes.
 *
 * Locking: ktrace_private.h.
 */
#include "kernel/ktrace/ktrace_private.h"

#include "arch/clock.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"

static bool ktrace_ending; /* ktrace_lock: the machine is ending, and no tracing begins */

#define RECORD_BYTES 128 /* of an ordinary record */
#define ALWAYS       (KTRFAC_PROCCTOR | KTRFAC_PROCDTOR)
#define SHUTDOWN_NS \
	10000000000ull /* how long the end of the machine waits for a file that stalls */

unsigned ktrace_genio = 4096;
unsigned ktrace_request = 256;

SYSCTL_INT(kern_ktrace_genio_size, "kern.ktrace.genio_size", SYSCTL_WR | SYSCTL_TUN,
	   (int *)&ktrace_genio, 0, KTRACE_GENIO_MAX,
	   "bytes of a read or write that ktrace records; at most a quarter of a queue");
SYSCTL_INT(kern_ktrace_request_pool, "kern.ktrace.request_pool", SYSCTL_WR | SYSCTL_TUN,
	   (int *)&ktrace_request, 64, 16384,
	   "records of 128 bytes that may wait for the file, for each process from now on");

/* What a call of ktrace(2) wants. */
struct request {
	unsigned op; /* KTROP_… */
	bool descend;
	uint32_t facs;
	int64_t pid;
	struct ktrace_io open;   /* of KTROP_CLEAR: none */
	struct ktrace_io *io;    /* KTROP_SET: one like it, a reference */
	const struct vnode *vn;  /* KTROP_CLEARFILE */
	unsigned found, refused; /* processes */
	unsigned missing;        /* struct ktrace that it needs */
	struct ktrace *unused;   /* those that it has, linked by `next` */
	struct ktrace *moved;    /* those that others have left for, linked likewise */
	uint64_t change;         /* the number of the call */
	/* The files that the call has meant: `waiters` counts it. There is room for all. */
	struct ktrace_file **files;
	unsigned nfiles;
};

/* A queue, counted for the user. NULL: no memory. ktrace_lock held. */
static struct ktrace *
ktrace_create(struct uidinfo *ui)
{
	uint64_t size = 8192;
	struct ktrace *t = uidinfo_alloc(ui, sizeof(*t));

	if (t == NULL)
		return NULL;
	while (size < (uint64_t)ktrace_request * RECORD_BYTES)
		size *= 2;
	t->buf = uidinfo_alloc(ui, size);
	if (t->buf == NULL) {
		uidinfo_free(ui, t);
		return NULL;
	}
	t->mask = size - 1;
	t->ui = ui;
	list_init(&t->member);
	list_append(&ktrace_all, &t->all);
	return t;
}

/* Notes that the call waits for the thread that writes the file. */
static void
ktrace_mean(struct request *q, struct ktrace_file *file)
{
	if (file->change == q->change)
		return;
	file->change = q->change;
	file->waiters++;
	q->files[q->nfiles++] = file;
}

/* Takes a struct ktrace that was made beforehand. NULL: there is none left, which is counted. */
static struct ktrace *
ktrace_take(struct request *q)
{
	struct ktrace *t = q->unused;

	if (t == NULL) {
		q->missing++;
		return NULL;
	}
	q->unused = t->next;
	t->next = NULL;
	return t;
}

/* May the caller change the tracing of p? */
static bool
may_trace(const struct proc *p)
{
	return capable(CAP_SYS_PTRACE) ||
	       (proc_may_trace(p) && !(p->trace != NULL && (p->trace->facs & KTRFAC_ROOT)));
}

/* Tracing of a process begins. ktrace_lock held. */
static void
ktrace_begins(struct ktrace *t, struct proc *p, const struct proc *parent)
{
	t->proc = p;
	p->traces++;
	t->pid = p->pid;
	t->parent = parent->pid;
	t->begin_ticks = arch_clock_read();
	strlcpy(t->comm, p->name, sizeof(t->comm));
}

/*
 * What p does from now on goes to t, and what it did, to `old`, which ends. A hook may be at work:
 * those of several threads take the lock, and see t afterwards. ktrace_lock and proc_lock held.
 */
static void
ktrace_leave(struct request *q, struct ktrace *old, struct ktrace *t, struct proc *p)
{
	t->cpu = old->cpu;
	t->next = q->moved;
	q->moved = t;
	old->left = true;
	hook_lock(&old->locked);
	old->end_ticks = arch_clock_read();
	__atomic_store_n(&p->trace, t, __ATOMIC_RELEASE);
	hook_unlock(&old->locked);
}

/* ktrace_lock and proc_lock held. */
static void
set_one(struct request *q, struct proc *p)
{
	struct ktrace *old = p->trace, *t = old;
	uint32_t facs = q->facs | ALWAYS | (capable(CAP_SYS_PTRACE) ? KTRFAC_ROOT : 0);

	if (old == NULL || old->facs == 0 || old->io->file != q->io->file)
		t = ktrace_take(q);
	if (t == NULL)
		return;
	if (t != old)
		ktrace_begins(t, p, p->parent);
	ktrace_give_io(t, q->io);
	if (old != NULL && old != t) {
		facs |= old->facs;
		ktrace_mean(q, old->io->file);
	}
	__atomic_fetch_or(&t->facs, facs, __ATOMIC_SEQ_CST);
	if (old == NULL)
		__atomic_store_n(&p->trace, t, __ATOMIC_RELEASE);
	else if (old != t)
		ktrace_leave(q, old, t, p);
}

/*
 * Those that were left for others begin after the last record of the others, which a hook may just
 * be making; or with a record of their own. ktrace_lock held.
 */
static void
ktrace_moves_begin(struct request *q)
{
	uint64_t now;

	if (q->moved == NULL)
		return;
	smp_call_all(NULL, NULL);
	now = arch_clock_read();
	while (q->moved != NULL) {
		struct ktrace *t = q->moved;

		q->moved = t->next;
		t->next = NULL;
		t->begin_ticks = now;
	}
}

/* ktrace_lock held. */
static void
clear_one(struct request *q, struct ktrace *t)
{
	uint32_t facs, old = __atomic_load_n(&t->facs, __ATOMIC_SEQ_CST);

	ktrace_mean(q, t->io->file);
	do {
		facs = old & ~(q->facs & ~ALWAYS);
		if (!(facs & KTRFAC_MASK & ~ALWAYS))
			facs = 0;
	} while (!__atomic_compare_exchange_n(&t->facs, &old, facs, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
}

/*
 * Does the request name this process, or an ancestor of it? Parents are asked before their
 * children. proc_lock held.
 */
static bool
is_named(const struct request *q, struct proc *p, uint32_t change)
{
	bool named;

	if (q->vn != NULL)
		return p->trace != NULL && p->trace->io->f->vn == q->vn;
	named = q->pid > 0 ? p->pid == (uint32_t)q->pid : p->pgid == (uint32_t)-q->pid;
	named |= q->descend && p->parent->trace_change == change;
	if (named)
		p->trace_change = change;
	return named;
}

/* ktrace_lock held. */
static void
change_all(struct request *q)
{
	static uint32_t changes; /* ktrace_lock */

	changes++;
	q->found = q->refused = q->missing = 0;
	spin_lock(&proc_lock);
	for_each_proc (p) {
		/* A process without memory is ending, and its tracing with it. */
		if (!is_named(q, p, changes) || p->vm == NULL)
			continue;
		q->found++;
		if (!may_trace(p))
			q->refused++;
		else if (q->op == KTROP_SET)
			set_one(q, p);
		else if (p->trace != NULL)
			clear_one(q, p->trace);
	}
	spin_unlock(&proc_lock);
}

/* Makes what is missing. 0 or -ENOMEM. */
static int
make_missing(struct request *q)
{
	for (; q->missing > 0; q->missing--) {
		struct ktrace *t = ktrace_create(curproc()->ui);

		if (t == NULL)
			return -ENOMEM;
		t->next = q->unused;
		q->unused = t;
	}
	return 0;
}

static void ktrace_fork(struct proc *child);

static int
init_once(void)
{
	static bool hooked; /* ktrace_lock */
	int error = 0;

	if (!hooked)
		error = ktrace_hook_init();
	hooked = error == 0;
	__atomic_store_n(&proc_fork_hook, ktrace_fork, __ATOMIC_RELAXED);
	return error;
}

/* Makes room for all files before any is meant, and an io. ktrace_lock held. 0 or -errno. */
static int
begin_change(struct request *q)
{
	static uint64_t calls; /* ktrace_lock */
	size_t n = 1;

	if (q->op == KTROP_SET && ktrace_ending)
		return -EBUSY;
	list_for_each (l, &ktrace_files)
		n++;
	q->change = ++calls;
	q->files = kmalloc(n * sizeof(struct ktrace_file *));
	if (q->files != NULL && q->op == KTROP_SET)
		q->io = ktrace_io_get(&q->open, curproc()->ui);
	if (q->files == NULL || (q->op == KTROP_SET && q->io == NULL)) {
		kfree(q->files);
		return -ENOMEM;
	}
	if (q->io != NULL)
		ktrace_mean(q, q->io->file);
	return 0;
}

/* Waits until the changes are in the files that were meant. ktrace_lock held. */
static void
end_change(struct request *q)
{
	for (unsigned i = 0; i < q->nfiles; i++) {
		ktrace_sync(q->files[i], DEADLINE_NEVER, true);
		if (--q->files[i]->waiters == 0)
			cond_signal(&q->files[i]->asked);
	}
	kfree(q->files);
}

static int
ktrace_change(struct request *q)
{
	int error = init_once();

	if (error == 0)
		error = begin_change(q);
	if (error == 0) {
		do
			change_all(q);
		while (q->missing > 0 && (error = make_missing(q)) == 0);
		ktrace_moves_begin(q);
		ktrace_select_needed();
		if (q->io != NULL)
			ktrace_io_drop(q->io);
		end_change(q);
	}
	while (q->unused != NULL)
		ktrace_destroy(ktrace_take(q));
	if (error == 0 && q->vn == NULL && q->found == 0)
		error = -ESRCH;
	if (error == 0 && q->found > 0 && q->found == q->refused)
		error = -EPERM;
	return error;
}

/* Opens the file of a request. */
static int
open_io(uint64_t upath, struct ktrace_io *io)
{
	char path[PATH_MAX];
	int error = copy_in_str(path, upath, sizeof(path));

	if (error < 0)
		return error;
	/* As in FreeBSD: not through a link that somebody else may have put there. */
	error = file_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0, &io->f);
	if (error == 0 && !S_ISREG(io->f->vn->mode)) {
		file_unref(io->f);
		error = -EACCES;
	}
	if (error < 0)
		return error;
	io->limit = proc_limit(RLIMIT_FSIZE);
	io->cred = (struct task_cred){
	    .user = proc_user(),
	    .group = proc_in_group(io->f->vn->gid) ? io->f->vn->gid : UINT32_MAX,
	    .caps = proc_caps(),
	};
	strlcpy(io->path, path, sizeof(io->path));
	printk_hide_controls(io->path);
	return 0;
}

int64_t
sys_ktrace(const uint64_t a[6])
{
	struct request q = {.op = KTROP(a[1]),
			    .descend = (a[1] & KTRFLAG_DESCEND) != 0,
			    .facs = (uint32_t)a[2] & (KTRFAC_MASK | KTRFAC_INHERIT),
			    .pid = (int32_t)a[3]};
	int error = 0;

	if ((a[1] & ~3ul & ~(uint64_t)KTRFLAG_DESCEND) || q.op > KTROP_CLEARFILE)
		return -EINVAL;
	if (q.op == KTROP_CLEARFILE)
		q.facs = UINT32_MAX;
	else if (!(q.facs & KTRFAC_MASK) || q.facs != (uint32_t)a[2])
		return -EINVAL;
	else if (q.pid == 0)
		return -ESRCH;
	if (q.op != KTROP_CLEAR)
		error = open_io(a[0], &q.open);
	if (error < 0)
		return error;
	if (q.op == KTROP_CLEARFILE)
		q.vn = q.open.f->vn;
	mutex_lock(&ktrace_lock);
	error = ktrace_change(&q);
	mutex_unlock(&ktrace_lock);
	if (q.open.f != NULL)
		file_unref(q.open.f);
	return error;
}

/*
 * Is the current process traced for one of these? Interrupts are off while it looks: what a process
 * has left is freed after a call on all CPUs.
 */
static bool
ktrace_records(uint32_t facs)
{
	const struct ktrace *t;
	bool found;

	irq_push();
	t = __atomic_load_n(&curproc()->trace, __ATOMIC_ACQUIRE);
	found = t != NULL && (__atomic_load_n(&t->facs, __ATOMIC_RELAXED) & facs);
	irq_pop();
	return found;
}

int64_t
sys_utrace(const uint64_t a[6])
{
	uint8_t data[KTR_USER_MAXLEN];

	/* As in FreeBSD: a process that is not traced is told no error. */
	if (!ktrace_records(KTRFAC_USER))
		return 0;
	if (a[1] > sizeof(data))
		return -EINVAL;
	if (copy_in(data, a[0], a[1]) < 0)
		return -EFAULT;
	ktrace_put(KTR_USER, data, a[1]);
	return 0;
}

/*
 * A process makes another one, which does not run yet: the new one inherits the tracing. Whoever
 * changes the tracing of the parent and its children comes before this, or finds the child in the
 * list of processes.
 */
static void
ktrace_fork(struct proc *child)
{
	static struct proc_told told;
	struct proc *p = curproc();
	struct ktrace *t, *c;

	if (!ktrace_records(KTRFAC_INHERIT))
		return;
	curlwp()->trace.busy = true;
	mutex_lock(&ktrace_lock);
	t = p->trace;
	if (t != NULL && (t->facs & KTRFAC_INHERIT) && child->trace == NULL) {
		c = ktrace_create(child->ui);
		if (c != NULL) {
			ktrace_begins(c, child, p);
			ktrace_give_io(c, t->io);
			__atomic_store_n(&c->facs, t->facs, __ATOMIC_RELEASE);
			__atomic_store_n(&child->trace, c, __ATOMIC_RELEASE);
		} else if (proc_may_tell(&told, "processes that are not traced")) {
			printk("ktrace: no memory: process %u is not traced\n", child->pid);
		}
	}
	mutex_unlock(&ktrace_lock);
	curlwp()->trace.busy = false;
}

/* Is the process's queue so full that it waits? Interrupts are off as in ktrace_records(). */
static bool
ktrace_has_to_wait(const struct proc *p)
{
	const struct ktrace *t;
	bool full;

	irq_push();
	t = __atomic_load_n(&p->trace, __ATOMIC_ACQUIRE);
	full = t != NULL && ktrace_is_full(t);
	irq_pop();
	return full;
}

/* Does what a hook could not do, before a process returns to its program. */
static void
ktrace_work(void)
{
	struct proc *p = curproc();

	if (p == NULL || curlwp()->trace.busy || !ktrace_has_to_wait(p))
		return;
	curlwp()->trace.busy = true;
	mutex_lock(&ktrace_lock);
	if (p->trace != NULL && ktrace_is_full(p->trace))
		ktrace_sync(p->trace->io->file, DEADLINE_NEVER, true);
	mutex_unlock(&ktrace_lock);
	curlwp()->trace.busy = false;
}

HOOK(user_return, ktrace_work);

/*
 * A program begins that has other rights than the one before. Who traced that one may not see what
 * this one does, unless he had CAP_SYS_PTRACE. proc_lock is held, as when `facs` is set: so whoever
 * asks afterwards is refused.
 */
static void
ktrace_exec_gains(void)
{
	struct ktrace *t = __atomic_load_n(&curproc()->trace, __ATOMIC_ACQUIRE);

	if (t != NULL && !(t->facs & KTRFAC_ROOT))
		__atomic_store_n(&t->facs, 0, __ATOMIC_SEQ_CST);
}

HOOK(exec_gains, ktrace_exec_gains);

/* A tracing of the process, also one that it has left. NULL: it has none. ktrace_lock held. */
static struct ktrace *
ktrace_find_of(const struct proc *p)
{
	if (p->traces > 0)
		list_for_each_entry (struct ktrace, t, &ktrace_all, all)
			if (t->proc == p)
				return t;
	return NULL;
}

/*
 * A process ends: what it did is in its files before its parent hears of that. It gets no other
 * tracing meanwhile: without memory it is not found.
 */
static void
ktrace_exit(void)
{
	struct proc *p = curproc();
	struct ktrace *t;

	if (__atomic_load_n(&p->traces, __ATOMIC_ACQUIRE) == 0)
		return;
	curlwp()->trace.busy = true;
	mutex_lock(&ktrace_lock);
	if (p->trace != NULL)
		p->trace->exited = true;
	while ((t = ktrace_find_of(p)) != NULL)
		ktrace_sync(t->io->file, DEADLINE_NEVER, false);
	mutex_unlock(&ktrace_lock);
}

HOOK(proc_exit, ktrace_exit);

/* The machine is about to end: tracing ends, and all records go to the files. */
static void
ktrace_shutdown(void)
{
	uint64_t deadline = clock_ns() + SHUTDOWN_NS;

	mutex_lock(&ktrace_lock);
	ktrace_ending = true;
	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		__atomic_store_n(&t->facs, 0, __ATOMIC_SEQ_CST);
	ktrace_select_needed();
	/* All files' threads work at the same time. None ends from now on, and none begins. */
	list_for_each_entry (struct ktrace_file, file, &ktrace_files, all) {
		file->waiters++;
		file->passes_asked++;
		cond_signal(&file->asked);
	}
	list_for_each_entry (struct ktrace_file, file, &ktrace_files, all)
		ktrace_sync(file, deadline, false);
	mutex_unlock(&ktrace_lock);
}

HOOK(shutdown, ktrace_shutdown);
