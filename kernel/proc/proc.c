/*
 * proc.c - processes and their threads: what they are made of, and process 1.
 *
 * Locking: proc_lock, a spin lock, guards the tree, threads, states and signals.
 */
#include "kernel/proc/proc.h"

#include <abi_md.h>

#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/prctl.h"
#include "kernel/abi/signal.h"
#include "kernel/entry.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/init.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/proc/vdso.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE(proc, , , start, start);
SDT_PROBE_DECLARE(proc, , , lwp_start);

struct spinlock proc_lock = SPINLOCK_INIT("proc");
struct proc *init_proc;

struct proc *
curproc(void)
{
	struct thread *t = curthread();

	return t != NULL ? t->proc : NULL;
}

struct lwp *
curlwp(void)
{
	return curthread()->lwp;
}

struct held *
proc_held(void)
{
	return &curlwp()->held;
}

bool
proc_is_threaded(void)
{
	const struct proc *p = curproc();

	/* acquire: pairs with the release in do_exit(); what a thread that has ended did is seen */
	return p != NULL &&
	       (__atomic_load_n(&p->nthreads, __ATOMIC_ACQUIRE) > 1 || p->shares_files);
}

int
proc_unshare_files(void)
{
	struct proc *p = curproc();
	struct filetable *old = p->files, *copy;

	if (p->nthreads > 1)
		return -EINVAL;
	if (!p->shares_files)
		return 0;
	copy = filetable_clone(old, p->ui);
	if (copy == NULL)
		return -ENOMEM;
	spin_lock(&proc_lock);
	p->files = copy;
	p->shares_files = false;
	spin_unlock(&proc_lock);
	filetable_destroy(old);
	return 0;
}

struct filetable *
proc_files(void)
{
	return curproc()->files;
}

uint32_t
proc_pid(void)
{
	return curproc()->pid;
}

/* As whom a kernel thread acts. */
static const struct task_cred *
kernel_cred(void)
{
	static const struct task_cred kernel = {.caps = CAP_ALL};
	const struct task_cred *cred = curthread()->cred;

	return cred != NULL ? cred : &kernel;
}

void
task_act_as(const struct task_cred *cred)
{
	curthread()->cred = cred;
}

uint32_t
proc_user(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->fsuid : kernel_cred()->user;
}

uint32_t
proc_resolve(void)
{
	return curproc() != NULL ? curlwp()->held.resolve : 0;
}

uint64_t
proc_caps(void)
{
	const struct proc *p = curproc();

	return p != NULL ? __atomic_load_n(&p->caps.effective, __ATOMIC_RELAXED)
			 : kernel_cred()->caps;
}

uint64_t
proc_real_caps(void)
{
	const struct proc *p = curproc();

	return p->ruid == 0 ? p->caps.permitted : 0;
}

bool
capable(unsigned cap)
{
	return proc_caps() >> cap & 1;
}

uint32_t
proc_group(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->fsgid : kernel_cred()->group;
}

uint32_t
proc_real_user(void)
{
	return curproc()->ruid;
}

struct vnode *
proc_root(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->root : NULL;
}

struct vnode *
proc_cwd(void)
{
	struct proc *p = curproc();
	struct held *h;

	if (!proc_is_threaded())
		return p != NULL ? p->cwd : NULL;
	h = proc_held();
	if (h->cwd == NULL) {
		spin_lock(&proc_lock);
		h->cwd = vnode_ref(p->cwd);
		spin_unlock(&proc_lock);
		curthread()->holds = true;
	}
	return h->cwd;
}

static struct vnode *
exchange_vnode(struct vnode **place, struct vnode *vn)
{
	struct vnode *old;

	spin_lock(&proc_lock);
	old = *place;
	*place = vn;
	spin_unlock(&proc_lock);
	return old;
}

struct vnode *
proc_chdir(struct vnode *vn)
{
	return exchange_vnode(&curproc()->cwd, vn);
}

struct vnode *
proc_change_root(struct vnode *vn)
{
	return exchange_vnode(&curproc()->root, vn);
}

