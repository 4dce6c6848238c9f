/*
 * vfs.h - the tree of names, and its vnodes.
 *
 * All file systems of this kernel live in memory. So the VFS itself keeps the tree of names: a
 * vnode stays in it until its last name is removed. A file system supplies only reading and
 * writing. A file may have several names (hard links), a directory has one.
 *
 * Locking legend of struct vnode:
 *   [c] constant after creation
 *   [v] vfs_lock, one sleep mutex for the whole tree
 *   [d] the vnode's own mutex `lock`, for the data; taken after vfs_lock
 *   [a] atomic
 *
 * Unless said otherwise, all functions: thread context, may sleep, no lock of this file held. Paths
 * have at most PATH_MAX bytes with NUL, names at most NAME_MAX. "The user" is the current
 * process's; kernel threads are user 0.
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
struct vm_pager;
struct vname;
struct vnode;

/* The operations of a kind of vnode. NULL: the request fails. None is called with vfs_lock held. */
struct vnode_ops {
	/* A file is opened on the vnode. 0 or -errno. NULL: nothing to do. */
	int (*open)(struct file *f);
	/* The last reference to an open file is dropped. */
	void (*release)(struct file *f);
	/*
	 * Moves bytes at *off and advances *off. Returns the number of bytes, 0 at the end, or
	 * -errno if none were moved. vnode_read() passes f NULL.
	 */
	int64_t (*read)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	int64_t (*write)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	/* Sets the size: bytes are cut off, or zeroes added. -EFBIG. */
	int (*truncate)(struct vnode *vn, uint64_t size);
	/* Makes all bytes of the range be there: the file grows. -ENOSPC, -EFBIG. */
	int (*allocate)(struct vnode *vn, uint64_t off, uint64_t len);
	/* What it is ready for now, POLL… (kernel/abi/poll.h). NULL: always for everything. */
	unsigned (*poll)(struct file *f);
	int64_t (*ioctl)(struct file *f, unsigned request, uint64_t arg);
	/* As vm_pager.page (kernel/vm/vm.h). NULL: it cannot be mapped. */
	void *(*page)(struct vnode *vn, uint64_t index, bool make, int *err);
	/* A directory in which only the kernel adds names: somebody wants one made, removed. 0 or
	 * -errno. Its `fill` gives it the name, takes it away. */
	int (*mkdir)(struct vnode *dir, const char *name);
	int (*rmdir)(struct vnode *dir, const char *name);
	/* The last reference is dropped: frees vn->data. */
	void (*destroy)(struct vnode *vn);
};

struct vnode {
	uint32_t refs;      /* [a] each name has one */
	uint32_t mode;      /* [a] S_IF… [c] and permission bits */
	uint32_t uid;       /* [a] */
	struct uidinfo *ui; /* [c] the user to whom vnode, name and data are counted */
	bool fixed;         /* [c] directory: only the kernel adds and removes names */
	bool root_only;     /* [c] all users but 0 get EPERM, whatever the mode says */
	int32_t flocks; /* locks of flock(): how many that share; -1: one (flock.c: flock_mutex) */
	bool stream;    /* [c] regular file without offsets: reads may wait, as a pipe's do */
	/* [v] directory: adds its names by vnode_fill(), when somebody looks for one while names
	 * are `missing`. */
	void (*fill)(struct vnode *dir);
	bool missing;
	uint64_t ino;                /* [c] */
	const struct vnode_ops *ops; /* [c] */
	void *data;    /* [c] the file system's; of a symbolic link its text, with NUL */
	uint64_t rdev; /* [c] device number, 0 none */

	uint32_t links;     /* [v] how many names it has */
	struct vname *name; /* [v] the newest one; NULL: it never had one, or that one is removed */
	/*
	 * [v] directory: NULL once it is removed. The root is its own parent. Holds no reference: a
	 * directory with children is never removed.
	 */
	struct vnode *parent;
	struct list children; /* [v] directory: its names, ordered by cookie */
	uint64_t next_cookie; /* [v] directory: for the next child */

	struct mutex lock; /* [d] */
	uint64_t size;     /* [d] */
	uint64_t mtime_ns; /* [d] in clock_ns() time */
};

/* Makes the root, /tmp and /dev with its devices. Once, at boot. */
void vfs_init(void);
/*
 * Unpacks an archive (cpio.h) into the tree. A later file replaces an earlier one. Damaged parts
 * are reported by warnk() and left out.
 */
void vfs_unpack(const struct boot_module *m);

/*
 * Finds the vnode of a path, relative to cwd (NULL: the root), through symbolic links. Returns it
 * with a reference, or NULL and a negative errno in *err.
 */
struct vnode *vnode_lookup(struct vnode *cwd, const char *path, int *err);
/* The same; if the path's last part is a symbolic link, that link. */
struct vnode *vnode_lookup_link(struct vnode *cwd, const char *path, int *err);
/*
 * Makes a vnode with its name, owned by the user. mode includes the S_IF bits. Returns it with a
 * reference, or NULL and *err: -EEXIST, -ENOENT, -ENOTDIR, -EACCES, -ENOSPC; -EPERM in a fixed
 * directory.
 */
