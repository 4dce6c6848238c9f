/* epoll.h - sets of files to wait for: what file.c calls. */
#pragma once

struct file;

/* The last reference to a file is dropped: it leaves all sets. Thread context, may sleep. */
void epoll_forget(struct file *f);
