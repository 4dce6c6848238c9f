/*
 * file.h - open files, and a process's table of them.
 *
 * Locking legend of struct file:
 *   [c] constant after opening
 *   [f] the file's own mutex `lock`; taken before the vnode's
 *   [e] the lock of epoll.c
 *   [a] atomic
 * A filetable belongs to one process, whose threads share it; its spin lock guards all of it. All
 * functions: thread context, may sleep.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/abi/fcntl.h"
#include "kernel/lib/list.h"
#include "kernel/sched/mutex.h"
#include "kernel/sync/spinlock.h"

struct fasync;
struct poll_source;
struct uidinfo;
struct uio;
struct vnode;
struct vnode_ops;

#define FILES_MAX   65536 /* descriptors of a process; a power of two */
#define FILES_FIRST 64    /* room of a new table; it grows by powers of two */

/* Descriptors that the current process may open: below this number. FILES_MAX at most. */
unsigned filetable_limit(void);

struct file {
	uint32_t refs;            /* [a] */
	int flags;                /* O_…; [c] but for O_APPEND and O_NONBLOCK, [a] */
	struct vnode *vn;         /* [c] a reference */
	struct mutex lock;        /* [f] held during reads and writes that use the offset */
	uint64_t off;             /* [f] bytes; for a directory, a cookie */
	uint64_t list_end;        /* [f] the cookie at which its listing ends */
	void *priv;               /* for the device or pipe; set by its open */
	struct uidinfo *ui;       /* [c] the user to whom it is counted */
	struct poll_source *news; /* [c] the driver's counts of events; NULL: it has none */
	struct list watches;      /* [e] its places in sets of epoll */
	struct fasync *async;     /* [a] who is told its news (fasync.c); NULL: nobody ever was */
	bool watched;             /* [e] the file has been in a set of epoll; it stays set */
	bool writes;              /* [c] it counts in vn->writers */
	uint32_t io_heard;        /* [a] of vn->io_error (writeback_error()) */
	uint8_t flock;            /* LOCK_SH, LOCK_EX or 0 (flock.c: flock_mutex) */
};

struct filetable {
	struct spinlock lock;    /* innermost, but for that of uidinfo */
	unsigned size;           /* room for descriptors below this; it never falls */
	struct file **files;     /* NULL: none */
	uint64_t *used;          /* bit n: descriptor n is open, or a file is being opened for it */
	uint64_t *close_on_exec; /* bit n: descriptor n */
	struct uidinfo *ui;      /* the user to whom the table is counted */
	uint32_t refs;           /* atomic; processes that have it */

	/* Where the three are at first. */
	struct file *first_files[FILES_FIRST];
	uint64_t first_used, first_close_on_exec;
};

_Static_assert(FILES_FIRST == 64, "first_used");

/* All descriptors that are open are below this. */
static inline unsigned
filetable_room(const struct filetable *ft)
{
	return __atomic_load_n(&ft->size, __ATOMIC_RELAXED);
}

/* As filetable_get(), in a process that has one thread and shares no files. */
static inline struct file *
filetable_peek(const struct filetable *ft, uint32_t fd)
{
	struct file *f = fd < ft->size ? ft->files[fd] : NULL;

	return f != NULL && !(f->flags & O_PATH) ? f : NULL;
}

/*
 * Opens a path, relative to the current process's directory and with its rights. Kernel threads:
 * relative to the root, as user 0. flags: O_…; mode: permission bits of a new file. 0, and *out has
 * a reference; or -errno. -ENFILE: the user, or all users together, have too many open files.
 */
int file_open(const char *path, int flags, uint32_t mode, struct file **out);
/* As file_open(), but the path is relative to the directory cwd (NULL: the root). */
int file_open_at(struct vnode *cwd, const char *path, int flags, uint32_t mode, struct file **out);
/*
 * Opens a vnode and takes over its reference. With O_PATH the file is a place only, and its driver
 * does not hear of it. After an error (the driver's, -ENFILE, -ENOMEM) the caller keeps the
 * reference.
 */
int file_open_vnode(struct vnode *vn, int flags, struct file **out);
/*
 * Opens a file that has no name, for reading and writing. size: bytes of its vnode's data, zeroed,
 * which file_unnamed_destroy() frees. flags: O_NONBLOCK or 0. NULL: *err is -ENFILE or -ENOMEM.
 */
struct file *file_open_unnamed(const struct vnode_ops *ops, size_t size, int flags, int *err);
void file_unnamed_destroy(struct vnode *vn);
struct file *file_ref(struct file *f);
/* Drops a reference; the last one closes the file. NULL is allowed. */
void file_unref(struct file *f);

