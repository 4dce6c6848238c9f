/*
 * buffer.c - trace, trace_pipe, snapshot: the entries of a log.
 *
 * Reading takes nothing out of the log: other readers see all of it. `shown` says for each CPU from
 * which entry on the files of this folder show it.
 *
 * Locking: ftrace_lock guards `shown`; snapshots change `from` without it, and so that of the
 * trace only grows (buffer_show_from()) while the log has the same rings. The control lock keeps
 * the main log's rings (ktr/ring.h). A struct trace_reader has a lock of its own.
 */
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/kmap.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/callout.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/port.h"
#include "ktr/ring.h"

#define LINE_BYTES 2048
#define WAIT_NS    10000000 /* trace_pipe looks so often whether there is more */

/* Control lock held. */
static void
place_cursors(struct buffer_reader *r)
{
	r->rings = r->b->rings;
	memset(r->cursors, 0, sizeof(r->cursors));
	for (unsigned i = 0; i < MAX_CPUS; i++) {
		struct buffer_cursor *c = &r->cursors[i];
		uint64_t tail, head;

		if ((r->cpu != BUFFER_ALL && r->cpu != i) ||
		    !ktr_log_window(r->b->log, i, &tail, &head))
			continue;
		c->seq = buffer_later(tail, buffer_from(r->b, i));
		c->lost = r->consume ? c->seq - buffer_from(r->b, i) : 0;
		c->end = r->consume ? UINT64_MAX : head;
	}
}

void
buffer_open(struct buffer_reader *r, const struct instance *of, struct buffer *b, unsigned cpu,
	    bool consume)
{
	*r = (struct buffer_reader){.i = of, .b = b, .cpu = cpu, .consume = consume};
	ktr_port_lock();
	place_cursors(r);
	ktr_port_unlock();
}

void
buffer_forget(struct buffer *b)
{
	memset(b->shown, 0, sizeof(b->shown));
	b->rings++;
}

/* Goes on to the next entry that is there, and no part of another entry's data. */
static void
cursor_fetch(const struct ktr_log *log, unsigned cpu, struct buffer_cursor *c)
{
	while (!c->valid && c->seq < c->end) {
		enum ktr_read_status status = ktr_log_read(log, cpu, c->seq, &c->entry);
		uint64_t tail, head;

		if (status == KTR_READ_FUTURE || status == KTR_READ_NOCPU)
			return;
		if (status == KTR_READ_GONE) {
			if (!ktr_log_window(log, cpu, &tail, &head))
				return;
			c->lost += tail - c->seq;
			c->seq = tail;
		} else if (ktr_entry_is_part(&c->entry)) {
			c->seq++;
		} else {
			c->valid = true;
		}
	}
}

const struct ktr_entry *
buffer_peek(struct buffer_reader *r, unsigned *cpu, uint64_t *lost)
{
	struct buffer_cursor *best = NULL;

	if (r->rings != r->b->rings)
		place_cursors(r);
	for (unsigned i = 0; i < ncpus; i++) {
		struct buffer_cursor *c = &r->cursors[i];

		if (c->end == 0)
			continue; /* it does not read that CPU */
		if (r->consume && c->seq < buffer_from(r->b, i)) {
			c->seq = buffer_from(r->b, i);
			c->valid = false;
			c->lost = 0;
		}
		cursor_fetch(r->b->log, i, c);
		if (c->valid && (best == NULL || c->entry.ticks < best->entry.ticks)) {
			best = c;
			*cpu = i;
		}
	}
	if (best == NULL)
		return NULL;
	*lost = best->lost;
	return &best->entry;
}

void
buffer_take(struct buffer_reader *r, unsigned cpu, uint64_t seq)
{
	struct buffer_cursor *c = &r->cursors[cpu];

	c->seq = seq + 1;
	c->valid = false;
	if (r->consume && buffer_show_from(r->b, cpu, c->seq))
		r->b->shown[cpu].lost += c->lost;
	c->lost = 0;
}

bool
buffer_peek_next(const struct buffer_reader *r, unsigned cpu, struct ktr_entry *entry,
		 uint64_t *seq)
{
	struct buffer_cursor c = r->cursors[cpu];

	c.seq++;
	c.valid = false;
	cursor_fetch(r->b->log, cpu, &c);
	*entry = c.entry;
	*seq = c.seq;
	return c.valid && c.lost == r->cursors[cpu].lost;
}

