/* pipe.h - pipes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct uio;
struct vnode_ops;

#define PIPE_SIZE     65536u     /* bytes that a new pipe holds */
#define PIPE_SIZE_MAX (1u << 20) /* bytes that a pipe holds which a user has made larger */
#define PIPE_BUF      4096u      /* a write of up to so many bytes is not mixed with others */

/*
 * Makes a pipe: end[0] to read, end[1] to write, each with a reference. flags: O_NONBLOCK or 0. 0
 * or -ENOMEM. Thread context.
 */
int pipe_create(int flags, struct file *end[2]);

/* A pipe that has a name, made by mknod(): it has data while it is open. */
extern const struct vnode_ops fifo_ops;

bool is_pipe(const struct file *f);
/*
 * Returns how many bytes the pipe has room for; with `set`, after giving it room for `size` bytes
 * or a little more. -EBADF if the file is no pipe; -EBUSY if it holds more than that now; -EPERM,
 * -EINVAL, -ENOMEM.
 */
int64_t pipe_fcntl(const struct file *f, bool set, uint64_t size);
/* Waits for room. 0; -EAGAIN (nowait), -EPIPE, -EINTR. */
int pipe_await_room(const struct file *f, bool nowait);
/* Waits for data. 1; 0 at the end; -EAGAIN (nowait), -EINTR. */
int pipe_await_data(const struct file *f, bool nowait);
/*
 * Waits for data, and offers up to len bytes of it to sink(arg, u), which takes what it can and
 * returns how many, or -errno. With `take`, these leave the pipe. sink() may wait for a disk, but
 * not for a user: the pipe is locked meanwhile, and only poll() goes on. Returns what sink() does;
 * 0 at the end; or an error of pipe_await_data().
 */
int64_t pipe_give(const struct file *f, size_t len, bool nowait, bool take,
		  int64_t (*sink)(void *arg, struct uio *u), void *arg);
/*
 * Waits for room, and keeps up to n bytes of it for pipe_fill_kept(), which must follow. Returns
 * how many, or an error of pipe_await_room().
 */
int64_t pipe_keep_room(const struct file *f, size_t n, bool nowait);
/* Stores n bytes in the room that was kept, which is `kept` bytes, and gives back the rest.
 * Returns n, or -EPIPE. */
int64_t pipe_fill_kept(const struct file *f, const void *from, size_t n, size_t kept);
/*
 * Waits for data and takes up to n bytes, whose room stays kept. pipe_put_back() must follow; until
 * then other readers wait. Returns how many, or an error of pipe_await_data().
 */
int64_t pipe_take(const struct file *f, void *to, size_t n, bool nowait);
/* Of n bytes from pipe_take(), the last `left` are the first ones of the pipe again. */
void pipe_put_back(const struct file *f, const char *from, size_t n, size_t left);
