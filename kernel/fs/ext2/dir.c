/*
 * dir.c - the names of a directory, which are lists in its blocks (ext2.h). A hash tree, which
 * other systems keep in blocks that look like free entries, is given up when a name is added.
 */
#include "kernel/abi/errno.h"
#include "kernel/abi/fcntl.h"
#include "kernel/fs/ext2/ext2.h"
#include "kernel/lib/string.h"

#define HEADER offsetof(struct ext2_dirent, name)

static uint32_t
entry_size(size_t name)
{
	return (uint32_t)(HEADER + name + 3) & ~3u;
}

/* The block number n of a directory. NULL and *err. */
static char *
dir_block(struct ext2_fs *fs, struct ext2_inode *dir, uint32_t n, int *err)
{
	uint32_t block;

	*err = ext2_bmap(fs, dir, n, false, &block);
	if (*err == 0 && block == 0)
		*err = ext2_error(fs, "a directory with a hole", dir->ino);
	return *err == 0 ? ext2_bread(fs, block, err) : NULL;
}

/* The next entry, checked. NULL: the end, or *err; then the walk has ended. */
static struct ext2_dirent *
ext2_next_entry(struct ext2_fs *fs, struct ext2_inode *dir, struct ext2_walk *w, int *err)
{
	struct ext2_dirent *e;

	*err = 0;
	if (w->block != NULL && w->at >= w->end) {
		ext2_brelse(w->block);
		w->block = NULL;
		w->n++;
	}
	if (w->block == NULL) {
		if (w->n >= dir->size >> fs->block_shift || (w->stop != 0 && w->n >= w->stop))
			return NULL;
		w->block = dir_block(fs, dir, w->n, err);
		if (w->block == NULL)
			return NULL;
		w->at = 0;
		w->end = fs->block_size;
		w->before = NULL;
	}
	e = (struct ext2_dirent *)(w->block + w->at);
	if (w->end - w->at < HEADER || e->rec_len % 4 != 0 || e->rec_len > w->end - w->at ||
	    e->rec_len < entry_size(e->inode != 0 ? e->name_len : 0) || e->inode > fs->inodes ||
	    (e->inode != 0 && e->name_len == 0)) {
		*err = ext2_error(fs, "an entry of a directory", dir->ino);
		ext2_brelse(w->block);
		w->block = NULL;
		return NULL;
	}
	w->at += e->rec_len;
	return e;
}

static bool
is_name(const struct ext2_dirent *e, const char *name, size_t len)
{
	return e->inode != 0 && e->name_len == len && memcmp(e->name, name, len) == 0;
}

/* What an entry needs of its room. */
static uint32_t
used_size(const struct ext2_dirent *e)
{
	return e->inode != 0 ? entry_size(e->name_len) : 0;
}

/*
 * Finds the entry whose name is these n bytes; or, if name is NULL, an entry with room for a name
 * of n bytes after its own. The search begins at block *hint, where the last one ended. NULL, and
 * *err: -ENOENT.
 */
static struct ext2_dirent *
ext2_dir_search(struct ext2_fs *fs, struct ext2_inode *dir, const char *name, size_t n,
		uint32_t *hint, struct ext2_walk *w, int *err)
{
	struct ext2_dirent *e;

	*w = (struct ext2_walk){.n = *hint};
	for (;;) {
		while ((e = ext2_next_entry(fs, dir, w, err)) != NULL &&
		       !(name != NULL ? is_name(e, name, n) : e->rec_len - used_size(e) >= n))
			w->before = e;
		if (e != NULL)
			*hint = w->n;
		if (e != NULL || *err != 0 || *hint == 0 || w->stop != 0)
			break;
		*w = (struct ext2_walk){.stop = *hint};
	}
	if (e == NULL && *err == 0)
		*err = -ENOENT;
	return e;
}

int
ext2_dir_find(struct ext2_fs *fs, struct ext2_inode *dir, const char *name, struct ext2_walk *w)
{
	int error;

	w->entry = ext2_dir_search(fs, dir, name, strlen(name), &dir->found_at, w, &error);
	return error;
}

static bool
good_name(const struct ext2_dirent *e)
{
	for (unsigned i = 0; i < e->name_len; i++)
		if (e->name[i] == '/' || e->name[i] == '\0')
			return false;
	return true;
}

