/*
 * unix_rights.c - files in messages of AF_UNIX: SCM_RIGHTS.
 *
 * A file is "in flight" while it is in a message that nobody has received. Sockets whose files are
 * in flight may hold each other, by the messages in their queues, when no program has them any
 * more. unix_collect() finds these: what holds all references to their files are messages, and
 * these are in queues of such sockets only. A thread does it, with a share of one CPU, when a
 * socket of AF_UNIX was closed or a process has ended; so does who may not send for their sake,
 * since a socket whose file is in flight is closed unseen. There is a thread while sockets are in
 * flight.
 *
 * Locking: unix_lock guards all that is said of flight. A message with files enters a queue, and
 * leaves it, under unix_lock, together with its counts. So while unix_collect() looks, each
 * reference that it counts is in a queue.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/lib/hook.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/net/unix_private.h"
#include "kernel/proc/task.h"
#include "kernel/sched/thread.h"
#include "ktr/ktr.h"

static struct list flight = LIST_INIT(flight); /* unix_lock: sockets in flight */
static uint32_t flying;                        /* written under unix_lock; atomic: how many */

/* The socket of AF_UNIX that a file is. NULL: it is none. */
static struct unix_socket *
unix_of_file(const struct file *f)
{
	struct socket *so = socket_of(f);

	return so != NULL && so->family == &unix_family ? unix_of(so) : NULL;
}

static struct unix_rights *
rights_alloc(unsigned count)
{
	struct uidinfo *ui = proc_uidinfo();
	struct unix_rights *r = uidinfo_alloc(ui, sizeof(*r) + count * sizeof(r->files[0]));

	if (r != NULL)
		r->ui = ui;
	return r;
}

struct unix_rights *
unix_rights_take(const struct unix_control *c, int *err)
{
	struct unix_rights *r;

	*err = 0;
	if (c->nfds == 0)
		return NULL;
	*err = -ENOMEM;
	r = rights_alloc(c->nfds);
	if (r == NULL)
		return NULL;
	for (; r->count < c->nfds; r->count++) {
		r->files[r->count] = filetable_ref((uint32_t)c->fds[r->count]);
		if (r->files[r->count] == NULL) {
			unix_rights_free(r);
			*err = -EBADF;
			return NULL;
		}
	}
	*err = 0;
	return r;
}

int
unix_rights_fly(struct unix_rights *r)
{
	uint64_t before = __atomic_fetch_add(&r->ui->in_flight, r->count, __ATOMIC_RELAXED);

	if (before > proc_limit(RLIMIT_NOFILE) && !capable(CAP_SYS_RESOURCE) &&
	    !capable(CAP_SYS_ADMIN)) {
		__atomic_fetch_sub(&r->ui->in_flight, r->count, __ATOMIC_RELAXED);
		return -ETOOMANYREFS;
	}
	for (unsigned i = 0; i < r->count; i++) {
		struct unix_socket *us = unix_of_file(r->files[i]);

		if (us == NULL)
			continue;
		us->file = r->files[i];
		if (us->in_flight++ == 0)
			list_append(&flight, &us->flight);
		__atomic_store_n(&flying, flying + 1, __ATOMIC_RELAXED);
	}
	return 0;
}

void
unix_rights_land(struct unix_rights *r)
{
	__atomic_fetch_sub(&r->ui->in_flight, r->count, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < r->count; i++) {
		struct unix_socket *us = unix_of_file(r->files[i]);

		if (us == NULL)
			continue;
		if (--us->in_flight == 0)
			list_remove(&us->flight);
		__atomic_store_n(&flying, flying - 1, __ATOMIC_RELAXED);
	}
}

struct unix_rights *
unix_rights_copy(const struct unix_rights *r)
{
	struct unix_rights *copy = rights_alloc(r->count);

	if (copy == NULL)
		return NULL;
	for (; copy->count < r->count; copy->count++)
		copy->files[copy->count] = file_ref(r->files[copy->count]);
	return copy;
}

/*
 * Files to be dropped later. A file that is closed may be a socket with files in its queue, which
 * are dropped, too, and so on. What a thread would drop while it drops waits in this list, so that
 * no stack becomes deep.
 */
