/*
 * fork.c - new processes, and new threads of a process. Locking: proc_lock.
 */
#include "kernel/proc/proc.h"

#include <abi_md.h>

#include "arch/irq.h"
#include "arch/mmu.h"
#include "arch/regset.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ptrace.h"
#include "kernel/abi/sched.h"
#include "kernel/abi/signal.h"
#include "kernel/entry.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE_TEXT(proc, , , create, "create", ": proc %p parent %p flags %#x", 3,
		      "struct proc *", "struct proc *", "int");
SDT_PROBE_DECLARE(proc, , , start);
SDT_PROBE_DECLARE(proc, , , lwp_start);
SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE_TEXT(sched, , , sched_process_fork, "sched_process_fork",
		      ": parent_comm=%s parent_pid=%u child_comm=%s child_pid=%u", 4, "char *",
		      "pid_t", "char *", "pid_t");

void (*proc_fork_hook)(struct proc *child); /* atomic */

/* A new thread of a program starts here. Its trap frame is a copy, at the top of its stack. */
static void
fork_return(void *arg)
{
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)curthread()->kstack + KSTACK_SIZE);

	struct thread *t = curthread();

	if (t->lwp->set_tid != 0)
		copy_out(t->lwp->set_tid, &t->tid,
			 sizeof(t->tid)); /* like Linux, without a check */
	if (t->lwp->ui == NULL)
		SDT_PROBE0(proc, , , start);
	SDT_PROBE0(proc, , , lwp_start);
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
	uint64_t child_tid;  /* as parent_tid, in the child's memory, with CLONE_CHILD_SETTID */
	uint64_t pidfd;      /* where the descriptor goes, with CLONE_PIDFD */
	uint32_t signal;     /* that the child's end sends */
};

/* Fills the frame and the thread t, which is new, in the address space vm. */
static void
fork_thread(struct thread *t, const struct vmspace *vm, const struct fork_args *f)
{
	struct thread *self = curthread();
	struct arch_trapframe *tf = arch_user_frame((uintptr_t)t->kstack + KSTACK_SIZE);

	t->root = vm_root(vm);
	sched_inherit(t);
	t->lwp->timer_slack = t->lwp->timer_slack_default = curlwp()->timer_slack;
	t->lwp->ioprio = curlwp()->ioprio;
	t->lwp->set_tid = f->flags & CLONE_CHILD_SETTID ? f->child_tid : 0;
	t->lwp->clear_tid = f->flags & CLONE_CHILD_CLEARTID ? f->child_tid : 0;
	t->tls = f->flags & CLONE_SETTLS ? f->tls : self->tls;
	thread_fpu_copy(t);
	memcpy(tf, arch_user_frame((uintptr_t)self->kstack + KSTACK_SIZE), sizeof(*tf));
	arch_tf_set_return(tf, 0);
	if (self->stepped) { /* its debugger steps the parent */
		irq_push();
		arch_user_step(tf, false);
		irq_pop();
	}
	if (f->sp != 0)
		arch_tf_set_sp(tf, f->sp);
	if (f->flags & CLONE_SETTLS)
		arch_tf_set_tls(tf, f->tls);
}

/*
 * Waits until the child has left the current process's address space. If a signal kills the process
 * first, it ends here. It does not run a handler of another signal, which would use the child's
 * stack.
 */
static void
vfork_wait(void)
{
	struct lwp *self = curlwp();
	struct siginfo info = {0};
	int sig = 0;
	bool alone;

	spin_lock(&proc_lock);
	proc_signals_retarget(curproc(), ~self->sig_blocked); /* this thread runs no handlers */
	while (self->vfork_child != NULL && !proc_signal_ends(false))
		sleep_on(&self->vfork_child, &proc_lock, "vfork", 0, DEADLINE_NEVER);
	if (self->vfork_child != NULL) {
		self->vfork_child->vfork_waiter = NULL;
		sig = proc_signal_take_fatal(&info);
	}
	self->vfork_child = NULL;
	if (sig != 0)
		proc_signal_die(sig, info.si_code);
	alone = curproc()->nthreads == 1;
	spin_unlock(&proc_lock);
	if (alone)
		vm_unshare(curproc()->vm);
}

void
proc_vfork_done(struct proc *p)
{
	spin_lock(&proc_lock);
	if (p->vfork_waiter != NULL) {
		p->vfork_waiter->vfork_child = NULL;
		wakeup(&p->vfork_waiter->vfork_child);
		p->vfork_waiter = NULL;
	}
	spin_unlock(&proc_lock);
}

