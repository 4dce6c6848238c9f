/*
 * id_syscalls.c - who a process is: numbers of processes, process groups, sessions, users and
 * groups. Locking: proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "ktr/ktr.h"

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
	curlwp()->clear_tid = a[0];
	return sys_gettid(a);
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
	struct uidinfo *ui, *old;
	bool may;

	if (a[0] > INT32_MAX)
		return -EINVAL;
	ui = uidinfo_enter((uint32_t)a[0]);
	if (ui == NULL)
		return -EAGAIN;
	if (!uidinfo_charge(ui, UIDINFO_KMEM, kmalloc_size(p))) {
		uidinfo_leave(ui);
		return -EAGAIN;
	}
	/* Files and memory that the process has already stay counted for the old user. */
	spin_lock(&proc_lock); /* other threads do the same */
	may = p->uid == 0 || p->uid == a[0];
	old = may ? p->ui : ui;
	if (may) {
		CTR3(KTR_PROC, "setuid: pid %u from %u to %u", p->pid, p->uid, (uint32_t)a[0]);
		p->ui = ui;
		p->changed_uid |= p->uid != ui->uid;
		p->uid = ui->uid;
	}
	spin_unlock(&proc_lock);
	uidinfo_release(old, UIDINFO_KMEM, kmalloc_size(p));
	uidinfo_leave(old);
	return may ? 0 : -EPERM;
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
 * caller's user is in it; and it is in p's session. proc_lock held.
 */
static bool
may_join(const struct proc *p, uint32_t pgid)
{
	if (pgid == p->pid)
		return true;
	for_each_proc (q) {
		if (q->pgid == pgid && q->sid == p->sid &&
		    (curproc()->uid == 0 || curproc()->uid == q->uid))
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
	else if (p->sid == p->pid || (pgid != 0 && !may_join(p, pgid)))
		r = -EPERM;
	else
		p->pgid = pgid != 0 ? pgid : p->pid;
	spin_unlock(&proc_lock);
	CTR3(KTR_PROC, "setpgid: pid %u pgid %u error %d", (uint32_t)a[0], pgid, -r);
	return r;
}

/* The group or session of a process; 0: of the current one. -ESRCH. */
static int64_t
group_of(uint32_t pid, bool session)
{
	int64_t r = -ESRCH;

	spin_lock(&proc_lock);
	for_each_proc (p) {
		if (pid == 0 ? p == curproc() : p->pid == pid)
			r = session ? p->sid : p->pgid;
	}
	spin_unlock(&proc_lock);
	return r;
}

int64_t
sys_getpgid(const uint64_t a[6])
{
	return group_of((uint32_t)a[0], false);
}

int64_t
sys_getpgrp(const uint64_t a[6])
{
	return curproc()->pgid;
}

int64_t
sys_getsid(const uint64_t a[6])
{
	return group_of((uint32_t)a[0], true);
}

int64_t
sys_setsid(const uint64_t a[6])
{
	struct proc *self = curproc();
	int64_t r = self->pid;

	spin_lock(&proc_lock);
	for_each_proc (p) {
		if (p->pgid == self->pid)
			r = -EPERM;
	}
	if (r > 0)
		self->sid = self->pgid = self->pid;
	spin_unlock(&proc_lock);
	CTR2(KTR_PROC, "setsid: pid %u result %ld", self->pid, r);
	return r;
}

bool
proc_in_group(uint32_t gid)
{
	const struct proc *p = curproc();
	unsigned n;

	if (p == NULL || p->gid == gid)
		return gid == 0 || p != NULL;
	n = __atomic_load_n(&p->ngroups, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		if (p->groups[i] == gid)
			return true;
	return false;
}

int64_t
sys_getgid(const uint64_t a[6])
{
	return curproc()->gid;
}

int64_t
sys_getegid(const uint64_t a[6])
{
	return sys_getgid(a);
}

int64_t
sys_setgid(const uint64_t a[6])
{
	struct proc *p = curproc();
	uint32_t gid = (uint32_t)a[0];

	if (gid > INT32_MAX)
		return -EINVAL;
	if (p->uid != 0 && gid != p->gid)
		return -EPERM;
	CTR3(KTR_PROC, "setgid: pid %u from %u to %u", p->pid, p->gid, gid);
	p->gid = gid;
	return 0;
}

int64_t
sys_getgroups(const uint64_t a[6])
{
	uint32_t groups[GROUPS_MAX];
	const struct proc *p = curproc();
	unsigned n;

	spin_lock(&proc_lock);
	n = p->ngroups;
	memcpy(groups, p->groups, sizeof(groups));
	spin_unlock(&proc_lock);
	if ((int32_t)a[0] < 0 || ((uint32_t)a[0] != 0 && (uint32_t)a[0] < n))
		return -EINVAL;
	if ((uint32_t)a[0] != 0 && copy_out(a[1], groups, n * sizeof(groups[0])) != 0)
		return -EFAULT;
	return n;
}

int64_t
sys_setgroups(const uint64_t a[6])
{
	uint32_t groups[GROUPS_MAX] = {0}, n = (uint32_t)a[0];
	struct proc *p = curproc();

	if (p->uid != 0)
		return -EPERM;
	if (n > GROUPS_MAX)
		return -EINVAL;
	if (copy_in(groups, a[1], n * sizeof(groups[0])) != 0)
		return -EFAULT;
	CTR2(KTR_PROC, "setgroups: pid %u groups %u", p->pid, n);
	spin_lock(&proc_lock);
	memcpy(p->groups, groups, sizeof(groups));
	__atomic_store_n(&p->ngroups, n, __ATOMIC_RELAXED);
	spin_unlock(&proc_lock);
	return 0;
}

/* The real, effective and saved number, which are one. */
static int64_t
three_ids(const uint64_t a[6], uint32_t id)
{
	for (unsigned i = 0; i < 3; i++)
		if (copy_out(a[i], &id, sizeof(id)) != 0)
			return -EFAULT;
	return 0;
}

int64_t
sys_getresuid(const uint64_t a[6])
{
	return three_ids(a, curproc()->uid);
}

int64_t
sys_getresgid(const uint64_t a[6])
{
	return three_ids(a, curproc()->gid);
}
