/*
 * io.c - the files that ktrace writes, as they were opened, and who is traced to them. Locking:
 * ktrace_lock.
 */
#include "kernel/fs/file.h"
#include "kernel/ktrace/ktrace_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"

struct mutex ktrace_lock = MUTEX_INIT("ktrace");
struct list ktrace_all = LIST_INIT(ktrace_all);
struct list ktrace_files = LIST_INIT(ktrace_files);

static struct ktrace_file *
ktrace_find_file(const struct vnode *vn)
{
	list_for_each_entry (struct ktrace_file, file, &ktrace_files, all)
		if (file->vn == vn && file->ios > 0)
			return file;
	return NULL;
}

/* Finds an io with the same rights, to which somebody is traced. */
static struct ktrace_io *
ktrace_find_alike(const struct ktrace_file *file, const struct ktrace_io *a)
{
	list_for_each_entry (struct ktrace, t, &file->members, member) {
		struct ktrace_io *b = t->io;

		if (!b->dead && memcmp(&a->cred, &b->cred, sizeof(a->cred)) == 0 &&
		    a->limit == b->limit)
			return b;
	}
	return NULL;
}

struct ktrace_io *
ktrace_io_get(const struct ktrace_io *open, struct uidinfo *ui)
{
	struct ktrace_file *file = ktrace_find_file(open->f->vn);
	struct ktrace_io *io = file != NULL ? ktrace_find_alike(file, open) : NULL;

	if (io == NULL) {
		io = kmalloc(sizeof(*io));
		if (io != NULL && file == NULL)
			file = ktrace_file_make(open->f->vn, ui);
		if (io == NULL || file == NULL) {
			kfree(io);
			return NULL;
		}
		*io = *open;
		io->refs = 0;
		io->file = file;
		file_ref(io->f);
		file->ios++;
	}
	io->refs++;
	return io;
}

void
ktrace_io_drop(struct ktrace_io *io)
{
	struct ktrace_file *file = io->file;

	if (--io->refs > 0)
		return;
	file->ios--;
	io->next = file->unused;
	file->unused = io;
	cond_signal(&file->asked);
}

void
ktrace_close_unused(struct ktrace_file *file)
{
	struct ktrace_io *next, *io = file->unused;

	if (io == NULL)
		return;
	file->unused = NULL;
	mutex_unlock(&ktrace_lock);
	for (; io != NULL; io = next) {
		next = io->next;
		file_unref(io->f);
		kfree(io);
	}
	mutex_lock(&ktrace_lock);
}

void
ktrace_give_io(struct ktrace *t, struct ktrace_io *io)
{
	struct ktrace_io *old = t->io;

	io->refs++;
	t->io = io;
	if (old != NULL) {
		ktrace_io_drop(old);
	} else {
		list_append(&io->file->members, &t->member);
		cond_signal(&io->file->asked); /* perhaps nobody was traced to it */
	}
}

void
ktrace_select_needed(void)
{
	uint32_t facs = 0;

	list_for_each_entry (struct ktrace, t, &ktrace_all, all)
		if (!t->left)
			facs |= __atomic_load_n(&t->facs, __ATOMIC_RELAXED);
	ktrace_hook_select(facs & KTRFAC_MASK);
}

void
ktrace_destroy(struct ktrace *t)
{
	list_remove(&t->all);
	if (t->io != NULL) {
		t->proc->traces--;
		list_remove(&t->member);
		ktrace_io_drop(t->io);
	}
	uidinfo_free(t->ui, t->buf);
	uidinfo_free(t->ui, t);
}
