/*
 * caps.c - capabilities, set-id bits and prctl(). It does the same on Linux (word "caps"). As
 * another user than 0 it tries less.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define USER   4711
#define NAME   "/tmp/linux_test.caps"
#define DIR    "/tmp/linux_test.capsd"
#define LOW(n) (1u << (n))

struct sets {
	struct __user_cap_data_struct d[2];
};

static int
get(pid_t pid, struct sets *s)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, pid};

	return (int)syscall(SYS_capget, &h, s->d);
}

static int
set(const struct sets *s)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};

	return (int)syscall(SYS_capset, &h, s->d);
}

static int
headers_are_checked(void *arg)
{
	struct __user_cap_header_struct h = {0x1234, 0};
	struct sets s = {0}, more;

	if (!FAILS(syscall(SYS_capget, &h, s.d), EINVAL) ||
	    h.version != _LINUX_CAPABILITY_VERSION_3)
		return 1;
	h.version = 0x1234;
	if (syscall(SYS_capget, &h, NULL) != 0 || h.version != _LINUX_CAPABILITY_VERSION_3 ||
	    !FAILS(syscall(SYS_capget, NOWHERE, s.d), EFAULT) || !FAILS(get(-1, &s), EINVAL) ||
	    !FAILS(get(0x3ffffff, &s), ESRCH) || get(getppid(), &s) != 0 || get(0, &s) != 0)
		return 2;
	h.pid = getppid();
	if (!FAILS(syscall(SYS_capset, &h, s.d), EPERM))
		return 3;
	h = (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_1, getpid()};
	if (syscall(SYS_capget, &h, &more.d[0]) != 0 || more.d[0].permitted != s.d[0].permitted)
		return 4;
	/* None comes back, and none is effective that is not permitted. */
	s.d[0].permitted = s.d[1].permitted = 0;
	if (geteuid() == 0 && !FAILS(set(&s), EPERM))
		return 5;
	s.d[0].effective = s.d[1].effective = 0;
	if (set(&s) != 0)
		return 6;
	s.d[0].permitted = LOW(CAP_CHOWN);
	return FAILS(set(&s), EPERM) ? 0 : 7;
}

static bool
may_chown(void)
{
	return chown(NAME, USER, USER) == 0 && chown(NAME, 0, 0) == 0;
}

/* User 0 without rights is one among others. */
static int
dropped_are_gone(void *arg)
{
	struct sets s, none;
	int ends[2];
	pid_t pid;
	bool good;
	char c;

	if (getuid() != 0)
		return 0;
	if (pipe(ends) != 0)
		return 1;
	close(creat(NAME, 0600));
	pid = fork();
	if (pid == 0) {
		setuid(USER);
		write(ends[1], "", 1);
		for (;;)
			pause();
	}
	good = read(ends[0], &c, 1) == 1;
	good &= get(0, &s) == 0 && may_chown() && kill(pid, 0) == 0;
	none = s;
	none.d[0].effective = none.d[1].effective = 0;
	good &= set(&none) == 0 && FAILS(chown(NAME, USER, USER), EPERM) &&
		FAILS(kill(pid, 0), EPERM) && FAILS(sethostname("x", 1), EPERM) &&
		FAILS(setresuid(USER, USER, USER), EPERM) &&
		FAILS(setresgid(USER, USER, USER), EPERM) && FAILS(setgroups(0, NULL), EPERM) &&
		FAILS(chroot("/"), EPERM) && FAILS(mknod(NAME "n", S_IFCHR | 0600, 0x103), EPERM) &&
		FAILS(nice(-1), EPERM) && FAILS(ptrace(PTRACE_ATTACH, pid, NULL, NULL), EPERM);
	/* Of its own files the mode counts. */
	good &= chmod(NAME, 0) == 0 && FAILS(open(NAME, O_RDONLY), EACCES);
	none.d[0].effective = LOW(CAP_DAC_READ_SEARCH);
	good &= set(&none) == 0 && close(open(NAME, O_RDONLY)) == 0 &&
		FAILS(open(NAME, O_RDWR), EACCES);
	none.d[0].effective = LOW(CAP_DAC_OVERRIDE);
	good &= set(&none) == 0 && close(open(NAME, O_RDWR)) == 0 && FAILS(kill(pid, 0), EPERM);
	good &= set(&s) == 0 && may_chown();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(NAME);
	return good ? 0 : 1;
}

