/*
 * writer.c - the thread `ktrace`: takes records out of the queues of all processes, and writes them
 * to their files in the order of their times.
 *
 * It works every 10 ms while a process is traced, and when somebody waits for it. It writes as user
 * 0 and without limits, but a file grows at the cost of its owner, no further than the one who set
 * the tracing may write, and only while this user may write it. Locking: ktrace_lock, also while it
 * writes; a queue's `tail` is its own.
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
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/proc/proc.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"

#define PERIOD_NS 10000000ull
/* Has room for a record of KTRACE_GENIO_MAX bytes, with what comes before them. */
#define BUF_SIZE (KTRACE_GENIO_MAX + 4096u)

_Static_assert(BUF_SIZE >= KTRACE_GENIO_MAX + sizeof(struct ktr_header) + sizeof(struct ktr_genio),
	       "a record has room");

struct mutex ktrace_lock = MUTEX_INIT("ktrace");
struct list ktrace_all = LIST_INIT(ktrace_all);

static struct cond asked, done;
static uint64_t passes_asked, passes_done; /* ktrace_lock */
/* What is to be written next, and where. ktrace_lock. */
static uint8_t *buf;
static size_t used;
static struct ktrace_io *buf_io;
static struct ktrace_io *unused_io; /* ktrace_lock */

void
ktrace_io_drop(struct ktrace_io *io)
{
	if (io == NULL || --io->refs > 0)
		return;
	io->next = unused_io;
	unused_io = io;
}

void
ktrace_close_unused(void)
{
	while (unused_io != NULL) {
		struct ktrace_io *io = unused_io;

		unused_io = io->next;
		file_unref(io->f);
		kfree(io);
	}
}

struct ktrace_io *
ktrace_target(const struct ktrace *t)
{
	return t->next_io != NULL ? t->next_io : t->io;
}

void
ktrace_select_needed(void)
{
	uint32_t facs = 0;

	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		facs |= __atomic_load_n(&t->facs, __ATOMIC_RELAXED);
	ktrace_hook_select(facs & KTRFAC_MASK);
}

/* A record could not be written: tracing to the file ends. */
static void
give_up(struct ktrace_io *io, int error)
{
	printk("ktrace: %s: error %d, tracing to it ends\n", io->path, error);
	io->dead = true;
	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		if (ktrace_target(t) == io)
			__atomic_store_n(&t->facs, 0, __ATOMIC_SEQ_CST);
	ktrace_select_needed();
}

static void
ktrace_flush(void)
{
	int64_t n = (int64_t)used;

	if (used > 0 && !buf_io->dead) {
		if (vnode_access_of(buf_io->f->vn, buf_io->uid, buf_io->gid, buf_io->caps,
				    VNODE_WRITE) < 0)
			n = -EACCES;
		else if (used > buf_io->limit || vnode_size(buf_io->f->vn) > buf_io->limit - used)
			n = -EFBIG;
		else
			n = file_write(buf_io->f, buf, used);
		if (n != (int64_t)used)
			give_up(buf_io, n < 0 ? (int)-n : ENOSPC);
	}
	used = 0;
	buf_io = NULL;
}

/* Adds a record to what is to be written. */
static void
ktrace_pack_record(struct ktrace *t, const struct ktrace_record *r, const void *data)
{
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

	t->last_ticks = r->ticks;
	h.ktr_sec = (int64_t)(ns / 1000000000);
	h.ktr_nsec = (int64_t)(ns % 1000000000);
	strlcpy(h.ktr_comm, r->comm, sizeof(h.ktr_comm));
	if (buf_io != t->io || sizeof(h) + r->len > BUF_SIZE - used)
		ktrace_flush();
	buf_io = t->io;
	memcpy(buf + used, &h, sizeof(h));
	memcpy(buf + used + sizeof(h), data, r->len);
	used += sizeof(h) + r->len;
}

/* The next record of this pass, NULL: there is none. */
static struct ktrace_record *
ktrace_front(struct ktrace *t)
{
	struct ktrace_record *r = (void *)(t->buf + (t->tail & t->mask));

	if (t->tail == t->limit)
		return NULL;
	if (r->type != 0)
		return r;
	t->tail = (t->tail | t->mask) + 1;
	return ktrace_front(t);
}

/* The process whose next record is the oldest. */
static struct ktrace *
ktrace_oldest(void)
{
	const struct ktrace_record *first = NULL;
	struct ktrace *from = NULL;

	list_for_each_entry (struct ktrace, t, &ktrace_all, all) {
		const struct ktrace_record *r = ktrace_front(t);

		if (r != NULL && (first == NULL || r->ticks < first->ticks)) {
			first = r;
			from = t;
		}
	}
	return from;
}

/*
 * When tracing of a process to its file ended. It may go on in another file, and records for that
 * one may be older than this moment.
 */
static uint64_t
end_ticks(const struct ktrace *t)
{
	return t->next_io != NULL && !t->exited ? t->last_ticks : arch_clock_read();
}

