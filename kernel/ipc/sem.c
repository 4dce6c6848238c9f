/*
 * sem.c - sets of semaphores. A call's operations happen together, or it waits until they can.
 * Operations with SEM_UNDO are undone when the process ends; for that, each set keeps the
 * adjustments of the processes that used it.
 *
 * Locking: sem_mutex; whoever waits has a reference to the set.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/wait/poll.h"
#include "kernel/ipc/ipc.h"
#include "kernel/lib/decimal.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/list.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/task.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/syscall.h"
#include "ktr/ktr.h"

#define SEM_VALUE_MAX 32767
#define SEM_SET_MAX   32000 /* semaphores of a set, whatever kernel.sem says */
#define SEM_OPS_MAX   1000  /* operations of a call, whatever kernel.sem says */

struct semaphore {
	int value;
	uint32_t pid; /* who changed it last */
};

/* What a process has to undo of a set. */
struct undo {
	struct list list;    /* of the set */
	struct list of_proc; /* proc.sem_undos */
	struct set *set;
	struct uidinfo *ui; /* to whom it is counted */
	int16_t adjust[];
};

/* A call that waits for the semaphore `number` to become zero, or not zero. */
struct sem_waiter {
	struct list list;
	unsigned number;
	bool for_zero;
};

struct set {
	struct ipc_object ipc;
	int64_t otime;
	unsigned count;
	bool removed;
	struct list undos, waiters;
	struct cond changed;
	struct semaphore sems[];
};

static struct mutex sem_mutex = MUTEX_INIT("sem");
static struct ipc_table sets = {.max = IPC_MAX, .next_id = -1};
static unsigned total; /* semaphores of all sets */
/* kernel.sem: semmsl, semmns, semopm, semmni, which is sets.max */
static unsigned set_max = SEM_SET_MAX, total_max = 1024000000, ops_max = 500;

static void
sem_get_limits(const struct sysctl *s, struct sbuf *out)
{
	sbuf_printf(out, "%u\t%u\t%u\t%d", set_max, total_max, ops_max, sets.max);
}

/* Reads a number up to INT32_MAX, and the blanks before it. False: there is none. */
static bool
sem_take_number(const char **text, uint64_t *n)
{
	while (**text == ' ' || **text == '\t')
		(*text)++;
	return take_decimal(text, INT32_MAX, n);
}

static int
sem_set_limits(const struct sysctl *s, const char *val, char *err, size_t errlen)
{
	uint64_t n[4] = {set_max, total_max, ops_max, (uint64_t)sets.max};
	bool good = *val != '\0';

	for (unsigned i = 0; i < 4 && *val != '\0'; i++)
		good = good && sem_take_number(&val, &n[i]);
	if (!good || *val != '\0' || n[0] > SEM_SET_MAX || n[2] > SEM_OPS_MAX || n[3] > IPC_MAX) {
		snprintf(err, errlen, "%s: expected one to four numbers, at most %u, %u, %u and %u",
			 s->name, SEM_SET_MAX, INT32_MAX, SEM_OPS_MAX, IPC_MAX);
		return -EINVAL;
	}
	mutex_lock(&sem_mutex);
	set_max = (unsigned)n[0];
	total_max = (unsigned)n[1];
	ops_max = (unsigned)n[2];
	sets.max = (int)n[3];
	mutex_unlock(&sem_mutex);
	return 0;
}

SYSCTL_TEXT(kernel_sem, "kernel.sem", SYSCTL_WR, sem_get_limits, sem_set_limits,
	    "semaphores of a set, and of all; operations of a call; sets");
SYSCTL_INT(kernel_sem_next_id, "kernel.sem_next_id", SYSCTL_WR, &sets.next_id, -1, INT32_MAX,
	   "number that the next set of semaphores has, -1: any");

static struct set *
sem_set(struct ipc_object *o)
{
	return (struct set *)o;
}

static void
sem_undo_free(struct undo *u)
{
	list_remove(&u->list);
	list_remove(&u->of_proc);
	uidinfo_free(u->ui, u);
}