/* They go with the last id that is 0, unless they are kept; the effective ones go in any case. */
static int
users_lose_them(void *arg)
{
	struct sets s, now;

	if (getuid() != 0)
		return 0;
	close(creat(NAME, 0600));
	if (get(0, &s) != 0 || seteuid(USER) != 0 || get(0, &now) != 0 || now.d[0].effective != 0 ||
	    now.d[0].permitted != s.d[0].permitted || !FAILS(chown(NAME, USER, USER), EPERM))
		return 1;
	if (seteuid(0) != 0 || get(0, &now) != 0 || now.d[0].effective != s.d[0].permitted)
		return 2;
	if (arg != NULL && (prctl(PR_SET_KEEPCAPS, 1) != 0 || prctl(PR_GET_KEEPCAPS) != 1))
		return 3;
	if (setuid(USER) != 0 || get(0, &now) != 0 || now.d[0].effective != 0 ||
	    now.d[0].permitted != (arg != NULL ? s.d[0].permitted : 0))
		return 4;
	if (arg == NULL)
		return FAILS(set(&s), EPERM) ? 0 : 5;
	now.d[0].effective = LOW(CAP_CHOWN);
	return set(&now) == 0 && may_chown() && unlink(NAME) == -1 && errno == EPERM ? 0 : 6;
}

/* ---- set-id bits ---- */

/* What the program was given, as bits. */
int
caps_as_executed(void)
{
	struct sets s;

	return (geteuid() == 0 ? 1 : 0) + (getegid() == USER + 1 ? 2 : 0) +
	       (getauxval(AT_SECURE) != 0 ? 4 : 0) + (getuid() == USER ? 8 : 0) +
	       (get(0, &s) == 0 && (s.d[0].effective & LOW(CAP_CHOWN)) ? 16 : 0) +
	       (prctl(PR_GET_DUMPABLE) == 0 ? 32 : 0) +
	       (getauxval(AT_EUID) == geteuid() && setuid(USER + 2) == 0 ? 64 : 0);
}

static bool
copy_self(uid_t uid, gid_t gid, mode_t mode)
{
	int from = open(linux_test_path(), O_RDONLY), to = creat(NAME, 0755);
	struct stat st;
	bool good = fstat(from, &st) == 0;

	while (good && st.st_size > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)st.st_size);

		good = n > 0;
		st.st_size -= n;
	}
	close(from);
	good &= fchown(to, uid, gid) == 0 && fchmod(to, mode) == 0 && fstat(to, &st) == 0 &&
		(st.st_mode & 07777) == mode;
	close(to);
	return good;
}

enum { PLAIN, NO_NEW };

static int
execute_as_user(void *how)
{
	if (setgid(USER) != 0 || setuid(USER) != 0)
		return 100;
	if (how == (void *)NO_NEW && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 101;
	execl(NAME, NAME, "caps-executed", NULL);
	return 102;
}

static int
set_ids_count(void *arg)
{
	struct statvfs fs;

	if (getuid() != 0 || statvfs("/tmp", &fs) != 0 || (fs.f_flag & ST_NOSUID))
		return 0;
	if (!copy_self(0, 0, 04755) ||
	    in_child(execute_as_user, (void *)PLAIN) != 1 + 4 + 8 + 16 + 32 + 64)
		return 1;
	if (in_child(execute_as_user, (void *)NO_NEW) != 8)
		return 2;
	if (!copy_self(0, USER + 1, 02755) ||
	    in_child(execute_as_user, (void *)PLAIN) != 2 + 4 + 8 + 32)
		return 3;
	if (!copy_self(0, USER + 1, 02745) || in_child(execute_as_user, (void *)PLAIN) != 8)
		return 4;
	unlink(NAME);
	return 0;
}

#ifdef __x86_64__
#define SP 19
#else
#define SP 31
#endif

/* A user's debugger of a file that it may execute: does it see the memory? 0: no. 1: yes. */
static int
debugs_as_user(void *arg)
{
	uint64_t regs[64];
	struct iovec v = {regs, sizeof(regs)};
	int status, seen;
	pid_t pid;

	if (setgid(USER) != 0 || setuid(USER) != 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl(NAME, NAME, "caps-executed", NULL);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGSET, pid, 1, &v) != 0)
		return 3;
	errno = 0;
	ptrace(PTRACE_PEEKDATA, pid, regs[SP], 0);
	seen = errno == 0 ? 1 : errno == EIO ? 0 : 4;
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid ? seen : 5;
}

