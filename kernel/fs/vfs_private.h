/* vfs_private.h - what the files of the tree of names share. */
#pragma once

#include "kernel/abi/fcntl.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/string.h"

extern struct mutex vfs_lock;

/*
 * Adds to a directory the names that only the kernel gives, or those on its disk, unless that was
 * done. 0; -ENOMEM, -EIO or another error of the disk if some are missing. vfs_lock held.
 */
int dir_fill(struct vnode *dir);
/* dir_fill() for one name only. vfs_lock held. */
int dir_look(struct vnode *dir, const char *name);
/* Has the vnode no name, not even one on its disk that the tree lacks? vfs_lock held. */
bool vnode_is_gone(const struct vnode *vn);
/*
 * A name: an entry of a directory, which holds a reference to its vnode. But a name that is kept
 * after its removal (vnode.gone), or that a nameless vnode has, holds a reference to its directory
 * instead. All members are [v], as in vfs.h.
 */
struct vname {
	struct vnode *dir;
	struct vnode *vn;
	struct uidinfo *ui;  /* the user to whom it is counted */
	uint32_t hash;       /* of directory and text */
	struct vname *next;  /* in the same bucket */
	struct list sibling; /* in dir->children; after dir_empty(), in its list */
	struct list same;    /* in vn->names */
	uint64_t cookie;     /* position in the directory, for getdents64 */
	char text[];
};

/* Finds a name, not "." or "..". NULL: there is none. vfs_lock held. */
struct vname *dir_find(const struct vnode *dir, const char *name);
/*
 * A name is made in two steps, so that all that may fail comes before a disk is changed.
 * vname_alloc() makes a name for dir, which nobody finds yet; NULL if there is no memory.
 * vname_enter() gives it to a vnode, with the caller's reference to that. vfs_lock held.
 */
struct vname *vname_alloc(struct vnode *dir, const char *name);
void vname_enter(struct vname *n, struct vnode *vn);
/* n, whose vnode it was, if any, has let go of it, is vn's newest name. vfs_lock held. */
void vname_join(struct vname *n, struct vnode *vn);
/* n lets go of its vnode, but for vn->name. vfs_lock held. */
void vname_part(struct vname *n);
/* Frees a name that is not in the tree. NULL is allowed. */
void vname_free(struct vname *n);
/* Sets the directory's mtime to now: its names changed. On a disk, the disk's system has set it. */
void dir_touch(struct vnode *dir);
/* Removes a name. The caller gets the name's reference to the vnode. vfs_lock held. */
void dir_unlink(struct vname *n);
/* Removes a name as dir_unlink() does; the caller frees it by uidinfo_free(). vfs_lock held. */
void dir_take(struct vname *n);
/*
 * dir_empty() takes all names below dir out of the tree, and puts them into the list `gone`, by
 * `sibling`. names_free() frees these, and drops their references: it may take long, so vfs_lock is
 * not held.
 */
void dir_empty(struct vnode *dir, struct list *gone);
void names_free(struct list *gone);
/* Names that are gone, which vfs_trim() is to free. vfs_lock. */
extern struct list names_leaving;
/* As dir_empty(), for names in a directory on a disk that nobody uses, at most so many; the
 * directory is `missing` names from then on. Returns how many. */
unsigned dir_forget(struct vnode *dir, struct list *gone, unsigned most);

/*
 * Goes through all names of the tree below root, each directory before what is in it: returns the
 * one after n, where NULL begins and ends. vfs_lock held.
 */
struct vname *dir_next_below(const struct vnode *root, const struct vname *n);

/* Mode of a directory: only the owner of a file, or of the directory, removes its name. */
#define STICKY 01000

static inline bool
name_is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Where a walk along a path has come to: a directory, and the path's last part. */
struct walk {
	struct vnode *dir;
	struct vnode *start;     /* where the path begins */
	uint32_t resolve;        /* where the path may lead: RESOLVE_… */
	bool want_dir;           /* the path ends with a slash */
	unsigned links;          /* symbolic links that it led through */
	bool last;               /* walk_end() has looked for the last part, there or not */
	struct vnode *held[2];   /* references: to dir, and what was found in it, where needed */
	char name[NAME_MAX + 1]; /* "" if the path is the root itself */
};

