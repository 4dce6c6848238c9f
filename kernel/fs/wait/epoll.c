/*
 * epoll.c - sets of files to wait for: epoll_create, epoll_ctl, epoll_wait. A wait sleeps as poll()
 * does (poll.c), and then looks at each file of the set.
 *
 * A set has no references to its files: a file leaves it when its last descriptor is closed. Sets
 * may contain sets, up to LEVELS_MAX one within another; no set contains itself.
 *
 * Locking: one mutex, epoll_lock, guards all sets and the lists file.watches, also while files are
 * looked at, but not while events are copied to the program. It is taken before the locks of
 * drivers.
 */
#include "kernel/fs/wait/epoll.h"

#include "kernel/abi/epoll.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/poll.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define LEVELS_MAX 5
#define TOLD_MAX   64 /* events of one epoll_wait() */
#define FEW        8  /* lists of a set's table that need no memory of their own */
#define ALWAYS     (EPOLLERR | EPOLLHUP)
#define READS      (EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDHUP)
#define WRITES     (EPOLLOUT | EPOLLWRNORM)

struct epoll {
	struct file *file; /* the set's own */
	struct list items;
	struct item **table; /* of `room` lists, a power of two: the items by file and number */
	unsigned room, count;
	struct item *few[FEW]; /* the first table */
	/* Found in this round (below): is a file ready, and the sum of its files' news. */
	uint64_t round;
	bool ready;
	uint32_t news;
	uint32_t more;   /* added to `news`: so the sum never falls, and a change is news, too */
	unsigned levels; /* for a check: how many sets are in one another */
};

/* A file in a set. */
struct item {
	struct list in_set, in_file;
	struct item *next; /* in the set's table */
	struct epoll *set;
	struct file *file;
	struct uidinfo *ui; /* to whom it is counted */
	int fd;
	uint32_t events; /* 0: an event of an EPOLLONESHOT item was told */
	uint64_t data;
	uint64_t number; /* number of the item, in the order in which all were made */
	bool fresh;      /* nothing was told since epoll_ctl() */
	uint32_t news;   /* the file's count of events, when the item was last looked at */
	uint32_t seen;   /* with EPOLLET: those that have been told */
};

static struct mutex epoll_lock = MUTEX_INIT("epoll");
static uint64_t items_made;
static uint64_t round; /* a round of looking, in which every set is looked at once at most */

static const struct vnode_ops epoll_ops;

static struct epoll *
set_of(const struct file *f)
{
	return f->vn->ops == &epoll_ops ? f->vn->data : NULL;
}

static void look_into(struct epoll *e);

/*
 * Returns the events that the item asks for and for which its file is ready; EPOLLERR and EPOLLHUP
 * need not be asked for. Sets it->news to how often the file had news, or 0 if the driver does not
 * count.
 */
static uint32_t
item_ready(struct item *it)
{
	struct epoll *inner = set_of(it->file);
	const struct poll_source *s = it->file->news;
	uint32_t wanted = it->events;

	it->news = 0;
	if (wanted == 0)
		return 0;
	if (inner != NULL) {
		look_into(inner);
		it->news = inner->news;
		return inner->ready ? wanted & (EPOLLIN | EPOLLRDNORM) : 0;
	}
	/* First the news: what comes in between is told again, and not lost. */
	if (s != NULL && (!(wanted & WRITES) || (wanted & READS)))
		it->news += __atomic_load_n(&s->in, __ATOMIC_SEQ_CST);
	if (s != NULL && (!(wanted & READS) || (wanted & WRITES)))
		it->news += __atomic_load_n(&s->out, __ATOMIC_SEQ_CST);
	return poll_ready(it->file) & (wanted | ALWAYS);
}

/* The events of an item that are due: a program is to be told of them. */
static uint32_t
item_due(struct item *it)
{
	uint32_t found = item_ready(it);

	return (it->events & EPOLLET) && !it->fresh && it->news == it->seen &&
		       (it->file->news != NULL || set_of(it->file) != NULL)
		   ? 0
		   : found;
}

static void
look_into(struct epoll *e)
{
	if (e->round == round)
		return;
	e->round = round;
	e->ready = false;
	e->news = e->more;
	list_for_each_entry (struct item, it, &e->items, in_set) {
		e->ready |= item_due(it) != 0;
		e->news += it->news;
	}
}

