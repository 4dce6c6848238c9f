/* ptrace_syscall.c - ptrace(). Locking: ptrace.h. */
#include "arch/regset.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/ptrace.h"
#include "kernel/fs/uio.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/proc/ptrace_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"

#define UNSTOPPABLE (1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1))

/* For PEEKUSER: struct user begins with the registers; these are the debug registers' part. */
#define USER_DEBUG_REGS 848
#define USER_SIZE       (USER_DEBUG_REGS + 64)

bool
ptrace_may_attach(const struct proc *p)
{
	return p->pid != 1 && p->state != PROC_ZOMBIE && proc_may_trace(p);
}

static struct ptrace *
find_tracee(uint32_t tid)
{
	list_for_each_entry (struct ptrace, pt, &curproc()->tracees, link)
		if (pt->tid == tid && pt->lwp != NULL)
			return pt;
	return NULL;
}

/* Takes a record for l into use. NULL: *error. proc_lock held. */
static int
take_record(struct ptrace **new, struct proc *tracer, struct lwp *l)
{
	struct ptrace *old = l->ptrace, *pt = old != NULL ? old : *new;

	if (old != NULL && old->tracer != NULL)
		return -EPERM;
	/* A thread that was left a moment ago still has its record. */
	if (old != NULL)
		*old = (struct ptrace){.ui = old->ui,
				       .state = old->state,
				       .inside = old->inside,
				       .fpu_set = old->fpu_set,
				       .fpu = old->fpu,
				       .sig = old->sig,
				       .options = (*new)->options,
				       .seized = (*new)->seized};
	else
		*new = NULL;
	pt->capable = capable(CAP_SYS_PTRACE);
	list_init(&pt->link);
	ptrace_attach(pt, tracer, l);
	return 0;
}

/* The thread with the number, which becomes no other program now. NULL and *err. proc_lock held. */
static struct lwp *
lwp_to_attach(uint32_t tid, int *err)
{
	struct lwp *l;

	*err = 0;
	while ((l = lwp_find(tid)) != NULL && l->thread->proc->execing && *err == 0)
		*err = sleep_on(&l->thread->proc->execing, &proc_lock, "exec", SLEEP_INTR,
				DEADLINE_NEVER);
	if (l == NULL)
		*err = -ESRCH;
	return *err == 0 ? l : NULL;
}

static int64_t
attach_to(uint32_t tid, bool seize, uint64_t options)
{
	struct ptrace *pt;
	struct lwp *l;
	int error;

	if (options & ~(uint64_t)PTRACE_O_MASK)
		return -EIO;
	pt = ptrace_alloc();
	if (pt == NULL)
		return -ENOMEM;
	pt->seized = seize;
	pt->options = (uint32_t)options;
	spin_lock(&proc_lock);
	l = lwp_to_attach(tid, &error);
	if (l != NULL) {
		struct proc *p = l->thread->proc;

		error = p == curproc() || !ptrace_may_attach(p) ? -EPERM
								: take_record(&pt, curproc(), l);
		if (error == 0 && !seize)
			proc_signal_send(p, l, &(struct siginfo){SIGSTOP, .si_code = SI_KERNEL},
					 NULL);
		if (error == 0) {
			proc_signals_update(p);
			wakeup(&p->state); /* if the process is stopped, the tracer is told */
		}
	}
	spin_unlock(&proc_lock);
	ptrace_free(pt);
	return error;
}

static int64_t
trace_me(void)
{
	struct ptrace *pt = ptrace_alloc();
	const struct caps *own = &curproc()->caps, *tracer;
	int error = -EPERM;

	if (pt == NULL)
		return -ENOMEM;
	spin_lock(&proc_lock);
	tracer = &curproc()->parent->caps;
	if (curproc()->pid != 1 && ((own->permitted & ~tracer->permitted) == 0 ||
				    (tracer->effective >> CAP_SYS_PTRACE & 1)))
		error = take_record(&pt, curproc()->parent, curlwp());
	spin_unlock(&proc_lock);
	ptrace_free(pt);
	return error;
}

/* Lets a stopped thread go on. proc_lock held. */
static int64_t
ptrace_resume(struct ptrace *pt, uint32_t request, uint64_t sig)
{
	if (sig > NSIG)
		return -EIO;
	pt->sig = (int)sig;
	pt->mode = request;
	if (request == PTRACE_DETACH) {
		pt->mode = PTRACE_CONT;
		ptrace_detach(pt);
		return 0;
	}
	pt->state = PTRACE_RUNS;
	pt->news = false;
	wakeup(&pt->lwp->ptrace);
	return 0;
}

