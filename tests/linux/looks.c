/* looks.c - what /proc shows of a process that has another name, other ids, or has ended. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define NOBODY 65534

/* A name of a process is in one line of its status, whatever is in it. */
static int
named(void *arg)
{
	char text[512] = "";
	int fd = open("/proc/self/status", O_RDONLY);

	prctl(PR_SET_NAME, "a\nUid:\t0\\b");
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	       strncmp(text, "Name:\ta\\nUid:\t0\\\\b\n", 19) == 0;
}

/* Who has changed its ids has no right to look into such a process, but it is one itself. */
static int
own_files(void *arg)
{
	struct dirent *entry;
	unsigned found = 0;
	DIR *dir;

	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return 0;
	dir = opendir("/proc/self/fd");
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		found += entry->d_name[0] != '.';
	return found >= 2 && access("/proc/self/fd/1", F_OK) == 0;
}

/* The memory of a process is gone with it, for those, too, who have it open. */
static bool
ended_memory(void)
{
	int ready[2], go[2], mem = -1;
	char path[64], c;
	bool seen;
	pid_t pid;

	if (pipe(ready) != 0 || pipe(go) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		_exit(write(ready[1], "x", 1) != 1 || read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (pid > 0 && read(ready[0], &c, 1) == 1)
		mem = open(path, O_RDONLY);
	seen = mem >= 0 && pread(mem, &c, 1, (off_t)(uintptr_t)path) == 1;
	close(go[1]);
	close(ready[0]);
	close(ready[1]);
	return waitpid(pid, NULL, 0) == pid && seen &&
	       pread(mem, &c, 1, (off_t)(uintptr_t)path) == 0 && close(mem) == 0;
}

/* One that has ended, but is still waited for, has none. */
static bool
ended_unwaited(void)
{
	siginfo_t info;
	char path[64], c;
	pid_t pid = fork();
	int mem;
	bool good;

	if (pid == 0)
		_exit(0);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	good = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0;
	mem = open(path, O_RDONLY);
	good = good && (mem < 0 || pread(mem, &c, 1, (off_t)(uintptr_t)path) == 0);
	if (mem >= 0)
		close(mem);
	return waitpid(pid, NULL, 0) == pid && good;
}

/* The words that the machine was started with. */
static bool
command_line(void)
{
	char text[4096];
	int fd = open("/proc/cmdline", O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

	return n > 0 && text[n - 1] == '\n' && close(fd) == 0;
}

void
test_looks(void)
{
	result(command_line(), "/proc/cmdline has a line");
	result(in_child(named, NULL) == 1, "a process's name adds no lines to its status");
	if (geteuid() == 0)
		result(in_child(own_files, NULL) == 1,
		       "who has changed its ids may look at its own files");
	result(ended_unwaited(), "mem of a process that nobody has waited for is empty");
	result(ended_memory(), "an open mem of a process that has ended is empty");
}
