/*
 * fasync.c - signals for files that have news.
 *
 * poll_notify() is called with locks held, also that of the processes, so it only puts the file
 * into a list. A callout sends the signals at once, from the timer interrupt, a few in each.
 *
 * Locking: fasync_lock guards the lists and what is in struct fasync. It is taken after the locks
 * of drivers and proc_lock, and before that of the callouts.
 */
#include "kernel/fs/wait/fasync.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/callout.h"
#include "kernel/sync/smp.h"
#include "kernel/sync/spinlock.h"

#define SENT_MAX 16 /* files whose owners one interrupt tells */

struct fasync {
	struct fasync *next; /* of the same source; while `on` */
	struct list due;     /* in `waiting` while there are news; else alone */
	unsigned news;       /* POLLIN, POLLOUT */
	bool on;             /* the owner is told */
	struct poll_source *source;
	struct task_owner owner;
	int sig; /* 0: SIGIO, of which no reason is told */
	int fd;
	unsigned wants; /* POLLIN, POLLOUT: how the file is open */
	struct uidinfo *ui;
};

/* All files of one source are walked at each of its news, with interrupts off. */
static int max_user_files = 1024;
SYSCTL_INT(fs_async_files, "fs.async-files", SYSCTL_WR | SYSCTL_TUN, &max_user_files, 0, INT32_MAX,
	   "open files of one user that have O_ASYNC");

static struct spinlock fasync_lock = SPINLOCK_INIT("fasync");
static struct list waiting = LIST_INIT(waiting);

static void send_all(void *arg);
static struct callout sender = {.fn = send_all, .cpu = -1};

/* Takes the first file of those that wait. False: there is none. */
static bool
take_due(struct fasync *taken)
{
	struct fasync *a = NULL;

	spin_lock(&fasync_lock);
	if (!list_empty(&waiting)) {
		a = list_entry(list_first(&waiting), struct fasync, due);
		list_remove(&a->due);
		*taken = *a;
		a->news = 0;
	}
	spin_unlock(&fasync_lock);
	return a != NULL;
}

static void
send_news(const struct fasync *a, unsigned news, int code, uint64_t band)
{
	struct siginfo info = {.si_signo = a->sig, .si_code = code, .si_band = band};

	if (!(a->news & news))
		return;
	info.si_fd = a->fd;
	if (a->sig == 0)
		info = (struct siginfo){.si_signo = SIGIO, .si_code = SI_KERNEL};
	task_signal_owner(&a->owner, &info);
}

static void
send_due(const struct fasync *a)
{
	send_news(a, POLLIN, POLL_IN, POLLIN | POLLRDNORM);
	send_news(a, POLLOUT, POLL_OUT, POLLOUT | POLLWRNORM | POLLWRBAND);
}

static void
send_all(void *arg)
{
	struct fasync a;

	for (unsigned i = 0; i < SENT_MAX && take_due(&a); i++)
		send_due(&a);
	/* The rest, and what has come meanwhile, have other interrupts. */
	spin_lock(&fasync_lock);
	if (!list_empty(&waiting))
		callout_set(&sender, clock_ns());
	spin_unlock(&fasync_lock);
}

void
fasync_notify(struct poll_source *s, unsigned events)
{
	bool pending;

	spin_lock(&fasync_lock);
	pending = !list_empty(&waiting);
	for (struct fasync *a = s->async; a != NULL; a = a->next) {
		if ((events & a->wants) == 0 || a->owner.pid == 0)
			continue;
		a->news |= events & a->wants;
		if (list_empty(&a->due))
			list_append(&waiting, &a->due);
	}
	if (!pending && !list_empty(&waiting))
		callout_set(&sender, clock_ns());
	spin_unlock(&fasync_lock);
}

