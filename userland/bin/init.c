/*
 * init.c - the first process: gives programs a console, runs a script or a shell, and reaps
 * orphans.
 *
 * With a script as its argument (loader parameter init.script), it runs the script and powers off
 * with its exit status. Otherwise it runs a shell on the console, again and again.
 *
 * Invariant: it never ends, since the kernel would panic. If something fails, it tries again after
 * a pause.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char usage[] = "usage: init [SCRIPT]    (process 1; the kernel starts it)\n";

#define STATUS_MAX   63  /* limit of poweroff's status */
#define RETRY_MS     100 /* pause before a retry */
#define SHORT_LIFE_S 2   /* a shell that ends sooner is started again more and more slowly */
#define PAUSE_MAX_MS 32000

static void
pause_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

	nanosleep(&t, NULL);
}

static time_t
now_s(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Opens the console again as descriptors 0 to 2. The old open file may have flags like O_NONBLOCK
 * that another process set.
 */
static void
open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return; /* no console: nowhere to print an error */
	for (int i = 0; i < 3; i++)
		if (fd != i)
			dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/* Runs a program in a process group of its own, which gets ^C, with a newly opened console. */
static pid_t
start(char *const argv[])
{
	pid_t pid;

	while ((pid = fork()) < 0) {
		warn("fork; trying again");
		pause_ms(RETRY_MS);
	}
	if (pid != 0)
		return pid;
	open_console();
	setpgid(0, 0);
	signal(SIGTTOU, SIG_IGN); /* a new group is in the background: SIGTTOU would stop it */
	tcsetpgrp(0, getpid());
	signal(SIGTTOU, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	execv(argv[0], argv);
	warn("%s", argv[0]);
	_exit(127);
}

/* Waits until `pid` ends, and reaps orphans meanwhile. Returns the exit status. */
static int
wait_for(pid_t pid)
{
	int status;
	pid_t ended;

	while ((ended = wait(&status)) != pid) {
		if (ended < 0 && errno == ECHILD)
			return 127; /* already reaped: its status is unknown */
		if (ended < 0 && errno != EINTR) {
			warn("wait for process %d", pid);
			pause_ms(RETRY_MS);
		}
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs the script and powers off with its status. */
static void
run_script(char *script)
{
	char *const argv[] = {"/bin/sh", "-l", script, NULL};
	int status = wait_for(start(argv));

	machine_shutdown(SHUTDOWN_POWEROFF, status > STATUS_MAX ? STATUS_MAX : status);
	warn("power off");
}

/* busybox's halt, poweroff and reboot ask by these signals. */
static void
end_machine(int sig)
{
	reboot(sig == SIGTERM ? RB_AUTOBOOT : sig == SIGUSR1 ? RB_HALT_SYSTEM : RB_POWER_OFF);
}

static void
print_motd(void)
{
	int fd = open("/etc/motd", O_RDONLY);

	if (fd < 0)
		return;
	while (sendfile(1, fd, NULL, 65536) > 0)
		;
	close(fd);
}

/* Runs the shell again and again. While shells end soon after their start, the pauses grow. */
static _Noreturn void
run_shells(void)
{
	static char *const shell[] = {"/bin/sh", "-l", NULL};
	unsigned pause = 0;

	for (;;) {
		time_t started = now_s();
		int status = wait_for(start(shell));

		printf("init: the shell ended with status %d; starting it again\n", status);
		fflush(stdout);
		if (now_s() - started >= SHORT_LIFE_S)
			pause = 0;
		else
			pause = pause == 0                 ? RETRY_MS
				: pause * 2 < PAUSE_MAX_MS ? pause * 2
							   : PAUSE_MAX_MS;
		pause_ms(pause);
	}
}

int
main(int argc, char **argv)
{
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (getpid() != 1) {
		fprintf(stderr,
			"init: found process id %d, expected 1: only the kernel starts init\n",
			getpid());
		return 2;
	}
	open_console();
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, end_machine);
	signal(SIGUSR1, end_machine);
	signal(SIGUSR2, end_machine);
	setpgid(0, 0);
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
	setenv("HOME", "/", 1);
	setenv("TERM", "vt100", 1);
	if (argc > 1)
		run_script(argv[1]);
	else
		print_motd();
	run_shells();
}
