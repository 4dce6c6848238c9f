/*
 * vdso.c - the page of code that each program gets (kernel/proc/vdso/): a file without a name, of
 * which exec() maps the one page above the stack, read-only. Locking: none; only vdso_clock_set()
 * writes to the page after the boot.
 */
#include "kernel/proc/vdso.h"

#include "arch/mmu.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/uio.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/panic.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/proc/vdso/data.h"

extern const char vdso_image[PAGE_SIZE];

static struct vnode *vdso;
static struct vdso_data *data; /* in the page of all programs */

void
vdso_init(void)
{
	struct uio_vec v;
	struct uio io;
	uint64_t off = 0;
	char *page;
	int error;

	vdso = vnode_alloc(S_IFREG | 0555, &ramfs_file_ops, NULL);
	if (vdso == NULL)
		panic("no memory for the vDSO");
	uio_init(&io, &v, UIO_KERNEL, (void *)(uintptr_t)vdso_image, PAGE_SIZE);
	if (vdso->ops->write(vdso, NULL, &io, &off) != PAGE_SIZE)
		panic("no memory for the vDSO");
	page = vdso->ops->page(vdso, 0, false, &error);
	data = (struct vdso_data *)(page + VDSO_DATA_AT);
	data->scale = clock_scale;
	vdso_clock_set();
}

void
vdso_clock_set(void)
{
	__atomic_store_n(&data->real_ns, clock_real_ns(0), __ATOMIC_RELAXED);
}

int
vdso_map(struct vmspace *vm)
{
	struct area_source from = {.pager = &vnode_pager, .object = vdso};
	int64_t at =
	    vm_map_any(vm, VDSO_AT, PAGE_SIZE, MMU_READ | MMU_EXEC, VM_IF_FREE, &from, UINT64_MAX);

	return at < 0 ? (int)at : 0;
}

bool
vdso_is(const struct vnode *vn)
{
	return vn != NULL && vn == vdso;
}
