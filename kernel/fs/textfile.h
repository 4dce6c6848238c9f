/*
 * textfile.h - files whose text the kernel makes when they are read, as Linux's seq_file does: at
 * the first read of an open file, and at each later one from offset 0. Of any length: the user who
 * opened the file is charged for it. Thread context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct file;
struct sbuf;
struct uio;
struct vnode;

/* `open` and `release` of such a file. 0 or -ENOMEM. */
int textfile_open(struct file *f);
void textfile_release(struct file *f);
/*
 * A read: show prints all of the text, and is called again with more room while it does not fit. It
 * returns 0 or -errno. No lock is held.
 */
int64_t textfile_read(struct vnode *vn, struct file *f, struct uio *u, uint64_t *off,
		      int (*show)(struct vnode *vn, struct sbuf *out));
/*
 * A write: store gets it without the newline at its end, may change the text, and returns 0 or
 * -errno. At most 16 KiB are taken. parts: the text is a list, so only the lines, or words, that
 * are whole are taken from a write that a program has cut into blocks.
 */
int64_t textfile_write(struct vnode *vn, struct uio *u, uint64_t *off, bool parts,
		       int (*store)(struct vnode *vn, char *text));
