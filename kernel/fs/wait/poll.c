/*
 * poll.c - poll, ppoll, select and pselect6.
 *
 * All who wait for files, here and in epoll.c, sleep on one channel, and look again at their files
 * whenever one changes. There is no list of who waits for what: a machine of this size has few such
 * waits.
 *
 * Locking: none. A driver changes its file and then reads `pollers`. Whoever waits, or has a set
 * that may want each event once, counts itself in `pollers` and then looks at the file. So one of
 * the two sees the other.
 */
#include "kernel/fs/wait/poll.h"

#include "kernel/abi/errno.h"
#include "kernel/abi/personality.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/time.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/fasync.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define ALWAYS (POLLERR | POLLHUP | POLLNVAL)
#define FEW    64 /* files that need no heap */
#define NEAR   16 /* words of a select's set that needs none: FD_SETSIZE descriptors */

static uint32_t pollers; /* atomic: waits, sets of epoll, and files whose owner gets a signal */
static uint64_t changes; /* atomic: counts poll_notify() while there are pollers */

void
poll_notify(struct poll_source *s, unsigned events)
{
	if (__atomic_load_n(&pollers, __ATOMIC_SEQ_CST) == 0)
		return;
	if (events & POLLIN)
		__atomic_fetch_add(&s->in, 1, __ATOMIC_SEQ_CST);
	if (events & POLLOUT)
		__atomic_fetch_add(&s->out, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
	wakeup(&changes);
	if (s != NULL && __atomic_load_n(&s->async, __ATOMIC_SEQ_CST) != NULL)
		fasync_notify(s, events);
}

void
poll_watch(bool on)
{
	__atomic_fetch_add(&pollers, on ? 1 : -1, __ATOMIC_SEQ_CST);
}

static inline __attribute__((always_inline)) unsigned
ready_of(struct file *f)
{
	unsigned found = POLLIN | POLLOUT;

	if (f->vn->ops->poll != NULL)
		found = f->vn->ops->poll(f);
	if (found & POLLIN)
		found |= POLLRDNORM;
	if (found & POLLOUT)
		found |= POLLWRNORM;
	return found;
}

unsigned
poll_ready(struct file *f)
{
	return ready_of(f);
}

static bool
poll_is_unchanged(void *seen)
{
	return __atomic_load_n(&changes, __ATOMIC_SEQ_CST) == *(uint64_t *)seen;
}

int64_t
poll_wait(int64_t (*look)(void *arg), void *arg, uint64_t deadline)
{
	int64_t found;
	int error = 0;

	poll_watch(true);
	for (;;) {
		uint64_t seen = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);

		found = look(arg);
		if (found != 0 || error != 0 || deadline <= clock_ns())
			break;
		error = sleepq_wait(&(struct sleep_request){.chan = &changes,
							    .still = poll_is_unchanged,
							    .arg = &seen,
							    .wmesg = "poll",
							    .flags = SLEEP_INTR,
							    .deadline_ns = deadline});
	}
	poll_watch(false);
	return found == 0 && error == -EINTR ? error : found;
}

/* The files of a call. */
struct poll_set {
	struct pollfd *fds;
	unsigned n;
};

static int64_t
ready_count(void *arg)
{
	const struct poll_set *s = arg;
	struct filetable *ft = proc_files();
	bool threaded = proc_is_threaded();
	int64_t count = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct pollfd *p = &s->fds[i];
		struct file *f = p->fd < 0  ? NULL
				 : threaded ? filetable_get(ft, (uint32_t)p->fd)
					    : filetable_peek(ft, (uint32_t)p->fd);
		unsigned found = f != NULL ? ready_of(f) : p->fd < 0 ? 0 : POLLNVAL;

		p->revents = (int16_t)(found & ((uint16_t)p->events | ALWAYS));
		count += p->revents != 0;
		if (threaded)
			file_release_held();
	}
	return count;
}

