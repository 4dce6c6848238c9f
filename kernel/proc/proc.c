/*
 * proc.c - processes: fork, exit and wait.
 *
 * Locking: proc_lock, a spin lock, guards the tree, states and signals. Only the parent uses a
 * zombie: the dying thread clears its thread.proc under proc_lock, and does not touch its process
 * afterwards.
 */
#include "kernel/proc/proc.h"

#include <abi_md.h>

#include "arch/context.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/sched.h"
#include "kernel/abi/signal.h"
#include "kernel/abi/wait.h"
#include "kernel/entry.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/mm/vm.h"
#include "kernel/proc/init.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq_private.h"
#include "kernel/sched/thread.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE_TEXT(proc, , , create, "create", ": proc %p pid %u parent %u", 3, "struct proc *",
		      "pid_t", "pid_t");
SDT_PROBE_DEFINE(proc, , , start, start);
SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_fork, "sched_process_fork",
		      ": comm=%s pid=%u child_comm=%s child_pid=%u", 4, "char *", "pid_t", "char *",
		      "pid_t");
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_exit, "sched_process_exit",
		      ": comm=%s pid=%u prio=%d", 3, "char *", "pid_t", "int");
SDT_PROBE_DEFINE_TEXT(proc, , , exit, "exit", ": reason %d status %#x", 2, "int", "int");

HOOK_LIST(proc_exit);

struct spinlock proc_lock = SPINLOCK_INIT("proc");
struct list procs = LIST_INIT(procs);
static struct proc *init_proc;

struct proc *
curproc(void)
{
	struct thread *t = curthread();

	return t != NULL ? t->proc : NULL;
}

uint32_t
proc_umask(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->umask : 022;
}

struct uidinfo *
curuidinfo(void)
{
	struct proc *p = curproc();

	return p != NULL ? p->ui : &uidinfo_root;
}

struct proc *
proc_next(const struct proc *p)
{
	const struct list *l = p != NULL ? &p->all : &procs;

	do
		l = l->next;
	while (l != &procs && list_entry(l, struct proc, all)->state == PROC_CURSOR);
	return l != &procs ? list_entry(l, struct proc, all) : NULL;
}

/* Frees a process that has no thread and is not in the tree. */
static void
proc_free(struct proc *p)
{
	struct uidinfo *ui = p->ui;

	uidinfo_free(ui, p);
	uidinfo_leave(ui);
}

/*
 * Makes a process of the user, with a thread that will run fn. It is not in the tree yet. NULL and
 * *err: -EAGAIN too many processes, -ENOMEM.
 */
static struct proc *
proc_alloc(const char *name, uint32_t uid, void (*fn)(void *), int *err)
{
	struct uidinfo *ui = uidinfo_enter(uid);
	struct proc *p = ui != NULL ? uidinfo_alloc(ui, sizeof(*p)) : NULL;

	*err = ui == NULL ? -EAGAIN : -ENOMEM;
	if (ui != NULL && p == NULL)
		uidinfo_leave(ui);
	if (p == NULL)
		return NULL;
	p->uid = uid;
	p->ui = ui;
	p->thread = thread_alloc(name, PRIO_USER, fn, p);
	if (p->thread == NULL) {
		proc_free(p);
		return NULL;
	}
	p->thread->proc = p;
	p->pid = p->thread->tid;
	strlcpy(p->name, p->thread->name, sizeof(p->name));
	callout_init(&p->alarm, proc_alarm, p);
	list_init(&p->children);
	list_init(&p->sibling);
	list_init(&p->all);
	return p;
}

void
proc_set_space(struct proc *p, struct vmspace *vm)
{
	p->vm = vm;
	curthread()->root = vm != NULL ? vm_root(vm) : kmap_root();
	arch_mmu_switch(curthread()->root);
}

static void
proc_discard(struct proc *p)
{
	if (p->vm != NULL)
		vm_destroy(p->vm);
	if (p->files != NULL)
		filetable_destroy(p->files);
	if (p->cwd != NULL)
		vnode_unref(p->cwd);
	thread_discard(p->thread);
	proc_free(p);
}

