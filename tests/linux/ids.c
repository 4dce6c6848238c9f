/* ids.c - real, effective and saved users and groups; waitid. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static bool
users_are(uid_t real, uid_t effective, uid_t saved)
{
	uid_t r, e, s;

	return getresuid(&r, &e, &s) == 0 && r == real && e == effective && s == saved &&
	       getuid() == real && geteuid() == effective;
}

static bool
groups_are(gid_t real, gid_t effective, gid_t saved)
{
	gid_t r, e, s;

	return getresgid(&r, &e, &s) == 0 && r == real && e == effective && s == saved &&
	       getgid() == real && getegid() == effective;
}

#define SECRET "/tmp/linux_secret"

/* Without the C library, which would change all threads. */
#define set(call, ...) syscall(SYS_##call, __VA_ARGS__)

static int
changes_users(void *arg)
{
	struct stat st;
	int fd;

	/* User 0 gives its rights away for a time. */
	if (set(setresuid, -1, 1000, -1) != 0 || !users_are(0, 1000, 0))
		return 1;
	fd = open("/tmp/linux_ids", O_CREAT | O_RDWR | O_TRUNC, 0600);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != 1000 || unlink("/tmp/linux_ids") != 0 ||
	    !FAILS(open("/proc/1/environ", O_RDONLY), EACCES) || kill(1, 0) != 0)
		return 2;
	if (!FAILS(set(setresuid, 5, -1, -1), EPERM) || !FAILS(set(setreuid, -1, 7), EPERM) ||
	    !FAILS(set(setuid, 7), EPERM) || set(setresuid, -1, 0, -1) != 0 || !users_are(0, 0, 0))
		return 3;
	/* access() is of the real user, and so finds what the effective one may not read. */
	close(open(SECRET, O_CREAT | O_WRONLY, 0600));
	if (set(setresuid, 1000, 0, 0) != 0 || !FAILS(access(SECRET, R_OK), EACCES) ||
	    faccessat(AT_FDCWD, SECRET, R_OK, AT_EACCESS) != 0 || set(setresuid, 0, 1000, 0) != 0 ||
	    access(SECRET, R_OK) != 0 ||
	    !FAILS(faccessat(AT_FDCWD, SECRET, R_OK, AT_EACCESS), EACCES) ||
	    set(setresuid, 0, 0, 0) != 0 || unlink(SECRET) != 0)
		return 7;
	/* setreuid: the saved user becomes the effective one. */
	if (set(setreuid, 1000, 0) != 0 || !users_are(1000, 0, 0) || set(setreuid, 0, 1000) != 0 ||
	    !users_are(0, 1000, 1000) || set(setreuid, 1000, 0) != 0 || !users_are(1000, 0, 0) ||
	    set(setreuid, -1, 1000) != 0 || !users_are(1000, 1000, 0))
		return 4;
	if (set(setuid, 0) != 0 || !users_are(1000, 0, 0) || set(setresuid, 1, 2, 3) != 0 ||
	    !users_are(1, 2, 3) || set(setresuid, 2, 3, 1) != 0 || !users_are(2, 3, 1) ||
	    set(setuid, 1) != 0 || !users_are(2, 1, 1) || !FAILS(set(setuid, 3), EPERM) ||
	    !FAILS(set(setreuid, 3, -1), EPERM) || !FAILS(set(setresuid, -1, -1, 0), EPERM))
		return 5;
	return FAILS(set(setuid, -1), EINVAL) && FAILS(set(setresuid, -2, -1, -1), EINVAL) &&
		       FAILS(set(getresuid, NOWHERE, NOWHERE, NOWHERE), EFAULT) &&
		       set(setresuid, -1, -1, -1) == 0 && set(setreuid, -1, -1) == 0 &&
		       users_are(2, 1, 1) && FAILS(kill(1, 0), EPERM) &&
		       kill(-1, SIGTERM) == 0 /* that there are none to kill is no error */
		   ? 0
		   : 6;
}

