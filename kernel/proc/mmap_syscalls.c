/*
 * mmap_syscalls.c - system calls on memory. Locking: none here.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/mman.h"
#include "kernel/abi/personality.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/file.h"
#include "kernel/fs/memfd.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/area.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/proc.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"

#define DEV_ZERO 0x105 /* the number of /dev/zero, 1:5 */

/* Flags that mmap() takes, also those without an effect, but for MAP_SYNC. */
#define MAP_KNOWN                                                                                  \
	(MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | 0x40 /* 32BIT */ | MAP_GROWSDOWN | MAP_DENYWRITE | \
	 0x1000 /* EXECUTABLE */ | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE |                     \
	 0x10000 /* NONBLOCK */ | MAP_STACK | MAP_FIXED_NOREPLACE)

static unsigned
mmu_prot(uint64_t prot)
{
	return (prot & (PROT_READ | PROT_WRITE | PROT_EXEC) ? MMU_READ : 0) |
	       (prot & PROT_WRITE ? MMU_WRITE : 0) | (prot & PROT_EXEC ? MMU_EXEC : 0);
}

static bool
read_is_exec(void)
{
	return proc_personality() & READ_IMPLIES_EXEC;
}

/* May the current process have locked memory? */
static bool
may_lock(void)
{
	return proc_limit(RLIMIT_MEMLOCK) != 0 || capable(CAP_IPC_LOCK);
}

/* The current process's memory, told how much of it may be locked. */
static struct vmspace *
limit_locks(void)
{
	struct vmspace *vm = curproc()->vm;

	vm_limit_locks(vm, capable(CAP_IPC_LOCK) ? UINT64_MAX : proc_limit(RLIMIT_MEMLOCK));
	return vm;
}

/* The open file from which pages come. 0, or -errno. */
static int
file_source(const struct file *f, uint64_t prot, struct area_source *from)
{
	int how = f->flags & O_ACCMODE;

	if (how == O_WRONLY || (from->shared && (prot & PROT_WRITE) && how != O_RDWR))
		return -EACCES;
	if (S_ISCHR(f->vn->mode) && f->vn->rdev == DEV_ZERO) { /* new pages */
		from->read_only = from->shared && how != O_RDWR;
		return 0;
	}
	if (f->vn->ops->page == NULL)
		return -ENODEV;
	from->no_exec = vfs_mount_flags(f->vn) & MS_NOEXEC;
	if (from->no_exec && (prot & PROT_EXEC))
		return -EPERM;
	from->read_only = from->shared && (how != O_RDWR || !vnode_keeps_pages(f->vn));
	from->writes = from->shared && f->writes && !from->read_only;
	if (from->read_only && (prot & PROT_WRITE))
		return -EINVAL;
	from->object = f->vn;
	return 0;
}

static int64_t
mmap_map(const uint64_t a[6], struct area_source *from)
{
	enum vm_place place = a[3] & MAP_FIXED_NOREPLACE ? VM_IF_FREE
			      : a[3] & MAP_FIXED         ? VM_REPLACE
							 : VM_ANYWHERE;
	unsigned prot = mmu_prot(a[2]);

	if ((a[2] & PROT_READ) && read_is_exec() && !from->no_exec)
		prot |= MMU_EXEC;
	if (from->object != NULL)
		from->pager = &vnode_pager;
	return vm_map_any(limit_locks(), a[0], a[1], prot, place, from, proc_limit(RLIMIT_AS));
}

/* Maps memory that processes share: pages of a file without a name, as many as one can have. */
static int64_t
map_shared_memory(const uint64_t a[6], struct area_source *from)
{
	uint64_t size = page_round_up(a[1]);
	struct vnode *vn = NULL;
	int64_t r;

	if (size <= FILE_SIZE_MAX)
		vn = vnode_alloc(S_IFREG | 0777, &ramfs_file_ops, NULL);
	if (vn == NULL)
		return -ENOMEM;
	vn->size = size;
	from->object = vn;
	r = mmap_map(a, from);
	vnode_unref(vn);
	return r;
}