/* Frees a set that was removed, and for which nobody waits. */
static void
sem_set_free(struct set *s)
{
	list_for_each_entry_safe (struct undo, u, &s->undos, list)
		sem_undo_free(u);
	uidinfo_free(s->ipc.ui, s);
}

static int
sem_set_make(int32_t key, unsigned count, uint64_t flags)
{
	struct uidinfo *ui = proc_uidinfo();
	struct set *s;
	int id;

	if (count == 0)
		return -EINVAL;
	if (count > total_max || total > total_max - count)
		return -ENOSPC;
	s = uidinfo_alloc(ui, sizeof(*s) + count * sizeof(s->sems[0]));
	if (s == NULL)
		return -ENOMEM;
	s->ipc.ui = ui;
	s->count = count;
	list_init(&s->undos);
	list_init(&s->waiters);
	id = ipc_add(&sets, &s->ipc, key, flags);
	if (id < 0)
		uidinfo_free(ui, s);
	else
		total += count;
	return id;
}

int64_t
sys_semget(const uint64_t a[6])
{
	int32_t key = (int32_t)a[0], count = (int32_t)a[1];
	struct ipc_object *o = NULL;
	int id = IPC_MAKE;

	if (count < 0 || (unsigned)count > set_max)
		return -EINVAL;
	mutex_lock(&sem_mutex);
	if (key != IPC_PRIVATE) {
		o = ipc_find_key(&sets, key);
		id = ipc_get(o, a[2]);
		if (id != -EEXIST && o != NULL && sem_set(o)->count < (unsigned)count)
			id = -EINVAL;
	}
	if (id == IPC_MAKE)
		id = sem_set_make(key, (unsigned)count, a[2]);
	mutex_unlock(&sem_mutex);
	return id;
}

/* ---- operations ---- */

/* The undo list of the current process, made if there is none. NULL: -ENOMEM. */
static struct undo *
sem_undo_get(struct set *s)
{
	struct uidinfo *ui = proc_uidinfo();
	struct undo *new;

	list_for_each_entry (struct undo, u, &curproc()->sem_undos, of_proc)
		if (u->set == s)
			return u;
	new = uidinfo_alloc(ui, sizeof(*new) + s->count * sizeof(new->adjust[0]));
	if (new == NULL)
		return NULL;
	new->ui = ui;
	new->set = s;
	list_append(&s->undos, &new->list);
	list_append(&curproc()->sem_undos, &new->of_proc);
	return new;
}

/* Does one operation. 0; -ERANGE; -EAGAIN: it has to wait. */
static int
sem_operate_one(struct set *s, struct undo *u, const struct sembuf *op)
{
	struct semaphore *sem = &s->sems[op->sem_num];
	int value = sem->value + op->sem_op, adjust;

	if (value < 0 || (op->sem_op == 0 && sem->value != 0))
		return -EAGAIN;
	if (value > SEM_VALUE_MAX)
		return -ERANGE;
	if (op->sem_flg & SEM_UNDO) {
		adjust = u->adjust[op->sem_num] - op->sem_op;
		if (adjust < INT16_MIN || adjust > INT16_MAX)
			return -ERANGE;
		u->adjust[op->sem_num] = (int16_t)adjust;
	}
	sem->value = value;
	return 0;
}

/* Does all operations, or none. *at: the first that has to wait, or fails. */
static int
sem_operate_all(struct set *s, struct undo *u, const struct sembuf *ops, unsigned n, unsigned *at)
{
	int error = 0;

	for (*at = 0; *at < n && (error = sem_operate_one(s, u, &ops[*at])) == 0;)
		++*at;
	for (unsigned i = *at; error != 0 && i-- > 0;) {
		s->sems[ops[i].sem_num].value -= ops[i].sem_op;
		if (ops[i].sem_flg & SEM_UNDO)
			u->adjust[ops[i].sem_num] += ops[i].sem_op;
	}
	for (unsigned i = 0; error == 0 && i < n; i++)
		s->sems[ops[i].sem_num].pid = proc_pid();
	return error;
}

