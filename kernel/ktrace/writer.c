/*
 * writer.c - the thread `ktrace` of a file: takes records out of the queues of the processes that
 * are traced to it, and writes them in the order of their times.
 *
 * It works every 10 ms while a process is traced, and when somebody waits for it. A pass takes what
 * is older than a moment at which no CPU was in a hook: nothing that comes later is older than
 * that. It writes as the one who set the tracing, while he may write the file, and no further than
 * his limit. A file grows at the cost of its owner. The thread has the share of the user of the
 * process that has made the first record of what it writes: so each user pays for his part. Others
 * wait for it, so it goes before the other threads of that user. It ends when nobody is traced to
 * the file.
 *
 * Locking: ktrace_lock, which is released while it writes.
 */
#include <abi_md.h>

#include "arch/clock.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/proc/task.h"
#include "kernel/sched/sched.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"
#include "kernel/sync/smp.h"

#define PERIOD_NS 10000000ull
#define KILL_NS   10000000ull /* how often a waiter looks whether he is to end */
/* Has room for a record of KTRACE_GENIO_MAX bytes, with what comes before them. */
#define BUF_SIZE (KTRACE_GENIO_MAX + 4096u)

_Static_assert(BUF_SIZE >= KTRACE_GENIO_MAX + sizeof(struct ktr_header) + sizeof(struct ktr_genio),
	       "a record has room");

/* What stood for an io could not be written: tracing to it ends; or to the whole file, as what
 * comes after a part of a record could not be read. */
static void
give_up(struct ktrace_file *file, struct ktrace_io *io, int error, bool in_part)
{
	static struct proc_told told;

	if (proc_may_tell(&told, "files that ktrace could not write"))
		printk("ktrace: %s: error %d, tracing to it ends\n", io->path, error);
	io->dead = true;
	list_for_each_entry (struct ktrace, t, &file->members, member) {
		if (t->io != io && !in_part)
			continue;
		t->io->dead = true;
		__atomic_store_n(&t->facs, 0, __ATOMIC_SEQ_CST);
	}
	ktrace_select_needed();
}

/* The bytes of the first records in the buffer, as many as there is room for. */
static size_t
whole_records(const struct ktrace_file *file, uint64_t room)
{
	struct ktr_header h;
	size_t n = 0;

	while (n < file->used) {
		memcpy(&h, file->buf + n, sizeof(h));
		if (sizeof(h) + h.ktr_len > room - n)
			break;
		n += sizeof(h) + h.ktr_len;
	}
	return n;
}

/* Writes as many records as the limit and the disk have room for, as io->cred. 0 or -errno;
 * *in_part: a part of a record stays at the end. */
static int
write_out(const struct ktrace_file *file, const struct ktrace_io *io, bool *in_part)
{
	struct vnode *vn = io->f->vn;
	uint64_t size = vnode_size(vn);
	size_t n = whole_records(file, io->limit > size ? io->limit - size : 0), whole;
	int64_t r = 0;

	if (vnode_access(vn, VNODE_WRITE) < 0)
		return -EACCES;
	if (n > 0)
		r = file_write(io->f, file->buf, n);
	/* A part of a record is cut off, unless somebody else has written after it. */
	whole = r > 0 ? whole_records(file, (uint64_t)r) : 0;
	*in_part = r > 0 && (uint64_t)r != whole &&
		   (vnode_size(vn) != size + (uint64_t)r || vnode_truncate(vn, size + whole) != 0);
	return r < 0 ? (int)r : r != (int64_t)n ? -ENOSPC : n != file->used ? -EFBIG : 0;
}

/* Releases ktrace_lock meanwhile, if there is something to write. */
static void
ktrace_flush(struct ktrace_file *file)
{
	struct ktrace_io *io = file->io;
	bool in_part = false;
	int error;

	if (file->used == 0)
		return;
	mutex_unlock(&ktrace_lock);
	task_act_as(&io->cred);
	error = write_out(file, io, &in_part);
	task_act_as(NULL);
	mutex_lock(&ktrace_lock);
	if (error != 0 && (!io->dead || in_part))
		give_up(file, io, -error, in_part);
	file->used = 0;
	file->io = NULL;
	ktrace_io_drop(io);
}

