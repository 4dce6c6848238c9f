/*
 * vfs.h - the tree of names, and what hangs on it.
 *
 * Every file system of this kernel lives in memory, so the tree of names is the VFS's own: a vnode
 * stays in it until it is removed, and file systems supply only what differs, reading and writing.
 * A vnode has one name.
 *
 * Locking legend of struct vnode:
 *   [c] constant after creation
 *   [v] vfs_lock, one sleep mutex for the whole tree
 *   [d] the vnode's own mutex `lock`, for the data; taken inside vfs_lock
 *   [a] atomic
 *
 * All functions: thread context, may sleep, no lock of this file held, unless said. Paths are at
 * most PATH_MAX bytes with NUL, names NAME_MAX. "The user" is the current process's; kernel threads
 * are user 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fs/uio.h"
#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"

struct boot_module;
struct file;
struct stat;
struct uidinfo;
struct vnode;

/* What a kind of vnode does. NULL: that request is an error. All are called without vfs_lock. */
struct vnode_ops {
	/* A file is opened on it. 0 or -errno. NULL: nothing to do. */
	int (*open)(struct file *f);
	/* The last reference to an open file goes. */
	void (*release)(struct file *f);
	/*
	 * Moves bytes at *off and advances *off. Returns how many, 0 at the end, or -errno when
	 * none were moved. f is NULL for vnode_read().
	 */
	int64_t (*read)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	int64_t (*write)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	/* Sets the size to 0. */
	int (*truncate)(struct vnode *vn);
	int64_t (*ioctl)(struct file *f, unsigned request, uint64_t arg);
	/* The last reference went: frees vn->data. */
	void (*destroy)(struct vnode *vn);
};

struct vnode {
	uint32_t refs;               /* [a] one is the tree's */
	uint32_t mode;               /* [c] S_IF… and permission bits */
	uint32_t uid;                /* [c] */
	struct uidinfo *ui;          /* [c] who pays for it, its name and its data */
	bool fixed;                  /* [c] directory: only the kernel adds and removes names */
	bool root_only;              /* [c] others than user 0 hear EPERM, whatever the mode says */
	uint64_t ino;                /* [c] */
	const struct vnode_ops *ops; /* [c] */
	void *data;                  /* [c] the file system's */
	uint64_t rdev;               /* [c] device number, 0 none */

	char *name; /* [v] NULL for the root and pipes */
	/*
	 * [v] Root: itself. NULL: removed, or never in the tree. No reference: a directory that has
	 * children is never removed.
	 */
	struct vnode *parent;
	uint32_t name_hash;      /* [v] of name and parent */
	struct vnode *name_next; /* [v] in the same bucket */
	struct list sibling;     /* [v] */
	struct list children;    /* [v] directory: in order of cookie */
	uint64_t cookie;         /* [v] place in its directory, for getdents64 */
	uint64_t next_cookie;    /* [v] directory: for the next child */

	struct mutex lock; /* [d] */
	uint64_t size;     /* [d] */
	uint64_t mtime_ns; /* [d] in clock_ns() time */
};

/* Makes the root, /tmp, /dev and what stands in it. Once, at boot. */
void vfs_init(void);
/*
 * Unpacks an archive (cpio.h) into the tree; a later file replaces an earlier one. What is damaged
 * is reported by warnk() and left out.
 */
void vfs_unpack(const struct boot_module *m);

/*
 * The vnode that path names, seen from cwd (NULL: the root), with a reference; or NULL and *err a
 * negative errno.
 */
struct vnode *vnode_lookup(struct vnode *cwd, const char *path, int *err);
/*
 * Makes a vnode and its name. mode has the S_IF bits; the user owns it. Returns it with a
 * reference, or NULL and *err: -EEXIST, -ENOENT, -ENOTDIR, -EACCES, -ENOSPC, -EPERM in a fixed
 * directory.
 */
struct vnode *vnode_create(struct vnode *cwd, const char *path, uint32_t mode, int *err);
/*
 * The vnode that path names, or a new one, with a reference; *made says which. One look decides:
 * nobody can make or remove the name in between. Errors as of the two functions above.
 */
struct vnode *vnode_lookup_or_create(struct vnode *cwd, const char *path, uint32_t mode, bool *made,
				     int *err);
/* Permissions that a program cannot give to what it makes, in every process. */
#define UMASK 022
/* Takes a name away; the vnode lives as long as it is open. dir: only a directory, and an empty
 * one. */
int vnode_remove(struct vnode *cwd, const char *path, bool dir);
/* Gives a vnode another name; what had that name is removed, if it is of the same kind. */
int vnode_rename(struct vnode *cwd_from, const char *from, struct vnode *cwd_to, const char *to);
/*
 * The kernel's own: a name in a directory, whatever the user may do; takes over data, also on
 * failure never calls ops->destroy. Returns the vnode with a reference.
 */
struct vnode *vnode_add(struct vnode *dir, const char *name, uint32_t mode,
			const struct vnode_ops *ops, void *data, int *err);
/* A vnode without a name, for pipes. NULL: no memory. */
struct vnode *vnode_alloc(uint32_t mode, const struct vnode_ops *ops, void *data);

/* Any context but NMI; returns vn. */
struct vnode *vnode_ref(struct vnode *vn);
/* May sleep: the last one frees it. NULL is allowed. */
void vnode_unref(struct vnode *vn);

/* Reads a regular file into kernel memory. Bytes, 0 at the end, -EISDIR, -EINVAL for others. */
int64_t vnode_read(struct vnode *vn, void *buf, size_t len, uint64_t off);
/* Bytes, of a regular file. */
uint64_t vnode_size(struct vnode *vn);

#define VNODE_EXEC  1
#define VNODE_WRITE 2
#define VNODE_READ  4
/* May the user do `want` with it? 0, -EACCES or, for what only user 0 may, -EPERM. Any context. */
int vnode_access(const struct vnode *vn, unsigned want);
/* 0, or -EACCES: no regular file, or not executable for the user. Any context. */
int vnode_may_execute(const struct vnode *vn);

void vnode_stat(struct vnode *vn, struct stat *st);
/*
 * Writes records of struct linux_dirent64 from *cookie on, and advances it. Returns bytes, 0 at the
 * end, -ENOTDIR, -EINVAL when not even one fits.
 */
int64_t vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie);
/* Absolute path of a directory. Length, -ERANGE when it does not fit, -ENOENT when it was removed.
 */
int vnode_path(struct vnode *dir, char *buf, size_t size);

/* For events: the last part of path, interned, cut at 63 bytes. Any context. */
const char *vfs_trace_name(const char *path);

/* ramfs.c: regular files. */
extern const struct vnode_ops ramfs_file_ops;
/* devfs.c: makes what stands in dir, which is /dev. */
void devfs_init(struct vnode *dir);
