/* clones.c - processes that clone() makes in other ways than fork() does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define CLONES_TELLS 100 /* a descriptor */

static volatile int heard; /* the last signal */

static void
note(int sig)
{
	heard = sig;
}

static long
clone3_with(uint64_t flags, int signal, int *pidfd)
{
	struct clone_args c = {.flags = flags,
			       .exit_signal = (uint64_t)signal,
			       .pidfd = (uintptr_t)pidfd};

	return syscall(SYS_clone3, &c, sizeof(c));
}

/* A child that tells its end by SIGUSR1; one that does not tell it. */
static bool
ends_are_told_by_any_signal(void)
{
	struct sigaction act = {.sa_handler = note}, old[2];
	bool good =
	    sigaction(SIGUSR1, &act, &old[0]) == 0 && sigaction(SIGCHLD, &act, &old[1]) == 0;
	long pid;
	int status;

	heard = 0;
	pid = clone3_with(0, SIGUSR1, NULL);
	if (pid == 0)
		_exit(3);
	/* who waits for children of the other kind does not find it */
	good = good && pid > 0 && FAILS(waitpid((pid_t)pid, NULL, WNOHANG), ECHILD) &&
	       waitpid((pid_t)pid, &status, __WCLONE) == pid && WEXITSTATUS(status) == 3 &&
	       heard == SIGUSR1;
	heard = 0;
	pid = clone3_with(0, 0, NULL);
	if (pid == 0)
		_exit(4);
	good = good && pid > 0 && waitpid((pid_t)pid, &status, __WALL) == pid &&
	       WEXITSTATUS(status) == 4 && heard == 0;
	/* a program tells its end as all do */
	pid = clone3_with(0, SIGUSR1, NULL);
	if (pid == 0) {
		execl(linux_test_path(), linux_test_path(), "auxv", NULL);
		_exit(127);
	}
	good = good && pid > 0 && waitpid((pid_t)pid, NULL, __WALL) == pid && heard == SIGCHLD;
	return sigaction(SIGUSR1, &old[0], NULL) == 0 && sigaction(SIGCHLD, &old[1], NULL) == 0 &&
	       good;
}

/* Executes what waits for its child, which was to tell its end by a signal that kills. */
static int
executes_a_waiter(void *arg)
{
	int ends[2];
	long pid = pipe(ends) == 0 ? clone3_with(0, SIGUSR1, NULL) : -1;
	char c;

	if (pid < 0)
		return 1;
	if (pid == 0)
		_exit(close(ends[1]) == 0 && read(ends[0], &c, 1) == 0 ? 0 : 1);
	if (dup2(ends[1], CLONES_TELLS) < 0 || close(ends[1]) != 0)
		return 1;
	execl(linux_test_path(), linux_test_path(), "clones-executed", NULL);
	return 2;
}

int
clones_as_executed(void)
{
	int status;

	close(CLONES_TELLS);
	return waitpid(-1, &status, __WALL) > 0 && status == 0 ? 0 : 3;
}

static int
has_no_stack(void *arg)
{
	stack_t now;

	return sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE ? 0 : 1;
}

