/*
 * devfs.h - devices under /dev. A driver registers a name and its operations, for good.
 * Locking: none around the operations; several may run at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A device number as of st_rdev; minor below 256. */
#define DEVICE(major, minor) ((uint64_t)(major) << 8 | (minor))

struct file;
struct uio;
struct vnode;

/*
 * An operation that is NULL fails. Results as of system calls: bytes or 0, or -errno. uio_put() and
 * uio_take() move the data. Thread context.
 */
struct dev_ops {
	/* f->priv is the arg of devfs_register(); open may replace it. */
	int (*open)(struct file *f);
	void (*release)(struct file *f);
	int64_t (*read)(struct file *f, struct uio *u);
	int64_t (*write)(struct file *f, struct uio *u);
	unsigned (*poll)(struct file *f); /* as of vnode_ops */
	int64_t (*ioctl)(struct file *f, unsigned request, uint64_t arg);
	uint32_t mode;   /* permission bits */
	uint64_t device; /* its number, where Linux's is known; 0: some other */
	bool root_only;  /* only CAP_SYS_ADMIN may open it; others get -EPERM */
	bool nowait;     /* read and write never wait: RWF_NOWAIT is no error */
	bool any_off;    /* see struct vnode */
};

/*
 * Makes /dev/NAME; name and ops stay in use. 0, -EEXIST, -ENOMEM. Thread context, after vfs_init().
 */
int devfs_register(const char *name, const struct dev_ops *ops, void *arg);
/*
 * Takes the bytes of a write a piece at a time and gives each to send(), which returns how many
 * went, and sets *error, which is 0 before, if these were not all. A signal between two pieces ends
 * it: *error is -EINTR. Returns how many bytes went. Thread context.
 */
size_t dev_send(struct file *f, struct uio *u,
		size_t (*send)(const struct file *f, const char *text, size_t n, int *error),
		int *error);
/* Makes the directory /dev/NAME, in which only the kernel adds names. NULL: no memory. */
struct vnode *devfs_mkdir(const char *name);
/* Makes a new vnode, which has its type and device number, lead to the device of that number, or
 * to none (-ENXIO). */
void devfs_make_node(struct vnode *vn);