struct lwp *
lwp_next(const struct proc *p, const struct lwp *l)
{
	const struct list *next = l != NULL ? &l->sibling : &p->lwps;

	do
		next = next->next;
	while (next != &p->lwps && list_entry(next, struct lwp, sibling)->thread == NULL);
	return next != &p->lwps ? list_entry(next, struct lwp, sibling) : NULL;
}

void
proc_rename(struct lwp *l, const char *name)
{
	struct proc *p = l->thread->proc;

	thread_rename(l->thread, name);
	if (l != &p->first)
		return;
	strlcpy(p->name, l->thread->name, sizeof(p->name));
	for_each_lwp(other, p) thread_predcache_forget(other->thread);
}

/* For the last threads, each at its number: that number << 32 | the process's. Atomic. */
static uint64_t numbers[1024];
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

uint32_t
proc_number_of(uint32_t tid)
{
	uint64_t number = __atomic_load_n(&numbers[tid % NUMBERS], __ATOMIC_RELAXED);

	return number >> 32 == tid ? (uint32_t)number : 0;
}

/* Makes t a thread of p, or its first one, before p has a number. Its lwp is zeroed. */
void
lwp_init(struct lwp *l, struct proc *p, struct thread *t)
{
	__atomic_store_n(&numbers[t->tid % NUMBERS],
			 (uint64_t)t->tid << 32 | (p->pid != 0 ? p->pid : t->tid),
			 __ATOMIC_RELAXED);
	l->thread = t;
	list_init(&l->sibling);
	t->proc = p;
	t->pid = p->pid != 0 ? p->pid : t->tid;
	t->sums = l != &p->first ? &p->sums : NULL;
	__atomic_store_n(&t->lwp, l, __ATOMIC_RELEASE); /* for lwp_find() */
}

/* The lwp counts as one of p from now on. proc_lock held, or p is not in the tree yet. */
void
lwp_join(struct proc *p, struct lwp *l)
{
	list_append(&p->lwps, &l->sibling);
	p->nthreads++;
	sched_set_user(l->thread, p->ui->groups);
}

struct usage
proc_usage(const struct proc *p)
{
	struct usage sum = p->threads_usage;

	for_each_lwp(l, p) usage_add(&sum, thread_usage(l->thread));
	if (p->vm != NULL)
		usage_add(&sum, (struct usage){.pages = vm_peak(p->vm)});
	return sum;
}

uint32_t
proc_umask(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->umask : 022;
}

bool
proc_signal_kills(void)
{
	bool kills;

	if (!proc_signal_pending())
		return false;
	spin_lock(&proc_lock);
	kills = proc_signal_ends(false);
	spin_unlock(&proc_lock);
	return kills;
}

struct uidinfo *
proc_uidinfo(void)
{
	struct proc *p = curproc();

	return p != NULL ? p->ui : &uidinfo_root;
}

/* Frees a process that has no thread and is not in the tree. */
void
proc_free(struct proc *p)
{
	struct uidinfo *ui = p->ui;

	uidinfo_free(ui, p);
	uidinfo_leave(ui);
}

struct proc *
proc_alloc(const char *name, uint32_t uid, void (*fn)(void *), int *err)
{
	struct uidinfo *ui = uidinfo_enter(uid);
	struct proc *p = ui != NULL ? uidinfo_alloc(ui, sizeof(*p)) : NULL;

	*err = ui == NULL ? -EAGAIN : -ENOMEM;
	if (ui != NULL && p == NULL)
		uidinfo_leave(ui);
	if (p == NULL)
		return NULL;
	p->uid = p->ruid = p->suid = p->fsuid = uid;
	p->ui = ui;
	p->thread = thread_alloc_program(name, fn, p);
	if (p->thread == NULL) {
		proc_free(p);
		return NULL;
	}
	list_init(&p->lwps);
	lwp_init(&p->first, p, p->thread);
	lwp_join(p, &p->first);
	p->pid = p->thread->tid;
	p->start_ns = p->thread->start_ns;
	strlcpy(p->name, p->thread->name, sizeof(p->name));
	itimer_init(&p->alarm, proc_alarm);
	list_init(&p->timers);
	list_init(&p->thread_alarms);
	p->cpu_alarm_ns = UINT64_MAX;
	list_init(&p->sem_undos);
	list_init(&p->children);
	list_init(&p->tracees);
	list_init(&p->sibling);
	list_init(&p->all);
	list_init(&p->group);
	return p;
}