/* Sleeps until the set changes. 0, -EINTR, -ETIMEDOUT, or -EIDRM: it has gone. */
static int
sem_set_wait(struct set *s, const struct sembuf *op, uint64_t deadline)
{
	struct sem_waiter w = {.number = op->sem_num, .for_zero = op->sem_op == 0};
	int error;

	list_append(&s->waiters, &w.list);
	error = cond_wait(&s->changed, &sem_mutex, "sem", SLEEP_INTR, deadline);
	list_remove(&w.list);
	if (!s->removed)
		return error;
	if (list_empty(&s->waiters))
		sem_set_free(s);
	return -EIDRM;
}

/* sem_mutex held. */
static int
sem_operate(int32_t id, const struct sembuf *ops, unsigned n, uint64_t deadline)
{
	struct ipc_object *o = ipc_find(&sets, id);
	struct set *s = sem_set(o);
	bool alters = false, undoes = false;
	struct undo *u = NULL;
	unsigned at;
	int error = o == NULL ? -EINVAL : 0;

	for (unsigned i = 0; error == 0 && i < n; i++) {
		alters |= ops[i].sem_op != 0;
		undoes |= (ops[i].sem_flg & SEM_UNDO) != 0;
		error = ops[i].sem_num >= s->count ? -EFBIG : 0;
	}
	if (error == 0)
		error = ipc_may(o, alters ? IPC_WRITE : IPC_READ);
	if (error == 0 && undoes && (u = sem_undo_get(s)) == NULL)
		error = -ENOMEM;
	while (error == 0 && (error = sem_operate_all(s, u, ops, n, &at)) == -EAGAIN &&
	       !(ops[at].sem_flg & IPC_NOWAIT))
		error = sem_set_wait(s, &ops[at], deadline);
	if (error != 0)
		return error == -ETIMEDOUT ? -EAGAIN : error;
	s->otime = ipc_now();
	if (alters)
		cond_broadcast(&s->changed);
	return 0;
}

int64_t
sys_semtimedop(const uint64_t a[6])
{
	struct uidinfo *ui = proc_uidinfo();
	unsigned n = (uint32_t)a[2];
	uint64_t deadline, size = n * sizeof(struct sembuf);
	int error = poll_take_deadline(a[3], &deadline);
	struct sembuf *ops;

	if (n == 0 || (int32_t)a[0] < 0)
		return -EINVAL;
	if (n > ops_max)
		return -E2BIG;
	ops = uidinfo_alloc(ui, size);
	if (ops == NULL)
		return -ENOMEM;
	if (copy_in(ops, a[1], size) != 0)
		error = -EFAULT;
	if (error == 0) {
		mutex_lock(&sem_mutex);
		error = sem_operate((int32_t)a[0], ops, n, deadline);
		mutex_unlock(&sem_mutex);
	}
	CTR4(KTR_PROC, "semop: id %d first %u by %d error %d", (int)a[0], ops[0].sem_num,
	     ops[0].sem_op, -error);
	uidinfo_free(ui, ops);
	return error;
}

SYSCALL_IS(semop, sys_semtimedop((const uint64_t[6]){a[0], a[1], a[2], 0}))

/*
 * The current process ends: what it has done with SEM_UNDO is undone, as far as values allow. Only
 * it adds to its list; who removes a set is done with that when both ends lead to itself.
 */
static void
sem_exit(void)
{
	struct list *undos = &curproc()->sem_undos;

	if (list_empty(undos) && __atomic_load_n(&undos->prev, __ATOMIC_RELAXED) == undos)
		return;
	mutex_lock(&sem_mutex);
	list_for_each_entry_safe (struct undo, u, undos, of_proc) {
		struct set *s = u->set;

		for (unsigned k = 0; k < s->count; k++) {
			int value = s->sems[k].value + u->adjust[k];

			if (u->adjust[k] == 0)
				continue;
			s->sems[k].value = value < 0               ? 0
					   : value > SEM_VALUE_MAX ? SEM_VALUE_MAX
								   : value;
			s->sems[k].pid = proc_pid();
		}
		sem_undo_free(u);
		s->otime = ipc_now();
		cond_broadcast(&s->changed);
	}
	mutex_unlock(&sem_mutex);
}
HOOK(proc_exit, sem_exit);

