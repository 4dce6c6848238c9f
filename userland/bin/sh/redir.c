/*
 * redir.c - redirections of descriptors, and undoing them for commands that run in the shell
 * itself.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

#define HERE_MAX 60000 /* what surely fits a pipe */

/* Keeps a copy of fd out of the way. */
static bool
save_fd(struct saved_fds *saved, int fd)
{
	int copy = fcntl(fd, F_DUPFD, 10);

	if (saved->count == sizeof(saved->fd) / sizeof(saved->fd[0])) {
		sh_error("found more than %u redirections of a builtin", saved->count);
		return false;
	}
	if (copy >= 0)
		fcntl(copy, F_SETFD, FD_CLOEXEC);
	else if (errno != EBADF) {
		sh_error("%d: %s", fd, strerror(errno));
		return false;
	}
	saved->fd[saved->count] = fd;
	saved->copy[saved->count++] = copy;
	return true;
}

/* A pipe that holds the text of a here-document; -1 after a message. */
static int
open_here(const char *text)
{
	size_t len = strlen(text);
	int fds[2];

	if (len > HERE_MAX) {
		sh_error("here-document: found %lu bytes, expected at most %d", len, HERE_MAX);
		return -1;
	}
	if (pipe(fds) < 0 || write_all(fds[1], text, len) < 0) {
		sh_error("here-document: %s", strerror(errno));
		return -1;
	}
	close(fds[1]);
	return fds[0];
}

static int
open_target(struct redir *r, const char *target)
{
	static const int flags[] = {
	    [R_READ] = O_RDONLY,
	    [R_WRITE] = O_WRONLY | O_CREAT | O_TRUNC,
	    [R_APPEND] = O_WRONLY | O_CREAT | O_APPEND,
	    [R_READ_WRITE] = O_RDWR | O_CREAT,
	};
	int fd;

	if (r->op == R_HERE)
		return open_here(target);
	fd = open(target, flags[r->op], 0666);
	if (fd < 0)
		sh_error("%s: %s", target, strerror(errno));
	return fd;
}

/* N>&M, N>&- */
static bool
apply_dup(struct redir *r, const char *target)
{
	if (strcmp(target, "-") == 0) {
		close(r->fd);
		return true;
	}
	if (!isdigit((unsigned char)target[0]) || strspn(target, "0123456789") != strlen(target)) {
		sh_error("found \"&%s\", expected a descriptor's number or -", target);
		return false;
	}
	if (dup2(atoi(target), r->fd) < 0) {
		sh_error("%s: %s", target, strerror(errno));
		return false;
	}
	return true;
}

static bool
apply_one(struct redir *r, struct saved_fds *saved)
{
	char *target = r->op != R_HERE ? expand_text(r->target)
		       : r->expand     ? expand_here(r->target)
				       : r->target;
	int fd;

	if (target == NULL || (saved != NULL && !save_fd(saved, r->fd)))
		return false;
	if (r->op == R_DUP_IN || r->op == R_DUP_OUT)
		return apply_dup(r, target);
	fd = open_target(r, target);
	if (fd < 0)
		return false;
	if (fd != r->fd) {
		if (dup2(fd, r->fd) < 0) {
			sh_error("%d: %s", r->fd, strerror(errno));
			close(fd);
			return false;
		}
		close(fd);
	}
	return true;
}

bool
redir_apply(struct redir *r, struct saved_fds *saved)
{
	fflush(stdout);
	for (; r != NULL; r = r->next) {
		if (!apply_one(r, saved))
			return false;
	}
	return true;
}

void
redir_restore(struct saved_fds *saved)
{
	while (saved->count > 0) {
		int fd = saved->fd[--saved->count], copy = saved->copy[saved->count];

		if (copy < 0) {
			close(fd);
		} else {
			dup2(copy, fd);
			close(copy);
		}
	}
}
