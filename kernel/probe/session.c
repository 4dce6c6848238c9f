/*
 * session.c - /dev/probe: probes that are on as long as somebody has them open
 * (kernel/abi/probe.h).
 *
 * A session is an owner of probes (ktr/control.h). It has a hook if it follows a process, or
 * counts. A thread is followed if its `follow` is the number of the session; fork() copies it.
 *
 * Locking: sessions_lock, around requests and release. Hooks read what does not change while their
 * owner has probes.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/probe.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/list.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uaccess.h"
#include "kernel/probe/funcprof.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/pcpu.h"
#include "ktr/control.h"
#include "ktr/hook.h"
#include "ktr/ktr.h"
#include "ktr/probe.h"

struct session {
	unsigned owner;  /* 0: not registered yet */
	uint32_t follow; /* number of the session, which threads have; 0: all threads */
	struct list all;
	bool counts;
	char name[KTR_THREAD_NAME + 16]; /* its owner's */
};

static struct mutex sessions_lock = MUTEX_INIT("probe sessions");
static struct session *sessions[KTR_OWNER_MAX]; /* by owner */
static struct list all_sessions = LIST_INIT(all_sessions);
static uint32_t last_follow; /* of 2^32 numbers, which are not used again */

/* ---- hooks ---- */

static void
session_fire(const struct ktr_firing *f)
{
	const struct session *s = sessions[f->owner];
	const struct thread *t = curthread();

	if (s->follow != 0 && (t == NULL || t->follow != s->follow))
		return;
	if (s->counts)
		funcprof_count(f);
	else
		ktr_fire_record(f);
}

/* ---- requests ---- */

/* Makes the session an owner, with a hook if its probes are not simply recorded. */
static int
session_register(struct session *s)
{
	bool hooked = s->follow != 0 || s->counts;
	int owner = ktr_owner_register(s->name, hooked ? session_fire : NULL);

	if (owner < 0)
		return -EAGAIN;
	s->owner = (unsigned)owner;
	sessions[s->owner] = s;
	return 0;
}

/* Undoes that: the session's probes are off, and it does not count. */
static void
session_unregister(struct session *s)
{
	if (s->owner != 0) {
		int error = ktr_owner_unregister(s->owner);

		if (error != 0)
			panic("probe session: error %d", error);
		sessions[s->owner] = NULL;
		s->owner = 0;
	}
	if (s->counts)
		funcprof_stop();
	s->counts = false;
}

/* For its first probes. */
static int
session_begin(struct session *s, struct probe_request *r, bool counts)
{
	int error = counts ? funcprof_start() : 0;

	if (error == -EBUSY)
		snprintf(r->err, sizeof(r->err), "somebody else is counting");
	if (error != 0)
		return error;
	s->counts = counts;
	error = session_register(s);
	if (error != 0) {
		snprintf(r->err, sizeof(r->err), "too many sessions");
		session_unregister(s);
	}
	return error;
}

static bool
follow_is_used(uint32_t follow)
{
	list_for_each_entry (struct session, s, &all_sessions, all)
		if (s->follow == follow)
			return true;
	return false;
}

static int
session_follow(struct session *s, uint64_t pid, bool at_exec)
{
	if (s->owner != 0 || s->follow != 0)
		return -EBUSY;
	if (last_follow == UINT32_MAX)
		return -EAGAIN;
	int error = proc_follow(pid, last_follow + 1, at_exec, follow_is_used);
	if (error == 0)
		s->follow = ++last_follow;
	return error;
}

