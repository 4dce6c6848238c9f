/* vfs_private.h - what the files of the tree of names share. */
#pragma once

#include "kernel/fs/vfs.h"

extern struct mutex vfs_lock;
extern struct vnode *vfs_root; /* constant after vfs_init() */

/* Adds the names that only the kernel gives, if that was not done yet. vfs_lock held. */
void dir_fill(struct vnode *dir);
/* Finds a child, not "." or "..". NULL: there is none. Takes no reference. vfs_lock held. */
struct vnode *dir_find(const struct vnode *dir, const char *name);
/*
 * Gives a vnode the name `name` in dir and removes its old name. The tree takes over the caller's
 * reference if vn was not in it. 0; -ENOMEM: nothing has changed. vfs_lock held.
 */
int dir_link(struct vnode *dir, struct vnode *vn, const char *name);
/* Removes vn's name. The caller gets the tree's reference. vfs_lock held. */
void dir_unlink(struct vnode *vn);

/* Frees a vnode from vnode_alloc(), with its name. */
void vnode_free(struct vnode *vn);

/* The current user; 0 in kernel threads. */
uint32_t vfs_user(void);

/* "." and ".." come before all children. */
#define DIR_COOKIE_FIRST 3

/*
 * fs_syscalls.c: the vnode of a path from the user, relative to dirfd, with a reference. flags:
 * AT_EMPTY_PATH means dirfd itself. NULL: *error.
 */
struct vnode *vnode_of_user(uint64_t dirfd, uint64_t upath, uint64_t flags, int *error);
