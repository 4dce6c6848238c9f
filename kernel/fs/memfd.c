/*
 * memfd.c - files in memory without a name, and their seals: what nobody can do to them any more.
 *
 * A map that could write and F_SEAL_WRITE exclude each other. Whoever maps the file so counts
 * itself in `sharing` before it looks at the seals; whoever seals the file sets the seals before it
 * looks at `sharing`, and for maps. Locking: vn->lock for the seals.
 */
#include "kernel/fs/memfd.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/mm/uaccess.h"
#include "kernel/syscall.h"
#include "kernel/vm/vm.h"

#define NAME_BYTES 249  /* of the name of memfd_create(), which nobody shows */
#define MAY_SEAL   0x80 /* a bit of vn->seals; without it, it is as if F_SEAL_SEAL were set */
#define NO_WRITES  (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

int64_t
sys_memfd_create(const uint64_t a[6])
{
	const uint32_t known = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC;
	uint32_t flags = (uint32_t)a[1];
	char name[NAME_BYTES + 1];
	struct vnode *vn;
	struct file *f;
	int r = copy_in_str(name, a[0], sizeof(name));

	if ((flags & ~known) || r == -ENAMETOOLONG)
		return -EINVAL;
	if (r < 0)
		return r;
	vn = vnode_alloc(S_IFREG | (flags & MFD_NOEXEC_SEAL ? 0666 : 0777), &ramfs_file_ops, NULL);
	if (vn == NULL)
		return -ENOMEM;
	r = file_open_vnode(vn, O_RDWR, &f);
	if (r < 0) {
		vnode_unref(vn);
		return r;
	}
	vnode_write_end(vn); /* the file can be executed while it is open, as on Linux */
	f->writes = false;
	if (flags & MFD_ALLOW_SEALING)
		vn->seals = MAY_SEAL;
	return filetable_install(f, flags & MFD_CLOEXEC ? O_CLOEXEC : 0);
}

int
memfd_check(const struct vnode *vn, uint64_t end, bool writes)
{
	unsigned seals = vn->seals;

	if (seals == 0)
		return 0;
	return (writes && (seals & NO_WRITES)) || (end > vn->size && (seals & F_SEAL_GROW)) ||
		       (!writes && end < vn->size && (seals & F_SEAL_SHRINK))
		   ? -EPERM
		   : 0;
}

int
memfd_map_begin(struct vnode *vn, bool writes, bool *read_only)
{
	unsigned seals;

	if (*read_only)
		return 0; /* a file that is open for reading only keeps no seal away */
	__atomic_fetch_add(&vn->sharing, 1, __ATOMIC_SEQ_CST);
	seals = __atomic_load_n(&vn->seals, __ATOMIC_SEQ_CST);
	if (!(seals & NO_WRITES))
		return 0;
	if (writes || (seals & F_SEAL_WRITE))
		return -EPERM;
	*read_only = true;
	return 0;
}

void
memfd_map_end(struct vnode *vn)
{
	__atomic_fetch_sub(&vn->sharing, 1, __ATOMIC_SEQ_CST);
}

/* vn->lock held. */
static int
add_seals(struct vnode *vn, unsigned more)
{
	uint8_t old = vn->seals;

	if (old == 0 || (old & F_SEAL_SEAL))
		return -EPERM;
	__atomic_store_n(&vn->seals, (uint8_t)(old | more), __ATOMIC_SEQ_CST);
	if (!(more & F_SEAL_WRITE) || (old & F_SEAL_WRITE))
		return 0;
	if (__atomic_load_n(&vn->sharing, __ATOMIC_SEQ_CST) == 0 && !vm_object_is_written(vn))
		return 0;
	__atomic_store_n(&vn->seals, old, __ATOMIC_SEQ_CST);
	return -EBUSY;
}

int64_t
memfd_fcntl(const struct file *f, bool add, uint64_t seals)
{
	struct vnode *vn = f->vn;
	int64_t r;

	if (add && (f->flags & O_ACCMODE) == O_RDONLY)
		return -EPERM;
	if ((add && (seals & ~(uint64_t)F_ALL_SEALS)) || vn->ops != &ramfs_file_ops)
		return -EINVAL;
	mutex_lock(&vn->lock);
	if (add)
		r = add_seals(vn, (unsigned)seals);
	else
		r = vn->seals != 0 ? vn->seals & F_ALL_SEALS : F_SEAL_SEAL;
	mutex_unlock(&vn->lock);
	return r;
}