/* What changes or ends a stop, or the thread. proc_lock held. */
static int64_t
ptrace_control(struct ptrace *pt, uint32_t request, uint64_t data)
{
	switch (request) {
	case PTRACE_CONT:
	case PTRACE_SYSCALL:
	case PTRACE_SINGLESTEP:
	case PTRACE_DETACH:
		return ptrace_resume(pt, request, data);
	case PTRACE_LISTEN:
		if (!pt->seized || pt->status >> 16 != PTRACE_EVENT_STOP)
			return -EIO;
		pt->state = PTRACE_LISTENS;
		pt->passed = false;
		if (pt->interrupt || pt->lwp->thread->proc->state != PROC_STOPPED)
			pt->interrupt = true; /* the group's stop has ended meanwhile */
		wakeup(&pt->lwp->ptrace);
		return 0;
	case PTRACE_SETOPTIONS:
		if (data & ~(uint64_t)PTRACE_O_MASK)
			return -EINVAL;
		pt->options = (uint32_t)data;
		return 0;
	default:
		return -EIO;
	}
}

/* What is copied between a stopped thread and the tracer: registers, and others. */
union area {
	struct arch_regs regs;
	struct arch_fpregs fpregs;
	struct siginfo info;
	struct ptrace_syscall_info call;
	uint64_t word;
	int32_t number;
};

static struct arch_trapframe *
frame_of(const struct ptrace *pt)
{
	return arch_user_frame((uintptr_t)pt->lwp->thread->kstack + KSTACK_SIZE);
}

static void
get_call(const struct ptrace *pt, struct ptrace_syscall_info *c)
{
	const struct arch_trapframe *tf = frame_of(pt);
	int64_t r = (int64_t)arch_tf_return(tf);

	*c = (struct ptrace_syscall_info){.op = (uint8_t)pt->call,
					  .arch = ARCH_AUDIT,
					  .instruction_pointer = lwp_pc(pt->lwp, tf),
					  .stack_pointer = arch_tf_sp(tf)};
	if (pt->call == PTRACE_CALL_ENTRY) {
		c->entry.nr = arch_tf_syscall(tf);
		for (unsigned i = 0; i < 6; i++)
			c->entry.args[i] = arch_tf_arg(tf, i);
	} else if (pt->call == PTRACE_CALL_EXIT) {
		c->exit.rval = r;
		c->exit.is_error = r < 0 && r >= -4095;
	}
}

/* Fills the area for a request that reads. Bytes, or -errno. proc_lock held. */
static int64_t
get_area(const struct ptrace *pt, uint32_t request, uint64_t which, union area *a)
{
	const struct thread *t = pt->lwp->thread;
	struct arch_trapframe tf = *frame_of(pt);
	struct arch_fpu fpu;

	switch (request) {
	case PTRACE_GETREGSET:
		switch (which) {
		case NT_PRSTATUS:
			arch_tf_set_pc(&tf, lwp_pc(pt->lwp, &tf));
			arch_regs_get(&a->regs, &tf, t->tls);
			return sizeof(a->regs);
		case NT_PRFPREG:
			arch_fpu_init(&fpu);
			arch_fpregs_get(&a->fpregs, pt->has_fpu || pt->fpu_set ? &pt->fpu : &fpu);
			return sizeof(a->fpregs);
		case NT_ARM_TLS:
			a->word = arch_tf_tls(&tf);
			return ARCH_PTRACE_REGS ? -EINVAL : (int64_t)sizeof(a->word);
		case NT_ARM_SYSTEM_CALL:
			a->number = arch_tf_in_syscall(&tf) ? (int32_t)arch_tf_syscall(&tf) : -1;
			return ARCH_PTRACE_REGS ? -EINVAL : (int64_t)sizeof(a->number);
		}
		return -EINVAL;
	case PTRACE_GETEVENTMSG:
		a->word = pt->message;
		return sizeof(a->word);
	case PTRACE_GETSIGINFO:
		a->info = pt->info;
		return pt->has_info ? (int64_t)sizeof(a->info) : -EINVAL;
	case PTRACE_GETSIGMASK:
		a->word = pt->lwp->sig_restore ? pt->lwp->sig_saved : pt->lwp->sig_blocked;
		return sizeof(a->word);
	case PTRACE_GET_SYSCALL_INFO:
		get_call(pt, &a->call);
		return pt->call == PTRACE_CALL_ENTRY ? 80 : pt->call == PTRACE_CALL_EXIT ? 33 : 24;
	}
	return -EIO;
}