/* A file may have seals. */
static int64_t
map_shared_file(const uint64_t a[6], struct area_source *from)
{
	struct vnode *vn = from->object;
	bool counted = !from->read_only;
	int64_t r = memfd_map_begin(vn, a[2] & PROT_WRITE, &from->read_only);

	if (r == 0) {
		from->writes &= !from->read_only;
		r = mmap_map(a, from);
	}
	if (counted)
		memfd_map_end(vn);
	return r;
}

int64_t
sys_mmap(const uint64_t a[6])
{
	struct area_source from = {.offset = a[5],
				   .shared = (a[3] & MAP_TYPE) != MAP_PRIVATE,
				   .locked = a[3] & MAP_LOCKED};
	bool anonymous = a[3] & MAP_ANONYMOUS;
	const struct file *f = anonymous ? NULL : filetable_get(curproc()->files, (uint32_t)a[4]);
	int r;

	if (a[5] % PAGE_SIZE != 0)
		return -EINVAL;
	if (!anonymous && f == NULL)
		return -EBADF;
	if (a[1] == 0 || (a[3] & MAP_TYPE) == 0 || (a[3] & MAP_TYPE) > MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (page_round_up(a[1]) == 0)
		return -ENOMEM;
	if (!anonymous && a[5] + a[1] < a[5])
		return -EOVERFLOW;
	if ((a[3] & MAP_TYPE) == MAP_SHARED_VALIDATE && (a[3] & ~(uint64_t)MAP_KNOWN))
		return -EOPNOTSUPP;
	if (from.locked && !may_lock())
		return -EPERM;
	if (a[3] & MAP_GROWSDOWN) { /* new memory of this program alone */
		if (from.shared || !anonymous)
			return -EINVAL;
		from.grows_to = proc_limit(RLIMIT_STACK);
		from.space_max = proc_limit(RLIMIT_AS);
	}
	r = anonymous ? 0 : file_source(f, a[2], &from);
	if (r != 0)
		return r;
	if (from.object == NULL)
		from.offset = 0;
	if (from.object == NULL && from.shared)
		return map_shared_memory(a, &from);
	return from.shared ? map_shared_file(a, &from) : mmap_map(a, &from);
}

SYSCALL_IS(munmap, vm_unmap(curproc()->vm, a[0], a[1]))

int64_t
sys_mprotect(const uint64_t a[6])
{
	const uint64_t grows = PROT_GROWSDOWN | PROT_GROWSUP;
	uint64_t known = PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM | grows;
	unsigned how = (a[2] & PROT_READ) && read_is_exec() ? VM_PROTECT_EXEC : 0;

	if ((a[2] & grows) == grows || a[0] % PAGE_SIZE != 0)
		return -EINVAL;
	if (a[1] == 0)
		return 0;
	if (a[2] & ~known)
		return -EINVAL;
	if (a[2] & PROT_GROWSUP) /* nothing does */
		return vm_is_mapped(curproc()->vm, a[0], PAGE_SIZE) ? -EINVAL : -ENOMEM;
	how |= a[2] & PROT_GROWSDOWN ? VM_PROTECT_DOWN : 0;
	return vm_protect(curproc()->vm, a[0], a[1], mmu_prot(a[2]), how);
}

int64_t
sys_brk(const uint64_t a[6])
{
	struct vmspace *vm = limit_locks();
	uint64_t end = a[0], data = proc_limit(RLIMIT_DATA);
	struct vm_info info;

	if (data != RLIM_INFINITY) {
		vm_info_get(vm, &info);
		if (end > info.brk_start && end - info.brk_start > data)
			end = 0; /* it stays */
	}
	return (int64_t)vm_brk(vm, end, MMU_READ | MMU_WRITE | (read_is_exec() ? MMU_EXEC : 0),
			       proc_limit(RLIMIT_AS));
}

int64_t
sys_mremap(const uint64_t a[6])
{
	struct remap r = {.start = a[0], .old_size = a[1], .size = a[2], .flags = a[3], .to = a[4]};

	return a[3] <= UINT32_MAX ? vm_remap(limit_locks(), r, proc_limit(RLIMIT_AS)) : -EINVAL;
}

/* Makes the pages of a range, as if each were read or written. */
static int
mmap_populate(uint64_t at, uint64_t size, unsigned access)
{
	struct vmspace *vm = curproc()->vm;

	for (uint64_t end = at + page_round_up(size); at < end; at += PAGE_SIZE) {
		enum vm_fault r = vm_fault(vm, at, access);

		if (r != VM_FAULT_SERVED)
			return r == VM_FAULT_DENIED   ? -EINVAL
			       : r == VM_FAULT_BEYOND ? -EFAULT
						      : -ENOMEM;
		if (proc_signal_pending())
			return -EINTR;
	}
	return 0;
}

int64_t
sys_madvise(const uint64_t a[6])
{
	struct vmspace *vm = curproc()->vm;
	uint32_t advice = (uint32_t)a[2];

	if (a[0] % PAGE_SIZE != 0 || page_round_up(a[1]) < a[1] ||
	    a[0] + page_round_up(a[1]) < a[0] ||
	    (advice > MADV_WILLNEED && advice < MADV_FREE && advice != MADV_DONTNEED) ||
	    advice > MADV_POPULATE_WRITE)
		return -EINVAL;
	if (a[1] == 0)
		return 0;
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
		return vm_forget(vm, a[0], a[1], advice == MADV_DONTNEED);
	case MADV_REMOVE: /* holes are made by fallocate() only */
		return -EINVAL;
	case MADV_DONTFORK:
		return vm_set_inherit(vm, a[0], a[1], VM_INHERIT_NOTHING);
	case MADV_DOFORK:
		return vm_set_inherit(vm, a[0], a[1], VM_INHERIT);
	case MADV_WIPEONFORK:
		return vm_set_inherit(vm, a[0], a[1], VM_WIPE);
	case MADV_KEEPONFORK:
		return vm_set_inherit(vm, a[0], a[1], VM_WIPE_NOT);
	case MADV_POPULATE_READ:
		return mmap_populate(a[0], a[1], MMU_READ);
	case MADV_POPULATE_WRITE:
		return mmap_populate(a[0], a[1], MMU_WRITE);
	default: /* only says what is faster */
		return vm_is_mapped(vm, a[0], a[1]) ? 0 : -ENOMEM;
	}
}