void
proc_set_space(struct proc *p, struct vmspace *vm)
{
	if (p->nthreads != 1)
		panic("process %u changes its space, but has %u threads", p->pid, p->nthreads);
	if (p->vm != NULL)
		usage_add(&p->threads_usage, (struct usage){.pages = vm_peak(p->vm)});
	p->vm = vm;
	curthread()->root = vm != NULL ? vm_root(vm) : kmap_root();
	smp_use_root(curthread()->root);
}

void
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
proc_follow(uint64_t pid, uint32_t follow, bool at_exec, bool (*is_used)(uint32_t follow))
{
	int error = -ESRCH;
	const struct thread *t;
	struct proc *p;

	spin_lock(&proc_lock);
	p = pid <= UINT32_MAX ? proc_find((uint32_t)pid) : NULL;
	t = p != NULL ? p->thread : NULL;
	if (t != NULL)
		error = (t->follow != 0 && is_used(t->follow)) ||
				(t->follow_exec != 0 && is_used(t->follow_exec))
			    ? -EBUSY
			    : 0;
	if (error == 0)
		for_each_lwp(l, p)
		{
			*(at_exec ? &l->thread->follow_exec : &l->thread->follow) = follow;
		}
	spin_unlock(&proc_lock);
	return error;
}

void
proc_follow_executed(void)
{
	struct thread *t = curthread();

	spin_lock(&proc_lock);
	if (t->follow_exec != 0)
		t->follow = t->follow_exec;
	t->follow_exec = 0;
	spin_unlock(&proc_lock);
}

bool
proc_program(uint32_t pid, char path[PROC_PROGRAM])
{
	const struct proc *p;
	bool found;

	spin_lock(&proc_lock);
	p = proc_find(pid);
	found = p != NULL && p->state != PROC_ZOMBIE;
	if (found)
		strlcpy(path, p->program, PROC_PROGRAM);
	spin_unlock(&proc_lock);
	return found;
}

bool
proc_has_number(uint32_t n)
{
	bool used;

	spin_lock(&proc_lock);
	used = proc_find(n) != NULL;
	for_each_proc (p) {
		used |= p->pgid == n || p->sid == n;
		list_for_each_entry (const struct ptrace, pt, &p->tracees, link)
			used |= pt->tid == n;
	}
	spin_unlock(&proc_lock);
	return used;
}

#define TOLD_MAX 10 /* in so many nanoseconds, as on Linux */
#define TOLD_NS  5000000000ul

bool
proc_may_tell(struct proc_told *told, const char *what)
{
	static struct spinlock lock = SPINLOCK_INIT("told");
	unsigned silent = 0;
	uint64_t now;
	bool may;

	spin_lock(&lock);
	now = clock_ns();
	if (told->count == 0 || now - told->since_ns > TOLD_NS) {
		silent = told->count > TOLD_MAX ? told->count - TOLD_MAX : 0;
		*told = (struct proc_told){now, 0};
	}
	may = told->count++ < TOLD_MAX;
	spin_unlock(&lock);
	if (silent > 0)
		printk("%u more %s were not told\n", silent, what);
	return may;
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
	SDT_PROBE0(proc, , , lwp_start);
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
	thread_give_tid(p->thread, 1);
	p->pid = p->pgid = p->sid = p->thread->pid = 1;
	thread_rename(p->thread, "init");
	p->files = filetable_create(p->ui);
	p->cwd = vnode_lookup(NULL, "/", &err);
	if (p->files == NULL || p->cwd == NULL)
		panic("no memory for process 1");
	p->umask = proc_umask();
	p->caps = (struct caps){CAP_ALL, CAP_ALL, .bounding = CAP_ALL};
	p->first.timer_slack = p->first.timer_slack_default = TIMERSLACK_NS;
	init_proc = p->parent = p;
	sleepq_register_signals(proc_signal_pending);
	thread_register_numbers(proc_has_number);
	rlimit_init(p->limits);
	vdso_init();
	spin_lock(&proc_lock);
	proc_join(p);
	spin_unlock(&proc_lock);
	CTR1(KTR_PROC, "init: pid %u", p->pid);
	wake_up_new_task(p->thread);
}
