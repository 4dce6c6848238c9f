/*
 * dnotify.c - F_NOTIFY: a signal for what happens in a directory, over the watches of inotify.c.
 * Locking: inotify_lock; the signal is sent with it held.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/inotify.h"
#include "kernel/fs/file.h"
#include "kernel/fs/fsnotify.h"
#include "kernel/fs/fsnotify_private.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/fasync.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"

static int dir_notify_enable = 1;
SYSCTL_INT(fs_dir_notify_enable, "fs.dir-notify-enable", SYSCTL_WR, &dir_notify_enable, 0, 1,
	   "1: fcntl() with F_NOTIFY works");
/* An event is told to all marks of a directory under locks of all files. */
static int max_user_marks = 128;
SYSCTL_INT(fs_dir_notify_marks, "fs.dir-notify-marks", SYSCTL_WR | SYSCTL_TUN, &max_user_marks, 0,
	   INT32_MAX, "open directories that one user watches by F_NOTIFY");

/* What a mark has for DN_…, in the order of their bits. */
static const uint32_t dnotify_events[] = {
    IN_ACCESS, IN_MODIFY, IN_CREATE | IN_MOVED_TO, IN_DELETE | IN_MOVED_FROM, FS_RENAME, IN_ATTRIB};

static uint32_t
dnotify_mask(uint32_t what)
{
	uint32_t mask = what & DN_MULTISHOT ? 0 : IN_ONESHOT;

	for (unsigned i = 0; i < sizeof(dnotify_events) / sizeof(dnotify_events[0]); i++)
		mask |= what & 1u << i ? dnotify_events[i] : 0;
	return mask;
}

/* inotify_lock held. */
static struct fsnotify_mark *
dnotify_find(const struct file *f, const struct filetable *ft)
{
	struct fsnotify_mark *m = f->vn->marks;

	while (m != NULL && (m->group != NULL || m->file != f || m->table != ft))
		m = m->next;
	return m;
}

void
dnotify_handle_event(const struct fsnotify_mark *m, uint32_t mask)
{
	if (mask & (IN_ALL_EVENTS | FS_RENAME))
		fasync_send_message(m->file, m->wd);
}

void
dnotify_end(const struct file *f, const struct filetable *ft)
{
	struct fsnotify_mark *m;

	mutex_lock(&inotify_lock);
	m = dnotify_find(f, ft);
	if (m != NULL)
		fsnotify_free_mark(m);
	fsnotify_unlock();
}

/* Adds events to the mark, or gives the directory the mark `new`, which is freed otherwise. A mark
 * that ever was one for more than one event stays so. inotify_lock held. */
static int
dnotify_update(struct fsnotify_mark *new)
{
	struct fsnotify_mark *m = dnotify_find(new->file, new->table);
	uint32_t once = IN_ONESHOT;

	if (m == NULL &&
	    new->ui->dnotify_marks < (uint64_t)__atomic_load_n(&max_user_marks, __ATOMIC_RELAXED)) {
		list_init(&new->in_group);
		fsnotify_add_mark(new, new->file->vn);
		new->ui->dnotify_marks++;
		return 0;
	}
	if (m != NULL) {
		once &= m->mask & new->mask;
		m->mask = ((m->mask | new->mask) & ~(uint32_t)IN_ONESHOT) | once;
		m->wd = new->wd;
	}
	uidinfo_free(new->ui, new);
	return m != NULL ? 0 : -ENOMEM;
}

int64_t
dnotify_fcntl(struct filetable *ft, uint32_t fd, struct file *f, uint32_t what)
{
	struct uidinfo *ui = proc_uidinfo();
	struct fsnotify_mark *new;
	int error;

	if (!__atomic_load_n(&dir_notify_enable, __ATOMIC_RELAXED))
		return -EINVAL;
	if ((what & ~DN_MULTISHOT) == 0) {
		dnotify_end(f, ft);
		return 0;
	}
	if (!S_ISDIR(f->vn->mode))
		return -ENOTDIR;
	if (fasync_claim(f) != 0)
		return -ENOMEM;
	new = uidinfo_alloc(ui, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	*new = (struct fsnotify_mark){
	    .ui = ui, .file = f, .table = ft, .wd = (int32_t)fd, .mask = dnotify_mask(what)};
	mutex_lock(&inotify_lock);
	error = dnotify_update(new);
	mutex_unlock(&inotify_lock);
	/* Another thread may have closed the descriptor before the mark was there. */
	if (filetable_get(ft, fd) != f)
		dnotify_end(f, ft);
	return error;
}