/* ---- semctl() ---- */

/* IPC_INFO, SEM_INFO. */
static int64_t
sem_limits(int command, uint64_t to)
{
	struct seminfo info = {.semmap = (int32_t)total_max,
			       .semmni = sets.max,
			       .semmns = (int32_t)total_max,
			       .semmnu = (int32_t)total_max,
			       .semmsl = (int32_t)set_max,
			       .semopm = (int32_t)ops_max,
			       .semume = (int32_t)ops_max,
			       .semusz = 20,
			       .semvmx = SEM_VALUE_MAX,
			       .semaem = SEM_VALUE_MAX};
	int last;

	mutex_lock(&sem_mutex);
	if (command == SEM_INFO) {
		info.semusz = (int32_t)sets.used;
		info.semaem = (int32_t)total;
	}
	last = ipc_last(&sets);
	mutex_unlock(&sem_mutex);
	return copy_out(to, &info, sizeof(info)) != 0 ? -EFAULT : last;
}

/* IPC_STAT; SEM_STAT and SEM_STAT_ANY: of an index. */
static int64_t
sem_status(int32_t id, int command, uint64_t to)
{
	struct ipc_object *o;
	struct semid_ds ds;
	int r;

	mutex_lock(&sem_mutex);
	o = ipc_find_status(&sets, id, command, command == SEM_STAT_ANY, &r);
	if (o != NULL)
		ds = (struct semid_ds){.perm = o->perm,
				       .otime = {sem_set(o)->otime},
				       .ctime = {o->changed},
				       .nsems = sem_set(o)->count};
	mutex_unlock(&sem_mutex);
	return r >= 0 && copy_out(to, &ds, sizeof(ds)) != 0 ? -EFAULT : r;
}

/* Calls that wait for a semaphore. */
static int
sem_count_waiters(const struct set *s, unsigned number, bool for_zero)
{
	int n = 0;

	list_for_each_entry (const struct sem_waiter, w, &s->waiters, list)
		n += w->number == number && w->for_zero == for_zero;
	return n;
}

/* Sets one semaphore, and forgets what was to be undone of it. */
static void
sem_set_value(struct set *s, unsigned number, int value)
{
	list_for_each_entry (struct undo, u, &s->undos, list)
		u->adjust[number] = 0;
	s->sems[number] = (struct semaphore){value, proc_pid()};
}

/* The commands that ask for one semaphore, or set it. */
static int
sem_one(struct set *s, unsigned number, int command, int value)
{
	int error = ipc_may(&s->ipc, command == SETVAL ? IPC_WRITE : IPC_READ);

	/* as Linux: SETVAL looks at the number first */
	if (number >= s->count && (command == SETVAL || error == 0))
		return -EINVAL;
	if (error != 0)
		return error;
	switch (command) {
	case GETVAL:
		return s->sems[number].value;
	case GETPID:
		return (int)s->sems[number].pid;
	case GETNCNT:
	case GETZCNT:
		return sem_count_waiters(s, number, command == GETZCNT);
	default:
		sem_set_value(s, number, value);
		s->ipc.changed = ipc_now();
		cond_broadcast(&s->changed);
		return 0;
	}
}

/* IPC_SET, IPC_RMID. */
static int
sem_set_change(struct set *s, int command, const struct semid_ds *ds)
{
	int error = ipc_may_change(&s->ipc);

	if (error != 0 || command == IPC_SET)
		return error != 0 ? error : ipc_set(&s->ipc, &ds->perm);
	ipc_remove(&sets, &s->ipc);
	total -= s->count;
	s->removed = true;
	cond_broadcast(&s->changed);
	if (list_empty(&s->waiters))
		sem_set_free(s);
	return 0;
}

/* Sets all, and forgets what was to be undone. */
static void
sem_set_all(struct set *s, const uint16_t *values)
{
	list_for_each_entry (struct undo, u, &s->undos, list)
		memset(u->adjust, 0, s->count * sizeof(u->adjust[0]));
	for (unsigned i = 0; i < s->count; i++)
		s->sems[i] = (struct semaphore){values[i], proc_pid()};
	s->ipc.changed = ipc_now();
	cond_broadcast(&s->changed);
}

