/*
 * mount_syscalls.c - system calls on file systems: mount, umount2, statfs. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/decimal.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"

#define CWD         ((uint64_t)AT_FDCWD)
#define TEXT_MAX    64
#define OPTIONS_MAX 256
#define MNT_FORCE   1

#define MS_KNOWN                                                                                  \
	(MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOSYMFOLLOW | MS_ATIMES | \
	 MS_STRICTATIME | MS_SILENT | MS_LAZYTIME)

/* The strings of mount(); "": none, or an empty one. */
struct mount_text {
	char type[TEXT_MAX], source[TEXT_MAX], options[OPTIONS_MAX];
	bool has_source, cut; /* cut: type or options are too long */
};

/* -EFAULT. */
static int
take_text(char *text, size_t size, uint64_t utext, bool *cut)
{
	int n = utext != 0 ? copy_in_str(text, utext, size) : 0;

	if (n < 0)
		*cut = true;
	text[size - 1] = '\0';
	return n == -EFAULT ? n : 0;
}

static int
take_texts(struct mount_text *t, const uint64_t a[6])
{
	bool ignored;
	int error = take_text(t->type, sizeof(t->type), a[2], &t->cut);

	if (error == 0)
		error = take_text(t->source, sizeof(t->source), a[0],
				  &ignored); /* a longer one is cut */
	if (error == 0)
		error = take_text(t->options, sizeof(t->options), a[4], &t->cut);
	t->has_source = a[0] != 0;
	return error;
}

/* Are all words, between commas, options of the type? */
static int
mount_check_options(const struct vfs_type *type, char *at)
{
	while (at != NULL && *at != '\0') {
		char *comma = strchr(at, ',');

		if (comma != NULL)
			*comma = '\0';
		if (!type->option(at))
			return -EINVAL;
		at = comma != NULL ? comma + 1 : NULL;
	}
	return 0;
}

/* A size as Linux's tmpfs has it: a number with k, m, g or %, of memory. In pages. 0: any. */
static uint64_t
parse_size(const char **at)
{
	static const char units[] = "kmg";
	const char *unit;
	uint64_t n;

	if (!take_decimal(at, UINT64_MAX / 16, &n))
		n = 0;
	if (**at == '%') {
		(*at)++;
		return n < UINT32_MAX ? n * page_count_total() / 100 : 0;
	}
	unit = **at != '\0' ? strchr(units, **at | 0x20) : NULL;
	if (unit != NULL) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
		(*at)++;
	}
	return n / PAGE_SIZE + (n % PAGE_SIZE != 0);
}

/* "mode=755,size=1m,gid=7" for file systems in memory, or what the type knows. */
static int
parse_options(const struct vfs_type *type, struct mount_text *t, struct mount_options *o)
{
	const char *at = t->options;
	uint64_t id;

	if (type != NULL && type->option != NULL)
		return mount_check_options(type, t->options);
	while (*at != '\0') {
		if (strncmp(at, "mode=", 5) == 0) {
			o->mode = 0;
			o->has_mode = true;
			for (at += 5; *at >= '0' && *at <= '7'; at++)
				o->mode = (o->mode << 3 | (uint32_t)(*at - '0')) & 07777;
		} else if (strncmp(at, "size=", 5) == 0 && type == &tmpfs_type) {
			at += 5;
			o->pages = parse_size(&at);
		} else if (strncmp(at + 1, "id=", 3) == 0 && (*at == 'u' || *at == 'g') &&
			   type != NULL && type->owned) {
			bool group = *at == 'g';

			at += 4;
			if (!take_decimal(&at, UINT32_MAX - 1, &id))
				return -EINVAL;
			*(group ? &o->gid : &o->uid) = (uint32_t)id;
			*(group ? &o->has_gid : &o->has_uid) = true;
		}
		if (*at == ',')
			at++;
		else if (*at != '\0')
			return -EINVAL;
	}
	return 0;
}

static int
mount_on(struct vnode *dir, uint64_t flags, struct mount_text *t)
{
	struct mount_options options = {.mode = 01777};
	bool again = flags & MS_REMOUNT;
	int error = parse_options(again ? vfs_type_of(dir) : vfs_find_type(t->type), t, &options);

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (error != 0 || t->cut || (flags & ~(uint64_t)MS_KNOWN))
		return -EINVAL;
	if (again)
		return options.pages != 0 ? -EINVAL : vfs_remount(dir, &options, (unsigned)flags);
	if (t->type[0] == '\0')
		return -EINVAL;
	return vfs_mount(dir, t->type, t->has_source ? t->source : NULL, &options, (unsigned)flags);
}

int64_t
sys_mount(const uint64_t a[6])
{
	uint64_t flags = (a[3] & MS_MGC_MSK) == MS_MGC_VAL ? a[3] & ~MS_MGC_MSK : a[3];
	struct mount_text t = {0};
	int error = take_texts(&t, a);
	struct vnode *dir = error == 0 ? vnode_of_user(CWD, a[1], 0, &error) : NULL;

	if (dir == NULL)
		return error;
	error = mount_on(dir, flags, &t);
	vnode_unref(dir);
	return error;
}

int64_t
sys_umount2(const uint64_t a[6])
{
	struct vnode *dir;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if ((uint32_t)a[1] & ~(uint32_t)(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW))
		return -EINVAL;
	dir = vnode_of_user(CWD, a[0], a[1] & UMOUNT_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &error);
	if (dir == NULL)
		return error;
	error = vfs_unmount(dir, a[1] & MNT_DETACH);
	vnode_unref(dir);
	return error;
}

/* What statfs tells of the file system of vn, whose reference this drops. */
static int64_t
give_statfs(struct vnode *vn, uint64_t ustatfs)
{
	const struct vfs_type *type = vfs_type_of(vn);
	struct statfs s = {.f_type = (int64_t)(type != NULL ? type->magic : PIPEFS_MAGIC),
			   .f_bsize = PAGE_SIZE,
			   .f_frsize = PAGE_SIZE,
			   .f_namelen = NAME_MAX,
			   .f_fsid = {(int32_t)vn->dev, 0}};

	if (type != NULL && type->magic == TMPFS_MAGIC) {
		uint64_t left = page_count_free(), reserve = page_count_reserve();

		s.f_blocks = page_count_total();
		s.f_bfree = left;
		s.f_bavail = left > reserve ? left - reserve : 0;
	}
	tmpfs_statfs(vn, &s);
	vfs_statfs(vn, &s);
	vnode_unref(vn);
	return copy_out(ustatfs, &s, sizeof(s));
}

int64_t
sys_statfs(const uint64_t a[6])
{
	int error;
	struct vnode *vn = vnode_of_user(CWD, a[0], 0, &error);

	return vn != NULL ? give_statfs(vn, a[1]) : error;
}

int64_t
sys_fstatfs(const uint64_t a[6])
{
	const struct file *f = filetable_get_any(proc_files(), (uint32_t)a[0]);

	return f != NULL ? give_statfs(vnode_ref(f->vn), a[1]) : -EBADF;
}
