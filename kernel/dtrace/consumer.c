/*
 * consumer.c - who traces: how consumers begin, are watched, and end; and the consumer that began
 * with the boot. Locking: dtrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/dtrace/dtrace.h"
#include "kernel/dtrace/port.h"
#include "kernel/fs/cpio.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/boot_info.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/probe/uprobe.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/cpu_start.h"
#include "kernel/sched/thread.h"

#define WATCH_NS 200000000ull

static struct list consumers = LIST_INIT(consumers); /* dtrace_lock */
static bool watching;                                /* dtrace_lock: the thread runs */
/* The consumer that began with the boot, until it is claimed. dtrace_lock */
static struct dtrace_consumer *anonymous;
static uint64_t anonymous_deadman_ns; /* its own, until then there is none */

static int deadman_s = 30;
SYSCTL_INT(kern_dtrace_deadman, "kern.dtrace.deadman_s", SYSCTL_WR | SYSCTL_TUN, &deadman_s, 1,
	   86400, "seconds after which a consumer that gives no sign of life loses its probes");

static uint64_t
consumer_count(void)
{
	uint64_t n = 0;

	mutex_lock(&dtrace_lock);
	list_for_each (l, &consumers)
		n++;
	mutex_unlock(&dtrace_lock);
	return n;
}
SYSCTL_INT_CALL(kern_dtrace_consumers, "kern.dtrace.consumers", 0, consumer_count, NULL, 0,
		INT32_MAX, "open files of /dev/dtrace, and what traces without one");
SYSCTL_U64_CALL(kern_dtrace_refused, "kern.dtrace.refused", 0, dtrace_refused, NULL,
		"firings that came within a firing, since the first of these consumers");

/* Checks the counts of a consumer whose programs do not run any more. */
static void
check_law(const struct dtrace_consumer *c)
{
	struct dif_status s;
	uint64_t ended;

	dif_status(&c->d, &s);
	ended = s.predicate_false + s.completed + s.faulted + s.dropped;
	if (s.fired != ended)
		panic("dtrace: %lu clauses fired, %lu ended", (unsigned long)s.fired,
		      (unsigned long)ended);
}

void
dtrace_unload(struct dtrace_consumer *c)
{
	dtrace_stop(c, true);
	check_law(c);
	kmap_free(c->ecbs);
	kfree(c->probes);
	c->ecbs = NULL;
	c->probes = NULL;
	c->error = NULL;
	c->necbs = c->nprobes = 0;
	memset(c->taken, 0, sizeof(c->taken)); /* it is in the memory that goes */
	dif_unload(&c->d);
}

/* A process that has run since the last call shows that the machine answers, whatever it does. */
static void
consumer_look(struct dtrace_consumer *c)
{
	const struct proc *p;
	struct usage t = {0};

	spin_lock(&proc_lock);
	p = proc_find(c->pid);
	if (p != NULL)
		t = proc_usage(p);
	spin_unlock(&proc_lock);
	if (t.user_ns + t.system_ns == c->ran_ns)
		return;
	c->ran_ns = t.user_ns + t.system_ns;
	__atomic_store_n(&c->d.alive_ns, dtrace_machine_ns(), __ATOMIC_RELAXED);
}

static void
dtrace_consumer_clean(struct dtrace_consumer *c, unsigned cpu, void *arg)
{
	dif_spec_clean(&c->d, cpu);
}

void
dtrace_clean(struct dtrace_consumer *c)
{
	for (unsigned cpu = 0; cpu < c->d.cpus; cpu++)
		for (uint32_t n = 0; n < c->d.h.options.nspec && dif_spec_waits(&c->d, cpu); n++)
			dtrace_on_cpu(cpu, dtrace_consumer_clean, c, NULL);
}

/*
 * The thread that watches: it takes the probes from consumers that gave no sign of life, as long as
 * there are consumers that need to be watched. It also cleans the speculations of the one that
 * began with the boot, which nobody asks for its status.
 */
static void
consumer_watch(void *arg)
{
	bool any = true;

	while (any) {
		thread_sleep_ns(WATCH_NS, 0, "dtrace");
		mutex_lock(&dtrace_lock);
		any = false;
		list_for_each_entry (struct dtrace_consumer, c, &consumers, link) {
			consumer_look(c);
			if (c->enabled &&
			    dtrace_machine_ns() - c->d.alive_ns > c->d.h.options.deadman_ns)
				dtrace_stop(c, true);
			if (c == anonymous)
				dtrace_clean(c);
			any |= c->enabled && (c->d.h.options.deadman_ns != UINT64_MAX ||
					      (c == anonymous && c->d.h.options.nspec > 0));
		}
		watching = any;
		mutex_unlock(&dtrace_lock);
	}
}

