/* balloc.c - the bitmaps of blocks and inodes (ext2.h). */
#include "kernel/abi/errno.h"
#include "kernel/fs/ext2/ext2.h"

static bool
bit_is_set(const uint8_t *map, uint32_t bit)
{
	return map[bit / 8] & 1u << bit % 8;
}

/* The first bit from `from` to below n that is 0; n: there is none. */
static uint32_t
find_zero(const uint8_t *map, uint32_t from, uint32_t n)
{
	while (from < n && bit_is_set(map, from))
		from += from % 8 == 0 && map[from / 8] == 0xff ? 8 : 1;
	return from < n ? from : n;
}

static void
flip_bit(struct ext2_fs *fs, uint8_t *map, uint32_t bit)
{
	map[bit / 8] ^= (uint8_t)(1u << bit % 8);
	ext2_bdirty(fs, &map[bit / 8], 1);
}

/* Takes a free block of a group, from a bit on. 1: done; 0: there is none; or -errno. */
static int
take_block(struct ext2_fs *fs, uint32_t group, uint32_t from, uint32_t *block)
{
	uint32_t n = ext2_group_blocks(fs, group), bit;
	int error = 0;
	struct ext2_group *g = ext2_get_group(fs, group, &error);
	uint8_t *map = NULL;

	if (g != NULL && g->free_blocks_count > 0)
		map = ext2_bread(fs, g->block_bitmap, &error);
	if (map != NULL) {
		bit = find_zero(map, from, n);
		*block = fs->first_data_block + group * fs->blocks_per_group + bit;
		if (bit < n && ext2_is_table(fs, g, *block)) {
			error = ext2_error(fs, "a table's block that is free", *block);
		} else if (bit < n) {
			flip_bit(fs, map, bit);
			g->free_blocks_count--;
			ext2_bdirty(fs, g, sizeof(*g));
			fs->free_blocks--;
			fs->super_dirty = true;
			error = 1;
		}
	}
	ext2_brelse(map);
	ext2_brelse(g);
	return error;
}

int
ext2_new_block(struct ext2_fs *fs, uint32_t goal, uint32_t *block)
{
	uint32_t first, bit, group;

	if (fs->read_only)
		return -EROFS;
	if (fs->free_blocks == 0 ||
	    (fs->free_blocks <= fs->reserved_blocks && !ext2_may_use_reserve()))
		return -ENOSPC;
	first = (ext2_good_block(fs, goal) ? goal : fs->first_data_block) - fs->first_data_block;
	group = first / fs->blocks_per_group;
	bit = first % fs->blocks_per_group;
	/* The first group comes last again, from its beginning. */
	for (uint32_t i = 0; i <= fs->groups; i++) {
		int r = take_block(fs, (group + i) % fs->groups, i == 0 ? bit : 0, block);

		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ENOSPC;
}

/* The bitmap of a block, and its group. NULL and *err. */
static uint8_t *
map_of_block(struct ext2_fs *fs, uint32_t block, struct ext2_group **g, int *err)
{
	uint8_t *map;

	*g = NULL;
	if (!ext2_good_block(fs, block)) {
		*err = ext2_error(fs, "the number of a block", block);
		return NULL;
	}
	*g = ext2_get_group(fs, (block - fs->first_data_block) / fs->blocks_per_group, err);
	map = *g != NULL ? ext2_bread(fs, (*g)->block_bitmap, err) : NULL;
	if (map == NULL)
		ext2_brelse(*g);
	return map;
}

int
ext2_block_used(struct ext2_fs *fs, uint32_t block)
{
	struct ext2_group *g;
	int used;
	const uint8_t *map = map_of_block(fs, block, &g, &used);

	if (map == NULL)
		return used;
	used = bit_is_set(map, (block - fs->first_data_block) % fs->blocks_per_group);
	ext2_brelse((void *)(uintptr_t)map);
	ext2_brelse(g);
	return used;
}

int
ext2_free_block(struct ext2_fs *fs, uint32_t block)
{
	uint32_t bit;
	struct ext2_group *g;
	int error = 0;
	uint8_t *map = map_of_block(fs, block, &g, &error);

	if (map == NULL)
		return error;
	bit = (block - fs->first_data_block) % fs->blocks_per_group;
	if (!bit_is_set(map, bit) || ext2_is_table(fs, g, block)) {
		error = ext2_error(fs, "a block that is free, or a table's, is freed", block);
	} else {
		flip_bit(fs, map, bit);
		g->free_blocks_count++;
		ext2_bdirty(fs, g, sizeof(*g));
		fs->free_blocks++;
		fs->super_dirty = true;
		ext2_bforget(fs, block);
	}
	ext2_brelse(map);
	ext2_brelse(g);
	return error;
}

/* Takes a free inode of a group. 1: done; 0: there is none; or -errno. */
static int
take_inode(struct ext2_fs *fs, uint32_t group, bool dir, uint32_t *ino)
{
	uint32_t from = group == 0 ? fs->first_ino - 1 : 0, bit;
	int error = 0;
	struct ext2_group *g = ext2_get_group(fs, group, &error);
	uint8_t *map = NULL;

	if (g != NULL && g->free_inodes_count > 0)
		map = ext2_bread(fs, g->inode_bitmap, &error);
	if (map != NULL) {
		bit = find_zero(map, from, fs->inodes_per_group);
		if (bit < fs->inodes_per_group) {
			flip_bit(fs, map, bit);
			g->free_inodes_count--;
			g->used_dirs_count = (uint16_t)(g->used_dirs_count + dir);
			ext2_bdirty(fs, g, sizeof(*g));
			fs->free_inodes--;
			fs->super_dirty = true;
			*ino = group * fs->inodes_per_group + bit + 1;
			error = 1;
		}
	}
	ext2_brelse(map);
	ext2_brelse(g);
	return error;
}

int
ext2_new_inode(struct ext2_fs *fs, uint32_t near, bool dir, uint32_t *ino)
{
	uint32_t group = (near - 1) / fs->inodes_per_group;

	if (fs->read_only)
		return -EROFS;
	for (uint32_t i = 0; i < fs->groups && fs->free_inodes > 0; i++) {
		int r = take_inode(fs, (group + i) % fs->groups, dir, ino);

		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ENOSPC;
}

int
ext2_free_inode(struct ext2_fs *fs, uint32_t ino, bool dir)
{
	uint32_t bit = (ino - 1) % fs->inodes_per_group;
	int error = 0;
	struct ext2_group *g = ext2_get_group(fs, (ino - 1) / fs->inodes_per_group, &error);
	uint8_t *map = g != NULL ? ext2_bread(fs, g->inode_bitmap, &error) : NULL;

	if (map != NULL && !bit_is_set(map, bit)) {
		error = ext2_error(fs, "an inode that is free is freed", ino);
	} else if (map != NULL) {
		flip_bit(fs, map, bit);
		g->free_inodes_count++;
		g->used_dirs_count =
		    (uint16_t)(g->used_dirs_count - (dir && g->used_dirs_count > 0));
		ext2_bdirty(fs, g, sizeof(*g));
		fs->free_inodes++;
		fs->super_dirty = true;
	}
	ext2_brelse(map);
	ext2_brelse(g);
	return error;
}
