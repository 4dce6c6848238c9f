/*
 * deeds.c - single acts of a hostile program; tests/system/test_hold.py checks their effects.
 */
#include "tests/user/deeds.h"

#include <errno.h>
#include <fcntl.h>
#include <kestrel.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/user/raw.h"
#include "tests/user/real.h"

#include "tests/user/hogs.h"

/* Sets O_NONBLOCK on the open file that it shares with the shell. */
static int
do_nonblock(void)
{
	return fcntl(0, F_SETFL, O_NONBLOCK) < 0;
}

static int
result(int r)
{
	return r < 0 ? -errno : r;
}

/* Tries to take the console away from its user, and to read what is typed there. */
static int
do_steal(void)
{
	struct termios t;
	char buf[64];
	int group, set, got;

	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	group = result(tcsetpgrp(0, getpgrp()));
	tcgetattr(0, &t);
	set = result(tcsetattr(0, TCSANOW, &t));
	got = result((int)read(0, buf, sizeof(buf)));
	printf("steal: foreground %d settings %d read %d\n", group, set, got);
	return 0;
}

/* Reads the console with default signal actions. */
static int
do_read(void)
{
	char buf[64];
	ssize_t n = read(0, buf, sizeof(buf));

	printf("read: %.*s\n", n > 0 ? (int)n - 1 : 0, buf);
	return n < 0;
}

/* Joins the process group of its grandparent, which is root's shell. */
static int
do_join(int argc, char **argv)
{
	long pgid = 0;

	for (const char *p = argc > 2 ? argv[2] : ""; *p != '\0'; p++)
		pgid = pgid * 10 + (*p - '0');
	printf("join: %d\n", result(setpgid(0, (pid_t)pgid)));
	return 0;
}

/*
 * The pid in a line of kern.proc (PID TID PPID PGID UID STATE ...), if it is a living process of
 * uid. Of user 0's, only this program is meant, in other processes. Otherwise 0.
 */
static int
pid_of(const char *line, unsigned long uid)
{
	char *at;
	const char *end = strchr(line, '\n'), *name = strstr(line, " user_test");
	unsigned long pid = strtoul(line, &at, 10), owner = 0;

	for (int word = 1; word < 5; word++)
		owner = strtoul(at, &at, 10);
	if (uid == 0 && (name == NULL || (end != NULL && name > end) || (int)pid == getpid()))
		return 0;
	return owner == uid && strncmp(at, " zombie", 7) != 0 ? (int)pid : 0;
}

/* Kills the processes of a user until there are none left. Of user 0's, those of this program. */
static int
do_slay(const char *user)
{
	unsigned long uid = strtoul(user, NULL, 10);
	unsigned found;

	do {
		char *text = sysctl_get_text("kern.proc"), *line = text;

		if (text == NULL)
			return 1;
		found = 0;
		for (; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
			int pid;

			line += *line == '\n';
			pid = pid_of(line, uid);
			if (pid > 0) {
				found++;
				kill(pid, SIGKILL);
			}
		}
		free(text);
	} while (found > 0);
	return 0;
}

#define PAGE 4096ul

/* Writes to so many pages. */
static void
touch_pages(char *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		at[i * PAGE] = 1;
}

static char *
map_pages(size_t pages)
{
	return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static unsigned long
pages_free(void)
{
	char *text = sysctl_get_text("vm.pages.free");
	unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 0;

	free(text);
	return n;
}

/* Takes memory until so many pages are free. */
static void
take_until(unsigned long left)
{
	unsigned long n;

	while ((n = pages_free()) > left) {
		n = (n - left + 1) / 2;
		touch_pages(map_pages(n), n);
	}
}

static _Noreturn void
stay(void)
{
	for (;;)
		sleep(1000);
}

static int
do_hold(const char *left)
{
	take_until(strtoul(left, NULL, 10));
	printf("hold: %lu pages are free\n", pages_free());
	fflush(stdout);
	stay();
}

/* A child takes memory until little is left. Then the parent needs more than that. */
static int
do_starve(void)
{
	enum { LEFT = 100, NEEDED = 400 };
	char *mine = map_pages(NEEDED), byte = 0;
	int ready[2], status = 0;
	pid_t child;

	if (mine == MAP_FAILED || pipe(ready) < 0 || (child = fork()) < 0)
		return 1;
	if (child == 0) {
		take_until(LEFT);
		write(ready[1], &byte, 1);
		stay();
	}
	read(ready[0], &byte, 1);
	touch_pages(mine, NEEDED);
	kill(child, SIGTERM); /* if it still lives */
	waitpid(child, &status, 0);
	printf("starve: the child was ended by signal %d\n", WTERMSIG(status));
	return 0;
}

/*
 * A child takes memory until it is killed for that. Its tracer, the parent, leaves it in the stop
 * before its end, and needs memory itself.
 */
static int
do_grip(void)
{
	enum { MUCH = 1000, NEEDED = 200 };
	char *mine = map_pages(NEEDED);
	int status = 0;
	pid_t child = mine != MAP_FAILED ? fork() : -1;

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		touch_pages(map_pages(MUCH), MUCH);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child ||
	    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACEEXIT) != 0 ||
	    ptrace(PTRACE_CONT, child, NULL, NULL) != 0)
		return 1;
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		touch_pages(mine, NEEDED);
	printf("grip: the child was ended by signal %d\n", WTERMSIG(status));
	return 0;
}

