/*
 * stdio.c - buffered files.
 *
 * A file's buffer holds either input not yet read [pos, end) or output not yet written [0, pos);
 * never both: `writing` says which. All open files hang in one list, for fflush(NULL). Locking:
 * none; a program has one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/libc/stream.h"

static char stdin_buf[BUFSIZ], stdout_buf[BUFSIZ], stderr_buf[BUFSIZ];

static FILE stderr_file = {.fd = 2,
			   .buf = stderr_buf,
			   .mode = _IONBF,
			   .can_write = true,
			   .is_static = true,
			   .pushed = EOF};
static FILE stdout_file = {.fd = 1,
			   .buf = stdout_buf,
			   .mode = -1,
			   .can_write = true,
			   .is_static = true,
			   .pushed = EOF,
			   .next = &stderr_file};
static FILE stdin_file = {.fd = 0,
			  .buf = stdin_buf,
			  .mode = _IOFBF,
			  .can_read = true,
			  .is_static = true,
			  .pushed = EOF,
			  .next = &stdout_file};
static FILE *all_files = &stdin_file;

FILE *stdin = &stdin_file;
FILE *stdout = &stdout_file;
FILE *stderr = &stderr_file;

static int
parse_mode(const char *mode)
{
	int flags;

	switch (*mode++) {
	case 'r':
		flags = O_RDONLY;
		break;
	case 'w':
		flags = O_WRONLY | O_CREAT | O_TRUNC;
		break;
	case 'a':
		flags = O_WRONLY | O_CREAT | O_APPEND;
		break;
	default:
		errno = EINVAL;
		return -1;
	}
	for (; *mode != '\0'; mode++) {
		if (*mode == '+')
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		else if (*mode == 'e')
			flags |= O_CLOEXEC;
		else if (*mode == 'x')
			flags |= O_EXCL;
	}
	return flags;
}

FILE *
fdopen(int fd, const char *mode)
{
	int flags = parse_mode(mode);
	FILE *f;

	if (flags < 0)
		return NULL;
	f = malloc(sizeof(*f) + BUFSIZ);
	if (f == NULL)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->buf = (char *)(f + 1);
	f->fd = fd;
	f->mode = -1;
	f->can_read = (flags & O_ACCMODE) != O_WRONLY;
	f->can_write = (flags & O_ACCMODE) != O_RDONLY;
	f->pushed = EOF;
	f->next = all_files;
	all_files = f;
	return f;
}

FILE *
fopen(const char *path, const char *mode)
{
	int flags = parse_mode(mode);
	int fd = flags < 0 ? -1 : open(path, flags, 0666);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, mode);
	if (f == NULL)
		close(fd);
	return f;
}

static int
flush_one(FILE *f)
{
	size_t n = f->pos;

	if (!f->writing || n == 0)
		return 0;
	f->pos = 0;
	if (write_all(f->fd, f->buf, n) == 0)
		return 0;
	f->error = true;
	return EOF;
}

int
fflush(FILE *f)
{
	int r = 0;

	if (f != NULL)
		return flush_one(f);
	for (f = all_files; f != NULL; f = f->next)
		r |= flush_one(f);
	return r;
}

int
fclose(FILE *f)
{
	int r = flush_one(f);
	FILE **link;

	if (close(f->fd) < 0)
		r = EOF;
	for (link = &all_files; *link != f; link = &(*link)->next)
		;
	*link = f->next;
	if (!f->is_static)
		free(f);
	return r;
}

int
setvbuf(FILE *f, char *buf, int mode, size_t size)
{
	(void)buf;
	(void)size;
	f->mode = mode;
	return 0;
}

/* Gives back to the descriptor what was read ahead, so that its offset is the file's. */
static void
drop_input(FILE *f)
{
	if (!f->writing && f->pos < f->end)
		lseek(f->fd, (off_t)f->pos - (off_t)f->end, SEEK_CUR);
	f->pos = f->end = 0;
	f->pushed = EOF;
}

static bool
begin_write(FILE *f)
{
	if (!f->can_write) {
		errno = EBADF;
		f->error = true;
		return false;
	}
	if (f->mode < 0)
		f->mode = isatty(f->fd) ? _IOLBF : _IOFBF;
	if (!f->writing) {
		drop_input(f);
		f->writing = true;
	}
	return true;
}

static bool
begin_read(FILE *f)
{
	if (!f->can_read) {
		errno = EBADF;
		f->error = true;
		return false;
	}
	if (f->writing) {
		if (flush_one(f) != 0)
			return false;
		f->writing = false;
		f->pos = f->end = 0;
	}
	return true;
}

