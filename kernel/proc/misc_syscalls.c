/*
 * misc_syscalls.c - system calls on memory, time, identity and the machine.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/kestrel.h"
#include "kernel/abi/mman.h"
#include "kernel/abi/prctl.h"
#include "kernel/abi/time.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/shutdown.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/mm/vm.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

#define NS_PER_S 1000000000l

static int
mmu_prot(uint64_t prot, unsigned *out)
{
	if (prot & ~(uint64_t)(PROT_READ | PROT_WRITE | PROT_EXEC))
		return -EINVAL;
	if ((prot & (PROT_WRITE | PROT_EXEC)) == (PROT_WRITE | PROT_EXEC))
		return -EACCES; /* W^X holds for programs, too */
	*out = (prot & (PROT_READ | PROT_WRITE) ? MMU_READ : 0) |
	       (prot & PROT_WRITE ? MMU_WRITE : 0) | (prot & PROT_EXEC ? MMU_EXEC | MMU_READ : 0);
	return 0;
}

/* Does RLIMIT_AS allow so many bytes more? */
static bool
may_grow(const struct vmspace *vm, uint64_t bytes)
{
	uint64_t limit = proc_limit(RLIMIT_AS), size = vm_size(vm);

	return size <= limit && bytes <= limit - size;
}

int64_t
sys_mmap(const uint64_t a[6])
{
	struct vmspace *vm = curproc()->vm;
	uint64_t start = a[0], size = page_round_up(a[1]);
	unsigned prot;
	int r = mmu_prot(a[2], &prot);

	if (r != 0)
		return r;
	if (a[1] == 0 || size == 0 || !(a[3] & MAP_PRIVATE) || !(a[3] & MAP_ANONYMOUS))
		return -EINVAL;
	if (a[3] & MAP_FIXED) {
		r = vm_unmap(vm, start, size);
		if (r != 0)
			return r;
	} else {
		start = vm_find_free(vm, page_round_down(start), size);
		if (start == 0)
			return -ENOMEM;
	}
	if (!may_grow(vm, size))
		return -ENOMEM;
	r = vm_map(vm, start, size, prot);
	return r != 0 ? r : (int64_t)start;
}

int64_t
sys_munmap(const uint64_t a[6])
{
	return vm_unmap(curproc()->vm, a[0], a[1]);
}

int64_t
sys_mprotect(const uint64_t a[6])
{
	unsigned prot;
	int r = mmu_prot(a[2], &prot);

	return r != 0 ? r : vm_protect(curproc()->vm, a[0], a[1], prot);
}

int64_t
sys_brk(const uint64_t a[6])
{
	struct vmspace *vm = curproc()->vm;
	uint64_t end = vm_brk_end(vm);

	if (a[0] > end && !may_grow(vm, page_round_up(a[0] - end)))
		return (int64_t)end;
	return (int64_t)vm_brk(vm, a[0]);
}

int64_t
sys_sched_yield(const uint64_t a[6])
{
	sched_yield();
	return 0;
}

int64_t
sys_nanosleep(const uint64_t a[6])
{
	struct timespec ts, left = {0, 0};
	uint64_t end, now;
	int r;

	if (copy_in(&ts, a[0], sizeof(ts)) != 0)
		return -EFAULT;
	if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= NS_PER_S || ts.tv_sec > 1l << 30)
		return -EINVAL;
	end = clock_ns() + (uint64_t)(ts.tv_sec * NS_PER_S + ts.tv_nsec);
	r = thread_sleep_ns((uint64_t)(ts.tv_sec * NS_PER_S + ts.tv_nsec), SLEEP_INTR, "nanslp");
	if (r == -EINTR && a[1] != 0) {
		now = clock_ns();
		if (now < end) {
			left.tv_sec = (int64_t)((end - now) / NS_PER_S);
			left.tv_nsec = (int64_t)((end - now) % NS_PER_S);
		}
		if (copy_out(a[1], &left, sizeof(left)) != 0)
			return -EFAULT;
	}
	return r;
}

int64_t
sys_clock_gettime(const uint64_t a[6])
{
	uint64_t now = a[0] == CLOCK_REALTIME ? clock_real_ns(clock_ns()) : clock_ns();
	struct timespec ts = {(int64_t)(now / NS_PER_S), (int64_t)(now % NS_PER_S)};

	if (a[0] != CLOCK_MONOTONIC && a[0] != CLOCK_REALTIME)
		return -EINVAL;
	return copy_out(a[1], &ts, sizeof(ts));
}

int64_t
sys_getpid(const uint64_t a[6])
{
	return curproc()->pid;
}

int64_t
sys_gettid(const uint64_t a[6])
{
	return curthread()->tid;
}

int64_t
sys_set_tid_address(const uint64_t a[6])
{
	return sys_gettid(a); /* one thread a process: nobody waits at the address */
}

int64_t
sys_getppid(const uint64_t a[6])
{
	uint32_t pid;

	spin_lock(&proc_lock); /* keeps the parent from being freed in between */
	pid = curproc()->parent->pid;
	spin_unlock(&proc_lock);
	return pid;
}

