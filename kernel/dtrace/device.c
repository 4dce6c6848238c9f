/*
 * device.c - /dev/dtrace: consumers, by the requests of kernel/abi/dif.h. Locking: dtrace_lock,
 * around each request, but not while one makes or frees probes in processes.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/dtrace/port.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/probe/uprobe.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/pcpu.h"
#include "ktr/port.h"

static int
dtrace_dev_open(struct file *f)
{
	int error;

	f->priv = dtrace_consumer_open(&error);
	return error;
}

static void
dtrace_dev_release(struct file *f)
{
	dtrace_detach(f->priv);
}

static int
request_load(struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_load l;
	uint8_t *image;
	int error = copy_in(&l, arg, sizeof(l));

	if (error != 0)
		return error;
	if (c->d.state != DIF_EMPTY)
		return -EBUSY;
	if (l.size > DIF_MAX_IMAGE || l.size == 0)
		return -EINVAL;
	image = kmap_alloc(l.size);
	if (image == NULL)
		return -ENOMEM;
	l.error[0] = '\0';
	error = copy_in(image, l.image, l.size);
	if (error == 0)
		error = dtrace_consumer_load(c, &l, image, l.size);
	kmap_free(image);
	if (copy_out(arg, &l, sizeof(l)) == 0)
		return error;
	if (error == 0)
		dtrace_unload(c);
	return -EFAULT;
}

static int
request_status(struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_status s;

	__atomic_store_n(&c->d.alive_ns, dtrace_machine_ns(), __ATOMIC_RELAXED);
	dtrace_clean(c);
	dif_status(&c->d, &s);
	s.sites = c->enabled ? c->nprobes : 0;
	s.refused = dtrace_refused();
	return copy_out(arg, &s, sizeof(s));
}

static void
take_records(struct dtrace_consumer *c, unsigned cpu, void *arg)
{
	struct dtrace_taken *t = arg;

	dif_record_take(&c->d, cpu, t->piece, t->size);
}

static void
take_aggs(struct dtrace_consumer *c, unsigned cpu, void *arg)
{
	struct dtrace_taken *t = arg;

	t->size[0] = dif_agg_take(&c->d, cpu, &t->piece[0]);
}

static int64_t
request_copy_out(const struct dif_read *r, const struct dtrace_taken *t)
{
	int error = copy_out(r->buf, t->piece[0], t->size[0]);

	if (error == 0 && t->size[1] > 0)
		error = copy_out(r->buf + t->size[0], t->piece[1], t->size[1]);
	return error != 0 ? error : (int64_t)t->size[0] + t->size[1];
}

static int64_t
request_read(struct dtrace_consumer *c, unsigned request, uint64_t arg)
{
	bool aggs = request == DIF_IOC_AGGS;
	const struct dif_options *o = &c->d.h.options;
	struct dtrace_taken *t;
	struct dif_read r;
	int64_t n = copy_in(&r, arg, sizeof(r));

	if (n != 0)
		return n;
	if (c->d.state == DIF_EMPTY || r.cpu >= c->d.cpus ||
	    r.size < (aggs ? o->aggsize : o->bufsize) ||
	    (!aggs && o->policy != DIF_SWITCH && c->enabled))
		return -EINVAL;
	if (r.cpu >= ncpus)
		return 0; /* it did not start */
	t = &c->taken[aggs][r.cpu];
	if (t->size[0] == 0) {
		dtrace_on_cpu(r.cpu, aggs ? take_aggs : take_records, c, t);
		for (unsigned i = 0; i < 2 && !aggs; i++)
			dif_record_times(t->piece[i], t->size[i]);
	}
	n = request_copy_out(&r, t);
	if (n < 0)
		return n; /* the next request gets what was taken */
	*t = (struct dtrace_taken){0};
	if (aggs)
		dif_agg_done(&c->d, r.cpu);
	return n;
}

void
dtrace_take(struct dtrace_consumer *c, void (*fn)(const void *entries, size_t size, void *arg),
	    void *arg)
{
	mutex_lock(&dtrace_lock);
	for (unsigned cpu = 0; cpu < c->d.cpus && cpu < ncpus; cpu++) {
		struct dtrace_taken t = {0};

		dtrace_on_cpu(cpu, take_aggs, c, &t);
		fn(t.piece[0], t.size[0], arg);
		dif_agg_done(&c->d, cpu);
	}
	mutex_unlock(&dtrace_lock);
}

static int64_t
request_image(struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_read r;
	int error = copy_in(&r, arg, sizeof(r));

	if (error != 0)
		return error;
	if (c->d.state == DIF_EMPTY)
		return -EINVAL;
	if (r.size >= c->d.h.size)
		error = copy_out(r.buf, c->d.image, c->d.h.size);
	return error != 0 ? error : (int64_t)c->d.h.size;
}

static int
request_epid(struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_epid e;
	int error = copy_in(&e, arg, sizeof(e));

	if (error != 0)
		return error;
	if (e.epid - 1 >= c->necbs)
		return -ENOENT;
	e.clause = c->ecbs[e.epid - 1].at.clause;
	e.probe = c->ecbs[e.epid - 1].at.probe;
	return copy_out(arg, &e, sizeof(e));
}