static int
changes_groups(void *arg)
{
	if (setgroups(0, NULL) != 0 || set(setresgid, 10, 11, 12) != 0 || !groups_are(10, 11, 12) ||
	    set(setregid, -1, 13) != 0 || !groups_are(10, 13, 13) || set(setgid, 9) != 0 ||
	    !groups_are(9, 9, 9) || set(setresgid, 10, 11, 12) != 0 || setuid(1000) != 0)
		return 1;
	return FAILS(set(setresgid, 9, -1, -1), EPERM) && FAILS(set(setgid, 9), EPERM) &&
		       FAILS(set(setregid, 12, -1), EPERM) && set(setresgid, 12, 10, 11) == 0 &&
		       groups_are(12, 10, 11) && set(setgid, 11) == 0 && groups_are(12, 11, 11) &&
		       set(setregid, 11, 12) == 0 && groups_are(11, 12, 12) &&
		       FAILS(set(setgid, -1), EINVAL)
		   ? 0
		   : 2;
}

int
ids_as_executed(void)
{
	return users_are(1, 0, 0) && groups_are(5, 6, 6) && getauxval(AT_UID) == 1 &&
		       getauxval(AT_EUID) == 0 && getauxval(AT_GID) == 5 &&
		       getauxval(AT_EGID) == 6 && getauxval(AT_SECURE) == 1
		   ? 0
		   : 4;
}

/* /proc tells all three, and exec makes the saved user the effective one. */
static int
tells_users(void *arg)
{
	char text[4096] = "";
	int fd;

	if (setresgid(5, 6, 7) != 0 || setresuid(1, 0, 3) != 0)
		return 1;
	fd = open("/proc/self/status", O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) <= 0 ||
	    strstr(text, "\nUid:\t1\t0\t3\t0\nGid:\t5\t6\t7\t6\n") == NULL)
		return 2;
	execl(linux_test_path(), linux_test_path(), "saved", NULL);
	return 3;
}

/* Changes users and groups between two sets of three until the other thread has looked often. */
static void *
changes_often(void *over)
{
	for (unsigned i = 0; !__atomic_load_n((int *)over, __ATOMIC_SEQ_CST); i++) {
		set(setresuid, i % 2 + 1, 0, i % 2 + 1);
		set(setresgid, i % 2 + 1, 0, i % 2 + 1);
	}
	return NULL;
}

/* Nobody sees half of a change, nor has a child half of one. */
static int
changes_are_whole(void *arg)
{
	unsigned rounds = how_often(2000), forks = how_often(40);
	int over = 0, status = 0, wrong = 0;
	uid_t r, e, s;
	pthread_t t;

	if (set(setresuid, 1, 0, 1) != 0 || set(setresgid, 1, 0, 1) != 0 ||
	    pthread_create(&t, NULL, changes_often, &over) != 0)
		return 1;
	for (unsigned i = 0; i < rounds; i++) {
		getresuid(&r, &e, &s);
		wrong |= r != s;
		getresgid(&r, &e, &s);
		wrong |= (r != s) * 2;
	}
	for (unsigned i = 0; i < forks && status == 0; i++) {
		if (fork() == 0) {
			getresuid(&r, &e, &s);
			wrong |= (r != s) * 4;
			getresgid(&r, &e, &s);
			_exit(wrong | (r != s) * 8);
		}
		wait(&status);
	}
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	pthread_join(t, NULL);
	return wrong | (WEXITSTATUS(status) << 4);
}

/* ---- waitid ---- */

static pid_t
child(int status)
{
	pid_t pid = fork();

	if (pid == 0 && status >= 0)
		_exit(status);
	while (pid == 0)
		pause();
	return pid;
}

static bool
info_is(const siginfo_t *i, int code, pid_t pid, int status)
{
	return i->si_signo == SIGCHLD && i->si_code == code && i->si_pid == pid &&
	       i->si_uid == getuid() && i->si_status == status && i->si_errno == 0;
}

