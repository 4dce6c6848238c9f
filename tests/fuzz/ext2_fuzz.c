/*
 * ext2_fuzz.c - a disk with ext2 on which bytes are wrong, and tables of partitions. An input is a
 * list of bytes that are changed in a good image, and of what is done to it. Promises: no block
 * outside of the image is asked for, nothing outside of a block is touched, nothing takes more
 * steps than there are blocks for; and if no byte was changed, also when blocks cannot be read, the
 * bitmaps have what is in the tree, and nothing is ever called wrong.
 */
#include <string.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/block/bio.h"
#include "kernel/fs/ext2/ext2.h"
#include "tests/fuzz/fuzz.h"

#define BLOCKS    512
#define SIZE      1024
#define INODES    64
#define STEPS_MAX (40 * BLOCKS * 256) /* blocks that one operation asks for */
#define FILES     8

static unsigned char *image[BLOCKS]; /* each by itself, so that the sanitizer knows its end */
static _Alignas(8) unsigned char disk[BLOCKS][SIZE]; /* what was said to have changed */
static unsigned steps, held;
static unsigned fail_in; /* the block that cannot be read, counted from now; 0: all can */

void *
ext2_bread(struct ext2_fs *fs, uint32_t block, int *err)
{
	if (block >= fs->blocks || block >= BLOCKS) {
		*err = -EIO;
		return NULL;
	}
	FUZZ_CHECK(++steps < STEPS_MAX, "%u blocks", steps);
	if (fail_in > 0 && --fail_in == 0) {
		*err = -EIO;
		return NULL;
	}
	held++;
	*err = 0;
	return image[block];
}

void *
ext2_getblk(struct ext2_fs *fs, uint32_t block, int *err)
{
	void *p = ext2_bread(fs, block, err);

	if (p == NULL)
		return NULL;
	memset(disk[block], 0, SIZE);
	return memset(p, 0, SIZE);
}

void
ext2_brelse(void *block)
{
	held -= block != NULL;
}

void
ext2_bdirty(struct ext2_fs *fs, void *at, size_t size)
{
	FUZZ_CHECK(!fs->read_only || fs->broken, "%zu bytes are written", size);
	for (unsigned i = 0; i < BLOCKS; i++) {
		size_t where = (size_t)((unsigned char *)at - image[i]);

		if (where < SIZE)
			memcpy(disk[i] + where, at, size);
	}
}

void
ext2_bforget(struct ext2_fs *fs, uint32_t block)
{
	FUZZ_CHECK(ext2_good_block(fs, block) && block > 2, "block %u", block);
}

bool
ext2_may_use_reserve(void)
{
	return true;
}

uint32_t
ext2_seconds(void)
{
	return 1;
}

static unsigned warned;

void
ext2_warn(struct ext2_fs *fs, const char *what, uint64_t number)
{
	(void)fs, (void)what, (void)number;
	warned++;
}

/* A file system with an empty root: blocks 1 to 4 as usual, then eight of inodes. */
static void
make_image(void)
{
	static struct ext2_super *sb;
	struct ext2_group *g;
	struct ext2_disk_inode *root;

	for (unsigned i = 0; i < BLOCKS; i++) {
		if (image[i] == NULL)
			image[i] = malloc(SIZE);
		memset(image[i], 0, SIZE);
	}
	sb = (struct ext2_super *)image[1];
	*sb = (struct ext2_super){.inodes_count = INODES,
				  .blocks_count = BLOCKS,
				  .first_data_block = 1,
				  .blocks_per_group = 8 * SIZE,
				  .inodes_per_group = INODES,
				  .magic = EXT2_SUPER_MAGIC,
				  .state = EXT2_STATE_VALID,
				  .rev_level = 1,
				  .first_ino = EXT2_FIRST_INO,
				  .inode_size = 128,
				  .feature_incompat = EXT2_INCOMPAT_FILETYPE};
	g = (struct ext2_group *)image[2];
	*g = (struct ext2_group){.block_bitmap = 3,
				 .inode_bitmap = 4,
				 .inode_table = 5,
				 .free_blocks_count = BLOCKS - 14,
				 .free_inodes_count = INODES - EXT2_FIRST_INO + 1,
				 .used_dirs_count = 1};
	image[3][0] = 0xff; /* blocks 1 to 13 */
	image[3][1] = 0x1f;
	image[4][0] = 0xff; /* inodes 1 to 10 */
	image[4][1] = 0x03;
	root = (struct ext2_disk_inode *)image[5] + 1;
	*root = (struct ext2_disk_inode){.mode = S_IFDIR | 0755,
					 .size = SIZE,
					 .links_count = 2,
					 .blocks = SIZE / 512,
					 .block = {13}};
	memcpy(image[13], "\2\0\0\0\14\0\1\2.\0\0\0\2\0\0\0\364\3\2\2..", 22);
}

static struct ext2_fs fs;

/* As a kernel does that has the inode in memory: what fails is tried again. */
static int
put_inode(struct ext2_inode *ip)
{
	int error = ext2_write_inode(&fs, ip);

	return error == -EIO ? ext2_write_inode(&fs, ip) : error;
}

