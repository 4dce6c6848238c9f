/*
 * vfs.h - the tree of names, and its vnodes.
 *
 * The VFS itself keeps the tree of names: a vnode stays in it until its last name is removed. For a
 * file system on a disk the tree is a cache: names that nobody uses may be forgotten, and are
 * loaded again. Names of /proc are not in it at all. A file may have several names (hard links), a
 * directory has one.
 *
 * Locking legend of struct vnode:
 *   [c] constant after creation
 *   [v] vfs_lock, one sleep mutex for the whole tree
 *   [d] the vnode's own mutex `lock`, for the data; taken after vfs_lock. Files of text, and those
 *       of tracefs, do nothing under it: what they show has locks of its own, which are taken
 *       before vfs_lock (ftrace_lock)
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

struct bio_batch;
struct boot_module;
struct file;
struct fsnotify_mark;
struct record_lock;
struct sbuf;
struct stat;
struct statfs;
struct uidinfo;
struct vm_pager;
struct vname;
struct vnode;
struct vnode_kind;
struct xattr;

/* The pages of a file, by number: nodes of 64 pointers (pagecache.c). */
struct pagetree {
	void *root;
	unsigned height; /* levels of nodes above the pages */
};

/* What a new vnode is. to: the text of a symbolic link; rdev: the number of a device; to_open: it
 * is made by open(), which has an error of its own if the name ends with a slash. */
struct vnode_kind {
	uint32_t mode;
	const char *to;
	uint64_t rdev;
	bool to_open;
};

/* Takes a name of a directory; false: no more. ino: of the vnode. cookie: ascending, not 0. */
typedef bool vnode_list_fn(void *arg, const char *name, uint32_t mode, uint64_t ino,
			   uint64_t cookie);

/* The operations of a kind of vnode; where one is NULL, the request fails. vfs_lock is held for the
 * first two, and where a comment says so. */