static bool
ktrace_has_room(const struct ktrace_file *file, const struct ktrace *t, size_t len)
{
	return file->used == 0 ||
	       (file->io == t->io && sizeof(struct ktr_header) + len <= BUF_SIZE - file->used);
}

/* Adds a record to what is to be written. It has room. */
static void
ktrace_pack_record(struct ktrace *t, const struct ktrace_record *r, const void *data)
{
	struct ktrace_file *file = t->io->file;
	struct uidinfo *ui = __atomic_load_n(&t->proc->ui, __ATOMIC_RELAXED);
	struct ktr_header h = {
	    .ktr_len = r->len,
	    .ktr_type = (uint16_t)(r->type | (r->dropped > 0 ? KTR_DROP : 0)),
	    .ktr_version = KTR_VERSION1,
	    .ktr_machine = ELF_MACHINE,
	    .ktr_cpu = r->cpu,
	    .ktr_dropped = r->dropped,
	    .ktr_pid = t->pid,
	    .ktr_tid = r->tid,
	};
	uint64_t ns = clock_real_ns(clock_ns_of(r->ticks));

	if (t->io->dead)
		return;
	if (file->used == 0) {
		file->io = t->io;
		file->io->refs++;
		if (file->payer != ui)
			sched_set_user(curthread(), ui->groups);
		file->payer = ui;
	}
	h.ktr_sec = (int64_t)(ns / 1000000000);
	h.ktr_nsec = (int64_t)(ns % 1000000000);
	strlcpy(h.ktr_comm, r->comm, sizeof(h.ktr_comm));
	memcpy(file->buf + file->used, &h, sizeof(h));
	memcpy(file->buf + file->used + sizeof(h), data, r->len);
	file->used += sizeof(h) + r->len;
}

/* The next record in the queue. NULL: there is none. */
static struct ktrace_record *
ktrace_front(struct ktrace *t)
{
	struct ktrace_record *r = (void *)(t->buf + (t->tail & t->mask));

	/* acquire: pairs with the release of whoever puts records in */
	if (t->tail == __atomic_load_n(&t->head, __ATOMIC_ACQUIRE))
		return NULL;
	if (r->type != 0)
		return r;
	/* release: as in ktrace_take_record() */
	__atomic_store_n(&t->tail, (t->tail | t->mask) + 1, __ATOMIC_RELEASE);
	return ktrace_front(t);
}

/*
 * Writes that tracing of a process has begun, or ended. The CPU is that of its last record, the
 * name that of its first thread's.
 */
static void
add_life(struct ktrace *t, bool begins, uint64_t ticks)
{
	struct ktr_proc_ctor ctor = {.ktr_parent = t->parent, .ktr_facs = t->facs};
	struct ktr_proc_dtor dtor = {.ktr_exited = t->exited, .ktr_status = t->status};
	struct ktrace_record r = {
	    .len = begins ? sizeof(ctor) : sizeof(dtor),
	    .type = begins ? KTR_PROCCTOR : KTR_PROCDTOR,
	    .cpu = t->cpu,
	    .tid = t->pid,
	    .ticks = ticks,
	};

	if (!begins)
		r.dropped = __atomic_exchange_n(&t->dropped, 0, __ATOMIC_RELAXED);
	strlcpy(r.comm, t->comm, sizeof(r.comm));
	ktrace_pack_record(t, &r, begins ? (const void *)&ctor : &dtor);
}

/* What is next to be written of a process. */
struct ktrace_event {
	enum { NOTHING_DUE, BEGINS, RECORD, ENDS } kind;
	uint64_t at;
	size_t len;
};