int
proc_follow(uint64_t pid, uint32_t follow, bool (*is_used)(uint32_t follow))
{
	int error = -ESRCH;

	spin_lock(&proc_lock);
	for (struct proc *p = NULL; error != 0 && (p = proc_next(p)) != NULL;) {
		if (p->pid != pid || p->thread == NULL)
			continue;
		if (p->thread->follow != 0 && is_used(p->thread->follow)) {
			error = -EBUSY;
			break;
		}
		p->thread->follow = follow;
		error = 0;
	}
	spin_unlock(&proc_lock);
	return error;
}

/* A forked child starts here. Its trap frame is a copy, at the top of its stack. */
static void
fork_return(void *arg)
{
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);

	struct proc *p = curproc();

	if (p->child_tid != 0)
		copy_out(p->child_tid, &p->pid, sizeof(p->pid)); /* like Linux, without a check */
	SDT_PROBE0(proc, , , start);
	arch_irq_disable();
	entry_user_return(tf);
	arch_return_to_user(tf);
}

/* A new process: what it shares, and how it starts. */
struct fork_args {
	uint64_t flags;      /* CLONE_… */
	uint64_t sp;         /* 0: the parent's */
	uint64_t tls;        /* with CLONE_SETTLS */
	uint64_t parent_tid; /* where the number goes, with CLONE_PARENT_SETTID */
	uint64_t child_tid;  /* the same in the child's memory, with CLONE_CHILD_SETTID */
};

/* Fills the frame and the thread of the child p. */
static void
fork_thread(struct proc *p, const struct fork_args *f)
{
	struct thread *self = curthread(), *t = p->thread;
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)t->kstack + KSTACK_SIZE);

	t->root = vm_root(p->vm);
	t->tls = f->flags & CLONE_SETTLS ? f->tls : self->tls;
	thread_fpu_copy(t);
	memcpy(tf, arch_user_frame((uintptr_t)self->kstack + KSTACK_SIZE), sizeof(*tf));
	arch_tf_set_return(tf, 0);
	if (f->sp != 0)
		arch_tf_set_sp(tf, f->sp);
	if (f->flags & CLONE_SETTLS)
		arch_tf_set_tls(tf, f->tls);
}

/* Waits until the child has left the current process's address space. Only SIGKILL ends it. */
static void
vfork_wait(struct proc *parent)
{
	spin_lock(&proc_lock);
	while (parent->vforking && !(parent->sig_pending & 1ul << (SIGKILL - 1)))
		sleep_on(&parent->vforking, &proc_lock, "vfork", 0, DEADLINE_NEVER);
	spin_unlock(&proc_lock);
}

void
proc_vfork_done(struct proc *p)
{
	spin_lock(&proc_lock);
	if (p->vfork_child) {
		p->vfork_child = false;
		p->parent->vforking = false;
		wakeup(&p->parent->vforking);
	}
	spin_unlock(&proc_lock);
}

static int64_t
fork_current(const struct fork_args *f)
{
	struct proc *parent = curproc(), *p;
	bool vfork = f->flags & CLONE_VFORK;
	int error;

	if (parent->uid != 0 && uidinfo_held(parent->ui, UIDINFO_PROC) >= proc_limit(RLIMIT_NPROC))
		return -EAGAIN;
	p = proc_alloc(parent->name, parent->uid, fork_return, &error);
	if (p == NULL)
		return error;
	p->vm = f->flags & CLONE_VM ? vm_ref(parent->vm) : vm_fork(parent->vm, p->ui);
	p->files = filetable_clone(parent->files, p->ui);
	if (p->vm == NULL || p->files == NULL) {
		proc_discard(p);
		return -ENOMEM;
	}
	p->cwd = vnode_ref(parent->cwd);
	p->thread->follow = curthread()->follow;
	p->umask = parent->umask;
	p->changed_uid = parent->changed_uid;
	p->child_tid = f->flags & CLONE_CHILD_SETTID ? f->child_tid : 0;
	fork_thread(p, f);

	spin_lock(&proc_lock);
	p->pgid = parent->pgid;
	p->sid = parent->sid;
	proc_signals_fork(p, parent);
	memcpy(p->limits, parent->limits, sizeof(p->limits));
	memcpy(p->psargs, parent->psargs, sizeof(p->psargs));
	memcpy(p->program, parent->program, sizeof(p->program));
	p->parent = parent;
	p->vfork_child = parent->vforking = vfork;
	list_append(&parent->children, &p->sibling);
	list_append(&procs, &p->all);
	spin_unlock(&proc_lock);
	SDT_CTR3(proc, , , create, SDT_ARGS3(p, p->pid, parent->pid), KTR_PROC,
		 "fork: parent %u child %u name %s", parent->pid, p->pid, ktr_intern(p->name));
	SDT_PROBE4(sched, , , sched_process_fork, ktr_intern(parent->name), parent->pid,
		   ktr_intern(p->name), p->pid);
	uint32_t pid = p->pid; /* the child may run and be freed before we return */
	if (f->flags & CLONE_PARENT_SETTID)
		copy_out(f->parent_tid, &pid, sizeof(pid)); /* like Linux, without a check */
	sched_start(p->thread);
	if (vfork)
		vfork_wait(parent);
	return pid;
}