/* A child in the same memory does not begin on the stack for the parent's handlers. */
static bool
handlers_have_stacks(void)
{
	static char stack[65536], alternative[65536];
	stack_t mine = {.ss_sp = alternative, .ss_size = sizeof(alternative)}, old;
	int status;
	pid_t pid;
	bool good = sigaltstack(&mine, &old) == 0;

	pid = clone(has_no_stack, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	good = good && waitpid(pid, &status, 0) == pid && status == 0;
	return sigaltstack(&old, NULL) == 0 && good;
}

/* The signal in a file of /proc. */
static int
shown_signal(const char *path)
{
	char text[1024] = "", *at;
	int fd = open(path, O_RDONLY);

	read(fd, text, sizeof(text) - 1);
	close(fd);
	at = strrchr(text, ')');
	for (int i = 2; at != NULL && i < 38; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? atoi(at) : -2;
}

static void *
see_thread(void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", syscall(SYS_gettid));
	*(int *)arg = shown_signal(path);
	return NULL;
}

/* What /proc tells of the signal. A thread that is not the first ends without one. */
static bool
signals_are_shown(void)
{
	long pid = clone3_with(0, SIGURG, NULL);
	char path[64];
	pthread_t t;
	int sig, thread = 0;

	if (pid == 0)
		return pause();
	if (pid < 0)
		return false; /* -1 would be all processes, below */
	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	sig = shown_signal(path);
	kill((pid_t)pid, SIGKILL);
	return waitpid((pid_t)pid, NULL, __WALL) == pid && sig == SIGURG &&
	       pthread_create(&t, NULL, see_thread, &thread) == 0 && pthread_join(t, NULL) == 0 &&
	       thread == -1;
}

static void *
look_at_itself(void *arg)
{
	char path[64], name[32] = "";
	int fd;

	prctl(PR_SET_NAME, "not the first");
	snprintf(path, sizeof(path), "/proc/%ld/comm", syscall(SYS_gettid));
	fd = open(path, O_RDONLY);
	read(fd, name, sizeof(name) - 1);
	close(fd);
	return strcmp(name, "not the first\n") == 0 ? arg : NULL;
}

/* /proc has a folder for each thread, which is not listed. */
static bool
threads_have_folders(void)
{
	pthread_t t;
	void *r;
	char good;

	return pthread_create(&t, NULL, look_at_itself, &good) == 0 && pthread_join(t, &r) == 0 &&
	       r == &good;
}

/* A sibling: its parent is its maker's. */
static bool
siblings_are_made(void)
{
	int ends[2], status;
	pid_t maker, found = 0, parent = getpid();
	bool good = pipe(ends) == 0;

	maker = fork();
	if (maker == 0) {
		long pid = clone3_with(CLONE_PARENT, 0, NULL);

		if (pid == 0)
			_exit(getppid() == parent ? 5 : 6);
		_exit(write(ends[1], &(pid_t){(pid_t)pid}, sizeof(pid_t)) == sizeof(pid_t) &&
			      FAILS(waitpid((pid_t)pid, NULL, 0), ECHILD)
			  ? 0
			  : 1);
	}
	good = good && waitpid(maker, &status, 0) == maker && status == 0 &&
	       read(ends[0], &found, sizeof(found)) == sizeof(found) &&
	       waitpid(found, &status, 0) == found && WEXITSTATUS(status) == 5;
	close(ends[0]);
	close(ends[1]);
	return good;
}

static bool
a_file_stands_for_the_child(void)
{
	int fd = -1, status, gate[2];
	bool good = pipe(gate) == 0;
	long pid = clone3_with(CLONE_PIDFD, SIGCHLD, &fd);
	struct pollfd p;
	siginfo_t info;

	if (pid == 0) {
		char c;

		close(gate[1]);
		_exit(fcntl(fd, F_GETFD) == -1 && read(gate[0], &c, 1) == 0 ? 7 : 8);
	}
	close(gate[0]);
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	good = good && pid > 0 && fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC &&
	       poll(&p, 1, 0) == 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
	close(gate[1]);
	good = good && poll(&p, 1, -1) == 1 && waitid((idtype_t)3, (id_t)fd, &info, WEXITED) == 0 &&
	       info.si_pid == pid && info.si_status == 7;
	close(fd);
	/* no room for the number: no child, and no descriptor is lost */
	fd = dup(0);
	close(fd);
	good = good && FAILS(clone3_with(CLONE_PIDFD, SIGCHLD, no_address), EFAULT) &&
	       FAILS(waitpid(-1, &status, WNOHANG), ECHILD) && dup(0) == fd;
	close(fd);
	/* one argument of clone() for two */
	return good &&
	       FAILS(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &fd, 0, 0),
		     EINVAL);
}

/* In a process that has no other children, and no handler for their end, which would end poll(). */
static int
has_no_other_child(void *arg)
{
	signal(SIGCHLD, SIG_DFL);
	return !a_file_stands_for_the_child();
}

/* What one of the two opens and closes, the other one sees. */
static bool
files_are_shared(void)
{
	int fd = open("/dev/null", O_RDONLY), status;
	long pid = clone3_with(CLONE_FILES, SIGCHLD, NULL);
	bool good = fd >= 0 && pid >= 0;

	if (pid == 0)
		_exit(close(fd) == 0 && dup2(1, 700) == 700 ? 0 : 1);
	good = good && waitpid((pid_t)pid, &status, 0) == pid && status == 0 &&
	       fcntl(fd, F_GETFD) == -1 && close(700) == 0;
	/* until one of them asks for its own, or executes a program */
	fd = open("/dev/null", O_RDONLY);
	pid = clone3_with(CLONE_FILES, SIGCHLD, NULL);
	if (pid == 0)
		_exit(unshare(CLONE_FILES) == 0 && close(fd) == 0 ? 0 : 1);
	good = good && waitpid((pid_t)pid, &status, 0) == pid && status == 0 &&
	       fcntl(fd, F_GETFD) == 0;
	pid = clone3_with(CLONE_FILES, SIGCHLD, NULL);
	if (pid == 0)
		_exit(close_range((unsigned)fd, ~0u, CLOSE_RANGE_UNSHARE) == 0 &&
			      fcntl(fd, F_GETFD) == -1
			  ? 0
			  : 1);
	good = good && waitpid((pid_t)pid, &status, 0) == pid && status == 0 &&
	       fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
	pid = clone3_with(CLONE_FILES, SIGCHLD, NULL);
	if (pid == 0) {
		execl(linux_test_path(), linux_test_path(), "auxv", NULL);
		_exit(127);
	}
	good = good && pid > 0 && waitpid((pid_t)pid, NULL, 0) == pid &&
	       fcntl(fd, F_GETFD) == FD_CLOEXEC;
	close(fd);
	return good;
}

static int
writes_word(void *arg)
{
	*(volatile int *)arg = 77;
	return 9;
}

/* Memory, while the parent goes on. */
static bool
memory_is_shared(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	volatile int word = 0;
	int status;
	pid_t pid =
	    clone(writes_word, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)(uintptr_t)&word);

	return pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 9 && word == 77;
}

