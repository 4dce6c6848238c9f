/*
 * textfile.h - files whose text the kernel makes when they are read, as Linux's seq_file does: at
 * the first read of an open file, and at each later one from offset 0. Of any length: the user who
 * opened the file is charged for it. Thread context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file;
struct uio;
struct vnode;

/* The operations `open`, `release`, `read` and `write` for such a file. They call its show and
 * store. textfile_open() returns 0 or -ENOMEM. */
int textfile_open(struct file *f);
void textfile_release(struct file *f);
/* show is called again with more room while the text does not fit. */
int64_t textfile_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);
/*
 * Takes 16 KiB; more is -EINVAL. If the file has `parts`, and more is written, or a program has cut
 * its list into blocks, takes only whole lines or words from each block; -E2BIG: none is whole.
 */
int64_t textfile_write(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off);

static inline bool
textfile_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}