/* The item's news so far stay in the sum of its set, whatever becomes of it. */
static void
item_keep_news(struct item *it)
{
	it->set->more += it->news;
	it->news = 0;
}

/* An item was added, or has changed: if it is ready, that is news to whoever watches the set. */
static void
item_changed(struct item *it)
{
	item_keep_news(it);
	it->fresh = true;
	round++;
	if (item_ready(it) != 0)
		it->set->more++;
	it->set->more -= it->news; /* what came before is not new */
}

static unsigned
epoll_poll(struct file *f)
{
	struct epoll *e = f->vn->data;
	bool ready;

	mutex_lock(&epoll_lock);
	round++;
	look_into(e);
	ready = e->ready;
	mutex_unlock(&epoll_lock);
	return ready ? POLLIN : 0;
}

/* The list of a set's table in which the item of a file and a descriptor is. */
static struct item **
item_list(const struct epoll *e, const struct file *f, int fd)
{
	uint64_t key = (uintptr_t)f / sizeof(*f) * FILES_MAX + (uint32_t)fd;

	return &e->table[key * 0x9e3779b97f4a7c15 >> 32 & (e->room - 1)];
}

static void
table_enter(struct epoll *e, struct item *it)
{
	struct item **l = item_list(e, it->file, it->fd);

	it->next = *l;
	*l = it;
}

static void
table_free(struct epoll *e)
{
	if (e->table != e->few)
		uidinfo_free(e->file->ui, e->table);
}

/* Makes the table larger, if it is small for its items and there is memory. */
static void
table_grow(struct epoll *e)
{
	struct item **table =
	    e->count < e->room ? NULL
			       : uidinfo_alloc(e->file->ui, 2ul * e->room * sizeof(struct item *));

	if (table == NULL)
		return;
	table_free(e);
	e->table = table;
	e->room *= 2;
	list_for_each_entry (struct item, it, &e->items, in_set)
		table_enter(e, it);
}

static void
item_free(struct item *it)
{
	struct item **at = item_list(it->set, it->file, it->fd);

	while (*at != it)
		at = &(*at)->next;
	*at = it->next;
	it->set->count--;
	item_keep_news(it);
	list_remove(&it->in_set);
	list_remove(&it->in_file);
	uidinfo_free(it->ui, it);
}

void
epoll_forget(struct file *f)
{
	mutex_lock(&epoll_lock);
	while (!list_empty(&f->watches))
		item_free(list_entry(f->watches.next, struct item, in_file));
	mutex_unlock(&epoll_lock);
}

static void
epoll_release(struct file *f)
{
	struct epoll *e = f->vn->data;

	mutex_lock(&epoll_lock);
	while (!list_empty(&e->items))
		item_free(list_entry(e->items.next, struct item, in_set));
	mutex_unlock(&epoll_lock);
	table_free(e);
	poll_watch(false);
}

static const struct vnode_ops epoll_ops = {
    .release = epoll_release,
    .poll = epoll_poll,
    .destroy = file_unnamed_destroy,
};

int64_t
sys_epoll_create1(const uint64_t a[6])
{
	struct epoll *e;
	struct file *f;
	int error;

	if ((int)a[0] & ~O_CLOEXEC)
		return -EINVAL;
	f = file_open_unnamed(&epoll_ops, sizeof(*e), 0, &error);
	if (f == NULL)
		return error;
	e = f->vn->data;
	e->file = f;
	e->table = e->few;
	e->room = FEW;
	list_init(&e->items);
	poll_watch(true);
	return filetable_install(f, (int)a[0]);
}

SYSCALL_IS(epoll_create, (int)a[0] > 0 ? sys_epoll_create1((const uint64_t[6]){0}) : -EINVAL)

/* How many sets are within each other, from e on inwards. Returns more than LEVELS_MAX if
 * `avoid` is one of them. */