struct dropper {
	struct list link;
	const struct thread *thread;
	struct unix_rights *more; /* its thread's */
};

static struct spinlock drop_lock = SPINLOCK_INIT("rights");
static struct list droppers = LIST_INIT(droppers); /* drop_lock: who drops now */

static struct dropper *
dropper_find(void)
{
	struct dropper *found = NULL;

	spin_lock(&drop_lock);
	list_for_each_entry (struct dropper, d, &droppers, link)
		if (d->thread == curthread())
			found = d;
	spin_unlock(&drop_lock);
	return found;
}

bool
unix_rights_are_dropped(void)
{
	return dropper_find() != NULL;
}

static void
drop_files(struct unix_rights *r)
{
	while (r->count > 0)
		file_unref(r->files[--r->count]);
	uidinfo_free(r->ui, r);
}

void
unix_rights_free(struct unix_rights *r)
{
	struct dropper *outer, mine = {.thread = curthread(), .more = r};

	if (r == NULL)
		return;
	outer = dropper_find();
	if (outer != NULL) {
		r->next = outer->more;
		outer->more = r;
		return;
	}
	r->next = NULL;
	spin_lock(&drop_lock);
	list_append(&droppers, &mine.link);
	spin_unlock(&drop_lock);
	while ((r = mine.more) != NULL) {
		mine.more = r->next;
		drop_files(r);
	}
	spin_lock(&drop_lock);
	list_remove(&mine.link);
	spin_unlock(&drop_lock);
}

void
unix_rights_give(struct unix_rights *r, struct socket_message *m)
{
	int flags = m->flags & MSG_CMSG_CLOEXEC ? O_CLOEXEC : 0, fds[SCM_MAX_FD];
	unsigned room = (unsigned)(socket_control_room(m) / sizeof(fds[0])), n = 0;
	bool told;

	while (n < r->count && n < room && (fds[n] = filetable_reserve()) >= 0)
		n++;
	told = n > 0 && socket_put_control(m, SOL_SOCKET, SCM_RIGHTS, fds, n * sizeof(fds[0]));
	if (n < r->count)
		m->told_flags |= MSG_CTRUNC;
	for (unsigned i = 0; i < n; i++)
		filetable_fill((unsigned)fds[i], told ? file_ref(r->files[i]) : NULL, flags);
	unix_rights_free(r);
}

/* ---- what nobody can receive any more ---- */

/* Calls fn for each socket of which a message in us's queue has the file. unix_lock held. */
static void
each_in_queue(struct unix_socket *us, void (*fn)(struct unix_socket *us, void *arg), void *arg)
{
	mutex_lock(&us->so.lock);
	for (struct unix_message *msg = us->queue.head; msg != NULL; msg = msg->next) {
		for (unsigned i = 0; msg->rights != NULL && i < msg->rights->count; i++) {
			struct unix_socket *found = unix_of_file(msg->rights->files[i]);

			if (found != NULL)
				fn(found, arg);
		}
	}
	mutex_unlock(&us->so.lock);
}

/* each_in_queue() for a socket, and for the connections that it has not accepted. */
static void
each_held(struct unix_socket *us, void (*fn)(struct unix_socket *us, void *arg), void *arg)
{
	each_in_queue(us, fn, arg);
	if (us->state == UNIX_LISTENING)
		list_for_each_entry (struct unix_socket, waits, &us->pending, pending)
			each_in_queue(waits, fn, arg);
}

static void
rights_explain(struct unix_socket *us, void *arg)
{
	us->unexplained -= us->candidate;
}

/* A socket can be received, and so can all that it holds. */
static void
rights_revive(struct unix_socket *us, void *alive)
{
	if (!us->candidate)
		return;
	us->candidate = false;
	list_remove(&us->flight);
	list_append(alive, &us->flight);
}