struct vnode_ops {
	/* For a directory whose names are not in the tree: makes the vnode of a name by
	 * vnode_make_nameless(). NULL, and *err, after an error. */
	struct vnode *(*lookup)(struct vnode *dir, const char *name, int *err);
	/* Calls add for its names after the one with cookie `from`; 0: from the first on. */
	void (*list)(struct vnode *dir, uint64_t from, vnode_list_fn *add, void *arg);
	/* As `list`, where the tree has only some of the names. 0 or -errno. No lock is held. */
	int (*readdir)(struct vnode *dir, uint64_t from, vnode_list_fn *add, void *arg);
	/*
	 * For a symbolic link: sets *text; and *to, with a reference, if the link leads there
	 * whatever the text says. 0 or -errno. vfs_lock may be held. If the operation is NULL, the
	 * text is vn->data.
	 */
	int (*link)(const struct vnode *vn, const char **text, struct vnode **to);
	/* A file is opened on the vnode. 0 or -errno. NULL: nothing to do. */
	int (*open)(struct file *f);
	/* The last reference to an open file is dropped. */
	void (*release)(struct file *f);
	/* Moves bytes at *off and advances *off. Returns the number of bytes, 0 at the end, or
	 * -errno if none were moved. vnode_read() passes f NULL. */
	int64_t (*read)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	int64_t (*write)(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
	/* Where data, or a hole, begins from off on; a number beyond the size: nowhere. */
	uint64_t (*seek)(struct vnode *vn, uint64_t off, bool hole);
	bool nowait; /* read and write heed uio.nowait; without this, RWF_NOWAIT is refused */
	/* Sets the size: cuts bytes off, or adds zeroes. vn->lock held. Nothing, if the file keeps
	 * no bytes: then `open` sees O_TRUNC among its flags, and may clear it. */
	int (*truncate)(struct vnode *vn, uint64_t size);
	/* Makes room for all bytes of a range. The file grows, unless keeps_size. -ENOSPC,
	 * -EOPNOTSUPP. vn->lock held. */
	int (*allocate)(struct vnode *vn, uint64_t off, uint64_t len, bool keeps_size);
	/* Takes the bytes of the range out: they are zero. vn->lock held. */
	int (*punch)(struct vnode *vn, uint64_t off, uint64_t len);
	/* What the file is ready for now, POLL… (kernel/abi/poll.h). NULL: for everything. */
	unsigned (*poll)(struct file *f);
	int64_t (*ioctl)(struct file *f, unsigned request, uint64_t arg);
	/* As vm_pager.page (kernel/vm/vm.h). NULL: the file cannot be mapped. */
	void *(*page)(struct vnode *vn, uint64_t index, bool make, int *err);
	/* For a directory in which only the kernel adds names: somebody wants one made, or
	 * removed. 0 or -errno. The directory's `fill` then adds the name, or takes it away. */
	int (*mkdir)(struct vnode *dir, const char *name);
	int (*rmdir)(struct vnode *dir, const char *name);
	/* A file of text (textfile.h): show prints all of it; store takes what was written,
	 * without the newline at its end, and may change the text. No lock is held. 0 or -errno. */
	int (*show)(struct vnode *vn, struct sbuf *out);
	int (*store)(struct vnode *vn, char *text);
	/* Not 0: programs write a list of lines ('\n') or words (' '), and one write may be a part
	 * of the list. */
	char parts;
	/* The last reference is dropped: frees vn->data. */
	void (*destroy)(struct vnode *vn);

	/* ---- on disks (pagecache.h). No spin lock is held ---- */

	/* Fills these sectors of a page. -EIO, -EUCLEAN. Called with the lock of a space held. */
	int (*readpage)(struct vnode *vn, uint64_t index, void *page, uint8_t sectors);
	/* Adds what writes these sectors. -EIO, -ENOSPC. */
	int (*writepage)(struct vnode *vn, uint64_t index, void *page, uint8_t sectors,
			 struct bio_batch *b);
	/*
	 * Makes room for bytes of this page that will be written. The blocks that it makes are
	 * dirty even if the bytes do not come, since they hold something old. vn->lock held.
	 * -ENOSPC, -EIO.
	 */
	int (*write_begin)(struct vnode *vn, void *page, uint64_t off, uint64_t len);
	/* Frees what is after the size. vn->lock held. */
	int (*cut)(struct vnode *vn, uint64_t size);
	/*
	 * Adds to the tree the names that it lacks of a directory, by vnode_enter(). vfs_lock held,
	 * as for all operations below: they change the directory on the disk, and its mtime_ns,
	 * first, and then the tree, which cannot fail.
	 */
	int (*load)(struct vnode *dir);
	/*
	 * In place of `load`, for a directory that others change, too: gives the tree this name as
	 * it is now, by vnode_enter(), or takes it from the tree, by vnode_forget(). 0; -ENOENT if
	 * there is no such name; or -errno.
	 */
	int (*revalidate)(struct vnode *dir, const char *name);
	/* Makes a vnode, as `kind` says, and its name. NULL and *err. */
	struct vnode *(*create)(struct vnode *dir, const char *name, const struct vnode_kind *kind,
				int *err);
	/* Makes a regular file without a name, as `kind` says. NULL and *err. */
	struct vnode *(*tmpfile)(struct vnode *dir, const struct vnode_kind *kind, int *err);
	int (*enter)(struct vnode *dir, const char *name, struct vnode *vn);
	int (*leave)(struct vnode *dir, const char *name, struct vnode *vn);
	/* old: the vnode that has the new name, or NULL. exchange: both change places. */
	int (*rename)(struct vnode *from, const char *name, struct vnode *vn, struct vnode *to,
		      const char *new, struct vnode *old, bool exchange);
};

/* What a file system on a disk does for all vnodes, also for its pipes and devices. */
struct vnode_disk_ops {
	const char *type; /* of the file system, as mount() has it; read-only data */
	/* Tells the file system what has changed: VNODE_DATA… If it returns -errno, the change
	 * could not be made, and vn is as before. vn->lock held, except for VNODE_DATA. */
	int (*changed)(struct vnode *vn, unsigned what);
	/* Corrects what the VFS does not know. vn->lock is not held. */
	void (*stat)(struct vnode *vn, struct stat *st);
	/* Has it names on the disk? */
	bool (*linked)(const struct vnode *vn);
	/* 0, or what its file system has lost so far: -errno. f: that is synced, or NULL. */
	int (*failed)(struct vnode *vn, const struct file *f);
	/* The last reference is dropped: frees vn->node. */
	void (*destroy)(struct vnode *vn);
	bool remote; /* no disk of this machine has a part in it */
};

struct vnode {
	uint32_t refs;      /* [a] each name has one */
	uint32_t mode;      /* [a] S_IF… [c] and permission bits */
	uint32_t uid, gid;  /* [a] */
	struct uidinfo *ui; /* [c] the user to whom vnode, name and data are counted */
	bool fixed;         /* [c] directory: only the kernel adds and removes names */
	bool mount_point;   /* [c] fixed directory: empty, and may be mounted on */
	bool root_only;     /* [c] who has no CAP_SYS_ADMIN gets EPERM, whatever the mode says */
	bool nameless;      /* [c] not in the tree: made for each look-up; holds `parent` */
	bool linkable;      /* [v] never had a name, and may get one (O_TMPFILE) */
	int32_t flocks; /* locks of flock(): how many that share; -1: one (flock.c: flock_mutex) */
	struct record_lock *locks; /* those of fcntl() (flock.c: flock_mutex) */
	struct cond unlocked;      /* there are fewer of both (flock.c: flock_mutex) */
	/* [a] regular file: how often it is open for writing, or mapped so that it can be
	 * written; if it is negative, how many processes execute it */
	int32_t writers;
	uint32_t maps;    /* [a] how many areas of programs its pages are mapped in */
	uint32_t sharing; /* [a] of a memfd: how many calls are about to map it shared */
	uint8_t seals;    /* [d] of a memfd (memfd.c) */
	bool stream;      /* [c] regular file without offsets: reads may wait, as a pipe's do */
	bool any_off;     /* [c] device that is the same at any offset; its own is always 0 */
	/* [v] directory: adds its names by vnode_fill(). Called when somebody looks for a name and
	 * `missing` is true. */
	void (*fill)(struct vnode *dir);
	bool missing;
	bool no_memory;              /* [v] `fill` had none for a name */
	bool detached;               /* [v] its file system was unmounted, which took its names */
	uint64_t ino;                /* [c] */
	uint32_t dev;                /* [v] its file system's number; 0: it is in none */
	const struct vnode_ops *ops; /* [c] */
	void *data; /* [c] the file system's; of a symbolic link its text, with NUL */
	const struct vnode_disk_ops *disk; /* [c] NULL: it is on none, or a disk itself */
	void *node;                        /* [c] what a file system on a disk knows of it */
	struct pagetree pages;             /* pages_lock */
	uint64_t page_count;               /* pages_lock */
	struct xattr *xattrs;              /* [d] of a file in memory, in order (xattr.c) */
	uint64_t rdev;                     /* [c] device number, 0 none */