static unsigned
levels_in(struct epoll *e, const struct epoll *avoid)
{
	if (e == avoid)
		return LEVELS_MAX + 1;
	if (e->round == round)
		return e->levels;
	e->round = round;
	e->levels = 1;
	list_for_each_entry (struct item, it, &e->items, in_set) {
		struct epoll *inner = set_of(it->file);
		unsigned n = inner != NULL ? 1 + levels_in(inner, avoid) : 1;

		e->levels = n > e->levels ? n : e->levels;
	}
	return e->levels;
}

/* How many sets, from e on outwards, each contain the one before. */
static unsigned
levels_out(struct epoll *e)
{
	if (e->round == round)
		return e->levels;
	e->round = round;
	e->levels = 1;
	list_for_each_entry (struct item, it, &e->file->watches, in_file) {
		unsigned n = 1 + levels_out(it->set);

		e->levels = n > e->levels ? n : e->levels;
	}
	return e->levels;
}

static int
may_contain(struct epoll *e, struct epoll *inner)
{
	unsigned n;

	round++;
	n = levels_in(inner, e);
	round++;
	return n + levels_out(e) > LEVELS_MAX ? -ELOOP : 0;
}

static int
epoll_add(struct epoll *e, struct file *f, int fd, const struct epoll_event *ev)
{
	struct uidinfo *ui = proc_uidinfo();
	struct epoll *inner = set_of(f);
	int error = inner != NULL ? may_contain(e, inner) : 0;
	struct item *it = error == 0 ? uidinfo_alloc(ui, sizeof(*it)) : NULL;

	if (it == NULL)
		return error != 0 ? error : -ENOMEM;
	*it = (struct item){.set = e,
			    .file = f,
			    .ui = ui,
			    .fd = fd,
			    .events = ev->events | ALWAYS,
			    .data = ev->data,
			    .number = ++items_made};
	table_grow(e);
	table_enter(e, it);
	e->count++;
	list_append(&e->items, &it->in_set);
	list_append(&f->watches, &it->in_file);
	f->watched = true; /* before the caller drops its reference: file_unref() reads it */
	item_changed(it);
	return 0;
}

static struct item *
epoll_find(const struct epoll *e, const struct file *f, int fd)
{
	struct item *it = *item_list(e, f, fd);

	while (it != NULL && (it->file != f || it->fd != fd))
		it = it->next;
	return it;
}

/* epoll_lock held. */
static int
epoll_control(struct epoll *e, int op, struct file *f, int fd, const struct epoll_event *ev)
{
	struct item *it = epoll_find(e, f, fd);

	if (op == EPOLL_CTL_ADD)
		return it != NULL ? -EEXIST : epoll_add(e, f, fd, ev);
	if (it == NULL)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL) {
		item_free(it);
		return 0;
	}
	if (it->events & EPOLLEXCLUSIVE)
		return -EINVAL;
	it->events = ev->events | ALWAYS;
	it->data = ev->data;
	item_changed(it);
	return 0;
}

/* What Linux allows with EPOLLEXCLUSIVE. */
static bool
good_exclusive(int op, const struct file *f, uint32_t events)
{
	const uint32_t with = EPOLLIN | EPOLLOUT | ALWAYS | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;

	return !(events & EPOLLEXCLUSIVE) ||
	       (op == EPOLL_CTL_ADD && !(events & ~with) && set_of(f) == NULL);
}

int64_t
sys_epoll_ctl(const uint64_t a[6])
{
	struct filetable *ft = proc_files();
	int op = (int)a[1], fd = (int)a[2], r;
	struct file *set = filetable_get(ft, (uint32_t)a[0]), *f = filetable_get(ft, (uint32_t)fd);
	struct epoll_event ev = {0};

	if (op != EPOLL_CTL_DEL && copy_in(&ev, a[3], sizeof(ev)) != 0)
		return -EFAULT;
	if (set == NULL || f == NULL)
		return -EBADF;
	if (f->vn->ops->poll == NULL)
		return -EPERM;
	if (set_of(set) == NULL || set == f || op < EPOLL_CTL_ADD || op > EPOLL_CTL_MOD ||
	    !good_exclusive(op, f, ev.events))
		return -EINVAL;
	mutex_lock(&epoll_lock);
	r = epoll_control(set_of(set), op, f, fd, &ev);
	mutex_unlock(&epoll_lock);
	CTR5(KTR_VFS, "epoll ctl: set %d op %d fd %d events %#x result %d", (int)a[0], op, fd,
	     ev.events, r);
	poll_notify(NULL, 0);
	return r;
}

