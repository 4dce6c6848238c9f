/*
 * flock.c - locks that programs agree on: of whole files, by flock(); of ranges of bytes, by
 * fcntl().
 *
 * A lock of flock() belongs to an open file. A record lock belongs to a process, whose table of
 * files is its owner: closing any descriptor of the file drops it. An "open file description lock"
 * (F_OFD_SETLK) is a record lock of an open file.
 *
 * Invariant: no two record locks of a vnode and an owner overlap, or touch if they are of one kind.
 *
 * Locking: flock_mutex guards vnode.flocks, vnode.locks, file.flock, and `waiters`. Who waits
 * hears of the locks of his file only.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

static struct mutex flock_mutex = MUTEX_INIT("flock");

/* flock_mutex held. */
static void
flock_unlock(struct file *f)
{
	f->vn->flocks = f->flock == LOCK_EX ? 0 : f->vn->flocks - (f->flock == LOCK_SH);
	f->flock = 0;
	cond_broadcast(&f->vn->unlocked);
}

void
flock_end(struct file *f)
{
	mutex_lock(&flock_mutex);
	flock_unlock(f);
	mutex_unlock(&flock_mutex);
}

int64_t
sys_flock(const uint64_t a[6])
{
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);
	int op = (int)a[1] & ~LOCK_NB, r = 0;

	if (f == NULL)
		return -EBADF;
	if (op != LOCK_SH && op != LOCK_EX && op != LOCK_UN)
		return -EINVAL;
	mutex_lock(&flock_mutex);
	if (op == LOCK_UN)
		flock_unlock(f);
	while (r == 0 && op != LOCK_UN && f->flock != op) {
		/* As in Linux, the old lock goes first, so others may get theirs in between.
		 * Another thread may have given the file the new lock while this one was waiting.
		 */
		if (f->flock != 0)
			flock_unlock(f);
		if (op == LOCK_SH ? f->vn->flocks >= 0 : f->vn->flocks == 0) {
			f->vn->flocks = op == LOCK_SH ? f->vn->flocks + 1 : -1;
			f->flock = (uint8_t)op;
		} else {
			r = a[1] & LOCK_NB ? -EAGAIN
					   : cond_wait(&f->vn->unlocked, &flock_mutex, "flock",
						       SLEEP_INTR, DEADLINE_NEVER);
		}
	}
	mutex_unlock(&flock_mutex);
	CTR3(KTR_VFS, "flock: fd %d operation %d result %d", (int)a[0], (int)a[1], r);
	return r;
}

/* ---- record locks ---- */

struct record_lock {
	struct record_lock *next; /* of the same vnode */
	const void *owner;
	uint64_t start, end; /* bytes; the last one is locked, too */
	bool exclusive;
	int32_t pid; /* the process; -1: the owner is an open file */
	struct uidinfo *ui;
};

/* A process that waits for a lock. */
struct waiter {
	struct waiter *next;
	const void *owner, *holder;
};

static struct waiter *waiters;

/* The first lock that keeps the owner of `want` from having that one, too. flock_mutex held. */
static struct record_lock *
find_conflict(const struct vnode *vn, const struct record_lock *want)
{
	struct record_lock *first = NULL;

	for (struct record_lock *l = vn->locks; l != NULL; l = l->next)
		if (l->owner != want->owner && l->start <= want->end && want->start <= l->end &&
		    (l->exclusive || want->exclusive) && (first == NULL || l->start < first->start))
			first = l;
	return first;
}

static void
link_lock(struct vnode *vn, struct record_lock *l)
{
	l->next = vn->locks;
	vn->locks = l;
}

/* Takes the range of `cut` out of its owner's locks. If that makes two locks of one, the second one
 * is *spare, which becomes NULL. flock_mutex held. */
static void
cut_range(struct vnode *vn, const struct record_lock *cut, struct record_lock **spare)
{
	struct record_lock **at = &vn->locks, *l;

	while ((l = *at) != NULL) {
		bool before = l->start < cut->start;
		bool after = l->end > cut->end;

		if (l->owner != cut->owner || l->end < cut->start || l->start > cut->end) {
			at = &l->next;
		} else if (before && after) {
			**spare = *l;
			(*spare)->ui = cut->ui; /* who paid for it; l may be an earlier user's */
			(*spare)->start = cut->end + 1;
			l->end = cut->start - 1;
			link_lock(vn, *spare);
			*spare = NULL;
			return; /* no other one is in the range */
		} else if (before || after) {
			if (before)
				l->end = cut->start - 1;
			else
				l->start = cut->end + 1;
			at = &l->next;
		} else {
			*at = l->next;
			uidinfo_free(l->ui, l);
		}
	}
}

/*
 * Widens the range of `l`, which is not in vn's list yet, by the ranges of its owner's locks of the
 * same kind that overlap it or touch it. flock_mutex held.
 */
static void
widen_range(const struct vnode *vn, struct record_lock *l)
{
	for (const struct record_lock *o = vn->locks; o != NULL; o = o->next) {
		if (o->owner == l->owner && o->exclusive == l->exclusive &&
		    o->start <= l->end + 1 && l->start <= o->end + 1) {
			l->start = o->start < l->start ? o->start : l->start;
			l->end = o->end > l->end ? o->end : l->end;
		}
	}
}

void
record_locks_end(struct vnode *vn, const void *owner)
{
	const struct record_lock all = {.owner = owner, .end = INT64_MAX};
	struct record_lock *none = NULL;

	mutex_lock(&flock_mutex);
	cut_range(vn, &all, &none);
	cond_broadcast(&vn->unlocked);
	mutex_unlock(&flock_mutex);
}