struct vnode *vnode_create(struct vnode *cwd, const char *path, uint32_t mode, int *err);
/* Makes a symbolic link to the text `to`. Returns and errors as of vnode_create(). */
struct vnode *vnode_symlink(struct vnode *cwd, const char *path, const char *to, int *err);
/*
 * Gives a file one more name. 0 or -errno: those of vnode_create(); -EPERM: it is a directory;
 * -EXDEV: a file of the kernel's; -ENOENT: its last name is gone already.
 */
int vnode_link(struct vnode *vn, struct vnode *cwd, const char *path);
/*
 * Finds a vnode, or makes it if there is none: *made says which. This is atomic. follow: through a
 * symbolic link that the last part is, also to make what it leads to. Returns and errors
 * as of the two functions above.
 */
struct vnode *vnode_lookup_or_create(struct vnode *cwd, const char *path, uint32_t mode,
				     bool follow, bool *made, int *err);
/*
 * Removes a name; the vnode lives while it has another, or is open. dir: only an empty directory.
 */
int vnode_remove(struct vnode *cwd, const char *path, bool dir);
/*
 * Renames a vnode. A vnode of the same kind that had the new name loses it; RENAME_NOREPLACE: then
 * nothing is renamed, -EEXIST; RENAME_EXCHANGE: both vnodes, of whatever kind, change places.
 */
int vnode_rename(struct vnode *cwd_from, const char *from, struct vnode *cwd_to, const char *to,
		 unsigned flags);
/*
 * For the kernel: adds a name to a directory, whatever the user's rights. Takes over data; after a
 * failure it does not call ops->destroy, so data is still the caller's. Returns the vnode with a
 * reference.
 */
struct vnode *vnode_add(struct vnode *dir, const char *name, uint32_t mode,
			const struct vnode_ops *ops, void *data, int *err);
/*
 * The same for the `fill` of a directory, which is called with vfs_lock held: it adds the names
 * that the directory lacks. Returns the vnode without a reference; NULL: it is there, or there is
 * no memory, and the directory still misses a name.
 */
struct vnode *vnode_fill(struct vnode *dir, const char *name, uint32_t mode,
			 const struct vnode_ops *ops, void *data);
/*
 * For `fill`: removes the names in dir of which stale() is true, and all below them. vfs_lock held.
 */
void vnode_sweep(struct vnode *dir, bool (*stale)(const struct vnode *vn, const char *name));
/* Makes a vnode without a name, for pipes. NULL: no memory. */
struct vnode *vnode_alloc(uint32_t mode, const struct vnode_ops *ops, void *data);

/* Adds a reference and returns vn. Any context but NMI. */
struct vnode *vnode_ref(struct vnode *vn);
/* Drops a reference; the last one frees the vnode. May sleep. NULL is allowed. */
void vnode_unref(struct vnode *vn);

/*
 * Reads a regular file into kernel memory. Bytes, 0 at the end; -EISDIR, -EINVAL for other kinds.
 */
int64_t vnode_read(struct vnode *vn, void *buf, size_t len, uint64_t off);
/* Size of a regular file in bytes. */
uint64_t vnode_size(struct vnode *vn);

#define VNODE_EXEC  1
#define VNODE_WRITE 2
#define VNODE_READ  4
/* May the user do `want`? 0, -EACCES, or -EPERM if only user 0 may. Any context. */
int vnode_access(const struct vnode *vn, unsigned want);
/* The same of any user. */
int vnode_access_of(const struct vnode *vn, uint32_t user, unsigned want);
/* 0; or -EACCES: not a regular file, or the user may not execute it. Any context. */
int vnode_may_execute(const struct vnode *vn);

/*
 * Sets the permission bits; the owner; the time of the last change, in ns of clock_real_ns(). 0, or
 * -EPERM: the user is neither the owner nor 0 (who alone gives files away).
 */
int vnode_chmod(struct vnode *vn, uint32_t mode);
int vnode_chown(struct vnode *vn, uint32_t uid);
int vnode_set_mtime(struct vnode *vn, uint64_t real_ns);
/* Makes the file's time that of now, whoever the user is. 0. */
int vnode_touch(struct vnode *vn);
void vnode_stat(struct vnode *vn, struct stat *st);
/*
 * Writes struct linux_dirent64 records from *cookie on, and advances *cookie. Returns bytes, 0 at
 * the end, -ENOTDIR, or -EINVAL when not one record fits.
 */
int64_t vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie);
/*
 * Stores the absolute path of a directory. Returns its length; -ERANGE: it does not fit; -ENOENT:
 * the directory was removed.
 */
int vnode_path(struct vnode *dir, char *buf, size_t size);

/* For events: the last part of path, interned, at most 63 bytes. Any context. */
const char *vfs_trace_name(const char *path);

/* Pages of vnodes whose ops have `page`: the object is a struct vnode. */
extern const struct vm_pager vnode_pager;
/* ramfs.c: regular files. */
extern const struct vnode_ops ramfs_file_ops;
/* devfs.c: fills dir, which is /dev. */
void devfs_init(struct vnode *dir);