void
buffer_clear(struct buffer *b, unsigned cpu)
{
	ktr_port_lock();
	for (unsigned i = 0; i < MAX_CPUS; i++) {
		uint64_t tail, head;

		if ((cpu != BUFFER_ALL && cpu != i) || !ktr_log_window(b->log, i, &tail, &head))
			continue;
		buffer_show_from(b, i, head);
		b->shown[i].cleared = head;
		b->shown[i].lost = 0;
		__atomic_store_n(&b->shown[i].dropped, 0, __ATOMIC_RELAXED);
	}
	ktr_port_unlock();
}

/* ---- trace, snapshot, trace_pipe ---- */

/* Files. Of a latency tracer SHOWS_TRACE is the snapshot, and SHOWS_SNAPSHOT is refused. */
enum shows { SHOWS_TRACE, SHOWS_PIPE, SHOWS_SNAPSHOT };

struct trace_reader {
	struct mutex lock;
	struct buffer_reader r;
	bool snapshot;    /* of the file of that name */
	bool keeps;       /* reads the snapshot */
	bool holds;       /* … which stays as it is; lock */
	bool pauses;      /* the option pause-on-trace: tracing is off as long as it is open */
	bool begun;       /* the head was printed; trace_pipe: something was read */
	size_t at, len;   /* what is left of the line */
	uint64_t pos;     /* where at is in the file; not of trace_pipe */
	unsigned silence; /* trace_pipe: for sched_silence(); else 0 */
	uint32_t wakes;   /* trace_pipe_raw: how often ioctl() ended the reads that wait; atomic */
	struct poll_source news;
	struct callout look_again; /* trace_pipe: while somebody polls it */
	char line[RAW_PAGE];
};

static void
tell_pollers(void *arg)
{
	poll_notify(&((struct trace_reader *)arg)->news, POLLIN);
}

/* Nobody changes the snapshot from now on, or somebody may again; not while somebody does. */
static void
reader_hold(const struct vnode *vn, struct trace_reader *t, bool hold)
{
	if (hold == t->holds || tracefs_begin(vn) != 0)
		return;
	snapshot_hold(tracefs_instance(vn), hold);
	t->holds = hold;
	tracefs_end();
}

/* A reader who may also write holds the snapshot from the beginning of its reading. */
static int
reader_open(struct file *f, enum shows shows)
{
	struct trace_reader *t = NULL;
	int error = tracefs_hold(f->vn);
	bool latency = error == 0 && latency_is_on(tracefs_instance(f->vn));

	f->priv = NULL;
	if (error != 0 || (f->flags & O_ACCMODE) == O_WRONLY)
		return error; /* to clear it, or take one */
	if (shows != SHOWS_SNAPSHOT || !latency)
		t = kmap_alloc(sizeof(*t));
	if (t == NULL) {
		tracefs_release(f->vn);
		return shows == SHOWS_SNAPSHOT && latency ? -EBUSY : -ENOMEM;
	}
	mutex_init(&t->lock, "trace reader");
	callout_init(&t->look_again, tell_pollers, t);
	f->news = &t->news;
	t->snapshot = shows == SHOWS_SNAPSHOT;
	t->keeps = t->snapshot || (shows == SHOWS_TRACE && latency);
	reader_hold(f->vn, t, t->keeps && (f->flags & O_ACCMODE) == O_RDONLY);
	f->priv = t;
	return 0;
}

static int
trace_clear(const struct vnode *vn)
{
	struct instance *i = tracefs_instance(vn);
	int error = tracefs_begin(vn);

	if (error == 0) {
		buffer_clear(latency_is_on(i) ? &i->snapshot : &i->trace,
			     (unsigned)tracefs_arg(vn));
		tracefs_end();
	}
	return error;
}

static int
trace_open(struct file *f)
{
	struct instance *i = tracefs_instance(f->vn);
	int error = tracefs_opens_anew(f) ? trace_clear(f->vn) : 0;
	struct trace_reader *t;

	if (error == 0)
		error = reader_open(f, SHOWS_TRACE);
	t = f->priv;
	if (error != 0 || t == NULL || !option_on(i, OPTION_PAUSE))
		return error;
	tracefs_begin(f->vn);
	t->pauses = true;
	instance_pause(i, true);
	tracefs_end();
	return 0;
}

static int
snapshot_open(struct file *f)
{
	return reader_open(f, SHOWS_SNAPSHOT);
}

