/*
 * id_syscalls.c - who a process is: numbers of processes, process groups, sessions, users and
 * groups. Locking: proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

static int ngroups_max = GROUPS_MAX;
SYSCTL_INT(kernel_ngroups_max, "kernel.ngroups_max", 0, &ngroups_max, 0, 0,
	   "supplementary groups that a process may have");

SYSCALL_IS(getpid, curproc()->pid)
SYSCALL_IS(gettid, curthread()->tid)

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

	spin_lock(&proc_lock); /* the lock keeps the parent from being freed in between */
	pid = curproc()->parent->pid;
	spin_unlock(&proc_lock);
	return pid;
}

void
creds_get(struct creds *c)
{
	const struct proc *p = curproc();

	spin_lock(&proc_lock);
	*c = (struct creds){.uid = p->uid,
			    .ruid = p->ruid,
			    .suid = p->suid,
			    .fsuid = p->fsuid,
			    .gid = p->gid,
			    .rgid = p->rgid,
			    .sgid = p->sgid,
			    .fsgid = p->fsgid,
			    .ngroups = p->ngroups,
			    .caps = p->caps,
			    .undumpable = p->undumpable};
	memcpy(c->groups, p->groups, sizeof(c->groups));
	spin_unlock(&proc_lock);
}

void
creds_give(struct proc *p, const struct creds *c)
{
	p->uid = c->uid;
	p->ruid = c->ruid;
	p->suid = c->suid;
	p->fsuid = c->fsuid;
	p->gid = c->gid;
	p->rgid = c->rgid;
	p->sgid = c->sgid;
	p->fsgid = c->fsgid;
	p->ngroups = c->ngroups;
	memcpy(p->groups, c->groups, sizeof(p->groups));
	p->caps = c->caps;
	p->undumpable = c->undumpable;
}

/* The numbers of a user, or of a group, that a process has. */
struct three {
	uint32_t real, effective, saved;
};

#define KEEP UINT32_MAX

enum how { SET_ONE, SET_TWO, SET_THREE };

static bool
one_of(uint32_t id, const struct three *now)
{
	return id == KEEP || id == now->real || id == now->effective || id == now->saved;
}

/*
 * Finds the ids that a process with the ids `now` gets if it asks for `to`, by setuid (only
 * to->effective), setreuid (all but to->saved) or setresuid; or by the same calls for groups. 0 or
 * -EPERM.
 */
static int
choose_ids(enum how how, bool may, const struct three *now, struct three *to)
{
	bool good;

	if (how == SET_ONE)
		good = to->effective == now->real || to->effective == now->saved;
	else if (how == SET_TWO)
		good = (to->real == KEEP || to->real == now->real || to->real == now->effective) &&
		       one_of(to->effective, now);
	else
		good =
		    one_of(to->real, now) && one_of(to->effective, now) && one_of(to->saved, now);
	if (!good && !may)
		return -EPERM;
	if (how == SET_ONE && may)
		to->real = to->saved = to->effective;
	if (how == SET_TWO &&
	    (to->real != KEEP || (to->effective != KEEP && to->effective != now->real)))
		to->saved = to->effective != KEEP ? to->effective : now->effective;
	to->real = to->real != KEEP ? to->real : now->real;
	to->effective = to->effective != KEEP ? to->effective : now->effective;
	to->saved = to->saved != KEEP ? to->saved : now->saved;
	return 0;
}

static bool
are_ids(const struct three *ids)
{
	return (ids->real <= INT32_MAX || ids->real == KEEP) &&
	       (ids->effective <= INT32_MAX || ids->effective == KEEP) &&
	       (ids->saved <= INT32_MAX || ids->saved == KEEP);
}

/*
 * Changes the rights of a process whose ids change. If one was 0 and none is now, it loses its
 * permitted rights, unless `keep` is set. Rights are effective while the effective user is 0.
 */
static void
lose_caps(struct caps *c, const struct three *from, const struct three *to)
{
	bool was_root = from->real == 0 || from->effective == 0 || from->saved == 0;
	bool is_root = to->real == 0 || to->effective == 0 || to->saved == 0;
	uint64_t effective = c->effective;

	if (was_root && !is_root && !c->keep)
		c->permitted = effective = 0;
	if (from->effective == 0 && to->effective != 0)
		effective = 0;
	if (from->effective != 0 && to->effective == 0)
		effective = c->permitted;
	__atomic_store_n(&c->effective, effective, __ATOMIC_RELAXED);
}

