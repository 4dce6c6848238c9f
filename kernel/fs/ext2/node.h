/*
 * node.h - mounted ext2, and its files as vnodes.
 *
 * Locking: the lock of a mount guards what is in the mount and in its nodes, and all that ext2.h
 * works on; single words are also read without it. It comes after vfs_lock, vnodes' locks and those
 * of spaces, since a fault reads pages by it; nobody holds it while he copies to or from user
 * memory, or drops a reference to a vnode.
 */
#pragma once

#include "kernel/fs/cache/pagecache.h"
#include "kernel/fs/ext2/ext2.h"
#include "kernel/fs/vfs.h"
#include "kernel/lib/list.h"

#define EXT2_BUCKETS 1024 /* a power of two */

struct block_device;
struct ext2_node;

struct ext2_mount {
	struct ext2_fs fs;
	struct mutex lock;
	struct block_device *bdev; /* constant */
	struct writeback_client client;
	struct ext2_node *bucket[EXT2_BUCKETS];
	struct list dirty; /* nodes */
	uint32_t io_heard; /* of the device's errors (writeback_error()) */
	int error;         /* of the last pass */
	/* ending: it is becoming read-only; a pass of writing that finds it unused sets
	 * `frozen`, and the pass after that says on the disk that it is clean. unwritten: that pass
	 * has found pages of files that only a pass before it can write. */
	bool ending, frozen, unwritten;
	uint32_t nodes; /* in the table: the mount ends with the last one */
};

struct ext2_node {
	struct ext2_inode i;    /* the vnode has newer ones of mode, owner, size and time */
	struct ext2_mount *m;   /* constant */
	struct vnode *vn;       /* constant */
	struct ext2_node *next; /* in its bucket */
	struct list dirty;
	char *text;      /* constant; of a symbolic link */
	uint64_t cut_at; /* its blocks from this number on are being freed; UINT64_MAX: none are */
};

static inline struct ext2_node *
ext2_node(const struct vnode *vn)
{
	return vn->node;
}

/* The node of an inode, if it is in memory, or NULL. The mount's lock held, as for all here. */
struct ext2_node *ext2_find_node(const struct ext2_mount *m, uint32_t ino);
/* The vnode of an inode, with a reference. NULL and *err. */
struct vnode *ext2_iget(struct ext2_mount *m, uint32_t ino, int *err);
/* Makes the node of a new inode, of what node->i says. NULL: no memory. */
struct ext2_node *ext2_make_node(struct ext2_mount *m, const struct ext2_inode *i, int *err);
/* Are half as many nodes there as there can be? Any context. */
bool ext2_is_crowded(const struct ext2_mount *m);
/* The node is to be written, if it is dirty. */
void ext2_note_dirty(struct ext2_node *node);
/* Writes a node that is dirty into the cache of its device. */
int ext2_write_node(struct ext2_node *node);
/* 0, or the error by which the mount has lost something. Lock not held. */
int ext2_mount_error(struct ext2_mount *m);
/* The last vnode has gone. Lock not held. */
void ext2_end_mount(struct ext2_mount *m);

/* The operations of vnodes. */
extern const struct vnode_ops ext2_file_ops, ext2_dir_ops, ext2_link_ops;
