/*
 * inotify.c - files that tell what happens to other files: inotify_init, inotify_add_watch.
 *
 * A watch (a mark, in Linux's word) is on the list of its vnode and on that of its open file, the
 * group, which has a queue of events. It has no reference to its vnode, but to a nameless one of
 * /proc: a vnode that goes ends its watches. What is watched is not forgotten, so that
 * it is the same vnode when it is found again on a disk.
 *
 * Locking: one mutex, inotify_lock, guards all lists and queues. It comes after vfs_lock and the
 * locks of vnodes, and is not held while events are copied to the program.
 */
#include "kernel/abi/inotify.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/fsnotify_private.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define WATCH_FLAGS (IN_EXCL_UNLINK | IN_ONESHOT)
#define ADD_FLAGS   (WATCH_FLAGS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_MASK_CREATE | IN_MASK_ADD)
/* Linux accepts these bits, though it tells of these events anyway. */
#define ALL_BITS (IN_ALL_EVENTS | ADD_FLAGS | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED | IN_ISDIR)

static int max_queued_events = 16384, max_user_instances = 128, max_user_watches = 8192;
#define LIMIT(ident, var, what) \
	SYSCTL_INT(ident, "fs.inotify." #var, SYSCTL_WR | SYSCTL_TUN, &(var), 0, INT32_MAX, what)
LIMIT(fs_inotify_events, max_queued_events, "events that wait to be read from one file");
LIMIT(fs_inotify_instances, max_user_instances, "open files of inotify of one user");
LIMIT(fs_inotify_watches, max_user_watches, "files and directories that one user watches");

/* An event that was not read. */
struct queued {
	struct list link;
	struct inotify_event ev;
	char name[]; /* ev.len bytes */
};

struct inotify {
	struct list events, marks;
	int queued;          /* events */
	int32_t last_wd;     /* numbers are not given again */
	bool overflowed;     /* `overflow` is in the queue */
	struct uidinfo *ui;  /* [c] to whom it is counted */
	struct cond arrived; /* an event */
	struct poll_source news;
	struct queued overflow;
};

struct mutex inotify_lock = MUTEX_INIT("inotify");
static uint32_t last_cookie;       /* inotify_lock */
static struct fsnotify_mark *dead; /* inotify_lock: fsnotify_unlock() frees them */
static uint32_t watched[64];       /* atomic: watches, by the `dev` of what they watch */
uint32_t fsnotify_watches;

/* ---- the queue; inotify_lock is held ---- */

static void
inotify_put_event(struct inotify *g, struct queued *q)
{
	list_append(&g->events, &q->link);
	g->queued++;
	cond_broadcast(&g->arrived);
	poll_notify(&g->news, POLLIN);
}

/* Is that event the last one of the queue? Then it is not told twice. */
static bool
inotify_merge(const struct inotify *g, int32_t wd, uint32_t mask, const char *name)
{
	const struct queued *q;

	if (list_empty(&g->events) || (mask & IN_IGNORED))
		return false;
	q = list_entry(g->events.prev, struct queued, link);
	return q->ev.wd == wd && q->ev.mask == mask && (q->ev.len == 0) == (name == NULL) &&
	       (name == NULL || strcmp(q->name, name) == 0);
}

static void
inotify_handle_event(struct inotify *g, int32_t wd, uint32_t mask, uint32_t cookie,
		     const char *name)
{
	size_t length = name != NULL ? strlen(name) + 1 : 0;
	size_t room = (length + sizeof(struct inotify_event) - 1) &
		      ~(sizeof(struct inotify_event) - 1); /* as Linux pads names */
	struct queued *q = NULL;

	if (g->queued < __atomic_load_n(&max_queued_events, __ATOMIC_RELAXED)) {
		if (inotify_merge(g, wd, mask, name))
			return;
		q = uidinfo_alloc(g->ui, sizeof(*q) + room);
	}
	CTR4(KTR_VFS, "inotify: wd %d mask %#x cookie %u lost %d", wd, mask, cookie, q == NULL);
	if (q != NULL) {
		q->ev = (struct inotify_event){wd, mask, cookie, (uint32_t)room};
		memcpy(q->name, name, length);
		inotify_put_event(g, q);
	} else if (!g->overflowed) {
		g->overflowed = true;
		g->overflow.ev = (struct inotify_event){.wd = -1, .mask = IN_Q_OVERFLOW};
		inotify_put_event(g, &g->overflow);
	}
}

/* Takes the first event, if it fits. NULL: there is none, or *error is -EINVAL. */
static struct queued *
inotify_take_event(struct inotify *g, size_t room, int *error)
{
	struct queued *q;

	if (list_empty(&g->events))
		return NULL;
	q = list_entry(g->events.next, struct queued, link);
	if (sizeof(q->ev) + q->ev.len > room) {
		*error = -EINVAL;
		return NULL;
	}
	list_remove(&q->link);
	g->queued--;
	if (q == &g->overflow)
		g->overflowed = false;
	return q;
}

static void
inotify_free_event(struct inotify *g, struct queued *q)
{
	if (q != &g->overflow)
		uidinfo_free(g->ui, q);
}

/* ---- watches; inotify_lock is held ---- */

void
fsnotify_free_mark(struct fsnotify_mark *m)
{
	struct fsnotify_mark **at = &m->vn->marks;
	bool has_vnode = m->vn->nameless;

	while (*at != m)
		at = &(*at)->next;
	/* release: whoever reads that there is no mark may free or forget the vnode at once,
	 * without a reference of ours: vnode_evict(), name_is_idle() */
	__atomic_store_n(at, m->next, __ATOMIC_RELEASE);
	list_remove(&m->in_group);
	__atomic_fetch_sub(&fsnotify_watches, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&watched[m->slot], 1, __ATOMIC_RELAXED);
	if (m->group != NULL)
		__atomic_fetch_sub(&m->ui->inotify_watches, 1, __ATOMIC_RELAXED);
	else
		m->ui->dnotify_marks--;
	if (has_vnode) {
		m->next = dead;
		dead = m;
	} else {
		uidinfo_free(m->ui, m);
	}
}

/* The last reference to a link of /proc ends other watches. */
void
fsnotify_unlock(void)
{
	struct fsnotify_mark *m = dead, *next;

	dead = NULL;
	mutex_unlock(&inotify_lock);
	for (; m != NULL; m = next) {
		struct vnode *vn = m->vn;

		next = m->next;
		uidinfo_free(m->ui, m);
		vnode_unref(vn);
	}
}

void
fsnotify_add_mark(struct fsnotify_mark *m, struct vnode *vn)
{
	m->next = vn->marks;
	m->vn = vn->nameless ? vnode_ref(vn) : vn;
	m->slot = vn->dev % 64;
	__atomic_store_n(&vn->marks, m, __ATOMIC_RELEASE); /* for name_is_idle() */
	__atomic_fetch_add(&watched[m->slot], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&fsnotify_watches, 1, __ATOMIC_RELAXED);
}

static void
fsnotify_handle_event(const struct fsnotify_mark *m, uint32_t mask, uint32_t cookie,
		      const char *name)
{
	if (m->group != NULL)
		inotify_handle_event(m->group, m->wd, mask, cookie, name);
	else
		dnotify_handle_event(m, mask);
}

/* A watch ends, and the program is told. */
static void
inotify_ignore(struct fsnotify_mark *m)
{
	fsnotify_handle_event(m, IN_IGNORED, 0, NULL);
	fsnotify_free_mark(m);
}

/* gone: the name was removed. */
static void
tell_marks(struct vnode *vn, uint32_t mask, uint32_t cookie, const char *name, bool gone)
{
	struct fsnotify_mark *next;

	for (struct fsnotify_mark *m = vn->marks; m != NULL; m = next) {
		next = m->next;
		if (!(m->mask & mask & (IN_ALL_EVENTS | FS_RENAME)) ||
		    (gone && (m->mask & IN_EXCL_UNLINK)))
			continue;
		fsnotify_handle_event(m, mask, cookie, name);
		if (m->mask & IN_ONESHOT)
			inotify_ignore(m);
	}
}

void
fsnotify_tell(struct vnode *vn, uint32_t mask, const char *name)
{
	if (name == NULL && S_ISDIR(vn->mode))
		mask |= IN_ISDIR;
	mutex_lock(&inotify_lock);
	tell_marks(vn, mask, 0, name, false);
	fsnotify_unlock();
}

void
fsnotify_parent(struct vnode *vn, uint32_t mask)
{
	const struct vname *n;

	/* The directory, of which watchers may be told, is on the same file system. */
	if ((__atomic_load_n(&watched[vn->dev % 64], __ATOMIC_RELAXED) == 0 ||
	     (__atomic_load_n(&vn->name, __ATOMIC_RELAXED) == NULL &&
	      __atomic_load_n(&vn->gone, __ATOMIC_RELAXED) == NULL)) && /* as pipes and sockets */
	    __atomic_load_n(&vn->marks, __ATOMIC_RELAXED) == NULL)
		return;
	if (S_ISDIR(vn->mode))
		mask |= IN_ISDIR;
	mutex_lock(&vfs_lock);
	n = vn->name != NULL ? vn->name : vn->gone;
	mutex_lock(&inotify_lock);
	if (n != NULL && n->vn == vn) /* the root of a mount has the name of what it covers */
		tell_marks(n->dir, mask, 0, n->text, n == vn->gone);
	tell_marks(vn, mask, 0, NULL, false);
	fsnotify_unlock();
	mutex_unlock(&vfs_lock);
}

void
fsnotify_move(struct vnode *vn, struct vnode *from, const char *name, struct vnode *to,
	      const char *new_name, struct vnode *old)
{
	uint32_t dir = S_ISDIR(vn->mode) ? IN_ISDIR : 0;

	if (!fsnotify_active())
		return;
	mutex_lock(&inotify_lock);
	last_cookie++;
	if (from == to)
		tell_marks(from, FS_RENAME | dir, 0, name, false);
	tell_marks(from, IN_MOVED_FROM | dir, last_cookie, name, false);
	tell_marks(to, IN_MOVED_TO | dir, last_cookie, new_name, false);
	if (old != NULL)
		tell_marks(old, IN_ATTRIB | dir, 0, NULL, false);
	tell_marks(vn, IN_MOVE_SELF, 0, NULL, false);
	fsnotify_unlock();
}

void
fsnotify_end(struct vnode *vn, uint32_t mask)
{
	mutex_lock(&inotify_lock);
	while (vn->marks != NULL) {
		struct fsnotify_mark *m = vn->marks;

		if ((m->mask | IN_UNMOUNT) & mask)
			fsnotify_handle_event(m, mask, 0, NULL);
		inotify_ignore(m);
	}
	fsnotify_unlock();
}

void
fsnotify_delete(struct vnode *vn, struct vnode *dir, const char *name)
{
	if (!fsnotify_active())
		return;
	if (!S_ISDIR(vn->mode))
		fsnotify_tell(vn, IN_ATTRIB, NULL);
	if (vnode_is_gone(vn) && __atomic_load_n(&vn->refs, __ATOMIC_ACQUIRE) == 1)
		fsnotify_end(vn, IN_DELETE_SELF);
	fsnotify_name(dir, name, vn->mode, IN_DELETE);
}

bool
fsnotify_keep_name(struct vname *n)
{
	if (!fsnotify_active() || !vnode_is_gone(n->vn) || n->vn->gone != NULL ||
	    __atomic_load_n(&n->vn->refs, __ATOMIC_ACQUIRE) == 1)
		return false;
	vnode_ref(n->dir);
	n->vn->gone = n;
	return true;
}

/* ---- the file ---- */

static int
inotify_open(struct file *f)
{
	struct inotify *g = f->vn->data;

	f->news = &g->news;
	return 0;
}

static void
inotify_release(struct file *f)
{
	struct inotify *g = f->vn->data;
	struct queued *q;
	int error;

	if (g->ui == NULL)
		return; /* it was not complete */
	mutex_lock(&inotify_lock);
	while (!list_empty(&g->marks))
		fsnotify_free_mark(list_entry(g->marks.next, struct fsnotify_mark, in_group));
	while ((q = inotify_take_event(g, SIZE_MAX, &error)) != NULL)
		inotify_free_event(g, q);
	fsnotify_unlock();
	__atomic_fetch_sub(&g->ui->inotify_instances, 1, __ATOMIC_RELAXED);
}

static unsigned
inotify_poll(struct file *f)
{
	const struct inotify *g = f->vn->data;
	unsigned found;

	mutex_lock(&inotify_lock);
	found = list_empty(&g->events) ? 0 : POLLIN;
	mutex_unlock(&inotify_lock);
	return found;
}

static int64_t
inotify_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct inotify *g = vn->data;
	size_t start = u->resid;
	struct queued *q;
	int error = 0;

	do {
		mutex_lock(&inotify_lock);
		while (error == 0 && u->resid == start && list_empty(&g->events))
			error = f->flags & O_NONBLOCK
				    ? -EAGAIN
				    : cond_wait(&g->arrived, &inotify_lock, "inotify", SLEEP_INTR,
						DEADLINE_NEVER);
		q = error == 0 ? inotify_take_event(g, u->resid, &error) : NULL;
		mutex_unlock(&inotify_lock);
		if (q != NULL) {
			error = uio_put(u, &q->ev, sizeof(q->ev));
			if (error == 0)
				error = uio_put(u, q->name, q->ev.len);
			inotify_free_event(g, q);
		}
	} while (q != NULL && error == 0);
	return start != u->resid && error != -EFAULT ? (int64_t)(start - u->resid) : error;
}

