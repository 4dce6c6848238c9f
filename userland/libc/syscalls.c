/*
 * syscalls.c - the system calls as C functions.
 *
 * Only calls that every Linux architecture has are made (openat, clone, dup3, …), so that a port
 * supplies crt0.S and syscall.S and nothing else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "userland/libc/libc.h"

long
syscall_result(long r)
{
	if (r < 0 && r >= -4095) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* Files */

ssize_t
read(int fd, void *buf, size_t len)
{
	return SYSCALL3(read, fd, buf, len);
}

ssize_t
write(int fd, const void *buf, size_t len)
{
	return SYSCALL3(write, fd, buf, len);
}

int
write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

off_t
lseek(int fd, off_t off, int whence)
{
	return SYSCALL3(lseek, fd, off, whence);
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return (int)SYSCALL4(openat, AT_FDCWD, path, flags, mode);
}

int
openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return (int)SYSCALL4(openat, dir, path, flags, mode);
}

int
close(int fd)
{
	return (int)SYSCALL1(close, fd);
}

int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = cmd == F_GETFD || cmd == F_GETFL ? 0 : va_arg(ap, int);
	va_end(ap);
	return (int)SYSCALL3(fcntl, fd, cmd, arg);
}

int
dup(int fd)
{
	return fcntl(fd, F_DUPFD, 0);
}

int
dup2(int from, int to)
{
	if (from == to) /* dup3 refuses this; dup2 promises to check `from` */
		return fcntl(from, F_GETFD) < 0 ? -1 : to;
	return (int)SYSCALL3(dup3, from, to, 0);
}

int
pipe2(int fds[2], int flags)
{
	return (int)SYSCALL2(pipe2, fds, flags);
}

int
pipe(int fds[2])
{
	return pipe2(fds, 0);
}

int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	long arg;

	va_start(ap, request);
	arg = va_arg(ap, long);
	va_end(ap);
	return (int)SYSCALL3(ioctl, fd, request, arg);
}

int
tcgetattr(int fd, struct termios *t)
{
	return ioctl(fd, TCGETS, t);
}

int
tcsetattr(int fd, int when, const struct termios *t)
{
	return ioctl(fd, TCSETS + (unsigned int)when, t);
}

int
tcsetpgrp(int fd, pid_t pgrp)
{
	return ioctl(fd, TIOCSPGRP, &pgrp);
}

pid_t
tcgetpgrp(int fd)
{
	pid_t pgrp;

	return ioctl(fd, TIOCGPGRP, &pgrp) < 0 ? -1 : pgrp;
}

int
isatty(int fd)
{
	struct termios t;

	return tcgetattr(fd, &t) == 0;
}

/* Names */

int
stat(const char *path, struct stat *st)
{
	return (int)SYSCALL4(newfstatat, AT_FDCWD, path, st, 0);
}

int
fstat(int fd, struct stat *st)
{
	return (int)SYSCALL4(newfstatat, fd, "", st, AT_EMPTY_PATH);
}

int
access(const char *path, int how)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	if ((how & X_OK) != 0 && (st.st_mode & 0111) == 0) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

int
mkdir(const char *path, mode_t mode)
{
	return (int)SYSCALL3(mkdirat, AT_FDCWD, path, mode);
}

int
unlinkat(int dir, const char *path, int flags)
{
	return (int)SYSCALL3(unlinkat, dir, path, flags);
}

int
unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int
rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int
rename(const char *from, const char *to)
{
	return (int)SYSCALL4(renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int
chdir(const char *path)
{
	return (int)SYSCALL1(chdir, path);
}

char *
getcwd(char *buf, size_t size)
{
	return SYSCALL2(getcwd, buf, size) < 0 ? NULL : buf;
}

/* Processes */

pid_t
fork(void)
{
	/* What is buffered must not be written twice. */
	fflush(stdout);
	return (pid_t)SYSCALL1(clone, SIGCHLD);
}

int
execve(const char *path, char *const argv[], char *const envp[])
{
	return (int)SYSCALL3(execve, path, argv, envp);
}

pid_t
waitpid(pid_t pid, int *status, int options)
{
	return (pid_t)SYSCALL4(wait4, pid, status, options, 0);
}

pid_t
wait(int *status)
{
	return waitpid(-1, status, 0);
}

pid_t
getpid(void)
{
	return (pid_t)SYSCALL0(getpid);
}

pid_t
getppid(void)
{
	return (pid_t)SYSCALL0(getppid);
}

pid_t
getpgid(pid_t pid)
{
	return (pid_t)SYSCALL1(getpgid, pid);
}

pid_t
getpgrp(void)
{
	return getpgid(0);
}

int
setpgid(pid_t pid, pid_t pgid)
{
	return (int)SYSCALL2(setpgid, pid, pgid);
}

uid_t
getuid(void)
{
	return (uid_t)SYSCALL0(getuid);
}

uid_t
geteuid(void)
{
	return (uid_t)SYSCALL0(geteuid);
}

int
setuid(uid_t uid)
{
	return (int)SYSCALL1(setuid, uid);
}

int
kill(pid_t pid, int sig)
{
	return (int)SYSCALL2(kill, pid, sig);
}

int
raise(int sig)
{
	return kill(getpid(), sig);
}

int
chmod(const char *path, mode_t mode)
{
	return (int)SYSCALL3(fchmodat, AT_FDCWD, path, mode);
}

int
sigemptyset(sigset_t *set)
{
	*set = 0;
	return 0;
}

int
sigaddset(sigset_t *set, int sig)
{
	*set |= 1ul << (sig - 1);
	return 0;
}

int
sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return (int)SYSCALL6(rt_sigprocmask, how, set, old, sizeof(*set), 0, 0);
}

int
sigtimedwait(const sigset_t *set, void *info, const struct timespec *time)
{
	return (int)SYSCALL6(rt_sigtimedwait, set, info, time, sizeof(*set), 0, 0);
}

void (*signal(int sig, void (*action)(int)))(int)
{
	struct kernel_sigaction new = {.sa_handler = (uint64_t)action}, old = {0};

	if (SYSCALL4(rt_sigaction, sig, &new, &old, sizeof(new.sa_mask)) < 0)
		return SIG_ERR;
	return (void (*)(int))old.sa_handler;
}

/* Memory */

void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)SYSCALL6(mmap, addr, len, prot, flags, fd, offset);
}

int
munmap(void *addr, size_t len)
{
	return (int)SYSCALL2(munmap, addr, len);
}

int
mprotect(void *addr, size_t len, int prot)
{
	return (int)SYSCALL3(mprotect, addr, len, prot);
}

/* Time */

int
clock_gettime(int clock, struct timespec *ts)
{
	return (int)SYSCALL2(clock_gettime, clock, ts);
}

int
prctl(int option, const char *name)
{
	return (int)SYSCALL2(prctl, option, name);
}

int
nanosleep(const struct timespec *ts, struct timespec *rest)
{
	return (int)SYSCALL2(nanosleep, ts, rest);
}

int
prlimit(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old)
{
	return (int)SYSCALL4(prlimit64, pid, resource, new, old);
}

int
getrlimit(int resource, struct rlimit *limit)
{
	return prlimit(0, resource, NULL, limit);
}

int
setrlimit(int resource, const struct rlimit *limit)
{
	return prlimit(0, resource, limit, NULL);
}
