/*
 * io.c - the files that ktrace writes. Each has a thread, whose memory is counted for who traced to
 * it first, as long as anybody is traced to it. Locking: ktrace_lock.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"

struct mutex ktrace_lock = MUTEX_INIT("ktrace");
struct list ktrace_all = LIST_INIT(ktrace_all);
struct list ktrace_files = LIST_INIT(ktrace_files);

static struct ktrace_io *unused_io; /* ktrace_lock */

void
ktrace_io_drop(struct ktrace_io *io)
{
	if (io == NULL || --io->refs > 0)
		return;
	if (io->file != NULL && --io->file->ios == 0)
		cond_signal(&io->file->asked); /* the thread ends */
	io->next = unused_io;
	unused_io = io;
}

void
ktrace_unlock(void)
{
	struct ktrace_io *next, *io = unused_io;

	unused_io = NULL;
	mutex_unlock(&ktrace_lock);
	for (; io != NULL; io = next) {
		next = io->next;
		file_unref(io->f);
		kfree(io);
	}
}

static struct ktrace_file *
ktrace_find_file(const struct vnode *vn)
{
	list_for_each_entry (struct ktrace_file, file, &ktrace_files, all)
		if (file->vn == vn && file->ios > 0)
			return file;
	return NULL;
}

int
ktrace_io_attach(struct ktrace_io *io, struct uidinfo *ui)
{
	struct ktrace_file *file = ktrace_find_file(io->f->vn);

	if (file == NULL)
		file = ktrace_file_make(io->f->vn, ui);
	if (file == NULL)
		return -ENOMEM;
	file->ios++;
	io->file = file;
	return 0;
}

/* What was due in its file is not any more. */
static void
ktrace_cancel(struct ktrace *t)
{
	if (t->is_due)
		leftist_remove(&t->io->file->first, &t->due);
	t->is_due = false;
}

void
ktrace_give_io(struct ktrace *t, struct ktrace_io *io)
{
	struct ktrace_io *old = t->io;

	if (io != NULL)
		io->refs++;
	if (old == NULL || io == NULL || old->file != io->file) {
		ktrace_cancel(t);
		list_remove(&t->member);
		if (io != NULL) {
			list_append(&io->file->members, &t->member);
			cond_signal(&io->file->asked); /* perhaps nobody was traced to it */
		}
	}
	t->io = io;
	ktrace_io_drop(old);
}

void
ktrace_select_needed(void)
{
	uint32_t facs = 0;

	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		facs |= __atomic_load_n(&t->facs, __ATOMIC_RELAXED);
	ktrace_hook_select(facs & KTRFAC_MASK);
}

void
ktrace_destroy(struct ktrace *t)
{
	list_remove(&t->all);
	ktrace_give_io(t, NULL);
	uidinfo_free(t->ui, t->buf);
	uidinfo_free(t->ui, t);
}