struct dtrace_consumer *
dtrace_consumer_open(int *error)
{
	struct dtrace_consumer *c = kmap_alloc(sizeof(*c));

	*error = c == NULL ? -ENOMEM : 0;
	if (c == NULL)
		return NULL;
	mutex_lock(&dtrace_lock);
	if (list_empty(&consumers))
		*error = dtrace_owner_begin();
	if (*error == 0)
		list_append(&consumers, &c->link);
	mutex_unlock(&dtrace_lock);
	if (*error == 0)
		return c;
	kmap_free(c);
	return NULL;
}

void
dtrace_consumer_free(struct dtrace_consumer *c)
{
	uprobe_in_free(&c->pids);
	kmap_free(c);
}

void
dtrace_detach(struct dtrace_consumer *c)
{
	mutex_lock(&dtrace_lock);
	dtrace_unload(c);
	list_remove(&c->link);
	if (list_empty(&consumers))
		dtrace_owner_end();
	mutex_unlock(&dtrace_lock);
	dtrace_consumer_free(c);
}

int
dtrace_consumer_load(struct dtrace_consumer *c, struct dif_load *l, const uint8_t *image,
		     size_t size)
{
	struct dif_refusal why = {UINT32_MAX, 0, NULL};
	uint32_t *matches = NULL;
	int error = -EINVAL;

	if (image != NULL && size >= sizeof(struct dif_header) &&
	    (((const struct dif_header *)image)->flags & DIF_KERNEL) != 0)
		why.error = "no such flag";
	else
		error = image != NULL ? dif_load(&c->d, image, size, cpu_count(), &why)
				      : dif_load_arrays(&c->d, cpu_count(), &why);
	l->clause = why.clause;
	l->insn = why.insn;
	if (why.error != NULL)
		strlcpy(l->error, why.error, sizeof(l->error));
	if (error != 0)
		return error;
	l->clause = UINT32_MAX; /* what is said from here on is of all of them */
	if (image != NULL && ((const struct dif_header *)image)->options.deadman_ns == 0)
		c->d.h.options.deadman_ns = (uint64_t)deadman_s * 1000000000;
	matches = kzalloc((c->d.h.clauses.count + 1) * sizeof(*matches));
	error = matches != NULL ? dtrace_match(c, matches, l->error, sizeof(l->error)) : -ENOMEM;
	l->matched = c->necbs;
	if (error == 0 && l->matches != 0)
		error = copy_out(l->matches, matches, c->d.h.clauses.count * sizeof(*matches));
	kfree(matches);
	if (error != 0)
		dtrace_unload(c);
	return error;
}

int
dtrace_attach(const struct dif *made, const struct ktr_site *const *sites, bool waits,
	      dtrace_upcall *upcall, struct dtrace_consumer **to)
{
	struct dif_load l = {0};
	int error;
	struct dtrace_consumer *c = dtrace_consumer_open(&error);

	if (c == NULL)
		return error;
	mutex_lock(&dtrace_lock);
	c->only = sites;
	c->waits = waits;
	c->upcall = upcall;
	c->d = *made;
	error = dtrace_consumer_load(c, &l, NULL, 0);
	if (error == 0) {
		c->d.h.options.deadman_ns = UINT64_MAX;
		error = dtrace_go(c);
	}
	mutex_unlock(&dtrace_lock);
	if (error == 0)
		*to = c;
	else
		dtrace_detach(c);
	return error;
}

static void
exchange_here(struct dtrace_consumer *to, unsigned cpu, void *arg)
{
	struct dtrace_consumer *from = arg;

	if (from != NULL)
		from->d.cpu[cpu].limit = 0;
	dif_open_cpu(&to->d, cpu);
}

void
dtrace_exchange(struct dtrace_consumer *from, struct dtrace_consumer *to)
{
	mutex_lock(&dtrace_lock);
	for (unsigned cpu = 0; cpu < to->d.cpus; cpu++)
		dtrace_on_cpu(cpu, exchange_here, to, from);
	to->waits = false;
	mutex_unlock(&dtrace_lock);
}

static int
watch_begin(void)
{
	if (!watching)
		watching = thread_create("dtrace", PRIO_KERN, consumer_watch, NULL) != NULL;
	return watching ? 0 : -ENOMEM;
}

