/*
 * ext2.h - the file system ext2: its layout, and what works on it without knowing of vnodes.
 * Source of the layout: "The Second Extended File System", D. Poirier, and e2fsprogs' ext2_fs.h.
 *
 * Nothing on the disk is believed: each number is checked where it is used. Nobody else writes to
 * the device while it is mounted. What is wrong makes the file system read-only, by ext2_error().
 *
 * Reading order: super.c, balloc.c, bmap.c, dir.c, inode.c; then the kernel's part, mount.c,
 * vnops.c and namei.c. All functions: fs->lock held, thread context, unless said otherwise. -EIO:
 * the disk could not be read; -EUCLEAN: what is on it is wrong; -ENOSPC.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXT2_SUPER_OFFSET 1024 /* bytes */
#define EXT2_SUPER_SIZE   1024
#define EXT2_SUPER_MAGIC  0xef53
#define EXT2_ROOT_INO     2
#define EXT2_FIRST_INO    11
#define EXT2_BLOCK_MIN    1024
#define EXT2_NDIR         12 /* blocks that the inode itself names */
#define EXT2_NBLOCKS      15
#define EXT2_NAME_MAX     255
#define EXT2_LINK_MAX     32000
#define EXT2_DIR_MAX      (32u << 20) /* bytes of a directory */
#define EXT2_FREE_MOST    1024        /* blocks of a file that are freed at a time */

#define EXT2_TIME_MAX INT32_MAX /* seconds since 1970, which are signed */

/* A time, in seconds since 1970, as the disk can have it: the last that it can, or that. */
static inline uint32_t
ext2_time(uint64_t seconds)
{
	return (uint32_t)(seconds < EXT2_TIME_MAX ? seconds : EXT2_TIME_MAX);
}

#define EXT2_STATE_VALID 1
#define EXT2_STATE_ERROR 2

#define EXT2_INCOMPAT_FILETYPE 0x2
#define EXT2_RO_SPARSE_SUPER   0x1
#define EXT2_RO_LARGE_FILE     0x2
#define EXT2_FLAG_INDEX        0x1000 /* of an inode: a directory with a hash tree */

struct ext2_super {
	uint32_t inodes_count, blocks_count, r_blocks_count, free_blocks_count, free_inodes_count;
	uint32_t first_data_block, log_block_size, log_frag_size;
	uint32_t blocks_per_group, frags_per_group, inodes_per_group;
	uint32_t mtime, wtime;
	uint16_t mnt_count, max_mnt_count, magic, state, errors, minor_rev_level;
	uint32_t lastcheck, checkinterval, creator_os, rev_level;
	uint16_t def_resuid, def_resgid;
	uint32_t first_ino;
	uint16_t inode_size, block_group_nr;
	uint32_t feature_compat, feature_incompat, feature_ro_compat;
	uint8_t rest[920];
};

struct ext2_group {
	uint32_t block_bitmap, inode_bitmap, inode_table;
	uint16_t free_blocks_count, free_inodes_count, used_dirs_count, pad;
	uint32_t reserved[3];
};

struct ext2_disk_inode {
	uint16_t mode, uid;
	uint32_t size, atime, ctime, mtime, dtime;
	uint16_t gid, links_count;
	uint32_t blocks, flags, osd1, block[EXT2_NBLOCKS], generation, file_acl, size_high, faddr;
	uint16_t frag, pad, uid_high, gid_high;
	uint32_t reserved;
};

struct ext2_dirent {
	uint32_t inode; /* 0: the entry is free */
	uint16_t rec_len;
	uint8_t name_len, file_type;
	char name[];
};

_Static_assert(sizeof(struct ext2_super) == EXT2_SUPER_SIZE, "superblock");
_Static_assert(sizeof(struct ext2_group) == 32, "group descriptor");
_Static_assert(sizeof(struct ext2_disk_inode) == 128, "inode");