/* Takes the area of a request that writes. proc_lock held. */
static int64_t
set_area(struct ptrace *pt, uint32_t request, uint64_t which, const union area *a)
{
	struct arch_trapframe *tf = frame_of(pt);
	uintptr_t pc = arch_tf_pc(tf), seen = lwp_pc(pt->lwp, tf);

	if (request == PTRACE_SETSIGMASK) {
		pt->lwp->sig_blocked = a->word & ~UNSTOPPABLE;
		pt->lwp->sig_restore = false;
		proc_signals_update_thread(pt->lwp->thread->proc, pt->lwp);
		return 0;
	}
	if (request == PTRACE_SETSIGINFO) {
		pt->info = a->info;
		return pt->has_info ? 0 : -EINVAL;
	}
	switch (which) {
	case NT_PRSTATUS:
		if (!arch_regs_set(&a->regs, tf, &pt->lwp->thread->tls))
			return -EIO;
		if (arch_tf_pc(tf) == seen)
			arch_tf_set_pc(tf, pc); /* perhaps in the copy of a probed instruction */
		return 0;
	case NT_PRFPREG:
		arch_fpregs_set(&a->fpregs, &pt->fpu);
		pt->fpu_set = true;
		return 0;
	case NT_ARM_TLS:
		arch_tf_set_tls(tf, a->word);
		return 0;
	case NT_ARM_SYSTEM_CALL:
		arch_tf_set_syscall(tf, (uint64_t)(int64_t)a->number);
		return 0;
	}
	return -EINVAL;
}

struct ptrace *
ptrace_find_stopped(uint32_t tid)
{
	struct ptrace *pt = find_tracee(tid);

	return pt != NULL && pt->state == PTRACE_STOPPED ? pt : NULL;
}

static int64_t
get_stopped(uint32_t tid, uint32_t request, uint64_t which, union area *a)
{
	const struct ptrace *pt;
	int64_t n = -ESRCH;

	spin_lock(&proc_lock);
	pt = ptrace_find_stopped(tid);
	if (pt != NULL)
		n = get_area(pt, request, which, a);
	spin_unlock(&proc_lock);
	return n;
}

static int64_t
set_stopped(uint32_t tid, uint32_t request, uint64_t which, const union area *a)
{
	struct ptrace *pt;
	int64_t n = -ESRCH;

	spin_lock(&proc_lock);
	pt = ptrace_find_stopped(tid);
	if (pt != NULL)
		n = set_area(pt, request, which, a);
	spin_unlock(&proc_lock);
	return n;
}

/* Copies what a request reads, at most `room` bytes. Returns how many there are. */
static int64_t
read_area(uint32_t tid, uint32_t request, uint64_t which, uint64_t to, uint64_t room)
{
	union area a = {0};
	int64_t n = get_stopped(tid, request, which, &a);

	if (n > 0 && copy_out(to, &a, (uint64_t)n < room ? (uint64_t)n : room) != 0)
		return -EFAULT;
	return n;
}

/* Copies what a request writes; what it does not give stays. Returns 0 or -errno. */
static int64_t
write_area(uint32_t tid, uint32_t request, uint64_t which, uint64_t from, uint64_t room)
{
	union area a = {0};
	uint32_t get = request == PTRACE_SETSIGMASK   ? PTRACE_GETSIGMASK
		       : request == PTRACE_SETSIGINFO ? PTRACE_GETSIGINFO
						      : PTRACE_GETREGSET;
	int64_t n = get_stopped(tid, get, which, &a);

	if (n < 0)
		return n;
	if (copy_in(&a, from, (uint64_t)n < room ? (uint64_t)n : room) != 0)
		return -EFAULT;
	return set_stopped(tid, request, which, &a);
}

static int64_t
ptrace_regset(uint32_t tid, uint32_t request, uint64_t which, uint64_t uvec)
{
	struct uio_vec v;
	int64_t n;

	if (copy_in(&v, uvec, sizeof(v)) != 0)
		return -EFAULT;
	if (request == PTRACE_SETREGSET)
		return write_area(tid, request, which, v.base, v.len);
	n = read_area(tid, request, which, v.base, v.len);
	if (n < 0)
		return n;
	v.len = (uint64_t)n < v.len ? (uint64_t)n : v.len;
	return copy_out(uvec, &v, sizeof(v));
}

