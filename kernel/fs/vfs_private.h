/* vfs_private.h - what the files of the tree of names share. */
#pragma once

#include "kernel/fs/vfs.h"

extern struct mutex vfs_lock;
extern struct vnode *vfs_root; /* constant after vfs_init() */

/* A child by its name, no "." nor "..". vfs_lock held. NULL: there is none. No reference. */
struct vnode *dir_find(const struct vnode *dir, const char *name);
/*
 * Gives a vnode a name in dir and takes the old one away; the tree takes over the caller's
 * reference, or keeps the one that it has. vfs_lock held. 0, or -ENOMEM: nothing has changed.
 */
int dir_link(struct vnode *dir, struct vnode *vn, const char *name);
/* Takes it out; the tree's reference becomes the caller's. vfs_lock held. */
void dir_unlink(struct vnode *vn);

/* Frees what vnode_alloc() made, with its name. */
void vnode_free(struct vnode *vn);

/* User that runs here: 0 in kernel threads. */
uint32_t vfs_user(void);

/* "." and ".." come before all children. */
#define DIR_COOKIE_FIRST 3
