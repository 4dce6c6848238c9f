/* trace_private.h - what the files of kernel/trace share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct ktr_stream;
struct uart;
struct vport;

/*
 * Where the stream is written. A line to the host, a port of virtio-serial or the second serial
 * line, is driven directly, so that it works without threads and never waits. Everything else is a
 * file. At most one of the three is set.
 */
struct trace_sink {
	struct vport *port;
	struct uart *uart;
	struct file *file;
};

/*
 * The line to the host that this machine has: the port of virtio-serial with the name `trace`, or
 * else the second serial line, which may be missing. Any context, after the boot's hooks
 * `unpacked`.
 */
const char *trace_sink_default(void);
/* Says why a line cannot be opened (-ENXIO). NULL: path is no line. */
const char *trace_sink_missing(const char *path);
/* Is the sink a line to the host? Any context. */
bool trace_sink_is_line(const struct trace_sink *k);

/* Opens path for appending, or makes the file. 0, or -ENXIO, -ENOENT, … Thread context. */
int trace_sink_open(struct trace_sink *k, const char *path);
/* Thread context. */
void trace_sink_close(struct trace_sink *k);
/*
 * Writes as many of the len bytes from ktr_stream_peek(s) as possible without waiting, and tells
 * the stream (ktr_stream_taken()). Returns how many; 0: the line is busy or dead; -errno. Thread
 * context; any context if the sink is a line.
 */
int64_t trace_sink_write(struct trace_sink *k, struct ktr_stream *s, const uint8_t *bytes,
			 size_t len);
/*
 * Tells the stream that it has bytes which the line has not sent yet, but may: what it writes next
 * need not begin with them. Thread context; any context if the sink is a line.
 */
void trace_sink_let_go(struct trace_sink *k, struct ktr_stream *s);

/* Settings of the flush, for alq.c; thread context, or boot. Results are 0 or -errno. */
#define TRACE_PATH_MAX 128

/* Switching it off waits for the end of the stream. -EINTR: the stream ends later. */
int flush_set_enabled(bool on);
bool flush_enabled(void);
int flush_set_file(const char *path);
/* Thread context, or boot; on a stopped machine, any context. */
void flush_get_file(char path[TRACE_PATH_MAX]);
/* Entries; takes effect when the flush is enabled next, or alq_file is set. */
void flush_set_depth(unsigned entries);
unsigned flush_depth(void);
void flush_set_max(uint64_t events);
uint64_t flush_max(void);
/*
 * Count the events that the sink took, and those that it never will, since they were overwritten or
 * cleared, also after the stream's end. Both count from the beginning of the last stream, when the
 * flush was enabled, or alq_file was set while it was on.
 */
uint64_t flush_written(void);
uint64_t flush_failed(void);

/* Writes a piece of the stream. FLUSH_ENDING: the line is busy, and the stream is to end. The flush
 * thread. */
enum flush_result { FLUSH_IDLE, FLUSH_MORE, FLUSH_BUSY, FLUSH_ENDING, FLUSH_FAILED };
enum flush_result flush_work(void);
/* The flush thread wakes up at the next clock tick, and looks for events. Any context. */
void flush_kick(void);

/*
 * persist.c: the region of the boot before; NULL: there is none. *own: its memory may be given to
 * the page allocator. Any context.
 */
struct ktr_persist;
struct ktr_persist *trace_persist_prev(bool *own);

/* prev.c: opens the log of the boot before, and registers /dev/ktr.prev. Thread context. */
int trace_prev_init(void);

/* ktrdev.c: registers /dev/ktr. 0 or -errno. */
int ktrdev_init(void);
