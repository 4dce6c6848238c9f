/* signalfd.c - files from which pending signals are read. Locking: proc_lock. */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/signal.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/proc_private.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"

/* A file that takes signals: vnode.data. */
struct signal_file {
	uint64_t mask; /* atomic: signals that the file takes; ordered with who waits (poll.c) */
};

static uint64_t
mask_of(const struct signal_file *sf)
{
	return __atomic_load_n(&sf->mask, __ATOMIC_SEQ_CST);
}

static int
signal_open(struct file *f)
{
	f->news = &proc_signal_news;
	__atomic_fetch_add(&proc_signal_files, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static unsigned
signal_poll(struct file *f)
{
	const struct signal_file *sf = f->vn->data;
	uint64_t pending;

	spin_lock(&proc_lock);
	pending = curproc()->pending.set | curlwp()->pending.set;
	spin_unlock(&proc_lock);
	return pending & mask_of(sf) ? POLLIN : 0;
}

/* A signal of the program, taken from those that are pending. */
struct taken {
	const struct signal_file *from;
	struct siginfo info;
};

static int64_t
signalfd_take(void *arg)
{
	struct taken *t = arg;
	int sig;

	spin_lock(&proc_lock);
	sig = proc_signal_take(mask_of(t->from), &t->info);
	spin_unlock(&proc_lock);
	return sig;
}

static struct signalfd_siginfo
signalfd_fill(const struct siginfo *from)
{
	struct signalfd_siginfo to = {.ssi_signo = (uint32_t)from->si_signo,
				      .ssi_code = from->si_code};

	if (from->si_code == SI_TIMER) {
		to.ssi_tid = (uint32_t)from->si_tid;
		to.ssi_overrun = (uint32_t)from->si_overrun;
	} else if (from->si_signo != SIGCHLD &&
		   (from->si_code == POLL_IN || from->si_code == POLL_OUT)) {
		to.ssi_band = (uint32_t)from->si_band;
		to.ssi_fd = from->si_fd;
	} else {
		to.ssi_pid = from->si_pid;
		to.ssi_uid = from->si_uid;
		to.ssi_status = from->si_code > 0 ? from->si_status : 0;
	}
	if (from->si_code < 0) {
		to.ssi_ptr = from->si_value;
		to.ssi_int = (int32_t)from->si_value;
	}
	return to;
}

static int64_t
signal_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct taken t = {.from = vn->data};
	uint64_t deadline = f->flags & O_NONBLOCK ? 0 : DEADLINE_NEVER;
	int64_t done = 0, r = 1;

	if (u->resid < sizeof(struct signalfd_siginfo))
		return -EINVAL;
	while (r > 0 && u->resid >= sizeof(struct signalfd_siginfo)) {
		struct signalfd_siginfo to;

		r = poll_wait(signalfd_take, &t, deadline);
		if (r <= 0)
			break;
		to = signalfd_fill(&t.info);
		r = uio_put(u, &to, sizeof(to));
		if (r < 0)
			break;
		r = 1;
		done += (int64_t)sizeof(to);
		deadline = 0; /* further ones only if they are there */
	}
	return done > 0 ? done : r == 0 ? -EAGAIN : r;
}

static void
signal_release(struct file *f)
{
	__atomic_fetch_sub(&proc_signal_files, 1, __ATOMIC_SEQ_CST);
}

static const struct vnode_ops signal_ops = {
    .open = signal_open,
    .release = signal_release,
    .read = signal_read,
    .poll = signal_poll,
    .destroy = file_unnamed_destroy,
};

int64_t
sys_signalfd4(const uint64_t a[6])
{
	int flags = (int)a[3], error = 0;
	bool old = (int32_t)a[0] != -1;
	struct signal_file *sf;
	struct file *f;
	uint64_t mask;

	if (a[2] != sizeof(mask) || (flags & ~(O_CLOEXEC | O_NONBLOCK)))
		return -EINVAL;
	if (copy_in(&mask, a[1], sizeof(mask)) != 0)
		return -EFAULT;
	f = old ? filetable_get_kind(a[0], &signal_ops, &error)
		: file_open_unnamed(&signal_ops, sizeof(*sf), flags & O_NONBLOCK, &error);
	if (f == NULL)
		return error;
	sf = f->vn->data;
	__atomic_store_n(&sf->mask, mask & ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)),
			 __ATOMIC_SEQ_CST);
	if (!old)
		return filetable_install(f, flags);
	poll_notify(&proc_signal_news, POLLIN); /* a pending signal may be of the new mask */
	return (int32_t)a[0];
}

SYSCALL_IS(signalfd, sys_signalfd4((const uint64_t[6]){a[0], a[1], a[2]}))