/*
 * Walks along all parts of the path but the last. vfs_lock held. What the walk has found stays
 * without a reference until a directory is filled, as another walk may do; before that, call
 * walk_hold().
 */
int path_walk(struct vnode *cwd, const char *path, struct walk *w);
/*
 * Finds the last part of the path. follow: if it is a symbolic link, goes where that leads; then w
 * is the place to which it leads, even if nothing is there (-ENOENT). vfs_lock held.
 */
int walk_end(struct walk *w, bool follow, struct vnode **vn);
/* The walk takes over a reference to vn, beside the one to w->dir, if it has that. */
void walk_hold(struct walk *w, struct vnode *vn);
/* Ends a walk. vfs_lock is not held. */
void walk_done(struct walk *w);
/* May the user add and remove names in w->dir? vfs_lock held. */
int vfs_may_change(const struct walk *w);
/* Calls an operation of w->dir, if the user may change that, and then tells those who watch:
 * event is IN_… vfs_lock held; released while the operation is called. */
int vfs_change_by(const struct walk *w, int (*op)(struct vnode *dir, const char *name),
		  uint32_t event);

/* The `link` operation of a symbolic link. */
int vnode_link_text(const struct vnode *vn, const char **text, struct vnode **to);

/* Is dir the root of the current process's paths, or of what is mounted there? vfs_lock held. */
bool vfs_is_user_root(const struct vnode *dir);
/* Makes vn, whose reference this takes over, the root of the current process's paths. Returns
 * the old one with its reference, or NULL. */
struct vnode *vfs_change_root(struct vnode *vn);

/*
 * Writes the path of a vnode that cannot go meanwhile, without vfs_lock. Returns its length; 0 if a
 * name on the way changes, or the path has more than size - 1 bytes or 16 names. Any context.
 */
size_t vnode_path_peek(const struct vnode *vn, char *buf, size_t size);

/*
 * tmpfs.c, with vfs_lock held, or for a vnode that nobody else has. tmpfs_begin(): a new file
 * system in memory begins with its root; 0 or -ENOMEM. tmpfs_join(): vn gets a name in dir, and
 * belongs to the file system of dir, if that is one in memory; or it belongs to that without a
 * name. tmpfs_lose_name(): it has lost its last name, or gets none. tmpfs_leave(): it belongs to
 * the file system no longer.
 */
int tmpfs_begin(struct vnode *root);
/* As vnode_ops.tmpfile. -EOPNOTSUPP: the directory is in no file system in memory. */
struct vnode *tmpfs_make_unnamed(struct vnode *dir, const struct vnode_kind *kind, int *err);
void tmpfs_join(struct vnode *vn, const struct vnode *dir);
void tmpfs_lose_name(const struct vnode *vn);
void tmpfs_leave(struct vnode *vn);
/* A file of a tmpfs gets a page more, if there may be one more; and loses a page. */
bool tmpfs_charge(const struct vnode *vn);
void tmpfs_release(const struct vnode *vn);
/* So many pages it can have at most. */
uint64_t tmpfs_page_limit(const struct vnode *vn);
/* What statfs() tells of a tmpfs that has a limit. */
void tmpfs_statfs(const struct vnode *vn, struct statfs *s);
/* Has the file system in memory all the pages that it may have? */
bool tmpfs_is_full(const struct vnode *vn);
extern const struct vfs_type tmpfs_type;
/* ramfs.c: what stat() tells, in units of 512 bytes. Any context. */
uint64_t ramfs_blocks(const struct vnode *vn);
/* mount.c: as vfs_mount_flags(), with vfs_lock held. */
unsigned mount_flags_of(const struct vnode *vn);
/* mount.c: the type of that name; NULL: there is none. */
const struct vfs_type *vfs_find_type(const char *name);
/* Frees the extended attributes of a vnode that nobody uses. */
void xattr_free_all(struct vnode *vn);
/* Frees a vnode from vnode_alloc(). */
void vnode_free(struct vnode *vn);

/* "." and ".." come before all children. */
#define DIR_COOKIE_FIRST 3

/* bdev.c: disks have files in dir, which is /dev, from now on. */
void bdev_init(struct vnode *dir);
