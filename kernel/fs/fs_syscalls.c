/*
 * fs_syscalls.c - system calls on paths, with the semantics of Linux. Locking: none here.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/stat.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/file.h"
#include "kernel/fs/vfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/proc/task.h"
#include "kernel/syscall.h"
#include "ktr/sdt.h"

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE_DATA(vfs, namei, lookup, entry, "entry", ": path %s");

/* A path from the user, and the directory it is relative to. */
struct user_path {
	const char *name;  /* text; first, as in Linux's struct filename */
	struct vnode *cwd; /* no reference of its own: the system call has one (struct held) */
	char text[PATH_MAX];
};

/* Finds the directory for the *at calls. 0, -EBADF or -ENOTDIR. */
static int
at_directory(uint64_t dirfd, const char *path, struct vnode **dir)
{
	const struct file *f;

	*dir = proc_cwd();
	if ((int)dirfd == AT_FDCWD || (*path == '/' && !(proc_resolve() & RESOLVE_IN_ROOT)))
		return 0;
	f = filetable_get_any(proc_files(), (uint32_t)dirfd);
	if (f == NULL)
		return -EBADF;
	*dir = f->vn;
	return S_ISDIR(f->vn->mode) || *path == '\0' ? 0 : -ENOTDIR;
}

/* Copies a path to p. Returns p; NULL: *error says why not. */
static __attribute__((noinline)) struct user_path *
getname(uint64_t upath, struct user_path *p, int *error)
{
	int length = copy_in_str(p->text, upath, sizeof(p->text));

	*error = length < 0 ? length : 0;
	if (length < 0)
		return NULL;
	p->name = p->text;
	SDT_FIRE(vfs, namei, lookup, entry, SDT_ARGS_DATA0(p->text, (size_t)length));
	return p;
}

static int
take_path(struct user_path *p, uint64_t dirfd, uint64_t upath)
{
	int error;

	return getname(upath, p, &error) != NULL ? at_directory(dirfd, p->text, &p->cwd) : error;
}

static int64_t
do_sys_openat2(uint64_t dirfd, uint64_t upath, const struct open_how *how)
{
	int fd, error, flags = (int)how->flags;
	struct user_path p;
	struct file *f;

	error = take_path(&p, dirfd, upath);
	if (error < 0)
		return error;
	fd = filetable_reserve();
	if (fd < 0)
		return fd;
	error = file_open_at(p.cwd, p.text, flags, (uint32_t)how->mode, &f);
	filetable_fill((unsigned)fd, error == 0 ? f : NULL, flags);
	if (error < 0)
		return error;
	CTR2(KTR_VFS, "open: path %s fd %d", vfs_trace_name(p.text), fd);
	return fd;
}

static __attribute__((noinline)) int64_t
do_sys_open(uint64_t dirfd, uint64_t upath, int flags, uint32_t mode)
{
	const struct open_how how = {.flags = (uint32_t)flags, .mode = mode};

	return do_sys_openat2(dirfd, upath, &how);
}

SYSCALL_IS(open, do_sys_open((uint64_t)AT_FDCWD, a[0], (int)a[1], (uint32_t)a[2]))
SYSCALL_IS(creat,
	   do_sys_open((uint64_t)AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, (uint32_t)a[1]))
SYSCALL_IS(openat, do_sys_open(a[0], a[1], (int)a[2], (uint32_t)a[3]))

int64_t
sys_openat2(const uint64_t a[6])
{
	const uint64_t with_path = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct open_how how = {0};
	int64_t r = copy_in_versioned(&how, sizeof(how), a[2], a[3], OPEN_HOW_SIZE_VER0);

	if (r != 0)
		return r;
	if ((how.flags & ~OPEN_FLAGS_KNOWN) || (how.mode & ~07777ul) ||
	    (how.resolve & ~(uint64_t)RESOLVE_ALL) ||
	    (how.mode != 0 && !(how.flags & (O_CREAT | O_UNNAMED))) ||
	    ((how.flags & O_PATH) && (how.flags & ~with_path)) ||
	    (how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) ==
		(RESOLVE_BENEATH | RESOLVE_IN_ROOT))
		return -EINVAL;
	proc_held()->resolve = (uint32_t)how.resolve;
	r = do_sys_openat2(a[0], a[1], &how);
	proc_held()->resolve = 0;
	return r;
}