int
ext2_dir_walk(struct ext2_fs *fs, struct ext2_inode *dir, ext2_dir_fn *fn, void *arg)
{
	struct ext2_walk w = {0};
	const struct ext2_dirent *e;
	int error, r;

	while ((e = ext2_next_entry(fs, dir, &w, &error)) != NULL) {
		if (e->inode == 0 || is_name(e, ".", 1) || is_name(e, "..", 2))
			continue;
		r = !good_name(e) ? ext2_error(fs, "a name of a directory", dir->ino)
				  : fn(arg, e->name, e->name_len, e->inode);
		if (r != 0) {
			ext2_brelse(w.block);
			return r;
		}
	}
	return error;
}

/* Makes an entry lead to a file. */
static void
point_entry(const struct ext2_fs *fs, struct ext2_dirent *e, uint32_t ino, uint32_t mode)
{
	static const uint8_t types[16] = {[S_IFIFO >> 12] = 5, [S_IFCHR >> 12] = 3,
					  [S_IFDIR >> 12] = 2, [S_IFBLK >> 12] = 4,
					  [S_IFREG >> 12] = 1, [S_IFLNK >> 12] = 7,
					  [S_IFSOCK >> 12] = 6};

	e->inode = ino;
	e->file_type = fs->filetype ? types[mode >> 12 & 15] : 0;
}

/* Adds one more block to a directory, with one free entry. */
static int
add_block(struct ext2_fs *fs, struct ext2_inode *dir)
{
	uint32_t n = (uint32_t)(dir->size >> fs->block_shift), block;
	struct ext2_dirent *e;
	int error;

	if (dir->size >= EXT2_DIR_MAX)
		return -ENOSPC;
	error = ext2_bmap(fs, dir, n, true, &block);
	e = error == 0 ? ext2_getblk(fs, block, &error) : NULL;
	if (e == NULL) {
		ext2_free_from(fs, dir, n, UINT32_MAX);
		return error;
	}
	e->rec_len = (uint16_t)fs->block_size;
	ext2_bdirty(fs, e, fs->block_size);
	ext2_brelse(e);
	dir->size += fs->block_size;
	dir->dirty = true;
	return 0;
}

int
ext2_dir_add(struct ext2_fs *fs, struct ext2_inode *dir, const char *name, uint32_t ino,
	     uint32_t mode)
{
	uint32_t need = entry_size(strlen(name)), used;
	struct ext2_dirent *e;
	struct ext2_walk w;
	int error;

	e = ext2_dir_search(fs, dir, NULL, need, &dir->room_at, &w, &error);
	if (e == NULL && error == -ENOENT) {
		error = add_block(fs, dir);
		if (error == 0) {
			dir->room_at = (uint32_t)(dir->size >> fs->block_shift) - 1;
			w = (struct ext2_walk){.n = dir->room_at};
			e = ext2_next_entry(fs, dir, &w, &error);
		}
	}
	if (e == NULL)
		return error != 0 ? error : -EUCLEAN;
	used = used_size(e);
	if (used != 0) {
		struct ext2_dirent *rest = (struct ext2_dirent *)((char *)e + used);

		rest->rec_len = (uint16_t)(e->rec_len - used);
		e->rec_len = (uint16_t)used;
		e = rest;
	}
	point_entry(fs, e, ino, mode);
	e->name_len = (uint8_t)strlen(name);
	memcpy(e->name, name, e->name_len);
	ext2_bdirty(fs, w.block, fs->block_size);
	ext2_brelse(w.block);
	dir->flags &= ~(uint32_t)EXT2_FLAG_INDEX;
	dir->dirty = true;
	return 0;
}

void
ext2_dir_remove(struct ext2_fs *fs, struct ext2_walk *w)
{
	struct ext2_dirent *e = w->entry, *before = w->before;

	e->inode = 0;
	if (before != NULL && (char *)before + before->rec_len == (char *)e)
		before->rec_len = (uint16_t)(before->rec_len + e->rec_len);
	ext2_bdirty(fs, w->block, fs->block_size);
}

void
ext2_dir_set(struct ext2_fs *fs, struct ext2_walk *w, uint32_t ino, uint32_t mode)
{
	point_entry(fs, w->entry, ino, mode);
	ext2_bdirty(fs, w->block, fs->block_size);
}

int
ext2_dir_make(struct ext2_fs *fs, struct ext2_inode *dir, uint32_t parent)
{
	int error = add_block(fs, dir);

	if (error == 0)
		error = ext2_dir_add(fs, dir, ".", dir->ino, S_IFDIR);
	return error == 0 ? ext2_dir_add(fs, dir, "..", parent, S_IFDIR) : error;
}
