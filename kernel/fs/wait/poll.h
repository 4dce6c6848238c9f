/* poll.h - waiting until one of several files is ready. All that wait share this mechanism. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fasync;
struct file;

/*
 * Counts what happened to a file, for sets that want each event only once (EPOLLET). It belongs to
 * the driver, which makes file.news point to it when the file is opened.
 */
struct poll_source {
	uint32_t in;  /* atomic: how often there was more to read */
	uint32_t out; /* atomic: how often there was more room */
	struct fasync
	    *async; /* atomic: the first file whose owner is told; NULL: none (fasync.c) */
};

/*
 * A driver calls this after a change by which a file may have become ready for POLLIN, POLLOUT or
 * both; poll() of the file's vnode_ops sees the change. events 0: somebody waits for other files
 * than before. Any context but NMI.
 */
void poll_notify(struct poll_source *s, unsigned events);
/* Events are counted from now on, though nobody waits; or no longer. */
void poll_watch(bool on);
/* What an open file is ready for: POLL…, with POLLRDNORM and POLLWRNORM. Thread context. */
unsigned poll_ready(struct file *f);
/*
 * Calls look(arg) at once, and again after each poll_notify(), until it returns something other
 * than 0, and returns that. 0 at the deadline, a time of clock_ns(); -EINTR. Thread context of a
 * process.
 */
int64_t poll_wait(int64_t (*look)(void *arg), void *arg, uint64_t deadline);

/* What system calls that wait for files share. 0 or -errno. */

/* The deadline of a span in ms, an int; negative: none. */
uint64_t poll_deadline_ms(uint64_t ms);
/* The deadline of a span of time, struct timespec; 0: none. */
int poll_take_deadline(uint64_t uspan, uint64_t *deadline);
/* Sets the mask at umask for the time of the call. 0: none. */
int poll_take_mask(uint64_t umask, uint64_t size);
/* A call that has set a mask returns through this: the mask stays until a handler has run, if
 * one is to run. Returns r. */
int64_t poll_end(int64_t r);
