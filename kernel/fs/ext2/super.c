/* super.c - the superblock and the descriptors of groups (ext2.h). */
#include "kernel/abi/errno.h"
#include "kernel/fs/ext2/ext2.h"
#include "kernel/lib/string.h"

/* The geometry, for a device of so many bytes. NULL, or what is wrong. */
static const char *
check_geometry(struct ext2_fs *fs, uint64_t bytes)
{
	uint32_t bits = fs->block_size * 8, per_block = fs->block_size / fs->inode_size;
	uint64_t desc_blocks;

	if (fs->blocks_per_group == 0 || fs->blocks_per_group > bits || fs->inodes_per_group == 0 ||
	    fs->inodes_per_group > bits || fs->inodes_per_group < per_block)
		return "the size of a group is wrong";
	if (fs->first_data_block != (fs->block_size == EXT2_BLOCK_MIN) ||
	    fs->blocks <= fs->first_data_block)
		return "the first block is wrong";
	if ((uint64_t)fs->blocks << fs->block_shift > bytes)
		return "it is larger than the device";
	fs->groups = (fs->blocks - fs->first_data_block - 1) / fs->blocks_per_group + 1;
	if (fs->inodes != (uint64_t)fs->groups * fs->inodes_per_group || fs->inodes < fs->first_ino)
		return "the number of inodes is wrong";
	fs->table_blocks = (fs->inodes_per_group + per_block - 1) / per_block;
	desc_blocks = ((uint64_t)fs->groups * sizeof(struct ext2_group) + fs->block_size - 1) >>
		      fs->block_shift;
	if (fs->table_blocks >= fs->blocks || fs->first_data_block + 1 + desc_blocks >= fs->blocks)
		return "it has no room for its tables";
	fs->tables_end = fs->first_data_block + 1 + (uint32_t)desc_blocks;
	return NULL;
}

static const char *
check_features(struct ext2_fs *fs, const struct ext2_super *sb)
{
	if (sb->rev_level > 1)
		return "its revision is not known";
	if (sb->rev_level == 0)
		return NULL;
	if (sb->feature_incompat & ~EXT2_INCOMPAT_FILETYPE)
		return "it has features that ext2 does not have";
	fs->filetype = sb->feature_incompat & EXT2_INCOMPAT_FILETYPE;
	fs->must_be_read_only =
	    sb->feature_ro_compat & ~(uint32_t)(EXT2_RO_SPARSE_SUPER | EXT2_RO_LARGE_FILE);
	return NULL;
}

int
ext2_parse_super(struct ext2_fs *fs, const struct ext2_super *sb, uint64_t bytes, const char **why)
{
	*why = sb->magic != EXT2_SUPER_MAGIC ? "it has no magic number of ext2"
					     : check_features(fs, sb);
	if (*why != NULL)
		return -EINVAL;
	*why = "the size of a block or an inode is wrong";
	if (sb->log_block_size > 2)
		return -EUCLEAN;
	fs->block_shift = 10 + sb->log_block_size;
	fs->block_size = 1u << fs->block_shift;
	fs->pointers_shift = fs->block_shift - 2;
	fs->inode_size = sb->rev_level == 0 ? sizeof(struct ext2_disk_inode) : sb->inode_size;
	fs->first_ino = sb->rev_level == 0 ? EXT2_FIRST_INO : sb->first_ino;
	if (fs->inode_size < sizeof(struct ext2_disk_inode) || fs->inode_size > fs->block_size ||
	    (fs->inode_size & (fs->inode_size - 1)) != 0 || fs->first_ino < EXT2_FIRST_INO)
		return -EUCLEAN;
	fs->blocks = sb->blocks_count;
	fs->inodes = sb->inodes_count;
	fs->reserved_blocks = sb->r_blocks_count;
	fs->first_data_block = sb->first_data_block;
	fs->unchecked = (sb->state & (EXT2_STATE_VALID | EXT2_STATE_ERROR)) != EXT2_STATE_VALID;
	fs->blocks_per_group = sb->blocks_per_group;
	fs->inodes_per_group = sb->inodes_per_group;
	*why = check_geometry(fs, bytes);
	return *why != NULL ? -EUCLEAN : 0;
}