/* GETALL: gets the values of s; SETALL: sets them, if they are good. */
static int
sem_move_values(struct set *s, int command, uint16_t *values)
{
	for (unsigned i = 0; i < s->count; i++)
		if (command == GETALL)
			values[i] = (uint16_t)s->sems[i].value;
		else if (values[i] > SEM_VALUE_MAX)
			return -ERANGE;
	if (command == SETALL)
		sem_set_all(s, values);
	return 0;
}

/* GETALL, SETALL. While memory is copied, the set may go, and its number come again. */
static int64_t
sem_move_all(int32_t id, int command, uint64_t user)
{
	uint32_t access = command == SETALL ? IPC_WRITE : IPC_READ;
	struct uidinfo *ui = proc_uidinfo();
	uint64_t serial = 0;
	struct ipc_object *o;
	uint16_t *values;
	size_t size = 0;
	int error;

	mutex_lock(&sem_mutex);
	o = ipc_find_allowed(&sets, id, access, &error);
	if (o != NULL) {
		serial = o->serial;
		size = sem_set(o)->count * sizeof(*values);
	}
	mutex_unlock(&sem_mutex);
	if (error != 0)
		return error;
	values = uidinfo_alloc(ui, size);
	if (values == NULL)
		return -ENOMEM;
	if (command == SETALL)
		error = copy_in(values, user, size);
	if (error == 0) {
		mutex_lock(&sem_mutex);
		o = ipc_find(&sets, id);
		error = o == NULL || o->serial != serial ? -EIDRM : ipc_may(o, access);
		if (error == 0)
			error = sem_move_values(sem_set(o), command, values);
		mutex_unlock(&sem_mutex);
	}
	if (command == GETALL && error == 0)
		error = copy_out(user, values, size);
	uidinfo_free(ui, values);
	return error;
}

int64_t
sys_semctl(const uint64_t a[6])
{
	int32_t id = (int32_t)a[0];
	int command = (int)a[2], error;
	struct ipc_object *o;
	struct semid_ds ds;

	if (id < 0)
		return -EINVAL;
	if (command == IPC_INFO || command == SEM_INFO)
		return sem_limits(command, a[3]);
	if (command == IPC_STAT || command == SEM_STAT || command == SEM_STAT_ANY)
		return sem_status(id, command, a[3]);
	if (command == GETALL || command == SETALL)
		return sem_move_all(id, command, a[3]);
	if (command != IPC_SET && command != IPC_RMID && command != SETVAL &&
	    (command < GETPID || command > GETZCNT))
		return -EINVAL;
	if (command == IPC_SET && copy_in(&ds, a[3], sizeof(ds)) != 0)
		return -EFAULT;
	if (command == SETVAL && ((int32_t)a[3] < 0 || (int32_t)a[3] > SEM_VALUE_MAX))
		return -ERANGE;
	mutex_lock(&sem_mutex);
	o = ipc_find(&sets, id);
	error = o == NULL ? -EINVAL
		: command == IPC_SET || command == IPC_RMID
		    ? sem_set_change(sem_set(o), command, &ds)
		    : sem_one(sem_set(o), (uint32_t)a[1], command, (int32_t)a[3]);
	mutex_unlock(&sem_mutex);
	return error;
}

void
ipc_print_sem(struct sbuf *out)
{
	sbuf_puts(out,
		  "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      "
		  "ctime\n");
	mutex_lock(&sem_mutex);
	for (unsigned i = 0; i < sets.end; i++) {
		const struct set *s = sem_set(sets.slots[i]);

		if (s != NULL)
			sbuf_printf(out, "%10d %10d  %4o %10u %5u %5u %5u %5u %10ld %10ld\n",
				    s->ipc.perm.key, s->ipc.id, s->ipc.perm.mode, s->count,
				    s->ipc.perm.uid, s->ipc.perm.gid, s->ipc.perm.cuid,
				    s->ipc.perm.cgid, s->otime, s->ipc.changed);
	}
	mutex_unlock(&sem_mutex);
}
