/*
 * msg.c - queues of messages. Locking: msg_mutex; whoever waits has a reference to the queue.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc.h"
#include "kernel/lib/list.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/task.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define MESSAGE_MAX 65536 /* bytes, whatever msgmax says */

struct message {
	struct list list;
	struct uidinfo *ui; /* to whom it is counted */
	uint64_t number;    /* the queue's messages are in its order */
	int64_t type;
	size_t size;
	char data[];
};

struct queue {
	struct ipc_object ipc;
	struct list messages;
	uint64_t bytes, count, bytes_max;
	uint64_t sent; /* messages, ever */
	int64_t stime, rtime;
	uint32_t lspid, lrpid;
	uint32_t waiters; /* they have a reference, each */
	bool removed;
	struct cond changed;
};

static struct mutex msg_mutex = MUTEX_INIT("msg");
static struct ipc_table queues = {.max = IPC_MAX, .next_id = -1};
static int msgmax = 8192, msgmnb = 16384;

SYSCTL_INT(kernel_msgmni, "kernel.msgmni", SYSCTL_WR, &queues.max, 0, IPC_MAX,
	   "queues of messages that there may be");
SYSCTL_INT(kernel_msg_next_id, "kernel.msg_next_id", SYSCTL_WR, &queues.next_id, -1, INT32_MAX,
	   "number that the next queue of messages has, -1: any");
SYSCTL_INT(kernel_msgmax, "kernel.msgmax", SYSCTL_WR, &msgmax, 0, MESSAGE_MAX,
	   "bytes that a message may have");
SYSCTL_INT(kernel_msgmnb, "kernel.msgmnb", SYSCTL_WR, &msgmnb, 0, INT32_MAX,
	   "bytes that a new queue of messages may have");

static struct queue *
msg_queue(struct ipc_object *o)
{
	return (struct queue *)o;
}

static void
msg_free(struct message *m)
{
	if (m != NULL)
		uidinfo_free(m->ui, m);
}

/* Frees a queue that was removed, and for which nobody waits. msg_mutex held. */
static void
msg_queue_free(struct queue *q)
{
	list_for_each_entry_safe (struct message, m, &q->messages, list)
		msg_free(m);
	uidinfo_free(q->ipc.ui, q);
}

/* Sleeps until the queue changes. 0, -EINTR, or -EIDRM: it has gone. */
static int
msg_queue_wait(struct queue *q)
{
	int error;

	q->waiters++;
	error = cond_wait(&q->changed, &msg_mutex, "msg", SLEEP_INTR, DEADLINE_NEVER);
	q->waiters--;
	if (!q->removed)
		return error;
	if (q->waiters == 0)
		msg_queue_free(q);
	return -EIDRM;
}

static int
msg_queue_make(int32_t key, uint64_t flags)
{
	struct uidinfo *ui = proc_uidinfo();
	struct queue *q = uidinfo_alloc(ui, sizeof(*q));
	int id;

	if (q == NULL)
		return -ENOMEM;
	q->ipc.ui = ui;
	q->bytes_max = (uint64_t)msgmnb;
	list_init(&q->messages);
	id = ipc_add(&queues, &q->ipc, key, flags);
	if (id < 0)
		uidinfo_free(ui, q);
	return id;
}

int64_t
sys_msgget(const uint64_t a[6])
{
	int32_t key = (int32_t)a[0];
	int id = IPC_MAKE;

	mutex_lock(&msg_mutex);
	if (key != IPC_PRIVATE)
		id = ipc_get(ipc_find_key(&queues, key), a[1]);
	if (id == IPC_MAKE)
		id = msg_queue_make(key, a[1]);
	mutex_unlock(&msg_mutex);
	return id;
}

/* As ipc_find_allowed(). */
static struct queue *
msg_queue_find(uint64_t id, uint32_t access, int *error)
{
	return msg_queue(ipc_find_allowed(&queues, (int32_t)id, access, error));
}