/* Who may only execute a file does not read it in the memory of its process. */
static int
unreadable_are_hidden(void *arg)
{
	if (getuid() != 0)
		return 0;
	if (!copy_self(0, 0, 0755) || in_child(execute_as_user, (void *)PLAIN) != 8 ||
	    in_child(debugs_as_user, NULL) != 1)
		return 1;
	if (!copy_self(0, 0, 0711) || in_child(execute_as_user, (void *)PLAIN) != 8 + 32 ||
	    in_child(debugs_as_user, NULL) != 0)
		return 2;
	unlink(NAME);
	return 0;
}

#define TRACER_TELLS 100 /* a descriptor */

/* The child goes on, and executes a program, which goes on, too. What that is given. */
static int
traced_is_given(void)
{
	int status;
	pid_t pid;

	write(TRACER_TELLS, "", 1);
	pid = waitpid(-1, &status, 0);
	if (pid < 0 || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP ||
	    ptrace(PTRACE_CONT, pid, 0, 0) != 0)
		return 103;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 104;
}

int
caps_as_tracer(void)
{
	return geteuid() == 0 ? traced_is_given() : 105;
}

enum { BEFORE, AFTERWARDS, BY_ROOT };

/*
 * A user's child executes a set-user-id program. Its tracer is user 0 then: by such a program,
 * BEFORE which, or AFTERWARDS, the tracing began; or all the time. What the child is given.
 */
static int
traces_and_gains(void *when)
{
	int ends[2], status;
	pid_t pid;
	char c;

	if (pipe(ends) != 0 || dup2(ends[1], TRACER_TELLS) != TRACER_TELLS)
		return 106;
	if (when != (void *)BY_ROOT && (setgid(USER) != 0 || setuid(USER) != 0))
		return 107;
	pid = fork();
	if (pid == 0) {
		if (when == (void *)BEFORE && ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
			raise(SIGSTOP);
		read(ends[0], &c, 1);
		if (when == (void *)AFTERWARDS)
			ptrace(PTRACE_TRACEME, 0, 0, 0);
		_exit(execute_as_user((void *)PLAIN));
	}
	if (when == (void *)BEFORE &&
	    (waitpid(pid, &status, 0) != pid || ptrace(PTRACE_CONT, pid, 0, 0) != 0))
		return 108;
	if (when == (void *)BY_ROOT)
		return ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) == 0 ? traced_is_given()
									     : 109;
	execl(NAME, NAME, "caps-tracer", NULL);
	return 110;
}

/* What counts are the rights with which the tracing began: not those of now. */
static int
tracers_limit_gains(void *arg)
{
	struct statvfs fs;

	if (getuid() != 0 || statvfs("/tmp", &fs) != 0 || (fs.f_flag & ST_NOSUID))
		return 0;
	/* Linux sets AT_SECURE all the same. */
	if (!copy_self(0, 0, 04755) || (in_child(traces_and_gains, (void *)BEFORE) & ~4) != 8)
		return 1;
	if ((in_child(traces_and_gains, (void *)AFTERWARDS) & ~4) != 8)
		return 2;
	if (in_child(traces_and_gains, (void *)BY_ROOT) != 1 + 4 + 8 + 16 + 32 + 64)
		return 3;
	return unlink(NAME) == 0 ? 0 : 4;
}