	uint32_t links, dirs; /* [v] how many names it has; and how many directories are in it */
	struct list names;    /* [v] its own names, by their age */
	struct vname *name;   /* [v] the newest one, or NULL; a root that is mounted has the name of
			       * the directory that it covers */
	struct vname *gone; /* [v] its last one, removed while it was open (fsnotify_keep_name()) */
	struct fsnotify_mark *marks; /* who watches it (inotify.c: inotify_lock); [a]: any? */
	/*
	 * [v] directory: NULL once it is removed. The root is its own parent. This is no reference,
	 * since a directory with children is never removed; but for a vnode that is not in the tree
	 * it is one.
	 */
	struct vnode *parent;
	struct vnode *cover;  /* [v] directory: the root of what is mounted there; NULL: nothing */
	struct list children; /* [v] directory: its names, ordered by cookie */
	uint64_t next_cookie; /* [v] directory: for the next child */
	struct vname *listed; /* [v] directory: the last name that a listing gave; NULL: none */

	struct mutex lock;     /* [d] */
	uint64_t size;         /* [d] */
	uint64_t size_max;     /* [c] how large it can become; 0: FILE_SIZE_MAX */
	uint32_t io_error;     /* [a] what was written, and lost (writeback_error()); 0: nothing */
	const bool *read_only; /* of its file system, [a]; NULL: never. [c] once it has a name */
	uint64_t mtime_ns;     /* [a] since 1970, by clock_real_ns() */
	uint64_t ctime_ns;     /* [a] the same; of a file on a disk, that has its own */
	uint64_t atime_ns;     /* [a] as utimensat() has set it: no read changes it */
};

/* What mount() may choose. */
struct mount_options {
	uint32_t mode, uid, gid;         /* mode: of the root directory */
	bool has_mode, has_uid, has_gid; /* mount() was told; without has_mode, `mode` may count */
	uint64_t pages;                  /* pages that files in memory may have; 0: any number */
};

/* A kind of file system. */
struct vfs_type {
	const char *name; /* as mount() and /proc/mounts have it */
	uint64_t magic;   /* of statfs() */
	/*
	 * Makes the root directory of a new file system, with these options if it has a choice.
	 * NULL, and *err, after an error. If make is NULL, there is only one file system of this
	 * type, which the kernel mounts.
	 */
	struct vnode *(*make)(const struct mount_options *o, int *err);
	/*
	 * In place of `make`, for a type on disks: `source` is the disk's file. -ENOTBLK; -EBUSY;
	 * -EROFS if it can only be mounted read-only; -EINVAL if it is not of this type, or has
	 * features that are not known.
	 */
	struct vnode *(*mount)(const char *source, bool read_only, int *err);
	/* May mount() have this option? NULL: only "mode=", and what is below. */
	bool (*option)(const char *word);
	/* "uid=" and "gid=": whose all files are from then on; also when it is mounted again. */
	bool owned;
	/*
	 * Changes whether the file system may be written to. Names may be changed while this waits
	 * for the disk. 0; -EBUSY if files are open for writing; -EROFS if it must not be written
	 * to.
	 */
	int (*remount)(struct vnode *root, bool read_only);
	void (*statfs)(struct vnode *root, struct statfs *s);
	/* Is something in use that is not in the tree: an open file or directory that has lost
	 * its last name? vfs_lock held. If in_use is NULL, nothing is. */
	bool (*in_use)(const struct vnode *root);
	/* Has the tree so many names of this file system that vfs_trim() should forget some? */
	bool (*crowded)(const struct vnode *root);
};

/* Forgets names that nobody uses, of file systems on disks that have too many. */
void vfs_trim(void);
/* Call this when memory is short: gives up some pages of disks and their files that nobody uses and
 * that are not dirty. False if there are none. Thread context, no spin lock held. */
bool vfs_give_up_pages(void);

/* mount() knows the type from now on. Boot. */
void vfs_register_type(const struct vfs_type *type);

/* The directory root, which has no names yet, is a file system of its own. Boot. */
void vfs_mount_at_boot(struct vnode *root, const struct vfs_type *type);
/*
 * Mounts a new file system on a directory, or, for dir NULL, in place of the root, which is then
 * the caller's to drop (boot). source: NULL if the type wants none. flags: MS_RDONLY, and as below.
 * -EINVAL: a source is wanted; -ENODEV: no such type;
 * -EBUSY: there can be only one, or the kernel fills the directory; -ENOTDIR, -ENOENT, -ENOMEM.
 */
int vfs_mount(struct vnode *dir, const char *type, const char *source,
	      const struct mount_options *options, unsigned flags);
/* As vfs_mount(), at boot. Makes the directory, and those above it, if it is missing. */
int vfs_mount_path(const char *path, const char *type, const char *source, unsigned flags);
/* Ends the file system in memory that was the root until then. Boot. */
void vfs_drop_first_root(struct vnode *root);
/*
 * For the loader parameter root=. vfs_has_root_device(): is the root to be a file system on a disk?
 * vfs_mount_root_device() mounts it, with /dev, /proc, /sys and /tmp, or panics. Boot, before the
 * functions of the list `mounting` (hook.h), which mount what other parameters say.
 */
bool vfs_has_root_device(void);
void vfs_mount_root_device(void);
/*
 * For `remount`: makes a file system read-only by setting *read_only, to which its vnodes point;
 * nobody else changes it. False if is_used(arg) returns true: then it is as before. is_used() finds
 * any file that is open for writing, and is called twice, before and after the change: whoever
 * opens one after that is refused.
 */
bool vfs_stop_writing(bool *read_only, bool (*is_used)(void *arg), void *arg);
/* Changes the flags of the file system with this root. -EINVAL if it is no root; -EBUSY to become
 * read-only while a file is open for writing, or something without a name is in use. */
int vfs_remount(struct vnode *root, const struct mount_options *options, unsigned flags);
/* Returns the flags of the file system that vn is in: MS_NOSUID, MS_NODEV, MS_NOEXEC, which
 * forbid something to do with its files, and others. */
unsigned vfs_mount_flags(const struct vnode *vn);
/* Tells how full the file system is that vn is in, if it knows. */
void vfs_statfs(struct vnode *vn, struct statfs *s);
/*
 * Unmounts the file system with this root; with `detach` even if it is in use, and then its names
 * are gone. -EINVAL if it is no root; -EBUSY if it is in use, or is never unmounted. Otherwise
 * returns what was lost, as vnode_sync() does.
 */
int vfs_unmount(struct vnode *root, bool detach);
/*
 * Writes all that is dirty, and has the disks keep it. 0; -EIO if a disk does not confirm it. What
 * was lost of a file is told by vnode_sync(). Thread context; locks of vnodes and the tree of names
 * may be held.
 */
int vfs_sync(void);
/* As vfs_sync(), for somebody who has written to vn. The result also tells what was lost earlier of
 * vn, or of what its file system needs, unless it was told. Does nothing for a file in memory. */
int vnode_sync(struct vnode *vn);
/* As vnode_sync(), for an open file: tells what was lost since it was opened, once. */
int file_sync(struct file *f);
/* The type of the file system that vn is in. NULL: in none. */
const struct vfs_type *vfs_type_of(const struct vnode *vn);
/* Prints all, as /proc/mounts does; info: as /proc/PID/mountinfo. 0 or -ENOMEM. */
int vfs_print_mounts(struct sbuf *out, bool info);

/* Makes the root, /tmp, and /dev with its devices and /dev/shm. Once, at boot. */
void vfs_init(void);
/* Unpacks an archive (cpio.h) into the tree. A later file replaces an earlier one. Damaged parts
 * are reported by pr_warn() and left out. */
void vfs_unpack(const struct boot_module *m);

/* Finds the vnode of a path, relative to cwd (NULL: the root), through symbolic links. Returns it
 * with a reference, or NULL and a negative errno in *err. */
struct vnode *vnode_lookup(struct vnode *cwd, const char *path, int *err);
/* As vnode_lookup(), but if the last part of the path is a symbolic link, finds that link. */
struct vnode *vnode_lookup_link(struct vnode *cwd, const char *path, int *err);
/*
 * Finds the vnode of a path from the user, relative to dirfd, and returns it with a reference.
 * AT_EMPTY_PATH: an empty path means dirfd itself; AT_SYMLINK_NOFOLLOW: a symbolic link is not
 * followed. NULL, and *error, after an error.
 */
struct vnode *vnode_of_user(uint64_t dirfd, uint64_t upath, uint64_t flags, int *error);
/* The vnode of the program's open file, with a reference. NULL: *error is -EBADF. */
struct vnode *vnode_of_fd(uint64_t fd, int *error);
/* The directory of a vnode's newest name, with a reference; or NULL. Takes vfs_lock. */
struct vnode *vnode_dir(const struct vnode *vn);
/*
 * Makes a vnode with its name, owned by the user. mode includes the S_IF bits. Returns it with a
 * reference, or NULL and *err: -EEXIST, -ENOENT, -ENOTDIR, -EACCES, -ENOSPC; -EPERM in a fixed
 * directory.
 */
struct vnode *vnode_create(struct vnode *cwd, const char *path, uint32_t mode, int *err);
/*
 * As vnode_create(), for a FIFO, a device (rdev is its number), a regular file, or the name of a
 * socket, which nobody can open.
 */
struct vnode *vnode_mknod(struct vnode *cwd, const char *path, uint32_t mode, uint64_t rdev,
			  int *err);
/* Makes a regular file without a name, where a directory is. flags: O_NOFOLLOW; O_EXCL: it never
 * gets one. Returns and errors as of vnode_lookup(); -EOPNOTSUPP, -ENOSPC. */
struct vnode *vnode_create_unnamed(struct vnode *cwd, const char *path, int flags, uint32_t mode,
				   int *err);
/* Makes a symbolic link to the text `to`. Returns and errors as of vnode_create(). */
struct vnode *vfs_symlink(struct vnode *cwd, const char *path, const char *to, int *err);
/* Gives a file one more name. 0 or -errno: those of vnode_create(); -EPERM if it is a directory;
 * -EXDEV if it is a file of the kernel's; -ENOENT if it has lost its last name, or gets none. */
int vnode_link(struct vnode *vn, struct vnode *cwd, const char *path);
/*
 * Finds a vnode, or makes it if there is none; *made says which. Nobody can come in between.
 * follow: if the last part of the path is a symbolic link, follows it, also to make what it leads
 * to. Returns and errors as of vnode_lookup() and vnode_create().
 */
struct vnode *vnode_lookup_or_create(struct vnode *cwd, const char *path, uint32_t mode,
				     bool follow, bool *made, int *err);
/* Removes a name. The vnode lives while it has another name, or is open. dir: the name must be that
 * of an empty directory. */
int vnode_remove(struct vnode *cwd, const char *path, bool dir);
/*
 * Renames a vnode. If a vnode of the same kind has the new name, it loses it. With RENAME_NOREPLACE
 * that is -EEXIST, and nothing is renamed. With RENAME_EXCHANGE both vnodes, of whatever kind,
 * exchange their names.
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
/* Removes the name of a vnode, if it still has one. */
void vnode_remove_name(struct vnode *vn);
/*
 * As vnode_add(), for the `fill` of a directory, which is called with vfs_lock held and adds the
 * names that the directory lacks. Returns the vnode without a reference. NULL if the directory has
 * the name already, or there is no memory: then `fill` is called again when somebody looks.
 */
struct vnode *vnode_fill(struct vnode *dir, const char *name, uint32_t mode,
			 const struct vnode_ops *ops, void *data);
/* For `fill`: says that there was no memory for a name; fill is called again at the next look. */
void vnode_fill_failed(struct vnode *dir);
/* For `fill`: has the directory that name? */
bool vnode_has(const struct vnode *dir, const char *name);
/*
 * For `fill`: removes the names in dir for which stale() is true, and all names below them. The
 * kernel has made these vnodes, and frees them soon. vfs_lock held.
 */
void vnode_sweep(struct vnode *dir, bool (*stale)(const struct vnode *vn, const char *name));
/*
 * For `revalidate`, with vfs_lock held. vnode_child() returns the vnode that has a name in dir,
 * without a reference, or NULL. vnode_keeps_names(): must dir, and what is below it, stay, since
 * something is mounted there? vnode_forget() takes a name in dir (NULL: all) from the tree,
 * vnode_forget_dir() that of dir itself and all below it.
 */
struct vnode *vnode_child(const struct vnode *dir, const char *name);
bool vnode_keeps_names(const struct vnode *dir);
void vnode_forget(struct vnode *dir, const char *name);
void vnode_forget_dir(struct vnode *dir);
/* Removes names in dir, whose tree is a cache, that nobody uses: at most so many. vfs_lock held. */
void vnode_forget_idle(struct vnode *dir, unsigned most);
/* Names at a time, where each may need an answer of the host, or of a disk. */
#define NAMES_AT_ONCE 64
/* Gives a vnode a name in the tree, for `load`, and takes over its reference; not with -ENOMEM.
 * vfs_lock held. */
int vnode_enter(struct vnode *dir, const char *name, struct vnode *vn);
/*
 * For `lookup`: makes a vnode for a name in dir that is not in the tree, with a copy of the data,
 * size bytes, a multiple of 8. It lives as long as somebody uses it. Its inode number comes from
 * that of dir, and the name: vnode_nameless_ino(). NULL if there is no memory.
 */
struct vnode *vnode_make_nameless(struct vnode *dir, const char *name, uint32_t mode,
				  const struct vnode_ops *ops, const void *data, size_t size);
uint64_t vnode_nameless_ino(const struct vnode *dir, const char *name);
/* Makes a directory without a name, to be mounted. NULL: no memory. */
struct vnode *vnode_alloc_dir(uint32_t bits);
/* Makes a vnode without a name, for pipes. NULL: no memory. ui: the user to whom it is counted. */
struct vnode *vnode_alloc_for(struct uidinfo *ui, uint32_t mode, const struct vnode_ops *ops,
			      void *data);
struct vnode *vnode_alloc(uint32_t mode, const struct vnode_ops *ops, void *data);

/* Adds a reference and returns vn. Any context but NMI. */
struct vnode *vnode_ref(struct vnode *vn);
/* Adds a reference if there is one. False: there is none, and the vnode is about to go. */
static inline bool
vnode_ref_live(struct vnode *vn)
{
	uint32_t n = __atomic_load_n(&vn->refs, __ATOMIC_RELAXED);

	while (n != 0 && !__atomic_compare_exchange_n(&vn->refs, &n, n + 1, true, __ATOMIC_RELAXED,
						      __ATOMIC_RELAXED))
		;
	return n != 0;
}
/* Drops a reference; the last one frees the vnode. May sleep. NULL is allowed. */
void vnode_unref(struct vnode *vn);

/*
 * Reads a regular file into kernel memory. Returns how many bytes, 0 at the end; -EISDIR; -EINVAL
 * for other kinds, and for a file that cannot be read.
 */
int64_t vnode_read(struct vnode *vn, void *buf, size_t len, uint64_t off);
/*
 * A regular file is written to until vnode_write_end(), or executed until vnode_execute_end(). Any
 * number may do the same at a time; -ETXTBSY if others do the opposite. Any context but NMI.
 */
int vnode_write_begin(struct vnode *vn);
void vnode_write_end(struct vnode *vn);
int vnode_execute_begin(struct vnode *vn);
void vnode_execute_end(struct vnode *vn);
/* A program is loaded from the file: tells those who watch it. */
void vnode_execute_notify(struct vnode *vn);
/* Size of a regular file in bytes. */
uint64_t vnode_size(struct vnode *vn);

#define VNODE_EXEC  1
#define VNODE_WRITE 2
#define VNODE_READ  4
/* May the user do `want`? 0, -EACCES, or -EPERM if only CAP_SYS_ADMIN may. Any context. */
int vnode_access(const struct vnode *vn, unsigned want);
/* vnode_access() for the process's real user and group. */
int vnode_access_real(const struct vnode *vn, unsigned want);
/* Is the user the file's owner, or has its rights? Any context. */
bool vnode_is_own(const struct vnode *vn);
/* 0; or -EACCES: not a regular file, or the user may not execute it, or nobody (MS_NOEXEC). */
int vnode_may_execute(const struct vnode *vn);

/*
 * Set the permission bits; the owner and group (UINT32_MAX leaves one as it is); the times of last
 * use and change (VNODE_TIME_OMIT leaves one as it is). 0, -EROFS, or -EPERM if the file is another
 * user's, or would be given away.
 */
int vnode_chmod(struct vnode *vn, uint32_t mode);
int vnode_chown(struct vnode *vn, uint32_t uid, uint32_t gid);
#define VNODE_TIME_OMIT UINT64_MAX
int vnode_set_times(struct vnode *vn, uint64_t atime_ns, uint64_t mtime_ns);
/* Takes the set-id bits of a file that is no longer what its owner has made. */
void vnode_drop_set_ids(struct vnode *vn);
/* A new vnode in dir: in a directory with S_ISGID, it is of the directory's group. */
void vnode_inherit(struct vnode *vn, const struct vnode *dir);
#define VNODE_DATA     0 /* the file's bytes, and so its size and time */
#define VNODE_MODE     1
#define VNODE_OWNER    2
#define VNODE_TIME     4
#define VNODE_TIME_NOW 8 /* both times */
#define VNODE_ATIME    16
/* Tells the file system what has changed. 0, or -errno: the change could not be made. */
int vnode_changed(struct vnode *vn, unsigned what);
/* Is a directory's part of the tree only a cache of what a disk, or the host, has? */
static inline bool
vnode_is_cache(const struct vnode *dir)
{
	return dir->ops->load != NULL || dir->ops->revalidate != NULL;
}
/* Can nothing of it be changed? */
static inline bool
vnode_read_only(const struct vnode *vn)
{
	return vn->read_only != NULL && __atomic_load_n(vn->read_only, __ATOMIC_RELAXED);
}
/* Makes the file's time that of now, whoever the user is. 0. */
int vnode_touch(struct vnode *vn);
void vnode_stat(struct vnode *vn, struct stat *st);
/*
 * vnode_truncate() sets the size of a file whose ops have `truncate`. vnode_allocate() makes room
 * for a range, or, with FALLOC_FL_PUNCH_HOLE, takes its bytes out, if the ops can do that. -ETXTBSY
 * if the file is executed (truncate); -EFBIG, -EROFS; or as the operation says.
 */
int vnode_truncate(struct vnode *vn, uint64_t size);
int vnode_allocate(struct vnode *vn, uint64_t off, uint64_t len, uint32_t mode);
/* Does what programs write into its pages become the file's? Not with files of the host. */
static inline bool
vnode_keeps_pages(const struct vnode *vn)
{
	return vn->ops->readpage == NULL || vn->ops->writepage != NULL;
}
/*
 * For `truncate`: sets the size, so that faults that begin later bring in no page after it; and
 * then waits for faults that go by the old size, which hold the lock of their space. vn->lock held.
 */
void vnode_shrink(struct vnode *vn, uint64_t size);
/*
 * Writes struct linux_dirent64 records from *cookie on, and advances *cookie, up to *end, which is
 * set when the listing begins. Returns how many bytes, 0 at the end; -ENOTDIR; -EINVAL if not one
 * record fits.
 */
int64_t vnode_read_dir(struct vnode *dir, struct uio *u, uint64_t *cookie, uint64_t *end);
/*
 * Stores the path of a vnode from the root of the current process. If the vnode is not below that
 * root, *outside (may be NULL) becomes true, and the path begins at the root of the machine.
 * Returns the length; -ERANGE if it does not fit; -ENOENT if the vnode has no name, or was removed.
 */
int vnode_path(struct vnode *vn, char *buf, size_t size, bool *outside);
/* vnode_path() for callers that hold vfs_lock. */
int vnode_path_locked(struct vnode *vn, char *buf, size_t size, bool *outside);

/* For events: the last part of path, interned, at most 63 bytes. Any context. */
const char *vfs_trace_name(const char *path);

/* Pages of vnodes whose ops have `page`: the object is a struct vnode. */
extern const struct vm_pager vnode_pager;
extern struct vnode *vfs_root; /* constant once there are processes */
/* ramfs.c: regular files. */
extern const struct vnode_ops ramfs_file_ops;
/* No page of a file after this is kept: pages have numbers of 32 bits (page_descriptor.h). */
#define FILE_SIZE_MAX (1ull << 44)
/* devfs.c: fills dir, which is /dev. */
void devfs_init(struct vnode *dir);