int64_t
sys_fork(const uint64_t a[6])
{
	return fork_current(&(struct fork_args){.flags = 0});
}

int64_t
sys_vfork(const uint64_t a[6])
{
	return fork_current(&(struct fork_args){.flags = CLONE_VM | CLONE_VFORK});
}

int64_t
sys_clone(const uint64_t a[6])
{
	const uint64_t known = CLONE_VM | CLONE_VFORK | CLONE_SETTLS | CLONE_PARENT_SETTID |
			       CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
	struct fork_args f = {.flags = a[0] & ~0xfful,
			      .sp = a[1],
			      .parent_tid = a[2],
			      .child_tid = a[CLONE_ARG_CHILD_TID],
			      .tls = a[CLONE_ARG_TLS]};

	/* Processes have one thread: memory is shared only while the parent waits. */
	if ((f.flags & ~known) || (a[0] & 0xff) != SIGCHLD ||
	    !(f.flags & CLONE_VM) != !(f.flags & CLONE_VFORK))
		return -EINVAL;
	if ((f.flags & CLONE_SETTLS) && f.tls >= ARCH_USER_END)
		return -EPERM;
	return fork_current(&f);
}

/* Gives a dying process's children to process 1. proc_lock held. */
static void
give_children_away(struct proc *p)
{
	bool zombies = false;

	list_for_each_safe (l, &p->children) {
		struct proc *c = list_entry(l, struct proc, sibling);
		list_remove(l);
		c->parent = init_proc;
		c->vfork_child = false;
		list_append(&init_proc->children, &c->sibling);
		zombies |= c->state == PROC_ZOMBIE;
	}
	if (zombies)
		wakeup(init_proc);
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

void
proc_exit(int wait_status)
{
	struct proc *p = curproc();
	struct vmspace *vm = p->vm;

	if (p == init_proc)
		panic("process 1 ended with wait status %#x", wait_status);
	spin_lock(&proc_lock);
	p->alarm_interval_ns = 0;
	spin_unlock(&proc_lock);
	callout_stop(&p->alarm);
	filetable_destroy(p->files);
	p->files = NULL;
	vnode_unref(p->cwd);
	p->cwd = NULL;
	spin_lock(&proc_lock); /* after this, a switch back to us must not load the old space */
	proc_set_space(p, NULL);
	spin_unlock(&proc_lock);
	vm_destroy(vm);
	proc_vfork_done(p);
	SDT_CTR3(proc, , , exit, SDT_ARGS2(exit_reason(wait_status), wait_status), KTR_PROC,
		 "exit: pid %u status %#x name %s", p->pid, wait_status, ktr_intern(p->name));
	SDT_PROBE3(sched, , , sched_process_exit, ktr_intern(p->name), p->pid, curthread()->prio);
	HOOK_RUN(proc_exit);
	KTR_STATE1(KTR_SCHED, "thread", curthread()->ident, "proc exit", "prio:%d",
		   curthread()->prio);

	spin_lock(&proc_lock);
	give_children_away(p);
	p->wait_status = wait_status;
	p->cpu_ns = thread_cpu_ns() + p->children_ns;
	p->thread = NULL;
	p->state = PROC_ZOMBIE;
	curthread()->proc = NULL;
	proc_signal_info_locked(p->parent, SIGCHLD,
				&(struct proc_siginfo){exit_reason(wait_status), p->pid,
						       .uid = p->uid,
						       .status = exit_value(wait_status)});
	wakeup(p->parent);
	spin_unlock(&proc_lock);
	thread_exit();
}

int64_t
sys_exit(const uint64_t a[6])
{
	proc_exit((int)(a[0] & 0xff) << 8);
}

int64_t
sys_exit_group(const uint64_t a[6])
{
	return sys_exit(a);
}

/* Does `want` (wait4's pid) name this child? */
static bool
wanted(const struct proc *c, int64_t want)
{
	if (want > 0)
		return c->pid == (uint32_t)want;
	if (want == 0)
		return c->pgid == curproc()->pgid;
	return want == -1 || c->pgid == (uint32_t)-want;
}

/* Finds a child with news, and removes a zombie from the tree. NULL: none. proc_lock held. */
static struct proc *
find_child(int64_t want, int options, bool *any)
{
	*any = false;
	list_for_each (l, &curproc()->children) {
		struct proc *c = list_entry(l, struct proc, sibling);
		if (!wanted(c, want))
			continue;
		*any = true;
		if (c->state == PROC_ZOMBIE) {
			list_remove(&c->sibling);
			list_remove(&c->all);
			return c;
		}
		if (c->status_new &&
		    (options & (WIFSTOPPED(c->wait_status) ? WUNTRACED : WCONTINUED))) {
			c->status_new = false;
			return c;
		}
	}
	return NULL;
}

int64_t
sys_wait4(const uint64_t a[6])
{
	int64_t want = (int32_t)a[0], pid;
	int options = (int)a[2], status;
	struct proc *c;
	bool any, gone;

	if (options & ~(WNOHANG | WUNTRACED | WCONTINUED))
		return -EINVAL;
	spin_lock(&proc_lock);
	while ((c = find_child(want, options, &any)) == NULL) {
		int r = !any ? -ECHILD : options & WNOHANG ? 0 : 1;
		if (r == 1 &&
		    (r = sleep_on(curproc(), &proc_lock, "wait", SLEEP_INTR, DEADLINE_NEVER)) == 0)
			continue;
		spin_unlock(&proc_lock);
		return r;
	}
	pid = c->pid;
	status = c->wait_status;
	gone = c->state == PROC_ZOMBIE;
	spin_unlock(&proc_lock);
	CTR3(KTR_PROC, "wait: pid %d status %#x by %u", (int)pid, status, curproc()->pid);
	if (gone) {
		curproc()->children_ns += c->cpu_ns;
		proc_free(c);
	}
	if (a[1] != 0 && copy_out(a[1], &status, sizeof(status)) != 0)
		return -EFAULT;
	return pid;
}

static void
init_main(void *arg)
{
	static char *const env[] = {"PATH=/bin", "HOME=/", NULL};
	const char *script = arg;
	char *const argv[] = {"init", (char *)(uintptr_t)script, NULL};
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);
	int r = exec_image(curproc(), "/bin/init", argv, env, tf);

	if (r != 0)
		panic("/bin/init: cannot execute, error %d", -r);
	SDT_PROBE0(proc, , , start);
	arch_irq_disable();
	entry_user_return(tf);
	arch_return_to_user(tf);
}

void
proc_start_init(const char *script)
{
	int err;
	struct proc *p = proc_alloc("init", 0, init_main, &err);

	if (p == NULL)
		panic("no memory for process 1");
	p->thread->arg = (void *)(uintptr_t)script;
	p->pid = p->pgid = p->sid = p->thread->tid = 1;
	thread_rename(p->thread, "init");
	p->files = filetable_create(p->ui);
	p->cwd = vnode_lookup(NULL, "/", &err);
	if (p->files == NULL || p->cwd == NULL)
		panic("no memory for process 1");
	p->umask = proc_umask();
	init_proc = p->parent = p;
	sleepq_register_signals(proc_signal_pending);
	rlimit_init(p->limits);
	spin_lock(&proc_lock);
	list_append(&procs, &p->all);
	spin_unlock(&proc_lock);
	CTR1(KTR_PROC, "init: pid %u", p->pid);
	sched_start(p->thread);
}
