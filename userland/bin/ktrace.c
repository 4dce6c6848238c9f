/*
 * ktrace.c - switches the tracing of processes on and off, or runs a command with it; kdump prints
 * the result. Options and letters are FreeBSD's.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <kestrel.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tool.h>
#include <unistd.h>

#include "userland/bin/kdump/points.h"

static const char usage[] =
    "ktrace [-acdi] [-f FILE] [-t LETTERS] -p PID | -g PGRP   a process, or a group of them\n"
    "       ktrace [-ai] [-f FILE] [-t LETTERS] [--] COMMAND...      run COMMAND\n"
    "       ktrace -o - [-i] [-t LETTERS] [--] COMMAND...            the same, and print what it does\n"
    "       ktrace -C                                                trace nothing any more\n"
    "  -f FILE, -o FILE  append records to FILE instead of ktrace.out\n"
    "  -a  keep what is in the file; without it, the file is emptied first\n"
    "  -i  children made later are traced, too\n"
    "  -d  also for the children that a process has now\n"
    "  -c  clear, not set; without -p and -g, whatever is traced to the file\n"
    "  -t  which kinds of records\n" KTR_POINTS_HELP "  -- ends the options\n";

struct request {
	const char *file;
	uint32_t points;
	int64_t pid; /* 0: none was given */
	bool append, clear, clear_all, descend, inherit;
};

static void
call(const char *file, int ops, uint32_t points, pid_t pid)
{
	if (ktrace(file, ops, points, pid) >= 0)
		return;
	if (errno == ESRCH)
		err(1, "%s %d", pid < 0 ? "process group" : "process", abs(pid));
	err(1, "%s", ops == KTROP_CLEARFILE || KTROP(ops) == KTROP_SET ? file : "ktrace");
}

/* Makes the file, and empties it unless it is appended to. */
static void
make_file(const struct request *r)
{
	int flags = O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK | (r->append ? 0 : O_TRUNC);
	int fd = open(r->file, flags, 0600);

	if (fd < 0)
		err(1, "%s", r->file);
	close(fd);
}

static void __attribute__((noreturn)) run(char *const *command)
{
	execvp(command[0], command);
	warn("%s", command[0]);
	exit(errno == ENOENT ? 127 : 126);
}

/* Prints what the command does while it runs. */
static void __attribute__((noreturn)) run_live(const struct request *r, char *const *command)
{
	char path[] = "/tmp/ktrace.XXXXXX", child[16];
	char *const kdump[] = {"kdump", "-l", "--child", child, "-f", "-", NULL};
	pid_t pid;
	int fd = mkstemp(path), status; /* nobody else's file, or link */

	if (fd < 0)
		err(1, "%s", path);
	pid = fork();
	if (pid < 0) {
		warn("fork");
		unlink(path);
		exit(1);
	}
	if (pid == 0) {
		close(fd);
		raise(SIGSTOP); /* until it is traced */
		run(command);
	}
	if (waitpid(pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status) ||
	    ktrace(path, KTROP_SET, r->points, pid) < 0) {
		warn("process %d", (int)pid);
		kill(pid, SIGKILL);
		unlink(path);
		exit(1);
	}
	unlink(path);
	snprintf(child, sizeof(child), "%d", (int)pid);
	kill(pid, SIGCONT);
	dup2(fd, STDIN_FILENO);
	close(fd);
	run(kdump);
}

static void __attribute__((noreturn)) refuse(const char *why)
{
	warnx("%s", why);
	tool_usage(usage);
}

/* Refuses what FreeBSD's ktrace refuses: more than one of -c and -C, or of -p and -g, and any of
 * these with -C. */
static void
check_option(const struct request *r, int c)
{
	bool pid = c == 'p' || c == 'g', clear = c == 'c' || c == 'C';

	if (clear && (r->clear || r->clear_all))
		refuse("only one of -c and -C, expected once");
	if (pid && r->pid != 0)
		refuse("only one of -p and -g, expected once");
	if ((pid && r->clear_all) || (c == 'C' && r->pid != 0))
		refuse("-C ends all tracing: expected neither -p nor -g");
}

static void
set_option(struct request *r, int c)
{
	check_option(r, c);
	switch (c) {
	case 'a':
		r->append = true;
		break;
	case 'C':
		r->clear_all = true;
		break;
	case 'c':
		r->clear = true;
		break;
	case 'd':
		r->descend = true;
		break;
	case 'f':
	case 'o':
		r->file = optarg;
		break;
	case 'g':
		r->pid = -(int64_t)tool_number("process group", optarg, 1, INT_MAX);
		break;
	case 'i':
		r->inherit = true;
		break;
	case 'p':
		r->pid = (int64_t)tool_number("process", optarg, 1, INT_MAX);
		break;
	case 't':
		r->points = ktr_points(optarg);
		if (r->points == 0)
			errx(2, "-t: found \"%s\", expected some of cfinpstuwy+", optarg);
		break;
	}
}

int
main(int argc, char **argv)
{
	struct request r = {.file = "ktrace.out"};
	int ops = 0, c;

	while ((c = tool_getopt(argc, argv, "aCcdf:g:io:p:t:", usage)) != -1)
		set_option(&r, c);
	if ((r.pid != 0 || r.clear || r.clear_all) == (optind < argc))
		tool_usage(usage);
	if (r.clear_all) {
		call(NULL, KTROP_CLEAR | KTRFLAG_DESCEND, KTR_POINTS_ALL | KTRFAC_INHERIT, 1);
		return 0;
	}
	if (r.points == 0)
		r.points = r.clear ? KTR_POINTS_ALL : KTR_POINTS_DEFAULT;
	if (r.inherit || (r.clear && r.points == KTR_POINTS_ALL))
		r.points |= KTRFAC_INHERIT;
	if (r.descend)
		ops = KTRFLAG_DESCEND;
	if (r.clear) {
		call(r.pid != 0 ? NULL : r.file, ops | (r.pid != 0 ? KTROP_CLEAR : KTROP_CLEARFILE),
		     r.points, (pid_t)r.pid);
		return 0;
	}
	if (strcmp(r.file, "-") == 0) {
		if (optind == argc)
			errx(2, "-o -: expected a command");
		run_live(&r, argv + optind);
	}
	make_file(&r);
	if (r.pid == 0)
		ops = 0;
	call(r.file, ops | KTROP_SET, r.points, r.pid != 0 ? (pid_t)r.pid : getpid());
	if (r.pid == 0)
		run(argv + optind);
	return 0;
}
