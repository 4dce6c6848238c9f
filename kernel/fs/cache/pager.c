/*
 * pager.c - vnodes whose pages programs map (struct vm_pager, kernel/vm/vm.h). Locking: vfs.h.
 */
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/page.h"
#include "kernel/vm/vm.h"

static void *
pager_page(void *object, uint64_t index, bool make, int *err)
{
	struct vnode *vn = object;

	return vn->ops->page(vn, index, make, err);
}

/* A map through which programs write lives longer than the open file. */
static void
pager_ref(void *object, bool writes)
{
	struct vnode *vn = vnode_ref(object);

	/* before a fault asks for the size: who cuts the file sees the map, or the fault the cut */
	__atomic_fetch_add(&vn->maps, 1, __ATOMIC_SEQ_CST);
	if (writes && vnode_write_begin(vn) != 0)
		panic("vnode %lu: executed, and mapped for writing", vn->ino);
}

static void
pager_unref(void *object, bool writes)
{
	struct vnode *vn = object;

	if (writes)
		vnode_write_end(vn);
	__atomic_fetch_sub(&vn->maps, 1, __ATOMIC_RELAXED);
	vnode_unref(vn);
}

static uint64_t
pager_id(const void *object)
{
	const struct vnode *vn = object;

	if (vn->nameless)
		panic("vnode %lu is mapped, but its number may be another one's, too", vn->ino);
	return (uint64_t)vn->dev << 32 ^ vn->ino; /* on a disk, numbers are one file system's */
}

/* Takes no lock of the vnode, which a read that faults here may hold. */
static void
pager_written(void *object, void *page)
{
	struct vnode *vn = object;
	uint64_t now = clock_real_now_ns(), was = vn->mtime_ns;

	__atomic_store_n(&vn->mtime_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&vn->ctime_ns, now, __ATOMIC_RELAXED);
	if (now / 1000000000 != was / 1000000000) /* what a disk keeps */
		vnode_changed(vn, VNODE_DATA);
	if (vn->ops->readpage != NULL)
		pagecache_dirty_map(page);
}

const struct vm_pager vnode_pager = {pager_page, pager_ref, pager_unref, pager_id, pager_written};

void
writeback_throttle_map(struct vmspace *vm, uintptr_t va)
{
	struct vm_range r = {.end = page_round_down(va)};
	const struct vnode *vn;
	bool dirties;

	if (!writeback_is_late() || !vm_range_next(vm, &r) || r.object == NULL)
		return;
	vn = r.object;
	dirties = r.start <= va && r.shared && vn->ops->readpage != NULL;
	vnode_pager.unref(r.object, false);
	if (dirties)
		writeback_throttle();
}