int64_t
sys_getuid(const uint64_t a[6])
{
	return curproc()->uid;
}

int64_t
sys_geteuid(const uint64_t a[6])
{
	return sys_getuid(a);
}

int64_t
sys_setuid(const uint64_t a[6])
{
	struct proc *p = curproc();
	struct uidinfo *ui, *old = p->ui;

	if (a[0] > INT32_MAX)
		return -EINVAL;
	if (p->uid != 0 && p->uid != a[0])
		return -EPERM;
	ui = uidinfo_enter((uint32_t)a[0]);
	if (ui == NULL)
		return -EAGAIN;
	if (!uidinfo_charge(ui, UIDINFO_KMEM, kmalloc_size(p))) {
		uidinfo_leave(ui);
		return -EAGAIN;
	}
	CTR3(KTR_PROC, "setuid: pid %u from %u to %u", p->pid, p->uid, (uint32_t)a[0]);
	/* Files and memory that the process has already stay counted for the old user. */
	spin_lock(&proc_lock);
	p->ui = ui;
	p->uid = ui->uid;
	spin_unlock(&proc_lock);
	uidinfo_release(old, UIDINFO_KMEM, kmalloc_size(p));
	uidinfo_leave(old);
	return 0;
}

/* The caller (pid 0) or one of its children. NULL: not among those. proc_lock held. */
static struct proc *
self_or_child(uint64_t pid)
{
	struct proc *p = curproc();

	if (pid == 0 || pid == p->pid)
		return p;
	list_for_each (l, &p->children) {
		struct proc *c = list_entry(l, struct proc, sibling);
		if (c->pid == pid && c->state != PROC_ZOMBIE)
			return c;
	}
	return NULL;
}

/*
 * May p join the group? Yes if it is p's own, if the caller is user 0, or if a process of the
 * caller's user is in it. proc_lock held.
 */
static bool
may_join(const struct proc *p, uint32_t pgid)
{
	if (pgid == p->pid)
		return true;
	for_each_proc (q) {
		if (q->pgid == pgid && (curproc()->uid == 0 || curproc()->uid == q->uid))
			return true;
	}
	return false;
}

int64_t
sys_setpgid(const uint64_t a[6])
{
	uint32_t pgid = (uint32_t)a[1];
	struct proc *p;
	int r = 0;

	if ((int32_t)a[1] < 0)
		return -EINVAL;
	spin_lock(&proc_lock);
	p = self_or_child((uint32_t)a[0]);
	if (p == NULL)
		r = -ESRCH;
	else if (pgid != 0 && !may_join(p, pgid))
		r = -EPERM;
	else
		p->pgid = pgid != 0 ? pgid : p->pid;
	spin_unlock(&proc_lock);
	CTR3(KTR_PROC, "setpgid: pid %u pgid %u error %d", (uint32_t)a[0], pgid, -r);
	return r;
}

int64_t
sys_getpgid(const uint64_t a[6])
{
	int64_t r = -ESRCH;

	spin_lock(&proc_lock);
	for_each_proc (p) {
		if (a[0] == 0 ? p == curproc() : p->pid == (uint32_t)a[0])
			r = p->pgid;
	}
	spin_unlock(&proc_lock);
	return r;
}

int64_t
sys_prctl(const uint64_t a[6])
{
	char name[16] = "";
	struct proc *p = curproc();

	if (a[0] != PR_SET_NAME)
		return -EINVAL;
	for (unsigned i = 0; i < sizeof(name) - 1; i++) {
		if (copy_in(&name[i], a[1] + i, 1) != 0)
			return -EFAULT;
		if (name[i] == '\0')
			break;
	}
	thread_rename(curthread(), name);
	spin_lock(&proc_lock);
	strlcpy(p->name, name, sizeof(p->name));
	spin_unlock(&proc_lock);
	return 0;
}

int64_t
sys_arch_prctl(const uint64_t a[6])
{
	enum { ARCH_SET_FS = 0x1002, ARCH_GET_FS = 0x1003 }; /* Linux asm/prctl.h */

	if (a[0] == ARCH_GET_FS)
		return copy_out(a[1], &curthread()->tls, sizeof(curthread()->tls));
	if (a[0] != ARCH_SET_FS)
		return -EINVAL;
	if (a[1] >= ARCH_USER_END)
		return -EPERM;
	irq_push();
	curthread()->tls = a[1];
	arch_context_prepare((uintptr_t)curthread()->kstack + KSTACK_SIZE, a[1]);
	irq_pop();
	return 0;
}

int64_t
sys_shutdown(const uint64_t a[6])
{
	if (curproc()->uid != 0)
		return -EPERM;
	if (a[0] == SHUTDOWN_REBOOT)
		shutdown_reboot();
	if (a[0] != SHUTDOWN_POWEROFF || a[1] > 63)
		return -EINVAL;
	shutdown_poweroff((unsigned)a[1]);
}