/* User 4711, of a group, sees the limits of one that has its group. */
static int
asks_for_limits(void *pid)
{
	struct rlimit r;

	if (setgid(USER) != 0 || setuid(USER) != 0)
		return 3;
	if (prlimit(*(pid_t *)pid, RLIMIT_NOFILE, NULL, &r) == 0)
		return 0;
	return errno == EPERM ? 1 : 2;
}

static int
limits_of(gid_t gid)
{
	int ends[2], r;
	char c;
	pid_t pid = pipe(ends) == 0 ? fork() : -1;

	if (pid < 0)
		return 5;
	if (pid == 0) {
		if (setgid(gid) != 0 || setuid(USER) != 0)
			_exit(1);
		write(ends[1], "", 1);
		for (;;)
			pause();
	}
	close(ends[1]);
	r = read(ends[0], &c, 1) == 1 ? in_child(asks_for_limits, &pid) : 4;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

/* Who is not over the limit of processes though he has none left? */
static int
forks_with(void *cap)
{
	struct sets s = {0};
	pid_t pid;

	s.d[0].permitted = s.d[0].effective = (uint32_t)(uintptr_t)cap;
	if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgid(USER) != 0 || setuid(USER) != 0 ||
	    set(&s) != 0 || setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}) != 0)
		return 2;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno == EAGAIN ? 1 : 3;
	return waitpid(pid, NULL, 0) == pid ? 0 : 4;
}

static int
limits_have_rights(void *arg)
{
	struct sets s;

	if (getuid() != 0)
		return 0;
	if (limits_of(USER) != 0 || limits_of(USER + 1) != 1)
		return 1;
	if (in_child(forks_with, 0) != 1)
		return 2;
	if (get(0, &s) == 0 && (s.d[0].permitted & LOW(CAP_SYS_ADMIN)) &&
	    in_child(forks_with, (void *)(uintptr_t)LOW(CAP_SYS_ADMIN)) != 0)
		return 3;
	return 0;
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static gid_t
group_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_gid : (gid_t)-1;
}

static int
write_as_user(void *arg)
{
	int fd = open(NAME, O_RDWR);

	return setgid(USER) == 0 && setuid(USER) == 0 && write(fd, "x", 1) == 1 ? 0 : 1;
}

static int
truncate_as_user(void *arg)
{
	int fd = open(NAME, O_RDWR);

	return setgid(USER) == 0 && setuid(USER) == 0 && ftruncate(fd, 0) == 0 ? 0 : 1;
}

static int
keep_owner_as_user(void *arg)
{
	int fd = open(NAME, O_RDWR);

	return setgid(USER) == 0 && setuid(USER) == 0 && FAILS(fchown(fd, -1, -1), EPERM) ? 0 : 1;
}

/* Whoever changes a file takes the bits away, but for user 0. */
static int
set_ids_go(void *arg)
{
	int fd;

	umask(0);
	unlink(NAME);
	fd = open(NAME, O_RDWR | O_CREAT, 06755);
	if (fd < 0 || mode_of(NAME) != 06755 || fchmod(fd, 0) != 0 || chmod(NAME, 07777) != 0 ||
	    mode_of(NAME) != 07777)
		return 1;
	if (getuid() != 0)
		return write(fd, "x", 1) == 1 && mode_of(NAME) == 01777 && unlink(NAME) == 0 ? 0
											     : 2;
	if (write(fd, "x", 1) != 1 || mode_of(NAME) != 07777)
		return 3;
	if (in_child(write_as_user, NULL) != 0 || mode_of(NAME) != 01777)
		return 4;
	fchmod(fd, 06755);
	if (in_child(truncate_as_user, NULL) != 0 || mode_of(NAME) != 0755)
		return 5;
	fchmod(fd, 06755);
	if (fchown(fd, USER, USER + 1) != 0 || mode_of(NAME) != 0755)
		return 6;
	fchmod(fd, 06755);
	fchown(fd, 0, 0);
	fchmod(fd, 06755);
	if (in_child(keep_owner_as_user, NULL) != 0 || mode_of(NAME) != 06755)
		return 10; /* it is not the user's to change */
	fchown(fd, USER, USER + 1);
	fchmod(fd, 06745);
	if (fchown(fd, USER, USER + 1) != 0 || mode_of(NAME) != 02745)
		return 7;
	if (setgid(USER) != 0 || setuid(USER) != 0 || fchmod(fd, 06755) != 0 ||
	    mode_of(NAME) != 04755)
		return 8; /* it is not a member of the group */
	return unlink(NAME) == 0 ? 0 : 9;
}