static int64_t
inotify_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	const struct inotify *g = f->vn->data;
	int32_t n = 0;

	if (request != FIONREAD)
		return -ENOTTY;
	mutex_lock(&inotify_lock);
	list_for_each_entry (const struct queued, q, &g->events, link)
		n += (int32_t)(sizeof(q->ev) + q->ev.len);
	mutex_unlock(&inotify_lock);
	return copy_out(arg, &n, sizeof(n));
}

static const struct vnode_ops inotify_ops = {
    .open = inotify_open,
    .release = inotify_release,
    .read = inotify_read,
    .poll = inotify_poll,
    .ioctl = inotify_ioctl,
    .destroy = file_unnamed_destroy,
};

void
inotify_show_fdinfo(const struct vnode *vn, struct sbuf *out)
{
	const struct inotify *g = vn->data;

	if (vn->ops != &inotify_ops)
		return;
	mutex_lock(&inotify_lock);
	if (g->ui != NULL) /* it is complete */
		list_for_each_entry (const struct fsnotify_mark, m, &g->marks, in_group)
			sbuf_printf(out, "inotify wd:%x ino:%lx sdev:%x mask:%x ignored_mask:0 \n",
				    m->wd, m->vn->ino, m->vn->dev, m->mask);
	mutex_unlock(&inotify_lock);
}