/* Makes the process one of the user who is charged; *ui gets the old one. proc_lock held. */
static void
exchange_user(struct proc *p, struct uidinfo **ui)
{
	struct uidinfo *old = p->ui;

	p->ui = *ui;
	*ui = old;
	for_each_lwp(l, p) sched_set_user(l->thread, p->ui->groups);
}

/*
 * Enters a user and charges him for p, too. If the caller may become any user, he is charged even
 * if that is too much: a program that gives up its rights may not look whether it could, and must
 * not go on with them. NULL if it is too much for other callers, or there is no memory.
 */
static struct uidinfo *
enter_user(const struct proc *p, uint32_t uid)
{
	bool any = capable(CAP_SETUID);
	struct uidinfo *ui = any ? uidinfo_enter_anyway(uid) : uidinfo_enter(uid);

	if (ui != NULL && any)
		uidinfo_charge_anyway(ui, UIDINFO_KMEM, kmalloc_size(p));
	if (ui == NULL || any || uidinfo_charge(ui, UIDINFO_KMEM, kmalloc_size(p)))
		return ui;
	uidinfo_leave(ui);
	return NULL;
}

static void
leave_user(const struct proc *p, struct uidinfo *ui)
{
	uidinfo_release(ui, UIDINFO_KMEM, kmalloc_size(p));
	uidinfo_leave(ui);
}

/* Sets the user ids; the real user becomes the one who is charged. proc_lock held. */
static int
set_users_locked(struct proc *p, enum how how, struct three to, struct uidinfo **ui)
{
	const struct three now = {p->ruid, p->uid, p->suid};
	int error = choose_ids(how, capable(CAP_SETUID), &now, &to);

	if (error != 0)
		return error;
	if (to.real != (*ui)->uid)
		return -EAGAIN; /* another thread was faster */
	CTR3(KTR_PROC, "setuid: pid %u from %u to %u", p->pid, p->uid, to.effective);
	exchange_user(p, ui);
	p->crowds = proc_is_crowded(p);
	lose_caps(&p->caps, &now, &to);
	if (to.effective != now.effective)
		p->death_signal = 0;
	p->undumpable |= memcmp(&now, &to, sizeof(now)) != 0;
	p->ruid = to.real;
	p->uid = p->fsuid = to.effective;
	p->suid = to.saved;
	return 0;
}

static int64_t
set_users(enum how how, struct three to)
{
	struct proc *p = curproc();
	struct three now, chosen = to;
	struct uidinfo *ui;
	int error;

	if (!are_ids(&to) || (how == SET_ONE && to.effective == KEEP))
		return -EINVAL;
	spin_lock(&proc_lock); /* other threads do the same */
	ui = p->ui;
	now = (struct three){p->ruid, p->uid, p->suid};
	error = choose_ids(how, capable(CAP_SETUID), &now, &chosen);
	if (error != 0 || chosen.real == ui->uid) {
		error = set_users_locked(p, how, to, &ui);
		spin_unlock(&proc_lock);
		return error;
	}
	spin_unlock(&proc_lock);
	ui = enter_user(p, chosen.real);
	if (ui == NULL)
		return -EAGAIN;
	/* Files and memory that the process has already stay counted for the old user. */
	spin_lock(&proc_lock);
	error = set_users_locked(p, how, to, &ui);
	spin_unlock(&proc_lock);
	leave_user(p, ui);
	return error;
}

SYSCALL_IS(getuid, curproc()->ruid)
SYSCALL_IS(geteuid, curproc()->uid)
SYSCALL_IS(setuid, set_users(SET_ONE, (struct three){KEEP, (uint32_t)a[0], KEEP}))
SYSCALL_IS(setreuid, set_users(SET_TWO, (struct three){(uint32_t)a[0], (uint32_t)a[1], KEEP}))
SYSCALL_IS(setresuid,
	   set_users(SET_THREE, (struct three){(uint32_t)a[0], (uint32_t)a[1], (uint32_t)a[2]}))

/* The caller (pid 0) or one of its children. NULL: not among those. proc_lock held. */
static struct proc *
self_or_child(uint32_t pid)
{
	struct proc *self = curproc(), *p = pid != 0 ? proc_find(pid) : self;

	return p == self || (p != NULL && p->parent == self && p->state != PROC_ZOMBIE) ? p : NULL;
}

/*
 * May p join the group, as its own or because of a process in it? That has to be in p's session,
 * and of the caller's user, unless the caller has CAP_KILL. proc_lock held.
 */