/* A kernel that cannot delete one says that the file system is broken. */
static void
delete_inode(struct ext2_inode *ip)
{
	int error;

	while ((error = ext2_delete_inode(&fs, ip)) == -EAGAIN)
		;
	if (error == -EIO)
		put_inode(ip);
}

/* Makes a name another file's; ino 0: removes it. */
static int
change_name(struct ext2_inode *dir, const char *name, uint32_t ino, uint32_t mode)
{
	struct ext2_walk w;
	int error = ext2_dir_find(&fs, dir, name, &w);

	if (error == 0 && ino != 0)
		ext2_dir_set(&fs, &w, ino, mode);
	else if (error == 0)
		ext2_dir_remove(&fs, &w);
	ext2_brelse(w.block);
	return error;
}

/* Makes a file, or a directory, with a name in dir. */
static int
create(struct ext2_inode *dir, const char *name, uint32_t mode, struct ext2_inode *ip)
{
	int error;

	memset(ip, 0, sizeof(*ip));
	error = ext2_new_inode(&fs, dir->ino, S_ISDIR(mode), &ip->ino);
	if (error != 0)
		return error;
	ip->mode = (uint16_t)mode;
	ip->links = 1;
	error = S_ISDIR(mode) ? ext2_dir_make(&fs, ip, dir->ino) : 0;
	if (error == 0)
		error = ext2_dir_add(&fs, dir, name, ip->ino, mode);
	if (error != 0) {
		delete_inode(ip);
		put_inode(dir);
		return error;
	}
	put_inode(ip);
	return put_inode(dir);
}

static void
free_bits(unsigned map, unsigned bits, uint32_t expected, const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < bits; i++)
		n += !(image[map][i / 8] & 1u << i % 8);
	FUZZ_CHECK(n == expected, "%s: %u are free, expected %u", what, n, expected);
}

/* No block of a file is free, or another's, too. */
static void
check_block(uint32_t block, unsigned depth, bool seen[BLOCKS])
{
	if (block == 0)
		return;
	FUZZ_CHECK(block < BLOCKS && !seen[block] &&
		       disk[3][(block - 1) / 8] & 1u << (block - 1) % 8,
		   "block %u is used, and free or another's", block);
	seen[block] = true;
	for (unsigned i = 0; depth > 0 && i < SIZE / 4; i++)
		check_block(((const uint32_t *)disk[block])[i], depth - 1, seen);
}

static void
check_blocks(void)
{
	bool seen[BLOCKS] = {false};

	for (unsigned i = 0; i < INODES; i++) {
		const struct ext2_disk_inode *d =
		    (const struct ext2_disk_inode *)disk[5 + i * sizeof(*d) / SIZE] +
		    i % (SIZE / sizeof(*d));

		for (unsigned k = 0; k < EXT2_NBLOCKS; k++)
			check_block(d->block[k], k < EXT2_NDIR ? 0 : k - EXT2_NDIR + 1, seen);
	}
}

struct tally {
	unsigned depth, names, sectors, files;
};

static int
look(void *arg, const char *name, size_t len, uint32_t ino)
{
	struct tally *t = arg;
	struct ext2_inode i;
	volatile char last = name[len - 1];
	int error = ext2_read_inode(&fs, ino, &i);

	(void)last;
	FUZZ_CHECK(len > 0 && len <= EXT2_NAME_MAX && ino >= 1 && ino <= fs.inodes, "inode %u",
		   ino);
	if (error != 0 || ++t->names > 1000)
		return error;
	t->files++;
	t->sectors += i.sectors;
	for (uint64_t n = 0; n < 16 + 300 && !ext2_is_inline(&fs, &i); n += 5) {
		uint32_t block = 0;

		if (ext2_bmap(&fs, &i, n, false, &block) == 0)
			FUZZ_CHECK(block == 0 || block > 2, "block %u", block);
	}
	if (S_ISDIR(i.mode) && t->depth < 4) {
		t->depth++;
		ext2_dir_walk(&fs, &i, look, t);
		t->depth--;
	}
	return 0;
}

struct wanted {
	const char *name;
	uint32_t ino;
};

static int
find_name(void *arg, const char *name, size_t len, uint32_t ino)
{
	struct wanted *w = arg;

	if (len == strlen(w->name) && memcmp(name, w->name, len) == 0)
		w->ino = ino;
	return w->ino != 0;
}

/* Maps some blocks of a file, or frees what is after one. */
static void
change_file(struct fuzz_input *in, struct ext2_inode *ip, bool grow)
{
	uint32_t block;

	for (unsigned k = 0; k < 4 && grow; k++)
		ext2_bmap(&fs, ip, fuzz_number(in) % 70000, true, &block);
	if (!grow)
		ext2_free_from(&fs, ip, fuzz_number(in) % 70000, UINT32_MAX);
	put_inode(ip);
}

