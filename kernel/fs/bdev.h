/* bdev.h - disks as files. Locking: atomics. */
#pragma once

struct block_device;
struct vnode;

/* The device that is this file of /dev. NULL: it is another file. Any context. */
struct block_device *bdev_of(const struct vnode *vn);
/*
 * From now on `holder` uses the device alone, until bdev_release(). Both functions write what is
 * dirty, and then drop the cached pages of all files of /dev that have sectors of this device. 0 or
 * -EBUSY. Thread context, no lock of a file system held.
 */
int bdev_hold(struct block_device *bdev, const void *holder);
void bdev_release(struct block_device *bdev);