/* Has p's user as many processes and threads as RLIMIT_NPROC allows? */
static bool
too_many(const struct proc *p)
{
	return p->ruid != 0 && !capable(CAP_SYS_RESOURCE) && !capable(CAP_SYS_ADMIN) &&
	       uidinfo_held(p->ui, UIDINFO_PROC) >= proc_limit(RLIMIT_NPROC);
}

bool
proc_is_crowded(const struct proc *p)
{
	return uidinfo_is_crowded(p->ui) ||
	       (p->ui != &uidinfo_root &&
		uidinfo_held(p->ui, UIDINFO_PROC) > proc_limit(RLIMIT_NPROC));
}

/* Copies the table of files, or adds a reference to it. NULL: no memory. */
static struct filetable *
fork_files(struct proc *p, struct proc *parent, uint64_t flags)
{
	if (!(flags & CLONE_FILES))
		return filetable_clone(parent->files, p->ui);
	__atomic_fetch_add(&parent->files->refs, 1, __ATOMIC_RELAXED);
	parent->shares_files = p->shares_files = true;
	return parent->files;
}

/* Makes the file of CLONE_PIDFD, and its descriptor, told but not open yet. 0 or -errno. */
static int
fork_pidfd(const struct proc *p, uint64_t to, struct file **f, int *fd)
{
	int error;

	*f = pidfd_make(p, &error);
	if (*f == NULL)
		return error;
	*fd = filetable_reserve();
	error = *fd < 0 ? *fd : copy_out(to, fd, sizeof(*fd)) != 0 ? -EFAULT : 0;
	if (error == 0)
		return 0;
	if (*fd >= 0)
		filetable_fill((unsigned)*fd, NULL, 0);
	file_unref(*f);
	*f = NULL;
	return error;
}

/* Takes back what a child has got that does not come to be. */
static void
fork_discard(struct proc *p, struct ptrace *pt, struct file *f, int fd)
{
	if (f != NULL) {
		filetable_fill((unsigned)fd, NULL, 0);
		file_unref(f);
	}
	lwp_calls_forget(p->thread->lwp);
	proc_discard(p);
	ptrace_free(pt);
}

