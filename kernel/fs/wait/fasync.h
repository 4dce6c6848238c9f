/*
 * fasync.h - files whose news are told by a signal: O_ASYNC, F_SETOWN, F_SETSIG (fcntl(2), section
 * "Managing signals"). Pipes, sockets and terminals can, whose drivers count their news (struct
 * file: news).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file;
struct poll_source;

/*
 * From now on, tells or does not tell the owner of a file's news. fd is the number that the owner
 * gets with them. 0; -ENOTTY if the file has no news to tell; -ENOMEM: no memory, or the user has
 * as many as fs.async-files says. Thread context of a process, no lock held.
 */
int fasync_set(struct file *f, int fd, bool on);
/* Does what fcntl() does with F_SETOWN, F_GETOWN, F_SETOWN_EX, F_GETOWN_EX, F_SETSIG or F_GETSIG,
 * and returns the same, or -errno. Context as fasync_set(). */
int64_t fasync_fcntl(struct file *f, int command, uint64_t arg);
/* The current process becomes the owner of a file that has none. 0; -ENOMEM. Context as above. */
int fasync_claim(struct file *f);
/* Tells the owner of a file that was claimed, with the number fd. Thread context; no spin lock. */
void fasync_send_message(struct file *f, int fd);
/* More to read, or more room: POLLIN, POLLOUT. For poll_notify(). Any context but NMI. */
void fasync_notify(struct poll_source *s, unsigned events);
/* The file ends; nothing more is told. Thread context, no spin lock held. */
void fasync_end(struct file *f);