int64_t
sys_fadvise64(const uint64_t a[6])
{
	const struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);

	if (f == NULL)
		return -EBADF;
	if (S_ISFIFO(f->vn->mode))
		return -ESPIPE;
	return (int64_t)a[2] < 0 || (uint32_t)a[3] > POSIX_FADV_NOREUSE ? -EINVAL : 0;
}

int64_t
sys_readahead(const uint64_t a[6])
{
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);

	if (f == NULL || (f->flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if ((!S_ISREG(f->vn->mode) && !S_ISBLK(f->vn->mode)) || (int64_t)a[2] < 0)
		return -EINVAL;
	file_read_ahead(f, a[1], a[2]);
	return 0;
}

/* Writes what has changed in the file, which may be more than the caller asks for. */
int64_t
sys_sync_file_range(const uint64_t a[6])
{
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);
	int64_t off = (int64_t)a[1], len = (int64_t)a[2], end;

	if (f == NULL)
		return -EBADF;
	if (((uint32_t)a[3] & ~SYNC_FILE_RANGE_ALL) || off < 0 || len < 0 ||
	    __builtin_add_overflow(off, len, &end))
		return -EINVAL;
	if (!S_ISREG(f->vn->mode) && !S_ISBLK(f->vn->mode) && !S_ISDIR(f->vn->mode) &&
	    !S_ISLNK(f->vn->mode))
		return -ESPIPE;
	return (a[3] & SYNC_FILE_RANGE_ALL) != 0 ? vnode_sync(f->vn) : 0;
}

int64_t
sys_syncfs(const uint64_t a[6])
{
	struct file *f = filetable_get(proc_files(), (uint32_t)a[0]);

	return f != NULL ? vnode_sync(f->vn) : -EBADF; /* fsync() of it tells what was lost, too */
}

static int64_t
stat_vnode(struct vnode *vn, uint64_t ustat)
{
	struct stat st;

	vnode_stat(vn, &st);
	CTR3(KTR_VFS, "stat: ino %lu mode %#o size %ld", st.st_ino, st.st_mode, st.st_size);
	return copy_out(ustat, &st, sizeof(st));
}

static int64_t
stat_at(uint64_t dirfd, uint64_t upath, uint64_t ustat, uint64_t flags)
{
	int64_t result;
	int error;
	struct vnode *vn;

	if ((uint32_t)flags & ~(uint32_t)(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH))
		return -EINVAL;
	vn = vnode_of_user(dirfd, upath, flags, &error);
	if (vn == NULL)
		return error;
	result = stat_vnode(vn, ustat);
	vnode_unref(vn);
	return result;
}

SYSCALL_IS(stat, stat_at((uint64_t)AT_FDCWD, a[0], a[1], 0))
SYSCALL_IS(lstat, stat_at((uint64_t)AT_FDCWD, a[0], a[1], AT_SYMLINK_NOFOLLOW))
SYSCALL_IS(newfstatat, stat_at(a[0], a[1], a[2], a[3]))

int64_t
sys_fstat(const uint64_t a[6])
{
	const struct file *f = filetable_get_any(proc_files(), (uint32_t)a[0]);

	return f != NULL ? stat_vnode(f->vn, a[1]) : -EBADF;
}

static struct statx_time
to_statx_time(uint64_t s, uint64_t ns)
{
	return (struct statx_time){(int64_t)s, (uint32_t)ns, 0};
}