/* A wait: where the program gets its events. */
struct wait {
	struct epoll *set;
	uint64_t to;
	unsigned max;
};

/* An event for the program. */
struct event {
	struct epoll_event ev;
	uint64_t number; /* its item's number and events when it was taken: the item may change */
	uint32_t events;
	const struct file *file; /* where the item is found; it may be another one's by now */
	int fd;
};

/* Takes up to max events that are due. Returns how many. */
static unsigned
take_events(struct epoll *e, struct event *event, unsigned max)
{
	struct list told = LIST_INIT(told);
	unsigned n = 0;

	mutex_lock(&epoll_lock);
	round++;
	list_for_each_entry_safe (struct item, it, &e->items, in_set) {
		uint32_t found;

		if (n == max)
			break; /* the others are not looked at: that may be a long way */
		found = item_due(it);
		if (found == 0)
			continue;
		event[n++] = (struct event){
		    {.events = found, .data = it->data}, it->number, it->events, it->file, it->fd};
		it->seen = it->news;
		it->fresh = false;
		if (it->events & EPOLLONESHOT) {
			item_keep_news(it);
			it->events = 0;
		}
		if (list_empty(&told) && it->in_set.next == it->in_set.prev)
			break; /* it is the only one */
		list_remove(&it->in_set);
		list_append(&told, &it->in_set);
	}
	while (!list_empty(&told)) { /* next time others come first */
		struct list *l = told.next;

		list_remove(l);
		list_append(&e->items, l);
	}
	mutex_unlock(&epoll_lock);
	return n;
}

/* Events that the program did not get are due again. */
static void
epoll_untell(struct epoll *e, const struct event *event, unsigned n)
{
	mutex_lock(&epoll_lock);
	for (unsigned i = 0; i < n; i++) {
		struct item *it = *item_list(e, event[i].file, event[i].fd);

		while (it != NULL && it->number != event[i].number)
			it = it->next;
		if (it == NULL)
			continue; /* it was removed */
		it->fresh = true;
		if (it->events == 0)
			it->events = event[i].events;
	}
	mutex_unlock(&epoll_lock);
}

/* Tells the program what is ready. Returns how many, or -EFAULT if it is none. */
static int64_t
epoll_tell(void *arg)
{
	const struct wait *w = arg;
	struct event event[TOLD_MAX];
	unsigned n = take_events(w->set, event, w->max < TOLD_MAX ? w->max : TOLD_MAX);

	for (unsigned i = 0; i < n; i++) {
		if (copy_out(w->to + i * sizeof(event[i].ev), &event[i].ev, sizeof(event[i].ev)) ==
		    0)
			continue;
		epoll_untell(w->set, event + i, n - i);
		return i > 0 ? (int64_t)i : -EFAULT;
	}
	return n;
}

static int64_t
wait_events(const uint64_t a[6], uint64_t deadline)
{
	int error;
	struct file *f = filetable_get_kind(a[0], &epoll_ops, &error);
	int64_t max = (int32_t)a[2], r;

	if (max <= 0 || max > INT32_MAX / (int64_t)sizeof(struct epoll_event))
		return -EINVAL;
	if (f == NULL)
		return error;
	r = poll_wait(epoll_tell, &(struct wait){f->vn->data, a[1], (unsigned)max}, deadline);
	CTR2(KTR_VFS, "epoll wait: set %d result %ld", (int)a[0], r);
	return r;
}

SYSCALL_IS(epoll_wait, wait_events(a, poll_deadline_ms(a[3])))

int64_t
sys_epoll_pwait(const uint64_t a[6])
{
	uint64_t deadline = poll_deadline_ms(a[3]);
	int r = poll_take_mask(a[4], a[5]);

	return r != 0 ? r : poll_end(wait_events(a, deadline));
}

int64_t
sys_epoll_pwait2(const uint64_t a[6])
{
	uint64_t deadline;
	int r = poll_take_deadline(a[3], &deadline);

	if (r == 0)
		r = poll_take_mask(a[4], a[5]);
	return r != 0 ? r : poll_end(wait_events(a, deadline));
}
