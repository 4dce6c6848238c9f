/* main.c - the shell's start: options, where commands come from, messages. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tool.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

static const char usage[] = "sh [-eiux] [FILE [ARGUMENT]...]\n"
			    "       sh [-eux] -c COMMANDS [NAME [ARGUMENT]...]\n"
			    "  -e  leave at the first command that fails\n"
			    "  -i  prompt, even when standard input is no terminal\n"
			    "  -u  a variable that is not set is an error\n"
			    "  -x  print commands before they run\n"
			    "At the prompt, `help` lists the builtin commands.\n";

struct shell sh = {.name = "sh", .subst_status = -1};

void
sh_error(const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	if (sh.input != NULL && !sh.input->editor && sh.line > 0)
		fprintf(stderr, "sh: %s:%d: %s\n", sh.input->name, sh.line, text);
	else
		fprintf(stderr, "sh: %s\n", text);
}

static void
start_interactive(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTSTP, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	sh.interactive = true;
	if (!tty_init())
		return;
	setpgid(0, 0); /* fails when we lead a session: then we lead the group already */
	tty_foreground(getpgrp());
	sh.job_control = true;
}

static int
run_console(void)
{
	struct input in;
	int status;

	input_from_editor(&in);
	status = exec_input(&in);
	input_close(&in);
	tty_set(TTY_COOKED);
	return status;
}

static int
run_stdin(void)
{
	struct input in;
	int status;

	input_from_fd(&in, "(stdin)", 0, true);
	status = exec_input(&in);
	input_close(&in);
	return status;
}

int
exec_file(const char *path)
{
	int fd = open(path, O_RDONLY), high;
	struct input in;
	int status;

	if (fd < 0) {
		sh_error("%s: %s", path, strerror(errno));
		return errno == ENOENT ? 127 : 126;
	}
	/* Out of the way of the script's own descriptors. */
	high = fcntl(fd, F_DUPFD, 10);
	close(fd);
	if (high < 0 || fcntl(high, F_SETFD, FD_CLOEXEC) < 0) {
		sh_error("%s: %s", path, strerror(errno));
		return 126;
	}
	input_from_fd(&in, path, high, false);
	status = exec_input(&in);
	input_close(&in);
	close(high);
	return status;
}

int
main(int argc, char **argv)
{
	const char *commands = NULL;
	bool interactive = false;
	int c, status;

	while ((c = tool_getopt(argc, argv, "c:eiux", usage)) != -1) {
		if (c == 'c')
			commands = optarg;
		sh.exit_on_error |= c == 'e';
		sh.trace |= c == 'x';
		sh.no_unset |= c == 'u';
		interactive |= c == 'i';
	}
	argc -= optind;
	argv += optind;
	sh.pid = getpid();
	var_import(environ);
	if (argc > 0) {
		sh.name = argv[0];
		sh.args = argv + 1;
		sh.arg_count = argc - 1;
	}
	if (commands != NULL) {
		status = exec_text("-c", commands);
	} else if (argc > 0) {
		status = exec_file(argv[0]);
	} else {
		if (interactive || isatty(0))
			start_interactive();
		status = sh.job_control ? run_console() : run_stdin();
	}
	fflush(stdout);
	return status;
}