/* A mounted file system. What mount.c has checked is constant. */
struct ext2_fs {
	bool read_only;         /* atomic */
	bool must_be_read_only; /* it has features that only allow to read */
	bool unchecked;         /* it was not clean: only e2fsck makes it clean again */
	bool broken;            /* ext2_set_broken() was called */
	bool lost;              /* it became broken while it could be written to: bytes are lost */
	bool filetype;          /* names have the types of files */
	bool super_dirty;
	bool large_file; /* one that needs EXT2_RO_LARGE_FILE was written */
	uint32_t block_size, block_shift;
	uint32_t blocks, inodes, reserved_blocks, first_data_block, first_ino;
	uint32_t tables_end; /* end of the superblock and the descriptors, which begin the device */
	uint32_t groups, blocks_per_group, inodes_per_group, inode_size, table_blocks;
	uint32_t pointers_shift; /* an indirect block has 1 << pointers_shift pointers */
	uint32_t free_blocks, free_inodes;
};

/* An inode as it is in memory. */
struct ext2_inode {
	uint32_t ino;
	uint16_t mode, links;
	uint32_t uid, gid, atime, ctime, mtime, dtime;
	uint64_t size;
	uint32_t sectors; /* of 512 bytes; indirect blocks count, too */
	uint32_t flags, block[EXT2_NBLOCKS], generation, file_acl;
	uint32_t goal; /* where the file's next block should be; 0: anywhere */
	uint32_t rdev;
	/* A directory's blocks in which a name was last found, and last added. */
	uint32_t found_at, room_at;
	bool dirty; /* newer than on the disk */
};

/* ---- what the kernel, and the fuzzer, supply ---- */

/* A block in memory, until ext2_brelse(). NULL and *err. The block's number is checked. */
void *ext2_bread(struct ext2_fs *fs, uint32_t block, int *err);
/* As ext2_bread(), but the block is not read: its bytes become zeroes. */
void *ext2_getblk(struct ext2_fs *fs, uint32_t block, int *err);
/* NULL is allowed. */
void ext2_brelse(void *block);
/* These bytes of a block have changed. */
void ext2_bdirty(struct ext2_fs *fs, void *at, size_t size);
/* What the block holds is of no use any more. */
void ext2_bforget(struct ext2_fs *fs, uint32_t block);
/* May the current user take the last blocks? */
bool ext2_may_use_reserve(void);
uint32_t ext2_seconds(void);
/* The file system has an error: warns once. */
void ext2_warn(struct ext2_fs *fs, const char *what, uint64_t number);

/* ---- super.c ---- */

/*
 * Reads the superblock of a device of so many bytes into *fs, which is zeroed. 0; -EINVAL if it is
 * no ext2, or has features that are not known (*why says which); -EUCLEAN.
 */
int ext2_parse_super(struct ext2_fs *fs, const struct ext2_super *sb, uint64_t bytes,
		     const char **why);
/* Counts what is free, and checks all group descriptors. */
int ext2_count_free(struct ext2_fs *fs);
/* Writes the superblock as it is now. mounted: for writing; then it says "not clean". */
int ext2_write_super(struct ext2_fs *fs, bool mounted);
/* Nothing on the disk is changed from now on. True: this was the first call. */
bool ext2_set_broken(struct ext2_fs *fs);
/* Something is wrong, with a number: nothing is changed from now on. Returns -EUCLEAN. */
int ext2_error(struct ext2_fs *fs, const char *what, uint64_t number);
/* A group's descriptor, checked, until ext2_brelse(). NULL and *err. */
struct ext2_group *ext2_get_group(struct ext2_fs *fs, uint32_t group, int *err);
/* Is a block of a group the superblock's, a descriptor's, a bitmap's or of the inodes? */
bool ext2_is_table(const struct ext2_fs *fs, const struct ext2_group *g, uint32_t block);
/* Can the block be a file's? 0 or -errno. */
int ext2_check_block(struct ext2_fs *fs, uint32_t block);
uint32_t ext2_group_blocks(const struct ext2_fs *fs, uint32_t group);
static inline bool
ext2_good_block(const struct ext2_fs *fs, uint32_t block)
{
	return block >= fs->first_data_block && block < fs->blocks && block != 0;
}

