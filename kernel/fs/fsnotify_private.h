/* fsnotify_private.h - the watches that inotify.c and dnotify.c share. */
#pragma once

#include <stdint.h>

#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"

struct file;
struct filetable;
struct inotify;
struct uidinfo;
struct vnode;

#define FS_RENAME \
	0x10000000 /* as Linux: a name becomes another of the same directory; only dnotify asks */

struct fsnotify_mark {
	struct list in_group;
	struct fsnotify_mark *next; /* of the same vnode */
	struct inotify *group;      /* NULL: it is dnotify's */
	struct vnode *vn;           /* a reference, if it is nameless */
	struct uidinfo *ui;         /* to whom it is counted */
	/* Of dnotify: the open directory, and the table that has it, both without a reference: the
	 * watch ends when a descriptor of both is closed. */
	struct file *file;
	const struct filetable *table;
	uint32_t slot; /* of watched[] */
	int32_t wd;    /* or the descriptor */
	uint32_t mask; /* events, and IN_EXCL_UNLINK, IN_ONESHOT */
};

extern struct mutex inotify_lock; /* of all of them */

/* vn gets a mark, the first of its list, and loses one, which is freed. inotify_lock held. */
void fsnotify_add_mark(struct fsnotify_mark *m, struct vnode *vn);
void fsnotify_free_mark(struct fsnotify_mark *m);
/* Gives up inotify_lock, and after that drops the references of marks that were freed. */
void fsnotify_unlock(void);

/* dnotify.c: tells the owner of the open directory. inotify_lock held. */
void dnotify_handle_event(const struct fsnotify_mark *m, uint32_t mask);