#define STICKY DIR ".sticky/"

/* Who may not remove a name hears of that first, and not of what else is wrong. */
static int
remove_as_user(void *arg)
{
	int mine;

	if (setgid(USER) != 0 || setuid(USER) != 0)
		return 1;
	mine = open(STICKY "mine", O_CREAT | O_RDWR, 0600);
	if (mine < 0 || close(mine) != 0 || mkdir(STICKY "mydir", 0700) != 0)
		return 2;
	if (!FAILS(unlink(STICKY "none"), ENOENT) || !FAILS(rmdir(STICKY "none"), ENOENT) ||
	    !FAILS(unlink(STICKY "file"), EPERM) || !FAILS(rmdir(STICKY "file"), EPERM) ||
	    !FAILS(unlink(STICKY "full"), EPERM) || !FAILS(rmdir(STICKY "full"), EPERM) ||
	    !FAILS(unlink(STICKY "file/"), ENOTDIR))
		return 3;
	if (!FAILS(rename(STICKY "file", STICKY "new"), EPERM) ||
	    !FAILS(rename(STICKY "mine", STICKY "file"), EPERM) ||
	    !FAILS(rename(STICKY "mine", STICKY "full"), EPERM) ||
	    !FAILS(rename(STICKY "mydir", STICKY "file"), EPERM) ||
	    !FAILS(rename(STICKY "mydir", STICKY "full"), EPERM) ||
	    !FAILS(rename(STICKY "mine", STICKY "mydir"), EISDIR) ||
	    !FAILS(rename(STICKY "mydir", STICKY "mine"), ENOTDIR))
		return 4;
	return unlink(STICKY "mine") == 0 && rmdir(STICKY "mydir") == 0 ? 0 : 5;
}

static int
sticky_comes_first(void *arg)
{
	int fd, failed;

	umask(0);
	if (getuid() != 0)
		return 0;
	if (mkdir(STICKY, 01777) != 0 || mkdir(STICKY "full", 0777) != 0 ||
	    mkdir(STICKY "full/of", 0777) != 0)
		return 1;
	fd = open(STICKY "file", O_CREAT | O_RDWR, 0666);
	close(fd);
	failed = in_child(remove_as_user, NULL);
	return failed == 0 && unlink(STICKY "file") == 0 && rmdir(STICKY "full/of") == 0 &&
		       rmdir(STICKY "full") == 0 && rmdir(STICKY) == 0
		   ? 0
		   : 10 + failed;
}

static int
directories_give_groups(void *arg)
{
	bool good;
	int fd;

	umask(022);
	if (getuid() != 0)
		return 0;
	good = mkdir(DIR, 0777) == 0 && chown(DIR, 0, USER) == 0 && chmod(DIR, 02777) == 0 &&
	       mkdir(DIR "/d", 0755) == 0 && mode_of(DIR "/d") == 02755 &&
	       group_of(DIR "/d") == USER && close(creat(DIR "/f", 0644)) == 0 &&
	       mode_of(DIR "/f") == 0644 && group_of(DIR "/f") == USER &&
	       mknod(DIR "/p", S_IFIFO | 0600, 0) == 0 && group_of(DIR "/p") == USER &&
	       mkdir(DIR "/d/e", 0700) == 0 && mode_of(DIR "/d/e") == 02700;
	fd = open(DIR "/x", O_RDWR | O_CREAT, 02755);
	good &= fd >= 0 && mode_of(DIR "/x") == 02755;
	close(fd);
	rmdir(DIR "/d/e");
	rmdir(DIR "/d");
	unlink(DIR "/f");
	unlink(DIR "/p");
	unlink(DIR "/x");
	rmdir(DIR);
	return good ? 0 : 1;
}