static struct ktrace_event
ktrace_next_event(struct ktrace *t, uint64_t until)
{
	const struct ktrace_record *next = ktrace_front(t), *r = next;
	uint64_t end = t->end_ticks != 0 ? t->end_ticks : until;

	if (r != NULL && !leftist_earlier(r->ticks, until))
		r = NULL;
	if (!t->begun && (r != NULL || __atomic_load_n(&t->facs, __ATOMIC_ACQUIRE) != 0)) {
		if (r != NULL && leftist_earlier(r->ticks, t->begin_ticks))
			t->begin_ticks = r->ticks;
		if (leftist_earlier(t->begin_ticks, until))
			return (struct ktrace_event){BEGINS, t->begin_ticks,
						     sizeof(struct ktr_proc_ctor)};
	} else if (r != NULL) {
		return (struct ktrace_event){RECORD, r->ticks, r->len};
	} else if (t->ends && !t->ended && next == NULL && !leftist_earlier(until, end)) {
		return (struct ktrace_event){ENDS, end, sizeof(struct ktr_proc_dtor)};
	}
	return (struct ktrace_event){NOTHING_DUE};
}

/* Takes the next record of t out of its queue. */
static void
ktrace_take_record(struct ktrace *t)
{
	struct ktrace_record *r = ktrace_front(t);

	r->comm[sizeof(r->comm) - 1] = '\0'; /* a longer name is cut */
	if (r->tid == t->pid)
		strlcpy(t->comm, r->comm, sizeof(t->comm));
	t->cpu = r->cpu;
	if (t->end_ticks != 0 && leftist_earlier(t->end_ticks, r->ticks))
		t->end_ticks = r->ticks; /* the process was left while a hook was at work */
	ktrace_pack_record(t, r, r->data);
	/* release: pairs with the acquire of the process, which may overwrite it */
	__atomic_store_n(&t->tail, t->tail + sizeof(*r) + ((r->len + 7) & ~7u), __ATOMIC_RELEASE);
}

static void
ktrace_set_due(struct ktrace_file *file, struct ktrace *t, uint64_t until)
{
	struct ktrace_event e = ktrace_next_event(t, until);

	t->due.at = e.at;
	if (e.kind != NOTHING_DUE)
		leftist_insert(&file->first, &t->due);
}

/* Writes what was due before that moment. Releases ktrace_lock now and then. */
static void
ktrace_merge(struct ktrace_file *file, uint64_t until)
{
	list_for_each_entry (struct ktrace, t, &file->members, member)
		ktrace_set_due(file, t, until);
	while (file->first != NULL) {
		struct ktrace *t = container_of(file->first, struct ktrace, due);
		struct ktrace_event e = ktrace_next_event(t, until);

		if (e.kind != NOTHING_DUE && !ktrace_has_room(file, t, e.len)) {
			ktrace_flush(file); /* then it may be another one's turn */
			continue;
		}
		leftist_remove(&file->first, &t->due);
		if (e.kind == RECORD)
			ktrace_take_record(t);
		else if (e.kind == BEGINS || (e.kind == ENDS && t->begun))
			add_life(t, e.kind == BEGINS, e.at);
		t->begun |= e.kind == BEGINS;
		t->ended = e.kind == ENDS;
		ktrace_set_due(file, t, until);
	}
	ktrace_flush(file);
}