static int
session_switch(struct session *s, struct probe_request *r, unsigned request)
{
	bool on = request != PROBE_OFF, begins = s->owner == 0;
	int n;

	if (request == PROBE_COUNT && !ktr_probe_is_name(r->spec)) {
		snprintf(r->err, sizeof(r->err),
			 "\"%.60s\": expected provider:module:function:name", r->spec);
		return -EINVAL;
	}
	if (begins && !on) {
		snprintf(r->err, sizeof(r->err), "nothing is on");
		return -EINVAL;
	}
	if (on && !begins && s->counts != (request == PROBE_COUNT)) {
		snprintf(r->err, sizeof(r->err), "a session counts, or records, but not both");
		return -EBUSY;
	}
	n = begins ? session_begin(s, r, request == PROBE_COUNT) : 0;
	if (n != 0)
		return n;
	n = ktr_select(s->owner, r->spec, on, NULL, r->err, sizeof(r->err));
	if (n < 0 && begins)
		session_unregister(s);
	return n;
}

static int64_t
session_ioctl(struct file *f, unsigned request, uint64_t arg)
{
	struct session *s = f->priv;
	struct probe_request *r;
	int64_t result;

	if (request == PROBE_FOLLOW || request == PROBE_FOLLOW_EXEC) {
		mutex_lock(&sessions_lock);
		result = session_follow(s, arg, request == PROBE_FOLLOW_EXEC);
		mutex_unlock(&sessions_lock);
		return result;
	}
	if (request != PROBE_ON && request != PROBE_COUNT && request != PROBE_OFF)
		return -ENOTTY;
	r = kmalloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	result = copy_in(r, arg, sizeof(*r));
	if (result == 0) {
		r->spec[sizeof(r->spec) - 1] = r->err[0] = '\0';
		mutex_lock(&sessions_lock);
		result = session_switch(s, r, request);
		mutex_unlock(&sessions_lock);
		if (result < 0 && copy_out(arg, r, sizeof(*r)) != 0)
			result = -EFAULT;
	}
	kfree(r);
	return result;
}

static int
session_open(struct file *f)
{
	struct session *s = kzalloc(sizeof(*s));
	const struct proc *p = curproc();

	if (s == NULL)
		return -ENOMEM;
	snprintf(s->name, sizeof(s->name), "%s/%u", p != NULL ? p->name : "kernel",
		 p != NULL ? p->pid : 0);
	f->priv = s;
	mutex_lock(&sessions_lock);
	list_append(&all_sessions, &s->all);
	mutex_unlock(&sessions_lock);
	return 0;
}

static void
session_release(struct file *f)
{
	struct session *s = f->priv;

	mutex_lock(&sessions_lock);
	session_unregister(s);
	list_remove(&s->all);
	mutex_unlock(&sessions_lock);
	kfree(s);
}

static void
session_init(void)
{
	static const struct dev_ops ops = {
	    .open = session_open,
	    .release = session_release,
	    .ioctl = session_ioctl,
	    .mode = 0600,
	    .root_only = true,
	};

	if (devfs_register("probe", &ops, NULL) < 0)
		pr_warn("cannot make /dev/probe\n");
}
HOOK(booted, session_init);

/* Otherwise the profiler is ftrace's, or does not run. */
static bool
a_session_counts(void)
{
	list_for_each_entry (struct session, s, &all_sessions, all)
		if (s->counts)
			return true;
	return false;
}

static void
profile_get(const struct sysctl *sysctl, struct sbuf *out)
{
	struct funcprof p;
	const char *name;

	sbuf_puts(out, "FUNCTION CPU HITS TIMED NS SELF-NS SQUARE-HIGH SQUARE-LOW\n");
	mutex_lock(&sessions_lock);
	for (unsigned n = 0; a_session_counts() && (name = funcprof_get(n, 0, &p)) != NULL; n++) {
		for (unsigned cpu = 0; cpu < ncpus; cpu++) {
			funcprof_get(n, cpu, &p);
			if (p.hits != 0 || p.timed != 0)
				sbuf_printf(out, "%s %u %lu %lu %lu %lu %lu %lu\n", name, cpu,
					    p.hits, p.timed, p.ns, p.self_ns, p.square[1],
					    p.square[0]);
		}
	}
	mutex_unlock(&sessions_lock);
}
SYSCTL_TEXT(debug_fbt_profile, "debug.fbt.profile", 0, profile_get, NULL,
	    "functions that a session of /dev/probe counts: calls by CPU, and nanoseconds");
