/*
 * devfs.h - devices under /dev.
 *
 * A driver registers a name and what can be done with it. Registered devices stay.
 * Locking: the operations are called without locks, several at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file;
struct uio;

/*
 * NULL: the request is an error. Results as of system calls: bytes or 0, or -errno. Data moves by
 * uio_put() and uio_take(). Thread context.
 */
struct dev_ops {
	/* f->priv is the arg of devfs_register(); open may put its own there. */
	int (*open)(struct file *f);
	void (*release)(struct file *f);
	int64_t (*read)(struct file *f, struct uio *u);
	int64_t (*write)(struct file *f, struct uio *u);
	int64_t (*ioctl)(struct file *f, unsigned request, uint64_t arg);
	uint32_t mode;  /* permission bits */
	bool root_only; /* for users other than 0 opening is -EPERM */
};

/*
 * Makes /dev/NAME. name and ops are kept; they must stay. 0, -EEXIST or -ENOMEM. Thread context,
 * after vfs_init().
 */
int devfs_register(const char *name, const struct dev_ops *ops, void *arg);
