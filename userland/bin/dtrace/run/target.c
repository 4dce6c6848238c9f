/*
 * target.c - $target: starts the command of -c, or finds the process of -p, and asks whether it has
 * ended.
 */
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userland/bin/dtrace/options.h"

static pid_t child, process; /* -c, -p */
static int go_pipe[2];       /* the child waits for its end */

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

static bool
is_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/') != NULL) {
		target_command = absolute_path(name);
		return access(name, X_OK) == 0;
	}
	for (path = path != NULL ? path : "/bin";; path++) { /* an empty one: where dtrace is */
		int size = (int)strcspn(path, ":");

		target_command = absolute_path(
		    dt_format("%.*s/%s", size > 0 ? size : 1, size > 0 ? path : ".", name));
		if (access(target_command, X_OK) == 0)
			return true;
		path += size;
		if (*path == '\0')
			break;
	}
	errno = ENOENT;
	return false;
}

/* The command of -c does not outlive dtrace. */
static void
end_command(void)
{
	if (child > 0 && kill(child, SIGKILL) == 0)
		waitpid(child, NULL, 0);
}

static void
start_command(const char *command)
{
	char **argv = calloc(strlen(command) / 2 + 2, sizeof(*argv)), *rest = strdup(command);
	char *word, c;
	int argc = 0;

	if (argv == NULL)
		err(1, "-c");
	while (rest != NULL && (word = strsep(&rest, " \t")) != NULL)
		if (*word != '\0')
			argv[argc++] = word;
	if (argc == 0)
		errx(2, "-c: found no command");
	if (!is_program(argv[0]))
		err(1, "failed to execute %s", argv[0]);
	if (pipe2(go_pipe, O_CLOEXEC) < 0 || (child = fork()) < 0)
		err(1, "-c %s", command);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if dtrace is killed */
		close(go_pipe[1]);
		if (read(go_pipe[0], &c, 1) == 0) /* the pipe ends if nothing will be traced */
			_exit(1);
		execvp(argv[0], argv);
		warn("failed to execute %s", argv[0]);
		_exit(127);
	}
	close(go_pipe[0]);
	atexit(end_command);
}

void
target_open(const char *command, const char *process_text)
{
	char *end;

	if (command != NULL) {
		start_command(command);
		dt_macros.target = (uint64_t)child;
	}
	if (process_text != NULL) {
		process = (pid_t)strtol(process_text, &end, 10);
		if (*end != '\0' || process <= 0)
			errx(2, "-p: found %s, expected the number of a process", process_text);
		if (kill(process, 0) < 0)
			err(1, "failed to grab process %d", process);
		dt_macros.target = (uint64_t)process;
	}
}

/* True also of a process for which nobody has waited yet. */
static bool
process_has_ended(void)
{
	char path[32], stat[256], *state;
	FILE *f;
	size_t n;

	if (kill(process, 0) < 0 && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	n = fread(stat, 1, sizeof(stat) - 1, f);
	fclose(f);
	stat[n] = '\0';
	state = strrchr(stat, ')'); /* "PID (NAME) STATE", and a name may have anything in it */
	return state != NULL && strncmp(state, ") Z", 3) == 0;
}

void
target_go(void)
{
	if (child > 0 && (write(go_pipe[1], "g", 1) != 1 || close(go_pipe[1]) < 0))
		err(1, "-c");
}

bool
target_has_ended(void)
{
	int status;

	if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
		child = 0;
		if (!dt_options.quiet)
			warnx("pid %lu has exited", (unsigned long)dt_macros.target);
		return true;
	}
	if (process > 0 && process_has_ended()) {
		process = 0;
		if (!dt_options.quiet)
			warnx("pid %lu has exited", (unsigned long)dt_macros.target);
		return true;
	}
	return false;
}