/* What is kept of the file, made if there is nothing. NULL: no memory. */
static struct fasync *
fasync_of(struct file *f)
{
	struct uidinfo *ui = proc_uidinfo();
	struct fasync *a = __atomic_load_n(&f->async, __ATOMIC_ACQUIRE), *new;
	int mode = f->flags & O_ACCMODE;

	if (a != NULL)
		return a;
	new = uidinfo_alloc(ui, sizeof(*new));
	if (new == NULL)
		return NULL;
	*new = (struct fasync){.source = f->news,
			       .ui = ui,
			       .wants = (mode != O_WRONLY ? POLLIN : 0) |
					(mode != O_RDONLY ? POLLOUT : 0)};
	list_init(&new->due);
	if (__atomic_compare_exchange_n(&f->async, &a, new, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return new;
	uidinfo_free(ui, new);
	return a;
}

static bool
may_switch_on(const struct fasync *a)
{
	return a->on ||
	       a->ui->async_files < (uint64_t)__atomic_load_n(&max_user_files, __ATOMIC_RELAXED);
}

/* Puts a file into the list of its source, or takes it out. fasync_lock held. */
static void
fasync_switch(struct fasync *a, bool on)
{
	struct fasync **at = &a->source->async;

	if (a->on == on)
		return;
	poll_watch(on);
	a->on = on;
	a->ui->async_files += on ? 1 : -1ul;
	if (on) {
		a->next = *at;
	} else {
		while (*at != a)
			at = &(*at)->next;
		list_remove(&a->due);
		a->news = 0;
	}
	__atomic_store_n(at, on ? a : a->next, __ATOMIC_SEQ_CST);
}

/* As in Linux, signalfd, pidfd and their like cannot: their events may be others', too. */
static bool
fasync_can(const struct file *f)
{
	uint32_t mode = f->vn->mode;

	return f->news != NULL && (S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode));
}

int
fasync_set(struct file *f, int fd, bool on)
{
	struct fasync *a;

	if (!fasync_can(f))
		return -ENOTTY;
	a = fasync_of(f);
	if (a == NULL)
		return -ENOMEM;
	spin_lock(&fasync_lock);
	if (on && !may_switch_on(a)) {
		spin_unlock(&fasync_lock);
		return -ENOMEM;
	}
	a->fd = fd;
	fasync_switch(a, on);
	if (on)
		__atomic_fetch_or(&f->flags, O_ASYNC, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&f->flags, ~O_ASYNC, __ATOMIC_RELAXED);
	spin_unlock(&fasync_lock);
	/* A CPU that still sends what it took before has its interrupts off. */
	if (!on)
		smp_call_all(NULL, NULL);
	return 0;
}

/* F_SETOWN's number as an owner. */
static struct task_owner
owner_of_number(int32_t number)
{
	return (struct task_owner){.kind = number < 0 ? F_OWNER_PGRP : F_OWNER_PID,
				   .pid = (uint32_t)(number < 0 ? -number : number)};
}

/* What waits is the old owner's. claims: only if there is none. */
static int
set_owner(struct fasync *a, struct task_owner o, bool claims)
{
	struct fasync old;

	if (o.pid != 0 && !task_owner_set(&o))
		return -ESRCH;
	spin_lock(&fasync_lock);
	if (claims && a->owner.pid != 0) {
		spin_unlock(&fasync_lock);
		return 0;
	}
	old = *a;
	list_remove(&a->due);
	a->news = 0;
	a->owner = o;
	spin_unlock(&fasync_lock);
	send_due(&old);
	return 0;
}

static int
set_owner_ex(struct fasync *a, uint64_t from)
{
	struct f_owner_ex ex;

	if (copy_in(&ex, from, sizeof(ex)) != 0)
		return -EFAULT;
	if (ex.type < F_OWNER_TID || ex.type > F_OWNER_PGRP)
		return -EINVAL;
	return set_owner(a, (struct task_owner){.kind = ex.type, .pid = (uint32_t)ex.pid}, false);
}

int64_t
fasync_fcntl(struct file *f, int command, uint64_t arg)
{
	struct fasync *a, now;
	int32_t number = (int32_t)arg;
	struct f_owner_ex ex;

	if (command == F_GETOWN && __atomic_load_n(&f->async, __ATOMIC_ACQUIRE) == NULL)
		return 0; /* without memory: ioctl() has no error for that */
	a = fasync_of(f);
	if (a == NULL)
		return -ENOMEM;
	spin_lock(&fasync_lock);
	now = *a;
	spin_unlock(&fasync_lock);
	switch (command) {
	case F_SETOWN:
		return number == INT32_MIN ? -EINVAL : set_owner(a, owner_of_number(number), false);
	case F_GETOWN:
		number = (int32_t)now.owner.pid;
		return now.owner.kind == F_OWNER_PGRP ? -number : number;
	case F_SETOWN_EX:
		return set_owner_ex(a, arg);
	case F_GETOWN_EX:
		ex = (struct f_owner_ex){now.owner.kind, (int32_t)now.owner.pid};
		return copy_out(arg, &ex, sizeof(ex)) != 0 ? -EFAULT : 0;
	case F_SETSIG:
		if (arg > NSIG)
			return -EINVAL;
		spin_lock(&fasync_lock);
		a->sig = (int)arg;
		spin_unlock(&fasync_lock);
		return 0;
	default: /* F_GETSIG */
		return now.sig;
	}
}

int
fasync_claim(struct file *f)
{
	struct fasync *a = fasync_of(f);

	return a != NULL ? set_owner(a, owner_of_number((int32_t)proc_pid()), true) : -ENOMEM;
}

void
fasync_send_message(struct file *f, int fd)
{
	struct fasync a;

	spin_lock(&fasync_lock);
	a = *f->async;
	spin_unlock(&fasync_lock);
	a.fd = fd;
	a.news = POLLMSG;
	if (a.owner.pid != 0)
		send_news(&a, POLLMSG, POLL_MSG, POLLIN | POLLRDNORM | POLLMSG);
}

void
fasync_end(struct file *f)
{
	struct fasync *a = f->async;

	if (f->flags & O_ASYNC)
		fasync_set(f, a->fd, false);
	uidinfo_free(a->ui, a);
}