bool
ext2_set_broken(struct ext2_fs *fs)
{
	bool first = !fs->broken;

	fs->broken = true;
	if (!fs->read_only)
		fs->super_dirty = fs->lost = true;
	__atomic_store_n(&fs->read_only, true, __ATOMIC_RELAXED);
	return first;
}

int
ext2_error(struct ext2_fs *fs, const char *what, uint64_t number)
{
	if (ext2_set_broken(fs))
		ext2_warn(fs, what, number);
	return -EUCLEAN;
}

uint32_t
ext2_group_blocks(const struct ext2_fs *fs, uint32_t group)
{
	uint32_t first = fs->first_data_block + group * fs->blocks_per_group;

	return fs->blocks - first < fs->blocks_per_group ? fs->blocks - first
							 : fs->blocks_per_group;
}

/* Has a group these n blocks? */
static bool
holds_blocks(const struct ext2_fs *fs, uint32_t group, uint32_t block, uint32_t n)
{
	uint32_t at = block - fs->first_data_block - group * fs->blocks_per_group;
	uint32_t size = ext2_group_blocks(fs, group);

	return ext2_good_block(fs, block) && n <= size && at <= size - n;
}

struct ext2_group *
ext2_get_group(struct ext2_fs *fs, uint32_t group, int *err)
{
	uint32_t shift = fs->block_shift - 5, block = fs->first_data_block + 1 + (group >> shift);
	struct ext2_group *g = ext2_bread(fs, block, err);

	if (g == NULL)
		return NULL;
	g += group & ((1u << shift) - 1);
	if (holds_blocks(fs, group, g->block_bitmap, 1) &&
	    holds_blocks(fs, group, g->inode_bitmap, 1) &&
	    holds_blocks(fs, group, g->inode_table, fs->table_blocks) &&
	    g->free_blocks_count <= ext2_group_blocks(fs, group) &&
	    g->free_inodes_count <= fs->inodes_per_group)
		return g;
	ext2_brelse(g);
	*err = ext2_error(fs, "the descriptor of a group", group);
	return NULL;
}

bool
ext2_is_table(const struct ext2_fs *fs, const struct ext2_group *g, uint32_t block)
{
	return block < fs->tables_end || block == g->block_bitmap || block == g->inode_bitmap ||
	       block - g->inode_table < fs->table_blocks;
}

int
ext2_check_block(struct ext2_fs *fs, uint32_t block)
{
	int error = 0;
	struct ext2_group *g = NULL;
	bool good = ext2_good_block(fs, block);

	if (good)
		g = ext2_get_group(fs, (block - fs->first_data_block) / fs->blocks_per_group,
				   &error);
	if (g != NULL)
		good = !ext2_is_table(fs, g, block);
	ext2_brelse(g);
	return good ? error : ext2_error(fs, "the number of a file's block", block);
}

int
ext2_count_free(struct ext2_fs *fs)
{
	int error;

	fs->free_blocks = fs->free_inodes = 0;
	for (uint32_t i = 0; i < fs->groups; i++) {
		struct ext2_group *g = ext2_get_group(fs, i, &error);

		if (g == NULL)
			return error;
		fs->free_blocks += g->free_blocks_count;
		fs->free_inodes += g->free_inodes_count;
		ext2_brelse(g);
	}
	return 0;
}

int
ext2_write_super(struct ext2_fs *fs, bool mounted)
{
	int error;
	char *block = ext2_bread(fs, fs->first_data_block, &error);
	struct ext2_super *sb;

	if (block == NULL)
		return error;
	sb = (struct ext2_super *)(block +
				   (fs->block_size == EXT2_BLOCK_MIN ? 0 : EXT2_SUPER_OFFSET));
	sb->free_blocks_count = fs->free_blocks;
	sb->free_inodes_count = fs->free_inodes;
	sb->wtime = ext2_seconds();
	sb->state = (uint16_t)(sb->state & ~EXT2_STATE_VALID);
	if (!mounted && !fs->broken && !fs->unchecked)
		sb->state |= EXT2_STATE_VALID;
	if (fs->broken)
		sb->state |= EXT2_STATE_ERROR;
	if (fs->large_file && sb->rev_level > 0)
		sb->feature_ro_compat |= EXT2_RO_LARGE_FILE;
	ext2_bdirty(fs, sb, EXT2_SUPER_SIZE);
	ext2_brelse(block);
	fs->super_dirty = false;
	return 0;
}
