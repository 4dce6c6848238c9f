/*
 * marker.c - trace_marker, trace_marker_raw: what programs write into the trace. Locking: a write
 * holds marker_lock, and waits for no slow change under ftrace_lock; the open file keeps its
 * instance.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/ftrace/buffer/buffer.h"
#include "kernel/ftrace/instance.h"
#include "kernel/ftrace/tracer/tracer.h"
#include "kernel/mm/heap.h"
#include "ktr/port.h"
#include "ktr/sdt.h"

struct instance *marker_instance; /* marker_lock */
static struct mutex marker_lock = MUTEX_INIT("trace marker");

#define RAW_MARK_MAX 80 /* what fits into a line of 256 characters */

SDT_PROVIDER_DEFINE(ftrace);
SDT_PROBE_DEFINE_DATA(ftrace, , , print, "print", ": buf %s");

/* Records what was written; text in trace_marker is an event for triggers. 0 or -errno. */
static int
record_mark(const struct vnode *vn, const struct ktr_site *site, uint32_t id, const char *text,
	    size_t len)
{
	const uint64_t args[KTR_MAXARGS] = {id};
	struct instance *i = tracefs_instance(vn);
	int error = 0;
	uintptr_t irq;
	bool lifted;

	mutex_lock(&marker_lock);
	irq = ktr_port_irq_save();
	lifted = ktr_port_lift(); /* the text counts, also if the thread reads trace_pipe */
	if (!option_on(i, OPTION_MARKERS))
		error = -EINVAL;
	/* -EBADF is Linux's error while tracing is off. */
	else if (!instance_record_data(i, site, args, text, len))
		error = -EBADF;
	marker_instance = i;
	if (error == 0 && site == &tracer_mark)
		SDT_FIRE(ftrace, , , print, SDT_ARGS_DATA0(text, len));
	ktr_port_restore(lifted);
	ktr_port_irq_restore(irq);
	mutex_unlock(&marker_lock);
	return error;
}

/* A number of four bytes, and data. */
static int64_t
raw_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	uint8_t data[RAW_MARK_MAX];
	char text[3 * sizeof(data) + 1];
	size_t n = u->resid;
	struct sbuf out;
	uint32_t id;
	int error;

	if (n < sizeof(id) || n > sizeof(data))
		return -EINVAL;
	error = uio_take(u, data, n);
	memcpy(&id, data, sizeof(id));
	sbuf_init(&out, text, sizeof(text));
	for (size_t i = sizeof(id); i < n; i++)
		sbuf_printf(&out, "%s%02x", i > sizeof(id) ? " " : "", data[i]);
	if (error == 0)
		error = record_mark(vn, &tracer_raw, id, text, out.len);
	return error == 0 ? (int64_t)n : error;
}

static int
marker_open(struct file *f)
{
	return tracefs_hold(f->vn);
}

static void
marker_release(struct file *f)
{
	tracefs_release(f->vn);
}

const struct vnode_ops trace_marker_raw_ops = {.open = marker_open,
					       .release = marker_release,
					       .write = raw_write,
					       .destroy = tracefs_destroy};

/* Linux's name: it is what readers of trace_pipe_raw show. */
static int64_t
tracing_mark_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t n = u->resid < MARK_MAX ? u->resid : MARK_MAX, len;
	char *text = kmalloc(n);
	int error;

	if (n == 0 || text == NULL) {
		kfree(text);
		return n == 0 ? 0 : -ENOMEM;
	}
	error = uio_take(u, text, n);
	len = text[n - 1] == '\n' ? n - 1 : n;
	if (error == 0)
		error = record_mark(vn, &tracer_mark, 0, text, len);
	kfree(text);
	return error == 0 ? (int64_t)n : error;
}

const struct vnode_ops trace_marker_ops = {.open = marker_open,
					   .release = marker_release,
					   .write = tracing_mark_write,
					   .destroy = tracefs_destroy};