/* Reads or writes a word of struct user: a register; or a debug register, which is always 0. */
static int64_t
user_word(uint32_t tid, bool write, uint64_t at, uint64_t data)
{
	union area a = {0};
	int64_t n;

	if (!ARCH_PTRACE_REGS || at % 8 != 0 || at >= USER_SIZE)
		return -EIO;
	n = get_stopped(tid, PTRACE_GETREGSET, NT_PRSTATUS, &a);
	if (n < 0)
		return n;
	if (at >= (uint64_t)n && write)
		return data == 0 && at >= USER_DEBUG_REGS ? 0 : -EIO;
	if (!write)
		return copy_out(data,
				at < (uint64_t)n ? (uint8_t *)&a + at : (uint8_t *)&(uint64_t){0},
				8);
	memcpy((uint8_t *)&a + at, &data, sizeof(data));
	return set_stopped(tid, PTRACE_SETREGSET, NT_PRSTATUS, &a);
}

/* ---- ptrace() ---- */

/* Does requests that need no stopped thread. 1: it is another request. proc_lock held. */
static int64_t
for_running(struct ptrace *pt, uint32_t request)
{
	struct proc *p = pt->lwp->thread->proc;

	if (request == PTRACE_KILL) {
		proc_signal_locked(p, SIGKILL);
		return 0;
	}
	if (request != PTRACE_INTERRUPT)
		return 1;
	if (!pt->seized)
		return -EIO;
	pt->interrupt = true;
	proc_signals_update_thread(p, pt->lwp);
	wakeup(&pt->lwp->ptrace);
	sleepq_interrupt(pt->lwp->thread);
	return 0;
}

static int64_t
control_tracee(uint32_t tid, uint32_t request, uint64_t data)
{
	struct ptrace *pt;
	int64_t r = -ESRCH;

	spin_lock(&proc_lock);
	pt = find_tracee(tid);
	if (pt != NULL)
		r = for_running(pt, request);
	if (r == 1)
		r = pt->state == PTRACE_STOPPED ? ptrace_control(pt, request, data) : -ESRCH;
	spin_unlock(&proc_lock);
	return r;
}

int64_t
sys_ptrace(const uint64_t a[6])
{
	uint32_t request = (uint32_t)a[0], tid = (uint32_t)a[1];
	uint64_t at = a[2], data = a[3];
	bool regs = ARCH_PTRACE_REGS;

	switch (request) {
	case PTRACE_TRACEME:
		return trace_me();
	case PTRACE_ATTACH:
		return attach_to(tid, false, 0);
	case PTRACE_SEIZE:
		return at == 0 ? attach_to(tid, true, data) : -EIO;
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
		return ptrace_memory_word(tid, false, at, data);
	case PTRACE_POKETEXT:
	case PTRACE_POKEDATA:
		return ptrace_memory_word(tid, true, at, data);
	case PTRACE_PEEKUSER:
	case PTRACE_POKEUSER:
		return user_word(tid, request == PTRACE_POKEUSER, at, data);
	case PTRACE_GETREGS:
	case PTRACE_GETFPREGS:
		if (!regs)
			return -EIO;
		at = read_area(tid, PTRACE_GETREGSET,
			       request == PTRACE_GETREGS ? NT_PRSTATUS : NT_PRFPREG, data,
			       UINT64_MAX);
		return (int64_t)at < 0 ? (int64_t)at : 0;
	case PTRACE_SETREGS:
	case PTRACE_SETFPREGS:
		return !regs ? -EIO
			     : write_area(tid, PTRACE_SETREGSET,
					  request == PTRACE_SETREGS ? NT_PRSTATUS : NT_PRFPREG,
					  data, UINT64_MAX);
	case PTRACE_GETREGSET:
	case PTRACE_SETREGSET:
		return ptrace_regset(tid, request, at, data);
	case PTRACE_GETSIGMASK:
		if (at != 8)
			return -EINVAL;
		at = read_area(tid, request, 0, data, at);
		return (int64_t)at < 0 ? (int64_t)at : 0;
	case PTRACE_SETSIGMASK:
		return at == 8 ? write_area(tid, request, 0, data, at) : -EINVAL;
	case PTRACE_SETSIGINFO:
		return write_area(tid, request, 0, data, sizeof(struct siginfo));
	case PTRACE_GETEVENTMSG:
	case PTRACE_GETSIGINFO:
		at = read_area(tid, request, 0, data, UINT64_MAX);
		return (int64_t)at < 0 ? (int64_t)at : 0;
	case PTRACE_GET_SYSCALL_INFO:
		return read_area(tid, request, 0, data, at);
	default:
		return control_tracee(tid, request, data);
	}
}