/* Waits for no file: only a signal ends that, or the time. */
static int64_t
wait_for_none(uint64_t deadline)
{
	struct sleep_request r = {.wmesg = "poll", .flags = SLEEP_INTR, .deadline_ns = deadline};

	r.chan = &r; /* its own: no change of a file wakes it */
	return deadline > clock_ns() && sleepq_wait(&r) == -EINTR ? -EINTR : 0;
}

/* As poll_wait(), of n files. */
static int64_t
wait_ready(int64_t (*look)(void *arg), void *arg, unsigned n, uint64_t deadline)
{
	int64_t r;

	if (n > 0) {
		r = poll_wait(look, arg, deadline);
	} else {
		look(arg); /* the answer is empty */
		r = wait_for_none(deadline);
	}
	if (r == 0 && proc_signal_pending()) { /* also when the time is over, or was 0 */
		r = -EINTR;
		curthread()->interrupted_ns = deadline;
	}
	CTR2(KTR_VFS, "poll: files %u ready %ld", n, r);
	return r;
}

uint64_t
poll_deadline_ms(uint64_t ms)
{
	return proc_deadline((int32_t)ms < 0 ? DEADLINE_NEVER : (uint32_t)ms * 1000000ul);
}

int
poll_take_deadline(uint64_t uspan, uint64_t *deadline)
{
	struct timespec t;

	*deadline = proc_deadline(DEADLINE_NEVER);
	if (uspan == 0)
		return 0;
	if (copy_in(&t, uspan, sizeof(t)) != 0)
		return -EFAULT;
	if (t.tv_sec < 0 || t.tv_nsec < 0 || t.tv_nsec >= 1000000000)
		return -EINVAL;
	if (*deadline == DEADLINE_NEVER && t.tv_sec < 1l << 30)
		*deadline = clock_ns() + (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return 0;
}

int
poll_take_mask(uint64_t umask, uint64_t size)
{
	uint64_t mask;

	if (umask == 0)
		return 0;
	if (size != sizeof(mask))
		return -EINVAL;
	if (copy_in(&mask, umask, sizeof(mask)) != 0)
		return -EFAULT;
	proc_signals_mask(mask);
	return 0;
}

/* Stores the time that is left of a timeout, in seconds and in units of unit_ns, whatever r is,
 * unless the program wants that it stays. Returns r. */
static int64_t
poll_give_left(int64_t r, uint64_t utimeout, uint64_t deadline, uint64_t unit_ns)
{
	uint64_t now = clock_ns(), left = deadline > now ? deadline - now : 0;
	const uint64_t t[2] = {left / 1000000000, left % 1000000000 / unit_ns};

	if (utimeout == 0 || deadline == DEADLINE_NEVER)
		return r;
	if (((proc_personality() & STICKY_TIMEOUTS) || copy_out(utimeout, t, sizeof(t)) != 0) &&
	    r == -EINTR)
		proc_call_final(deadline); /* as on Linux: it may be in memory that is only read */
	return r;
}

int64_t
poll_end(int64_t r)
{
	if (r != -EINTR)
		proc_signals_unmask();
	return r;
}

/* Room for n files: `few`, or from the heap, which room_free() frees. NULL: no memory. */
static struct pollfd *
room_for(unsigned n, struct pollfd few[FEW], struct uidinfo **ui)
{
	*ui = proc_uidinfo();
	return n <= FEW ? few : uidinfo_alloc(*ui, n * sizeof(*few));
}

static void
room_free(struct pollfd *fds, const struct pollfd few[FEW], struct uidinfo *ui)
{
	if (fds != few)
		uidinfo_free(ui, fds);
}

/* Tells the program what was found: the rest of its array may have changed meanwhile. */
static int
put_revents(uint64_t ufds, const struct poll_set *s)
{
	int error = 0;

	for (unsigned i = 0; error == 0 && i < s->n; i++)
		error = copy_out(ufds + i * sizeof(s->fds[0]) + offsetof(struct pollfd, revents),
				 &s->fds[i].revents, sizeof(s->fds[0].revents));
	return error;
}

static int64_t
poll_files(uint64_t ufds, uint64_t n, uint64_t deadline)
{
	struct pollfd few[FEW];
	struct poll_set s = {.n = (unsigned)n};
	struct uidinfo *ui;
	int64_t r;

	if (n > filetable_limit())
		return -EINVAL;
	s.fds = room_for(s.n, few, &ui);
	if (s.fds == NULL)
		return -ENOMEM;
	r = copy_in(s.fds, ufds, n * sizeof(s.fds[0]));
	if (r == 0) {
		r = wait_ready(ready_count, &s, s.n, deadline);
		if (put_revents(ufds, &s) != 0)
			r = -EFAULT;
	}
	room_free(s.fds, few, ui);
	return r;
}

SYSCALL_IS(poll, poll_files(a[0], (uint32_t)a[1], poll_deadline_ms(a[2])))

int64_t
sys_ppoll(const uint64_t a[6])
{
	uint64_t deadline;
	int r = poll_take_deadline(a[2], &deadline);

	if (r == 0)
		r = poll_take_mask(a[3], a[4]);
	if (r != 0)
		return r;
	return poll_give_left(poll_end(poll_files(a[0], (uint32_t)a[1], deadline)), a[2], deadline,
			      1);
}

/* A select's sets: readable, writable, exceptional. */
struct sets {
	unsigned words; /* of each */
	uint64_t *word[3];
};

/* Reads the sets, of nfds bits each. Returns how many files are in them at most, or -EFAULT. */
static int
copy_sets(const uint64_t a[6], struct sets *s, unsigned nfds)
{
	int files = 0;

	for (unsigned i = 0; i < 3; i++) {
		if (a[1 + i] != 0 && copy_in(s->word[i], a[1 + i], s->words * 8) != 0)
			return -EFAULT;
		if (nfds % 64 != 0) /* of the last word, Linux takes no more either */
			s->word[i][s->words - 1] &= (1ul << nfds % 64) - 1;
	}
	if (nfds <= FEW)
		return (int)nfds;
	for (unsigned w = 0; w < s->words; w++)
		for (uint64_t any = s->word[0][w] | s->word[1][w] | s->word[2][w]; any != 0;
		     any &= any - 1)
			files++;
	return files;
}

/* Makes pollfd of the sets. Returns how many, or -EBADF. */
static int
sets_to_fds(const struct sets *s, struct pollfd *fds)
{
	static const int16_t events[3] = {POLLIN, POLLOUT, POLLPRI};
	unsigned n = 0;

	for (unsigned w = 0; w < s->words; w++) {
		uint64_t any = s->word[0][w] | s->word[1][w] | s->word[2][w];

		for (; any != 0; any &= any - 1) {
			unsigned bit = (unsigned)__builtin_ctzl(any), fd = w * 64 + bit;
			int16_t wanted = 0;

			for (unsigned i = 0; i < 3; i++)
				wanted |= s->word[i][w] >> bit & 1 ? events[i] : 0;
			if (filetable_get(proc_files(), fd) == NULL)
				return -EBADF;
			file_release_held();
			fds[n++] = (struct pollfd){.fd = (int32_t)fd, .events = wanted};
		}
	}
	return (int)n;
}

struct selection {
	struct poll_set files;
	struct sets found;
};

/* Makes the sets those of what is found. Returns how many bits they have. */
static int64_t
selected_count(void *arg)
{
	struct selection *s = arg;
	int64_t bits = 0;

	ready_count(&s->files);
	memset(s->found.word[0], 0, 3ul * s->found.words * 8);
	for (unsigned i = 0; i < s->files.n; i++) {
		const struct pollfd *p = &s->files.fds[i];
		unsigned r = (unsigned)p->revents, wanted = (unsigned)p->events;
		/* As in Linux: an error is readable and writable, an end readable only. */
		const bool found[3] = {(wanted & POLLIN) &&
					   (r & (POLLIN | POLLHUP | POLLERR | POLLNVAL)),
				       (wanted & POLLOUT) && (r & (POLLOUT | POLLERR | POLLNVAL)),
				       (wanted & POLLPRI) && (r & (POLLPRI | POLLNVAL))};

		for (unsigned set = 0; set < 3; set++) {
			s->found.word[set][p->fd / 64] |= (uint64_t)found[set] << p->fd % 64;
			bits += found[set];
		}
	}
	return bits;
}

/* As select_files(), with room for the sets, which are zero. */
static int64_t
select_sets(const uint64_t a[6], uint64_t deadline, unsigned nfds, struct selection *s)
{
	struct pollfd few[FEW];
	struct uidinfo *ui;
	int n = copy_sets(a, &s->found, nfds);
	int64_t r;

	if (n < 0)
		return n;
	s->files.fds = room_for((unsigned)n, few, &ui);
	if (s->files.fds == NULL)
		return -ENOMEM;
	n = sets_to_fds(&s->found, s->files.fds);
	s->files.n = n < 0 ? 0 : (unsigned)n;
	r = n < 0 ? n : wait_ready(selected_count, s, s->files.n, deadline);
	room_free(s->files.fds, few, ui);
	for (unsigned i = 0; r >= 0 && i < 3; i++)
		if (a[1 + i] != 0 && copy_out(a[1 + i], s->found.word[i], s->found.words * 8) != 0)
			r = -EFAULT;
	return r;
}

/* Of descriptors beyond the room of the table, none is open; their bits stay, as in Linux. */
static int64_t
select_files(const uint64_t a[6], uint64_t deadline)
{
	uint64_t near[3 * NEAR] = {0}, *words = near;
	struct uidinfo *ui = proc_uidinfo();
	unsigned size = filetable_room(proc_files());
	unsigned nfds = (uint32_t)a[0] < size ? (uint32_t)a[0] : size, n = (nfds + 63) / 64;
	struct selection s = {.found.words = n};
	int64_t r;

	if ((int32_t)a[0] < 0)
		return -EINVAL;
	if (n > NEAR)
		words = uidinfo_alloc(ui, 3ul * n * 8);
	if (words == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < 3; i++)
		s.found.word[i] = words + i * n;
	r = select_sets(a, deadline, nfds, &s);
	if (words != near)
		uidinfo_free(ui, words);
	return r;
}

int64_t
sys_select(const uint64_t a[6])
{
	uint64_t deadline = proc_deadline(DEADLINE_NEVER);
	struct timeval t;

	if (a[4] != 0) {
		if (copy_in(&t, a[4], sizeof(t)) != 0)
			return -EFAULT;
		if (t.tv_sec < 0 || t.tv_usec < 0)
			return -EINVAL;
		if (deadline == DEADLINE_NEVER && t.tv_sec < 1l << 30 && t.tv_usec < 1l << 40)
			deadline = clock_ns() + (uint64_t)t.tv_sec * 1000000000 +
				   (uint64_t)t.tv_usec * 1000;
	}
	return poll_give_left(select_files(a, deadline), a[4], deadline, 1000);
}

int64_t
sys_pselect6(const uint64_t a[6])
{
	uint64_t deadline, mask[2] = {0, 0}; /* address and size of the mask */
	int r = poll_take_deadline(a[4], &deadline);

	if (r == 0 && a[5] != 0 && copy_in(mask, a[5], sizeof(mask)) != 0)
		r = -EFAULT;
	if (r == 0)
		r = poll_take_mask(mask[0], mask[1]);
	if (r != 0)
		return r;
	return poll_give_left(poll_end(select_files(a, deadline)), a[4], deadline, 1);
}
