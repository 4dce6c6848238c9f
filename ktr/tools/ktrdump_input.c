/*
 * ktrdump_input.c - reads the input, waits for more of a file that grows, and shows the progress.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ktr/tools/core.h"
#include "ktr/tools/ktrace_file.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/memory.h"

#define FOLLOW_INTERVAL_NS 100000000
#define PROGRESS_AFTER_NS  1000000000ull
#define PROGRESS_EVERY_NS  200000000ull

/* What a terminal shows while a long file is read. */
struct progress {
	bool on;
	bool shown;
	uint64_t size; /* 0: not known */
	uint64_t done;
	uint64_t next_ns;
};

static uint64_t
now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
progress_show(struct progress *p)
{
	if (!p->on || now_ns() < p->next_ns)
		return;
	p->next_ns = now_ns() + PROGRESS_EVERY_NS;
	p->shown = true;
	if (p->size > 0)
		fprintf(stderr, "\rktrdump: %3llu%% of %llu MB",
			(unsigned long long)(p->done * 100 / p->size),
			(unsigned long long)(p->size >> 20));
	else
		fprintf(stderr, "\rktrdump: %llu MB", (unsigned long long)(p->done >> 20));
	fflush(stderr);
}

static void
progress_clear(struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r%40s\r", "");
	p->shown = false;
}

static int
unreadable(struct dump *d, int fd)
{
	fprintf(stderr, "ktrdump: %s: %s\n", d->name, strerror(errno));
	if (fd > 0)
		close(fd);
	return DUMP_USAGE;
}

/* The input is at its end for now. False: for good. A file that was made anew is read again. */
static bool
follow_wait(struct dump *d, int fd, bool is_pipe)
{
	struct timespec pause = {.tv_nsec = FOLLOW_INTERVAL_NS};
	struct stat st;
	if (!d->opts.follow || is_pipe)
		return false;
	out_flush(&d->out);
	if (fflush(d->out.file) != 0)
		return false;
	nanosleep(&pause, NULL);
	if (fstat(fd, &st) == 0 && st.st_size < lseek(fd, 0, SEEK_CUR)) {
		fprintf(stderr, "ktrdump: %s: it was made anew: what follows is of another run\n",
			d->name);
		lseek(fd, 0, SEEK_SET);
	}
	return true;
}

