/* pipe.h - pipes. */
#pragma once

struct file;

#define PIPE_SIZE 65536u /* bytes that a pipe holds */
#define PIPE_BUF  4096u  /* a write of up to so many bytes is not mixed with others */

/*
 * Makes a pipe: end[0] to read, end[1] to write, each with a reference. flags: O_NONBLOCK or 0. 0
 * or -ENOMEM. Thread context.
 */
int pipe_create(int flags, struct file *end[2]);
