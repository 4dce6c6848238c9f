/*
 * job.c - processes of the shell: forking, waiting, groups, and the background.
 *
 * With job control (an interactive shell) each pipeline is a process group; the one in the
 * foreground has the terminal, so that ^C reaches it and not the shell. Scripts leave all that
 * alone: one group, one ^C.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "userland/bin/sh/sh.h"

#define BACKGROUND_MAX 64

static struct background {
	pid_t pid; /* 0: free */
	bool ended;
	int status;
} background[BACKGROUND_MAX];

static void
child_start(const struct job *job)
{
	if (sh.job_control) {
		setpgid(0, job->pgid);
		if (!job->background)
			tty_foreground(getpgrp());
	}
	if (sh.interactive) {
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		signal(SIGTTIN, SIG_DFL);
		signal(SIGTTOU, SIG_DFL);
	}
	if (job->background && !sh.job_control) {
		int fd = open("/dev/null", O_RDONLY);

		if (fd > 0) {
			dup2(fd, 0);
			close(fd);
		}
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	sh.interactive = sh.job_control = false;
	memset(background, 0, sizeof(background)); /* the parent's children are not ours */
}

pid_t
job_fork(struct job *job)
{
	pid_t pid;

	if (job->count == sizeof(job->pids) / sizeof(job->pids[0])) {
		sh_error("found more than %u commands in a pipeline", job->count);
		return -1;
	}
	if (sh.job_control && !job->background)
		tty_set(TTY_COOKED);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		sh_error("fork: %s", strerror(errno));
		return -1;
	}
	if (pid == 0) {
		child_start(job);
		return 0;
	}
	if (sh.job_control) {
		if (job->pgid == 0)
			job->pgid = pid;
		setpgid(pid, job->pgid); /* the child does it too: whoever comes first */
	}
	job->pids[job->count++] = pid;
	return pid;
}

static int
exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Tells of a command that a signal ended, unless that is what one expects of it. */
static void
report_signal(pid_t pid, int status)
{
	int sig = WTERMSIG(status);
	const char *name = signal_name(sig);

	if (!WIFSIGNALED(status) || sig == SIGPIPE)
		return;
	if (sig == SIGINT) {
		if (sh.interactive) {
			fputc('\n', stderr);
			sh.unwind = U_INTERRUPT;
		}
		return;
	}
	sh_error("process %d was killed by %s%s", pid, name != NULL ? "SIG" : "signal ",
		 name != NULL ? name : arena_printf("%d", sig));
}

int
job_wait(struct job *job)
{
	int status = 0;

	for (unsigned int i = 0; i < job->count; i++) {
		pid_t ended;

		do
			ended = waitpid(job->pids[i], &status, 0);
		while (ended < 0 && errno == EINTR);
		if (ended < 0) {
			sh_error("wait for process %d: %s", job->pids[i], strerror(errno));
			status = 127 << 8;
		}
		if (sh.unwind != U_INTERRUPT)
			report_signal(job->pids[i], status);
	}
	if (sh.job_control) {
		tty_foreground(getpgrp());
		tty_set(TTY_RAW);
	}
	return exit_status(status);
}

void
job_remember(pid_t pid)
{
	struct background *place = &background[0];

	for (int i = 0; i < BACKGROUND_MAX; i++) {
		if (background[i].pid == 0) {
			place = &background[i];
			break;
		}
		if (background[i].ended && !place->ended)
			place = &background[i];
	}
	*place = (struct background){.pid = pid};
}

/* Asks for one that may have ended; with `block`, waits for it. */
static void
background_poll(struct background *b, bool block)
{
	pid_t ended;
	int status;

	if (b->pid == 0 || b->ended)
		return;
	do
		ended = waitpid(b->pid, &status, block ? 0 : WNOHANG);
	while (ended < 0 && errno == EINTR);
	if (ended == 0)
		return;
	b->ended = true;
	b->status = ended < 0 ? 127 : exit_status(status);
}

void
job_report_ended(void)
{
	for (int i = 0; i < BACKGROUND_MAX; i++) {
		struct background *b = &background[i];

		background_poll(b, false);
		if (b->pid == 0 || !b->ended)
			continue;
		if (b->status == 0)
			printf("[%d] done\n", b->pid);
		else
			printf("[%d] status %d\n", b->pid, b->status);
		b->pid = 0;
	}
	fflush(stdout);
}

/* Waits so that ^C at the prompt still gets through. */
static int
background_wait(struct background *b)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

	background_poll(b, !sh.interactive);
	while (!b->ended) {
		if (job_interrupted())
			return 130;
		nanosleep(&pause, NULL);
		background_poll(b, false);
	}
	b->pid = 0;
	return b->status;
}

int
job_wait_background(pid_t pid)
{
	int status = pid == 0 ? 0 : 127;

	for (int i = 0; i < BACKGROUND_MAX && sh.unwind == U_NONE; i++) {
		if (background[i].pid != 0 && pid == 0)
			background_wait(&background[i]);
		else if (background[i].pid == pid && pid != 0)
			status = background_wait(&background[i]);
	}
	return sh.unwind == U_INTERRUPT ? 130 : status;
}

bool
job_interrupted(void)
{
	if (sh.interactive && tty_interrupted()) {
		fputs("^C\n", stderr);
		sh.unwind = U_INTERRUPT;
	}
	return sh.unwind == U_INTERRUPT;
}
