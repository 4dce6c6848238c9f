/*
 * init.c - the first process: gives programs a console, runs a script or a shell, reaps orphans.
 *
 * With a script as its argument (the loader parameter init.script) the machine runs it and powers
 * off with its last status. Otherwise a shell runs on the console, again and again.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static const char usage[] = "usage: init [SCRIPT]    (process 1; the kernel starts it)\n";

#define STATUS_MAX 63 /* of a power-off */

static void
open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return; /* there is nobody to tell */
	for (int i = 0; i < 3; i++) {
		if (fd != i)
			dup2(fd, i);
	}
	if (fd > 2)
		close(fd);
}

/* Runs a program in a process group of its own, which ^C reaches; its pid, or -1 with errno. */
static pid_t
start(char *const argv[])
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	setpgid(0, 0);
	tcsetpgrp(0, getpid());
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	execv(argv[0], argv);
	warn("%s", argv[0]);
	_exit(127);
}

/* Waits until `pid` ends, and for every orphan that ends meanwhile. Returns its exit status. */
static int
wait_for(pid_t pid)
{
	int status;
	pid_t ended;

	while ((ended = wait(&status)) != pid) {
		if (ended < 0 && errno != EINTR)
			err(1, "wait for process %d", pid);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
run_script(char *script)
{
	char *const argv[] = {"/bin/sh", script, NULL};
	pid_t pid = start(argv);
	int status;

	if (pid < 0)
		warn("fork");
	status = pid < 0 ? 1 : wait_for(pid);
	machine_shutdown(SHUTDOWN_POWEROFF, status > STATUS_MAX ? STATUS_MAX : status);
	warn("power off");
	return status;
}

static void
print_motd(void)
{
	char buf[1024];
	int fd = open("/etc/motd", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		write_all(1, buf, (size_t)n);
	close(fd);
}

int
main(int argc, char **argv)
{
	static char *const shell[] = {"/bin/sh", NULL};

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (getpid() != 1) {
		fprintf(stderr, "init: found process id %d, expected 1: the kernel starts it\n",
			getpid());
		return 2;
	}
	open_console();
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	setpgid(0, 0);
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/", 1);
	setenv("TERM", "vt100", 1);
	if (argc > 1)
		return run_script(argv[1]);
	print_motd();
	for (;;) {
		pid_t pid = start(shell);
		int status;

		if (pid < 0)
			err(1, "fork");
		status = wait_for(pid);
		printf("init: the shell ended with status %d; starting it again\n", status);
		fflush(stdout);
		if (status >= 126 || !isatty(0))
			sleep(1); /* without a shell or a console, do not spin */
	}
}