static int64_t
kernel_clone(const struct fork_args *f)
{
	struct proc *parent = curproc(), *p;
	struct creds creds;
	struct file *pidfd = NULL;
	bool vfork = f->flags & CLONE_VFORK;
	int fd = -1, error;
	int event = vfork                  ? PTRACE_EVENT_VFORK
		    : f->signal != SIGCHLD ? PTRACE_EVENT_CLONE
					   : PTRACE_EVENT_FORK;
	struct ptrace *pt = ptrace_child(event, &error);

	if (error == 0 && too_many(parent))
		error = -EAGAIN;
	creds_get(&creds);
	p = error == 0 ? proc_alloc(curthread()->name, creds.ruid, fork_return, &error) : NULL;
	if (p == NULL) {
		ptrace_free(pt);
		return error;
	}
	/* A parent that has to end runs on this space beside its child. */
	if (f->flags & CLONE_VM)
		vm_share(parent->vm);
	p->vm = f->flags & CLONE_VM ? vm_ref(parent->vm) : vm_fork(parent->vm, p->ui);
	p->files = fork_files(p, parent, f->flags);
	error = 0;
	if (p->vm == NULL || p->files == NULL || lwp_calls_copy(p->thread->lwp, curlwp()) != 0)
		error = -ENOMEM;
	else if (f->flags & CLONE_PIDFD)
		error = fork_pidfd(p, f->pidfd, &pidfd, &fd);
	if (error != 0) {
		fork_discard(p, pt, NULL, fd);
		return error;
	}
	p->umask = parent->umask;
	p->membarrier = parent->membarrier;
	p->personality = parent->personality;
	creds_give(p, &creds);
	fork_thread(p->thread, p->vm, f);

	spin_lock(&proc_lock);
	if (proc_signal_ends(true)) { /* the signal may be the group's: then no member is added */
		spin_unlock(&proc_lock);
		fork_discard(p, pt, pidfd, fd);
		return -EINTR;
	}
	p->thread->follow = curthread()->follow;
	p->cwd = vnode_ref(parent->cwd);
	p->root = parent->root != NULL ? vnode_ref(parent->root) : NULL;
	p->exe = parent->exe != NULL ? vnode_ref(parent->exe) : NULL;
	if (p->exe != NULL)
		vnode_execute_begin(p->exe);
	p->pgid = parent->pgid;
	p->sid = parent->sid;
	p->no_tty = parent->no_tty;
	proc_signals_fork(p, parent, f->flags & CLONE_CLEAR_SIGHAND);
	if ((f->flags & CLONE_VM) && !vfork) /* the parent may use that stack meanwhile */
		p->first.sig_stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
	memcpy(p->limits, parent->limits, sizeof(p->limits));
	cpu_timers_update(p);
	memcpy(p->psargs, parent->psargs, sizeof(p->psargs));
	memcpy(p->program, parent->program, sizeof(p->program));
	p->parent = f->flags & CLONE_PARENT ? parent->parent : parent;
	p->exit_signal = f->flags & CLONE_PARENT ? parent->exit_signal : (uint8_t)f->signal;
	p->parent_execs = f->flags & CLONE_PARENT ? parent->parent_execs : parent->execs;
	if (vfork) {
		p->vfork_waiter = curlwp();
		curlwp()->vfork_child = p;
	}
	list_append(&p->parent->children, &p->sibling);
	proc_join(p);
	ptrace_child_attach(pt, &p->first);
	spin_unlock(&proc_lock);
	if (__atomic_load_n(&proc_fork_hook, __ATOMIC_RELAXED) != NULL)
		proc_fork_hook(p);
	SDT_CTR3(proc, , , create, SDT_ARGS3(p, parent, (int)f->flags), KTR_PROC,
		 "fork: parent %u child %u name %s", parent->pid, p->pid, ktr_intern(p->name));
	SDT_PROBE4(sched, , , sched_process_fork, ktr_intern(curthread()->name), curthread()->tid,
		   ktr_intern(p->name), p->pid);
	uint32_t pid = p->pid; /* the child may run and be freed before we return */
	if (f->flags & CLONE_PARENT_SETTID)
		copy_out(f->parent_tid, &pid, sizeof(pid)); /* like Linux, without a check */
	if (pidfd != NULL)
		filetable_fill((unsigned)fd, pidfd, O_CLOEXEC);
	wake_up_new_task(p->thread);
	ptrace_event(event, pid);
	if (vfork) {
		vfork_wait();
		ptrace_event(PTRACE_EVENT_VFORKDONE, pid);
	}
	return pid;
}

/* Frees a thread's lwp, unless it is the first one, which is a part of its process. */
void
lwp_free(struct lwp *l)
{
	struct uidinfo *ui = l->ui;

	if (ui == NULL)
		return;
	uidinfo_free(ui, l);
	uidinfo_leave(ui);
}

/* Makes another thread of the current process. */
static int64_t
clone_thread(const struct fork_args *f)
{
	struct proc *p = curproc();
	struct uidinfo *ui;
	struct lwp *l;
	struct thread *t;
	uint32_t tid;
	bool ends;
	int error;
	struct ptrace *pt = ptrace_child(PTRACE_EVENT_CLONE, &error);

	ui = error == 0 && !too_many(p) ? uidinfo_enter(p->ruid) : NULL;
	if (ui == NULL) {
		ptrace_free(pt);
		return error != 0 ? error : -EAGAIN;
	}
	l = uidinfo_alloc(ui, sizeof(*l));
	t = l != NULL ? thread_alloc_program(curthread()->name, fork_return, p) : NULL;
	if (t == NULL) {
		uidinfo_free(ui, l);
		uidinfo_leave(ui);
		ptrace_free(pt);
		return -ENOMEM;
	}
	tid = t->tid;
	if (curthread()->sums == NULL)
		sched_count_in(&p->sums); /* it is the only thread */
	lwp_init(l, p, t);
	l->ui = ui;
	l->sig_blocked = curlwp()->sig_blocked;
	l->sig_stack = (struct sigaltstack){.ss_flags = SS_DISABLE};
	vm_share(p->vm);
	fork_thread(t, p->vm, f);
	spin_lock(&proc_lock);
	ends = p->exiting || curlwp()->dying;
	t->follow = curthread()->follow;
	t->follow_exec = curthread()->follow_exec;
	if (!ends) {
		lwp_join(p, l);
		l->stops = curlwp()->stops;
		p->stopping += l->stops;
		ptrace_child_attach(pt, l);
	}
	proc_signals_update(p);
	spin_unlock(&proc_lock);
	if (ends) {
		thread_discard(t);
		lwp_free(l);
		ptrace_free(pt);
		return -EINTR;
	}
	if (f->flags & CLONE_PARENT_SETTID)
		copy_out(f->parent_tid, &tid, sizeof(tid));
	CTR2(KTR_PROC, "thread of a process: pid %u tid %u", p->pid, tid);
	SDT_PROBE4(sched, , , sched_process_fork, ktr_intern(curthread()->name), curthread()->tid,
		   ktr_intern(t->name), tid);
	wake_up_new_task(t);
	ptrace_event(PTRACE_EVENT_CLONE, tid);
	return tid;
}