static bool
may_join(const struct proc *p, uint32_t pgid)
{
	struct proc *first;

	if (pgid == p->pid)
		return true;
	first = proc_find_group(pgid);
	for_each_member(q, first)
	{
		if (q->sid == p->sid && (capable(CAP_KILL) || curproc()->uid == q->uid))
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
	else if (p != curproc() && p->sid == curproc()->sid && p->executed)
		r = -EACCES; /* it may have looked at its group */
	else if (p->sid == p->pid || p->sid != curproc()->sid || (pgid != 0 && !may_join(p, pgid)))
		r = -EPERM;
	else
		proc_set_group(p, pgid != 0 ? pgid : p->pid);
	spin_unlock(&proc_lock);
	CTR3(KTR_PROC, "setpgid: pid %u pgid %u error %d", (uint32_t)a[0], pgid, -r);
	return r;
}

/* The group or session of a process; 0: of the current one. -ESRCH. */
static int64_t
group_of(uint32_t pid, bool session)
{
	const struct proc *p;
	int64_t r = -ESRCH;

	spin_lock(&proc_lock);
	p = pid != 0 ? proc_find_any(pid) : curproc();
	if (p != NULL)
		r = session ? p->sid : p->pgid;
	spin_unlock(&proc_lock);
	return r;
}

SYSCALL_IS(getpgid, group_of((uint32_t)a[0], false))
SYSCALL_IS(getpgrp, curproc()->pgid)
SYSCALL_IS(getsid, group_of((uint32_t)a[0], true))

int64_t
sys_setsid(const uint64_t a[6])
{
	struct proc *self = curproc();
	int64_t r = self->pid;

	spin_lock(&proc_lock);
	if (proc_find_group(self->pid) != NULL)
		r = -EPERM;
	if (r > 0) {
		self->sid = self->pid;
		proc_set_group(self, self->pid);
		self->no_tty = false;
	}
	spin_unlock(&proc_lock);
	CTR2(KTR_PROC, "setsid: pid %u result %ld", self->pid, r);
	return r;
}

uint32_t
proc_group_session(uint32_t pgid)
{
	const struct proc *p;
	uint32_t sid;

	spin_lock(&proc_lock);
	p = proc_find_group(pgid);
	sid = p != NULL ? p->sid : 0;
	spin_unlock(&proc_lock);
	return sid;
}

bool
proc_group_own(uint32_t pgid)
{
	const struct proc *self = curproc();
	bool any = false, own = false;
	struct proc *first;

	spin_lock(&proc_lock);
	first = proc_find_group(pgid);
	for_each_member(p, first)
	{
		if (p->sid != self->sid || p->state == PROC_ZOMBIE)
			continue;
		any = true;
		own |= p->uid == self->uid || p->parent == self;
	}
	spin_unlock(&proc_lock);
	return own || !any;
}

/* Is gid `own`, or one of the supplementary groups? A kernel thread has none. */
static bool
in_group(const struct proc *p, uint32_t own, uint32_t gid)
{
	unsigned n;

	if (p == NULL || own == gid)
		return own == gid;
	n = __atomic_load_n(&p->ngroups, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < n; i++)
		if (p->groups[i] == gid)
			return true;
	return false;
}

bool
proc_in_group(uint32_t gid)
{
	return in_group(curproc(), proc_group(), gid);
}

bool
proc_in_real_group(uint32_t gid)
{
	const struct proc *p = curproc();

	return in_group(p, p != NULL ? p->rgid : proc_group(), gid);
}

static int64_t
set_groups_to(enum how how, struct three to)
{
	struct proc *p = curproc();
	struct three now;
	int error;

	if (!are_ids(&to) || (how == SET_ONE && to.effective == KEEP))
		return -EINVAL;
	spin_lock(&proc_lock);
	now = (struct three){p->rgid, p->gid, p->sgid};
	error = choose_ids(how, capable(CAP_SETGID), &now, &to);
	if (error == 0) {
		CTR3(KTR_PROC, "setgid: pid %u from %u to %u", p->pid, p->gid, to.effective);
		if (to.effective != now.effective) {
			p->death_signal = 0;
			p->undumpable = true;
		}
		p->rgid = to.real;
		p->gid = p->fsgid = to.effective;
		p->sgid = to.saved;
	}
	spin_unlock(&proc_lock);
	return error;
}

/*
 * May the caller trace p? All ids of p must be the caller's, and p's rights among the caller's, as
 * ptrace(2) says. A process that has changed its user may have secrets of the old one in its
 * memory, until it executes a program.
 */
bool
proc_may_trace(const struct proc *p)
{
	const struct proc *self = curproc();
	uint32_t uid = self->uid, gid = self->gid;

	return capable(CAP_SYS_PTRACE) ||
	       (!p->undumpable && (p->caps.permitted & ~self->caps.permitted) == 0 &&
		uid == p->ruid && uid == p->uid && uid == p->suid && gid == p->rgid &&
		gid == p->gid && gid == p->sgid);
}

/*
 * Sets the user as whom the process uses files. Unless that is user 0, it does not use the rights
 * that go beyond the modes of files. Returns the old one, even if nothing has changed.
 */
int64_t
sys_setfsuid(const uint64_t a[6])
{
	struct proc *p = curproc();
	uint32_t to = (uint32_t)a[0], was;
	uint64_t effective;

	spin_lock(&proc_lock);
	was = p->fsuid;
	if (to != KEEP &&
	    (to == p->ruid || to == p->uid || to == p->suid || to == was || capable(CAP_SETUID))) {
		effective = p->caps.effective;
		if (was == 0 && to != 0)
			effective &= ~CAPS_OF_FILES;
		if (was != 0 && to == 0)
			effective |= p->caps.permitted & CAPS_OF_FILES;
		__atomic_store_n(&p->caps.effective, effective, __ATOMIC_RELAXED);
		p->fsuid = to;
		p->undumpable |= to != was;
	}
	spin_unlock(&proc_lock);
	return was;
}

int64_t
sys_setfsgid(const uint64_t a[6])
{
	struct proc *p = curproc();
	uint32_t to = (uint32_t)a[0], was;

	spin_lock(&proc_lock);
	was = p->fsgid;
	if (to != KEEP &&
	    (to == p->rgid || to == p->gid || to == p->sgid || to == was || capable(CAP_SETGID))) {
		p->fsgid = to;
		p->undumpable |= to != was;
	}
	spin_unlock(&proc_lock);
	return was;
}

uint32_t
proc_effective_user(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->uid : 0;
}

uint32_t
proc_effective_group(void)
{
	const struct proc *p = curproc();

	return p != NULL ? p->gid : 0;
}

SYSCALL_IS(getgid, curproc()->rgid)
SYSCALL_IS(getegid, curproc()->gid)
SYSCALL_IS(setgid, set_groups_to(SET_ONE, (struct three){KEEP, (uint32_t)a[0], KEEP}))
SYSCALL_IS(setregid, set_groups_to(SET_TWO, (struct three){(uint32_t)a[0], (uint32_t)a[1], KEEP}))
SYSCALL_IS(setresgid,
	   set_groups_to(SET_THREE, (struct three){(uint32_t)a[0], (uint32_t)a[1], (uint32_t)a[2]}))

int64_t
sys_getgroups(const uint64_t a[6])
{
	struct creds c;

	creds_get(&c);
	if ((int32_t)a[0] < 0 || ((uint32_t)a[0] != 0 && (uint32_t)a[0] < c.ngroups))
		return -EINVAL;
	if ((uint32_t)a[0] != 0 && copy_out(a[1], c.groups, c.ngroups * sizeof(c.groups[0])) != 0)
		return -EFAULT;
	return c.ngroups;
}

int64_t
sys_setgroups(const uint64_t a[6])
{
	uint32_t groups[GROUPS_MAX], n = (uint32_t)a[0];
	struct proc *p = curproc();

	/* Other threads may still see the old number: the rest names no group. */
	for (unsigned i = 0; i < GROUPS_MAX; i++)
		groups[i] = KEEP;

	if (!capable(CAP_SETGID))
		return -EPERM;
	if (n > GROUPS_MAX)
		return -EINVAL;
	if (copy_in(groups, a[1], n * sizeof(groups[0])) != 0)
		return -EFAULT;
	CTR2(KTR_PROC, "setgroups: pid %u groups %u", p->pid, n);
	spin_lock(&proc_lock);
	memcpy(p->groups, groups, sizeof(groups));
	__atomic_store_n(&p->ngroups, n, __ATOMIC_RELEASE); /* pairs with in_group() */
	spin_unlock(&proc_lock);
	return 0;
}

static int64_t
give_ids(const uint64_t a[6], const struct three *ids)
{
	if (copy_out(a[0], &ids->real, sizeof(ids->real)) != 0 ||
	    copy_out(a[1], &ids->effective, sizeof(ids->effective)) != 0 ||
	    copy_out(a[2], &ids->saved, sizeof(ids->saved)) != 0)
		return -EFAULT;
	return 0;
}

int64_t
sys_getresuid(const uint64_t a[6])
{
	struct creds c;

	creds_get(&c);
	return give_ids(a, &(struct three){c.ruid, c.uid, c.suid});
}

int64_t
sys_getresgid(const uint64_t a[6])
{
	struct creds c;

	creds_get(&c);
	return give_ids(a, &(struct three){c.rgid, c.gid, c.sgid});
}