/* The first site from an id on. The three with fixed ids are found by these only. */
static const struct ktr_site *
next_site(uint32_t id)
{
	for (;; id++) {
		const struct ktr_site *site = dtrace_probe_site(id == 0 ? 1 : id);

		if (site == NULL)
			return NULL;
		if (ktr_site_is_probe(site) && (id == 0 || dtrace_probe_id(site) == id))
			return site;
	}
}

static int
request_probe(uint64_t arg)
{
	static struct dif_probe p; /* dtrace_lock; too large for a stack */
	struct ktr_probe_name name;
	uint32_t id;
	const struct ktr_site *site;
	int error = copy_in(&id, arg, sizeof(id));

	if (error != 0)
		return error;
	ktr_port_lock(); /* the lock keeps sites that were made at run time */
	site = next_site(id);
	if (site != NULL) {
		dtrace_probe_name(site, &name);
		dif_probe_describe(&p, dtrace_probe_id(site), &name, site);
	}
	ktr_port_unlock();
	return site == NULL ? -ENOENT : copy_out(arg, &p, sizeof(p));
}

static int
request_drops(const struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_drops drops;
	int error = copy_in(&drops, arg, sizeof(drops));

	if (error != 0)
		return error;
	if (c->d.state == DIF_EMPTY || drops.cpu >= c->d.cpus)
		return -EINVAL;
	drops.buf_drops = c->d.cpu[drops.cpu].buf_drops;
	drops.agg_drops = c->d.cpu[drops.cpu].agg_drops;
	return copy_out(arg, &drops, sizeof(drops));
}

static int
request_program(uint64_t arg)
{
	struct dif_program p = {0};
	int error = copy_in(&p.program, arg, sizeof(p.program));

	if (error != 0)
		return error;
	return dtrace_program(p.program, p.path) ? copy_out(arg, &p, sizeof(p)) : -ENOENT;
}

static int
make_pid(struct dtrace_consumer *c, struct dif_pid *p)
{
	struct uprobe_in in = {.pid = p->pid,
			       .kind = p->kind,
			       .path = p->path,
			       .offset = p->offset,
			       .start = p->start,
			       .module = p->module,
			       .function = p->function,
			       .name = p->name};
	char *const texts[] = {p->path, p->module, p->function, p->name};
	const size_t sizes[] = {sizeof(p->path), sizeof(p->module), sizeof(p->function),
				sizeof(p->name)};

	if (p->kind == DIF_PID_PROGRAM)
		return proc_program(p->pid, p->path) ? 0 : -ESRCH;
	for (unsigned i = 0; i < 4; i++)
		texts[i][sizes[i] - 1] = '\0';
	return p->kind > DIF_PID_OFFSET ? -EINVAL
					: uprobe_in_add(&in, &c->pids, p->error, sizeof(p->error));
}

static int
request_pid(struct dtrace_consumer *c, uint64_t arg)
{
	struct dif_pid *p = kmalloc(sizeof(*p));
	int error = p == NULL ? -ENOMEM : copy_in(p, arg, sizeof(*p));

	if (error == 0) {
		/* Without the lock, which others need to show that they live: this reads files. */
		c->making++;
		mutex_unlock(&dtrace_lock);
		error = make_pid(c, p);
		mutex_lock(&dtrace_lock);
		c->making--;
		if (copy_out(arg, p, sizeof(*p)) != 0)
			error = -EFAULT;
	}
	kfree(p);
	return error;
}

static int64_t
dtrace_dev_serve(struct dtrace_consumer *c, unsigned request, uint64_t arg)
{
	switch (request) {
	case DIF_IOC_LOAD:
		return request_load(c, arg);
	case DIF_IOC_GO:
		return dtrace_consumer_go(c);
	case DIF_IOC_STOP:
		dtrace_stop(c, false);
		return 0;
	case DIF_IOC_STATUS:
		return request_status(c, arg);
	case DIF_IOC_RECORDS:
	case DIF_IOC_AGGS:
		return request_read(c, request, arg);
	case DIF_IOC_PROBE:
		return request_probe(arg);
	case DIF_IOC_EPID:
		return request_epid(c, arg);
	case DIF_IOC_DROPS:
		return request_drops(c, arg);
	case DIF_IOC_PROGRAM:
		return request_program(arg);
	case DIF_IOC_PID:
		return request_pid(c, arg);
	case DIF_IOC_IMAGE:
		return request_image(c, arg);
	default:
		return -ENOTTY;
	}
}

static int64_t
dtrace_dev_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct dtrace_consumer *c;
	int64_t result;

	mutex_lock(&dtrace_lock);
	c = f->priv;
	result = request == DIF_IOC_ANON
		     ? dtrace_consumer_claim((struct dtrace_consumer **)&f->priv)
		     : dtrace_dev_serve(f->priv, request, arg);
	((struct dtrace_consumer *)f->priv)->pid = curproc()->pid;
	mutex_unlock(&dtrace_lock);
	if (request == DIF_IOC_ANON && result == 0)
		dtrace_consumer_free(c);
	return result;
}

static void
dtrace_init(void)
{
	static const struct dev_ops ops = {
	    .open = dtrace_dev_open,
	    .release = dtrace_dev_release,
	    .ioctl = dtrace_dev_ioctl,
	    .mode = 0600,
	    .root_only = true,
	};

	dtrace_place_init();
	if (devfs_register("dtrace", &ops, NULL) < 0)
		pr_warn("dtrace: /dev/dtrace could not be made\n");
	dtrace_consumer_boot("/boot/dtrace.dif");
}
HOOK(unpacked, dtrace_init);
