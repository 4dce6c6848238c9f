/*
 * target.c - $target and others: starts the commands of -c, finds the processes of -p, and asks
 * whether all have ended.
 */
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userland/bin/dtrace/options.h"
#include "userland/lib/array.h"

static struct target {
	pid_t pid;  /* 0: it has ended */
	bool child; /* of -c */
	int fd;     /* -c: the pipe that tells it to begin; -p: readable when it has ended */
} * targets;
static size_t target_count;

const char *target_command;

/* Its links stay: a program's module is called as the command names it. */
static const char *
absolute_path(const char *name)
{
	char here[PATH_MAX];

	if (*name == '/' || getcwd(here, sizeof(here)) == NULL)
		return name;
	while (strncmp(name, "./", 2) == 0)
		name += 2;
	return dt_format("%s/%s", strcmp(here, "/") == 0 ? "" : here, name);
}

/* NULL: there is none, or it is no program. */
static const char *
find_program(const char *name)
{
	const char *path = getenv("PATH"), *found;

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0 ? absolute_path(name) : NULL;
	for (path = path != NULL ? path : "/bin";; path++) { /* an empty one: where dtrace is */
		int size = (int)strcspn(path, ":");

		found = absolute_path(
		    dt_format("%.*s/%s", size > 0 ? size : 1, size > 0 ? path : ".", name));
		if (access(found, X_OK) == 0)
			return found;
		path += size;
		if (*path == '\0')
			break;
	}
	errno = ENOENT;
	return NULL;
}

/* The commands of -c do not outlive dtrace. */
static void
end_commands(void)
{
	for (struct target *t = targets; t < targets + target_count; t++)
		if (t->child && t->pid > 0 && kill(t->pid, SIGKILL) == 0)
			waitpid(t->pid, NULL, 0);
}

static struct target
start_command(const char *command)
{
	struct target t = {.child = true};
	char **argv = calloc(strlen(command) / 2 + 2, sizeof(*argv)), *rest = strdup(command);
	const char *path;
	char *word, c;
	int argc = 0, go[2];

	if (argv == NULL)
		err(1, "-c");
	while (rest != NULL && (word = strsep(&rest, " \t\n\v\f\r")) != NULL)
		if (*word != '\0')
			argv[argc++] = word;
	if (argc == 0)
		errx(2, "-c: found no command");
	path = find_program(argv[0]);
	if (path == NULL)
		err(1, "failed to execute %s", argv[0]);
	if (target_count == 0)
		target_command = path;
	if (pipe2(go, O_CLOEXEC) < 0 || (t.pid = fork()) < 0)
		err(1, "-c %s", command);
	if (t.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if dtrace is killed */
		close(go[1]);
		if (read(go[0], &c, 1) == 0) /* the pipe ends if nothing will be traced */
			_exit(1);
		execvp(argv[0], argv);
		warn("failed to execute %s", argv[0]);
		_exit(127);
	}
	close(go[0]);
	t.fd = go[1];
	return t;
}

static struct target
find_process(const char *text)
{
	char *end;
	struct target t = {.pid = (pid_t)strtol(text, &end, 10)};

	if (*end != '\0' || t.pid <= 0)
		errx(2, "-p: found %s, expected the number of a process", text);
	t.fd = (int)syscall(SYS_pidfd_open, t.pid, 0);
	if (t.fd < 0)
		err(1, "failed to grab process %d", t.pid);
	return t;
}

void
target_open(const char *option)
{
	struct target t = *option == 'c' ? start_command(option + 1) : find_process(option + 1);

	if (target_count == 0) {
		dt_macros.target = (uint64_t)t.pid;
		atexit(end_commands);
	}
	ARRAY_ADD(targets, target_count, t);
}

static bool
has_ended(const struct target *t, int *status)
{
	struct pollfd file = {.fd = t->fd, .events = POLLIN};

	return t->child ? waitpid(t->pid, status, WNOHANG) != 0 : poll(&file, 1, 0) == 1;
}

void
target_go(void)
{
	/* One may have been killed meanwhile: target_all_ended() tells of it. */
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);

	for (struct target *t = targets; t < targets + target_count; t++)
		if (t->child && ((write(t->fd, "g", 1) != 1 && errno != EPIPE) || close(t->fd) < 0))
			err(1, "-c");
	signal(SIGPIPE, old);
}

static void
say_ended(pid_t pid, int status)
{
	if (WIFSIGNALED(status))
		warnx("pid %d terminated by %d", pid, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		warnx("pid %d exited with status %d", pid, WEXITSTATUS(status));
	else
		warnx("pid %d has exited", pid);
}

bool
target_all_ended(void)
{
	bool all = target_count > 0;

	for (struct target *t = targets; t < targets + target_count; t++) {
		int status = 0; /* of another's child it is not known */

		if (t->pid != 0 && has_ended(t, &status)) {
			if (!dt_options.quiet)
				say_ended(t->pid, status);
			t->pid = 0;
		}
		all &= t->pid == 0;
	}
	return all;
}