/* One operation on a file of the root. */
static void
operate(struct fuzz_input *in, struct ext2_inode *root)
{
	char name[] = "file0-with-a-name-that-is-long";
	unsigned what = fuzz_byte(in), op = what % 8;
	struct wanted w = {name, 0};
	struct ext2_inode i;

	name[4] = (char)('0' + what / 8 % FILES);
	steps = 0;
	ext2_dir_walk(&fs, root, find_name, &w);
	if (op == 6) {
		ext2_dir_walk(&fs, root, look, &(struct tally){0});
	} else if (op == 7) {
		ext2_block_used(&fs, (uint32_t)fuzz_number(in) % (BLOCKS - 1) + 1);
		ext2_write_super(&fs, true);
		fail_in = fuzz_byte(in);
	} else if (w.ino == 0) {
		create(root, name, op == 1 ? S_IFDIR | 0755 : S_IFREG | 0644, &i);
	} else if (ext2_read_inode(&fs, w.ino, &i) == 0) {
		if (op < 2)
			change_name(root, name, w.ino, i.mode);
		else if (op < 5 && S_ISREG(i.mode))
			change_file(in, &i, op < 4);
		else if (change_name(root, name, 0, 0) == 0)
			delete_inode(&i);
	}
	FUZZ_CHECK(held == 0, "%u blocks are held after operation %u", held, op);
}

static bool
read_sector(void *arg, uint64_t sector, uint8_t to[512])
{
	const struct fuzz_input *in = arg;

	FUZZ_CHECK(sector < 4096, "sector %lu", (unsigned long)sector);
	memset(to, 0, 512);
	if (sector * 512 < in->left)
		memcpy(to, in->p + sector * 512,
		       in->left - sector * 512 < 512 ? in->left - sector * 512 : 512);
	return true;
}

static void
check_partitions(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct partition part[DISK_PARTS_MAX];
	unsigned n = partition_parse(4096, read_sector, &in, part);

	FUZZ_CHECK(n <= DISK_PARTS_MAX, "%u partitions", n);
	for (unsigned i = 0; i < n; i++)
		FUZZ_CHECK(part[i].sectors == 0 || (part[i].start > 0 && part[i].start < 4096 &&
						    part[i].sectors <= 4096 - part[i].start),
			   "partition %u", i + 1);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			FUZZ_CHECK(part[i].sectors == 0 || part[k].sectors == 0 ||
				       part[i].start >= part[k].start + part[k].sectors ||
				       part[k].start >= part[i].start + part[i].sectors,
				   "partitions %u and %u", k + 1, i + 1);
}

/* Changes two or four bytes of the blocks that are in use, mostly of their beginnings. */
static unsigned
damage(struct fuzz_input *in)
{
	unsigned n = fuzz_byte(in) % 16;

	for (unsigned i = 0; i < n; i++) {
		unsigned block = 1 + fuzz_byte(in) % 20, where = fuzz_byte(in);
		unsigned at = (where & 1 ? fuzz_byte(in) * 4u : where / 2 * 2 % 128);
		uint32_t value = (uint32_t)fuzz_number(in);

		memcpy(image[block] + at, &value, where & 128 ? 2 : 4);
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct ext2_inode root, file;
	const char *why;
	unsigned changed;
	uint32_t block;

	check_partitions(data, size);
	make_image();
	memset(&fs, 0, sizeof(fs));
	steps = held = warned = fail_in = 0;
	FUZZ_CHECK(ext2_parse_super(&fs, (struct ext2_super *)image[1], BLOCKS * SIZE, &why) == 0 &&
		       ext2_count_free(&fs) == 0 && ext2_read_inode(&fs, EXT2_ROOT_INO, &root) == 0,
		   "%s", why);
	create(&root, "file0-with-a-name-that-is-long", S_IFREG | 0644, &file);
	ext2_bmap(&fs, &file, 13, true, &block);
	ext2_bmap(&fs, &file, 300, true, &block);
	ext2_write_inode(&fs, &file);
	create(&root, "file1-with-a-name-that-is-long", S_IFDIR | 0755, &file);
	changed = damage(&in);
	for (unsigned i = 0; i < BLOCKS; i++)
		memcpy(disk[i], image[i], SIZE);
	memset(&fs, 0, sizeof(fs));
	if (ext2_parse_super(&fs, (struct ext2_super *)image[1], BLOCKS * SIZE, &why) != 0 ||
	    fs.block_size != SIZE || ext2_count_free(&fs) != 0 ||
	    ext2_read_inode(&fs, EXT2_ROOT_INO, &root) != 0 || !S_ISDIR(root.mode)) {
		FUZZ_CHECK(changed > 0 && held == 0, "%s", why);
		return 0;
	}
	for (unsigned i = 0; i < 64 && in.left > 0; i++)
		operate(&in, &root);
	if (changed == 0) {
		FUZZ_CHECK(warned == 0, "%u warnings", warned);
		check_blocks();
		free_bits(3, BLOCKS - 1, fs.free_blocks, "blocks");
		free_bits(4, INODES, fs.free_inodes, "inodes");
	}
	return 0;
}
