/*
 * exec_ids.c - ids and rights that a process has when it has become another program. Locking:
 * proc_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/string.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/proc/ptrace.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/spinlock.h"

HOOK_LIST(exec_gains);

/* May the exec of the current thread give it rights that it has not? proc_lock held. */
static bool
may_gain(void)
{
	return !curproc()->caps.no_new && ptrace_lets_gain(curlwp());
}

void
exec_ids_get(struct vnode *vn, struct exec_ids *ids)
{
	const struct proc *p = curproc();
	bool gains, never = vfs_mount_flags(vn) & MS_NOSUID;

	mutex_lock(&vn->lock); /* with the lock, the owner and the bits are of one moment */
	spin_lock(&proc_lock);
	gains = may_gain() && !never;
	*ids = (struct exec_ids){p->uid, p->gid, .was = {p->ruid, p->uid, p->rgid, p->gid}};
	spin_unlock(&proc_lock);
	if (gains && (vn->mode & S_ISUID))
		ids->uid = vn->uid;
	if (gains && (vn->mode & S_ISGID) && (vn->mode & 010))
		ids->gid = vn->gid;
	mutex_unlock(&vn->lock);
	ids->secure = ids->uid != ids->was[0] || ids->gid != ids->was[2];
}

static bool
exec_ids_differ(const struct exec_ids *ids)
{
	return ids->uid != curproc()->uid || ids->gid != curproc()->gid;
}

int
exec_ids_hold(const struct exec_ids *ids)
{
	struct proc *p = curproc();
	const uint32_t now[] = {p->ruid, p->uid, p->rgid, p->gid};

	spin_lock(&proc_lock);
	/* Since exec_ids_get() a tracer may have come, or another thread may have changed these. */
	p->execing =
	    memcmp(now, ids->was, sizeof(now)) == 0 && (!exec_ids_differ(ids) || may_gain());
	spin_unlock(&proc_lock);
	return p->execing ? 0 : -EAGAIN;
}

void
exec_ids_take(const struct exec_ids *ids)
{
	struct proc *p = curproc();
	struct caps *c = &p->caps;
	uint64_t all = c->bounding | c->inheritable, had = c->permitted;
	bool other = exec_ids_differ(ids), gains = may_gain();

	p->execing = false;
	wakeup(&p->execing);
	if (other)
		p->death_signal = 0;
	p->uid = p->suid = p->fsuid = ids->uid;
	p->gid = p->sgid = p->fsgid = ids->gid;
	c->permitted = ids->uid != 0 && p->ruid != 0 ? 0 : gains ? all : all & had;
	c->effective = ids->uid == 0 ? c->permitted : 0;
	c->keep = false;
	p->undumpable = ids->secure || ids->unreadable || (c->permitted & ~had) != 0;
	if (other || p->undumpable)
		HOOK_RUN(exec_gains);
}