/* Copies a message from a program, which begins with its type. NULL and *error. */
static struct message *
msg_take(uint64_t from, size_t size, int *error)
{
	struct uidinfo *ui = proc_uidinfo();
	struct message *m = uidinfo_alloc(ui, sizeof(*m) + size);

	if (m == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	m->ui = ui;
	m->size = size;
	*error = copy_in(&m->type, from, sizeof(m->type)) != 0 ||
			 copy_in(m->data, from + sizeof(m->type), size) != 0
		     ? -EFAULT
		 : m->type < 1 ? -EINVAL
			       : 0;
	if (*error == 0)
		return m;
	msg_free(m);
	return NULL;
}

/* Puts a message into the queue when there is room. msg_mutex held. */
static int
msg_put(uint64_t id, struct message *m, uint64_t flags)
{
	int error;
	struct queue *q;

	while ((q = msg_queue_find(id, IPC_WRITE, &error)) != NULL &&
	       (m->size + q->bytes > q->bytes_max || q->count + 1 > q->bytes_max)) {
		error = flags & IPC_NOWAIT ? -EAGAIN : msg_queue_wait(q);
		if (error != 0)
			return error;
	}
	if (q == NULL)
		return error;
	m->number = ++q->sent;
	list_append(&q->messages, &m->list);
	q->bytes += m->size;
	q->count++;
	q->stime = ipc_now();
	q->lspid = proc_pid();
	cond_broadcast(&q->changed);
	return 0;
}

int64_t
sys_msgsnd(const uint64_t a[6])
{
	int64_t type;
	struct message *m;
	int error;

	(void)proc_deadline(DEADLINE_NEVER);
	if (copy_in(&type, a[1], sizeof(type)) != 0)
		return -EFAULT;
	if (a[2] > (uint64_t)msgmax || (int32_t)a[0] < 0 || type < 1)
		return -EINVAL;
	m = msg_take(a[1], a[2], &error);
	if (m == NULL)
		return error;
	mutex_lock(&msg_mutex);
	error = msg_put(a[0], m, a[3]);
	mutex_unlock(&msg_mutex);
	if (error != 0)
		msg_free(m);
	CTR3(KTR_PROC, "msgsnd: id %d bytes %lu error %d", (int)a[0], a[2], -error);
	return error;
}

/* The first message after number `seen`; the list's head: there is none. */
static const struct list *
msg_first_after(const struct queue *q, uint64_t seen)
{
	const struct list *at = &q->messages;

	if (seen == 0)
		return at->next;
	while (at->prev != &q->messages &&
	       list_entry(at->prev, struct message, list)->number > seen)
		at = at->prev;
	return at;
}

/*
 * The first message after number `seen` that type and flags of msgrcv() mean. NULL: there is none.
 * A thread that waits looks at each message once.
 */
static struct message *
msg_find(const struct queue *q, int64_t type, uint64_t flags, uint64_t seen)
{
	int64_t most = type == INT64_MIN ? INT64_MAX : -type, nth = 0;
	struct message *found = NULL;

	for (const struct list *at = msg_first_after(q, seen); at != &q->messages; at = at->next) {
		struct message *m = list_entry(at, struct message, list);

		if (flags & MSG_COPY) {
			if (nth++ == type)
				return m;
		} else if (type < 0) {
			if (m->type <= most && (found == NULL || m->type < found->type))
				found = m;
		} else if (type == 0 || (m->type != type) == ((flags & MSG_EXCEPT) != 0)) {
			return m;
		}
	}
	return found;
}

/* A copy of m, which stays in its queue. NULL and *error. */
static struct message *
msg_copy(const struct message *m, int *error)
{
	struct uidinfo *ui = proc_uidinfo();
	struct message *copy = uidinfo_alloc(ui, sizeof(*m) + m->size);

	if (copy == NULL) {
		*error = -ENOMEM;
		return NULL;
	}
	copy->ui = ui;
	copy->type = m->type;
	copy->size = m->size;
	memcpy(copy->data, m->data, m->size);
	return copy;
}

/* Takes a message out of the queue when there is one. NULL and *error. msg_mutex held. */
static struct message *
msg_get(const uint64_t a[6], int *error)
{
	struct message *m = NULL;
	uint64_t seen = 0;
	struct queue *q;

	while ((q = msg_queue_find(a[0], IPC_READ, error)) != NULL &&
	       (m = msg_find(q, (int64_t)a[3], a[4], seen)) == NULL) {
		seen = q->sent;
		*error = a[4] & IPC_NOWAIT ? -ENOMSG : msg_queue_wait(q);
		if (*error != 0)
			return NULL;
	}
	if (q == NULL)
		return NULL;
	if (m->size > a[2] && !(a[4] & MSG_NOERROR)) {
		*error = -E2BIG;
		return NULL;
	}
	if (a[4] & MSG_COPY)
		return msg_copy(m, error);
	list_remove(&m->list);
	q->bytes -= m->size;
	q->count--;
	q->rtime = ipc_now();
	q->lrpid = proc_pid();
	cond_broadcast(&q->changed);
	return m;
}

int64_t
sys_msgrcv(const uint64_t a[6])
{
	struct message *m;
	size_t n;
	int error;

	(void)proc_deadline(DEADLINE_NEVER);
	if ((int32_t)a[0] < 0 || (int64_t)a[2] < 0 ||
	    ((a[4] & MSG_COPY) && ((a[4] & MSG_EXCEPT) || !(a[4] & IPC_NOWAIT))))
		return -EINVAL;
	mutex_lock(&msg_mutex);
	m = msg_get(a, &error);
	mutex_unlock(&msg_mutex);
	if (m == NULL)
		return error;
	n = m->size < a[2] ? m->size : a[2];
	error = copy_out(a[1], &m->type, sizeof(m->type)) != 0 ||
			copy_out(a[1] + sizeof(m->type), m->data, n) != 0
		    ? -EFAULT
		    : 0;
	msg_free(m);
	CTR3(KTR_PROC, "msgrcv: id %d bytes %lu error %d", (int)a[0], n, -error);
	return error != 0 ? error : (int64_t)n;
}

static int32_t
msg_clamp(uint64_t n)
{
	return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

/* IPC_INFO, MSG_INFO. */
static int64_t
msg_limits(int command, uint64_t to)
{
	struct msginfo info = {.msgmni = queues.max,
			       .msgmax = msgmax,
			       .msgmnb = msgmnb,
			       .msgssz = 16,
			       .msgseg = UINT16_MAX};
	uint64_t count = 0, bytes = 0;
	int last = 0;

	mutex_lock(&msg_mutex);
	if (command == MSG_INFO) {
		info.msgpool = (int32_t)queues.used;
		for (unsigned i = 0; i < queues.end; i++) {
			const struct queue *q = msg_queue(queues.slots[i]);

			count += q != NULL ? q->count : 0;
			bytes += q != NULL ? q->bytes : 0;
		}
		info.msgmap = msg_clamp(count);
		info.msgtql = msg_clamp(bytes);
	} else {
		info.msgpool = msg_clamp((uint64_t)queues.max * ((uint64_t)msgmnb / 1024));
		info.msgmap = info.msgtql = msgmnb;
	}
	last = ipc_last(&queues);
	mutex_unlock(&msg_mutex);
	return copy_out(to, &info, sizeof(info)) != 0 ? -EFAULT : last;
}

/* IPC_STAT; MSG_STAT and MSG_STAT_ANY: of an index. */
static int64_t
msg_status(int32_t id, int command, uint64_t to)
{
	struct ipc_object *o;
	struct msqid_ds ds;
	int r;

	mutex_lock(&msg_mutex);
	o = ipc_find_status(&queues, id, command, command == MSG_STAT_ANY, &r);
	if (o != NULL) {
		const struct queue *q = msg_queue(o);

		ds = (struct msqid_ds){.perm = o->perm,
				       .stime = q->stime,
				       .rtime = q->rtime,
				       .ctime = o->changed,
				       .cbytes = q->bytes,
				       .qnum = q->count,
				       .qbytes = q->bytes_max,
				       .lspid = q->lspid,
				       .lrpid = q->lrpid};
	}
	mutex_unlock(&msg_mutex);
	return r >= 0 && copy_out(to, &ds, sizeof(ds)) != 0 ? -EFAULT : r;
}

/* IPC_SET, IPC_RMID. msg_mutex held. */
static int
msg_queue_change(struct queue *q, int command, const struct msqid_ds *ds)
{
	int error = ipc_may_change(&q->ipc);

	if (error != 0)
		return error;
	if (command == IPC_SET) {
		if (ds->qbytes > (uint64_t)msgmnb && !capable(CAP_SYS_RESOURCE))
			return -EPERM;
		error = ipc_set(&q->ipc, &ds->perm);
		if (error == 0)
			q->bytes_max = ds->qbytes;
	} else {
		ipc_remove(&queues, &q->ipc);
		q->removed = true;
	}
	cond_broadcast(&q->changed);
	if (q->removed && q->waiters == 0)
		msg_queue_free(q);
	return error;
}

int64_t
sys_msgctl(const uint64_t a[6])
{
	int command = (int)a[1], error;
	struct ipc_object *o;
	struct msqid_ds ds;

	if ((int32_t)a[0] < 0 || command < 0)
		return -EINVAL;
	if (command == IPC_INFO || command == MSG_INFO)
		return msg_limits(command, a[2]);
	if (command == IPC_STAT || command == MSG_STAT || command == MSG_STAT_ANY)
		return msg_status((int32_t)a[0], command, a[2]);
	if (command != IPC_SET && command != IPC_RMID)
		return -EINVAL;
	if (command == IPC_SET && copy_in(&ds, a[2], sizeof(ds)) != 0)
		return -EFAULT;
	mutex_lock(&msg_mutex);
	o = ipc_find(&queues, (int32_t)a[0]);
	error = o == NULL ? -EINVAL : msg_queue_change(msg_queue(o), command, &ds);
	mutex_unlock(&msg_mutex);
	return error;
}

void
ipc_print_msg(struct sbuf *out)
{
	sbuf_puts(
	    out,
	    "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid"
	    "      stime      rtime      ctime\n");
	mutex_lock(&msg_mutex);
	for (unsigned i = 0; i < queues.end; i++) {
		const struct queue *q = msg_queue(queues.slots[i]);

		if (q == NULL)
			continue;
		sbuf_printf(out, "%10d %10d  %4o  %10lu %10lu %5u %5u %5u %5u %5u %5u ",
			    q->ipc.perm.key, q->ipc.id, q->ipc.perm.mode, q->bytes, q->count,
			    q->lspid, q->lrpid, q->ipc.perm.uid, q->ipc.perm.gid, q->ipc.perm.cuid,
			    q->ipc.perm.cgid);
		sbuf_printf(out, "%10ld %10ld %10ld\n", q->stime, q->rtime, q->ipc.changed);
	}
	mutex_unlock(&msg_mutex);
}
