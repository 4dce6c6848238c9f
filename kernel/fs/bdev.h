/* bdev.h - disks as files. Locking: atomics. */
#pragma once

struct block_device;
struct vnode;

/* The device that is this file of /dev. NULL: it is another file. Any context. */
struct block_device *bdev_of(const struct vnode *vn);
/*
 * From now on `holder` uses the device alone, until bdev_release(). Both write what others have in
 * the cache of its sectors, and then forget it. 0 or -EBUSY. Thread context, no lock of a file
 * system held.
 */
int bdev_hold(struct block_device *bdev, const void *holder);
void bdev_release(struct block_device *bdev);
