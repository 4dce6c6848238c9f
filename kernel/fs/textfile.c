/*
 * textfile.c - files whose text the kernel makes when they are read (textfile.h).
 * Locking: each open file has a mutex, which guards its text.
 */
#include "kernel/fs/textfile.h"

#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/sbuf.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/kmap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uidinfo.h"

#define WRITE_MAX (4 * PAGE_SIZE) /* bytes of one write, or that are taken of a list */
/* What programs copy a list in has so many bytes, or some times as many. */
#define WRITE_BLOCK 512u

/* An open file, and its text if that was read. The lock guards both. */
struct reader {
	struct mutex lock;
	size_t len, room;
	char *text; /* room bytes: of kmap_alloc() if they are more than a page; NULL: none yet */
};

int
textfile_open(struct file *f)
{
	struct reader *r = kzalloc(sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	mutex_init(&r->lock, "text file");
	f->priv = r;
	return 0;
}

static void
drop_text(struct file *f, struct reader *r)
{
	if (r->text == NULL)
		return;
	if (r->room > PAGE_SIZE)
		kmap_free(r->text);
	else
		kfree(r->text);
	uidinfo_release(f->ui, UIDINFO_KMEM, r->room);
	r->text = NULL;
}

void
textfile_release(struct file *f)
{
	drop_text(f, f->priv);
	kfree(f->priv);
}

static int
textfile_make_room(struct file *f, struct reader *r, size_t room)
{
	drop_text(f, r);
	if (!uidinfo_charge(f->ui, UIDINFO_KMEM, room))
		return -ENOMEM;
	r->text = room > PAGE_SIZE ? kmap_alloc(room) : kmalloc(room); /* most fit in a page */
	if (r->text == NULL)
		uidinfo_release(f->ui, UIDINFO_KMEM, room);
	r->room = room;
	return r->text != NULL ? 0 : -ENOMEM;
}

/* Makes the text, in memory that fits it. */
static int
make_text(struct file *f, struct reader *r)
{
	size_t room = r->text != NULL ? r->room : PAGE_SIZE;
	struct sbuf out;
	int error;

	do {
		error = r->text != NULL && r->room == room ? 0 : textfile_make_room(f, r, room);
		if (error != 0)
			break;
		sbuf_init(&out, r->text, room);
		error = f->vn->ops->show(f->vn, &out);
		room = page_round_up(out.len + PAGE_SIZE); /* it may have grown when made again */
	} while (error == 0 && sbuf_is_cut(&out));
	r->len = error == 0 ? out.len : 0;
	if (error != 0)
		drop_text(f, r);
	return error;
}

int64_t
textfile_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	struct reader *r = f != NULL ? f->priv : NULL;
	size_t start = u->resid;
	int error = 0;

	if (r == NULL)
		return -EINVAL;
	mutex_lock(&r->lock);
	if (*off == 0 || r->text == NULL)
		error = make_text(f, r);
	if (error == 0 && *off < r->len)
		error = uio_put(u, r->text + *off, start < r->len - *off ? start : r->len - *off);
	*off += start - u->resid;
	mutex_unlock(&r->lock);
	return start != u->resid ? (int64_t)(start - u->resid) : error;
}

/*
 * Returns how many of n bytes are whole lines or words, or -EINVAL. A program that copies a list
 * writes it in blocks, which end anywhere. So of full blocks only these are taken, and the program
 * writes the rest again.
 */
static int64_t
whole_parts(const char *text, size_t n, char separator)
{
	size_t whole = n;

	while (n % WRITE_BLOCK == 0 && whole > 0 && text[whole - 1] != '\n' &&
	       (separator == '\n' || !textfile_is_blank(text[whole - 1])))
		whole--;
	if (whole == 0 && n == WRITE_MAX)
		return -EINVAL; /* its rest would be taken for another one */
	return (int64_t)(whole > 0 ? whole : n);
}

int64_t
textfile_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off)
{
	size_t n = u->resid < WRITE_MAX ? u->resid : WRITE_MAX;
	char *text;
	int64_t error, taken = (int64_t)n;

	if (n < u->resid && vn->ops->parts == 0)
		return -EINVAL;
	text = kmalloc(n + 1);
	if (text == NULL)
		return -ENOMEM;
	error = uio_take(u, text, n);
	if (error == 0 && vn->ops->parts != 0)
		error = taken = whole_parts(text, n, vn->ops->parts);
	if (error >= 0) {
		text[taken] = '\0';
		if (taken > 0 && text[taken - 1] == '\n')
			text[taken - 1] = '\0';
		error = vn->ops->store(vn, text);
	}
	kfree(text);
	if (error < 0)
		return error;
	*off += (uint64_t)taken;
	return taken;
}