/* ---- system calls ---- */

int64_t
sys_inotify_init1(const uint64_t a[6])
{
	struct uidinfo *ui = proc_uidinfo();
	int flags = (int)a[0], error;
	struct inotify *g;
	struct file *f;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK))
		return -EINVAL;
	f = file_open_unnamed(&inotify_ops, sizeof(*g), flags & O_NONBLOCK, &error);
	if (f == NULL)
		return error;
	f->flags &= ~O_ACCMODE; /* nobody writes to it */
	g = f->vn->data;
	if (__atomic_fetch_add(&ui->inotify_instances, 1, __ATOMIC_RELAXED) >=
	    (uint64_t)__atomic_load_n(&max_user_instances, __ATOMIC_RELAXED)) {
		__atomic_fetch_sub(&ui->inotify_instances, 1, __ATOMIC_RELAXED);
		file_unref(f);
		return -EMFILE;
	}
	list_init(&g->events);
	list_init(&g->marks);
	g->ui = ui;
	return filetable_install(f, flags);
}

SYSCALL_IS(inotify_init, sys_inotify_init1((const uint64_t[6]){0}))

static struct fsnotify_mark *
inotify_find(const struct inotify *g, const struct vnode *vn)
{
	struct fsnotify_mark *m = vn->marks;

	while (m != NULL && m->group != g)
		m = m->next;
	return m;
}