/* Puts bytes into the buffer and writes out what the mode asks for. */
static size_t
put_bytes(FILE *f, const char *s, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t room = BUFSIZ - f->pos, n = len - done < room ? len - done : room;

		if (f->pos == 0 && len - done >= BUFSIZ) { /* no use in copying */
			if (write_all(f->fd, s + done, len - done) < 0) {
				f->error = true;
				return done;
			}
			return len;
		}
		memcpy(f->buf + f->pos, s + done, n);
		f->pos += n;
		done += n;
		if (f->pos == BUFSIZ && flush_one(f) != 0)
			return done - n;
	}
	if (f->mode == _IONBF || (f->mode == _IOLBF && memchr(s, '\n', len) != NULL))
		flush_one(f);
	return f->error ? 0 : len;
}

size_t
fwrite(const void *buf, size_t size, size_t count, FILE *f)
{
	if (size == 0 || count == 0 || !begin_write(f))
		return 0;
	return put_bytes(f, buf, size * count) / size;
}

int
fputc(int c, FILE *f)
{
	char byte = (char)c;

	if (f->writing && f->mode == _IOFBF && f->pos < BUFSIZ - 1) {
		f->buf[f->pos++] = byte;
		return (unsigned char)byte;
	}
	return fwrite(&byte, 1, 1, f) == 1 ? (unsigned char)byte : EOF;
}

/* Reads into buf: a count, 0 at the end or on an error (marked). */
static size_t
fill(FILE *f, char *buf, size_t size)
{
	ssize_t n;

	if (f == stdin && stdout_file.mode == _IOLBF)
		flush_one(stdout);
	do
		n = read(f->fd, buf, size);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		f->eof = true;
	if (n < 0)
		f->error = true;
	return n > 0 ? (size_t)n : 0;
}

int
fgetc(FILE *f)
{
	if (f->pushed != EOF) {
		int c = f->pushed;

		f->pushed = EOF;
		return c;
	}
	if (f->writing || f->pos == f->end) {
		if (!begin_read(f))
			return EOF;
		f->pos = 0;
		f->end = fill(f, f->buf, BUFSIZ);
		if (f->end == 0)
			return EOF;
	}
	return (unsigned char)f->buf[f->pos++];
}

int
ungetc(int c, FILE *f)
{
	if (c == EOF || f->pushed != EOF)
		return EOF;
	f->pushed = (unsigned char)c;
	f->eof = false;
	return f->pushed;
}

size_t
fread(void *buf, size_t size, size_t count, FILE *f)
{
	char *p = buf;
	size_t len = size * count, done = 0;

	if (len == 0 || !begin_read(f))
		return 0;
	if (f->pushed != EOF) {
		p[done++] = (char)f->pushed;
		f->pushed = EOF;
	}
	while (done < len) {
		size_t n = f->end - f->pos;

		if (n > len - done)
			n = len - done;
		if (n > 0) {
			memcpy(p + done, f->buf + f->pos, n);
			f->pos += n;
		} else if (len - done >= BUFSIZ) { /* no use in copying */
			n = fill(f, p + done, len - done);
		} else {
			f->pos = 0;
			f->end = fill(f, f->buf, BUFSIZ);
			if (f->end == 0)
				break;
			continue;
		}
		if (n == 0)
			break;
		done += n;
	}
	return done / size;
}

int
fseeko(FILE *f, off_t off, int whence)
{
	if (f->writing) {
		if (flush_one(f) != 0)
			return -1;
	} else {
		if (f->pushed != EOF && whence == SEEK_CUR)
			off--;
		drop_input(f);
	}
	f->writing = false;
	f->pos = f->end = 0;
	f->eof = false;
	return lseek(f->fd, off, whence) < 0 ? -1 : 0;
}

int
fseek(FILE *f, long off, int whence)
{
	return fseeko(f, off, whence);
}

off_t
ftello(FILE *f)
{
	off_t at = lseek(f->fd, 0, SEEK_CUR);

	if (at < 0)
		return -1;
	if (f->writing)
		return at + (off_t)f->pos;
	return at - (off_t)(f->end - f->pos) - (f->pushed != EOF);
}

long
ftell(FILE *f)
{
	return ftello(f);
}

void
rewind(FILE *f)
{
	fseeko(f, 0, SEEK_SET);
	f->error = false;
}

int
feof(FILE *f)
{
	return f->eof;
}

int
ferror(FILE *f)
{
	return f->error;
}

void
clearerr(FILE *f)
{
	f->eof = f->error = false;
}

int
fileno(FILE *f)
{
	return f->fd;
}

int
remove(const char *path)
{
	if (unlink(path) == 0)
		return 0;
	return errno == EISDIR || errno == EPERM ? rmdir(path) : -1;
}