int
dtrace_consumer_go(struct dtrace_consumer *c)
{
	int error = watch_begin();

	return error != 0 ? error : dtrace_go(c);
}

/* Gives the file the consumer that began with the boot. The file's own consumer, which is empty, is
 * not among the consumers any more. */
int
dtrace_consumer_claim(struct dtrace_consumer **by)
{
	struct dtrace_consumer *c = *by;
	int error;

	if (c->d.state != DIF_EMPTY || c->making > 0)
		return -EBUSY;
	/* There was no dead-man's limit until now. */
	error = anonymous != NULL ? watch_begin() : -ENOENT;
	if (error != 0)
		return error;
	list_remove(&c->link);
	*by = anonymous;
	__atomic_store_n(&anonymous->d.alive_ns, dtrace_machine_ns(), __ATOMIC_RELAXED);
	/* release: pairs with the acquire in dif_is_alive(), which must not see the old sign of
	 * life together with this */
	__atomic_store_n(&anonymous->d.h.options.deadman_ns, anonymous_deadman_ns,
			 __ATOMIC_RELEASE);
	anonymous = NULL;
	return 0;
}

/* A copy of a file of the boot's archives, which waits for the root device. NULL: there is none. */
static uint8_t *
copy_image(const char *path, size_t *size)
{
	const char *data = NULL;
	uint8_t *image;

	for (unsigned i = 0; i < boot_info.module_count; i++)
		cpio_find(boot_info.modules[i].data, boot_info.modules[i].size, path + 1, &data,
			  size);
	image = data != NULL && *size > 0 && *size <= DIF_MAX_IMAGE ? kmap_alloc(*size) : NULL;
	return image != NULL ? memcpy(image, data, *size) : NULL;
}

/* A file's bytes, and how many. NULL: there is no such file, no memory, or it is too large. */
static uint8_t *
read_image(const char *path, size_t *size)
{
	uint8_t *image = NULL;
	struct file *f;

	if (file_open(path, O_RDONLY, 0, &f) != 0)
		return copy_image(path, size);
	*size = vnode_size(f->vn);
	if (*size > 0 && *size <= DIF_MAX_IMAGE)
		image = kmap_alloc(*size);
	if (image != NULL && file_read(f, image, *size) != (int64_t)*size) {
		kmap_free(image);
		image = NULL;
	}
	file_unref(f);
	return image;
}

/* Begins with what the boot image brought, for whoever claims it. dtrace_lock held. */
static int
begin_anonymous(struct dtrace_consumer *c, struct dif_load *l, uint8_t *image, size_t size)
{
	struct dif_header *h = (void *)image;
	int error = dtrace_owner_begin();
	bool lowered = false;

	if (error != 0)
		return error;
	list_append(&consumers, &c->link);
	error = dtrace_consumer_load(c, l, image, size);
	while (error == -ENOMEM && dif_lower_sizes(&h->options)) { /* as dtrace does */
		lowered = true;
		error = dtrace_consumer_load(c, l, image, size);
	}
	if (lowered && error == 0)
		pr_warn("dtrace: sizes lowered to bufsize=%lu aggsize=%lu dynvarsize=%lu "
			"specsize=%lu scratchsize=%u\n",
			h->options.bufsize, h->options.aggsize, h->options.dynvarsize,
			h->options.specsize, h->options.scratch);
	if (error == 0) {
		anonymous_deadman_ns = c->d.h.options.deadman_ns;
		c->d.h.options.deadman_ns = UINT64_MAX;
		error = dtrace_go(c);
	}
	if (error == 0 && c->d.h.options.nspec > 0)
		error = watch_begin();
	if (error == 0) {
		anonymous = c;
	} else {
		dtrace_unload(c);
		list_remove(&c->link);
		dtrace_owner_end();
	}
	return error;
}

void
dtrace_consumer_boot(const char *path)
{
	size_t size;
	uint8_t *image = read_image(path, &size);
	struct dtrace_consumer *c = image != NULL ? kmap_alloc(sizeof(*c)) : NULL;
	struct dif_load l = {.clause = UINT32_MAX};

	if (c != NULL) {
		mutex_lock(&dtrace_lock);
		if (begin_anonymous(c, &l, image, size) != 0) {
			pr_warn("dtrace: %s: not loaded: %s\n", path,
				l.error[0] != '\0' ? l.error : "no memory");
			kmap_free(c);
		}
		mutex_unlock(&dtrace_lock);
	}
	kmap_free(image);
}