static int
waits(void *arg)
{
	pid_t a = child(7), b = child(-1);
	struct rusage usage;
	siginfo_t i;

	if (waitid(P_PID, (id_t)a, &i, WEXITED | WNOWAIT) != 0 || !info_is(&i, CLD_EXITED, a, 7) ||
	    waitid(P_ALL, 0, &i, WEXITED | WNOWAIT) != 0 || !info_is(&i, CLD_EXITED, a, 7) ||
	    syscall(SYS_waitid, P_PGID, 0, &i, WEXITED, &usage) != 0 ||
	    !info_is(&i, CLD_EXITED, a, 7) || !FAILS(waitid(P_PID, (id_t)a, &i, WEXITED), ECHILD))
		return 1;
	memset(&i, 0x55, sizeof(i));
	if (waitid(P_ALL, 0, &i, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
	    i.si_signo != 0 || i.si_pid != 0)
		return 2;
	kill(b, SIGSTOP);
	if (waitid(P_PGID, (id_t)getpgrp(), &i, WSTOPPED | WNOWAIT) != 0 ||
	    !info_is(&i, CLD_STOPPED, b, SIGSTOP) || waitid(P_PID, (id_t)b, &i, WSTOPPED) != 0 ||
	    !info_is(&i, CLD_STOPPED, b, SIGSTOP) ||
	    waitid(P_PID, (id_t)b, &i, WSTOPPED | WNOHANG) != 0 || i.si_pid != 0)
		return 3;
	kill(b, SIGCONT);
	if (waitid(P_PID, (id_t)b, &i, WCONTINUED) != 0 || !info_is(&i, CLD_CONTINUED, b, SIGCONT))
		return 4;
	kill(b, SIGKILL);
	/* A process that has ended does not stop any more. */
	if (waitid(P_PID, (id_t)b, NULL, WEXITED | WNOWAIT) != 0 ||
	    !FAILS(waitid(P_PID, (id_t)b, &i, WSTOPPED), ECHILD) ||
	    waitid(P_ALL, 0, &i, WEXITED | WSTOPPED) != 0 || !info_is(&i, CLD_KILLED, b, SIGKILL))
		return 6;
	return FAILS(waitid(P_ALL, 0, &i, WEXITED), ECHILD) &&
		       FAILS(waitid(P_ALL, 0, &i, WNOHANG), EINVAL) &&
		       FAILS(waitid(P_ALL, 0, &i, WEXITED | 64), EINVAL) &&
		       FAILS(waitid(P_PID, 0, &i, WEXITED), EINVAL) &&
		       FAILS(waitid((idtype_t)9, 1, &i, WEXITED), EINVAL) &&
		       FAILS(waitid(P_PGID, (id_t)-5, &i, WEXITED), EINVAL) && child(1) > 0 &&
		       FAILS(waitid(P_ALL, 0, NOWHERE, WEXITED), EFAULT)
		   ? 0
		   : 7;
}

static long
usage_us(const struct rusage *u)
{
	return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 + u->ru_utime.tv_usec +
	       u->ru_stime.tv_usec;
}

/* A child that has stopped or goes on has used something, too. */
static int
waits_for_usage(void *arg)
{
	struct rusage used = {0}, again = {0}, end = {0};
	pid_t pid = fork();
	siginfo_t i;
	int status;

	if (pid == 0) {
		do
			getrusage(RUSAGE_SELF, &used);
		while (usage_us(&used) < 30000);
		raise(SIGSTOP);
		_exit(0);
	}
	/* Up to the last switch: that of the stop comes a moment later. */
	do
		if (syscall(SYS_waitid, P_PID, pid, &i, WSTOPPED | WNOWAIT, &used) != 0)
			return 1;
	while (usage_us(&used) < 30000);
	if (wait4(pid, &status, WUNTRACED, &again) != pid || !WIFSTOPPED(status) ||
	    usage_us(&again) != usage_us(&used))
		return 2;
	kill(pid, SIGCONT);
	if (wait4(pid, &status, 0, &end) != pid || usage_us(&end) < usage_us(&again))
		return 3;
	return 0;
}

#define NOBODYS 4567 /* a user of whom nothing else is */

static void *
changes_again_and_again(void *stop)
{
	for (unsigned i = 0; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); i++)
		syscall(SYS_setresuid, i % 2 == 0 ? NOBODYS : 0, 0, 0);
	return NULL;
}