/*
 * Writes that tracing of a process has begun, or ended. The CPU is that of its last record, the
 * name that of its first thread's.
 */
static void
add_life(struct ktrace *t, bool begins, const char *comm)
{
	struct ktr_proc_ctor ctor = {.ktr_parent = t->parent, .ktr_facs = t->facs};
	struct ktr_proc_dtor dtor = {.ktr_exited = t->exited, .ktr_status = t->status};
	struct ktrace_record r = {
	    .len = begins ? sizeof(ctor) : sizeof(dtor),
	    .type = begins ? KTR_PROCCTOR : KTR_PROCDTOR,
	    .cpu = t->cpu,
	    .tid = t->pid,
	    .ticks = begins ? t->begin_ticks : end_ticks(t),
	    .dropped = begins ? 0 : __atomic_exchange_n(&t->dropped, 0, __ATOMIC_RELAXED),
	};

	strlcpy(r.comm, comm, sizeof(r.comm));
	ktrace_pack_record(t, &r, begins ? (const void *)&ctor : &dtor);
	t->begun = begins;
}

/* Does tracing to the file end, with the records of this pass? */
static bool
ktrace_file_ends(struct ktrace *t)
{
	if (t->next_io != NULL && !t->exited)
		return true;
	return (t->exited || __atomic_load_n(&t->facs, __ATOMIC_RELAXED) == 0) &&
	       t->tail == __atomic_load_n(&t->head, __ATOMIC_ACQUIRE);
}

static void
ktrace_swap_io(struct ktrace *t)
{
	ktrace_io_drop(t->io);
	t->io = t->next_io;
	t->next_io = NULL;
	t->begin_ticks = arch_clock_read();
}

static void
ktrace_pass(void)
{
	struct ktrace *next;

	list_for_each_entry (struct ktrace, t, &ktrace_all, all) {
		/* acquire: pairs with the release of whoever puts records in, or makes it begin */
		t->limit = __atomic_load_n(&t->head, __ATOMIC_ACQUIRE);
		if (!t->begun && t->io != NULL &&
		    __atomic_load_n(&t->facs, __ATOMIC_ACQUIRE) != 0) {
			const struct ktrace_record *r = ktrace_front(t);

			/* What it did since it was moved to this file comes after its beginning. */
			if (r != NULL && r->ticks < t->begin_ticks)
				t->begin_ticks = r->ticks;
			add_life(t, true, t->comm);
		}
	}
	while ((next = ktrace_oldest()) != NULL) {
		struct ktrace_record *r = ktrace_front(next);

		r->comm[sizeof(r->comm) - 1] = '\0'; /* a longer name is cut */
		if (r->tid == next->pid)
			strlcpy(next->comm, r->comm, sizeof(next->comm));
		next->cpu = r->cpu;
		if (next->io != NULL)
			ktrace_pack_record(next, r, r->data);
		/* release: pairs with the acquire of the process, which may overwrite it */
		__atomic_store_n(&next->tail, next->tail + sizeof(*r) + ((r->len + 7) & ~7u),
				 __ATOMIC_RELEASE);
	}
	list_for_each_entry (struct ktrace, t, &ktrace_all, all) {
		if (t->begun && ktrace_file_ends(t)) {
			add_life(t, false, t->comm);
			if (t->exited) /* nothing begins again */
				__atomic_store_n(&t->facs, 0, __ATOMIC_SEQ_CST);
		}
	}
	ktrace_flush();
	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		if (t->next_io != NULL && !t->begun)
			ktrace_swap_io(t);
	ktrace_close_unused();
}

static bool
any_traced(void)
{
	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		if (__atomic_load_n(&t->facs, __ATOMIC_RELAXED) != 0)
			return true;
	return false;
}

static void
ktrace_writer_thread(void *arg)
{
	mutex_lock(&ktrace_lock);
	for (;;) {
		uint64_t asked_for = passes_asked;

		ktrace_pass();
		passes_done = asked_for;
		cond_broadcast(&done);
		if (passes_asked == passes_done)
			cond_wait(&asked, &ktrace_lock, "ktrace", 0,
				  any_traced() ? clock_ns() + PERIOD_NS : DEADLINE_NEVER);
	}
}

int
ktrace_writer_init(void)
{
	struct thread *t;

	if (buf == NULL)
		buf = kmap_alloc(BUF_SIZE);
	if (buf == NULL)
		return -ENOMEM;
	t = thread_create("ktrace", PRIO_KERN, ktrace_writer_thread, NULL);
	return t != NULL ? 0 : -ENOMEM;
}

void
ktrace_sync(void)
{
	struct lwp *self = curproc() != NULL ? curlwp() : NULL;
	bool busy = self != NULL && self->trace.busy;
	uint64_t pass = ++passes_asked;

	if (self != NULL)
		self->trace.busy = true;
	cond_signal(&asked);
	while (passes_done < pass)
		cond_wait(&done, &ktrace_lock, "ktrwait", 0, DEADLINE_NEVER);
	if (self != NULL)
		self->trace.busy = busy;
}