/* Makes a watch of vn. Returns its number, or -errno. */
static int64_t
inotify_new_watch(struct inotify *g, struct vnode *vn, uint32_t mask)
{
	struct fsnotify_mark *m;

	if (g->ui->inotify_watches >=
	    (uint64_t)__atomic_load_n(&max_user_watches, __ATOMIC_RELAXED))
		return -ENOSPC;
	m = uidinfo_alloc(g->ui, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	*m = (struct fsnotify_mark){.group = g,
				    .ui = g->ui,
				    .wd = ++g->last_wd,
				    .mask = mask & (IN_ALL_EVENTS | WATCH_FLAGS)};
	list_append(&g->marks, &m->in_group);
	fsnotify_add_mark(m, vn);
	__atomic_fetch_add(&g->ui->inotify_watches, 1, __ATOMIC_RELAXED);
	return m->wd;
}

/* Changes the watch of vn, or makes one. Returns its number, or -errno. inotify_lock held. */
static int64_t
inotify_update_watch(struct inotify *g, struct vnode *vn, uint32_t mask)
{
	struct fsnotify_mark *m = inotify_find(g, vn);
	uint32_t wanted = mask & (IN_ALL_EVENTS | WATCH_FLAGS);

	if (m == NULL)
		return inotify_new_watch(g, vn, mask);
	if (mask & IN_MASK_CREATE)
		return -EEXIST;
	m->mask = mask & IN_MASK_ADD ? m->mask | wanted : wanted;
	return m->wd;
}

int64_t
sys_inotify_add_watch(const uint64_t a[6])
{
	uint32_t mask = (uint32_t)a[2];
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);
	struct vnode *vn;
	int64_t r;
	int error;

	if ((mask & ~ALL_BITS) || mask == 0)
		return -EINVAL;
	if (f == NULL)
		return -EBADF;
	if ((mask & (IN_MASK_ADD | IN_MASK_CREATE)) == (IN_MASK_ADD | IN_MASK_CREATE) ||
	    f->vn->ops != &inotify_ops)
		return -EINVAL;
	vn = vnode_of_user((uint64_t)AT_FDCWD, a[1],
			   mask & IN_DONT_FOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &error);
	if (vn == NULL)
		return error;
	r = (mask & IN_ONLYDIR) && !S_ISDIR(vn->mode) ? -ENOTDIR : vnode_access(vn, VNODE_READ);
	if (r == 0) {
		mutex_lock(&inotify_lock);
		r = inotify_update_watch(f->vn->data, vn, mask);
		mutex_unlock(&inotify_lock);
	}
	vnode_unref(vn);
	return r;
}

int64_t
sys_inotify_rm_watch(const uint64_t a[6])
{
	int error;
	const struct file *f = filetable_get_kind(a[0], &inotify_ops, &error);
	const struct inotify *g;

	if (f == NULL)
		return error;
	g = f->vn->data;
	error = -EINVAL;
	mutex_lock(&inotify_lock);
	list_for_each_entry_safe (struct fsnotify_mark, m, &g->marks, in_group) {
		if (m->wd != (int32_t)a[1])
			continue;
		inotify_ignore(m);
		error = 0;
	}
	fsnotify_unlock();
	return error;
}
