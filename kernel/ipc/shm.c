/*
 * shm.c - segments of shared memory. A segment is a file in memory without a name. Whoever is
 * attached maps it. As in Linux, each area counts as one attachment, so an area that is cut in two
 * counts twice. After IPC_RMID a segment stays, with its number but without its key, until its last
 * area goes.
 *
 * The areas of a segment have a pager of their own, and say that they write (vm_pager.ref), so that
 * who only looks at an area is not counted.
 *
 * Locking: shm_lock, a spin lock, since areas come and go with the lock of their space held.
 */
#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/mman.h"
#include "kernel/abi/personality.h"
#include "kernel/fs/vfs.h"
#include "kernel/ipc/ipc.h"
#include "kernel/lib/sbuf.h"
#include "kernel/lib/sysctl.h"
#include "kernel/mm/area.h"
#include "kernel/mm/heap.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/mm/uidinfo.h"
#include "kernel/proc/proc.h"
#include "kernel/sync/spinlock.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"
#include "ktr/ktr.h"

struct segment {
	struct ipc_object ipc;
	struct vnode *vn; /* [c] a reference; its `data` is the segment */
	uint64_t size;    /* [c] bytes that were asked for */
	uint64_t attached;
	int64_t atime, dtime;
	uint32_t cpid, lpid;
};

static struct spinlock shm_lock = SPINLOCK_INIT("shm");
static struct ipc_table segments = {.max = IPC_MAX, .next_id = -1};
static uint64_t pages_used; /* as shmall counts them */
static uint64_t shmmax = FILE_SIZE_MAX, shmall = FILE_SIZE_MAX / PAGE_SIZE;

SYSCTL_INT(kernel_shmmni, "kernel.shmmni", SYSCTL_WR, &segments.max, 0, IPC_MAX,
	   "segments of shared memory that there may be");
SYSCTL_INT(kernel_shm_next_id, "kernel.shm_next_id", SYSCTL_WR, &segments.next_id, -1, INT32_MAX,
	   "number that the next segment of shared memory has, -1: any");
SYSCTL_U64(kernel_shmmax, "kernel.shmmax", SYSCTL_WR, &shmmax,
	   "bytes that a segment of shared memory may have");
SYSCTL_U64(kernel_shmall, "kernel.shmall", SYSCTL_WR, &shmall,
	   "pages that all segments of shared memory may have");

static struct segment *
shm_of(struct ipc_object *o)
{
	return (struct segment *)o;
}

static uint64_t
shm_pages(const struct segment *s)
{
	return page_round_up(s->size) / PAGE_SIZE;
}

static void
shm_free(struct segment *s)
{
	if (s == NULL)
		return;
	vnode_unref(s->vn);
	uidinfo_free(s->ipc.ui, s);
}

/* A segment is to go. True: nobody is attached, and the caller frees it. Else the last one does. */
static bool
shm_doom(struct segment *s)
{
	s->ipc.perm.mode |= SHM_DEST;
	ipc_forget_key(&segments, &s->ipc);
	if (s->attached > 0)
		return false;
	ipc_remove(&segments, &s->ipc);
	pages_used -= shm_pages(s);
	return true;
}

/* One user of the segment less. detaches: an area was unmapped. */
static void
shm_drop(struct segment *s, bool detaches)
{
	bool gone;

	spin_lock(&shm_lock);
	s->attached--;
	if (detaches) {
		s->dtime = ipc_now();
		s->lpid = proc_pid();
	}
	gone = (s->ipc.perm.mode & SHM_DEST) && shm_doom(s);
	spin_unlock(&shm_lock);
	if (gone)
		shm_free(s);
}

static void *
shm_pager_page(void *object, uint64_t index, bool make, int *err)
{
	return vnode_pager.page(object, index, make, err);
}

static void
shm_pager_ref(void *object, bool writes)
{
	struct vnode *vn = object;
	struct segment *s = vn->data;

	vnode_pager.ref(vn, false);
	if (!writes)
		return;
	spin_lock(&shm_lock);
	s->attached++;
	s->atime = ipc_now();
	s->lpid = proc_pid();
	spin_unlock(&shm_lock);
}

