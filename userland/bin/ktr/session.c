/*
 * session.c - ktr graph and ktr profile: a session of /dev/probe around a command. Whatever becomes
 * of this program, its probes go off with it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <kestrel.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <tool.h>
#include <unistd.h>

#include "kernel/abi/probe.h"
#include "userland/bin/ktr/ktr.h"

struct session {
	bool graph; /* or profile */
	int fd;
	const char *function; /* a glob over names, or a SPEC of probes */
	const char *exclude;
	char depth[8]; /* "": all */
	pid_t pid;     /* 0: the command's */
};

/* Switches probes of functions: of a SPEC, or a glob. Does not return when that fails. */
static void
switch_functions(int fd, unsigned request, const char *glob)
{
	bool spec = strchr(glob, ':') != NULL;
	struct probe_request r = {.err = ""};

	if (snprintf(r.spec, sizeof(r.spec), "%s%s%s", spec ? "" : "fbt::", glob,
		     spec ? "" : ":") >= (int)sizeof(r.spec))
		errx(1, "%s: expected the name of a function, a glob, or a SPEC", glob);
	if (ioctl(fd, request, &r) < 0) {
		if (r.err[0] != '\0')
			errx(1, "%s", r.err);
		err(1, "%s", r.spec);
	}
}

/*
 * Switches on what the command needs: a graph needs everything that the function may call, a
 * profile only the functions themselves. A command that waits for this has no part in the session:
 * if this fails, the session ends with this process.
 */
static void
begin(struct session *s, pid_t pid)
{
	unsigned request = s->graph ? PROBE_ON : PROBE_COUNT;

	s->fd = open("/dev/probe", O_RDWR | O_CLOEXEC);
	if (s->fd < 0)
		err(1, "/dev/probe");
	if (ioctl(s->fd, s->pid != 0 ? PROBE_FOLLOW : PROBE_FOLLOW_EXEC, (long)pid) < 0)
		err(1, "process %d", (int)pid);
	/* The answer says whether there is such a function. */
	switch_functions(s->fd, request, s->function);
	if (s->graph)
		switch_functions(s->fd, request, "");
	if (s->exclude != NULL)
		switch_functions(s->fd, PROBE_OFF, s->exclude);
}

/*
 * Starts a program. `traced`: by this session, from its first instruction on; NULL: not at all.
 * ^C ends the program: this one goes on, and prints what there is.
 */
static pid_t
start(char **argv, struct session *traced)
{
	int go[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		err(1, "pipe");
	signal(SIGINT, SIG_IGN);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(127); /* begin() has failed */
		signal(SIGINT, SIG_DFL);
		execvp(argv[0], argv);
		warn("%s", argv[0]);
		_exit(127);
	}
	if (traced != NULL)
		begin(traced, pid);
	if (write(go[1], &byte, 1) != 1)
		err(1, "pipe");
	close(go[0]);
	close(go[1]);
	return pid;
}

static int
finish(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		err(1, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The glob over functions in a SPEC: the part before its last colon; "*" if that is empty. */
static char *
function_glob(const char *function)
{
	const char *last = strrchr(function, ':'), *end = last != NULL ? last : strchr(function, 0);
	const char *start = end;
	char *glob;

	while (start > function && start[-1] != ':')
		start--;
	glob = start < end ? strndup(start, (size_t)(end - start)) : strdup("*");
	if (glob == NULL)
		err(1, "%s", function);
	return glob;
}

static int
print_graph(struct session *s, const struct timespec *from)
{
	char since[32];
	char *argv[] = {"ktrdump", "--format", "graph", "--function", function_glob(s->function),
			"--since", since,      NULL,    NULL,         NULL};

	snprintf(since, sizeof(since), "%lld.%09ld", (long long)from->tv_sec, from->tv_nsec);
	if (s->depth[0] != '\0') {
		argv[7] = "--depth";
		argv[8] = s->depth;
	}
	return finish(start(argv, NULL));
}

/* Takes options that stand before the function, or after it. */
static void
take_options(struct session *s, int argc, char **argv, const char *usage)
{
	int c;

	while ((c = tool_getopt(argc, argv, s->graph ? "+d:p:x:" : "+p:x:", usage)) != -1) {
		if (c == 'd')
			snprintf(s->depth, sizeof(s->depth), "%lu",
				 tool_number("DEPTH", optarg, 1, 1000));
		else if (c == 'x')
			s->exclude = optarg;
		else
			s->pid = (pid_t)tool_number("PID", optarg, 1, INT32_MAX);
	}
}

int
session_main(int argc, char **argv, const char *usage)
{
	struct session s = {.graph = strcmp(argv[0], "graph") == 0};
	struct timespec from;
	int status, shown;

	argv[0] = s.graph ? "ktr graph" : "ktr profile"; /* in messages about options */
	optind = 1;
	take_options(&s, argc, argv, usage);
	if (optind == argc)
		tool_usage(usage);
	s.function = argv[optind++];
	take_options(&s, argc, argv, usage); /* over --, if it is there */
	argv += optind;
	if (argv[0] == NULL)
		tool_usage(usage);
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (s.pid != 0)
		begin(&s, s.pid);
	status = finish(start(argv, s.pid == 0 ? &s : NULL));
	if (s.graph)
		close(s.fd);
	shown = s.graph ? print_graph(&s, &from) : profile_print();
	return status != 0 ? status : shown;
}
