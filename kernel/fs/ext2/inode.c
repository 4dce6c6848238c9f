/* inode.c - inodes: read, written, deleted (ext2.h). */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/ext2/ext2.h"
#include "kernel/lib/string.h"

#define EA_MAGIC 0xea020000u

/* Where an inode is on the disk, until ext2_brelse(). NULL: *err says why. */
static struct ext2_disk_inode *
find_inode(struct ext2_fs *fs, uint32_t ino, int *err)
{
	uint32_t index, shift = fs->block_shift, block;
	struct ext2_group *g;
	char *p;

	if (ino < 1 || ino > fs->inodes) {
		*err = ext2_error(fs, "the number of an inode", ino);
		return NULL;
	}
	g = ext2_get_group(fs, (ino - 1) / fs->inodes_per_group, err);
	if (g == NULL)
		return NULL;
	index = (ino - 1) % fs->inodes_per_group * fs->inode_size;
	block = g->inode_table + (index >> shift);
	ext2_brelse(g);
	p = ext2_bread(fs, block, err);
	return p != NULL ? (struct ext2_disk_inode *)(p + (index & (fs->block_size - 1))) : NULL;
}

bool
ext2_is_inline(const struct ext2_fs *fs, const struct ext2_inode *ip)
{
	if (S_ISREG(ip->mode) || S_ISDIR(ip->mode))
		return false;
	return !S_ISLNK(ip->mode) ||
	       (ip->size < sizeof(ip->block) &&
		ip->sectors == (ip->file_acl != 0 ? fs->block_size / 512 : 0));
}

/* Is what an inode says possible? */
static bool
check_inode(const struct ext2_fs *fs, const struct ext2_inode *ip)
{
	switch (ip->mode & S_IFMT) {
	case S_IFREG:
		return ip->size <= ext2_size_max(fs);
	case S_IFDIR:
		return ip->size > 0 && ip->size <= EXT2_DIR_MAX && ip->size % fs->block_size == 0;
	case S_IFLNK:
		return ip->size > 0 && ip->size < fs->block_size;
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	default:
		return false;
	}
}

int
ext2_read_inode(struct ext2_fs *fs, uint32_t ino, struct ext2_inode *ip)
{
	int error;
	struct ext2_disk_inode *d = find_inode(fs, ino, &error);

	if (d == NULL)
		return error;
	memset(ip, 0, sizeof(*ip));
	ip->ino = ino;
	ip->mode = d->mode;
	ip->links = d->links_count;
	ip->uid = d->uid | (uint32_t)d->uid_high << 16;
	ip->gid = d->gid | (uint32_t)d->gid_high << 16;
	ip->atime = d->atime;
	ip->ctime = d->ctime;
	ip->mtime = d->mtime;
	ip->dtime = d->dtime;
	ip->size = d->size | (S_ISREG(d->mode) ? (uint64_t)d->size_high << 32 : 0);
	ip->sectors = d->blocks;
	ip->flags = d->flags;
	memcpy(ip->block, d->block, sizeof(ip->block));
	ip->generation = d->generation;
	ip->file_acl = d->file_acl;
	if (S_ISCHR(d->mode) || S_ISBLK(d->mode))
		ip->rdev = d->block[0] != 0 ? d->block[0] & 0xffff : d->block[1];
	ext2_brelse(d);
	if (ip->links == 0 || ip->mode == 0)
		return ext2_error(fs, "a name of an inode that is free", ino);
	return check_inode(fs, ip) ? 0 : ext2_error(fs, "what an inode says", ino);
}

int
ext2_write_inode(struct ext2_fs *fs, struct ext2_inode *ip)
{
	int error;
	struct ext2_disk_inode *d = find_inode(fs, ip->ino, &error);

	if (d == NULL)
		return error;
	d->mode = ip->mode;
	d->links_count = ip->links;
	d->uid = (uint16_t)ip->uid;
	d->uid_high = (uint16_t)(ip->uid >> 16);
	d->gid = (uint16_t)ip->gid;
	d->gid_high = (uint16_t)(ip->gid >> 16);
	d->atime = ip->atime;
	d->ctime = ip->ctime;
	d->mtime = ip->mtime;
	d->dtime = ip->dtime;
	d->size = (uint32_t)ip->size;
	if (S_ISREG(ip->mode)) {
		d->size_high = (uint32_t)(ip->size >> 32);
		if (ip->size >> 31 != 0 && !fs->large_file)
			fs->large_file = fs->super_dirty = true;
	}
	d->blocks = ip->sectors;
	d->flags = ip->flags;
	memcpy(d->block, ip->block, sizeof(d->block));
	d->generation = ip->generation;
	d->file_acl = ip->file_acl;
	ext2_bdirty(fs, d, sizeof(*d));
	ext2_brelse(d);
	ip->dirty = false;
	return 0;
}

/* Frees the block of extended attributes, of which several files may have the same. */
static int
free_attributes(struct ext2_fs *fs, struct ext2_inode *ip)
{
	uint32_t *head; /* magic number, references */
	int error = 0;
	bool last;

	if (ip->file_acl == 0)
		return 0;
	if (!ext2_good_block(fs, ip->file_acl))
		return ext2_error(fs, "the block of attributes of an inode", ip->ino);
	head = ext2_bread(fs, ip->file_acl, &error);
	if (head == NULL)
		return error;
	if (head[0] != EA_MAGIC || head[1] == 0) {
		ext2_brelse(head);
		return ext2_error(fs, "the attributes of an inode", ip->ino);
	}
	last = head[1] == 1;
	if (!last) {
		head[1]--;
		ext2_bdirty(fs, head, 2 * sizeof(*head));
	}
	ext2_brelse(head);
	if (last)
		error = ext2_free_block(fs, ip->file_acl);
	ip->file_acl = 0;
	return error;
}

int
ext2_delete_inode(struct ext2_fs *fs, struct ext2_inode *ip)
{
	int error = ext2_is_inline(fs, ip) ? 0 : ext2_free_from(fs, ip, 0, EXT2_FREE_MOST);

	if (error == 0)
		error = free_attributes(fs, ip);
	ip->links = 0;
	if (error != 0) {
		ext2_write_inode(fs, ip); /* it has fewer blocks than before */
		return error;
	}
	ip->size = 0;
	ip->sectors = 0;
	ip->dtime = ext2_seconds();
	memset(ip->block, 0, sizeof(ip->block));
	error = ext2_write_inode(fs, ip);
	return error == 0 ? ext2_free_inode(fs, ip->ino, S_ISDIR(ip->mode)) : error;
}

int
ext2_clear_inode(struct ext2_fs *fs, uint32_t ino)
{
	int error;
	struct ext2_disk_inode *d = find_inode(fs, ino, &error);

	if (d == NULL)
		return error;
	memset(d, 0, fs->inode_size);
	ext2_bdirty(fs, d, fs->inode_size);
	ext2_brelse(d);
	return 0;
}