/*
 * Each system call once, in a process of its own, with arguments that say which it is. Prints what
 * it returns. Left out are those that wait for ever, or return with another stack.
 */
static int
do_calls(void)
{
	static const struct {
		long nr;
		const char *name;
	} calls[] = {
#define SYSCALL(nr, name, ...) {nr, #name},
#include <syscalls.def>
#undef SYSCALL
	};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		static const char *const out[] = {"pause", "rt_sigreturn", "rt_sigsuspend",
						  "vfork"};
		bool left_out = false;
		long a = 0x6b74720000000080 | calls[i].nr << 8, ret;
		pid_t parent = getpid(), child;

		for (size_t k = 0; k < sizeof(out) / sizeof(out[0]); k++)
			left_out |= strcmp(calls[i].name, out[k]) == 0;
		if (left_out)
			continue;
		fflush(stdout);
		child = fork();
		if (child != 0) {
			waitpid(child, NULL, 0);
			continue;
		}
		ret = syscall_raw(calls[i].nr, a, a + 1, a + 2, a + 3, a + 4, a + 5);
		if (getppid() != parent) /* a fork's child */
			_exit(0);
		printf("%s %ld %ld\n", calls[i].name, calls[i].nr, ret);
		fflush(stdout);
		_exit(0);
	}
	return 0;
}

/* A program of user 1000's that another user has started makes that one its real user, too. */
static int
do_turn(void)
{
	if (setresuid(1001, 1000, 1000) != 0)
		return 1;
	printf("turn: %d\n", result(setreuid(1000, 1000)));
	return 0;
}

/* Removes all of System V IPC, which outlives its processes. */
static int
do_ipcrm(void)
{
	for (int i = 0; i < 4096; i++) {
		struct shmid_ds segment;
		struct msqid_ds queue;
		struct semid_ds set;
		int id;

		if ((id = shmctl(i, SHM_STAT, &segment)) >= 0)
			shmctl(id, IPC_RMID, NULL);
		if ((id = msgctl(i, MSG_STAT, &queue)) >= 0)
			msgctl(id, IPC_RMID, NULL);
		if ((id = semctl(i, 0, SEM_STAT, &set)) >= 0)
			semctl(id, 0, IPC_RMID);
	}
	return 0;
}

int
deed_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "nonblock") == 0)
		return do_nonblock();
	if (strcmp(what, "steal") == 0)
		return do_steal();
	if (strcmp(what, "read") == 0)
		return do_read();
	if (strcmp(what, "join") == 0)
		return do_join(argc, argv);
	if (strcmp(what, "calls") == 0)
		return do_calls();
	if (strcmp(what, "starve") == 0)
		return do_starve();
	if (strcmp(what, "grip") == 0)
		return do_grip();
	if (strcmp(what, "hold") == 0 && argc > 2)
		return do_hold(argv[2]);
	if (strcmp(what, "slay") == 0 && argc > 2)
		return do_slay(argv[2]);
	if (strcmp(what, "turn") == 0)
		return do_turn();
	if (strcmp(what, "ipcrm") == 0)
		return do_ipcrm();
	if (strcmp(what, "crash") == 0)
		return *(volatile int *)NULL;
	if (strcmp(what, "leaks") == 0)
		return real_leaks();
	if (strcmp(what, "leave") == 0)
		return hog_leave_depth();
	if (strcmp(what, "hog") == 0 && argc > 2 && hog_main(argv[2]) == 0)
		return 0;
	fprintf(
	    stderr,
	    "usage: user_test do nonblock|steal|read|join PGID|calls|starve|grip|hold LEFT|slay UID|"
	    "ipcrm|turn|crash|leave|leaks|hog WHAT\n");
	return 2;
}
