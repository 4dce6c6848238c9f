/* pipe.h - pipes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct uio;

#define PIPE_SIZE 65536u /* bytes that a pipe holds */
#define PIPE_BUF  4096u  /* a write of up to so many bytes is not mixed with others */

/*
 * Makes a pipe: end[0] to read, end[1] to write, each with a reference. flags: O_NONBLOCK or 0. 0
 * or -ENOMEM. Thread context.
 */
int pipe_create(int flags, struct file *end[2]);

bool is_pipe(const struct file *f);
/* Waits for room for so many bytes, PIPE_SIZE at most. 0; -EAGAIN (nowait), -EPIPE, -EINTR. */
int pipe_await_room(const struct file *f, size_t room, bool nowait);
/* Waits for data. 1; 0 at the end; -EAGAIN (nowait), -EINTR. */
int pipe_await_data(const struct file *f, bool nowait);
/*
 * Waits for data and gives up to len bytes of it to sink(arg, u), which takes what it can and
 * returns how many, or -errno. It must not wait: the pipe is locked. take: what it took leaves the
 * pipe. Returns what sink() does; 0 at the end; or as pipe_await_data().
 */
int64_t pipe_give(const struct file *f, size_t len, bool nowait, bool take,
		  int64_t (*sink)(void *arg, struct uio *u), void *arg);