/*
 * Syncs the files that are mapped shared there, whose pages are clean, if MS_SYNC is given. Stops
 * at the first error, which is -EBUSY at what is locked, with MS_INVALIDATE.
 */
static int
sync_range(struct vmspace *vm, uint64_t start, uint64_t size, uint64_t flags)
{
	struct vm_range r = {.end = start};
	int error = 0;

	while (error == 0 && r.end - start < size && vm_range_next(vm, &r)) {
		bool in = r.start <= start || r.start - start < size;
		bool wanted = in && r.shared && (flags & MS_SYNC);

		if (in && r.locked && (flags & MS_INVALIDATE))
			error = -EBUSY;
		else if (r.object != NULL && wanted)
			error = vnode_sync(r.object);
		if (r.object != NULL)
			vnode_pager.unref(r.object, false);
	}
	return error;
}

/*
 * What was written to a shared page is in the file already; MS_SYNC puts it on the disk, too. What
 * is mapped is synced even if a part of the range is not mapped.
 */
int64_t
sys_msync(const uint64_t a[6])
{
	struct vmspace *vm = curproc()->vm;
	int error = 0;

	if (a[0] % PAGE_SIZE != 0 ||
	    ((uint32_t)a[2] & ~(uint32_t)(MS_ASYNC | MS_INVALIDATE | MS_SYNC)) ||
	    (a[2] & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC))
		return -EINVAL;
	if (a[1] == 0)
		return 0;
	if (a[0] >= ARCH_USER_END || a[1] > ARCH_USER_END - a[0])
		return -ENOMEM;
	if (a[2] & (MS_ASYNC | MS_SYNC))
		vm_clean(vm, a[0], a[1]);
	if (a[2] & (MS_SYNC | MS_INVALIDATE))
		error = sync_range(vm, a[0], a[1], a[2]);
	return error != 0 || vm_is_mapped(vm, a[0], a[1]) ? error : -ENOMEM;
}