static bool
opens_memory(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR);
	close(fd);
	return fd >= 0;
}

/* Who has no rights does not get those of others by their memory, though the user is the same. */
static int
memory_has_rights(void *arg)
{
	struct sets none = {0};
	bool before = opens_memory(getppid());

	if (geteuid() != 0)
		return 0;
	if (!before || set(&none) != 0 || !opens_memory(getpid()))
		return 1;
	return !opens_memory(getppid()) && errno == EBADF ? 0 : 2;
}

/* Another effective group counts as another user. */
static int
groups_count(void *arg)
{
	int n = -1;

	if (geteuid() != 0)
		return 0;
	if (prctl(PR_SET_DUMPABLE, 1) != 0 || prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 ||
	    setresgid(USER, (gid_t)-1, (gid_t)-1) != 0 || prctl(PR_GET_DUMPABLE) != 1)
		return 1;
	if (setgid(USER) != 0 || prctl(PR_GET_DUMPABLE) == 1 || prctl(PR_GET_PDEATHSIG, &n) != 0)
		return 2;
	return n == 0 ? 0 : 3;
}

/* ---- prctl() ---- */

static int
options_are_kept(void *arg)
{
	int n = -1;

	if (prctl(PR_GET_PDEATHSIG, &n) != 0 || n != 0 ||
	    !FAILS(prctl(PR_SET_PDEATHSIG, 65), EINVAL) || prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 ||
	    prctl(PR_GET_PDEATHSIG, &n) != 0 || n != SIGUSR1 || prctl(PR_SET_PDEATHSIG, 0) != 0)
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0 ||
	    !FAILS(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL) ||
	    !FAILS(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL) ||
	    !FAILS(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	if (prctl(PR_GET_DUMPABLE) != 1 || !FAILS(prctl(PR_SET_DUMPABLE, 3), EINVAL) ||
	    prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_GET_DUMPABLE) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1) != 0 || prctl(PR_GET_DUMPABLE) != 1)
		return 3;
	if (prctl(PR_GET_TIMERSLACK) != 50000 || prctl(PR_SET_TIMERSLACK, 1234) != 0 ||
	    prctl(PR_GET_TIMERSLACK) != 1234 || prctl(PR_SET_TIMERSLACK, 0) != 0 ||
	    prctl(PR_GET_TIMERSLACK) != 50000)
		return 4;
	if (prctl(PR_CAPBSET_READ, CAP_CHOWN) != 1 || !FAILS(prctl(PR_CAPBSET_READ, 64), EINVAL) ||
	    !FAILS(prctl(PR_SET_KEEPCAPS, 2), EINVAL) || prctl(PR_GET_SECUREBITS) != 0 ||
	    prctl(PR_SET_KEEPCAPS, 1) != 0 || prctl(PR_GET_SECUREBITS) != 16 ||
	    !FAILS(prctl(12345), EINVAL))
		return 5;
	return 0;
}

/* A child dies with its parent: writes what it got, or 0 if nothing comes. */
static int
parents_end(void *arg)
{
	int ends[2], got = 0;
	sigset_t set;
	pid_t pid;

	if (pipe(ends) != 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (fork() != 0) {
			read(ends[0], &got, 1);
			_exit(0);
		}
		prctl(PR_SET_PDEATHSIG, SIGUSR1);
		write(ends[1], "x", 1);
		sigwait(&set, &got);
		write(ends[1], &got, sizeof(got));
		_exit(0);
	}
	close(ends[1]);
	waitpid(pid, NULL, 0);
	while (read(ends[0], &got, sizeof(got)) == 1)
		;
	return got == SIGUSR1 ? 0 : 2;
}