/* Makes pipes and so on, while another thread changes to whom they are counted. */
static int
makes_files(void *arg)
{
	bool stop = false;
	pthread_t t;

	if (pthread_create(&t, NULL, changes_again_and_again, &stop) != 0)
		return 1;
	for (unsigned i = 0; i < how_often(2000); i++) {
		int fd[5], map = i % 2 == 0 ? MAP_PRIVATE : MAP_SHARED;
		void *m = mmap(NULL, 4096, PROT_READ, map | MAP_ANONYMOUS, -1, 0);

		if (m == MAP_FAILED || pipe(fd) != 0 || (fd[2] = eventfd(0, 0)) < 0 ||
		    (fd[3] = epoll_create1(0)) < 0 || (fd[4] = open("/dev/ptmx", O_RDWR)) < 0)
			return 2;
		for (unsigned k = 0; k < 5; k++)
			close(fd[k]);
		munmap(m, 4096);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	return pthread_join(t, NULL) == 0 ? 0 : 3;
}

#define OTHERS 4568 /* another one */

/* setuid() to a user who has too many processes succeeds, but the next execve() does not. */
static int
becomes_one_too_many(void *arg)
{
	static char *args[] = {"linux_test", "nothing", NULL};
	pid_t others[2], third;
	int status = 0;
	bool good = true;

	for (int i = 0; i < 2; i++) {
		others[i] = fork();
		if (others[i] == 0) {
			raise(setuid(NOBODYS) == 0 ? SIGSTOP : SIGKILL);
			_exit(1);
		}
		good &= waitpid(others[i], &status, WUNTRACED) == others[i] && WIFSTOPPED(status);
	}
	third = good ? fork() : -1;
	if (third == 0) {
		good = setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 100}) == 0 &&
		       setuid(NOBODYS) == 0 && FAILS(execv("/", args), EAGAIN) &&
		       setrlimit(RLIMIT_NPROC, &(struct rlimit){100, 100}) == 0;
		if (good)
			execv("/proc/self/exe", args);
		_exit(1);
	}
	good &= third > 0 && waitpid(third, &status, 0) == third && status == 0;
	for (int i = 0; i < 2; i++)
		good &= kill(others[i], SIGKILL) == 0;
	while (wait(&status) > 0)
		good &= WIFSIGNALED(status);
	return good ? 0 : 1;
}

/* Takes the middle out of a lock of bytes, as another user than who locked them. */
static int
divides_a_lock(void *arg)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 30};
	int fd = memfd_create("locked", 0);

	if (fd < 0 || setresuid(NOBODYS, NOBODYS, 0) != 0 || fcntl(fd, F_SETLK, &l) != 0)
		return 1;
	l = (struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
	if (seteuid(0) != 0 || setresuid(OTHERS, OTHERS, 0) != 0)
		return 2;
	return fcntl(fd, F_SETLK, &l) == 0 ? 0 : 3;
}

/* Does a user hold nothing? What a thread holds goes a moment after it. */
static bool
holds_nothing(unsigned uid)
{
	for (unsigned i = 0; i < 10000; i++) {
		FILE *f = fopen("/proc/sys/kern/uidinfo", "r");
		char line[128];
		unsigned found, rows = 0, users = 0;

		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			if (sscanf(line, "%u", &found) == 1) {
				rows += found == uid;
				users++;
			}
		if (f != NULL)
			fclose(f);
		if (users > 0 && rows == 0)
			return true;
		sched_yield();
	}
	return false;
}

#define LIMIT_FILE "/proc/sys/kern/maxpagesperuid"

/* Writes a limit. The old one, 0 on failure. */
static long
set_page_limit(long limit)
{
	FILE *f = fopen(LIMIT_FILE, "r+");
	long old = 0;

	if (f == NULL || fscanf(f, "%ld", &old) != 1)
		return 0;
	rewind(f);
	fprintf(f, "%ld\n", limit);
	return fclose(f) == 0 ? old : 0;
}

static void
touch_memory(size_t size)
{
	volatile char *p =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
}

/* Pages of this process, which a child shares at first. */
static long
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, pages = 0;

	if (f != NULL && fscanf(f, "%ld %ld", &size, &pages) != 2)
		pages = 0;
	if (f != NULL)
		fclose(f);
	return pages;
}

/* Its memory is counted to who it was when it began. */
static int
takes_memory(void *arg)
{
	if (setresuid(0, 0, 0) != 0)
		return 1;
	touch_memory(16 << 20);
	return 2;
}

static int
takes_too_much(void *arg)
{
	return setresuid(NOBODYS, NOBODYS, 0) == 0 ? in_child(takes_memory, NULL) : 3;
}

