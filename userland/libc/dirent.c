/* dirent.c - directories, read a buffer at a time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/libc/libc.h"

struct dir_stream {
	int fd;
	size_t pos, end; /* of what getdents64 stored */
	struct dirent entry;
	_Alignas(8) char buf[2048];
};

DIR *
fdopendir(int fd)
{
	DIR *d = malloc(sizeof(*d));

	if (d == NULL)
		return NULL;
	d->fd = fd;
	d->pos = d->end = 0;
	return d;
}

DIR *
opendir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (d == NULL)
		close(fd);
	return d;
}

struct dirent *
readdir(DIR *d)
{
	struct linux_dirent64 *e;

	if (d->pos >= d->end) {
		ssize_t n = SYSCALL3(getdents64, d->fd, d->buf, sizeof(d->buf));

		if (n <= 0)
			return NULL;
		d->pos = 0;
		d->end = (size_t)n;
	}
	e = (struct linux_dirent64 *)(void *)(d->buf + d->pos);
	d->pos += e->d_reclen;
	d->entry.d_ino = e->d_ino;
	d->entry.d_type = e->d_type;
	strlcpy(d->entry.d_name, e->d_name, sizeof(d->entry.d_name));
	return &d->entry;
}

int
closedir(DIR *d)
{
	int r = close(d->fd);

	free(d);
	return r;
}
