/*
 * tty_jobs.c - which session has which terminal, and which group of it is in the foreground.
 *
 * Locking: sessions_lock, the outer one of a terminal's lock. A session has a reference to its
 * terminal, so one that is found by its session lives.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/ioctl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/dev/tty.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/file.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "ktr/ktr.h"

static struct spinlock sessions_lock = SPINLOCK_INIT("sessions");
static struct list ttys = LIST_INIT(ttys); /* sessions_lock; by device number */
static struct list sessions[128]; /* sessions_lock; terminals that a session has, by its number */

void
tty_join(struct tty *t, uint64_t first)
{
	struct list *at = &ttys;

	spin_lock(&sessions_lock);
	t->device = first;
	list_for_each_entry (struct tty, other, &ttys, link) {
		if (other->device > t->device)
			break;
		if (other->device == t->device)
			t->device++;
		at = &other->link;
	}
	list_insert_after(at, &t->link);
	spin_unlock(&sessions_lock);
}

struct tty *
tty_ref(struct tty *t)
{
	__atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
	return t;
}

void
tty_unref(struct tty *t)
{
	if (t == NULL || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (t->sid != 0)
		panic("terminal %#lx of session %u has no reference", t->device, t->sid);
	spin_lock(&sessions_lock);
	list_remove(&t->link);
	spin_unlock(&sessions_lock);
	t->line->free(t);
}

/* The session of which the current process may have a terminal. 0: none. */
static uint32_t
own_session(void)
{
	const struct proc *p = curproc();

	return p != NULL && !p->no_tty ? p->sid : 0;
}

static struct list *
list_of_session(uint32_t sid)
{
	return &sessions[sid % (sizeof(sessions) / sizeof(sessions[0]))];
}

/* NULL: it has none; or, hung: none with whose other end it was. sessions_lock held. */
static struct tty *
find_tty(uint32_t sid, bool hung)
{
	list_for_each_entry (struct tty, t, list_of_session(sid), session)
		if (t->sid == sid && t->hung == hung)
			return t;
	return NULL;
}

bool
tty_of_session(uint32_t sid, uint64_t *device, uint32_t *fg_pgid)
{
	const struct tty *t;

	spin_lock(&sessions_lock);
	t = find_tty(sid, false);
	if (t != NULL) {
		*device = t->device;
		*fg_pgid = t->fg_pgid;
	}
	spin_unlock(&sessions_lock);
	return t != NULL;
}

/* sessions_lock held. */
static void
set_session(struct tty *t, uint32_t sid, uint32_t pgid)
{
	if (t->sid != 0)
		list_remove(&t->session);
	if (sid != 0)
		list_append(list_of_session(sid), &t->session);
	spin_lock(&t->lock);
	t->sid = sid;
	t->fg_pgid = pgid;
	t->fg_uid = curproc()->uid;
	spin_unlock(&t->lock);
	CTR3(KTR_BUF, "tty session: device %#lx sid %u pgid %u", t->device, sid, pgid);
}

/* Makes t the terminal of the current process's session. steal: even if another session has it. */
static int
take_tty(struct tty *t, bool steal)
{
	const struct proc *p = curproc();
	const struct tty *own;
	int error = 0;

	if (p->sid != p->pid)
		return -EPERM;
	spin_lock(&sessions_lock);
	own = find_tty(p->sid, false);
	if (own == NULL && !t->hung && (t->sid == 0 || (steal && capable(CAP_SYS_ADMIN)))) {
		if (t->sid == 0)
			tty_ref(t);
		set_session(t, p->sid, p->pgid);
	} else if (own != t) {
		error = -EPERM;
	}
	spin_unlock(&sessions_lock);
	return error;
}

void
tty_adopt(struct tty *t)
{
	if (curproc() != NULL)
		take_tty(t, false);
}

/*
 * The current process, a session's leader, gives up its terminal; with `hung`, only one that is
 * hung up. The foreground group gets SIGHUP, and with `go_on` SIGCONT, too. False if the session
 * has no such terminal.
 */
static bool
leave_tty(bool hung, bool go_on)
{
	uint32_t pgid = 0;
	struct tty *t;

	spin_lock(&sessions_lock);
	t = find_tty(curproc()->pid, hung);
	if (t != NULL) {
		pgid = t->fg_pgid;
		set_session(t, 0, 0);
	}
	spin_unlock(&sessions_lock);
	if (pgid != 0)
		proc_signal_group(curproc()->sid, pgid, SIGHUP);
	if (pgid != 0 && go_on)
		proc_signal_group(curproc()->sid, pgid, SIGCONT);
	tty_unref(t);
	return t != NULL;
}

static void
leader_exits(void)
{
	if (curproc()->sid != curproc()->pid)
		return;
	leave_tty(false, false);
	while (leave_tty(true, true))
		;
}
HOOK(proc_exit, leader_exits);

void
tty_hangup(struct tty *t)
{
	uint32_t leader;

	spin_lock(&sessions_lock);
	spin_lock(&t->lock);
	t->hung = true;
	leader = t->sid;
	spin_unlock(&t->lock);
	spin_unlock(&sessions_lock);
	wakeup(t);
	poll_notify(&t->news, POLLIN | POLLOUT);
	if (leader != 0) {
		proc_signal_one(leader, SIGHUP);
		proc_signal_one(leader, SIGCONT);
	}
}

bool
tty_foreground(const struct tty *t)
{
	uint32_t sid = own_session();

	return sid == 0 || sid != t->sid || t->fg_pgid == 0 || curproc()->pgid == t->fg_pgid;
}

int
tty_await_foreground(struct tty *t, int sig)
{
	bool foreground;

	spin_lock(&t->lock);
	foreground = tty_foreground(t);
	spin_unlock(&t->lock);
	return foreground ? 0 : proc_stop_group(sig);
}

int
tty_may_change(struct tty *t)
{
	int error = tty_await_foreground(t, SIGTTOU);
	uint32_t pgid, uid;

	if (error != 1)
		return error;
	spin_lock(&t->lock);
	pgid = t->fg_pgid;
	uid = t->fg_uid;
	spin_unlock(&t->lock);
	/* A shell that another user's has started, or that goes on after one it has started. */
	return capable(CAP_SYS_ADMIN) || curproc()->uid == uid || proc_group_own(pgid) ? 0 : -EPERM;
}

/* Is t the terminal of the current process's session? t->lock held. */
static bool
is_own(const struct tty *t)
{
	return t->sid != 0 && t->sid == own_session();
}

static int64_t
set_group(struct tty *t, uint64_t arg)
{
	int error = tty_may_change(t);
	uint32_t sid;
	int32_t pgid;
	bool own;

	if (error < 0)
		return error == -EIO ? -ENOTTY : error; /* its group is orphaned */
	if (copy_in(&pgid, arg, sizeof(pgid)) < 0)
		return -EFAULT;
	if (pgid < 0)
		return -EINVAL;
	sid = proc_group_session((uint32_t)pgid);
	spin_lock(&t->lock);
	/* Asked now, since the leader may have ended, and another session have the terminal. */
	own = is_own(t);
	error = !own ? -ENOTTY : sid == t->sid ? 0 : sid == 0 ? -ESRCH : -EPERM;
	if (error == 0) {
		t->fg_pgid = (uint32_t)pgid;
		t->fg_uid = curproc()->uid;
	}
	spin_unlock(&t->lock);
	if (error != 0)
		return error;
	wakeup(t); /* a reader may now be in the background */
	CTR1(KTR_BUF, "tty foreground: pgid %d", pgid);
	return 0;
}

int64_t
tty_job_request(struct tty *t, bool master, unsigned request, uint64_t arg)
{
	struct proc *p = curproc();
	uint32_t sid, pgid;
	bool own;

	spin_lock(&t->lock);
	own = is_own(t);
	sid = t->sid;
	pgid = t->fg_pgid;
	spin_unlock(&t->lock);
	switch (request) {
	case TIOCGPGRP:
		return own || master ? copy_out(arg, &pgid, sizeof(pgid)) : -ENOTTY;
	case TIOCGSID:
		return own || (master && sid != 0) ? copy_out(arg, &sid, sizeof(sid)) : -ENOTTY;
	case TIOCSPGRP:
		return set_group(t, arg);
	case TIOCSCTTY:
		return take_tty(t, arg == 1);
	case TIOCNOTTY:
		if (!own || master)
			return -ENOTTY;
		if (!leave_tty(false, true)) /* it is not the leader */
			p->no_tty = true;
		return 0;
	default:
		return -ENOTTY;
	}
}

/* /dev/tty: the terminal of the process's session. */
static int
open_own(struct file *f)
{
	struct tty *t;
	int error;

	spin_lock(&sessions_lock);
	t = find_tty(own_session(), false);
	if (t != NULL)
		tty_ref(t);
	spin_unlock(&sessions_lock);
	if (t == NULL)
		return -ENXIO;
	f->priv = t;
	error = tty_open(f);
	tty_unref(t);
	return error;
}

void
tty_jobs_init(void)
{
	static const struct dev_ops own = {
	    .open = open_own,
	    .release = tty_release,
	    .read = tty_read,
	    .write = tty_write,
	    .poll = tty_poll,
	    .ioctl = tty_ioctl,
	    .mode = 0666,
	    .device = DEVICE(5, 0),
	};

	for (unsigned i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
		list_init(&sessions[i]);
	if (devfs_register("tty", &own, NULL) < 0)
		panic("no memory for /dev/tty");
}
