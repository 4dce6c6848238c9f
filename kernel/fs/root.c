/*
 * root.c - what loader parameters mount at boot: root=, in place of the root in memory; and
 * vfs.mountfrom=. Locking: none; boot, one thread.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/abi/statfs.h"
#include "kernel/fs/vfs_private.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/printf.h"
#include "kernel/sysctl/tunable.h"

TUNABLE(root, "root", "a device with an ext2 that becomes the root directory, as /dev/vda");
TUNABLE(root_ro, "ro", "with root=: it is not written to");
TUNABLE(root_rw, "rw", "with root=: it is written to, as without this word");
TUNABLE(vfs_mountfrom, "vfs.mountfrom",
	"TYPE:DEVICE:DIRECTORY to mount at boot, as ext2:/dev/vda:/mnt");

bool
vfs_has_root_device(void)
{
	return tunable_get("root") != NULL;
}

/* A directory of the root, which is made if it is missing. NULL: there is none. */
static struct vnode *
root_make_dir(const char *path)
{
	struct vnode *dir;
	int error;

	vnode_unref(vnode_create(NULL, path, S_IFDIR | 0755, &error));
	dir = vnode_lookup_link(NULL, path, &error);
	if (dir != NULL && S_ISDIR(dir->mode) && dir->cover == NULL)
		return dir;
	vnode_unref(dir);
	pr_warn("root: it has no directory %s, and that cannot be made\n", path);
	return NULL;
}

/* What the kernel has mounted in the first root, at this path, is in the new one. */
static void
root_take_mount(struct vnode *first, const char *path)
{
	struct vnode *dir = root_make_dir(path);
	struct vname *n;

	if (dir == NULL)
		return;
	mutex_lock(&vfs_lock);
	n = dir_find(first, path + 1);
	dir_take(n); /* the name's reference to the vnode stays, and so does that to dir */
	n->vn->name = dir->name;
	n->vn->parent = dir->parent;
	dir->cover = n->vn;
	mutex_unlock(&vfs_lock);
	vname_free(n);
}

void
vfs_mount_root_device(void)
{
	const char *device = tunable_get("root");
	struct vnode *first = vfs_root, *tmp;
	unsigned flags = tunable_get("ro") != NULL ? MS_RDONLY : 0;
	int error = vfs_mount(NULL, "ext2", device, &(struct mount_options){0}, flags);

	if (error == -EROFS) /* a disk that cannot be written to is mounted all the same */
		error = vfs_mount(NULL, "ext2", device, &(struct mount_options){0}, MS_RDONLY);
	if (error != 0)
		panic("root=%s: %s, error %d", device,
		      error == -ENOENT ? "there is no such device" : "it cannot be mounted",
		      -error);
	root_take_mount(first, "/dev");
	root_take_mount(first, "/proc");
	root_take_mount(first, "/sys");
	vfs_drop_first_root(first);
	tmp = root_make_dir("/tmp");
	if (tmp != NULL &&
	    vfs_mount(tmp, "tmpfs", "tmpfs", &(struct mount_options){.mode = 01777}, 0) != 0)
		pr_warn("root: no memory for /tmp\n");
	vnode_unref(tmp);
	printk("root: %s, ext2%s\n", device,
	       vnode_read_only(vfs_root) ? ", read-only: nothing is unpacked there" : "");
}

static void
vfs_mount_from(void)
{
	const char *text = tunable_get("vfs.mountfrom"), *colon;
	char source[64], path[256];
	int error;

	if (text == NULL)
		return;
	colon = strncmp(text, "ext2:/", 6) == 0 ? strchr(text + 5, ':') : NULL;
	if (colon == NULL || colon[1] != '/' || strlen(colon) > sizeof(path) ||
	    (size_t)(colon - text - 5) >= sizeof(source)) {
		tunable_refuse("vfs.mountfrom", "expected ext2:/DEVICE:/DIRECTORY");
		return;
	}
	strlcpy(source, text + 5, (size_t)(colon - text - 5) + 1);
	strlcpy(path, colon + 1, sizeof(path));
	error = vfs_mount_path(path, "ext2", source, 0);
	if (error == -EROFS)
		error = vfs_mount_path(path, "ext2", source, MS_RDONLY);
	if (error != 0)
		pr_warn("vfs.mountfrom=%s: error %d\n", text, -error);
}

HOOK(mounting, vfs_mount_from);
