/*
 * flock.c - locks of whole files that programs agree on. They belong to an open file.
 * Locking: flock_mutex guards vnode.flocks and file.flock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/syscall.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

static struct mutex flock_mutex = MUTEX_INIT("flock");
static struct cond freed;

/* flock_mutex held. */
static void
unlock(struct file *f)
{
	f->vn->flocks = f->flock == LOCK_EX ? 0 : f->vn->flocks - (f->flock == LOCK_SH);
	f->flock = 0;
	cond_broadcast(&freed);
}

void
flock_end(struct file *f)
{
	mutex_lock(&flock_mutex);
	unlock(f);
	mutex_unlock(&flock_mutex);
}

int64_t
sys_flock(const uint64_t a[6])
{
	struct file *f = filetable_get(curproc()->files, (uint32_t)a[0]);
	int op = (int)a[1] & ~LOCK_NB, r = 0;

	if (f == NULL)
		return -EBADF;
	if (op != LOCK_SH && op != LOCK_EX && op != LOCK_UN)
		return -EINVAL;
	mutex_lock(&flock_mutex);
	if (f->flock != op)
		unlock(f); /* as in Linux, others may come before the change */
	while (r == 0 && op != LOCK_UN && f->flock != op) {
		if (op == LOCK_SH ? f->vn->flocks >= 0 : f->vn->flocks == 0) {
			f->vn->flocks = op == LOCK_SH ? f->vn->flocks + 1 : -1;
			f->flock = (uint8_t)op;
		} else {
			r = a[1] & LOCK_NB ? -EAGAIN
					   : cond_wait(&freed, &flock_mutex, "flock", SLEEP_INTR,
						       DEADLINE_NEVER);
		}
	}
	mutex_unlock(&flock_mutex);
	CTR3(KTR_VFS, "flock: fd %d operation %d result %d", (int)a[0], (int)a[1], r);
	return r;
}
