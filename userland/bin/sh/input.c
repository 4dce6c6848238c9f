/*
 * input.c - lines for the lexer: from a text, a file, standard input or the line editor.
 *
 * Standard input belongs to the commands too: `sh < script` must not read ahead what a command in
 * the script is to read. Where the input can seek, the offset is set back; else it is read byte by
 * byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

#define BUF_SIZE 4096

void
input_from_text(struct input *in, const char *name, const char *text)
{
	*in = (struct input){.name = name, .fd = -1, .text = text};
}

void
input_from_fd(struct input *in, const char *name, int fd, bool shared)
{
	bool seekable = lseek(fd, 0, SEEK_CUR) >= 0;

	*in = (struct input){.name = name,
			     .fd = fd,
			     .bytewise = shared && !seekable,
			     .seekable = shared && seekable,
			     .buf = sh_malloc(BUF_SIZE)};
}

void
input_from_editor(struct input *in)
{
	*in = (struct input){.name = "(console)", .fd = -1, .editor = true};
}

void
input_close(struct input *in)
{
	free(in->buf);
	free(in->out);
	in->buf = in->out = NULL;
}

static void
append(struct input *in, size_t *len, char c)
{
	if (*len + 2 > in->out_size) {
		in->out_size = in->out_size < 64 ? 128 : in->out_size * 2;
		in->out = sh_realloc(in->out, in->out_size);
	}
	in->out[(*len)++] = c;
	in->out[*len] = '\0';
}

/*
 * May a read that failed be tried again? O_NONBLOCK belongs to the open file, which others share:
 * whoever sets it must not end our input, so it is taken away.
 */
static bool
try_again(int fd)
{
	int flags;

	if (errno != EAGAIN)
		return errno == EINTR;
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) >= 0;
}

ssize_t
input_read(int fd, void *buf, size_t size)
{
	ssize_t n;

	do
		n = read(fd, buf, size);
	while (n < 0 && try_again(fd));
	if (n < 0)
		sh_error("read: %s", strerror(errno));
	return n;
}

/* Reads ahead into buf; false at the end, and when reading fails. */
static bool
fill(struct input *in)
{
	ssize_t n = input_read(in->fd, in->buf, in->bytewise ? 1 : BUF_SIZE);

	in->failed |= n < 0;
	in->pos = 0;
	in->end = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static char *
read_fd_line(struct input *in)
{
	size_t len = 0;
	char c = '\0';

	while (c != '\n' && (in->pos < in->end || fill(in))) {
		c = in->buf[in->pos++];
		if (c != '\0') /* no text file has them, and our strings end at one */
			append(in, &len, c);
	}
	if (in->seekable && in->pos < in->end) {
		lseek(in->fd, (off_t)in->pos - (off_t)in->end, SEEK_CUR);
		in->pos = in->end = 0;
	}
	return len > 0 ? in->out : NULL;
}

static char *
read_text_line(struct input *in)
{
	size_t len = 0;

	while (*in->text != '\0') {
		char c = *in->text++;

		append(in, &len, c);
		if (c == '\n')
			break;
	}
	return len > 0 ? in->out : NULL;
}

static const char *
prompt(bool continued)
{
	const char *set = var_get(continued ? "PS2" : "PS1");

	if (set != NULL)
		return set;
	if (continued)
		return "> ";
	return geteuid() == 0 ? "kestrel# " : "kestrel$ ";
}

char *
input_read_line(struct input *in, bool continued)
{
	char *line;

	if (in->editor)
		line = edit_read_line(prompt(continued), &in->failed);
	else if (in->text != NULL)
		line = read_text_line(in);
	else
		line = read_fd_line(in);
	if (line != NULL)
		in->line++;
	return line;
}