static void
ktrace_note_clock(void *earliest)
{
	uint64_t now = arch_clock_read(),
		 old = __atomic_load_n((uint64_t *)earliest, __ATOMIC_RELAXED);

	while (leftist_earlier(now, old) &&
	       !__atomic_compare_exchange_n((uint64_t *)earliest, &old, now, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Does the process put nothing more in? If its tracing was switched off, it leaves t now. */
static bool
ktrace_is_left(struct ktrace *t)
{
	if (!t->left && (t->exited || __atomic_load_n(&t->facs, __ATOMIC_SEQ_CST) == 0)) {
		t->left = true;
		__atomic_store_n(&t->proc->trace, NULL, __ATOMIC_RELEASE);
	}
	return t->left;
}

/*
 * Until when records are complete: hooks run with interrupts off, so a CPU that takes part in a
 * call is in none, and its next record is later. False: there is nothing to write, and nobody
 * waits.
 */
static bool
ktrace_settle(struct ktrace_file *file, uint64_t *until)
{
	bool any = file->passes_asked != file->passes_done;

	list_for_each_entry (struct ktrace, t, &file->members, member) {
		t->ends = ktrace_is_left(t);
		any |= t->ends || !t->begun || ktrace_front(t) != NULL;
	}
	if (any) {
		*until = arch_clock_read();
		smp_call_all(ktrace_note_clock, until);
	}
	return any;
}

static void
ktrace_pass(struct ktrace_file *file)
{
	bool gone = false;
	uint64_t until;

	if (!ktrace_settle(file, &until))
		return;
	ktrace_merge(file, until);
	list_for_each_entry_safe (struct ktrace, t, &file->members, member) {
		if (t->ended) {
			ktrace_destroy(t);
			gone = true;
		}
	}
	if (gone)
		ktrace_select_needed();
}

/* Until when the thread waits. 0: it goes on. */
static uint64_t
ktrace_idle_until(const struct ktrace_file *file)
{
	if (file->passes_asked != file->passes_done || file->unused != NULL ||
	    (file->ios == 0 && file->waiters == 0))
		return 0;
	return list_empty(&file->members) ? DEADLINE_NEVER : clock_ns() + PERIOD_NS;
}

/* The stack goes soon after, when the thread that calls this has ended. */
static void
ktrace_file_free(struct ktrace_file *file)
{
	struct uidinfo *ui = file->ui;

	uidinfo_free(ui, file->buf);
	uidinfo_free(ui, file);
	uidinfo_release(ui, UIDINFO_KMEM, KSTACK_SIZE);
}

static void
ktrace_writer_thread(void *arg)
{
	struct ktrace_file *file = arg;
	uint64_t deadline;

	mutex_lock(&ktrace_lock);
	while (file->ios > 0 || file->waiters > 0 || file->unused != NULL) {
		uint64_t asked_for = file->passes_asked;

		ktrace_pass(file);
		ktrace_close_unused(file);
		file->passes_done = asked_for;
		cond_broadcast(&file->done);
		deadline = ktrace_idle_until(file);
		if (deadline != 0)
			cond_wait(&file->asked, &ktrace_lock, "ktrace", 0, deadline);
	}
	list_remove(&file->all);
	mutex_unlock(&ktrace_lock);
	ktrace_file_free(file);
}

struct ktrace_file *
ktrace_file_make(const struct vnode *vn, struct uidinfo *ui)
{
	struct ktrace_file *file;
	struct thread *t = NULL;

	if (!uidinfo_charge(ui, UIDINFO_KMEM, KSTACK_SIZE))
		return NULL;
	file = uidinfo_alloc(ui, sizeof(*file));
	if (file == NULL) {
		uidinfo_release(ui, UIDINFO_KMEM, KSTACK_SIZE);
		return NULL;
	}
	file->vn = vn;
	file->ui = file->payer = ui;
	file->buf = uidinfo_alloc(ui, BUF_SIZE);
	list_init(&file->members);
	if (file->buf != NULL)
		t = thread_alloc("ktrace", PRIO_USER, ktrace_writer_thread, file);
	if (t == NULL) {
		ktrace_file_free(file);
		return NULL;
	}
	list_append(&ktrace_files, &file->all);
	t->urgent = true;
	sched_set_user(t, ui->groups);
	wake_up_new_task(t); /* the thread needs ktrace_lock, so it finds the caller's io */
	return file;
}

void
ktrace_sync(struct ktrace_file *file, uint64_t deadline_ns, bool killable)
{
	struct lwp *self = curproc() != NULL ? curlwp() : NULL;
	bool busy = self != NULL && self->trace.busy, told = false;
	uint64_t pass = ++file->passes_asked;

	if (self != NULL)
		self->trace.busy = true;
	file->waiters++;
	cond_signal(&file->asked);
	while (file->passes_done < pass) {
		uint64_t until = told ? clock_ns() + KILL_NS : deadline_ns;
		int error = cond_wait(&file->done, &ktrace_lock, "ktrwait",
				      killable && !told ? SLEEP_INTR : 0, until);

		if (error != 0 && (!killable || proc_signal_kills()))
			break;
		told |= error != 0; /* a signal that does not end it */
	}
	if (--file->waiters == 0)
		cond_signal(&file->asked);
	if (self != NULL)
		self->trace.busy = busy;
}