/* ---- balloc.c ---- */

int ext2_new_block(struct ext2_fs *fs, uint32_t goal, uint32_t *block);
/* -EUCLEAN: it is not in use. */
int ext2_free_block(struct ext2_fs *fs, uint32_t block);
/* Is the block in use? 1, 0 or -errno. */
int ext2_block_used(struct ext2_fs *fs, uint32_t block);
/* A new inode's number, near that of its directory. */
int ext2_new_inode(struct ext2_fs *fs, uint32_t near, bool dir, uint32_t *ino);
int ext2_free_inode(struct ext2_fs *fs, uint32_t ino, bool dir);

/* ---- bmap.c ---- */

/* The block number n of a file; 0: a hole. make: it is made. -EFBIG: there is no such number. */
int ext2_bmap(struct ext2_fs *fs, struct ext2_inode *ip, uint64_t n, bool make, uint32_t *block);
/* Frees all blocks from number n on; -EAGAIN: `most` of them, and there are more. */
int ext2_free_from(struct ext2_fs *fs, struct ext2_inode *ip, uint64_t n, unsigned most);
/* Bytes that a file can have. Any context. */
uint64_t ext2_size_max(const struct ext2_fs *fs);

/* ---- inode.c ---- */

/* -EUCLEAN: the inode is free, or what it says is wrong. */
int ext2_read_inode(struct ext2_fs *fs, uint32_t ino, struct ext2_inode *ip);
int ext2_write_inode(struct ext2_fs *fs, struct ext2_inode *ip);
/* A new inode has nothing of the one that was there. */
int ext2_clear_inode(struct ext2_fs *fs, uint32_t ino);
/* Frees a file that has no name: its blocks and its inode. -EAGAIN: there is more to free. */
int ext2_delete_inode(struct ext2_fs *fs, struct ext2_inode *ip);
/* Has the inode a text, or a device's number, instead of blocks? Any context. */
bool ext2_is_inline(const struct ext2_fs *fs, const struct ext2_inode *ip);

/* ---- dir.c ---- */

/* Takes a name; not 0: no more, and the walk returns it. name has name_len bytes. */
typedef int ext2_dir_fn(void *arg, const char *name, size_t len, uint32_t ino);
/* All names but "." and "..". */
int ext2_dir_walk(struct ext2_fs *fs, struct ext2_inode *dir, ext2_dir_fn *fn, void *arg);
/* Where a walk of a directory is. It holds the block until the walk ends. */
struct ext2_walk {
	uint32_t n;                 /* of the block */
	uint32_t stop;              /* where it ends; 0: with the directory */
	uint32_t at, end;           /* of the next entry; of the block, in bytes */
	char *block;                /* NULL: not read yet */
	struct ext2_dirent *before; /* the entry before, in the same block, or NULL */
	struct ext2_dirent *entry;  /* what ext2_dir_find() has found */
};

/* Finds a name, also "..", until ext2_brelse(w->block), also of NULL. -ENOENT: it is not there. */
int ext2_dir_find(struct ext2_fs *fs, struct ext2_inode *dir, const char *name,
		  struct ext2_walk *w);
/* Adds a name, which is not there. mode: of the file. */
int ext2_dir_add(struct ext2_fs *fs, struct ext2_inode *dir, const char *name, uint32_t ino,
		 uint32_t mode);
/* Removes the name that was found, at most one name having been added since. */
void ext2_dir_remove(struct ext2_fs *fs, struct ext2_walk *w);
/* Makes the name that was found another file's. */
void ext2_dir_set(struct ext2_fs *fs, struct ext2_walk *w, uint32_t ino, uint32_t mode);
/* Writes "." and ".." into a new directory. */
int ext2_dir_make(struct ext2_fs *fs, struct ext2_inode *dir, uint32_t parent);