/* Leaves in `flight` the sockets that only each other's messages hold; all others go to alive. */
static void
find_alive(struct list *alive)
{
	list_for_each_entry_safe (struct unix_socket, us, &flight, flight) {
		us->unexplained = us->in_flight;
		us->candidate = true;
		if (__atomic_load_n(&us->file->refs, __ATOMIC_ACQUIRE) != us->in_flight)
			rights_revive(us, alive);
	}
	list_for_each_entry (struct unix_socket, us, &flight, flight)
		each_held(us, rights_explain, NULL);
	list_for_each_entry_safe (struct unix_socket, us, &flight, flight)
		if (us->unexplained > 0)
			rights_revive(us, alive);
	list_for_each_entry (struct unix_socket, us, alive, flight)
		each_held(us, rights_revive, alive);
}

/* Takes the files out of us's messages. unix_lock held. */
static void
take_rights(struct unix_socket *us, struct unix_rights **taken)
{
	mutex_lock(&us->so.lock);
	for (struct unix_message *msg = us->queue.head; msg != NULL; msg = msg->next) {
		struct unix_rights *r = msg->rights;

		if (r == NULL)
			continue;
		msg->rights = NULL;
		r->next = *taken;
		*taken = r;
	}
	mutex_unlock(&us->so.lock);
}

static void
take_held_rights(struct unix_socket *us, struct unix_rights **taken)
{
	take_rights(us, taken);
	if (us->state == UNIX_LISTENING)
		list_for_each_entry (struct unix_socket, waits, &us->pending, pending)
			take_rights(waits, taken);
}

void
unix_collect(void)
{
	struct unix_rights *taken = NULL;
	struct list alive = LIST_INIT(alive);
	unsigned n = 0;

	mutex_lock(&unix_lock);
	find_alive(&alive);
	list_for_each_entry (struct unix_socket, us, &flight, flight) {
		take_held_rights(us, &taken);
		n++;
	}
	while (!list_empty(&alive)) {
		struct list *l = alive.next;

		list_remove(l);
		list_append(&flight, l);
	}
	for (struct unix_rights *r = taken; r != NULL; r = r->next)
		unix_rights_land(r);
	mutex_unlock(&unix_lock);
	CTR2(KTR_NET, "unix collect: in flight %u garbage %u", flying, n);
	while (taken != NULL) {
		struct unix_rights *r = taken;

		taken = r->next;
		unix_rights_free(r);
	}
}

/* ---- the thread that collects ---- */

#define IDLE_SHARE 10 /* the thread sleeps so many times longer than it works */

static struct spinlock collector_lock = SPINLOCK_INIT("unixgc");
static bool wanted; /* collector_lock: it is to look again */
static bool works;  /* written under collector_lock; atomic: it is there */

/* Waits until the thread is to look again. False: nothing is in flight, and the thread ends. */
static bool
collector_goes_on(void)
{
	bool goes_on = true;

	spin_lock(&collector_lock);
	while (!wanted && goes_on) {
		if (__atomic_load_n(&flying, __ATOMIC_RELAXED) == 0)
			goes_on = false;
		else
			sleep_on(&wanted, &collector_lock, "unixgc", 0, DEADLINE_NEVER);
	}
	if (!goes_on)
		__atomic_store_n(&works, false, __ATOMIC_RELAXED);
	wanted = false;
	spin_unlock(&collector_lock);
	return goes_on;
}

static void
unix_collector_thread(void *arg)
{
	while (collector_goes_on()) {
		uint64_t start = clock_ns();

		unix_collect();
		thread_sleep_ns((clock_ns() - start) * IDLE_SHARE, 0, "unixgc");
	}
}

void
unix_rights_closed(void)
{
	bool none = __atomic_load_n(&flying, __ATOMIC_RELAXED) == 0, starts;

	if (none && !__atomic_load_n(&works, __ATOMIC_RELAXED))
		return;
	spin_lock(&collector_lock);
	wanted = true;
	starts = !works && !none;
	if (starts)
		__atomic_store_n(&works, true, __ATOMIC_RELAXED);
	spin_unlock(&collector_lock);
	if (!starts) {
		wakeup(&wanted);
	} else if (thread_create("unixgc", PRIO_KERN, unix_collector_thread, NULL) == NULL) {
		spin_lock(&collector_lock);
		__atomic_store_n(&works, false, __ATOMIC_RELAXED); /* the next one tries again */
		spin_unlock(&collector_lock);
	}
}
HOOK(proc_exit, unix_rights_closed);