/* Makes the next line. False: there is none. ftrace_lock and control lock held. */
static bool
next_line(struct trace_reader *t, bool head)
{
	size_t size = head ? sizeof(t->line) : LINE_BYTES;
	struct sbuf out;
	bool more = true;

	t->at = 0;
	if (t->r.raw) {
		t->len = raw_page((uint8_t *)t->line, &t->r) ? RAW_PAGE : 0;
		return t->len > 0;
	}
	sbuf_init(&out, t->line, size);
	if (head && t->snapshot && snapshot_is_empty(t->r.i, t->r.cpu))
		snapshot_print_help(&out, t->r.i, t->r.cpu);
	else if (head)
		print_head(&out, &t->r);
	else
		more = print_entry(&out, &t->r);
	if (sbuf_is_cut(&out))
		t->line[size - 2] = '\n';
	t->len = sbuf_stored(&out);
	return more;
}

/* Gives what is left of the line, or the next one. 0: there are no more. t->lock held. */
static size_t
bytes_left(const struct vnode *vn, struct trace_reader *t)
{
	bool more = true;

	if (t->at == t->len) {
		tracefs_begin(vn);
		ktr_port_lock();
		more = next_line(t, !t->begun && !t->r.consume);
		ktr_port_unlock();
		tracefs_end();
		t->begun |= more;
	}
	return more ? t->len - t->at : 0;
}

/* Gives lines until the buffer is full or there are no more. t->lock held. */
static int
read_lines(const struct vnode *vn, struct trace_reader *t, struct uio *u)
{
	int error = 0;

	while (u->resid > 0 && error == 0) {
		size_t before = u->resid, n = bytes_left(vn, t);

		if (n == 0)
			break;
		error = uio_put(u, t->line + t->at, n < u->resid ? n : u->resid);
		t->at += before - u->resid;
	}
	return error;
}

/* Begins anew, and goes to a place in the file. -EINTR. t->lock held. */
static int
trace_seek(const struct vnode *vn, struct trace_reader *t, uint64_t off)
{
	struct instance *i = tracefs_instance(vn);
	size_t n;

	tracefs_begin(vn);
	buffer_open(&t->r, i, t->keeps ? &i->snapshot : &i->trace, (unsigned)tracefs_arg(vn),
		    false);
	tracefs_end();
	t->begun = false;
	t->at = t->len = 0;
	t->pos = 0;
	while (t->pos < off && (n = bytes_left(vn, t)) > 0) {
		n = n < off - t->pos ? n : off - t->pos;
		t->at += n;
		t->pos += n;
		if (proc_signal_pending())
			return -EINTR;
	}
	t->pos = off; /* at the end or after it, there is nothing */
	return 0;
}

/* The thread is not traced meanwhile: with each line it would overwrite many. */
static int64_t
trace_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct trace_reader *t = f != NULL ? f->priv : NULL;
	bool silent = curthread()->ktr_suppress;
	size_t start = u->resid;
	int error = 0;

	if (t == NULL)
		return -EINVAL;
	if (!silent)
		sched_suppress_events(true);
	mutex_lock(&t->lock);
	reader_hold(vn, t, t->keeps);
	if (*off == 0 || *off != t->pos)
		error = trace_seek(vn, t, *off);
	if (error == 0) {
		error = read_lines(vn, t, u);
		*off += start - u->resid;
		t->pos = *off;
	}
	mutex_unlock(&t->lock);
	if (!silent)
		sched_suppress_events(false);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

static int64_t
trace_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t n = u->resid;

	u->resid = 0;
	return (int64_t)n; /* only O_TRUNC counts */
}

static void
trace_release(struct file *f)
{
	struct trace_reader *t = f->priv;

	if (t != NULL && t->silence != 0)
		sched_end_silence(t->silence);
	if (t != NULL)
		reader_hold(f->vn, t, false);
	if (t != NULL && t->pauses && tracefs_begin(f->vn) == 0) {
		instance_pause(tracefs_instance(f->vn), false);
		tracefs_end();
	}
	if (t != NULL)
		callout_stop(&t->look_again);
	tracefs_release(f->vn);
	kmap_free(t);
}

const struct vnode_ops trace_ops = {
    .open = trace_open,
    .release = trace_release,
    .read = trace_read,
    .write = trace_write,
    .truncate = tracefs_truncate,
    .destroy = tracefs_destroy,
};

static int64_t
snapshot_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct trace_reader *t = f != NULL ? f->priv : NULL;
	char text[24] = "";
	size_t n = u->resid, taken = n < sizeof(text) ? n : sizeof(text) - 1;
	uint64_t command;
	int error = uio_take(u, text, taken);

	if (error == 0)
		error = tracefs_number(text, &command);
	if (t != NULL && error == 0) { /* the file's own reading does not keep it from that */
		mutex_lock(&t->lock);
		reader_hold(vn, t, false);
		mutex_unlock(&t->lock);
	}
	if (error == 0)
		error = tracefs_begin(vn);
	if (error != 0)
		return error;
	error = snapshot_store(tracefs_instance(vn), command, (unsigned)tracefs_arg(vn));
	tracefs_end();
	u->resid = 0;
	return error != 0 ? error : (int64_t)n;
}