/* Like read(). The first call reads until it is known whether the input is a stream or a log. */
static ssize_t
read_chunk(int fd, uint8_t *chunk, bool first)
{
	size_t have = 0;
	for (;;) {
		ssize_t n = read(fd, chunk + have, DUMP_CHUNK - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return n;
		have += (size_t)n;
		if (n == 0 || !first ||
		    (dump_armor_decided(chunk, have) && ktrace_decided(chunk, have)))
			return (ssize_t)have;
	}
}

/* Has nothing gone wrong so far? */
static bool
good(const struct dump *d)
{
	return !d->failed && merge_error(d->merge) == 0;
}

/* Opens the output, and prints what is above the first event. False: a message was printed. */
static bool
begin(struct dump *d)
{
	if (!dump_output_open(d))
		return false;
	if (d->opts.json || d->opts.stream || d->export != NULL)
		return true;
	dump_text_header(d);
	if (d->opts.ticks)
		dump_rows_begin(d);
	return true;
}

static void
push(struct dump *d, const void *bytes, size_t n)
{
	if (d->opts.stream && fwrite(bytes, 1, n, d->out.file) != n)
		d->failed = true;
	if (ktr_decoder_push(d->decoder, bytes, n) == 0)
		return;
	fprintf(stderr, "ktrdump: not enough memory\n");
	d->failed = true;
}

/* Reads a file of ktrace, whose first n bytes have been read. Reads it whole, since it sorts it. */
static int
dump_ktrace(struct dump *d, int fd, const uint8_t *first, size_t n)
{
	size_t room = 2 * DUMP_CHUNK;
	static uint8_t *bytes; /* texts of events are in it: it stays to the end */
	ssize_t more = 1;
	if (d->opts.stream || d->opts.follow) {
		fprintf(stderr, "ktrdump: %s: found a file of ktrace, expected a stream\n",
			d->name);
		return DUMP_USAGE;
	}
	bytes = memory_realloc(bytes, room); /* a diff reads two */
	if (bytes != NULL)
		memcpy(bytes, first, n);
	while (bytes != NULL && more > 0) {
		more = read_chunk(fd, bytes + n, false);
		n += more > 0 ? (size_t)more : 0;
		if (room - n < DUMP_CHUNK)
			bytes = memory_realloc(bytes, room *= 2);
	}
	if (more < 0)
		return unreadable(d, fd);
	if (bytes == NULL || ktrace_read(&d->ops, d->merge, bytes, n) != 0) {
		fprintf(stderr, "ktrdump: not enough memory\n");
		return DUMP_USAGE;
	}
	return DUMP_CLEAN;
}

#ifdef KTRDUMP_HOST
static int
dump_core(struct dump *d)
{
	static uint8_t chunk[DUMP_CHUNK];
	char err[300];
	size_t n;
	struct core *core = core_open(d->opts.core, d->opts.kernel, err, sizeof(err));
	if (core == NULL) {
		fprintf(stderr, "ktrdump: %s\n", err);
		return DUMP_USAGE;
	}
	if (core_is_cut(core)) {
		fprintf(stderr, "ktrdump: %s: the file ends before the memory in it does\n",
			d->name);
		d->status = DUMP_DAMAGED;
	}
	if (!begin(d)) {
		core_close(core);
		return DUMP_USAGE;
	}
	while (good(d) && (n = core_read(core, chunk, sizeof(chunk))) > 0)
		push(d, chunk, n);
	core_close(core);
	if (good(d))
		ktr_decoder_finish(d->decoder);
	return d->failed && d->status == DUMP_USAGE ? DUMP_USAGE : DUMP_CLEAN;
}
#endif

/* The input's descriptor. -1: a message was printed. */
static int
open_input(struct dump *d)
{
	const char *input = d->opts.input;
	char err[160];
	int fd = strcmp(input, "-") == 0 ? STDIN_FILENO : open(input, O_RDONLY);
	if (fd >= 0)
		return fd;
	if (!dump_is_connection(input)) {
		unreadable(d, fd);
		return -1;
	}
	fd = dump_connect(input, err, sizeof(err));
	if (fd < 0)
		fprintf(stderr, "ktrdump: %s: %s\n", d->name, err);
	return fd;
}

/* Prints what there is, before the program waits for more of a connection. */
static void
show_before_wait(struct dump *d, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (poll(&p, 1, 0) != 0)
		return;
	out_flush(&d->out);
	if (fflush(d->out.file) != 0)
		d->failed = true;
}

int
dump_input(struct dump *d)
{
	static uint8_t chunk[DUMP_CHUNK];
#ifdef KTRDUMP_HOST
	if (d->opts.core != NULL)
		return dump_core(d);
#endif
	bool from_stdin = strcmp(d->opts.input, "-") == 0;
	int fd = open_input(d);
	struct stat st;
	if (fd < 0)
		return DUMP_USAGE;
	if (fstat(fd, &st) != 0)
		return unreadable(d, fd);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return unreadable(d, fd);
	}
	if (!begin(d)) {
		if (!from_stdin)
			close(fd);
		return DUMP_USAGE;
	}
	bool to_stdout = d->opts.output == NULL || strcmp(d->opts.output, "-") == 0;
	struct progress progress = {
	    .on = isatty(STDERR_FILENO) && !(to_stdout && isatty(STDOUT_FILENO)) && !d->opts.follow,
	    .size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
	    .next_ns = now_ns() + PROGRESS_AFTER_NS,
	};
	struct dump_armor armor = {.len = 0};
	bool any = false, log = false;
	while (good(d)) {
		if (S_ISSOCK(st.st_mode))
			show_before_wait(d, fd);
		ssize_t n = read_chunk(fd, chunk, !any);
		if (n < 0) {
			progress_clear(&progress);
			return unreadable(d, fd);
		}
		if (n == 0) {
			if (follow_wait(d, fd, S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
				continue;
			break;
		}
		if (!any && ktrace_is(chunk, (size_t)n))
			return dump_ktrace(d, fd, chunk, (size_t)n);
		if (!any)
			log = memchr(chunk, 0, (size_t)n) == NULL;
		any = true;
		size_t len = (size_t)n;
		const uint8_t *bytes = log ? dump_armor(&armor, chunk, &len) : chunk;
		push(d, bytes, len);
		progress.done += (uint64_t)n;
		progress_show(&progress);
	}
	progress_clear(&progress);
	if (!from_stdin)
		close(fd);
	if (good(d))
		ktr_decoder_finish(d->decoder);
	return d->failed && d->status == DUMP_USAGE ? DUMP_USAGE : DUMP_CLEAN;
}