/* Would `owner` wait for itself, if it waited for `holder`? After some steps: no, as in Linux. */
static bool
is_deadlock(const void *owner, const void *holder)
{
	for (unsigned steps = 0; steps < 10; steps++) {
		const struct waiter *w = waiters;

		while (w != NULL && w->owner != holder)
			w = w->next;
		if (w == NULL)
			return false;
		holder = w->holder;
		if (holder == owner)
			return true;
	}
	return false;
}

/* Waits until nothing keeps the lock away. 0, -EINTR or -EDEADLK. flock_mutex held. */
static int
flock_wait(struct vnode *vn, const struct record_lock *want)
{
	struct waiter self = {.next = waiters, .owner = want->owner}, **at = &waiters;
	const struct record_lock *l;
	int error = 0;

	waiters = &self;
	while (error == 0 && (l = find_conflict(vn, want)) != NULL) {
		self.holder = l->owner;
		if (want->pid != -1 && is_deadlock(want->owner, l->owner))
			error = -EDEADLK;
		else
			error = cond_wait(&vn->unlocked, &flock_mutex, "record lock", SLEEP_INTR,
					  DEADLINE_NEVER);
	}
	while (*at != &self)
		at = &(*at)->next;
	*at = self.next;
	return error;
}

/* Gives its owner the lock `want`, or nothing in its range. wait: until that is possible. */
static int
set_lock(struct vnode *vn, const struct record_lock *want, bool unlock, bool wait)
{
	struct record_lock *l = uidinfo_alloc(want->ui, sizeof(*l));
	struct record_lock *spare = uidinfo_alloc(want->ui, sizeof(*spare));
	int error = l == NULL || spare == NULL ? -ENOLCK : 0;

	mutex_lock(&flock_mutex);
	if (error == 0 && !unlock && find_conflict(vn, want) != NULL)
		error = wait ? flock_wait(vn, want) : -EAGAIN;
	if (error == 0) {
		*l = *want;
		if (!unlock)
			widen_range(vn, l);
		cut_range(vn, l, &spare);
		if (!unlock) {
			link_lock(vn, l);
			l = NULL;
		}
		cond_broadcast(&vn->unlocked);
	}
	mutex_unlock(&flock_mutex);
	uidinfo_free(want->ui, l);
	uidinfo_free(want->ui, spare);
	return error;
}

/* The bytes that a program's struct flock means. 0, -EINVAL or -EOVERFLOW. */
static int
take_range(struct file *f, const struct flock *u, struct record_lock *want)
{
	int64_t start, end = INT64_MAX, base = 0;

	if (u->l_whence < SEEK_SET || u->l_whence > SEEK_END)
		return -EINVAL;
	if (u->l_whence != SEEK_SET)
		base = (int64_t)(u->l_whence == SEEK_CUR ? f->off : vnode_size(f->vn));
	if (__builtin_add_overflow(base, u->l_start, &start))
		return -EOVERFLOW;
	if (u->l_len > 0 && __builtin_add_overflow(start, u->l_len - 1, &end))
		return -EOVERFLOW;
	if (u->l_len < 0) {
		end = start - 1;
		if (__builtin_add_overflow(start, u->l_len, &start))
			return -EINVAL;
	}
	if (start < 0)
		return -EINVAL;
	want->start = (uint64_t)start;
	want->end = (uint64_t)end;
	return 0;
}

static void
give_lock(struct flock *u, const struct record_lock *l)
{
	if (l == NULL) {
		u->l_type = F_UNLCK;
		return;
	}
	*u = (struct flock){.l_type = l->exclusive ? F_WRLCK : F_RDLCK,
			    .l_whence = SEEK_SET,
			    .l_start = (int64_t)l->start,
			    .l_len = l->end == INT64_MAX ? 0 : (int64_t)(l->end - l->start + 1),
			    .l_pid = l->pid};
}

int64_t
record_lock_fcntl(struct filetable *ft, uint64_t fd, int command, uint64_t uflock)
{
	bool ofd = command >= F_OFD_GETLK, get = command == F_GETLK || command == F_OFD_GETLK;
	struct file *f = filetable_get(ft, fd);
	struct record_lock want = {.ui = proc_uidinfo()};
	struct flock u;
	int error, how;

	if (f == NULL)
		return -EBADF;
	if (copy_in(&u, uflock, sizeof(u)) != 0)
		return -EFAULT;
	if (u.l_type < F_RDLCK || u.l_type > F_UNLCK || (get && u.l_type == F_UNLCK) ||
	    (ofd && u.l_pid != 0))
		return -EINVAL;
	error = take_range(f, &u, &want);
	if (error != 0)
		return error;
	want.owner = ofd ? (const void *)f : ft;
	want.pid = ofd ? -1 : (int32_t)proc_pid();
	want.exclusive = u.l_type == F_WRLCK;
	if (get) {
		mutex_lock(&flock_mutex);
		give_lock(&u, find_conflict(f->vn, &want));
		mutex_unlock(&flock_mutex);
		return copy_out(uflock, &u, sizeof(u)) != 0 ? -EFAULT : 0;
	}
	how = f->flags & O_ACCMODE;
	if (u.l_type == (how == O_RDONLY ? F_WRLCK : how == O_WRONLY ? F_RDLCK : -1))
		return -EBADF;
	error = set_lock(f->vn, &want, u.l_type == F_UNLCK,
			 command == F_SETLKW || command == F_OFD_SETLKW);
	/* Another thread may have closed the descriptor before the lock was there. */
	if (error == 0 && !ofd && u.l_type != F_UNLCK && filetable_get(ft, fd) != f) {
		record_locks_end(f->vn, ft);
		error = -EBADF;
	}
	CTR6(KTR_VFS, "record lock: fd %d command %d type %d start %lu end %lu result %d", (int)fd,
	     command, u.l_type, want.start, want.end, error);
	return error;
}