const struct vnode_ops snapshot_ops = {
    .open = snapshot_open,
    .release = trace_release,
    .read = trace_read,
    .write = snapshot_write,
    .destroy = tracefs_destroy,
};

static int
trace_pipe_open(struct file *f)
{
	static unsigned opened;
	struct instance *i = tracefs_instance(f->vn);
	struct trace_reader *t;
	int error = (f->flags & O_ACCMODE) == O_RDONLY ? reader_open(f, SHOWS_PIPE) : -EINVAL;

	if (error != 0)
		return error;
	t = f->priv;
	tracefs_begin(f->vn);
	t->silence = ++opened % SILENCES + 1;
	buffer_open(&t->r, i, &i->trace, (unsigned)tracefs_arg(f->vn), true);
	tracefs_end();
	return 0;
}

static int
raw_open(struct file *f)
{
	int error = trace_pipe_open(f);

	if (error == 0)
		((struct trace_reader *)f->priv)->r.raw = true;
	return error;
}

/*
 * Waits for entries, and takes them. A thread that waits is not traced from then on, until the file
 * that it read last is closed: else what it does would be something to read. Who does not wait is
 * traced but for the reading itself, and for its calls: each read() makes some.
 */
static int64_t
trace_pipe_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct trace_reader *t = f != NULL ? f->priv : NULL;
	bool waits, silent = curthread()->ktr_suppress;
	size_t start = u->resid;
	uint32_t wakes;
	int error = 0;

	if (t == NULL)
		return -EINVAL;
	wakes = __atomic_load_n(&t->wakes, __ATOMIC_RELAXED);
	while (error == 0 && u->resid == start && start > 0) {
		waits = !u->nowait && !(f->flags & O_NONBLOCK); /* again: others may set it */
		sched_silence(t->silence); /* again: another file may have its number */
		mutex_lock(&t->lock);
		if (!waits || t->at < t->len || percent_is_reached(vn, &t->r))
			error = read_lines(vn, t, u);
		mutex_unlock(&t->lock);
		if (!waits && !silent)
			sched_suppress_events(false);
		if (error != 0 || u->resid != start)
			break;
		if (!waits)
			return -EAGAIN;
		/* As in Linux: the end, if there will be no more for the time being. */
		if (t->begun && !instance_is_on(tracefs_instance(vn)))
			break;
		if (wakes != __atomic_load_n(&t->wakes, __ATOMIC_RELAXED))
			break;
		error = thread_sleep_ns(WAIT_NS, SLEEP_INTR, "tracepipe");
	}
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/* The writers of events tell nobody: who polls looks again as often as a reader does. */
static unsigned
trace_pipe_poll(struct file *f)
{
	struct trace_reader *t = f->priv;
	bool ready;

	mutex_lock(&t->lock);
	ready = t->at < t->len;
	if (!ready && percent_is_reached(f->vn, &t->r)) {
		unsigned cpu;
		uint64_t lost;

		tracefs_begin(f->vn);
		ktr_port_lock();
		ready = buffer_peek(&t->r, &cpu, &lost) != NULL;
		ktr_port_unlock();
		tracefs_end();
	}
	if (!ready)
		callout_set(&t->look_again, clock_ns() + WAIT_NS);
	mutex_unlock(&t->lock);
	return ready ? POLLIN : 0;
}

/* As in Linux, command 0 ends the reads that wait. */
static int64_t
raw_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct trace_reader *t = f->priv;

	if (request != 0)
		return -ENOTTY;
	__atomic_fetch_add(&t->wakes, 1, __ATOMIC_RELAXED);
	return 0;
}

const struct vnode_ops trace_pipe_ops = {
    .nowait = true,
    .open = trace_pipe_open,
    .release = trace_release,
    .read = trace_pipe_read,
    .poll = trace_pipe_poll,
    .destroy = tracefs_destroy,
};

const struct vnode_ops trace_pipe_raw_ops = {
    .nowait = true,
    .open = raw_open,
    .release = trace_release,
    .read = trace_pipe_read,
    .poll = trace_pipe_poll,
    .ioctl = raw_ioctl,
    .destroy = tracefs_destroy,
};
