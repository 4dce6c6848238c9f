/*
 * file.h - open files, and a process's table of them.
 *
 * Locking legend of struct file:
 *   [c] constant after opening
 *   [f] the file's own mutex `lock`; taken before the vnode's
 *   [a] atomic
 * A filetable belongs to one process, which has one thread: no lock. All functions: thread context,
 * may sleep.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/sched/mutex.h"

struct uidinfo;
struct uio;
struct vnode;

#define FILES_MAX 64 /* descriptors of a process */

struct file {
	uint32_t refs;      /* [a] */
	int flags;          /* O_…; [c] but for O_APPEND and O_NONBLOCK, [a] */
	struct vnode *vn;   /* [c] a reference */
	struct mutex lock;  /* [f] keeps reads and writes that move the offset apart */
	uint64_t off;       /* [f] bytes; of a directory: cookie */
	void *priv;         /* the device's or pipe's; set by open */
	struct uidinfo *ui; /* [c] who pays */
};

struct filetable {
	struct file *files[FILES_MAX];
	uint64_t close_on_exec; /* bit n: descriptor n */
	struct uidinfo *ui;     /* who pays for the table */
};

_Static_assert(FILES_MAX <= 64, "close_on_exec");

/*
 * Opens a path, seen from the current process's directory and with its rights; kernel threads: from
 * the root, as user 0. flags O_…, mode the permission bits of a file that is made. 0 and *out with
 * a reference, or -errno; -ENFILE: all users together, or this one, have too many files open.
 */
int file_open(const char *path, int flags, uint32_t mode, struct file **out);
/* The same, seen from the directory cwd (NULL: the root). */
int file_open_at(struct vnode *cwd, const char *path, int flags, uint32_t mode, struct file **out);
/* Opens a vnode and takes over its reference; on an error, the driver's, -ENFILE or -ENOMEM, it
 * stays the caller's. */
int file_open_vnode(struct vnode *vn, int flags, struct file **out);
struct file *file_ref(struct file *f);
/* Closes with the last reference. NULL is allowed. */
void file_unref(struct file *f);

/* Bytes moved, 0 at the end, or -errno. */
int64_t file_read_uio(struct file *f, struct uio *u);
int64_t file_write_uio(struct file *f, struct uio *u);
/* The same with kernel memory. */
int64_t file_read(struct file *f, void *buf, size_t len);
int64_t file_write(struct file *f, const void *buf, size_t len);
/* The new offset, or -ESPIPE, -EINVAL. */
int64_t file_seek(struct file *f, int64_t off, int whence);

/* An empty table on the user's account. NULL: no memory, or too much for the user. */
struct filetable *filetable_create(struct uidinfo *ui);
/* A table with the same open files, or NULL. */
struct filetable *filetable_clone(struct filetable *ft, struct uidinfo *ui);
/* Closes all. */
void filetable_destroy(struct filetable *ft);
void filetable_close_on_exec(struct filetable *ft);
/* The open file, NULL when there is none. No reference: the table's lasts for this system call. */
struct file *filetable_get(const struct filetable *ft, uint64_t fd);
/*
 * Puts f, whose reference it takes over, at the lowest free descriptor from `min` on. The
 * descriptor, or -EMFILE; the reference is then still the caller's. flags: O_CLOEXEC or 0.
 */
int filetable_add(struct filetable *ft, struct file *f, unsigned min, int flags);
/* Puts f, whose reference it takes over, at fd, and closes what was there. fd < FILES_MAX. */
void filetable_put(struct filetable *ft, struct file *f, unsigned fd, int flags);
/* 0, or -EBADF. */
int filetable_close(struct filetable *ft, uint64_t fd);
