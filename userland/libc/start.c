/*
 * start.c - the first and the last of a program: from crt0 to main, and exit.
 * Locking: none; a program has one thread.
 */
#include <assert.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userland/libc/libc.h"

int main(int argc, char **argv, char **envp);

int errno;
char **environ;

static const char *progname = "?";
static void (*exit_fns[32])(void);
static unsigned int exit_count;

void
libc_start(long *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)&stack[1];

	environ = argv + argc + 1;
	if (argc > 0 && argv[0] != NULL) {
		const char *slash = strrchr(argv[0], '/');

		progname = slash != NULL ? slash + 1 : argv[0];
	}
	exit(main(argc, argv, environ));
}

const char *
getprogname(void)
{
	return progname;
}

int
atexit(void (*fn)(void))
{
	if (exit_count == sizeof(exit_fns) / sizeof(exit_fns[0]))
		return -1;
	exit_fns[exit_count++] = fn;
	return 0;
}

void
exit(int status)
{
	while (exit_count > 0)
		exit_fns[--exit_count]();
	fflush(NULL);
	_exit(status);
}

void
_exit(int status)
{
	for (;;)
		syscall_raw(NR_exit_group, status, 0, 0, 0, 0, 0);
}

void
_Exit(int status)
{
	_exit(status);
}

void
abort(void)
{
	raise(SIGABRT);
	_exit(128 + SIGABRT); /* the signal is ignored */
}

void
assert_failed(const char *what, const char *file, int line, const char *func)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s:%d: %s: assertion failed: %s\n", progname, file, line, func, what);
	abort();
}