static int
orphans_find_a_parent(void *arg)
{
	int ends[2], status;
	pid_t pid, orphan = 0;
	int n;

	if (prctl(PR_GET_CHILD_SUBREAPER, &n) != 0 || n != 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_GET_CHILD_SUBREAPER, &n) != 0 ||
	    n != 1 || pipe(ends) != 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_GET_CHILD_SUBREAPER, &n) != 0 || n != 0)
			_exit(1);
		orphan = fork();
		if (orphan == 0) {
			while (getppid() != (pid_t)(intptr_t)arg)
				sched_yield();
			_exit(7);
		}
		write(ends[1], &orphan, sizeof(orphan));
		_exit(0);
	}
	if (read(ends[0], &orphan, sizeof(orphan)) != sizeof(orphan) ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		return 2;
	return waitpid(orphan, &status, 0) == orphan && WEXITSTATUS(status) == 7 ? 0 : 3;
}

static int
is_subreaper(void *arg)
{
	return orphans_find_a_parent((void *)(intptr_t)getpid());
}

/* A zombie that gets a parent which wants none is gone. */
static int
orphans_are_not_wanted(void *arg)
{
	siginfo_t info;
	pid_t pid;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		return 1;
	signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		signal(SIGCHLD, SIG_DFL);
		pid = fork();
		if (pid == 0)
			_exit(0);
		_exit(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	}
	return FAILS(waitpid(-1, NULL, 0), ECHILD) ? 0 : 2;
}

/* User 0 that has dropped its rights gets them again by exec, unless it wants no new ones. */
static int
drop_and_execute(void *how)
{
	struct sets none = {0};

	if (how == (void *)NO_NEW && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 100;
	if (set(&none) != 0)
		return 101;
	execl(linux_test_path(), linux_test_path(), "caps-executed", NULL);
	return 102;
}

static int
root_gets_them_again(void *arg)
{
	if (getuid() != 0)
		return 0;
	return in_child(drop_and_execute, (void *)PLAIN) == 1 + 16 + 32 + 64 &&
		       in_child(drop_and_execute, (void *)NO_NEW) == 1
		   ? 0
		   : 1;
}

void
test_caps(void)
{
	result(in_child(headers_are_checked, NULL) == 0,
	       "capget and capset check what they are given, and give no rights");
	result(in_child(dropped_are_gone, NULL) == 0, "rights that user 0 has dropped are gone");
	result(in_child(users_lose_them, NULL) == 0, "who gives up user 0 loses its rights");
	result(in_child(users_lose_them, "") == 0, "PR_SET_KEEPCAPS keeps the permitted ones");
	result(in_child(root_gets_them_again, NULL) == 0,
	       "exec gives user 0 its rights, but not with PR_SET_NO_NEW_PRIVS");
	result(in_child(set_ids_count, NULL) == 0,
	       "exec honours set-id bits, but not with PR_SET_NO_NEW_PRIVS");
	result(in_child(tracers_limit_gains, NULL) == 0,
	       "a traced program gains by set-id bits what its tracer could have when it began");
	result(in_child(unreadable_are_hidden, NULL) == 0,
	       "a file that may only be executed is not read in memory");
	result(in_child(limits_have_rights, NULL) == 0,
	       "limits are those of the same user and group, and of who has rights");
	result(in_child(set_ids_go, NULL) == 0,
	       "set-id bits are kept, until others change the file");
	result(in_child(sticky_comes_first, NULL) == 0,
	       "a sticky directory's EPERM comes before other reasons why a name stays");
	result(in_child(directories_give_groups, NULL) == 0,
	       "in a directory with the set-group-id bit, new files have its group");
	result(in_child(options_are_kept, NULL) == 0,
	       "prctl's options are told, and bad ones refused");
	result(in_child(parents_end, NULL) == 0,
	       "PR_SET_PDEATHSIG sends a signal when a parent ends");
	result(in_child(is_subreaper, NULL) == 0, "a subreaper is the parent of orphans below it");
	result(in_child(orphans_are_not_wanted, NULL) == 0,
	       "a subreaper that ignores SIGCHLD has no zombies");
	result(in_child(memory_has_rights, NULL) == 0,
	       "a process without rights does not get at the memory of one that has them");
	result(in_child(groups_count, NULL) == 0,
	       "who changes its group is not traced, as who changes its user");
}