/* Goes on as its own child, until that was often enough. */
static void
hop(atomic_int *left)
{
	while (--*left > 0)
		if (fork() > 0)
			break;
	_exit(0);
}

/* For longer than a slice, on one CPU, beside four that do; all of one user. */
static int
computes_beside_hoppers(void *arg)
{
	atomic_int *left =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t one;

	(void)arg;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	signal(SIGCHLD, SIG_IGN);
	*left = 10000;
	for (unsigned i = 0; i < 4; i++)
		if (fork() == 0)
			hop(left);
	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < 60 * MS)
		;
	return atomic_exchange(left, 0) <= 0;
}

void
test_clones(void)
{
	result(in_child(computes_beside_hoppers, NULL) == 0,
	       "who goes on as its own child leaves others their share of the CPU");
	result(ends_are_told_by_any_signal(),
	       "clone3: a child tells its end by any signal, or by none");
	result(in_child(executes_a_waiter, NULL) == 0,
	       "a program gets SIGCHLD of children that were made before it was executed");
	result(handlers_have_stacks(), "CLONE_VM: a child has no sigaltstack()");
	result(threads_have_folders(), "/proc finds each thread by its number");
	result(signals_are_shown(), "/proc tells by which signal a child tells its end");
	result(siblings_are_made(), "CLONE_PARENT: the child is a sibling");
	result(in_child(has_no_other_child, NULL) == 0,
	       "CLONE_PIDFD: a file that stands for the child");
	result(files_are_shared(), "CLONE_FILES: two processes have the same descriptors");
	result(memory_is_shared(), "CLONE_VM: two processes have the same memory");
}