/* A user's memory is full: a process ends whose memory is that user's, and not the largest one. */
static bool
ends_by_memory(void)
{
	long old = set_page_limit(resident() + 2000);
	pid_t other = fork();
	int status, end;

	if (other == 0) {
		touch_memory(24 << 20);
		raise(SIGSTOP);
		_exit(9);
	}
	waitpid(other, &status, WUNTRACED);
	end = in_child(takes_too_much, NULL);
	set_page_limit(old);
	kill(other, SIGCONT);
	return old != 0 && waitpid(other, &status, 0) == other && end == 128 + SIGKILL &&
	       WIFEXITED(status) && WEXITSTATUS(status) == 9;
}

/* Is where it must not be only while nobody of its user may look into it. */
static int
hides(void *arg)
{
	int there = open("/proc", O_RDONLY | O_DIRECTORY);
	int here = open("/", O_RDONLY | O_DIRECTORY);

	while (prctl(PR_SET_DUMPABLE, 0) == 0 && fchdir(there) == 0 && fchdir(here) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0)
		;
	return 1;
}

static int
looks_at_cwd(void *arg)
{
	char path[64], found[64];
	unsigned seen = 0, wrong = 0;
	pid_t pid;

	if (chdir("/") != 0 || setresuid(NOBODYS, NOBODYS, NOBODYS) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(prctl(PR_SET_DUMPABLE, 1) == 0 ? hides(NULL) : 1);
	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	for (unsigned i = 0; wrong == 0 && (i < how_often(20000) || seen == 0); i++) {
		ssize_t n = readlink(path, found, sizeof(found));

		seen += n == 1;
		wrong += n > 1;
		if (n < 0)
			sched_yield();
	}
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid && wrong == 0 ? 0 : 2;
}

#define FS_FILE "/tmp/linux_fsuid"

/* As whom a process uses files, while it stays who it is. */
static int
uses_files_as_another(void *arg)
{
	int fd = open(FS_FILE, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct stat st;

	if (getuid() != 0)
		return 0;
	if (fd < 0 || close(fd) != 0 || setfsgid(4712) != 0 || setfsuid(4711) != 0 ||
	    setfsuid(-1) != 4711 || setfsgid(-1) != 4712 || geteuid() != 0 || getegid() != 0)
		return 1;
	if (!FAILS(open(FS_FILE, O_RDONLY), EACCES) || !FAILS(chown(FS_FILE, 4711, 4711), EPERM))
		return 2;
	fd = open(FS_FILE "2", O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != 4711 || st.st_gid != 4712 ||
	    unlink(FS_FILE "2") != 0)
		return 3;
	if (setfsuid(0) != 4711 || open(FS_FILE, O_RDONLY) < 0 || unlink(FS_FILE) != 0)
		return 4;
	/* it follows the effective user; others are not to be had */
	if (setfsuid(4711) != 0 || seteuid(4713) != 0 || setfsuid(4711) != 4713 ||
	    setfsuid(0) != 4713 || setfsuid(0) != 0)
		return 5;
	return 0;
}

void
test_ids(void)
{
	result(in_child(uses_files_as_another, NULL) == 0,
	       "setfsuid and setfsgid: files are used as another user");
	if (access("/dev/ktr", F_OK) != 0)
		return; /* the guest's user 0 */
	result(in_child(changes_users, NULL) == 0, "real, effective and saved users");
	result(in_child(changes_groups, NULL) == 0, "real, effective and saved groups");
	result(in_child(tells_users, NULL) == 0, "/proc and exec know the three users");
	result(in_child(changes_are_whole, NULL) == 0,
	       "three users or groups are those of one moment, also a child's");
	result(in_child(waits_for_usage, NULL) == 0, "wait tells what a stopped child has used");
	result(in_child(makes_files, NULL) == 0 && holds_nothing(NOBODYS),
	       "what was counted to a user is given back to the same one");
	result(in_child(becomes_one_too_many, NULL) == 0 && holds_nothing(NOBODYS),
	       "one process of a user too many may not execute a program");
	result(in_child(divides_a_lock, NULL) == 0 && holds_nothing(NOBODYS) &&
		   holds_nothing(OTHERS),
	       "each part of a lock is given back to who has paid for it");
	result(in_child(looks_at_cwd, NULL) == 0, "who may look sees what is there at that time");
	result(ends_by_memory(), "a user's memory is full: who has some of it ends");
	result(in_child(waits, NULL) == 0,
	       "waitid tells ends, stops and continues, and may look only");
}