/*
 * Makes the pages be there. A page of this program alone is then locked, since those are never
 * taken away to make room. A page of a file that is mapped shared may be, and comes back when it is
 * used.
 */
static int64_t
lock_pages(uint64_t at, uint64_t end)
{
	struct vmspace *vm = curproc()->vm;

	for (; at < end; at += PAGE_SIZE) {
		uint64_t id, off;
		bool shared = vm_shared_at(vm, at, &id, &off); /* then nothing is to be copied */
		unsigned access = vm_allows(vm, at, MMU_WRITE) && !shared ? MMU_WRITE : MMU_READ;

		if (proc_signal_pending())
			return -EINTR;
		if (vm_fault(vm, at, access) != VM_FAULT_SERVED)
			return -ENOMEM;
	}
	return 0;
}

static int64_t
lock_range(uint64_t start, uint64_t size, uint32_t flags, enum vm_inherit how)
{
	uint64_t at = start & ~(PAGE_SIZE - 1), end = page_round_up(start + size);
	struct vmspace *vm = limit_locks();
	int64_t r;

	if (flags & ~(uint32_t)MLOCK_ONFAULT)
		return -EINVAL;
	if (how == VM_LOCK && !may_lock())
		return -EPERM;
	if (end < at)
		return -EINVAL;
	if (size == 0)
		return 0;
	r = vm_set_inherit(vm, at, end - at, how);
	return r == 0 && how == VM_LOCK && flags == 0 ? lock_pages(at, end) : r;
}

SYSCALL_IS(mlock, lock_range(a[0], a[1], 0, VM_LOCK))
SYSCALL_IS(mlock2, lock_range(a[0], a[1], (uint32_t)a[2], VM_LOCK))
SYSCALL_IS(munlock, lock_range(a[0], a[1], 0, VM_LOCK_NOT))

int64_t
sys_mlockall(const uint64_t a[6])
{
	uint32_t flags = (uint32_t)a[0];

	if (flags == 0 || (flags & ~(uint32_t)MCL_ALL) || flags == MCL_ONFAULT)
		return -EINVAL;
	if (!may_lock())
		return -EPERM;
	return vm_lock_all(limit_locks(), flags & MCL_CURRENT, flags & MCL_FUTURE);
}

int64_t
sys_munlockall(const uint64_t a[6])
{
	return vm_lock_all(curproc()->vm, false, false);
}

/* Is the page of a file in memory? Who could not write to the file is told nothing. */
static bool
file_page_is_there(struct vnode *vn, uint64_t index)
{
	return (!vnode_is_own(vn) && vnode_access(vn, VNODE_WRITE) != 0) ||
	       pagecache_find(vn, index, false) != NULL;
}

int64_t
sys_mincore(const uint64_t a[6])
{
	uint64_t at = a[0], end = page_round_up(a[0] + a[1]), to = a[2];
	struct vmspace *vm = curproc()->vm;
	struct vm_range r = {.end = at};
	int error = 0;

	if (at % PAGE_SIZE != 0)
		return -EINVAL;
	if (end < at || end < a[1])
		return -ENOMEM;
	while (at < end && error == 0) {
		if (!vm_range_next(vm, &r))
			return -ENOMEM;
		if (r.start > at)
			error = -ENOMEM;
		for (; at < end && at < r.end && error == 0; at += PAGE_SIZE) {
			uint64_t index = (r.offset + at - r.start) / PAGE_SIZE;
			uint8_t there;

			there = vm_read(vm, at, &there, 1) == 1 ||
				(r.object != NULL && file_page_is_there(r.object, index));
			error = proc_signal_pending() ? -EINTR : copy_out(to++, &there, 1);
		}
		if (r.object != NULL)
			vnode_pager.unref(r.object, false);
	}
	return error;
}
