/*
 * fsnotify.h - tells what happens to files, once for all file systems; inotify.c and dnotify.c
 * listen.
 *
 * An event has a mask of one IN_… (kernel/abi/inotify.h), and IN_ISDIR where the name that goes
 * with it is a directory's. While nobody watches anything, each costs a load and a branch. Thread
 * context, may sleep. inotify_lock comes after vfs_lock and the locks of vnodes; fsnotify() takes
 * vfs_lock, too, before which no lock of a vnode is held.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/fcntl.h"
#include "kernel/abi/inotify.h"
#include "kernel/fs/vfs.h"

struct filetable;
struct vname;

extern uint32_t fsnotify_watches; /* atomic: how many there are */

static inline bool
fsnotify_active(void)
{
	return __builtin_expect(__atomic_load_n(&fsnotify_watches, __ATOMIC_RELAXED) != 0, false);
}

/* The functions below call these when there are watches, and say what they do. */
void fsnotify_parent(struct vnode *vn, uint32_t mask);
void fsnotify_tell(struct vnode *vn, uint32_t mask, const char *name);

/* Tells those who watch vn, or its directory, what has happened to it. vfs_lock is not held, nor
 * is the lock of a vnode. */
static inline void
fsnotify(struct vnode *vn, uint32_t mask)
{
	if (fsnotify_active())
		fsnotify_parent(vn, mask);
}

/* Tells those who watch vn itself, but not those who watch its directory. */
static inline void
fsnotify_inode(struct vnode *vn, uint32_t mask)
{
	if (fsnotify_active())
		fsnotify_tell(vn, mask, NULL);
}

/* A vnode of that mode has a new name in a directory (IN_CREATE), or lost it (IN_DELETE). */
static inline void
fsnotify_name(struct vnode *dir, const char *name, uint32_t mode, uint32_t mask)
{
	if (fsnotify_active())
		fsnotify_tell(dir, mask | (S_ISDIR(mode) ? IN_ISDIR : 0), name);
}

/* For /proc/PID/fdinfo: if vn is a file of inotify, prints a line for each of its watches. */
void inotify_show_fdinfo(const struct vnode *vn, struct sbuf *out);

/* fcntl() with F_NOTIFY: the owner of an open directory gets a signal for what happens there;
 * `what` is DN_… 0 or -errno. dnotify_end(): the table loses a descriptor of the directory. */
int64_t dnotify_fcntl(struct filetable *ft, uint32_t fd, struct file *f, uint32_t what);
void dnotify_end(const struct file *f, const struct filetable *ft);
/* A vnode moved from one name to another; old: what had that, or NULL. vfs_lock held. */
void fsnotify_move(struct vnode *vn, struct vnode *from, const char *name, struct vnode *to,
		   const char *new_name, struct vnode *old);
/* vn lost that name in dir. The caller has the name's reference still. vfs_lock held. */
void fsnotify_delete(struct vnode *vn, struct vnode *dir, const char *name);
/* vn goes: IN_DELETE_SELF, IN_UNMOUNT. Its watches end. */
void fsnotify_end(struct vnode *vn, uint32_t mask);
/*
 * Call this when the name n was taken from its directory. Returns true if its vnode is open: then
 * the vnode keeps the name, with which its events are told to those who watch the directory.
 * vfs_lock held.
 */
bool fsnotify_keep_name(struct vname *n);