/* Bytes moved, 0 at the end of the file, or -errno. */
int64_t file_read_uio(struct file *f, struct uio *u);
int64_t file_write_uio(struct file *f, struct uio *u);
/* Read and write at `off`; the file's own offset stays. -ESPIPE: the file has no offset. */
int64_t file_read_at(struct file *f, struct uio *u, uint64_t off);
int64_t file_write_at(struct file *f, struct uio *u, uint64_t off);
/* As the first two, for kernel memory. */
int64_t file_read(struct file *f, void *buf, size_t len);
int64_t file_write(struct file *f, const void *buf, size_t len);
/*
 * Reads or writes the pieces of user memory that `count` struct iovec at uvec describe. nowait: as
 * O_NONBLOCK, for pipes.
 */
int64_t file_move_pieces(struct file *f, uint64_t uvec, uint64_t count, bool write, bool nowait);
/*
 * Reads pages of a file of a disk into memory, before somebody reads them; size 0: all that follow,
 * up to a limit. Does nothing for other files. Who reads what could not be read, is told why.
 */
void file_read_ahead(struct file *f, uint64_t off, uint64_t size);
/* The new offset, or -ESPIPE, -EINVAL. */
int64_t file_seek(struct file *f, int64_t off, int whence);

/* Drops the lock of flock() that the file has. */
void flock_end(struct file *f);
/*
 * Drops the record locks that an owner has on a vnode: a process's table, of fcntl(F_SETLK); or an
 * open file, of fcntl(F_OFD_SETLK).
 */
void record_locks_end(struct vnode *vn, const void *owner);
/* fcntl() with a lock command and the address of Linux's struct flock. 0 or -errno. */
int64_t record_lock_fcntl(struct filetable *ft, uint64_t fd, int command, uint64_t uflock);

/* An empty table, counted for ui. NULL: no memory, or the user's limit. */
struct filetable *filetable_create(struct uidinfo *ui);
/* A table with the same open files, counted for ui. NULL: no memory, or the user's limit. */
struct filetable *filetable_clone(struct filetable *ft, struct uidinfo *ui);
/* Closes all files and frees the table. */
void filetable_destroy(struct filetable *ft);
void filetable_close_on_exec(struct filetable *ft);
/*
 * Returns the open file of a descriptor of the current process, or NULL. The file stays until this
 * system call has ended: where other threads could close it, the thread holds a reference for so
 * long.
 */
struct file *filetable_get(struct filetable *ft, uint64_t fd);
/* As filetable_get(), but also finds a file opened with O_PATH, which is only a place. */
struct file *filetable_get_any(struct filetable *ft, uint64_t fd);
/* A reference to the open file of a descriptor of the current process, or NULL. */
struct file *filetable_ref(uint64_t fd);
/* As filetable_get(), if the file has these operations. NULL: *err is -EBADF or -EINVAL. */
struct file *filetable_get_kind(uint64_t fd, const struct vnode_ops *ops, int *err);
/* Drops these references now. */
void file_release_held(void);
/*
 * Stores f at the lowest free descriptor from min on, and takes over its reference; or, if f is
 * NULL, keeps the descriptor for filetable_fill(). flags: O_CLOEXEC or 0. Returns the descriptor;
 * or -EMFILE if none is free, -ENOMEM, and then the caller keeps the reference.
 */
int filetable_add(struct filetable *ft, struct file *f, unsigned min, int flags);
/* Stores f at the lowest free descriptor. If none is free, drops the reference. */
int filetable_install(struct file *f, int flags);
/* Keeps the lowest free descriptor of the current process for filetable_fill(), so that nobody else
 * gets it. Returns it; or -EMFILE if none is free, -ENOMEM. */
int filetable_reserve(void);
/* Stores f there and takes over its reference. NULL: the descriptor is free again. */
void filetable_fill(unsigned fd, struct file *f, int flags);
/* Gives both files descriptors. Their numbers are stored in fd, and at ufds before anybody can use
 * them. 0; or -EMFILE, -ENOMEM, -EFAULT, and then the references are dropped. */
int filetable_give_pair(struct file *f[2], int fd[2], uint64_t ufds, int flags);
/*
 * Stores f at fd, which is below FILES_MAX, takes over its reference, and closes the file that was
 * there. 0; or -EBUSY if fd is kept for another file, -ENOMEM, and then the caller keeps the
 * reference.
 */
int filetable_put(struct filetable *ft, struct file *f, unsigned fd, int flags);
/* Is a descriptor, if it is open, to be closed by exec()? */
bool filetable_is_cloexec_locked(const struct filetable *ft, unsigned fd); /* ft->lock held */
void filetable_set_cloexec(struct filetable *ft, unsigned fd, bool on);
bool filetable_is_cloexec(struct filetable *ft, unsigned fd);
/* The lowest open descriptor from `from` on; FILES_MAX: there is none. Lock held, or alone. */
unsigned filetable_next(const struct filetable *ft, unsigned from);
/* 0, or -EBADF. */
int close_fd(uint64_t fd, struct filetable *ft);