int64_t
sys_statx(const uint64_t a[6])
{
	const uint64_t known =
	    AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
	struct stat st;
	struct vnode *vn;
	int error;

	if (((uint32_t)a[2] & ~known) || (a[2] & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE ||
	    (a[3] & STATX_RESERVED))
		return -EINVAL;
	vn = vnode_of_user(a[0], a[1], a[2], &error);
	if (vn == NULL)
		return error;
	vnode_stat(vn, &st);
	vnode_unref(vn);
	struct statx sx = {
	    .stx_mask = STATX_BASIC_STATS,
	    .stx_blksize = (uint32_t)st.st_blksize,
	    .stx_nlink = (uint32_t)st.st_nlink,
	    .stx_uid = st.st_uid,
	    .stx_gid = st.st_gid,
	    .stx_mode = (uint16_t)st.st_mode,
	    .stx_ino = st.st_ino,
	    .stx_size = (uint64_t)st.st_size,
	    .stx_blocks = (uint64_t)st.st_blocks,
	    .stx_atime = to_statx_time((uint64_t)st.st_atime, st.st_atime_nsec),
	    .stx_ctime = to_statx_time((uint64_t)st.st_ctime, st.st_ctime_nsec),
	    .stx_mtime = to_statx_time((uint64_t)st.st_mtime, st.st_mtime_nsec),
	    .stx_rdev_major = STAT_MAJOR(st.st_rdev),
	    .stx_rdev_minor = STAT_MINOR(st.st_rdev),
	    .stx_dev_major = STAT_MAJOR(st.st_dev),
	    .stx_dev_minor = STAT_MINOR(st.st_dev),
	};
	return copy_out(a[4], &sx, sizeof(sx));
}

static __attribute__((noinline)) int64_t
do_mkdirat(uint64_t dirfd, uint64_t upath, uint32_t mode)
{
	struct user_path p;
	int error = take_path(&p, dirfd, upath);

	if (error == 0)
		vnode_unref(
		    vnode_create(p.cwd, p.text, S_IFDIR | (mode & 01777 & ~proc_umask()), &error));
	return error;
}

SYSCALL_IS(mkdir, do_mkdirat((uint64_t)AT_FDCWD, a[0], (uint32_t)a[1]))
SYSCALL_IS(mkdirat, do_mkdirat(a[0], a[1], (uint32_t)a[2]))

/* Are there nodes of this kind? 0 or -errno. */
static int
check_kind(uint32_t kind)
{
	switch (kind) {
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return 0;
	default:
		return kind == S_IFDIR ? -EPERM : -EINVAL;
	}
}

static int64_t
do_mknodat(uint64_t dirfd, uint64_t upath, uint32_t mode, uint32_t rdev)
{
	uint32_t kind = mode & S_IFMT ? mode & S_IFMT : S_IFREG;
	struct user_path p;
	int error = check_kind(kind);

	if (error == 0)
		error = take_path(&p, dirfd, upath);
	if (error == 0)
		vnode_unref(vnode_mknod(p.cwd, p.text, kind | (mode & 07777 & ~proc_umask()), rdev,
					&error));
	return error;
}

SYSCALL_IS(mknod, do_mknodat((uint64_t)AT_FDCWD, a[0], (uint32_t)a[1], (uint32_t)a[2]))
SYSCALL_IS(mknodat, do_mknodat(a[0], a[1], (uint32_t)a[2], (uint32_t)a[3]))

static int64_t
remove_at(uint64_t dirfd, uint64_t upath, bool dir)
{
	struct user_path p;
	int error = take_path(&p, dirfd, upath);

	return error == 0 ? vnode_remove(p.cwd, p.text, dir) : error;
}

/* Not inline: probes look for Linux's name. */
static __attribute__((noinline)) int64_t
do_unlinkat(uint64_t dirfd, uint64_t upath)
{
	return remove_at(dirfd, upath, false);
}

SYSCALL_IS(rmdir, remove_at((uint64_t)AT_FDCWD, a[0], true))
SYSCALL_IS(unlink, do_unlinkat((uint64_t)AT_FDCWD, a[0]))

int64_t
sys_unlinkat(const uint64_t a[6])
{
	if ((uint32_t)a[2] & ~(uint32_t)AT_REMOVEDIR)
		return -EINVAL;
	return a[2] & AT_REMOVEDIR ? remove_at(a[0], a[1], true) : do_unlinkat(a[0], a[1]);
}

static int64_t
do_renameat2(uint64_t from_fd, uint64_t ufrom, uint64_t to_fd, uint64_t uto, unsigned flags)
{
	struct user_path from, to;
	int error = take_path(&from, from_fd, ufrom);

	if (error == 0)
		error = take_path(&to, to_fd, uto);
	return error == 0 ? vnode_rename(from.cwd, from.text, to.cwd, to.text, flags) : error;
}

SYSCALL_IS(rename, do_renameat2((uint64_t)AT_FDCWD, a[0], (uint64_t)AT_FDCWD, a[1], 0))
SYSCALL_IS(renameat, do_renameat2(a[0], a[1], a[2], a[3], 0))

int64_t
sys_renameat2(const uint64_t a[6])
{
	unsigned flags = (unsigned)a[4];

	if (flags > RENAME_EXCHANGE) /* both, or another */
		return -EINVAL;
	return do_renameat2(a[0], a[1], a[2], a[3], flags);
}

static int64_t
do_linkat(uint64_t from_fd, uint64_t ufrom, uint64_t to_fd, uint64_t uto, uint64_t flags)
{
	struct user_path to;
	struct vnode *vn;
	int error;

	if ((uint32_t)flags & ~(uint32_t)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if ((flags & AT_EMPTY_PATH) && !capable(CAP_DAC_READ_SEARCH))
		return -ENOENT; /* a descriptor does not show that its owner may walk to the file */
	vn = vnode_of_user(from_fd, ufrom,
			   (flags & AT_EMPTY_PATH) |
			       (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW),
			   &error);
	if (vn == NULL)
		return error;
	error = take_path(&to, to_fd, uto);
	if (error == 0)
		error = vnode_link(vn, to.cwd, to.text);
	vnode_unref(vn);
	return error;
}

SYSCALL_IS(link, do_linkat((uint64_t)AT_FDCWD, a[0], (uint64_t)AT_FDCWD, a[1], 0))
SYSCALL_IS(linkat, do_linkat(a[0], a[1], a[2], a[3], a[4]))

static int64_t
do_symlinkat(uint64_t utext, uint64_t dirfd, uint64_t upath)
{
	char text[PATH_MAX];
	struct user_path p;
	int error = copy_in_str(text, utext, sizeof(text));

	if (error < 0)
		return error;
	if (text[0] == '\0')
		return -ENOENT;
	error = take_path(&p, dirfd, upath);
	if (error == 0)
		vnode_unref(vfs_symlink(p.cwd, p.text, text, &error));
	return error;
}

SYSCALL_IS(symlink, do_symlinkat(a[0], (uint64_t)AT_FDCWD, a[1]))
SYSCALL_IS(symlinkat, do_symlinkat(a[0], a[1], a[2]))

int64_t
sys_getcwd(const uint64_t a[6])
{
	static const char before[] = "(unreachable)"; /* begins a path from outside of the root */
	char path[PATH_MAX];
	bool outside;
	int n = vnode_path(proc_cwd(), path, sizeof(path), &outside);
	uint64_t length = n < 0 || !outside ? 0 : sizeof(before) - 1;

	if (n < 0)
		return n;
	if (length + (uint64_t)n + 1 > a[1])
		return -ERANGE;
	if (copy_out(a[0], before, length) < 0 || copy_out(a[0] + length, path, (size_t)n + 1) < 0)
		return -EFAULT;
	return (int64_t)length + n + 1;
}

/* Makes vn, whose reference this takes over, the current directory. path is for the event. */
static int
change_dir(struct vnode *vn, const char *path)
{
	int error = S_ISDIR(vn->mode) ? vnode_access(vn, VNODE_EXEC) : -ENOTDIR;

	CTR2(KTR_VFS, "chdir: path %s error %d", vfs_trace_name(path), -error);
	vnode_unref(error == 0 ? proc_chdir(vn) : vn);
	return error;
}

int64_t
sys_chdir(const uint64_t a[6])
{
	struct user_path p;
	struct vnode *vn;
	int error = take_path(&p, (uint64_t)AT_FDCWD, a[0]);

	if (error < 0)
		return error;
	vn = vnode_lookup(p.cwd, p.text, &error);
	return vn != NULL ? change_dir(vn, p.text) : error;
}

int64_t
sys_fchdir(const uint64_t a[6])
{
	const struct file *f = filetable_get_any(proc_files(), (uint32_t)a[0]);

	return f != NULL ? change_dir(vnode_ref(f->vn), "") : -EBADF;
}

int64_t
sys_chroot(const uint64_t a[6])
{
	struct user_path p;
	struct vnode *vn;
	int error = take_path(&p, (uint64_t)AT_FDCWD, a[0]);

	if (error < 0)
		return error;
	vn = vnode_lookup(p.cwd, p.text, &error);
	if (vn == NULL)
		return error;
	error = S_ISDIR(vn->mode) ? vnode_access(vn, VNODE_EXEC) : -ENOTDIR;
	if (error == 0 && !capable(CAP_SYS_CHROOT))
		error = -EPERM;
	CTR2(KTR_VFS, "chroot: path %s error %d", vfs_trace_name(p.text), -error);
	vnode_unref(error == 0 ? vfs_change_root(vn) : vn);
	return error;
}

struct vnode *
vnode_of_user(uint64_t dirfd, uint64_t upath, uint64_t flags, int *error)
{
	struct user_path p;

	*error = take_path(&p, dirfd, upath);
	if (*error < 0)
		return NULL;
	if ((flags & AT_EMPTY_PATH) && p.text[0] == '\0')
		return vnode_ref(p.cwd);
	return flags & AT_SYMLINK_NOFOLLOW ? vnode_lookup_link(p.cwd, p.text, error)
					   : vnode_lookup(p.cwd, p.text, error);
}

static int64_t
do_faccessat(uint64_t dirfd, uint64_t upath, uint64_t want, uint64_t flags)
{
	struct vnode *vn;
	int error;

	if (((uint32_t)want & ~7u) ||
	    ((uint32_t)flags & ~(uint32_t)(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
		return -EINVAL;
	vn = vnode_of_user(dirfd, upath, flags, &error);
	if (vn == NULL)
		return error;
	/* Linux's R_OK, W_OK, X_OK are VNODE_… */
	error = flags & AT_EACCESS ? vnode_access(vn, (unsigned)want)
				   : vnode_access_real(vn, (unsigned)want);
	if (error == 0 && (want & VNODE_EXEC) && S_ISREG(vn->mode) &&
	    (vfs_mount_flags(vn) & MS_NOEXEC))
		error = -EACCES;
	vnode_unref(vn);
	return error;
}

SYSCALL_IS(access, do_faccessat((uint64_t)AT_FDCWD, a[0], a[1], 0))
SYSCALL_IS(faccessat, do_faccessat(a[0], a[1], a[2], 0))
SYSCALL_IS(faccessat2, do_faccessat(a[0], a[1], a[2], a[3]))

static int64_t
do_readlinkat(uint64_t dirfd, uint64_t upath, uint64_t ubuf, uint64_t size)
{
	struct vnode *vn, *to;
	const char *text;
	char first = '/';
	int error;

	if ((int)size <= 0)
		return -EINVAL;
	vn = vnode_of_user(dirfd, upath, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &error);
	if (vn == NULL)
		return error;
	if (S_ISLNK(vn->mode)) {
		error = vnode_link_text(vn, &text, &to); /* constant: needs no lock */
		vnode_unref(to);
	} else { /* "" is a path only for a link that is opened with O_PATH */
		error = copy_in(&first, upath, 1) == 0 && first == '\0' ? -ENOENT : -EINVAL;
	}
	if (error == 0 && size > strlen(text))
		size = strlen(text);
	if (error == 0)
		error = copy_out(ubuf, text, size);
	vnode_unref(vn);
	return error < 0 ? error : (int64_t)size;
}

SYSCALL_IS(readlink, do_readlinkat((uint64_t)AT_FDCWD, a[0], a[1], a[2]))
SYSCALL_IS(readlinkat, do_readlinkat(a[0], a[1], a[2], a[3]))
