/*
 * bmap.c - where the blocks of a file are: the inode names the first ones, and blocks of pointers,
 * one, two or three levels of them, name the others (ext2.h).
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/ext2/ext2.h"

#define LEVELS 4

/* Finds the way to block n: an index into the inode, then one into each indirect block. Returns
 * how many there are; 0 if n is too far. */
static unsigned
block_way(const struct ext2_fs *fs, uint64_t n, uint32_t way[LEVELS])
{
	unsigned shift = fs->pointers_shift;
	uint64_t room = EXT2_NDIR;

	for (unsigned depth = 0; depth < LEVELS; depth++) {
		if (n < room) {
			way[0] = depth == 0 ? (uint32_t)n : EXT2_NDIR + depth - 1;
			for (unsigned i = 1; i <= depth; i++)
				way[i] = (uint32_t)(n >> shift * (depth - i)) & ((1u << shift) - 1);
			return depth + 1;
		}
		n -= room;
		room = 1ull << shift * (depth + 1);
	}
	return 0;
}

uint64_t
ext2_size_max(const struct ext2_fs *fs)
{
	unsigned shift = fs->pointers_shift;
	uint64_t n = EXT2_NDIR + (1ull << shift) + (1ull << 2 * shift) + (1ull << 3 * shift);

	/* The inode counts sectors of 512 bytes in 32 bits. */
	return (n << fs->block_shift) < 1ull << 41 ? n << fs->block_shift : 1ull << 41;
}

/* Where the search for a new block begins: after the last one, or in the inode's group. */
static uint32_t
block_goal(const struct ext2_fs *fs, const struct ext2_inode *ip)
{
	return ip->goal != 0 ? ip->goal
			     : fs->first_data_block +
				   (ip->ino - 1) / fs->inodes_per_group * fs->blocks_per_group;
}

/* Makes a block of a file. table: zeroes, for pointers. */
static int
make_block(struct ext2_fs *fs, struct ext2_inode *ip, bool table, uint32_t *block)
{
	int error = ext2_new_block(fs, block_goal(fs, ip), block);
	void *p;

	if (error != 0)
		return error;
	if (table) {
		p = ext2_getblk(fs, *block, &error);
		if (p == NULL) {
			ext2_free_block(fs, *block);
			return error;
		}
		ext2_brelse(p);
	}
	ip->goal = *block + 1;
	ip->sectors += fs->block_size / 512;
	ip->dirty = true;
	return 0;
}

int
ext2_bmap(struct ext2_fs *fs, struct ext2_inode *ip, uint64_t n, bool make, uint32_t *block)
{
	uint32_t way[LEVELS], *at, *table = NULL, *next;
	unsigned depth = block_way(fs, n, way);
	int error = 0;

	if (depth == 0)
		return -EFBIG;
	at = &ip->block[way[0]];
	for (unsigned i = 1;; i++) {
		if (*at == 0 && make) {
			error = make_block(fs, ip, i < depth, block);
			if (error == 0) {
				*at = *block;
				if (table != NULL)
					ext2_bdirty(fs, at, sizeof(*at));
			}
		} else if (*at != 0) {
			error = ext2_check_block(fs, *at);
		}
		*block = error == 0 ? *at : 0;
		if (i == depth || *block == 0)
			break;
		next = ext2_bread(fs, *block, &error);
		ext2_brelse(table);
		table = next;
		if (table == NULL)
			break;
		at = &table[way[i]];
	}
	ext2_brelse(table);
	return error;
}

/*
 * Frees the blocks of a tree of `depth` levels, from block number `from` of the tree on; the tree
 * itself, too, if `from` is 0. Stops with -EAGAIN after *left blocks, not counting tables.
 */
static int
free_tree(struct ext2_fs *fs, struct ext2_inode *ip, uint32_t *at, unsigned depth, uint64_t from,
	  unsigned *left)
{
	uint64_t each = depth > 0 ? 1ull << fs->pointers_shift * (depth - 1) : 1;
	int error = 0;

	if (*at == 0)
		return 0;
	if (depth == 0 && (*left)-- == 0)
		return -EAGAIN;
	if (depth > 0) {
		uint32_t *table;
		int used = ext2_block_used(fs, *at); /* a free one may lead in a circle */

		if (used <= 0)
			return used < 0 ? used : ext2_error(fs, "a table that is free", *at);
		table = ext2_bread(fs, *at, &error);
		if (table == NULL)
			return error;
		for (uint64_t i = from / each; i < 1ull << fs->pointers_shift && error == 0; i++)
			error = free_tree(fs, ip, &table[i], depth - 1,
					  i == from / each ? from % each : 0, left);
		ext2_bdirty(fs, table, fs->block_size); /* forgotten when it is freed */
		ext2_brelse(table);
	}
	if (error != 0 || from != 0)
		return error;
	error = ext2_free_block(fs, *at);
	if (error != 0)
		return error;
	*at = 0;
	ip->sectors -= ip->sectors < fs->block_size / 512 ? ip->sectors : fs->block_size / 512;
	ip->dirty = true;
	return 0;
}

int
ext2_free_from(struct ext2_fs *fs, struct ext2_inode *ip, uint64_t n, unsigned most)
{
	int error = 0;

	ip->goal = 0;
	for (uint64_t i = n; i < EXT2_NDIR && error == 0; i++)
		error = free_tree(fs, ip, &ip->block[i], 0, 0, &most);
	n = n > EXT2_NDIR ? n - EXT2_NDIR : 0;
	for (unsigned depth = 1; depth < LEVELS && error == 0; depth++) {
		uint64_t room = 1ull << fs->pointers_shift * depth;

		if (n < room)
			error =
			    free_tree(fs, ip, &ip->block[EXT2_NDIR + depth - 1], depth, n, &most);
		n = n > room ? n - room : 0;
	}
	return error;
}