static void
shm_pager_unref(void *object, bool writes)
{
	struct vnode *vn = object;
	struct segment *s = vn->data;

	vnode_pager.unref(vn, false);
	if (writes)
		shm_drop(s, true);
}

static uint64_t
shm_pager_id(const void *object)
{
	return vnode_pager.id(object);
}

static void
shm_pager_written(void *object, void *page)
{
	vnode_pager.written(object, page);
}

static const struct vm_pager shm_pager = {shm_pager_page, shm_pager_ref, shm_pager_unref,
					  shm_pager_id, shm_pager_written};

/* A segment that is in no table yet. NULL: no memory. */
static struct segment *
shm_make(uint64_t size)
{
	struct uidinfo *ui = proc_uidinfo();
	struct segment *s = uidinfo_alloc(ui, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->ipc.ui = ui;
	s->size = size;
	s->cpid = proc_pid();
	s->vn = vnode_alloc(S_IFREG | 0777, &ramfs_file_ops, s);
	if (s->vn == NULL) {
		uidinfo_free(ui, s);
		return NULL;
	}
	s->vn->size = page_round_up(size);
	return s;
}

/* As ipc_get(). shm_lock held. */
static int
shm_find(int32_t key, uint64_t size, uint64_t flags)
{
	struct ipc_object *o = key != IPC_PRIVATE ? ipc_find_key(&segments, key) : NULL;

	if (key == IPC_PRIVATE)
		return IPC_MAKE;
	if (o != NULL && shm_of(o)->size < size && !((flags & IPC_CREAT) && (flags & IPC_EXCL)))
		return -EINVAL;
	return ipc_get(o, flags);
}

/* shm_lock held. */
static int
shm_add(struct segment *s, int32_t key, uint64_t flags)
{
	int id;

	if (shm_pages(s) > shmall || pages_used > shmall - shm_pages(s))
		return -ENOSPC;
	id = ipc_add(&segments, &s->ipc, key, flags);
	if (id >= 0)
		pages_used += shm_pages(s);
	return id;
}

int64_t
sys_shmget(const uint64_t a[6])
{
	int32_t key = (int32_t)a[0];
	struct segment *s;
	int id;
	bool made;

	spin_lock(&shm_lock);
	id = shm_find(key, a[1], a[2]);
	spin_unlock(&shm_lock);
	if (id != IPC_MAKE)
		return id;
	if (a[1] == 0 || a[1] > shmmax || a[1] > FILE_SIZE_MAX)
		return -EINVAL;
	if (a[2] & SHM_HUGETLB)
		return -ENOENT; /* no file system of huge pages */
	s = shm_make(a[1]);
	if (s == NULL)
		return -ENOMEM;
	spin_lock(&shm_lock);
	id = shm_find(key, a[1], a[2]); /* another thread may have made it */
	made = id == IPC_MAKE;
	if (made)
		id = shm_add(s, key, a[2]);
	spin_unlock(&shm_lock);
	if (!made || id < 0)
		shm_free(s);
	CTR3(KTR_PROC, "shmget: key %d bytes %lu id %d", key, a[1], id);
	return id;
}

static int64_t
shm_map(struct segment *s, const uint64_t a[6])
{
	bool fixed = a[1] != 0, reads = a[2] & SHM_RDONLY;
	const struct area_source from = {.pager = &shm_pager,
					 .object = s->vn,
					 .shared = true,
					 .read_only = reads,
					 .writes = true};
	int64_t at =
	    vm_map_any(curproc()->vm, a[1] & ~(PAGE_SIZE - 1), s->vn->size,
		       MMU_READ | (reads ? 0 : MMU_WRITE) |
			   (a[2] & SHM_EXEC || proc_personality() & READ_IMPLIES_EXEC ? MMU_EXEC
										      : 0),
		       !fixed             ? VM_ANYWHERE
		       : a[2] & SHM_REMAP ? VM_REPLACE
					  : VM_IF_FREE,
		       &from, proc_limit(RLIMIT_AS));

	return at == -EEXIST ? -EINVAL : at;
}

int64_t
sys_shmat(const uint64_t a[6])
{
	uint32_t access =
	    IPC_READ | (a[2] & SHM_RDONLY ? 0 : IPC_WRITE) | (a[2] & SHM_EXEC ? 0111 : 0);
	struct ipc_object *o;
	int64_t at;

	if ((a[1] % PAGE_SIZE != 0 && !(a[2] & SHM_RND)) ||
	    (a[1] < PAGE_SIZE && (a[2] & SHM_REMAP)))
		return -EINVAL;
	spin_lock(&shm_lock);
	o = ipc_find(&segments, (int32_t)a[0]);
	at = o == NULL ? -EINVAL : ipc_may(o, access);
	if (at == 0)
		shm_of(o)->attached++; /* it stays meanwhile */
	spin_unlock(&shm_lock);
	if (at != 0)
		return at;
	at = shm_map(shm_of(o), a);
	CTR3(KTR_PROC, "shmat: id %d address %p attached %lu", (int)a[0], (void *)at,
	     shm_of(o)->attached);
	shm_drop(shm_of(o), false);
	return at;
}

/*
 * Unmaps all areas of the segment that was attached at the address. They may be in pieces, with
 * others between them.
 */
int64_t
sys_shmdt(const uint64_t a[6])
{
	struct vmspace *vm = curproc()->vm;
	struct vm_range r = {.end = a[0]};
	const struct vnode *vn = NULL;
	uint64_t size = UINT64_MAX;
	int error = a[0] % PAGE_SIZE != 0 ? -EINVAL : 0;

	while (error == 0 && vm_range_next(vm, &r) && r.start - a[0] < size) {
		if (r.pager == &shm_pager && r.start - a[0] == r.offset &&
		    (vn == NULL || vn == r.object)) {
			error = vm_range_unmap(vm, &r);
			if (error == 0) {
				vn = r.object;
				size = vn->size;
			} else if (error == -ENOENT) {
				error = 0; /* another thread was faster */
			}
		}
		if (r.object != NULL)
			vnode_pager.unref(r.object, false);
	}
	CTR2(KTR_PROC, "shmdt: address %p found %u", (void *)a[0], vn != NULL);
	return error != 0 ? error : vn == NULL ? -EINVAL : 0;
}

/* shm_lock held. */
static struct shmid_ds
shm_tell(const struct segment *s)
{
	return (struct shmid_ds){.perm = s->ipc.perm,
				 .segsz = s->size,
				 .atime = s->atime,
				 .dtime = s->dtime,
				 .ctime = s->ipc.changed,
				 .cpid = s->cpid,
				 .lpid = s->lpid,
				 .nattch = s->attached};
}

/* Pages that are there. */
static uint64_t
shm_resident(const struct segment *s)
{
	return __atomic_load_n(&s->vn->page_count, __ATOMIC_RELAXED);
}

/* Pages of all segments. The lock, which turns interrupts off, is held for a few at a time. */
static uint64_t
shm_all_resident(void)
{
	uint64_t pages = 0;

	for (unsigned from = 0; from < IPC_MAX; from += 64) {
		spin_lock(&shm_lock);
		for (unsigned i = from; i < from + 64 && i < segments.end; i++)
			if (segments.slots[i] != NULL)
				pages += shm_resident(shm_of(segments.slots[i]));
		spin_unlock(&shm_lock);
	}
	return pages;
}

/* IPC_INFO, SHM_INFO. */
static int64_t
shm_limits(int command, uint64_t to)
{
	struct shminfo limits = {.shmmax = shmmax,
				 .shmmin = 1,
				 .shmmni = (uint64_t)segments.max,
				 .shmseg = (uint64_t)segments.max,
				 .shmall = shmall};
	struct shm_info used = {0};
	int error, last;

	if (command != IPC_INFO)
		used.shm_rss = shm_all_resident();
	spin_lock(&shm_lock);
	used.used_ids = (int32_t)segments.used;
	used.shm_tot = pages_used;
	last = ipc_last(&segments);
	spin_unlock(&shm_lock);
	error = command == IPC_INFO ? copy_out(to, &limits, sizeof(limits))
				    : copy_out(to, &used, sizeof(used));
	return error != 0 ? error : last;
}

/* IPC_STAT; SHM_STAT and SHM_STAT_ANY: of an index. */
static int64_t
shm_status(int32_t id, int command, uint64_t to)
{
	const struct ipc_object *o;
	struct shmid_ds ds;
	int r;

	spin_lock(&shm_lock);
	o = ipc_find_status(&segments, id, command, command == SHM_STAT_ANY, &r);
	if (o != NULL)
		ds = shm_tell((const struct segment *)o);
	spin_unlock(&shm_lock);
	return r >= 0 && copy_out(to, &ds, sizeof(ds)) != 0 ? -EFAULT : r;
}

/* May the current process lock the segment, or unlock it? Its pages always stay in memory. */
static int
shm_may_lock(const struct ipc_object *o, bool lock)
{
	if (capable(CAP_IPC_LOCK))
		return 0;
	if (proc_effective_user() != o->perm.uid && proc_effective_user() != o->perm.cuid)
		return -EPERM;
	return lock && proc_limit(RLIMIT_MEMLOCK) == 0 ? -EPERM : 0;
}

/* The commands that change a segment, or remove it. shm_lock held. *gone: it is to be freed. */
static int
shm_change(struct segment *s, int command, const struct shmid_ds *ds, bool *gone)
{
	bool locks = command == SHM_LOCK || command == SHM_UNLOCK;
	int error = locks ? shm_may_lock(&s->ipc, command == SHM_LOCK) : ipc_may_change(&s->ipc);

	if (error != 0)
		return error;
	if (command == IPC_SET)
		return ipc_set(&s->ipc, &ds->perm);
	if (command == IPC_RMID)
		*gone = shm_doom(s);
	else
		s->ipc.perm.mode = (s->ipc.perm.mode & ~(uint32_t)SHM_LOCKED) |
				   (command == SHM_LOCK ? SHM_LOCKED : 0);
	return 0;
}

int64_t
sys_shmctl(const uint64_t a[6])
{
	int command = (int)a[1], error;
	struct shmid_ds ds;
	struct ipc_object *o;
	bool gone = false;

	if ((int32_t)a[0] < 0 || command < 0)
		return -EINVAL;
	if (command == IPC_INFO || command == SHM_INFO)
		return shm_limits(command, a[2]);
	if (command == IPC_STAT || command == SHM_STAT || command == SHM_STAT_ANY)
		return shm_status((int32_t)a[0], command, a[2]);
	if (command != IPC_SET && command != IPC_RMID && command != SHM_LOCK &&
	    command != SHM_UNLOCK)
		return -EINVAL;
	if (command == IPC_SET && copy_in(&ds, a[2], sizeof(ds)) != 0)
		return -EFAULT;
	spin_lock(&shm_lock);
	o = ipc_find(&segments, (int32_t)a[0]);
	error = o == NULL ? -EINVAL : shm_change(shm_of(o), command, &ds, &gone);
	spin_unlock(&shm_lock);
	if (gone)
		shm_free(shm_of(o));
	return error;
}

/* What the table tells of the first segment from index *i on, which *i becomes. False: no more. */
static bool
shm_row(unsigned *i, struct shmid_ds *ds, int *id, uint64_t *pages)
{
	const struct segment *s = NULL;

	spin_lock(&shm_lock);
	*i = ipc_next_taken(&segments, *i);
	if (*i < segments.end) {
		s = shm_of(segments.slots[*i]);
		*ds = shm_tell(s);
		*id = s->ipc.id;
		*pages = shm_resident(s);
	}
	spin_unlock(&shm_lock);
	return s != NULL;
}

/* The lock, which turns interrupts off, is held for a row at a time, and not to print it. */
void
ipc_print_shm(struct sbuf *out)
{
	struct shmid_ds ds;
	uint64_t pages;
	int id;

	sbuf_puts(
	    out,
	    "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  "
	    "cgid      atime      dtime      ctime                   rss                  swap\n");
	for (unsigned i = 0; shm_row(&i, &ds, &id, &pages); i++) {
		sbuf_printf(out, "%10d %10d  %4o %21lu %5u %5u  %5lu %5u %5u %5u %5u ", ds.perm.key,
			    id, ds.perm.mode, ds.segsz, ds.cpid, ds.lpid, ds.nattch, ds.perm.uid,
			    ds.perm.gid, ds.perm.cuid, ds.perm.cgid);
		sbuf_printf(out, "%10ld %10ld %10ld %21lu %21u\n", ds.atime, ds.dtime, ds.ctime,
			    pages * PAGE_SIZE, 0);
	}
}