SYSCALL_IS(fork, kernel_clone(&(struct fork_args){.signal = SIGCHLD}))
SYSCALL_IS(vfork,
	   kernel_clone(&(struct fork_args){.flags = CLONE_VM | CLONE_VFORK, .signal = SIGCHLD}))

static int64_t
do_clone(const struct fork_args *f)
{
	const uint64_t ids = CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
			     CLONE_CHILD_SETTID | CLONE_DETACHED;
	const uint64_t shared =
	    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

	if ((f->flags & CLONE_SETTLS) && f->tls >= ARCH_USER_END)
		return -EPERM;
	/* A thread shares everything. */
	if ((f->flags & ~ids & ~CLONE_SYSVSEM) == (shared & ~CLONE_SYSVSEM))
		return clone_thread(f);
	if ((f->flags & CLONE_FS) && (f->flags & (CLONE_NEWNS | CLONE_NEWUSER)))
		return -EINVAL; /* one root for both, whoever asks */
	if ((f->flags & CLONE_NAMESPACES & ~CLONE_NEWUSER) && !capable(CAP_SYS_ADMIN))
		return -EPERM; /* with it: EINVAL, for there are none */
	/* A process may share its memory and its files, and nothing else. */
	if ((f->flags & ~ids &
	     ~(CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PARENT | CLONE_PIDFD |
	       CLONE_CLEAR_SIGHAND)) ||
	    f->signal > NSIG || ((f->flags & CLONE_PIDFD) && (f->flags & CLONE_DETACHED)) ||
	    ((f->flags & CLONE_PARENT) && curproc() == init_proc))
		return -EINVAL;
	return kernel_clone(f);
}

int64_t
sys_clone(const uint64_t a[6])
{
	if ((a[0] & CLONE_PIDFD) && (a[0] & CLONE_PARENT_SETTID))
		return -EINVAL; /* one argument for both */
	return do_clone(&(struct fork_args){.flags = (uint32_t)a[0] & ~0xffu,
					    .sp = a[1],
					    .parent_tid = a[2],
					    .child_tid = a[CLONE_ARG_CHILD_TID],
					    .pidfd = a[2],
					    .tls = a[CLONE_ARG_TLS],
					    .signal = a[0] & 0xff});
}

int64_t
sys_clone3(const uint64_t a[6])
{
	struct clone_args c = {0};
	int error = copy_in_versioned(&c, sizeof(c), a[0], a[1], CLONE_ARGS_SIZE_VER0);

	if (error != 0)
		return error;
	if ((c.flags & ((0xff & ~CLONE_NEWTIME) | CLONE_DETACHED)) ||
	    ((c.flags & (CLONE_THREAD | CLONE_PARENT)) && c.exit_signal != 0) ||
	    c.exit_signal > NSIG || (c.stack == 0) != (c.stack_size == 0) || c.set_tid_size != 0)
		return -EINVAL;
	return do_clone(&(struct fork_args){.flags = c.flags,
					    .sp = c.stack + c.stack_size,
					    .parent_tid = c.parent_tid,
					    .child_tid = c.child_tid,
					    .pidfd = c.pidfd,
					    .tls = c.tls,
					    .signal = (uint32_t)c.exit_signal});
}

/* There are no namespaces. What else can be shared, threads always share; semop() undoes later. */
int64_t
sys_unshare(const uint64_t a[6])
{
	const uint64_t shared =
	    CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;

	if (a[0] & ~(CLONE_NAMESPACES | shared))
		return -EINVAL;
	if ((a[0] & CLONE_NAMESPACES) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if ((a[0] & CLONE_NAMESPACES) || (a[0] != 0 && curproc()->nthreads > 1))
		return -EINVAL;
	return a[0] & CLONE_FILES ? proc_unshare_files() : 0;
}
